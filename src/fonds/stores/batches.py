"""Cutting long lists to what one SQL statement takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select

T = TypeVar("T")

PARAMETERS: Final = 500
"""Values in one `IN (…)`; far below the limit of either database."""


def pieces(items: Iterable[T], size: int = PARAMETERS) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    remaining = iter(items)
    while piece := list(islice(remaining, size)):
        yield piece


def select_in(
    connection: Connection,
    statement: Select[Any],
    column: ColumnElement[Any],
    values: Sequence[Any],
) -> Iterator[Row[Any]]:
    """Rows whose column has one of the values, however many there are."""
    for piece in pieces(values):
        yield from connection.execute(statement.where(column.in_(piece)))

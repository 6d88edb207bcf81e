"""A page of a longer list: how much of it is shown, and where it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Row, Select

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Page(Generic[T]):
    """Some items of a list, in its order."""

    items: tuple[T, ...]
    next_offset: int | None
    """Where the next page begins; None at the end."""
    total: int | None = None
    """Items of the whole list; None where counting them would take longer than the page."""


def page_of(
    connection: Connection,
    query: Select[Any],
    make: Callable[[Row[Any]], T],
    *,
    limit: int,
    offset: int,
) -> Page[T]:
    """A page of what a statement gives; one row more is read to know whether it goes on."""
    rows = connection.execute(query.limit(limit + 1).offset(offset)).all()
    return cut(rows, make, limit=limit, offset=offset)


def cut(
    rows: Sequence[Any],
    make: Callable[[Any], T],
    *,
    limit: int,
    offset: int,
    total: int | None = None,
) -> Page[T]:
    """The page of rows that were read from `offset` on, one more than asked for if it goes on."""
    return Page(
        items=tuple(make(row) for row in rows[:limit]),
        next_offset=offset + limit if len(rows) > limit else None,
        total=total,
    )

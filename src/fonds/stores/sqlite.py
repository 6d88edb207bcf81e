"""What is particular to SQLite: one writer, WAL, many rows in one statement.

Cutting long lists to what one SQL statement takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, Final, TypeVar

import pysqlite3.dbapi2
from sqlalchemy import ColumnElement, Connection, Engine, Row, Select, create_engine, event
from sqlalchemy.engine import URL

_PRAGMAS = (
    "PRAGMA busy_timeout = 10000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
)

_ROWS: Final = (16, 4, 1)
"""Rows in one statement: few numbers, for each is a statement that SQLite keeps prepared."""

GOES_ON: Final = "goes_on"
"""The option of a statement that is a part of the one before it."""


def open_sqlite(url: URL, *, cache_mib: int) -> Engine:
    """An engine whose writers claim the lock up front instead of upgrading into a deadlock."""
    engine = create_engine(
        url,
        module=pysqlite3.dbapi2,
        connect_args={"check_same_thread": False, "timeout": 10},
        pool_use_lifo=True,  # what a connection has read is worth nothing after another has written
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        for pragma in (*_PRAGMAS, f"PRAGMA cache_size = -{cache_mib * 1024}"):
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        read_only = connection.get_execution_options().get("read_only")
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


def insert_rows(connection: Connection, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows by a statement that has places for one; to whoever counts it is one request."""
    for number, (statement, values) in enumerate(in_statements(text, rows)):
        connection.exec_driver_sql(statement, values, {GOES_ON: number > 0})


def in_statements(
    text: str, rows: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """A statement that has places for one row, and many rows, as statements with many rows each.

    After whatever it executes the driver lets another thread run, and gets its turn back later: for
    a row that takes longer than the row itself, and for many rows the other thread can use it.
    """
    done = 0
    while done < len(rows):
        size = next(size for size in _ROWS if size <= len(rows) - done)
        some = rows[done : done + size]
        yield _for_rows(text, len(some[0]), size), tuple(chain.from_iterable(some))
        done += size


@cache
def _for_rows(text: str, places: int, rows: int) -> str:
    """A statement that inserts one row, for several."""
    one = f"({', '.join('?' * places)})"
    assert text.count(one) == 1, text
    return text.replace(one, ", ".join([one] * rows))


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

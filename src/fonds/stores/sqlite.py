"""SQLite's connection settings and multi-row inserts, and batches for `IN (…)` on any database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, Final, TypeVar

import pysqlite3.dbapi2
from sqlalchemy import ColumnElement, Connection, Engine, Row, Select, create_engine, event
from sqlalchemy.engine import URL

from fonds.seams import spend

_PRAGMAS = (
    "PRAGMA busy_timeout = 10000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
)

ROWS_PER_STATEMENT: Final = 64
"""Rows that one statement inserts; far below the limit of parameters."""


def open_sqlite(url: URL, *, cache_mib: int) -> Engine:
    """An engine whose writers lock at BEGIN, as upgrading a lock later can deadlock."""
    engine = create_engine(
        url,
        module=pysqlite3.dbapi2,
        connect_args={"check_same_thread": False, "timeout": 10},
        pool_use_lifo=True,  # a write by another connection invalidates the page cache of this one
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions itself
        for pragma in (*_PRAGMAS, f"PRAGMA cache_size = -{cache_mib * 1024}"):
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        read_only = connection.get_execution_options().get("read_only")
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


def insert_rows(connection: Connection, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows by a statement for one row.

    Only the first statement passes SQLAlchemy, which takes longer for each than the driver.
    """
    statements = in_statements(text, rows)
    for statement, values in islice(statements, 1):
        connection.exec_driver_sql(statement, values)
    execute = connection.connection.cursor().execute
    for statement, values in statements:
        spend("database")
        try:
            execute(statement, values)
        except pysqlite3.dbapi2.Error:
            # It failed as a whole; SQLAlchemy raises its own kind of the same error.
            connection.exec_driver_sql(statement, values)


def in_statements(
    text: str, rows: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Statements with many rows each, from a statement for one row and many rows.

    The driver releases the GIL for each statement, and getting it back takes longer than inserting
    a row.
    """
    for batch in batched(rows, ROWS_PER_STATEMENT):
        yield _for_rows(text, len(batch[0]), len(batch)), tuple(chain.from_iterable(batch))


@cache
def _for_rows(text: str, columns: int, rows: int) -> str:
    """A statement that inserts one row, changed to insert several."""
    placeholders = f"({', '.join('?' * columns)})"
    assert text.count(placeholders) == 1, text
    return text.replace(placeholders, ", ".join([placeholders] * rows))


T = TypeVar("T")

PARAMETERS: Final = 500
"""Values in one `IN (…)`; far below the limit of either database."""


def batched(items: Iterable[T], size: int = PARAMETERS) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def select_in(
    connection: Connection,
    statement: Select[Any],
    column: ColumnElement[Any],
    values: Sequence[Any],
) -> Iterator[Row[Any]]:
    """Rows whose column has one of the values, of which there may be any number."""
    for batch in batched(values):
        yield from connection.execute(statement.where(column.in_(batch)))

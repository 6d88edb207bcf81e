"""Consistent snapshots of a database, and addresses without secrets for messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, CursorResult, Row, Select

from fonds.stores.database import Database


class Snapshot:
    """A consistent view of a database from its first query on."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._open: set[CursorResult[Any]] = set()

    def stream(self, query: Select[Any], *, batch_size: int) -> Iterator[Row[Any]]:
        """The rows of a query, fetched in batches."""
        result = self.connection.execute(query, execution_options={"yield_per": batch_size})
        self._open.add(result)
        try:
            yield from result
        finally:
            self._open.discard(result)
            result.close()

    def close(self) -> None:
        """Close the results of queries that were not read to the end."""
        for result in self._open:
            result.close()


@contextmanager
def snapshot(database: Database) -> Iterator[Snapshot]:
    """A snapshot of a database, open until the end of the block."""
    with database.read() as connection:
        if not database.is_sqlite:
            # By default, each statement would see what was committed before it.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        opened = Snapshot(connection)
        try:
            yield opened
        finally:
            opened.close()


def display_address(address: str) -> str:
    """The address of a store or database without password and options, which may be secret."""
    if "://" not in address:
        return address
    try:
        parts = urlsplit(address, allow_fragments=False)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return f"{address.partition('://')[0]}://…"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"

"""A library at one moment, for as long as it takes to read all of it.

Addresses as people give them, fit to be shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, CursorResult, Row, Select

from fonds.stores.database import Database


class Snapshot:
    """Sees nothing of what others write from its first query on."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._open: set[CursorResult[Any]] = set()

    def stream(self, query: Select[Any], *, at_once: int) -> Iterator[Row[Any]]:
        """The rows of a query, of which so many are in memory."""
        result = self.connection.execute(query, execution_options={"yield_per": at_once})
        self._open.add(result)
        try:
            yield from result
        finally:
            self._open.discard(result)
            result.close()

    def close(self) -> None:
        """Let go of queries that nobody read to the end."""
        for result in self._open:
            result.close()


@contextmanager
def snapshot(database: Database) -> Iterator[Snapshot]:
    """A view of everything as it is now."""
    with database.read() as connection:
        if not database.is_sqlite:
            # Else each statement would see what was written before it.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        opened = Snapshot(connection)
        try:
            yield opened
        finally:
            opened.close()


def shown(address: str) -> str:
    """An address of a store or database without what may be a secret: password and options."""
    if "://" not in address:
        return address
    try:
        parts = urlsplit(address, allow_fragments=False)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return f"{address.partition('://')[0]}://…"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"

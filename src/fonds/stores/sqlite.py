"""What is particular to SQLite: one writer, WAL."""

from __future__ import annotations

from typing import Any

import pysqlite3.dbapi2
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

_PRAGMAS = (
    "PRAGMA busy_timeout = 10000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
)


def open_sqlite(url: URL, *, cache_mib: int) -> Engine:
    """An engine whose writers claim the lock up front instead of upgrading into a deadlock."""
    engine = create_engine(
        url, module=pysqlite3.dbapi2, connect_args={"check_same_thread": False, "timeout": 10}
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

"""What watches over a database while it is used, put aside while it is filled.

A job that is complete may not begin so, and a committee may come before the one it belongs to. All
of it is back, and foreign keys have been checked, before anything is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text


@contextmanager
def put_aside(connection: Connection) -> Iterator[None]:
    """Let rows come in any order and in any state, within the transaction of the connection."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        with _without_triggers(connection):
            yield
    else:
        with _without_user_triggers(connection), _without_loops(connection):
            yield


@contextmanager
def _without_triggers(connection: Connection) -> Iterator[None]:
    query = text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid")
    triggers = connection.execute(query).all()
    for name, _ in triggers:
        connection.exec_driver_sql(f'DROP TRIGGER "{name}"')
    yield
    for _, sql in triggers:
        connection.exec_driver_sql(sql)


@contextmanager
def _without_user_triggers(connection: Connection) -> Iterator[None]:
    query = text(
        "SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger"
        " JOIN pg_class ON pg_class.oid = tgrelid"
        " WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace"
    )
    guarded = list(connection.scalars(query))
    for name in guarded:
        connection.exec_driver_sql(f"ALTER TABLE {name} DISABLE TRIGGER USER")
    yield
    for name in guarded:
        connection.exec_driver_sql(f"ALTER TABLE {name} ENABLE TRIGGER USER")


@contextmanager
def _without_loops(connection: Connection) -> Iterator[None]:
    """Without foreign keys by which rows refer to others of their own table."""
    query = text(
        "SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid)"
        " FROM pg_constraint WHERE contype = 'f' AND conrelid = confrelid"
        " AND connamespace = current_schema()::regnamespace"
    )
    loops = connection.execute(query).all()
    for table, name, _ in loops:
        connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    yield
    for table, name, definition in loops:
        connection.exec_driver_sql(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")

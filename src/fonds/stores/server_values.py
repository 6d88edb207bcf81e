"""Values that all servers of a library have in common. The caller owns the transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, select

from fonds.stores.database import insert_ignoring, upsert
from fonds.stores.tables import server_values

SERVER_SECRET: Final = "secret"  # noqa: S105 — the name under which it is stored
"""The secret that signs, in hexadecimal digits."""
HIDDEN_CLIENTS: Final = "hidden_clients"
"""How a server noticed a proxy that does not name its clients."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerValue:
    """A value and when it was stored."""

    value: Any
    updated_at: datetime


def read_value(connection: Connection, name: str) -> ServerValue | None:
    """The value of a name, if one is stored."""
    query = select(server_values.c.value, server_values.c.updated_at)
    row = connection.execute(query.where(server_values.c.name == name)).one_or_none()
    return None if row is None else ServerValue(value=row.value, updated_at=row.updated_at)


def store_value(connection: Connection, name: str, value: Any, now: datetime) -> None:
    """Store a value in place of the previous one."""
    upsert(connection, server_values, [{"name": name, "value": value, "updated_at": now}])


def store_first(connection: Connection, name: str, value: Any, now: datetime) -> None:
    """Store a value unless there is one already."""
    row = {"name": name, "value": value, "updated_at": now}
    insert_ignoring(connection, server_values, [row])

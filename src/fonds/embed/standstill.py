"""Endpoints that are left alone, written where other processes see it: among the leases.

A breaker belongs to the process that asks. When it opens, that process notes until when; the note
runs out by itself if the process dies, as a lease does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, delete, select
from sqlalchemy.exc import SQLAlchemyError

from fonds.seams import Clock
from fonds.stores.database import Database, upsert
from fonds.stores.tables import ingestion_leases

PREFIX: Final = "breaker-"
"""How the names of these notes begin among the leases."""


def noted(database: Database, model: str, clock: Clock) -> Callable[[float | None], None]:
    """Notes that the endpoint of a model is left alone for so many seconds, or (None) no more."""

    def note(seconds: float | None) -> None:
        # It is news about trouble, and must not become trouble itself.
        with suppress(SQLAlchemyError), database.write() as connection:
            if seconds is None:
                mine = ingestion_leases.c.name == f"{PREFIX}{model}"
                connection.execute(delete(ingestion_leases).where(mine))
                return
            owner = f"{os.uname().nodename}:{os.getpid()}"
            until = clock.now() + timedelta(seconds=seconds)
            row = {"name": f"{PREFIX}{model}", "owner": owner, "lease_until": until}
            upsert(connection, ingestion_leases, [row])

    return note


def left_alone(connection: Connection, now: datetime) -> set[str]:
    """The models whose endpoint some process leaves alone now."""
    table = ingestion_leases.c
    query = select(table.name).where(table.name.startswith(PREFIX), table.lease_until > now)
    return {name.removeprefix(PREFIX) for name in connection.scalars(query)}

"""One run per source at a time: an advisory file lock on one machine, a lease row on PostgreSQL."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, delete, update

from fonds.errors import LeaseLostError, SourceBusyError
from fonds.seams import Clock
from fonds.stores.database import Database, insert_ignoring
from fonds.stores.tables import ingestion_leases

LEASE: Final = timedelta(seconds=60)


class Claim(Protocol):
    """The right to write for one source, held for the length of a run."""

    def confirm(self, connection: Connection) -> None:
        """Prove, inside a transaction, that the claim still stands; LeaseLostError if not."""
        ...

    def renew(self) -> None:
        """Keep the claim while there is nothing to write."""
        ...


class FileClaim:
    """Held by an open file: the kernel releases it when the process ends, however it ends."""

    def confirm(self, connection: Connection) -> None:
        """An flock cannot be lost."""

    def renew(self) -> None:
        """An flock does not expire."""


class LeaseClaim:
    """Held by a row that must be renewed; whoever finds it expired may take it."""

    def __init__(self, database: Database, name: str, clock: Clock) -> None:
        self._database = database
        self._name = name
        self._clock = clock
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"

    def acquire(self) -> None:
        """Take the lease if it is free or expired."""
        now = self._clock.now()
        row = {"name": self._name, "owner": self._owner, "lease_until": now + LEASE}
        expired = (ingestion_leases.c.name == self._name) & (ingestion_leases.c.lease_until < now)
        with self._database.write() as connection:
            connection.execute(delete(ingestion_leases).where(expired))
            insert_ignoring(connection, ingestion_leases, [row])
            if not self._extend(connection):
                raise SourceBusyError(f"{self._name} is being run by another process")

    def confirm(self, connection: Connection) -> None:
        """Extend the lease in the same transaction as the writes it protects."""
        if not self._extend(connection):
            raise LeaseLostError(f"another process took over {self._name}; nothing was written")

    def renew(self) -> None:
        """Extend the lease in a transaction of its own."""
        with self._database.write() as connection:
            self.confirm(connection)

    def release(self) -> None:
        """Give the lease back, if it is still ours."""
        with self._database.write() as connection:
            connection.execute(delete(ingestion_leases).where(self._mine()))

    def _extend(self, connection: Connection) -> bool:
        extended = update(ingestion_leases).where(self._mine())
        until = self._clock.now() + LEASE
        return connection.execute(extended.values(lease_until=until)).rowcount == 1

    def _mine(self) -> ColumnElement[bool]:
        table = ingestion_leases.c
        return (table.name == self._name) & (table.owner == self._owner)


@contextmanager
def claim_source(
    database: Database, home: Path, source: str, clock: Clock
) -> Iterator[FileClaim | LeaseClaim]:
    """Hold the right to run a source, or SourceBusyError at once."""
    if database.is_sqlite:
        with _file_claim(home / "locks" / f"ingest-{source}.lock", source) as claim:
            yield claim
        return
    lease = LeaseClaim(database, f"ingest-{source}", clock)
    lease.acquire()
    try:
        yield lease
    finally:
        lease.release()


@asynccontextmanager
async def kept(claim: Claim) -> AsyncIterator[None]:
    """Renew a claim for as long as the block lasts, also while nothing is written."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(LEASE.total_seconds() / 3)
            # Whoever lost the lease learns it from `confirm`, before the next write.
            with suppress(LeaseLostError):
                await asyncio.to_thread(claim.renew)

    heart = asyncio.create_task(beat())
    try:
        yield
    finally:
        heart.cancel()


@contextmanager
def _file_claim(path: Path, source: str) -> Iterator[FileClaim]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SourceBusyError(f"{source} is being run by another process") from error
        yield FileClaim()

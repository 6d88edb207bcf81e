"""One run per source at a time: an advisory file lock on one machine, a lease row on PostgreSQL."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from fonds.errors import LeaseLostError, SourceBusyError, StoreError
from fonds.runs.commands import finish_cancels, is_cancelled
from fonds.seams import Clock
from fonds.stores import leases
from fonds.stores.database import Database, repeatable
from fonds.stores.outages import STOP
from fonds.stores.permissions import make_private_folder, private_opener

LEASE: Final = timedelta(seconds=45)
"""Longer than that of a queue, shorter than that of a command."""
RENEWAL_SECONDS: Final = 5
"""A lease that is not renewed for several times as long belongs to a dead process."""
POLL_SECONDS: Final = 1.0
"""Seconds between checks whether a command cancels the run, or whether a lock is free."""

_PREFIX: Final = "ingest-"

_log: Final = structlog.get_logger("fonds.runs")


class SourceLock(Protocol):
    """The right to write for one source, for the duration of a run."""

    def confirm(self, connection: Connection) -> None:
        """Check in a transaction that the lock is still ours; LeaseLostError if not."""
        ...

    def renew(self) -> None:
        """Renew the lock while there is nothing to write."""
        ...

    def is_cancelled(self) -> bool:
        """Whether a command cancels the run."""
        ...


class _Cancellable:
    def __init__(self, database: Database, source: str) -> None:
        self._database = database
        self._source = source
        self.was_cancelled = False

    @repeatable
    def is_cancelled(self) -> bool:
        """Whether a command cancels the run."""
        with self._database.read() as connection:
            self.was_cancelled = is_cancelled(connection, self._source)
        return self.was_cancelled


class FileLock(_Cancellable):
    """A lock on an open file, which the kernel releases when the process ends."""

    def confirm(self, connection: Connection) -> None:
        """Nothing: an flock cannot be lost."""

    def renew(self) -> None:
        """Nothing: an flock does not expire."""


class LeaseLock(_Cancellable):
    """A lease in a row that must be renewed; when it has expired, another process may take it."""

    def __init__(self, database: Database, name: str, clock: Clock) -> None:
        super().__init__(database, name.removeprefix(_PREFIX))
        self._name = name
        self._clock = clock
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"

    def acquire(self, *, waits: bool = False) -> None:
        """Take the lease if it is free or expired.

        One that `waits` does so until a lease ends that its owner does not renew any more.
        """
        first = current = self._claim()
        deadline = time.monotonic() + LEASE.total_seconds() + RENEWAL_SECONDS
        if current is not None and waits:
            host = current.owner.partition(":")[0]
            _log.warning(f"waiting until the last run of {self._source}, at {host}, is over")
        while current is not None:
            # A lease that has changed belongs to a process that works.
            waits &= current == first and time.monotonic() < deadline
            if not waits or STOP.wait(POLL_SECONDS):
                raise SourceBusyError(f"{self._source} is being run by another process")
            current = self._claim()

    @repeatable
    def _claim(self) -> leases.NameLease | None:
        """Take the lease; returns that of another process if it has one."""
        with self._database.write() as connection:
            now = self._clock.now()
            if leases.claim_name(connection, self._name, self._owner, now, now + LEASE):
                return None
            return leases.lease_of(connection, self._name)

    def confirm(self, connection: Connection) -> None:
        """Extend the lease in the same transaction as the writes it protects."""
        until = self._clock.now() + LEASE
        if not leases.renew_name(connection, self._name, self._owner, until):
            raise LeaseLostError(f"another process took over {self._source}; nothing was written")

    @repeatable
    def renew(self) -> None:
        """Extend the lease in a transaction of its own."""
        with self._database.write() as connection:
            self.confirm(connection)

    @repeatable
    def release(self) -> None:
        """Release the lease, if it is still ours."""
        with self._database.write() as connection:
            leases.release_name(connection, self._name, self._owner)


@contextmanager
def lock_source(
    database: Database, home: Path, source: str, clock: Clock, *, waits: bool = False
) -> Iterator[FileLock | LeaseLock]:
    """Lock a source for the length of the block; SourceBusyError if another process has it.

    One that `waits` does so for the lease of a process that has died.
    """
    with _locked(database, home, source, clock, waits=waits) as lock:
        try:
            yield lock
        finally:
            if lock.was_cancelled:
                _finish_cancels(database, source, clock)


def _finish_cancels(database: Database, source: str, clock: Clock) -> None:
    """Finish the commands that cancelled the run; another process may do so too."""
    with suppress(SQLAlchemyError, StoreError), database.write() as connection:
        finish_cancels(connection, source, clock.now())


@contextmanager
def _locked(
    database: Database, home: Path, source: str, clock: Clock, *, waits: bool
) -> Iterator[FileLock | LeaseLock]:
    if database.is_sqlite:
        path = home / "locks" / f"{_PREFIX}{source}.lock"
        with _locked_file(path, source):
            yield FileLock(database, source)
        return
    lease = LeaseLock(database, f"{_PREFIX}{source}", clock)
    lease.acquire(waits=waits)
    try:
        yield lease
    finally:
        with suppress(StoreError):  # it expires
            lease.release()


@asynccontextmanager
async def keep_lock(lock: SourceLock) -> AsyncIterator[None]:
    """Renew a lock for as long as the block lasts, also while nothing is written.

    If a command cancels the run, the block ends with CancelledError; `is_task_cancelled` tells this
    from a caller that cancels the task.
    """
    task = asyncio.current_task()
    assert task is not None
    renewal = asyncio.create_task(_renew_until_cancelled(lock, task))
    try:
        yield
    finally:
        if renewal.done():
            task.uncancel()
        renewal.cancel()


def is_task_cancelled() -> bool:
    """Whether a caller has cancelled this task, as opposed to a command that cancelled its run."""
    task = asyncio.current_task()
    return task is None or bool(task.cancelling())


async def _renew_until_cancelled(lock: SourceLock, task: asyncio.Task[object]) -> None:
    polls_per_renewal = int(RENEWAL_SECONDS / POLL_SECONDS)
    for poll in count(1):
        await asyncio.sleep(POLL_SECONDS)
        # A database that is unavailable comes back, or the next write fails; and a process that
        # lost the lease learns it from `confirm`, before that write.
        with suppress(LeaseLostError, SQLAlchemyError, StoreError):
            if poll % polls_per_renewal == 0:
                await asyncio.to_thread(lock.renew)
            if await asyncio.to_thread(lock.is_cancelled):
                task.cancel()
                return


@contextmanager
def _locked_file(path: Path, source: str) -> Iterator[None]:
    make_private_folder(path.parent)
    with open(path, "a", opener=private_opener) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SourceBusyError(f"{source} is being run by another process") from error
        yield

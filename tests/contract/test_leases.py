"""The promises of every kind of lease, on every database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol

import pytest
from sqlalchemy import Row
from tests.support.uploads.statistics import job, user

from fonds.runs import commands, locks
from fonds.sources.registry import SourceRegistry
from fonds.stores import leases
from fonds.stores.database import Database
from fonds.stores.documents import enqueue
from fonds.stores.tables import ingestion_embedding_queue as queue
from fonds.testing import FakeSource, ManualClock
from fonds.uploads import jobs, worker


class Claimant(Protocol):
    """Something that may be claimed by one owner at a time."""

    lease: timedelta

    def claim(self, owner: str) -> bool: ...

    def renew(self, owner: str) -> bool: ...

    def release(self, owner: str) -> None: ...


class Base:
    def __init__(self, database: Database, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock


class Queued(Base):
    """A row of a queue."""

    lease = leases.LEASE

    def __init__(self, database: Database, clock: ManualClock) -> None:
        super().__init__(database, clock)
        self.rows: dict[str, list[Row[tuple[object, ...]]]] = {}
        with database.write() as connection:
            rows = [{"record_id": "a", "input_sha": "one"}]
            enqueue(connection, queue, rows, clock.now())

    def claim(self, owner: str) -> bool:
        with self.database.write() as connection:
            rows = list(leases.claim(connection, queue, owner, self.clock.now(), 1))
        if rows:
            self.rows[owner] = rows
        return bool(rows)

    def renew(self, owner: str) -> bool:
        rows = self.rows.get(owner, [])
        with self.database.write() as connection:
            leases.renew(connection, queue, rows, owner, self.clock.now())
            (row,) = connection.execute(queue.select())
            return bool(row.lease_owner == owner)

    def release(self, owner: str) -> None:
        with self.database.write() as connection:
            leases.release(connection, queue, self.rows.get(owner, []), owner)


class Requested(Base):
    """A command."""

    lease = commands.LEASE

    def __init__(self, database: Database, clock: ManualClock) -> None:
        super().__init__(database, clock)
        registry = SourceRegistry()
        registry.register(FakeSource())
        with database.write() as connection:
            self.id = commands.submit(
                connection,
                "run",
                "fake",
                {},
                registry=registry,
                requested_by="maria",
                now=clock.now(),
            )

    def claim(self, owner: str) -> bool:
        with self.database.write() as connection:
            claimed = commands.claim(connection, owner, self.clock.now(), commands.KINDS)
        return claimed is not None

    def renew(self, owner: str) -> bool:
        with self.database.write() as connection:
            return commands.keep(connection, self.id, owner, self.clock.now())

    def release(self, owner: str) -> None:
        with self.database.write() as connection:
            commands.release(connection, self.id, owner)


class Uploaded(Base):
    """An upload."""

    lease = worker.LEASE

    def __init__(self, database: Database, clock: ManualClock) -> None:
        super().__init__(database, clock)
        self.job = job(database, user(database), made=clock.now(), moved=clock.now())
        self.claimed: dict[str, jobs.Job] = {}

    def claim(self, owner: str) -> bool:
        with self.database.write() as connection:
            claimed = jobs.claim(connection, owner, self.clock.now(), self.lease)
        if claimed is not None:
            self.claimed[owner] = claimed
            with self.database.read() as connection:
                assert jobs.job_of(connection, self.job.document_id) == claimed
        return claimed is not None

    def renew(self, owner: str) -> bool:
        job_ids = [self.job.job_id]
        with self.database.write() as connection:
            jobs.renew(connection, owner, job_ids, self.clock.now(), self.lease)
            stored = jobs.job_of(connection, self.job.document_id)
        return stored is not None and stored.lease_owner == owner

    def release(self, owner: str) -> None:
        with self.database.write() as connection:
            jobs.release(connection, self.claimed[owner])


class Named(Base):
    """The lock of a source."""

    lease = locks.LEASE

    def claim(self, owner: str) -> bool:
        now = self.clock.now()
        with self.database.write() as connection:
            return leases.claim_name(connection, "ingest-fake", owner, now, now + self.lease)

    def renew(self, owner: str) -> bool:
        until = self.clock.now() + self.lease
        with self.database.write() as connection:
            return leases.renew_name(connection, "ingest-fake", owner, until)

    def release(self, owner: str) -> None:
        with self.database.write() as connection:
            leases.release_name(connection, "ingest-fake", owner)


KINDS: Final[tuple[Callable[[Database, ManualClock], Claimant], ...]] = (
    Queued,
    Requested,
    Uploaded,
    Named,
)


@pytest.fixture(params=KINDS)
def item(request: pytest.FixtureRequest, database: Database, clock: ManualClock) -> Claimant:
    return request.param(database, clock)  # type: ignore[no-any-return]


def test_lease_belongs_to_one_owner_until_it_expires(item: Claimant, clock: ManualClock) -> None:
    assert item.claim("one")
    assert not item.claim("two")
    clock.move(seconds=item.lease.total_seconds())
    assert not item.claim("two")
    clock.move(seconds=1)
    assert item.claim("two")
    assert not item.claim("one")


def test_renewed_lease_lasts_as_long_as_a_new_one(item: Claimant, clock: ManualClock) -> None:
    assert item.claim("one")
    for _ in range(3):
        clock.move(seconds=item.lease.total_seconds() - 1)
        assert item.renew("one")
        assert not item.claim("two")
    clock.move(seconds=item.lease.total_seconds() + 1)
    assert item.claim("two")


def test_expired_lease_that_was_not_taken_over_can_be_renewed(
    item: Claimant, clock: ManualClock
) -> None:
    assert item.claim("one")
    clock.move(seconds=item.lease.total_seconds() * 3)
    assert item.renew("one")
    assert not item.claim("two")


def test_lease_that_was_taken_over_is_neither_renewed_nor_released_by_its_former_owner(
    item: Claimant, clock: ManualClock
) -> None:
    assert item.claim("one")
    clock.move(seconds=item.lease.total_seconds() + 1)
    assert item.claim("two")
    assert not item.renew("one")
    item.release("one")
    assert not item.claim("three")
    assert item.renew("two")


def test_released_lease_is_free_at_once(item: Claimant) -> None:
    for owner in ("one", "two", "three"):
        assert item.claim(owner)
        item.release(owner)

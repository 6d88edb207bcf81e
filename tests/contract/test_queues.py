"""What a queue promises, on every database."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from fonds.runs import commands
from fonds.stores import leases
from fonds.stores.database import Database
from fonds.stores.documents import enqueue
from fonds.stores.tables import ingestion_embedding_queue as queue
from fonds.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def put(database: Database, clock: ManualClock, *names: str, sha: str = "one") -> None:
    rows = [{"record_id": name, "input_sha": sha} for name in names]
    with database.write() as connection:
        enqueue(connection, queue, rows, clock.now())


def claim(database: Database, clock: ManualClock, owner: str, limit: int = 10) -> list[str]:
    with database.write() as connection:
        rows = leases.claim(connection, queue, owner, clock.now(), limit)
    return [row.record_id for row in rows]


def test_rows_are_handed_out_in_order_and_once(database: Database, clock: ManualClock) -> None:
    put(database, clock, "a", "b", "c")
    assert claim(database, clock, "one", 2) == ["a", "b"]
    assert claim(database, clock, "two") == ["c"]
    assert claim(database, clock, "three") == []


def test_claimers_at_the_same_time_never_share_a_row(
    database: Database, clock: ManualClock
) -> None:
    names = [f"{number:03}" for number in range(60)]
    put(database, clock, *names)

    def take(owner: int) -> list[str]:
        found: list[str] = []
        while mine := claim(database, clock, str(owner), 3):
            found += mine
        return found

    with ThreadPoolExecutor(4) as pool:
        taken = [name for mine in pool.map(take, range(4)) for name in mine]
    assert sorted(taken) == names


def test_expired_lease_is_taken_over(database: Database, clock: ManualClock) -> None:
    put(database, clock, "a")
    claim(database, clock, "dead")
    clock.move(seconds=61)
    assert claim(database, clock, "living") == ["a"]


def test_what_is_kept_stays_with_its_owner_however_long_it_takes(
    database: Database, clock: ManualClock
) -> None:
    put(database, clock, "a", "b")
    claim(database, clock, "one", 1)
    with leases.renewing(database, queue, "one", clock, every=0.01):
        for _ in range(3):
            clock.move(seconds=40)
            await_lease(database, clock)
    assert claim(database, clock, "two") == ["b"]
    clock.move(seconds=61)
    assert claim(database, clock, "two") == ["a", "b"]


def test_rows_of_a_dead_worker_are_free_when_its_command_is_taken_up() -> None:
    beat = commands.LEASE / 4
    assert commands.LEASE - beat > leases.LEASE


def await_lease(database: Database, clock: ManualClock) -> None:
    """Wait until the row of an owner is held for as long as a new one would be."""
    held = select(queue.c.lease_until).where(queue.c.lease_owner == "one")
    for _ in range(1000):
        with database.read() as connection:
            if connection.scalar(held) == clock.now() + leases.LEASE:
                return
        time.sleep(0.01)
    pytest.fail("the lease was not renewed")


def test_row_is_given_up_after_five_tries_and_shown(database: Database, clock: ManualClock) -> None:
    put(database, clock, "a", "b")
    for _ in range(leases.MAX_ATTEMPTS):
        assert "a" in claim(database, clock, "one")
        with database.write() as connection:
            for row in connection.execute(select(queue)).all():
                leases.fail(connection, queue, row, "no luck")
    assert claim(database, clock, "one") == []
    with database.read() as connection:
        assert leases.depth(connection, queue) == {"waiting": 0, "given_up": 2}
        assert set(connection.scalars(select(queue.c.last_error))) == {"no luck"}


def test_row_whose_input_changed_meanwhile_stays(database: Database, clock: ManualClock) -> None:
    put(database, clock, "a")
    with database.write() as connection:
        (row,) = leases.claim(connection, queue, "one", clock.now(), 1)
    put(database, clock, "a", sha="two")
    with database.write() as connection:
        assert not leases.finish(connection, queue, row)
    assert claim(database, clock, "two") == ["a"]


def test_finished_row_is_gone(database: Database, clock: ManualClock) -> None:
    put(database, clock, "a")
    with database.write() as connection:
        (row,) = leases.claim(connection, queue, "one", clock.now(), 1)
        assert leases.finish(connection, queue, row)
    with database.read() as connection:
        assert leases.depth(connection, queue) == {"waiting": 0, "given_up": 0}

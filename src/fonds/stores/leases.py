"""Queues of documents waiting for something expensive: claimed by lease, tried a few times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from threading import Event
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, func, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from fonds.seams import Clock
from fonds.stores.database import Database
from fonds.stores.sqlite import pieces

MAX_ATTEMPTS: Final = 5
LEASE: Final = timedelta(seconds=60)
"""Runs out before that of a command: whoever takes up a dead worker's finds its rows free."""
_BEAT: Final = LEASE.total_seconds() / 4


def claim(
    connection: Connection,
    queue: Table,
    owner: str,
    now: datetime,
    limit: int,
    *,
    untried_since: datetime | None = None,
) -> Sequence[Row[Any]]:
    """Take up to `limit` rows that nobody holds, and that were not tried since a moment.

    A try is counted when it begins, so a document that kills every worker is given up too.
    """
    table = queue.c
    free = or_(table.lease_until.is_(None), table.lease_until < now)
    if untried_since is not None:
        free &= or_(table.last_attempt_at.is_(None), table.last_attempt_at < untried_since)
    wanted = (
        select(queue)
        .where(table.attempts < MAX_ATTEMPTS, free)
        .order_by(table.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    rows = connection.execute(wanted).all()
    if rows:
        connection.execute(
            update(queue)
            .where(table.id.in_([row.id for row in rows]))
            .values(
                lease_owner=owner,
                lease_until=now + LEASE,
                attempts=table.attempts + 1,
                last_attempt_at=now,
            )
        )
    return rows


def finish(connection: Connection, queue: Table, row: Row[Any]) -> bool:
    """Remove a row whose work is done; False if its input has changed in the meantime."""
    same = (queue.c.id == row.id) & (queue.c.input_sha == row.input_sha)
    return connection.execute(delete(queue).where(same)).rowcount == 1


def fail(connection: Connection, queue: Table, row: Row[Any], cause: str) -> None:
    """Give a row back with the reason why it could not be done."""
    held = {"last_error": cause, "lease_owner": None, "lease_until": None}
    connection.execute(update(queue).where(queue.c.id == row.id).values(held))


def finish_all(connection: Connection, queue: Table, rows: Sequence[Row[Any]], owner: str) -> int:
    """Remove the rows whose work is done; says how many, for some may have been queued anew."""
    return sum(
        connection.execute(delete(queue).where(held)).rowcount for held in _held(queue, rows, owner)
    )


def fail_all(
    connection: Connection, queue: Table, causes: Mapping[Row[Any], str], owner: str
) -> None:
    """Give rows back, each with the reason why it could not be done."""
    for row, cause in causes.items():
        for held in _held(queue, [row], owner):
            back = {"last_error": cause, "lease_owner": None, "lease_until": None}
            connection.execute(update(queue).where(held).values(back))


def release(connection: Connection, queue: Table, rows: Sequence[Row[Any]], owner: str) -> None:
    """Give rows back as if they had not been taken: it was not their fault."""
    back = {"attempts": queue.c.attempts - 1, "lease_owner": None, "lease_until": None}
    for held in _held(queue, rows, owner):
        connection.execute(update(queue).where(held).values(back))


def renew(
    connection: Connection, queue: Table, rows: Sequence[Row[Any]], owner: str, now: datetime
) -> None:
    """Keep rows for another while."""
    for held in _held(queue, rows, owner):
        connection.execute(update(queue).where(held).values(lease_until=now + LEASE))


@contextmanager
def kept(
    database: Database, queue: Table, owner: str, clock: Clock, *, every: float = _BEAT
) -> Iterator[None]:
    """Renew all that an owner holds for as long as the block lasts, however long one row takes."""
    is_over = Event()

    def beat() -> None:
        while not is_over.wait(every):
            # A database that is away comes back; a row whose lease ran out is worked on twice.
            with suppress(SQLAlchemyError), database.write() as connection:
                ours = select(queue.c.id).where(queue.c.lease_owner == owner)
                held = queue.c.id.in_(ours.with_for_update(skip_locked=True))
                longer = {"lease_until": clock.now() + LEASE}
                connection.execute(update(queue).where(held).values(longer))

    with ThreadPoolExecutor(1, "fonds-lease") as thread:
        beating = thread.submit(beat)
        try:
            yield
        finally:
            is_over.set()
    beating.result()


def _held(queue: Table, rows: Sequence[Row[Any]], owner: str) -> Iterator[ColumnElement[bool]]:
    """Those rows that were neither queued anew nor taken by another since they were claimed.

    One that a loader is queueing anew at this moment is left out: waiting for it, while it waits
    for us, would end both.
    """
    for piece in pieces(row.id for row in rows):
        ours = select(queue.c.id).where(queue.c.id.in_(piece), queue.c.lease_owner == owner)
        yield queue.c.id.in_(ours.with_for_update(skip_locked=True))


def depth(connection: Connection, queue: Table) -> dict[str, int]:
    """How many wait, and how many have been given up."""
    given_up = queue.c.attempts >= MAX_ATTEMPTS
    counted = select(given_up, func.count()).group_by(given_up)
    found = {bool(row[0]): row[1] for row in connection.execute(counted)}
    return {"waiting": found.get(False, 0), "given_up": found.get(True, 0)}

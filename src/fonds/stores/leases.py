"""Leases in the database, and the queues of documents whose rows are claimed by lease.

A lease is the right of one process to work on something, stored in a row with the time at which it
expires. Its owner renews it; after that time another process may claim the row. Queues, commands,
uploads and the locks of sources all use these leases. The caller owns the transaction.

Locks on the shards of an index are of another kind, for a bucket has no transactions: they are
objects that are replaced only if their ETag has not changed (`fonds.shards.compiler.Locks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from threading import Event
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    bindparam,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.dml import ReturningUpdate

from fonds.errors import StoreError
from fonds.seams import Clock
from fonds.stores.database import Database, insert_ignoring
from fonds.stores.sqlite import batched
from fonds.stores.tables import ingestion_leases

Values = Mapping[str, Any]


class Leases:
    """The leases on the rows of a table.

    An expired lease remains with its owner until another process claims the row, so an owner that
    was only slow may still renew it.
    """

    def __init__(
        self,
        table: Table,
        *,
        key: str = "id",
        owner: str = "lease_owner",
        until: str = "lease_until",
    ) -> None:
        """Name the columns that identify a row, its owner and the end of its lease."""
        self._table = table
        self._key = table.c[key]
        self._owner = table.c[owner]
        self._until = table.c[until]

    def is_free(self, now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
        """True for rows without a lease and those whose lease has expired."""
        return or_(self._until.is_(None), self._until < now)

    def is_owned(self, owner: str, keys: Sequence[Any]) -> ColumnElement[bool]:
        """True for those of the rows that no other process has claimed since `owner` did."""
        return self._key.in_(keys) & (self._owner == owner)

    def claim(
        self,
        connection: Connection,
        owner: str,
        now: datetime,
        until: datetime,
        candidates: ColumnElement[bool],
        *,
        order_by: ColumnElement[Any],
        limit: int = 1,
        values: Values | None = None,
    ) -> Sequence[Row[Any]]:
        """Claim the first free candidates, and set other columns with the lease.

        Rows that another transaction is claiming are skipped. The rows returned are as they were
        before.
        """
        query = select(self._table).where(candidates, self.is_free(now))
        rows = connection.execute(_first(query, order_by, limit)).all()
        if rows:
            keys = [getattr(row, self._key.name) for row in rows]
            lease = {self._owner.name: owner, self._until.name: until}
            claimed = update(self._table).where(self._key.in_(keys))
            connection.execute(claimed.values({**lease, **(values or {})}))
        return rows

    def first_claim(
        self,
        candidates: ColumnElement[bool],
        *,
        order_by: ColumnElement[Any],
        values: Values | None = None,
    ) -> ReturningUpdate[Any]:
        """A statement that claims the first free candidate, and returns it as it is then.

        It takes the parameters `now`, `owner` and `until`. It is meant to be built once: that takes
        longer than the database takes to execute it.
        """
        is_free = self.is_free(bindparam("now", type_=self._until.type))
        query = _first(select(self._key).where(candidates, is_free), order_by, 1)
        lease = {
            self._owner.name: bindparam("owner"),
            self._until.name: bindparam("until", type_=self._until.type),
        }
        claimed = update(self._table).where(self._key == query.scalar_subquery())
        return claimed.values({**lease, **(values or {})}).returning(self._table)

    def renew(self, connection: Connection, rows: ColumnElement[bool], until: datetime) -> int:
        """Extend the leases on rows; returns how many were extended."""
        renewed = update(self._table).where(rows).values({self._until.name: until})
        return connection.execute(renewed).rowcount

    def release(
        self, connection: Connection, rows: ColumnElement[bool], values: Values | None = None
    ) -> None:
        """End the leases on rows, and set other columns with that."""
        no_lease = {self._owner.name: None, self._until.name: None}
        released = update(self._table).where(rows).values({**no_lease, **(values or {})})
        connection.execute(released)


def _first(query: Select[Any], order_by: ColumnElement[Any], limit: int) -> Select[Any]:
    return query.order_by(order_by).limit(limit).with_for_update(skip_locked=True)


# Names ------------------------------------------------------------------------------------

_NAMES: Final = Leases(ingestion_leases, key="name", owner="owner")


def claim_name(
    connection: Connection, name: str, owner: str, now: datetime, until: datetime
) -> bool:
    """Claim a name, such as that of a lock; False if another process has it.

    A name has a row only while it is claimed.
    """
    expired = (ingestion_leases.c.name == name) & _NAMES.is_free(now)
    connection.execute(delete(ingestion_leases).where(expired))
    row = {"name": name, "owner": owner, "lease_until": until}
    insert_ignoring(connection, ingestion_leases, [row])
    return renew_name(connection, name, owner, until)


@dataclass(frozen=True, slots=True)
class NameLease:
    """The lease on a name."""

    owner: str
    until: datetime


def lease_of(connection: Connection, name: str) -> NameLease | None:
    """The lease on a name, if there is one."""
    table = ingestion_leases.c
    query = select(table.owner, table.lease_until).where(table.name == name)
    row = connection.execute(query).one_or_none()
    return NameLease(row.owner, row.lease_until) if row else None


def renew_name(connection: Connection, name: str, owner: str, until: datetime) -> bool:
    """Extend the lease on a name; False if another process has it."""
    return _NAMES.renew(connection, _NAMES.is_owned(owner, [name]), until) == 1


def release_name(connection: Connection, name: str, owner: str) -> None:
    """End the lease on a name, unless another process has it."""
    connection.execute(delete(ingestion_leases).where(_NAMES.is_owned(owner, [name])))


# Queues -----------------------------------------------------------------------------------

MAX_ATTEMPTS: Final = 5
LEASE: Final = timedelta(seconds=40)
"""Shorter than the lease of a command: a process that takes over a command finds its rows free."""
_RENEWAL_SECONDS: Final = LEASE.total_seconds() / 4


def claim(
    connection: Connection,
    queue: Table,
    owner: str,
    now: datetime,
    limit: int,
    *,
    untried_since: datetime | None = None,
) -> Sequence[Row[Any]]:
    """Claim up to `limit` rows that have not been tried since a time.

    An attempt is counted when it begins, so that a document that kills every worker is given up
    too.
    """
    candidates = queue.c.attempts < MAX_ATTEMPTS
    if untried_since is not None:
        last = queue.c.last_attempt_at
        candidates &= or_(last.is_(None), last < untried_since)
    attempt = {"attempts": queue.c.attempts + 1, "last_attempt_at": now}
    return _leases(queue).claim(
        connection,
        owner,
        now,
        now + LEASE,
        candidates,
        order_by=queue.c.id,
        limit=limit,
        values=attempt,
    )


def finish(connection: Connection, queue: Table, row: Row[Any]) -> bool:
    """Remove a row whose work is done; False if its input has changed in the meantime."""
    same_input = (queue.c.id == row.id) & (queue.c.input_sha == row.input_sha)
    return connection.execute(delete(queue).where(same_input)).rowcount == 1


def fail(connection: Connection, queue: Table, row: Row[Any], reason: str) -> None:
    """Release a row with the reason why its work failed."""
    _leases(queue).release(connection, queue.c.id == row.id, {"last_error": reason})


def finish_all(connection: Connection, queue: Table, rows: Sequence[Row[Any]], owner: str) -> int:
    """Remove rows whose work is done, except those queued again meanwhile; returns how many."""
    return sum(
        connection.execute(delete(queue).where(owned)).rowcount
        for owned in _owned(queue, rows, owner)
    )


def fail_all(
    connection: Connection, queue: Table, reasons: Mapping[Row[Any], str], owner: str
) -> None:
    """Release rows, each with the reason why its work failed."""
    for row, reason in reasons.items():
        for owned in _owned(queue, [row], owner):
            _leases(queue).release(connection, owned, {"last_error": reason})


def release(connection: Connection, queue: Table, rows: Sequence[Row[Any]], owner: str) -> None:
    """Release rows that have not been tried after all, without counting the attempt."""
    for owned in _owned(queue, rows, owner):
        _leases(queue).release(connection, owned, {"attempts": queue.c.attempts - 1})


def renew(
    connection: Connection, queue: Table, rows: Sequence[Row[Any]], owner: str, now: datetime
) -> None:
    """Extend the leases on rows."""
    for owned in _owned(queue, rows, owner):
        _leases(queue).renew(connection, owned, now + LEASE)


@contextmanager
def renewing(
    database: Database, queue: Table, owner: str, clock: Clock, *, every: float = _RENEWAL_SECONDS
) -> Iterator[None]:
    """Renew all leases of an owner until the block ends, however long one row takes."""
    is_over = Event()

    def renew_all() -> None:
        while not is_over.wait(every):
            # If the database is unavailable for too long, the lease expires, and the row is
            # processed twice.
            with suppress(SQLAlchemyError, StoreError), database.write() as connection:
                owned = select(queue.c.id).where(queue.c.lease_owner == owner)
                unlocked = queue.c.id.in_(owned.with_for_update(skip_locked=True))
                _leases(queue).renew(connection, unlocked, clock.now() + LEASE)

    with ThreadPoolExecutor(1, "fonds-lease") as thread:
        renewals = thread.submit(renew_all)
        try:
            yield
        finally:
            is_over.set()
    renewals.result()


def depth(connection: Connection, queue: Table) -> dict[str, int]:
    """The numbers of rows that wait, and of those that have been given up."""
    given_up = queue.c.attempts >= MAX_ATTEMPTS
    query = select(given_up, func.count()).group_by(given_up)
    counts = {bool(row[0]): row[1] for row in connection.execute(query)}
    return {"waiting": counts.get(False, 0), "given_up": counts.get(True, 0)}


@cache
def _leases(queue: Table) -> Leases:
    return Leases(queue)


def _owned(queue: Table, rows: Sequence[Row[Any]], owner: str) -> Iterator[ColumnElement[bool]]:
    """Conditions for those rows that were neither queued again nor claimed since by others.

    A row that a loader is queueing again at this time is skipped: waiting for it, while it waits
    for this transaction, would be a deadlock.
    """
    for batch in batched(row.id for row in rows):
        owned = select(queue.c.id).where(_leases(queue).is_owned(owner, batch))
        yield queue.c.id.in_(owned.with_for_update(skip_locked=True))

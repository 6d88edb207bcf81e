"""Jobs as rows: made, claimed by lease, moved, postponed, failed. The caller owns the transaction.

A worker writes only while it owns the job's lease, and each statement that writes has that as a
condition. The database checks each move, and writes an event for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, Self
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    Select,
    Update,
    and_,
    bindparam,
    case,
    insert,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import ReturningUpdate

from fonds.context import Context
from fonds.errors import FondsError, LeaseLostError
from fonds.stores.columns import Timestamp
from fonds.stores.database import run
from fonds.stores.leases import Leases
from fonds.stores.tables import upload_errors, upload_events, upload_jobs
from fonds.uploads.states import WORKED_ON, JobStatus, failure_of, stage_of

RETRIES: Final = 3
FIRST_WAIT: Final = timedelta(seconds=3)
LONGEST_MESSAGE: Final = 2000

LEASES: Final = Leases(upload_jobs, key="job_id")

_job: Final = upload_jobs.c


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One upload on its way, as it was when it was read."""

    job_id: UUID
    user_id: UUID
    document_id: UUID
    status: JobStatus
    name: str
    """Of the file, as its user calls it."""
    format: str
    bytes: int
    raw_sha256: str
    raw_path: str
    parser: str
    submission: Mapping[str, Any] | None
    parsed_path: str | None
    parsed_sha256: str | None
    parsed_bytes: int | None
    parsed_by: str | None
    parsed_map: Mapping[str, Any] | None
    chunks_version: str
    embed_model: str | None
    embed_version: str | None
    progress: Mapping[str, int] | None
    retry_count: int
    next_attempt_at: datetime | None
    takeovers: int
    """How often its lease ran out at this stage."""
    reprocessed: int
    """How often it was sent back by a retry."""
    last_error: Mapping[str, Any] | None
    lease_owner: str | None
    """Who may write; None: whoever finds it where it stands."""
    arrived_at: datetime | None
    """None: the file has not come, or was not what was announced."""
    first_embedded_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def from_row(cls, row: Row[Any]) -> Self:
        """The job of a row that has all the columns."""
        values = row._asdict()
        told = {name: values[name] for name in KNOWN}
        return cls(**{**told, "status": JobStatus(told["status"])})


@dataclass(frozen=True, kw_only=True, slots=True)
class JobEvent:
    """One move of a job."""

    id: int
    from_status: str | None
    to_status: str
    at: datetime
    by: str
    why: str


KNOWN: Final = frozenset(field.name for field in fields(Job))
"""The columns of a job that are read with it."""
RESET_COUNTERS: Final[Mapping[str, Any]] = {
    "retry_count": 0,
    "next_attempt_at": None,
    "takeovers": 0,
}
"""Columns that every move resets: retries and lost leases are counted for each stage."""


# Reading ----------------------------------------------------------------------------------


def job_of(
    connection: Connection,
    document_id: UUID,
    *,
    user_id: UUID | None = None,
    to_write: bool = False,
) -> Job | None:
    """The job of a document; only if it is this user's, where one is named.

    One that is read `to_write` stays as it is until the transaction ends, and whoever works on it
    loses the lease when it is moved.
    """
    query = select(upload_jobs).where(_job.document_id == document_id)
    query = query if user_id is None else query.where(_job.user_id == user_id)
    row = connection.execute(query.with_for_update() if to_write else query).one_or_none()
    if row is None:
        return None
    job = Job.from_row(row)
    return replace(job, lease_owner=None) if to_write else job


def page_of_jobs(
    connection: Connection,
    *,
    user_id: UUID | None = None,
    statuses: Iterable[JobStatus] = (),
    before: tuple[datetime, UUID] | None = None,
    limit: int = 50,
) -> list[Job]:
    """Jobs without their maps, the newest first.

    `before` is when the last one seen was made, and its id.
    """
    columns: list[Any] = [column for column in _job if column.name != "parsed_map"]
    query: Select[Any] = select(*columns, null().label("parsed_map"))
    query = query.order_by(_job.created_at.desc(), _job.job_id.desc()).limit(limit)
    if user_id is not None:
        query = query.where(_job.user_id == user_id)
    if wanted := [status.value for status in statuses]:
        query = query.where(_job.status.in_(wanted))
    if before is not None:
        made, job_id = before
        earlier = and_(_job.created_at == made, _job.job_id < job_id)
        query = query.where(or_(_job.created_at < made, earlier))
    return [Job.from_row(row) for row in connection.execute(query)]


def events_of(connection: Connection, job_id: UUID, *, after: int = 0) -> list[JobEvent]:
    """The moves of a job in their order, those behind one only."""
    event = upload_events.c
    query = select(event.id, event.from_status, event.to_status, event.at, event.by, event.why)
    query = query.where(event.job_id == job_id, event.id > after).order_by(event.id)
    return [JobEvent(**row._asdict()) for row in connection.execute(query)]


# Claiming ---------------------------------------------------------------------------------


def can_be_claimed(now: datetime) -> ColumnElement[bool]:
    """True for jobs that are due and that no worker has claimed."""
    return _is_due(now) & LEASES.is_free(now)


def _is_due(now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    return and_(
        _job.status.in_([status.value for status in WORKED_ON]),
        or_(_job.next_attempt_at.is_(None), _job.next_attempt_at <= now),
    )


def claim(connection: Connection, owner: str, now: datetime, lease: timedelta) -> Job | None:
    """Claim the oldest job that is due and that no worker has claimed."""
    lease_of_owner = {"owner": owner, "now": now, "until": now + lease}
    row = connection.execute(_claim(), lease_of_owner).one_or_none()
    return Job.from_row(row) if row is not None else None


@cache
def _claim() -> ReturningUpdate[Any]:
    # A lease that was released leaves no owner behind; one that expired does.
    takeovers = _job.takeovers + case((_job.lease_owner.is_(None), 0), else_=1)
    return LEASES.first_claim(
        _is_due(bindparam("now", type_=Timestamp())),
        order_by=_job.created_at,
        values={"takeovers": takeovers},
    )


def renew(
    connection: Connection, owner: str, job_ids: Sequence[UUID], now: datetime, lease: timedelta
) -> None:
    """Keep the leases on jobs that are being worked on."""
    LEASES.renew(connection, LEASES.is_owned(owner, job_ids), now + lease)


def release(connection: Connection, job: Job) -> None:
    """Give a job back as it stands; it may be gone already."""
    assert job.lease_owner is not None
    LEASES.release(connection, LEASES.is_owned(job.lease_owner, [job.job_id]))


# Moving -----------------------------------------------------------------------------------


def create(connection: Connection, values: Mapping[str, Any], now: datetime) -> Job | None:
    """Make a job; None where another request made the one of this document a moment ago."""
    row = {**values, "created_at": now, "updated_at": now}
    try:
        with connection.begin_nested():
            made = connection.execute(insert(upload_jobs).values(row).returning(upload_jobs))
            return Job.from_row(made.one())
    except IntegrityError:
        return None


def move(
    connection: Connection,
    job: Job,
    *path: JobStatus,
    by: str,
    why: str,
    now: datetime,
    **columns: Any,
) -> Job:
    """Move a job along a path, in the transaction of the writes that justify it.

    LeaseLostError if it stands elsewhere by now, or another worker has it.
    """
    for status in path:
        given = columns if status is path[-1] else {}
        job = _write(
            connection,
            job,
            {
                "status": status.value,
                "moved_by": by,
                "moved_why": why,
                "updated_at": now,
                **RESET_COUNTERS,
                **given,
            },
        )
    return job


def keep(connection: Connection, job: Job, now: datetime, **columns: Any) -> Job:
    """Write what became of a job that stays where it is."""
    return _write(connection, job, {"updated_at": now, **columns})


def postpone(
    connection: Connection, job: Job, until: datetime, now: datetime, **columns: Any
) -> Job:
    """Let a job rest; whoever claims it then goes on."""
    rest = {"next_attempt_at": until, "lease_owner": None, "lease_until": None}
    return keep(connection, job, now, **rest, **columns)


def retry_later(connection: Connection, job: Job, error: FondsError, now: datetime) -> Job:
    """Note an error that may pass, and try again in 3, 6 and 12 seconds; then the job fails."""
    if job.retry_count >= RETRIES:
        return fail(connection, job, error, now, why=f"gave up after {RETRIES} retries")
    _note(connection, job, error, now, is_final=False)
    return postpone(
        connection,
        job,
        now + FIRST_WAIT * 2**job.retry_count,
        now,
        retry_count=job.retry_count + 1,
        last_error=_told(job, error, now),
    )


def fail(
    connection: Connection,
    job: Job,
    error: FondsError,
    now: datetime,
    *,
    why: str | None = None,
    by: str | None = None,
) -> Job:
    """End a job with a reason that its user can read."""
    _note(connection, job, error, now, is_final=True)
    told = _told(job, error, now)
    return move(
        connection,
        job,
        failure_of(job.status),
        by=by or job.lease_owner or "fonds",
        why=why or told["message"],
        now=now,
        last_error=told,
        lease_owner=None,
        lease_until=None,
    )


def _write(connection: Connection, job: Job, values: Mapping[str, Any]) -> Job:
    given = {f"new_{name}": value for name, value in values.items()}
    given |= {"of": job.job_id, "at_status": job.status.value}
    if job.lease_owner is not None:
        given["holder"] = job.lease_owner
    statement = _update(frozenset(values), is_held=job.lease_owner is not None)
    if run(connection, statement, given).rowcount != 1:
        raise LeaseLostError(f"job {job.job_id} has moved on; nothing was written")
    known = {name: value for name, value in values.items() if name in KNOWN}
    return replace(job, **{**known, "status": JobStatus(values.get("status", job.status))})


@cache
def _update(columns: frozenset[str], *, is_held: bool) -> Update:
    # Building the statement takes longer than the database takes to do it.
    same = and_(_job.job_id == bindparam("of"), _job.status == bindparam("at_status"))
    if is_held:
        same &= _job.lease_owner == bindparam("holder")
    values = {name: bindparam(f"new_{name}", type_=_job[name].type) for name in sorted(columns)}
    return update(upload_jobs).where(same).values(values)


def _note(
    connection: Connection, job: Job, error: FondsError, now: datetime, *, is_final: bool
) -> None:
    told = _told(job, error, now)
    row = {name: told[name] for name in ("stage", "type", "message")}
    connection.execute(
        insert(upload_errors).values(job_id=job.job_id, at=now, is_final=is_final, **row)
    )


def _told(job: Job, error: FondsError, now: datetime) -> dict[str, str]:
    return {
        "stage": stage_of(job.status),
        "type": type(error).__name__,
        "message": str(error).replace("\0", "\ufffd")[:LONGEST_MESSAGE],
        "at": now.isoformat(timespec="milliseconds"),
    }


@dataclass(kw_only=True)
class JobTransition:
    """Status changes of one claimed job, written in one transaction with what justifies them."""

    connection: Connection
    job: Job
    """As the transaction has it."""
    now: datetime

    def move(self, status: JobStatus, *, why: str, **columns: Any) -> None:
        """Move the job, and set columns with that; LeaseLostError if its lease was lost."""
        owner = self.job.lease_owner
        assert owner is not None
        self.job = move(
            self.connection, self.job, status, by=owner, why=why, now=self.now, **columns
        )

    def update(self, **columns: Any) -> None:
        """Set columns of the job without moving it."""
        self.job = keep(self.connection, self.job, self.now, **columns)

    def postpone(self, until: datetime, **columns: Any) -> None:
        """Release the job, which no worker claims before a time."""
        self.job = postpone(self.connection, self.job, until, self.now, **columns)


@contextmanager
def job_transition(context: Context, job: Job) -> Iterator[JobTransition]:
    """A transaction in which a claimed job moves."""
    with context.database.write() as connection:
        yield JobTransition(connection=connection, job=job, now=context.seams.clock.now())

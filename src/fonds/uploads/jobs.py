"""Upload jobs in the database: created, claimed by lease, moved, postponed, failed.

The caller owns the transaction.

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
from fonds.stores.tables import upload_deletions, upload_errors, upload_events, upload_jobs
from fonds.uploads.states import ACTIVE, JobStatus, failure_of, stage_of

MAX_RETRIES: Final = 3
FIRST_RETRY_WAIT: Final = timedelta(seconds=3)
MAX_MESSAGE_LENGTH: Final = 2000

LEASES: Final = Leases(upload_jobs, key="job_id")

_job: Final = upload_jobs.c


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """An upload job, as it was when it was read."""

    job_id: UUID
    user_id: UUID
    document_id: UUID
    status: JobStatus
    name: str
    """The name of the file, as its user gave it."""
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
    """The number of times that its lease expired at this stage."""
    reprocessed: int
    """The number of times that a retry sent it back."""
    last_error: Mapping[str, Any] | None
    lease_owner: str | None
    """The worker that may write to it; None: any process that finds it at this status."""
    arrived_at: datetime | None
    """None: the file has not arrived, or differs from the one announced."""
    first_embedded_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def from_row(cls, row: Row[Any]) -> Self:
        """The job of a row that has all the columns."""
        columns = row._asdict()
        values = {name: columns[name] for name in _FIELDS}
        return cls(**{**values, "status": JobStatus(values["status"])})


@dataclass(frozen=True, kw_only=True, slots=True)
class JobEvent:
    """One move of a job."""

    id: int
    from_status: str | None
    to_status: str
    at: datetime
    by: str
    why: str


_FIELDS: Final = frozenset(field.name for field in fields(Job))
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
    """The job of a document; with `user_id`, only if that user owns it.

    A job that is read `to_write` is locked until the transaction ends. The worker that has claimed
    it loses the lease when it is moved.
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

    `before` is the creation time and the id of the last job of the previous page.
    """
    columns: list[Any] = [column for column in _job if column.name != "parsed_map"]
    query: Select[Any] = select(*columns, null().label("parsed_map"))
    query = query.order_by(_job.created_at.desc(), _job.job_id.desc()).limit(limit)
    if user_id is not None:
        query = query.where(_job.user_id == user_id)
    if values := [status.value for status in statuses]:
        query = query.where(_job.status.in_(values))
    if before is not None:
        created_at, job_id = before
        earlier = and_(_job.created_at == created_at, _job.job_id < job_id)
        query = query.where(or_(_job.created_at < created_at, earlier))
    return [Job.from_row(row) for row in connection.execute(query)]


def events_of(connection: Connection, job_id: UUID, *, after: int = 0) -> list[JobEvent]:
    """The moves of a job in their order; only those after one, if given."""
    event = upload_events.c
    query = select(event.id, event.from_status, event.to_status, event.at, event.by, event.why)
    query = query.where(event.job_id == job_id, event.id > after).order_by(event.id)
    return [JobEvent(**row._asdict()) for row in connection.execute(query)]


def is_being_deleted(connection: Connection, document_id: UUID, now: datetime) -> bool:
    """True if a process is removing the files of a deleted upload; its row stays locked."""
    deletion = upload_deletions.c
    query = select(deletion.sweep_until).where(
        deletion.document_id == document_id, deletion.finished_at.is_(None)
    )
    ends = connection.scalars(query.order_by(deletion.job_id).with_for_update())
    return any(end is not None and end > now for end in ends)


# Claiming ---------------------------------------------------------------------------------


def can_be_claimed(now: datetime) -> ColumnElement[bool]:
    """True for jobs that are due and that no worker has claimed."""
    return _is_due(now) & LEASES.is_free(now)


def _is_due(now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    return and_(
        _job.status.in_([status.value for status in ACTIVE]),
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
    """Renew the leases on jobs that are being worked on."""
    LEASES.renew(connection, LEASES.is_owned(owner, job_ids), now + lease)


def release(connection: Connection, job: Job) -> None:
    """End the lease on a job, unless another worker has claimed it."""
    assert job.lease_owner is not None
    LEASES.release(connection, LEASES.is_owned(job.lease_owner, [job.job_id]))


# Moving -----------------------------------------------------------------------------------


def create(connection: Connection, values: Mapping[str, Any], now: datetime) -> Job | None:
    """Create a job; None if another request has just created the one of this document."""
    row = {**values, "created_at": now, "updated_at": now}
    try:
        with connection.begin_nested():
            created = connection.execute(insert(upload_jobs).values(row).returning(upload_jobs))
            return Job.from_row(created.one())
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

    LeaseLostError if its status has changed meanwhile, or another worker has claimed it.
    """
    for status in path:
        last = columns if status is path[-1] else {}
        job = _write(
            connection,
            job,
            {
                "status": status.value,
                "moved_by": by,
                "moved_why": why,
                "updated_at": now,
                **RESET_COUNTERS,
                **last,
            },
        )
    return job


def update_job(connection: Connection, job: Job, now: datetime, **columns: Any) -> Job:
    """Set columns of a job without moving it."""
    return _write(connection, job, {"updated_at": now, **columns})


def postpone(
    connection: Connection, job: Job, until: datetime, now: datetime, **columns: Any
) -> Job:
    """Release a job, which no worker claims before a time."""
    released = {"next_attempt_at": until, "lease_owner": None, "lease_until": None}
    return update_job(connection, job, now, **released, **columns)


def retry_later(connection: Connection, job: Job, error: FondsError, now: datetime) -> Job:
    """Record a transient error, and retry in 3, 6 and 12 seconds; then the job fails."""
    if job.retry_count >= MAX_RETRIES:
        return fail(connection, job, error, now, why=f"gave up after {MAX_RETRIES} retries")
    _record_error(connection, job, error, now, is_final=False)
    return postpone(
        connection,
        job,
        now + FIRST_RETRY_WAIT * 2**job.retry_count,
        now,
        retry_count=job.retry_count + 1,
        last_error=_error_details(job, error, now),
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
    """Fail a job with a reason that its user can read."""
    _record_error(connection, job, error, now, is_final=True)
    details = _error_details(job, error, now)
    return move(
        connection,
        job,
        failure_of(job.status),
        by=by or job.lease_owner or "fonds",
        why=why or details["message"],
        now=now,
        last_error=details,
        lease_owner=None,
        lease_until=None,
    )


def _write(connection: Connection, job: Job, values: Mapping[str, Any]) -> Job:
    params = {f"new_{name}": value for name, value in values.items()}
    params |= {"of": job.job_id, "at_status": job.status.value}
    if job.lease_owner is not None:
        params["owner"] = job.lease_owner
    statement = _update(frozenset(values), is_claimed=job.lease_owner is not None)
    if run(connection, statement, params).rowcount != 1:
        raise LeaseLostError(
            f"job {job.job_id} was moved or claimed by another process; nothing was written"
        )
    changed = {name: value for name, value in values.items() if name in _FIELDS}
    return replace(job, **{**changed, "status": JobStatus(values.get("status", job.status))})


@cache
def _update(columns: frozenset[str], *, is_claimed: bool) -> Update:
    # Building the statement takes longer than the database takes to execute it.
    same = and_(_job.job_id == bindparam("of"), _job.status == bindparam("at_status"))
    if is_claimed:
        same &= _job.lease_owner == bindparam("owner")
    values = {name: bindparam(f"new_{name}", type_=_job[name].type) for name in sorted(columns)}
    return update(upload_jobs).where(same).values(values)


def _record_error(
    connection: Connection, job: Job, error: FondsError, now: datetime, *, is_final: bool
) -> None:
    details = _error_details(job, error, now)
    row = {name: details[name] for name in ("stage", "type", "message")}
    connection.execute(
        insert(upload_errors).values(job_id=job.job_id, at=now, is_final=is_final, **row)
    )


def _error_details(job: Job, error: FondsError, now: datetime) -> dict[str, str]:
    return {
        "stage": stage_of(job.status),
        "type": type(error).__name__,
        "message": str(error).replace("\0", "\ufffd")[:MAX_MESSAGE_LENGTH],
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
        self.job = update_job(self.connection, self.job, self.now, **columns)

    def postpone(self, until: datetime, **columns: Any) -> None:
        """Release the job, which no worker claims before a time."""
        self.job = postpone(self.connection, self.job, until, self.now, **columns)


@contextmanager
def job_transition(context: Context, job: Job) -> Iterator[JobTransition]:
    """A transaction in which a claimed job moves."""
    with context.database.write() as connection:
        yield JobTransition(connection=connection, job=job, now=context.seams.clock.now())

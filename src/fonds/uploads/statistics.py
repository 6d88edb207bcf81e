"""Statistics of uploads, computed from the database, so that none depend on a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    case,
    cast,
    func,
    or_,
    select,
)

from fonds.stores.columns import Timestamp
from fonds.stores.tables import upload_errors, upload_jobs
from fonds.uploads.jobs import can_be_claimed
from fonds.uploads.states import ACTIVE, JobStatus, stage_of
from fonds.uploads.usage import Costs, Distribution, Storage, costs, distribution_columns, storage

SECONDS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
STAGES: Final = ("parse", "chunking", "embedding")

_job: Final = upload_jobs.c
_error: Final = upload_errors.c

_MILESTONES: Final = {
    "parse": _job.parsed_at,
    "chunk": _job.chunked_at,
    "first_embedding": _job.first_embedded_at,
    "complete": _job.completed_at,
}
_began: Final = func.coalesce(_job.arrived_at, _job.created_at)
_is_active: Final = _job.status.in_([status.value for status in ACTIVE])


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorCount:
    """The number of errors of one type at a stage."""

    stage: str
    type: str
    is_final: bool
    """Whether the jobs failed; else they were retried."""
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StageErrors:
    """The numbers of jobs that entered a stage, and of those with an error there."""

    stage: str
    entered: int
    with_error: int

    @property
    def rate(self) -> float:
        """0 if no job has entered."""
        return self.with_error / self.entered if self.entered else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingJob:
    """A job whose file has arrived and that has not ended."""

    job_id: UUID
    status: JobStatus
    seconds: float
    """Since its file arrived."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Queue:
    """The jobs that wait for a worker."""

    due: int
    """Jobs that a worker could claim."""
    lag: float
    """Seconds since the first of them could be claimed; 0 if there is none."""
    oldest: WaitingJob | None
    """The oldest one under way, claimed or not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reprocessing:
    """The number of jobs that did not succeed at the first attempt."""

    jobs: int
    repeated: int
    """Sent back after a failure, or retried after a transient error."""

    @property
    def rate(self) -> float:
        """0 if there is no job."""
        return self.repeated / self.jobs if self.jobs else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class UploadStatistics:
    """Statistics of all uploads."""

    jobs: Mapping[JobStatus, int]
    """By status; every one is a key."""
    durations: Mapping[str, Distribution]
    """Seconds from the arrival of files to their milestones: `parse`, `chunk`,
    `first_embedding`, `complete`."""
    errors: tuple[ErrorCount, ...]
    stages: tuple[StageErrors, ...]
    queue: Queue
    reprocessing: Reprocessing
    costs: Costs
    storage: Storage


def upload_statistics(connection: Connection, now: datetime) -> UploadStatistics:
    """The statistics of all uploads at a time."""
    # PostgreSQL shows each statement what was committed meanwhile. Jobs only ever enter more
    # stages, so with errors read first no stage has more jobs with errors than jobs.
    errors, jobs_with_error = _errors(connection), _jobs_with_error(connection)
    jobs = _jobs(connection)
    return UploadStatistics(
        jobs=jobs,
        durations=_durations(connection),
        errors=errors,
        stages=tuple(
            StageErrors(
                stage=stage,
                entered=_entered(stage, jobs),
                with_error=jobs_with_error.get(stage, 0),
            )
            for stage in STAGES
        ),
        queue=Queue(**_due(connection, now), oldest=_oldest(connection, now)),
        reprocessing=_reprocessing(connection),
        costs=costs(connection),
        storage=storage(connection),
    )


# Jobs and their errors --------------------------------------------------------------------


def _jobs(connection: Connection) -> dict[JobStatus, int]:
    query = select(_job.status, func.count()).group_by(_job.status)
    counted: dict[str, int] = dict(connection.execute(query).all())
    return {status: counted.get(status.value, 0) for status in JobStatus}


def _errors(connection: Connection) -> tuple[ErrorCount, ...]:
    key = (_error.stage, _error.type, _error.is_final)
    query = select(*key, func.count()).group_by(*key)
    counts = (
        ErrorCount(stage=stage, type=kind, is_final=is_final, count=count)
        for stage, kind, is_final, count in connection.execute(query)
    )
    return tuple(sorted(counts, key=lambda count: (count.stage, count.type, count.is_final)))


def _jobs_with_error(connection: Connection) -> dict[str, int]:
    query = select(_error.stage, func.count(_error.job_id.distinct())).group_by(_error.stage)
    return dict(connection.execute(query).all())


def _entered(stage: str, jobs: Mapping[JobStatus, int]) -> int:
    """Count by status: since no retry leads to an earlier stage, it tells which were entered."""
    first = STAGES.index(stage)
    return sum(
        count
        for status, count in jobs.items()
        if status is JobStatus.COMPLETE or STAGES.index(stage_of(status)) >= first
    )


def _reprocessing(connection: Connection) -> Reprocessing:
    retried = select(_error.job_id).where(~_error.is_final)
    repeated = or_(_job.reprocessed > 0, _job.job_id.in_(retried))
    query = select(func.count(), func.count(case((repeated, 1)))).select_from(upload_jobs)
    jobs, again = connection.execute(query).one()
    return Reprocessing(jobs=jobs, repeated=again)


# Times ------------------------------------------------------------------------------------


def _durations(connection: Connection) -> dict[str, Distribution]:
    times = {name: _milliseconds(connection, reached) for name, reached in _MILESTONES.items()}
    spans = select(*(span.label(name) for name, span in times.items())).cte("spans")
    # SQLite would compute a span again wherever it is compared.
    spans = spans.prefix_with("MATERIALIZED")
    columns = (
        column for span in spans.c for column in distribution_columns(span, SECONDS, unit=1000)
    )
    values = iter(connection.execute(select(*columns)).one())
    return {name: Distribution.read(values, SECONDS, unit=1000) for name in times}


def _milliseconds(connection: Connection, reached: ColumnElement[Any]) -> ColumnElement[int]:
    """A span as a whole number, so that sums are exact; 0 if clocks disagree on the order."""
    exact: ColumnElement[int]
    if connection.dialect.name == "sqlite":
        days = func.julianday(reached) - func.julianday(_began)
        exact = cast(func.round(days * 86_400_000), Integer)
    else:
        seconds = func.date_part("epoch", reached.op("-")(_began))
        exact = cast(func.round(seconds * 1000), BigInteger)
    return case((exact < 0, 0), else_=exact)


def _due(connection: Connection, now: datetime) -> dict[str, Any]:
    """The number of jobs that a worker could claim, and how long the first has waited."""
    times = (
        _job.updated_at,
        func.coalesce(_job.next_attempt_at, _job.updated_at),
        func.coalesce(_job.lease_until, _job.updated_at),
    )
    on_sqlite = connection.dialect.name == "sqlite"
    since = func.max(*times) if on_sqlite else func.greatest(*times)
    query = select(func.count(), func.min(since, type_=Timestamp()))
    count, first = connection.execute(query.where(can_be_claimed(now))).one()
    return {"due": count, "lag": 0.0 if first is None else _age(first, now)}


def _oldest(connection: Connection, now: datetime) -> WaitingJob | None:
    query = select(_job.job_id, _job.status, _began.label("began")).where(_is_active)
    row = connection.execute(query.order_by(_began, _job.job_id).limit(1)).one_or_none()
    if row is None:
        return None
    return WaitingJob(job_id=row.job_id, status=JobStatus(row.status), seconds=_age(row.began, now))


def _age(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since) / timedelta(seconds=1))

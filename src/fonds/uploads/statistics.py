"""Figures of uploads, computed from rows: any process can tell them, and none is lost with one."""

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
from fonds.uploads.states import WORKED_ON, JobStatus, stage_of
from fonds.uploads.usage import Costs, Distribution, Storage, costs, spread, storage

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
_under_way: Final = _job.status.in_([status.value for status in WORKED_ON])


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorCount:
    """How often one type of error was noted at a stage."""

    stage: str
    type: str
    is_final: bool
    """Whether jobs failed by it; after the others they were tried again."""
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StageErrors:
    """How many of the jobs that came to a stage met an error there."""

    stage: str
    entered: int
    met: int

    @property
    def rate(self) -> float:
        """0 where no job has come."""
        return self.met / self.entered if self.entered else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingJob:
    """A job whose file has come and that has not ended."""

    job_id: UUID
    status: JobStatus
    seconds: float
    """Since its file came."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Queue:
    """What waits for a worker."""

    due: int
    """Jobs that a worker could take."""
    lag: float
    """Seconds since the first of them could be taken; 0 where there is none."""
    longest: WaitingJob | None
    """The oldest one under way, whoever has it and whatever it waits for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reprocessing:
    """How many jobs did not come through at the first try."""

    jobs: int
    repeated: int
    """Sent back after a failure, or tried again after an error that may pass."""

    @property
    def rate(self) -> float:
        """0 where there is no job."""
        return self.repeated / self.jobs if self.jobs else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class UploadFigures:
    """How uploads are doing."""

    jobs: Mapping[JobStatus, int]
    """By every status there is."""
    durations: Mapping[str, Distribution]
    """Seconds from the arrival of files to their milestones: `parse`, `chunk`,
    `first_embedding`, `complete`."""
    errors: tuple[ErrorCount, ...]
    stages: tuple[StageErrors, ...]
    queue: Queue
    reprocessing: Reprocessing
    costs: Costs
    storage: Storage


def figures(connection: Connection, now: datetime) -> UploadFigures:
    """How uploads are doing, as the database has it."""
    # PostgreSQL shows each statement what was committed meanwhile. Jobs only ever come to more
    # stages, so with errors read first no stage has more jobs with errors than jobs.
    errors, met = _errors(connection), _met(connection)
    jobs = _jobs(connection)
    return UploadFigures(
        jobs=jobs,
        durations=_durations(connection),
        errors=errors,
        stages=tuple(
            StageErrors(stage=stage, entered=_entered(stage, jobs), met=met.get(stage, 0))
            for stage in STAGES
        ),
        queue=Queue(**_due(connection, now), longest=_longest(connection, now)),
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
    found = (
        ErrorCount(stage=stage, type=kind, is_final=is_final, count=count)
        for stage, kind, is_final, count in connection.execute(query)
    )
    return tuple(sorted(found, key=lambda one: (one.stage, one.type, one.is_final)))


def _met(connection: Connection) -> dict[str, int]:
    query = select(_error.stage, func.count(_error.job_id.distinct())).group_by(_error.stage)
    return dict(connection.execute(query).all())


def _entered(stage: str, jobs: Mapping[JobStatus, int]) -> int:
    """No retry leads back to an earlier stage: where a job stands tells which ones it has seen."""
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
    took = {name: _milliseconds(connection, reached) for name, reached in _MILESTONES.items()}
    spans = select(*(span.label(name) for name, span in took.items())).cte("spans")
    # SQLite would compute a span anew wherever it is compared.
    spans = spans.prefix_with("MATERIALIZED")
    columns = (column for span in spans.c for column in spread(span, SECONDS, unit=1000))
    values = iter(connection.execute(select(*columns)).one())
    return {name: Distribution.read(values, SECONDS, unit=1000) for name in took}


def _milliseconds(connection: Connection, reached: ColumnElement[Any]) -> ColumnElement[int]:
    """A span as a whole number, so that sums are exact; 0 where clocks disagree on the order."""
    exact: ColumnElement[int]
    if connection.dialect.name == "sqlite":
        days = func.julianday(reached) - func.julianday(_began)
        exact = cast(func.round(days * 86_400_000), Integer)
    else:
        seconds = func.date_part("epoch", reached.op("-")(_began))
        exact = cast(func.round(seconds * 1000), BigInteger)
    return case((exact < 0, 0), else_=exact)


def _due(connection: Connection, now: datetime) -> dict[str, Any]:
    """How many jobs a worker could take, and how long the first of them has waited for one."""
    moments = (
        _job.updated_at,
        func.coalesce(_job.next_attempt_at, _job.updated_at),
        func.coalesce(_job.lease_until, _job.updated_at),
    )
    on_sqlite = connection.dialect.name == "sqlite"
    since = func.max(*moments) if on_sqlite else func.greatest(*moments)
    query = select(func.count(), func.min(since, type_=Timestamp()))
    count, first = connection.execute(query.where(can_be_claimed(now))).one()
    return {"due": count, "lag": 0.0 if first is None else _age(first, now)}


def _longest(connection: Connection, now: datetime) -> WaitingJob | None:
    query = select(_job.job_id, _job.status, _began.label("began")).where(_under_way)
    row = connection.execute(query.order_by(_began, _job.job_id).limit(1)).one_or_none()
    if row is None:
        return None
    return WaitingJob(job_id=row.job_id, status=JobStatus(row.status), seconds=_age(row.began, now))


def _age(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since) / timedelta(seconds=1))

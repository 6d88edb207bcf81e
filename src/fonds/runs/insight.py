"""What operators look at: sources, runs, tasks, errors and logs, each page in a few questions.

The caller owns the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final, Self
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Date, Row, Text, cast, func, select

from fonds.runs.overview import SourceOverview, latest_runs, overview_of
from fonds.runs.schedule import TIME_ZONE
from fonds.runs.state import Counts, RunStatus
from fonds.sources.base import Registered
from fonds.stores.tables import (
    ingestion_logs,
    ingestion_runs,
    ingestion_source_state,
    ingestion_stages,
    ingestion_tasks,
)

STRIP: Final = 30
"""The last runs of each source that are shown side by side."""
YIELD_DAYS: Final = 90
EXAMPLES: Final = 3
"""Of each cause of errors."""
MOST_CAUSES: Final = 50

_run: Final = ingestion_runs.c
_task: Final = ingestion_tasks.c
_log: Final = ingestion_logs.c
_stage: Final = ingestion_stages.c


@dataclass(frozen=True, kw_only=True, slots=True)
class RunInsight:
    """A run: what it was asked for, and what it has done so far."""

    id: UUID
    source: str
    mode: str
    status: RunStatus
    started_at: datetime
    finished_at: datetime | None
    counts: Counts
    config: Mapping[str, Any]
    """What it was asked for."""
    error_summary: str | None

    @classmethod
    def from_row(cls, row: Row[Any]) -> Self:
        """The run of a whole row."""
        counts = {entry.name: getattr(row, f"{entry.name}_count") for entry in fields(Counts)}
        return cls(
            id=row.id,
            source=row.source,
            mode=row.mode,
            status=RunStatus(row.status),
            started_at=row.started_at,
            finished_at=row.finished_at,
            counts=Counts(**counts),
            config=row.config,
            error_summary=row.error_summary,
        )

    def seconds(self, now: datetime) -> float:
        """How long it took, or has taken until now."""
        return max(0.0, ((self.finished_at or now) - self.started_at).total_seconds())


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceInsight:
    """A source with what a page about all of them shows."""

    name: str
    title: str
    organisation: str
    schedule: str | None
    """Cron expression in America/New_York; None: only when asked."""
    overview: SourceOverview
    seconds_since_success: float | None
    running: UUID | None
    """The run that is going on."""
    strip: tuple[RunInsight, ...]
    """The last runs, oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DayYield:
    """What the runs of one day brought."""

    day: str
    runs: int
    inserted: int
    updated: int
    errors: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceDetail:
    """One source: what it is, where it stands, and what it brought lately."""

    insight: SourceInsight
    version: str
    depends_on: tuple[str, ...]
    tables: tuple[str, ...]
    options: tuple[str, ...]
    """Ranges that a backfill of it understands, beside days."""
    key_setting: str | None
    """Where the key for its upstream is set, if it takes one."""
    time_zone: str
    """Of its schedule."""
    last_seen_key: str | None
    custom: Mapping[str, Any]
    """What the source remembers from run to run."""
    days: tuple[DayYield, ...]
    """Of the last ninety days, those with a run; oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StageInsight:
    """What one stage of a run took."""

    stage: str
    began_at: datetime
    ended_at: datetime
    items: int
    seconds: float
    waited_seconds: float
    """Of them, for a host's rate limit."""
    retries: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorExample:
    """A task that failed."""

    task_key: str
    error: str | None
    attempts: int
    is_open: bool
    """Whether no later run has made it good."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorGroup:
    """Failures of one cause at one stage."""

    stage: str | None
    type: str | None
    count: int
    examples: tuple[ErrorExample, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunDetail:
    """One run: its stages, and how many of its tasks stand where."""

    run: RunInsight
    stages: tuple[StageInsight, ...]
    tasks: Mapping[str, int]
    """By how far they came: `loaded`, `errored`."""
    errors: tuple[ErrorGroup, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskInsight:
    """One task of a run."""

    id: int
    task_key: str
    stage: str
    started_at: datetime
    finished_at: datetime | None
    error: str | None
    error_type: str | None
    error_stage: str | None
    attempts: int
    resolved_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    """One line of a run's log."""

    id: int
    logged_at: datetime
    level: str
    message: str
    context: Mapping[str, Any] | None


# Sources ----------------------------------------------------------------------------------


def sources_at_a_glance(
    connection: Connection, sources: Sequence[Registered], now: datetime
) -> list[SourceInsight]:
    """All the given sources, each with its last runs."""
    names = [source.info.name for source in sources]
    strips: dict[str, list[RunInsight]] = {name: [] for name in names}
    for row in reversed(latest_runs(connection, names, STRIP)):
        strips[row.source].append(RunInsight.from_row(row))
    glances = overview_of(connection, sources, now)
    return [
        _insight(source, glance, strips[source.info.name], now)
        for source, glance in zip(sources, glances, strict=True)
    ]


def source_detail(connection: Connection, source: Registered, now: datetime) -> SourceDetail:
    """One source in detail."""
    info, state = source.info, ingestion_source_state
    (insight,) = sources_at_a_glance(connection, [source], now)
    custom = connection.scalar(select(state.c.custom).where(state.c.source == info.name))
    return SourceDetail(
        insight=insight,
        version=info.version,
        depends_on=info.depends_on,
        tables=tuple(table.name for table in info.tables),
        options=info.options,
        key_setting=info.key.setting if info.key else None,
        time_zone=TIME_ZONE.key,
        last_seen_key=insight.overview.last_seen_key,
        custom=custom or {},
        days=_days(connection, info.name, now - timedelta(days=YIELD_DAYS)),
    )


def _insight(
    source: Registered, glance: SourceOverview, strip: list[RunInsight], now: datetime
) -> SourceInsight:
    success = glance.last_success_at
    return SourceInsight(
        name=source.info.name,
        title=source.info.title,
        organisation=source.info.organisation,
        schedule=source.info.schedule,
        overview=glance,
        seconds_since_success=None if success is None else (now - success).total_seconds(),
        running=next((run.id for run in strip if run.status is RunStatus.RUNNING), None),
        strip=tuple(strip),
    )


def _days(connection: Connection, source: str, since: datetime) -> tuple[DayYield, ...]:
    day = _day(connection).label("day")
    sums = (_run.inserted_count, _run.updated_count, _run.error_count)
    query = select(day, func.count(), *(func.sum(each) for each in sums))
    query = query.where(_run.source == source, _run.started_at >= since)
    return tuple(
        DayYield(day=each, runs=runs, inserted=inserted, updated=updated, errors=errors)
        for each, runs, inserted, updated, errors in connection.execute(
            query.group_by(day).order_by(day)
        )
    )


def _day(connection: Connection) -> ColumnElement[str]:
    if connection.dialect.name == "sqlite":
        return func.substr(cast(_run.started_at, Text), 1, 10)
    return cast(cast(func.timezone("UTC", _run.started_at), Date), Text)


# Runs -------------------------------------------------------------------------------------


def runs(
    connection: Connection,
    *,
    limit: int,
    source: str | None = None,
    status: RunStatus | None = None,
    before: tuple[datetime, UUID] | None = None,
) -> list[RunInsight]:
    """Runs, the newest first; those before a moment and an id, of a source, or of a status."""
    query = select(ingestion_runs).order_by(_run.started_at.desc(), _run.id.desc()).limit(limit)
    if source is not None:
        query = query.where(_run.source == source)
    if status is not None:
        query = query.where(_run.status == status)
    if before is not None:
        moment, run_id = before
        earlier = (_run.started_at == moment) & (_run.id < run_id)
        query = query.where((_run.started_at < moment) | earlier)
    return [RunInsight.from_row(row) for row in connection.execute(query)]


def run_of(connection: Connection, run_id: UUID) -> RunInsight | None:
    """The run of an id."""
    row = connection.execute(select(ingestion_runs).where(_run.id == run_id)).one_or_none()
    return None if row is None else RunInsight.from_row(row)


def run_detail(connection: Connection, run: RunInsight) -> RunDetail:
    """One run in detail."""
    counted = select(_task.stage, func.count()).where(_task.run_id == run.id)
    stages = select(ingestion_stages).where(_stage.run_id == run.id)
    tasks = connection.execute(counted.group_by(_task.stage)).all()
    return RunDetail(
        run=run,
        stages=tuple(
            StageInsight(
                **{name: value for name, value in row._asdict().items() if name != "run_id"}
            )
            for row in connection.execute(stages.order_by(_stage.began_at, _stage.stage))
        ),
        tasks={row[0]: row[1] for row in tasks},
        errors=tuple(error_groups(connection, run.id)),
    )


def error_groups(connection: Connection, run_id: UUID) -> list[ErrorGroup]:
    """What failed in a run, by cause and stage, the most frequent first, with some of each."""
    return _grouped(connection, _task.run_id == run_id)


def standing_groups(connection: Connection, source: str) -> list[ErrorGroup]:
    """The same, of what failed in a source and no later run has made good."""
    return _grouped(connection, (_task.source == source) & _task.resolved_at.is_(None))


def _grouped(connection: Connection, which: ColumnElement[bool]) -> list[ErrorGroup]:
    cause = (_task.error_stage, _task.error_type)
    failed = which & (_task.stage == "errored")
    many = func.count().label("many")
    query = select(*cause, many).where(failed).group_by(*cause).order_by(many.desc(), *cause)
    number = func.row_number().over(partition_by=cause, order_by=_task.id).label("number")
    numbered = select(
        *cause, _task.task_key, _task.error, _task.attempts, _task.resolved_at, number
    )
    some = numbered.where(failed).subquery()
    shown = select(some).where(some.c.number <= EXAMPLES).order_by(some.c.number)
    examples: dict[tuple[str | None, str | None], list[ErrorExample]] = {}
    for row in connection.execute(shown):
        examples.setdefault((row.error_stage, row.error_type), []).append(
            ErrorExample(
                task_key=row.task_key,
                error=row.error,
                attempts=row.attempts,
                is_open=row.resolved_at is None,
            )
        )
    return [
        ErrorGroup(
            stage=row.error_stage,
            type=row.error_type,
            count=row.many,
            examples=tuple(examples.get((row.error_stage, row.error_type), ())),
        )
        for row in connection.execute(query.limit(MOST_CAUSES))
    ]


def tasks(
    connection: Connection, run_id: UUID, *, limit: int, stage: str | None = None, after: int = 0
) -> list[TaskInsight]:
    """Tasks of a run in the order they were settled; those behind an id, or that came so far."""
    columns = [_task[entry.name] for entry in fields(TaskInsight)]
    query = select(*columns).where(_task.run_id == run_id, _task.id > after)
    if stage is not None:
        query = query.where(_task.stage == stage)
    found = connection.execute(query.order_by(_task.id).limit(limit))
    return [TaskInsight(**row._asdict()) for row in found]


def logs(
    connection: Connection, run_id: UUID, *, limit: int, level: str | None = None, after: int = 0
) -> list[LogLine]:
    """Lines of a run's log, oldest first; those behind an id, to follow it, or of a level."""
    columns = [_log[entry.name] for entry in fields(LogLine)]
    query = select(*columns).where(_log.run_id == run_id, _log.id > after)
    if level is not None:
        query = query.where(_log.level == level)
    found = connection.execute(query.order_by(_log.id).limit(limit))
    return [LogLine(**row._asdict()) for row in found]

"""How the sources stand, for people: last runs, counts, what failed, what comes next.

What operators look at: sources, runs, tasks, errors and logs, each page in a few questions.

The caller owns the transaction.

What is held of each source, told without counting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final, Self
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Date,
    Row,
    Select,
    Text,
    cast,
    func,
    select,
    union_all,
)

from fonds.errors import UsageError
from fonds.model import Counts
from fonds.runs.schedule import TIME_ZONE, next_run
from fonds.runs.state import RunReport, RunStatus
from fonds.sources.base import Registered
from fonds.sources.registry import SourceRegistry
from fonds.stores.database import Database
from fonds.stores.documents import visible_to
from fonds.stores.sqlite import batched
from fonds.stores.tables import (
    documents,
    ingestion_logs,
    ingestion_runs,
    ingestion_source_state,
    ingestion_stages,
    ingestion_tasks,
)

SOURCES_AT_ONCE: Final = 100
"""Whose runs one statement asks for; SQLite takes five hundred parts at most."""
REMEMBERED: Final = timedelta(days=90)
"""How far back a failure is looked for; of a source without any, all runs are gone through."""

_run: Final = ingestion_runs.c
_fell_short: Final = _run.status.in_([RunStatus.PARTIAL, RunStatus.FAILED])
_wrote: Final = _run.inserted_count + _run.updated_count + _run.gone_count > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceOverview:
    """One source at a glance."""

    source: str
    documents: int
    gone: int
    last_status: str | None
    last_run_at: datetime | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    """When a run of it last ended short of what it was asked for, within ninety days."""
    last_change_at: datetime | None
    """When a run last wrote a document of it."""
    last_seen_key: str | None
    open_errors: int
    next_run_at: datetime | None


def overview(
    database: Database, sources: Iterable[Registered], now: datetime
) -> list[SourceOverview]:
    """All the given sources at a glance; as many questions for all as for one."""
    with database.read() as connection:
        return overview_of(connection, list(sources), now)


def overview_of(
    connection: Connection, sources: Sequence[Registered], now: datetime
) -> list[SourceOverview]:
    """The same, for whoever has a transaction."""
    names = [source.info.name for source in sources]
    held, gone = _held(connection, names)
    states, errors = _states(connection, names), _open_errors(connection, names)
    statuses = {row.source: row.status for row in latest_runs(connection, names, 1)}
    lately = _fell_short & (_run.started_at >= now - REMEMBERED)
    failed = {row.source: row.finished_at for row in latest_runs(connection, names, 1, lately)}
    wrote = {row.source: row for row in latest_runs(connection, names, 1, _wrote)}
    return [
        SourceOverview(
            source=name,
            documents=held.get(name, 0),
            gone=gone.get(name, 0),
            last_status=statuses.get(name),
            last_run_at=states[name].last_run_at if name in states else None,
            last_success_at=states[name].last_success_at if name in states else None,
            last_failure_at=failed.get(name),
            last_change_at=_ended(wrote.get(name)),
            last_seen_key=states[name].last_seen_key if name in states else None,
            open_errors=errors.get(name, 0),
            next_run_at=next_run(source.info, now),
        )
        for name, source in zip(names, sources, strict=True)
    ]


def latest_runs(
    connection: Connection,
    sources: Sequence[str],
    each: int,
    which: ColumnElement[bool] | None = None,
) -> list[Row[Any]]:
    """The latest runs of each source, newest first; read by the index, however many there are."""
    found: list[Row[Any]] = []
    for names in batched(sources, SOURCES_AT_ONCE):
        parts = [_latest(name, each, which) for name in names]
        found += connection.execute(union_all(*parts)).all() if parts else []
    return sorted(found, key=lambda row: row.started_at, reverse=True)


def last_report(database: Database, source: str) -> RunReport:
    """What came of the last run of a source, as its row tells."""
    with database.read() as connection:
        (row,) = latest_runs(connection, [source], 1)
    counts = {entry.name: getattr(row, f"{entry.name}_count") for entry in fields(Counts)}
    ended = row.finished_at or row.started_at
    return RunReport(
        run_id=row.id,
        source=source,
        status=RunStatus(row.status),
        counts=Counts(**counts),
        seconds=(ended - row.started_at).total_seconds(),
        error_summary=row.error_summary,
    )


def recent_runs(database: Database, source: str, limit: int) -> list[dict[str, Any]]:
    """The latest runs of a source, newest first."""
    table = ingestion_runs
    query = select(table).where(table.c.source == source).order_by(table.c.started_at.desc())
    return _rows(database, query.limit(limit))


def standing_errors(database: Database, source: str) -> list[dict[str, Any]]:
    """Failures that no later run has made good."""
    table = ingestion_tasks.c
    query = (
        select(
            table.task_key,
            table.error_stage,
            table.error_type,
            table.error,
            table.attempts,
            table.finished_at,
        )
        .where(table.source == source, table.stage == "errored", table.resolved_at.is_(None))
        .order_by(table.id)
    )
    return _rows(database, query)


def run_logs(database: Database, run: str, limit: int) -> list[dict[str, Any]]:
    """The last lines of a run's log, oldest first; a run is named by the start of its id."""
    with database.read() as connection:
        run_id = _run_id(connection, run)
    return _last_lines(database, ingestion_logs.c.run_id == run_id, limit)


def source_logs(database: Database, source: str, limit: int) -> list[dict[str, Any]]:
    """The last log lines of all runs of a source, oldest first."""
    return _last_lines(database, ingestion_runs.c.source == source, limit)


def _last_lines(database: Database, wanted: Any, limit: int) -> list[dict[str, Any]]:
    table = ingestion_logs.c
    query = (
        select(table.run_id, table.logged_at, table.level, table.message, table.context)
        .join(ingestion_runs, ingestion_runs.c.id == table.run_id)
        .where(wanted)
        .order_by(table.id.desc())
        .limit(limit)
    )
    return _rows(database, query)[::-1]


def _run_id(connection: Connection, prefix: str) -> UUID:
    known: Sequence[UUID] = connection.scalars(select(_run.id)).all()
    found = [run_id for run_id in known if str(run_id).startswith(prefix.lower())]
    if len(found) != 1:
        what = "no run" if not found else f"{len(found)} runs"
        raise UsageError(f"{what} with an id that begins with {prefix!r}")
    return found[0]


def _latest(name: str, each: int, which: ColumnElement[bool] | None) -> Select[Any]:
    query = select(ingestion_runs).where(_run.source == name)
    if which is not None:
        query = query.where(which)
    return select(query.order_by(_run.started_at.desc()).limit(each).subquery())


def _held(connection: Connection, names: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Documents, and those of them that are gone, by source: both counted in an index."""
    query = select(documents.c.source, func.count()).group_by(documents.c.source)
    named = documents.c.source.in_(names)
    held = connection.execute(query.where(named)).all()
    gone = connection.execute(query.where(documents.c.gone_at.is_not(None), named)).all()
    return {row[0]: row[1] for row in held}, {row[0]: row[1] for row in gone}


def _states(connection: Connection, names: Sequence[str]) -> dict[str, Row[Any]]:
    table = ingestion_source_state
    query = select(table).where(table.c.source.in_(names))
    return {row.source: row for row in connection.execute(query)}


def _open_errors(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    table = ingestion_tasks.c
    stands = (table.stage == "errored") & table.resolved_at.is_(None) & table.source.in_(names)
    query = select(table.source, func.count()).where(stands).group_by(table.source)
    return {row[0]: row[1] for row in connection.execute(query)}


def _ended(row: Row[Any] | None) -> datetime | None:
    return None if row is None else row.finished_at or row.started_at


def _rows(database: Database, query: Select[Any]) -> list[dict[str, Any]]:
    with database.read() as connection:
        return [row._asdict() for row in connection.execute(query)]


STRIP: Final = 30
"""The last runs of each source that are shown side by side."""
YIELD_DAYS: Final = 90
EXAMPLES: Final = 3
"""Of each cause of errors."""
MOST_CAUSES: Final = 50

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


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceHeld:
    """A source of which something is held."""

    name: str
    title: str
    organisation: str
    jurisdiction: str
    first: str | None
    """Day of the oldest document that has one."""
    last: str | None


def sources_held(
    database: Database, registry: SourceRegistry, *, owner: UUID | None = None
) -> list[SourceHeld]:
    """All sources with a document, by name; found through an index, however many there are."""
    table = documents.c
    found = []
    with database.read() as connection:
        for name, source in sorted(registry.items()):
            own = select(table.published_at).where(table.source == name, visible_to(owner)).limit(1)
            if connection.execute(own).one_or_none() is None:
                continue
            dated = own.where(table.published_at.is_not(None))
            first = connection.scalar(dated.order_by(table.published_at))
            last = connection.scalar(dated.order_by(table.published_at.desc()))
            found.append(
                SourceHeld(
                    name=name,
                    title=source.info.title,
                    organisation=source.info.organisation,
                    jurisdiction=source.info.jurisdiction,
                    first=first and first[:10],
                    last=last and last[:10],
                )
            )
    return found

"""Sources, runs, tasks, errors and logs as operators see them, each in a few queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
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
from fonds.runs.state import RunReport, RunRequest, RunStatus
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

SOURCES_PER_QUERY: Final = 100
"""SQLite takes at most five hundred parts of a union."""
FAILURE_DAYS: Final = timedelta(days=90)
"""Older failures are not looked for: of a source without any, all runs would be read."""

_run: Final = ingestion_runs.c
_fell_short: Final = _run.status.in_([RunStatus.PARTIAL, RunStatus.FAILED])
_wrote: Final = _run.inserted_count + _run.updated_count + _run.gone_count > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceOverview:
    """The counts and last times of a source."""

    source: str
    documents: int
    gone: int
    last_status: str | None
    last_run_at: datetime | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    """The end of its last partial or failed run, within ninety days."""
    last_change_at: datetime | None
    """The end of the last run that stored or withdrew a document."""
    last_seen_key: str | None
    open_errors: int
    next_run_at: datetime | None


def overview(
    database: Database, sources: Iterable[Registered], now: datetime
) -> list[SourceOverview]:
    """Overviews of sources; the number of queries does not depend on theirs."""
    with database.read() as connection:
        return overview_of(connection, list(sources), now)


def overview_of(
    connection: Connection, sources: Sequence[Registered], now: datetime
) -> list[SourceOverview]:
    """As `overview`, in the caller's transaction."""
    names = [source.info.name for source in sources]
    stored, withdrawn = _document_counts(connection, names)
    states, errors = _states(connection, names), _open_errors(connection, names)
    statuses = {row.source: row.status for row in latest_runs(connection, names, 1)}
    lately = _fell_short & (_run.started_at >= now - FAILURE_DAYS)
    failed = {row.source: row.finished_at for row in latest_runs(connection, names, 1, lately)}
    wrote = {row.source: row for row in latest_runs(connection, names, 1, _wrote)}
    return [
        SourceOverview(
            source=name,
            documents=stored.get(name, 0),
            gone=withdrawn.get(name, 0),
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
    rows: list[Row[Any]] = []
    for names in batched(sources, SOURCES_PER_QUERY):
        parts = [_latest(name, each, which) for name in names]
        rows += connection.execute(union_all(*parts)).all() if parts else []
    return sorted(rows, key=lambda row: row.started_at, reverse=True)


def last_report(database: Database, source: str) -> RunReport:
    """The report of the last run of a source, from its row."""
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


def recent_runs(database: Database, source: str | None, limit: int) -> list[dict[str, Any]]:
    """The latest runs of a source, or of all sources, newest first."""
    table = ingestion_runs
    query = select(table).order_by(table.c.started_at.desc(), table.c.id.desc()).limit(limit)
    if source is not None:
        query = query.where(table.c.source == source)
    return _rows(database, query)


def open_error_rows(database: Database, source: str | None) -> list[dict[str, Any]]:
    """Failures of a source that no later run has resolved; of all sources, each with its name."""
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
        .where(table.stage == "errored", table.resolved_at.is_(None))
        .order_by(table.source, table.id)
    )
    if source is not None:
        query = query.where(table.source == source)
    else:
        query = query.add_columns(table.source)
    return _rows(database, query)


def run_logs(database: Database, run: str, limit: int) -> list[dict[str, Any]]:
    """The last lines of a run's log, oldest first; a run is named by the start of its id."""
    with database.read() as connection:
        run_id = _run_id(connection, run)
    return _last_lines(database, ingestion_logs.c.run_id == run_id, limit)


def source_logs(database: Database, source: str, limit: int) -> list[dict[str, Any]]:
    """The last log lines of all runs of a source, oldest first."""
    return _last_lines(database, ingestion_runs.c.source == source, limit)


def _last_lines(database: Database, condition: Any, limit: int) -> list[dict[str, Any]]:
    table = ingestion_logs.c
    query = (
        select(table.run_id, table.logged_at, table.level, table.message, table.context)
        .join(ingestion_runs, ingestion_runs.c.id == table.run_id)
        .where(condition)
        .order_by(table.id.desc())
        .limit(limit)
    )
    return _rows(database, query)[::-1]


def _run_id(connection: Connection, prefix: str) -> UUID:
    run_ids: Sequence[UUID] = connection.scalars(select(_run.id)).all()
    matches = [run_id for run_id in run_ids if str(run_id).startswith(prefix.lower())]
    if len(matches) != 1:
        number = "no run has" if not matches else f"{len(matches)} runs have"
        raise UsageError(f"{number} an id that begins with {prefix!r}")
    return matches[0]


def _latest(name: str, each: int, which: ColumnElement[bool] | None) -> Select[Any]:
    query = select(ingestion_runs).where(_run.source == name)
    if which is not None:
        query = query.where(which)
    return select(query.order_by(_run.started_at.desc()).limit(each).subquery())


def _document_counts(
    connection: Connection, names: Sequence[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """The numbers of documents and of withdrawn documents by source, counted in an index."""
    query = select(documents.c.source, func.count()).group_by(documents.c.source)
    of_sources = query.where(documents.c.source.in_(names))
    stored = connection.execute(of_sources).all()
    withdrawn = connection.execute(of_sources.where(documents.c.gone_at.is_not(None))).all()
    return {row[0]: row[1] for row in stored}, {row[0]: row[1] for row in withdrawn}


def _states(connection: Connection, names: Sequence[str]) -> dict[str, Row[Any]]:
    table = ingestion_source_state
    query = select(table).where(table.c.source.in_(names))
    return {row.source: row for row in connection.execute(query)}


def _open_errors(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    table = ingestion_tasks.c
    is_open = (table.stage == "errored") & table.resolved_at.is_(None) & table.source.in_(names)
    query = select(table.source, func.count()).where(is_open).group_by(table.source)
    return {row[0]: row[1] for row in connection.execute(query)}


def _ended(row: Row[Any] | None) -> datetime | None:
    return None if row is None else row.finished_at or row.started_at


def _rows(database: Database, query: Select[Any]) -> list[dict[str, Any]]:
    with database.read() as connection:
        return [row._asdict() for row in connection.execute(query)]


LINES_PER_QUERY: Final = 500
FOLLOW_SECONDS: Final = 1.0
"""The pause before a log that is followed is read again."""
STRIP_LENGTH: Final = 30
"""The number of last runs of each source that are shown in a row."""
YIELD_DAYS: Final = 90
EXAMPLES: Final = 3
"""Of each group of errors."""
MAX_ERROR_GROUPS: Final = 50

_task: Final = ingestion_tasks.c
_log: Final = ingestion_logs.c
_stage: Final = ingestion_stages.c


@dataclass(frozen=True, kw_only=True, slots=True)
class RunInsight:
    """A run with its request and its counts so far."""

    id: UUID
    source: str
    mode: str
    status: RunStatus
    started_at: datetime
    finished_at: datetime | None
    counts: Counts
    config: Mapping[str, Any]
    """Its request."""
    error_summary: str | None

    @classmethod
    def from_row(cls, row: Row[Any]) -> Self:
        """From a row with all columns."""
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
        """Its duration, up to now if it is running."""
        return max(0.0, ((self.finished_at or now) - self.started_at).total_seconds())


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceInsight:
    """A source with its overview and last runs."""

    name: str
    title: str
    organisation: str
    schedule: str | None
    """Cron expression in America/New_York; None: it runs only on request."""
    overview: SourceOverview
    seconds_since_success: float | None
    running: UUID | None
    """The id of the run that is running."""
    strip: tuple[RunInsight, ...]
    """The last runs, oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DayYield:
    """The counts of all runs of one day."""

    day: str
    runs: int
    inserted: int
    updated: int
    errors: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceDetail:
    """A source with its settings, state and counts by day."""

    insight: SourceInsight
    version: str
    depends_on: tuple[str, ...]
    tables: tuple[str, ...]
    options: tuple[str, ...]
    """Ranges that a backfill takes, next to days."""
    key_setting: str | None
    """The setting of the key for its upstream, if it takes one."""
    time_zone: str
    """Of its schedule."""
    last_seen_key: str | None
    custom: Mapping[str, Any]
    """Values that the source keeps from run to run."""
    days: tuple[DayYield, ...]
    """Of the last ninety days, those with a run; oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StageInsight:
    """The times of one stage of a run."""

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
    """True if no later run has resolved it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorGroup:
    """Failures with the same type and stage."""

    stage: str | None
    type: str | None
    count: int
    examples: tuple[ErrorExample, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunDetail:
    """A run with its stages, and its tasks by stage."""

    run: RunInsight
    stages: tuple[StageInsight, ...]
    tasks: Mapping[str, int]
    """Numbers by stage: `loaded`, `errored`."""
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


def source_insights(
    connection: Connection, sources: Sequence[Registered], now: datetime
) -> list[SourceInsight]:
    """Sources with their overviews and last runs."""
    names = [source.info.name for source in sources]
    strips: dict[str, list[RunInsight]] = {name: [] for name in names}
    for row in reversed(latest_runs(connection, names, STRIP_LENGTH)):
        strips[row.source].append(RunInsight.from_row(row))
    overviews = overview_of(connection, sources, now)
    return [
        _insight(source, overview, strips[source.info.name], now)
        for source, overview in zip(sources, overviews, strict=True)
    ]


def source_detail(connection: Connection, source: Registered, now: datetime) -> SourceDetail:
    """A source in detail."""
    info, state = source.info, ingestion_source_state
    (insight,) = source_insights(connection, [source], now)
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
    source: Registered, overview: SourceOverview, strip: list[RunInsight], now: datetime
) -> SourceInsight:
    success = overview.last_success_at
    return SourceInsight(
        name=source.info.name,
        title=source.info.title,
        organisation=source.info.organisation,
        schedule=source.info.schedule,
        overview=overview,
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
    """Runs, the newest first; of a source or status, or before a time and an id."""
    query = select(ingestion_runs).order_by(_run.started_at.desc(), _run.id.desc()).limit(limit)
    if source is not None:
        query = query.where(_run.source == source)
    if status is not None:
        query = query.where(_run.status == status)
    if before is not None:
        started_at, run_id = before
        earlier = (_run.started_at == started_at) & (_run.id < run_id)
        query = query.where((_run.started_at < started_at) | earlier)
    return [RunInsight.from_row(row) for row in connection.execute(query)]


def run_of(connection: Connection, run_id: UUID) -> RunInsight | None:
    """The run with this id."""
    row = connection.execute(select(ingestion_runs).where(_run.id == run_id)).one_or_none()
    return None if row is None else RunInsight.from_row(row)


def run_detail(connection: Connection, run: RunInsight) -> RunDetail:
    """A run in detail."""
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
    """The failures of a run by stage and type, the most frequent first, with examples."""
    return _grouped(connection, _task.run_id == run_id)


def open_error_groups(connection: Connection, source: str) -> list[ErrorGroup]:
    """The open failures of a source, grouped in the same way."""
    return _grouped(connection, (_task.source == source) & _task.resolved_at.is_(None))


def _grouped(connection: Connection, which: ColumnElement[bool]) -> list[ErrorGroup]:
    key = (_task.error_stage, _task.error_type)
    failed = which & (_task.stage == "errored")
    many = func.count().label("many")
    query = select(*key, many).where(failed).group_by(*key).order_by(many.desc(), *key)
    number = func.row_number().over(partition_by=key, order_by=_task.id).label("number")
    numbered = select(*key, _task.task_key, _task.error, _task.attempts, _task.resolved_at, number)
    some = numbered.where(failed).subquery()
    first = select(some).where(some.c.number <= EXAMPLES).order_by(some.c.number)
    examples: dict[tuple[str | None, str | None], list[ErrorExample]] = {}
    for row in connection.execute(first):
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
        for row in connection.execute(query.limit(MAX_ERROR_GROUPS))
    ]


def tasks(
    connection: Connection, run_id: UUID, *, limit: int, stage: str | None = None, after: int = 0
) -> list[TaskInsight]:
    """Tasks of a run in the order of their ends; of a stage, or after an id."""
    columns = [_task[entry.name] for entry in fields(TaskInsight)]
    query = select(*columns).where(_task.run_id == run_id, _task.id > after)
    if stage is not None:
        query = query.where(_task.stage == stage)
    rows = connection.execute(query.order_by(_task.id).limit(limit))
    return [TaskInsight(**row._asdict()) for row in rows]


def logs(
    connection: Connection, run_id: UUID, *, limit: int, level: str | None = None, after: int = 0
) -> list[LogLine]:
    """Lines of a run's log, oldest first; of a level, or after an id, to follow it."""
    columns = [_log[entry.name] for entry in fields(LogLine)]
    query = select(*columns).where(_log.run_id == run_id, _log.id > after)
    if level is not None:
        query = query.where(_log.level == level)
    rows = connection.execute(query.order_by(_log.id).limit(limit))
    return [LogLine(**row._asdict()) for row in rows]


def log_lines(
    database: Database, run: str, tail: int, *, wait: Callable[[float], object]
) -> Iterator[LogLine]:
    """The last lines of a run's log, then further ones as they are stored, until the run ends."""
    with database.read() as connection:
        run_id = _run_id(connection, run)
        newest_first = select(_log.id).where(_log.run_id == run_id).order_by(_log.id.desc())
        last_id = connection.scalar(newest_first.offset(tail).limit(1)) or 0
    while True:
        with database.read() as connection:
            ended = connection.scalar(select(_run.finished_at).where(_run.id == run_id))
            lines = logs(connection, run_id, limit=LINES_PER_QUERY, after=last_id)
        yield from lines
        if lines:
            last_id = lines[-1].id
        elif ended is not None:
            return
        else:
            wait(FOLLOW_SECONDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedSource:
    """A source with documents in the library."""

    name: str
    title: str
    organisation: str
    jurisdiction: str
    first: str | None
    """Day of the oldest document that has one."""
    last: str | None


def loaded_sources(
    database: Database, registry: SourceRegistry, *, owner: UUID | None = None
) -> list[LoadedSource]:
    """The sources with documents, by name; read from an index, without counting."""
    table = documents.c
    sources = []
    with database.read() as connection:
        for name, source in sorted(registry.items()):
            own = select(table.published_at).where(table.source == name, visible_to(owner)).limit(1)
            if connection.execute(own).one_or_none() is None:
                continue
            dated = own.where(table.published_at.is_not(None))
            first = connection.scalar(dated.order_by(table.published_at))
            last = connection.scalar(dated.order_by(table.published_at.desc()))
            sources.append(
                LoadedSource(
                    name=name,
                    title=source.info.title,
                    organisation=source.info.organisation,
                    jurisdiction=source.info.jurisdiction,
                    first=first and first[:10],
                    last=last and last[:10],
                )
            )
    return sources


@dataclass(frozen=True, kw_only=True, slots=True)
class DaysAfter:
    """The documents of the days after the end of a backfill."""

    since: date
    """The first of these days."""
    documents: int
    first: str | None
    """The day of the first of these documents."""
    watermark: str | None
    """The point from which the next run continues; None if the source has not run yet."""


def days_after(
    database: Database, source: str, request: RunRequest, now: datetime
) -> DaysAfter | None:
    """The state between the end of a backfill and today; None if it has no end before today."""
    if request.until is None or request.until >= now.date():
        return None
    since = request.until + timedelta(days=1)
    table = documents.c
    later = (table.source == source) & (table.published_at >= since.isoformat())
    state = ingestion_source_state.c
    with database.read() as connection:
        count, first = connection.execute(
            select(func.count(), func.min(table.published_at)).where(later, table.gone_at.is_(None))
        ).one()
        watermark = connection.scalar(select(state.last_seen_key).where(state.source == source))
    return DaysAfter(since=since, documents=count, first=first and first[:10], watermark=watermark)

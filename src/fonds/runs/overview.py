"""How the sources stand, for people: last runs, counts, what failed, what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, Select, func, select, union_all

from fonds.errors import UsageError
from fonds.runs.schedule import next_run
from fonds.runs.state import Counts, RunReport, RunStatus
from fonds.sources.base import Registered
from fonds.stores.batches import pieces
from fonds.stores.database import Database
from fonds.stores.tables import (
    documents,
    ingestion_logs,
    ingestion_runs,
    ingestion_source_state,
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
    for names in pieces(sources, SOURCES_AT_ONCE):
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

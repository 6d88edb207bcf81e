"""How the sources stand, for people: last runs, counts, what failed, what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, func, select

from fonds.errors import UsageError
from fonds.runs.schedule import next_run
from fonds.runs.state import Status
from fonds.sources.base import Registered
from fonds.stores.database import Database
from fonds.stores.tables import (
    documents,
    ingestion_logs,
    ingestion_runs,
    ingestion_source_state,
    ingestion_tasks,
)


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
    """When a run of it last ended short of what it was asked for."""
    last_change_at: datetime | None
    """When a document of it was last written."""
    last_seen_key: str | None
    open_errors: int
    next_run_at: datetime | None


def overview(
    database: Database, sources: Iterable[Registered], now: datetime
) -> list[SourceOverview]:
    """All the given sources at a glance."""
    with database.read() as connection:
        return [_overview(connection, source, now) for source in sources]


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
    known: Sequence[UUID] = connection.scalars(select(ingestion_runs.c.id)).all()
    found = [run_id for run_id in known if str(run_id).startswith(prefix.lower())]
    if len(found) != 1:
        what = "no run" if not found else f"{len(found)} runs"
        raise UsageError(f"{what} with an id that begins with {prefix!r}")
    return found[0]


def _overview(connection: Connection, source: Registered, now: datetime) -> SourceOverview:
    name = source.info.name
    runs, state, tasks = ingestion_runs.c, ingestion_source_state, ingestion_tasks.c
    held = connection.execute(
        select(
            func.count(), func.count(documents.c.gone_at), func.max(documents.c.updated_at)
        ).where(documents.c.source == name)
    ).one()
    latest = select(runs.status).where(runs.source == name).order_by(runs.started_at.desc())
    short = runs.status.in_([Status.PARTIAL, Status.FAILED])
    failed = select(func.max(runs.finished_at)).where(runs.source == name, short)
    known = connection.execute(select(state).where(state.c.source == name)).one_or_none()
    errors = select(func.count()).where(
        tasks.source == name, tasks.stage == "errored", tasks.resolved_at.is_(None)
    )
    return SourceOverview(
        source=name,
        documents=held[0],
        gone=held[1],
        last_status=connection.scalar(latest.limit(1)),
        last_run_at=known.last_run_at if known else None,
        last_success_at=known.last_success_at if known else None,
        last_failure_at=connection.scalar(failed),
        last_change_at=held[2],
        last_seen_key=known.last_seen_key if known else None,
        open_errors=connection.scalar(errors) or 0,
        next_run_at=next_run(source.info, now),
    )


def _rows(database: Database, query: Select[Any]) -> list[dict[str, Any]]:
    with database.read() as connection:
        return [row._asdict() for row in connection.execute(query)]

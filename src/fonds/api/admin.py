"""Routes for operators: sources, runs, queues, uploads, websites, indexes and audits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from sqlalchemy import Connection
from starlette.responses import JSONResponse

from fonds.api.admin_schemas import (
    AT,
    LAST_ID,
    AuditPage,
    EmbeddingQueueResponse,
    ErrorsResponse,
    IndexesResponse,
    LogPage,
    QueueResponse,
    RunDetailResponse,
    RunId,
    RunPage,
    SitesResponse,
    SourceName,
    SourceResponse,
    SourcesResponse,
    TaskPage,
    UploadsResponse,
    command_json,
    run_json,
    to_json,
)
from fonds.api.admin_status import index_health, site_health, upload_work
from fonds.api.dependencies import app_state
from fonds.api.problems import ProblemError
from fonds.api.schemas import Cursor, decode_cursor, encode_cursor, returns_to_operators
from fonds.runs import audit, commands, overview
from fonds.runs.commands import QueueName
from fonds.runs.overview import RunInsight
from fonds.runs.queue_status import backlog, embedding_work
from fonds.runs.state import RunStatus
from fonds.sources.base import Registered

MAX_PAGE: Final = 200
MAX_LINES: Final = 1000
RECENT_RUNS: Final = 20

After = Annotated[int, Query(ge=0, le=LAST_ID, description="Return entries after this id.")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Lines = Annotated[int, Query(ge=1, le=MAX_LINES)]
SourceFilter = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")]
Level = Literal["debug", "info", "warn", "error"]
Stage = Literal["discovered", "fetched", "parsed", "loaded", "errored"]

router: Final = APIRouter(prefix=AT, tags=["admin"])


@contextmanager
def operator_connection(request: Request) -> Iterator[Connection]:
    """A read transaction for an operator; 401 or 403 for other callers."""
    app = app_state(request)
    with app.library.database.read() as connection:
        app.require_operator(request, connection)
        yield connection


def source_or_404(request: Request, name: str) -> Registered:
    """The source with this name; 404 if there is none."""
    source = app_state(request).library.sources.get(name)
    if source is None:
        raise ProblemError(404, "unknown-source", f"there is no source {name!r}")
    return source


def run_or_404(connection: Connection, run_id: str) -> RunInsight:
    """The run with this id; 404 if there is none."""
    run = overview.run_of(connection, UUID(run_id))
    if run is None:
        raise ProblemError(404, "unknown-run", "there is no run with this id")
    return run


@router.get("/sources", **returns_to_operators(SourcesResponse, 503))
def list_sources(request: Request) -> JSONResponse:
    """All sources with their state and last thirty runs."""
    now, registry = app_state(request).now(), app_state(request).library.sources
    with operator_connection(request) as connection:
        sources = overview.source_insights(connection, list(registry.values()), now)
    return JSONResponse({"sources": to_json(sources)})


@router.get("/sources/{name}", **returns_to_operators(SourceResponse, 404, 422, 503))
def get_source(request: Request, name: SourceName) -> JSONResponse:
    """A source: description, state, latest runs and recent changes."""
    now = app_state(request).now()
    with operator_connection(request) as connection:
        detail = overview.source_detail(connection, source_or_404(request, name), now)
        recent = overview.runs(connection, source=name, limit=RECENT_RUNS)
        audits = audit.history(connection, source=name, limit=1)
        open_commands = commands.listing(connection, source=name, is_open=True, limit=RECENT_RUNS)
    return JSONResponse(
        {
            **to_json(detail),
            "runs": [run_json(run, now) for run in recent],
            "audit": to_json(audits[0]) if audits else None,
            "commands": [command_json(command) for command in open_commands],
        }
    )


@router.get("/runs", **returns_to_operators(RunPage, 422, 503))
def list_runs(
    request: Request,
    *,
    source: SourceFilter = None,
    status: RunStatus | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> JSONResponse:
    """Runs of all sources, newest first."""
    now = app_state(request).now()
    with operator_connection(request) as connection:
        runs = overview.runs(
            connection,
            source=source,
            status=status,
            before=decode_cursor(cursor) if cursor else None,
            limit=limit + 1,
        )
    page, is_last = runs[:limit], len(runs) <= limit
    return JSONResponse(
        {
            "runs": [run_json(run, now) for run in page],
            "next_cursor": None if is_last else encode_cursor(page[-1].started_at, page[-1].id),
        }
    )


@router.get("/runs/{run_id}", **returns_to_operators(RunDetailResponse, 404, 422, 503))
def get_run(request: Request, run_id: RunId) -> JSONResponse:
    """A run with its counts, stages and errors."""
    with operator_connection(request) as connection:
        detail = overview.run_detail(connection, run_or_404(connection, run_id))
    return JSONResponse(
        {
            **run_json(detail.run, app_state(request).now()),
            "stages": to_json(detail.stages),
            "tasks": dict(detail.tasks),
            "errors": to_json(detail.errors),
        }
    )


@router.get("/runs/{run_id}/logs", **returns_to_operators(LogPage, 404, 422, 503))
def get_logs(
    request: Request,
    run_id: RunId,
    *,
    level: Level | None = None,
    after: After = 0,
    limit: Lines = 200,
) -> JSONResponse:
    """The log of a run, oldest lines first."""
    with operator_connection(request) as connection:
        run = run_or_404(connection, run_id)
        lines = overview.logs(connection, run.id, level=level, after=after, limit=limit)
    return JSONResponse(
        {
            "logs": to_json(lines),
            "next_after": lines[-1].id if lines else after,
            "ended": run.status is not RunStatus.RUNNING and len(lines) < limit,
        }
    )


@router.get("/runs/{run_id}/tasks", **returns_to_operators(TaskPage, 404, 422, 503))
def get_tasks(
    request: Request,
    run_id: RunId,
    *,
    stage: Stage | None = None,
    after: After = 0,
    limit: Limit = 50,
) -> JSONResponse:
    """The tasks of a run, in the order in which they finished."""
    with operator_connection(request) as connection:
        run = run_or_404(connection, run_id)
        tasks = overview.tasks(connection, run.id, stage=stage, after=after, limit=limit + 1)
    page, is_last = tasks[:limit], len(tasks) <= limit
    return JSONResponse({"tasks": to_json(page), "next_after": None if is_last else page[-1].id})


@router.get("/runs/{run_id}/errors", **returns_to_operators(ErrorsResponse, 404, 422, 503))
def get_errors(request: Request, run_id: RunId) -> JSONResponse:
    """The errors of a run, by cause."""
    with operator_connection(request) as connection:
        run = run_or_404(connection, run_id)
        errors = overview.error_groups(connection, run.id)
    return JSONResponse({"errors": to_json(errors)})


@router.get("/embedding/queue", **returns_to_operators(EmbeddingQueueResponse, 503))
def embedding_queue(request: Request) -> JSONResponse:
    """The embedding queue: entries, errors, throughput and cost."""
    now = app_state(request).now()
    with operator_connection(request) as connection:
        queue = backlog(connection, "embedding", now)
        work = embedding_work(connection, now)
    return JSONResponse({"queue": to_json(queue), "work": to_json(work)})


@router.get("/normalization/queue", **returns_to_operators(QueueResponse, 503))
def normalization_queue(request: Request) -> JSONResponse:
    """The normalization queue: entries and errors."""
    return _queue(request, "normalization")


@router.get("/citations/queue", **returns_to_operators(QueueResponse, 503))
def citation_queue(request: Request) -> JSONResponse:
    """The citation queue: entries and errors."""
    return _queue(request, "citations")


@router.get("/uploads", **returns_to_operators(UploadsResponse, 503))
def uploads(request: Request) -> JSONResponse:
    """Uploads by status, and those that have waited longest."""
    with operator_connection(request) as connection:
        work = upload_work(connection, app_state(request).now())
    statistics = work.statistics
    return JSONResponse(
        {
            "jobs": {status.value: count for status, count in statistics.jobs.items()},
            "due": statistics.queue.due,
            "lag_seconds": statistics.queue.lag,
            "repeated": statistics.reprocessing.repeated,
            "waiting": to_json(work.waiting),
        }
    )


@router.get("/sites", **returns_to_operators(SitesResponse, 503))
def sites(request: Request) -> JSONResponse:
    """Websites with their crawl strategies and scores."""
    with operator_connection(request):
        library = app_state(request).library
    return JSONResponse({"sites": to_json(site_health(library))})


@router.get("/indexes", **returns_to_operators(IndexesResponse, 503))
def indexes(request: Request) -> JSONResponse:
    """Indexes on the object store, with sizes and locks."""
    with operator_connection(request):
        library = app_state(request).library
    return JSONResponse(to_json(index_health(library)))


@router.get("/audits", **returns_to_operators(AuditPage, 422, 503))
def list_audits(
    request: Request,
    *,
    source: SourceFilter = None,
    before: Annotated[int | None, Query(ge=1, le=LAST_ID)] = None,
    limit: Limit = 50,
) -> JSONResponse:
    """Results of audits, newest first."""
    with operator_connection(request) as connection:
        audits = audit.history(connection, source=source, before=before, limit=limit + 1)
    page, is_last = audits[:limit], len(audits) <= limit
    return JSONResponse({"audits": to_json(page), "next_before": None if is_last else page[-1].id})


def _queue(request: Request, name: QueueName) -> JSONResponse:
    with operator_connection(request) as connection:
        queue = backlog(connection, name, app_state(request).now())
    return JSONResponse({"queue": to_json(queue)})

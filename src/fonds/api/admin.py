"""For those who run the library: sources, runs, their tasks, errors and logs.

For those who run the library: queues, uploads, websites, indexes, results of audits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from sqlalchemy import Connection
from starlette.responses import JSONResponse

from fonds.api.admin_schemas import (
    AT,
    LAST_ID,
    AuditPage,
    EmbeddingQueueAnswer,
    ErrorsAnswer,
    IndexesAnswer,
    LogPage,
    QueueAnswer,
    RunDetailAnswer,
    RunId,
    RunPage,
    SitesAnswer,
    SourceAnswer,
    SourceNamed,
    SourcesAnswer,
    TaskPage,
    UploadsAnswer,
    command_answer,
    plain,
    run_answer,
)
from fonds.api.admin_status import index_health, site_health, upload_work
from fonds.api.dependencies import desk_of
from fonds.api.problems import ProblemError
from fonds.api.schemas import BEARER_OR_NOBODY, problems
from fonds.runs import audit, commands, overview
from fonds.runs.commands import QueueName
from fonds.runs.overview import RunInsight
from fonds.runs.queue_status import backlog, embedding_work
from fonds.runs.state import RunStatus
from fonds.sources.base import Registered

MOST: Final = 200
"""Entries of one page."""
MOST_LINES: Final = 1000
RECENT: Final = 20
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

After = Annotated[int, Query(ge=0, le=LAST_ID, description="Begin behind this id.")]
Limit = Annotated[int, Query(ge=1, le=MOST)]
Lines = Annotated[int, Query(ge=1, le=MOST_LINES)]
Level = Literal["debug", "info", "warn", "error"]
Stage = Literal["discovered", "fetched", "parsed", "loaded", "errored"]

router: Final = APIRouter(prefix=AT, tags=["admin"])


@contextmanager
def looking(request: Request) -> Iterator[Connection]:
    """A transaction for an operator to look at things in; 401 or 403 for anybody else."""
    desk = desk_of(request)
    with desk.library.database.read() as connection:
        desk.operator(request, connection)
        yield connection


def source_named(request: Request, name: str) -> Registered:
    """The source of a name; 404 if there is none."""
    source = desk_of(request).library.sources.get(name)
    if source is None:
        raise ProblemError(404, "unknown-source", f"there is no source {name!r}")
    return source


def known_run(connection: Connection, run_id: str) -> RunInsight:
    """The run of an id; 404 if there is none."""
    run = overview.run_of(connection, UUID(run_id))
    if run is None:
        raise ProblemError(404, "unknown-run", "there is no run with this id")
    return run


@router.get(
    "/sources",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": SourcesAnswer}, **problems(401, 403, 503)},
)
def list_sources(request: Request) -> JSONResponse:
    """All sources: how each stands, and its last thirty runs."""
    now, sources = desk_of(request).now(), desk_of(request).library.sources
    with looking(request) as connection:
        found = overview.sources_at_a_glance(connection, list(sources.values()), now)
    return JSONResponse({"sources": plain(found)})


@router.get(
    "/sources/{name}",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": SourceAnswer}, **problems(401, 403, 404, 422, 503)},
)
def get_source(request: Request, name: SourceNamed) -> JSONResponse:
    """One source: what it is, where it stands, its last runs, and what it brought lately."""
    now = desk_of(request).now()
    with looking(request) as connection:
        detail = overview.source_detail(connection, source_named(request, name), now)
        recent = overview.runs(connection, source=name, limit=RECENT)
        audited = audit.history(connection, source=name, limit=1)
        open_ones = commands.listing(connection, source=name, is_open=True, limit=RECENT)
    return JSONResponse(
        {
            **plain(detail),
            "runs": [run_answer(run, now) for run in recent],
            "audit": plain(audited[0]) if audited else None,
            "commands": [command_answer(each) for each in open_ones],
        }
    )


@router.get(
    "/runs",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": RunPage}, **problems(401, 403, 422, 503)},
)
def list_runs(
    request: Request,
    *,
    source: Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")] = None,
    status: RunStatus | None = None,
    limit: Limit = 50,
    cursor: Annotated[
        str | None,
        Query(
            pattern=r"^[0-9]{13}-[0-9a-f]{32}$",
            description="The `next_cursor` of the page before.",
        ),
    ] = None,
) -> JSONResponse:
    """Runs of all sources, the newest first."""
    now = desk_of(request).now()
    with looking(request) as connection:
        found = overview.runs(
            connection,
            source=source,
            status=status,
            before=read_cursor(cursor) if cursor else None,
            limit=limit + 1,
        )
    page, is_last = found[:limit], len(found) <= limit
    return JSONResponse(
        {
            "runs": [run_answer(run, now) for run in page],
            "next_cursor": None if is_last else cursor_of(page[-1]),
        }
    )


@router.get(
    "/runs/{run_id}",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": RunDetailAnswer}, **problems(401, 403, 404, 422, 503)},
)
def get_run(request: Request, run_id: RunId) -> JSONResponse:
    """One run: counts, stages, and what failed."""
    with looking(request) as connection:
        detail = overview.run_detail(connection, known_run(connection, run_id))
    return JSONResponse(
        {
            **run_answer(detail.run, desk_of(request).now()),
            "stages": plain(detail.stages),
            "tasks": dict(detail.tasks),
            "errors": plain(detail.errors),
        }
    )


@router.get(
    "/runs/{run_id}/logs",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": LogPage}, **problems(401, 403, 404, 422, 503)},
)
def get_logs(
    request: Request,
    run_id: RunId,
    *,
    level: Level | None = None,
    after: After = 0,
    limit: Lines = 200,
) -> JSONResponse:
    """The log of a run, oldest line first."""
    with looking(request) as connection:
        run = known_run(connection, run_id)
        lines = overview.logs(connection, run.id, level=level, after=after, limit=limit)
    return JSONResponse(
        {
            "logs": plain(lines),
            "next_after": lines[-1].id if lines else after,
            "ended": run.status is not RunStatus.RUNNING and len(lines) < limit,
        }
    )


@router.get(
    "/runs/{run_id}/tasks",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": TaskPage}, **problems(401, 403, 404, 422, 503)},
)
def get_tasks(
    request: Request,
    run_id: RunId,
    *,
    stage: Stage | None = None,
    after: After = 0,
    limit: Limit = 50,
) -> JSONResponse:
    """The tasks of a run, in the order they were settled."""
    with looking(request) as connection:
        run = known_run(connection, run_id)
        found = overview.tasks(connection, run.id, stage=stage, after=after, limit=limit + 1)
    page, is_last = found[:limit], len(found) <= limit
    return JSONResponse({"tasks": plain(page), "next_after": None if is_last else page[-1].id})


@router.get(
    "/runs/{run_id}/errors",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": ErrorsAnswer}, **problems(401, 403, 404, 422, 503)},
)
def get_errors(request: Request, run_id: RunId) -> JSONResponse:
    """What failed in a run, by cause."""
    with looking(request) as connection:
        run = known_run(connection, run_id)
        found = overview.error_groups(connection, run.id)
    return JSONResponse({"errors": plain(found)})


def cursor_of(run: RunInsight) -> str:
    """Where a page of runs ends."""
    milliseconds = (run.started_at - _EPOCH) // timedelta(milliseconds=1)
    return f"{milliseconds:013}-{run.id.hex}"


def read_cursor(cursor: str) -> tuple[datetime, UUID]:
    """The moment and the id that `cursor_of` wrote."""
    milliseconds, _, run_id = cursor.partition("-")
    return _EPOCH + timedelta(milliseconds=int(milliseconds)), UUID(run_id)


@router.get(
    "/embedding/queue",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": EmbeddingQueueAnswer}, **problems(401, 403, 503)},
)
def embedding_queue(request: Request) -> JSONResponse:
    """What waits for vectors, why some fails, how fast it goes and what it costs."""
    now = desk_of(request).now()
    with looking(request) as connection:
        found = backlog(connection, "embedding", now)
        work = embedding_work(connection, now)
    return JSONResponse({"queue": plain(found), "work": plain(work)})


@router.get(
    "/normalization/queue",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": QueueAnswer}, **problems(401, 403, 503)},
)
def normalization_queue(request: Request) -> JSONResponse:
    """What waits for its text to be made, and why some fails."""
    return _queue(request, "normalization")


@router.get(
    "/citations/queue",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": QueueAnswer}, **problems(401, 403, 503)},
)
def citation_queue(request: Request) -> JSONResponse:
    """What waits to be searched for citations, and why some fails."""
    return _queue(request, "citations")


@router.get(
    "/uploads",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": UploadsAnswer}, **problems(401, 403, 503)},
)
def uploads(request: Request) -> JSONResponse:
    """Uploads by where they stand, and which have waited longest."""
    with looking(request) as connection:
        work = upload_work(connection, desk_of(request).now())
    figures = work.figures
    return JSONResponse(
        {
            "jobs": {status.value: count for status, count in figures.jobs.items()},
            "due": figures.queue.due,
            "lag_seconds": figures.queue.lag,
            "repeated": figures.reprocessing.repeated,
            "waiting": plain(work.waiting),
        }
    )


@router.get(
    "/sites",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": SitesAnswer}, **problems(401, 403, 503)},
)
def sites(request: Request) -> JSONResponse:
    """Websites, how their PDFs are found, and how well that works."""
    with looking(request):
        library = desk_of(request).library
    return JSONResponse({"sites": plain(site_health(library))})


@router.get(
    "/indexes",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": IndexesAnswer}, **problems(401, 403, 503)},
)
def indexes(request: Request) -> JSONResponse:
    """Indexes on the object store, their sizes, and who compiles a shard of them."""
    with looking(request):
        library = desk_of(request).library
    return JSONResponse(plain(index_health(library)))


@router.get(
    "/audits",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": AuditPage}, **problems(401, 403, 422, 503)},
)
def list_audits(
    request: Request,
    *,
    source: Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")] = None,
    before: Annotated[int | None, Query(ge=1, le=LAST_ID)] = None,
    limit: Limit = 50,
) -> JSONResponse:
    """What audits found, the newest first."""
    with looking(request) as connection:
        found = audit.history(connection, source=source, before=before, limit=limit + 1)
    page, is_last = found[:limit], len(found) <= limit
    return JSONResponse({"audits": plain(page), "next_before": None if is_last else page[-1].id})


def _queue(request: Request, queue: QueueName) -> JSONResponse:
    with looking(request) as connection:
        found = backlog(connection, queue, desk_of(request).now())
    return JSONResponse({"queue": plain(found)})

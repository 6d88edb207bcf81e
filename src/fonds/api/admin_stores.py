"""For those who run the library: queues, uploads, websites, indexes, results of audits."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse

from fonds.api.admin import Limit, looking
from fonds.api.admin_answers import (
    AT,
    LAST_ID,
    AuditPage,
    EmbeddingQueueAnswer,
    IndexesAnswer,
    QueueAnswer,
    SitesAnswer,
    UploadsAnswer,
    plain,
)
from fonds.api.admin_figures import index_health, site_health, upload_work
from fonds.api.answers import BEARER_OR_NOBODY, problems
from fonds.api.desk import desk_of
from fonds.runs import audits
from fonds.runs.backlog import backlog, embedding_work
from fonds.runs.commands import QueueName

router: Final = APIRouter(prefix=AT, tags=["admin"])


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
        found = audits.history(connection, source=source, before=before, limit=limit + 1)
    page, is_last = found[:limit], len(found) <= limit
    return JSONResponse({"audits": plain(page), "next_before": None if is_last else page[-1].id})


def _queue(request: Request, queue: QueueName) -> JSONResponse:
    with looking(request) as connection:
        found = backlog(connection, queue, desk_of(request).now())
    return JSONResponse({"queue": plain(found)})

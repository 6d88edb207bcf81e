"""Jobs over HTTP: where each of them stands, all of mine, once more, one step further."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query, Request
from sqlalchemy import Connection, Row, Select, bindparam, select
from starlette.responses import JSONResponse

from fonds.api.advancing import advance_job
from fonds.api.answers import BEARER, Advance, JobAnswer, JobPage, UploadId, problems
from fonds.api.desk import desk_of, require_scope, unknown_job
from fonds.api.idempotency import Answer, Key, once, respond
from fonds.api.problems import ProblemError
from fonds.stores.columns import format_timestamp
from fonds.stores.tables import upload_jobs
from fonds.uploads.intake import retry_upload
from fonds.uploads.jobs import Job, job_of, page_of_jobs
from fonds.uploads.states import ENDED, FAILURES, JobStatus
from fonds.uploads.users import Caller

MOST_JOBS: Final = 200

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_job: Final = upload_jobs.c
# Not the whole row: the map of a long text is long.
_SHOWN: Final[Select[Any]] = select(
    _job.job_id,
    _job.user_id,
    _job.document_id,
    _job.status,
    _job.name,
    _job.format,
    _job.bytes,
    _job.raw_sha256,
    _job.parser,
    _job.progress,
    _job.retry_count,
    _job.next_attempt_at,
    _job.last_error,
    _job.arrived_at,
    _job.first_embedded_at,
    _job.created_at,
    _job.updated_at,
).where(_job.document_id == bindparam("document"))

router: Final = APIRouter(tags=["jobs"])


@router.get(
    "/jobs/{document_id}",
    openapi_extra=BEARER,
    responses={200: {"model": JobAnswer}, **problems(401, 404, 422, 503)},
)
def get_job(request: Request, document_id: UploadId) -> JSONResponse:
    """Where an upload stands."""
    desk = desk_of(request)
    with desk.library.database.read() as connection:
        caller = desk.known_caller(request, connection)
        row = shown_job(connection, caller, document_id)
    return JSONResponse(job_answer(row))


@router.get(
    "/jobs",
    openapi_extra=BEARER,
    responses={200: {"model": JobPage}, **problems(401, 403, 422, 503)},
)
def list_jobs(
    request: Request,
    *,
    status: Annotated[list[JobStatus], Query(max_length=20)] = [],  # noqa: B006 — never changed
    limit: Annotated[int, Query(ge=1, le=MOST_JOBS)] = 50,
    cursor: Annotated[
        str | None,
        Query(
            pattern=r"^[0-9]{13}-[0-9a-f]{32}$",
            description="The `next_cursor` of the page before.",
        ),
    ] = None,
    everybody: Annotated[
        bool, Query(alias="all", description="Jobs of all users; needs the scope admin.")
    ] = False,
) -> JSONResponse:
    """Your uploads, the newest first."""
    desk = desk_of(request)
    with desk.library.database.read() as connection:
        caller = desk.known_caller(request, connection)
        if everybody:
            require_scope(caller, "admin")
        found = page_of_jobs(
            connection,
            user_id=None if everybody else caller.user_id,
            statuses=status,
            before=_read_cursor(cursor) if cursor else None,
            limit=limit + 1,
        )
    page = found[:limit]
    is_last = len(found) <= limit
    return JSONResponse(
        {
            "jobs": [job_answer(job) for job in page],
            "next_cursor": None if is_last else _cursor(page[-1]),
        }
    )


@router.post(
    "/jobs/{document_id}/retry",
    status_code=202,
    openapi_extra=BEARER,
    responses={202: {"model": JobAnswer}, **problems(401, 404, 409, 413, 422, 503)},
)
def retry_job(request: Request, document_id: UploadId, idempotency_key: Key = None) -> JSONResponse:
    """Send a failed upload back to its last good stage."""
    desk = desk_of(request)
    caller = desk.caller(request)

    def work() -> Answer:
        with desk.library.database.read() as connection:
            job = job_of(connection, UUID(document_id), user_id=_whose(caller, "admin"))
        if job is None:
            raise unknown_job()
        if job.status not in FAILURES:
            raise ProblemError(
                409,
                "not-failed",
                f"only a job that failed can be retried; this one is {job.status}",
            )
        by = f"{'user' if job.user_id == caller.user_id else 'admin'}:{caller.user_id}"
        return Answer(status=202, body=job_answer(retry_upload(desk.shelf, job, by=by)))

    answer, is_replayed = once(desk, request, caller.user_id, idempotency_key, work)
    headers = {"Location": f"/jobs/{document_id}"}
    return respond(answer, is_replayed=is_replayed, headers=headers)


@router.post(
    "/jobs/{document_id}/advance",
    openapi_extra=BEARER,
    responses={200: {"model": JobAnswer}, **problems(400, 401, 403, 404, 409, 413, 422, 503)},
)
def advance(request: Request, document_id: UploadId, wanted: Advance) -> JSONResponse:
    """Move a job on, if what the move promises is in the database; needs the scope service."""
    desk = desk_of(request)
    caller = desk.caller(request)
    require_scope(caller, "service")
    moved = advance_job(desk.shelf, UUID(document_id), wanted.to, by=f"service:{caller.user_id}")
    if moved is None:
        raise unknown_job()
    return JSONResponse(job_answer(moved))


def shown_job(connection: Connection, caller: Caller, document_id: str) -> Row[Any]:
    """As much of a job as is shown; those who run the place see where any of them stands."""
    row = connection.execute(_SHOWN, {"document": UUID(document_id)}).one_or_none()
    whose = _whose(caller, "admin", "service")
    if row is None or (whose is not None and row.user_id != whose):
        raise unknown_job()
    return row


def _whose(caller: Caller, *overseers: str) -> UUID | None:
    return None if caller.scope in overseers else caller.user_id


def job_answer(job: Job | Row[Any]) -> dict[str, Any]:
    """A job as clients see it."""
    return {
        "job_id": str(job.job_id),
        "document_id": str(job.document_id),
        "status": job.status,
        "ended": job.status in ENDED,
        "name": job.name,
        "format": job.format,
        "bytes": job.bytes,
        "sha256": job.raw_sha256,
        "parser": job.parser,
        "progress": job.progress,
        "retry_count": job.retry_count,
        "next_attempt_at": _moment(job.next_attempt_at),
        "last_error": job.last_error,
        "created_at": _moment(job.created_at),
        "arrived_at": _moment(job.arrived_at),
        "first_embedded_at": _moment(job.first_embedded_at),
        "updated_at": _moment(job.updated_at),
        "links": _links(str(job.document_id), job.status),
    }


def _links(document_id: str, status: str) -> dict[str, str]:
    at = f"/jobs/{document_id}"
    links = {"self": at, "events": f"{at}/events"}
    if status == JobStatus.UPLOADED:
        links["complete"] = f"/uploads/{document_id}/complete"
    elif status == JobStatus.COMPLETE:
        links["document"] = f"/api/documents/upload:{document_id}"
        links["raw"] = f"/api/documents/upload:{document_id}/raw"
    elif status in FAILURES:
        links["retry"] = f"{at}/retry"
    return links


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)


def _cursor(job: Job) -> str:
    milliseconds = (job.created_at - _EPOCH) // timedelta(milliseconds=1)
    return f"{milliseconds:013}-{job.job_id.hex}"


def _read_cursor(cursor: str) -> tuple[datetime, UUID]:
    milliseconds, _, job_id = cursor.partition("-")
    return _EPOCH + timedelta(milliseconds=int(milliseconds)), UUID(job_id)

"""Routes for upload jobs: status, list, retry and advance.

A service that did the work of a stage itself may advance a job. What the stage must have stored is
checked as for a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query, Request
from sqlalchemy import Connection, Row, Select, bindparam, select, type_coerce
from starlette.responses import JSONResponse

from fonds import ids
from fonds.api.dependencies import app_state, require_scope, unknown_job
from fonds.api.idempotency import Key, StoredResponse, once, respond
from fonds.api.problems import ProblemError
from fonds.api.schemas import (
    BEARER,
    Advance,
    Cursor,
    JobPage,
    JobResponse,
    UploadId,
    decode_cursor,
    encode_cursor,
    problems,
)
from fonds.context import Context
from fonds.errors import BlobMissingError, GateError, LeaseLostError
from fonds.model import NormalizedBody
from fonds.results import Reading
from fonds.runs.normalization import chunker_label, passages_of_text
from fonds.stores.columns import Json, format_timestamp
from fonds.stores.passages import staged, staged_hashes
from fonds.stores.tables import upload_jobs
from fonds.stores.vectors import current_generation
from fonds.uploads.intake import retry_upload
from fonds.uploads.jobs import Job, job_of, move, page_of_jobs
from fonds.uploads.live_workers import NO_WORKER, is_stuck
from fonds.uploads.parsing import read_parsed
from fonds.uploads.states import ENDED, FAILURES, MOVES, JobStatus, check_embedded
from fonds.uploads.titles import title_of
from fonds.uploads.users import Caller

_Check = Callable[[Connection, Job, "_PreparedText"], dict[str, Any]]
"""Raises GateError if the result of a stage is not stored; returns the columns to update."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _PreparedText:
    """Text and passages, prepared before the transaction because that takes time."""

    now: datetime
    chunker: str
    passages: Mapping[int, str] = field(default_factory=dict)
    """The hash of each passage that the text has."""


def advance_job(context: Context, document_id: UUID, to: JobStatus, *, by: str) -> Job | None:
    """Change the status of a job after checking it; None if there is no such job."""
    with context.database.read() as connection:
        before = job_of(connection, document_id)
    if before is None:
        return None
    _check_move(before, to)
    prepared = _prepare(context, before, to)
    with context.database.write() as connection:
        job = job_of(connection, document_id, to_write=True)
        if job is None or _version_of(job) != _version_of(before):
            raise LeaseLostError(
                f"job {before.job_id} changed in the meantime; nothing was written"
            )
        columns = _CHECKS[to](connection, job, prepared)
        return move(
            connection,
            job,
            to,
            by=by,
            why="advanced from outside",
            now=prepared.now,
            lease_owner=None,
            lease_until=None,
            **columns,
        )


def _prepare(context: Context, job: Job, to: JobStatus) -> _PreparedText:
    label, passages = chunker_label(context.chunker), {}
    if to in _NEED_TEXT:
        text = _text(context, job)
        if to is JobStatus.CHUNKS_STORED:
            name = ids.upload_id(job.document_id)
            chunking = passages_of_text(name, title_of(text, job.name), None, text, context.chunker)
            passages = {chunk.ordinal: ids.chunk_sha(chunk.text) for chunk in chunking.chunks}
    return _PreparedText(now=context.seams.clock.now(), chunker=label, passages=passages)


def _text(context: Context, job: Job) -> NormalizedBody:
    if job.parsed_path is None or job.parsed_sha256 is None:
        raise GateError("no parsed text is stored")
    try:
        return read_parsed(context.blobs, job)
    except BlobMissingError:
        raise GateError("the parsed text is not in the store") from None


def _version_of(job: Job) -> tuple[JobStatus, str | None, str | None]:
    return job.status, job.parsed_path, job.parsed_sha256


def _check_move(job: Job, to: JobStatus) -> None:
    if to not in MOVES[job.status]:
        raise ProblemError(409, "illegal-move", f"a job cannot change from {job.status} to {to}")
    if job.status in FAILURES:
        raise ProblemError(409, "use-retry", "a failed job can only be retried")
    if to not in _CHECKS:
        raise ProblemError(409, "not-by-hand", f"only the worker can change a job to {to}")


def _has_arrived(_connection: Connection, job: Job, _prepared: _PreparedText) -> dict[str, Any]:
    if job.arrived_at is None:
        raise GateError("the file has not arrived: send it and complete the upload")
    return {}


def _is_parsed(_connection: Connection, _job: Job, _prepared: _PreparedText) -> dict[str, Any]:
    return {}


def _can_be_chunked(_connection: Connection, _job: Job, prepared: _PreparedText) -> dict[str, Any]:
    return {"chunks_version": prepared.chunker}


def _is_chunked(connection: Connection, job: Job, prepared: _PreparedText) -> dict[str, Any]:
    stored, count = staged_hashes(connection, job.document_id), len(prepared.passages)
    if stored != prepared.passages:
        raise GateError(f"{len(stored)} passages are stored, but the text has {count}")
    return {
        "chunks_version": prepared.chunker,
        "progress": {"chunks_total": count, "chunks_done": count},
        "chunked_at": prepared.now,
    }


def _has_model(connection: Connection, job: Job, _prepared: _PreparedText) -> dict[str, Any]:
    generation = current_generation(connection)
    if generation is None:
        raise GateError("there is no embedding model yet")
    return {
        "embed_model": generation.name,
        "embed_version": generation.version,
        "progress": {**(job.progress or {}), "embeds_total": _total(job), "embeds_done": 0},
    }


def _has_vectors(connection: Connection, job: Job, prepared: _PreparedText) -> dict[str, Any]:
    passages, vectors = _counts(connection, job)
    if not vectors:
        raise GateError(f"none of the {passages} passages has a vector")
    return {
        "progress": {**(job.progress or {}), "embeds_done": vectors},
        "first_embedded_at": job.first_embedded_at or prepared.now,
    }


def _is_embedded(connection: Connection, job: Job, prepared: _PreparedText) -> dict[str, Any]:
    check_embedded(*_counts(connection, job), _total(job))
    return _has_vectors(connection, job, prepared)


def _counts(connection: Connection, job: Job) -> tuple[int, int]:
    if job.embed_model is None or job.embed_version is None:
        raise GateError("this job has no embedding model")
    counts = staged(connection, job.document_id, job.embed_model, job.embed_version)
    return counts.passages, counts.vectors


def _total(job: Job) -> int:
    return (job.progress or {}).get("chunks_total", 0)


_CHECKS: Final[Mapping[JobStatus, _Check]] = {
    JobStatus.PARSE_QUEUED: _has_arrived,
    JobStatus.PARSED: _is_parsed,
    JobStatus.PARSE_VALIDATED: _is_parsed,
    JobStatus.CHUNKING: _can_be_chunked,
    JobStatus.CHUNKS_STORED: _is_chunked,
    JobStatus.EMBEDDING_QUEUED: _has_model,
    JobStatus.EMBEDDING_IN_PROGRESS: _has_vectors,
    JobStatus.EMBEDDINGS_STORED: _is_embedded,
}
_NEED_TEXT: Final = frozenset(
    {JobStatus.PARSED, JobStatus.PARSE_VALIDATED, JobStatus.CHUNKING, JobStatus.CHUNKS_STORED}
)


MAX_JOBS: Final = 200

_job: Final = upload_jobs.c
# Without the map of the text, which can be large.
_STATUS_QUERY: Final[Select[Any]] = select(
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
    type_coerce(_job.parsed_map["reading"], Json).label("reading"),
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
    responses={200: {"model": JobResponse}, **problems(401, 404, 422, 503)},
)
def get_job(request: Request, document_id: UploadId) -> JSONResponse:
    """The status of an upload."""
    app = app_state(request)
    with app.library.database.read() as connection:
        caller = app.require_caller(request, connection)
        row = visible_job(connection, caller, document_id)
        notice = job_notice(connection, row, app.now())
    return JSONResponse(job_json(row, notice=notice))


@router.get(
    "/jobs",
    openapi_extra=BEARER,
    responses={200: {"model": JobPage}, **problems(401, 403, 422, 503)},
)
def list_jobs(
    request: Request,
    *,
    status: Annotated[list[JobStatus], Query(max_length=20)] = [],  # noqa: B006 — never changed
    limit: Annotated[int, Query(ge=1, le=MAX_JOBS)] = 50,
    cursor: Cursor = None,
    all_users: Annotated[
        bool, Query(alias="all", description="Jobs of all users; requires the scope admin.")
    ] = False,
) -> JSONResponse:
    """Your uploads, newest first."""
    app = app_state(request)
    with app.library.database.read() as connection:
        caller = app.require_caller(request, connection)
        if all_users:
            require_scope(caller, "admin")
        jobs = page_of_jobs(
            connection,
            user_id=None if all_users else caller.user_id,
            statuses=status,
            before=decode_cursor(cursor) if cursor else None,
            limit=limit + 1,
        )
    page = jobs[:limit]
    is_last = len(jobs) <= limit
    return JSONResponse(
        {
            "jobs": [job_json(job) for job in page],
            "next_cursor": None if is_last else encode_cursor(page[-1].created_at, page[-1].job_id),
        }
    )


@router.post(
    "/jobs/{document_id}/retry",
    status_code=202,
    openapi_extra=BEARER,
    responses={202: {"model": JobResponse}, **problems(401, 404, 409, 413, 422, 503)},
)
def retry_job(request: Request, document_id: UploadId, idempotency_key: Key = None) -> JSONResponse:
    """Retry a failed upload from its last successful stage."""
    app = app_state(request)
    caller = app.caller(request)

    def work() -> StoredResponse:
        with app.library.database.read() as connection:
            job = job_of(connection, UUID(document_id), user_id=_visible_user(caller, "admin"))
        if job is None:
            raise unknown_job()
        if job.status not in FAILURES:
            raise ProblemError(
                409,
                "not-failed",
                f"only failed jobs can be retried; this one is {job.status}",
            )
        by = f"{'user' if job.user_id == caller.user_id else 'admin'}:{caller.user_id}"
        return StoredResponse(status=202, body=job_json(retry_upload(app.context, job, by=by)))

    response, is_replayed = once(app, request, caller.user_id, idempotency_key, work)
    headers = {"Location": f"/jobs/{document_id}"}
    return respond(response, is_replayed=is_replayed, headers=headers)


@router.post(
    "/jobs/{document_id}/advance",
    openapi_extra=BEARER,
    responses={200: {"model": JobResponse}, **problems(400, 401, 403, 404, 409, 413, 422, 503)},
)
def advance(request: Request, document_id: UploadId, target: Advance) -> JSONResponse:
    """Advance a job if the result of the stage is stored; requires the scope service."""
    app = app_state(request)
    caller = app.caller(request)
    require_scope(caller, "service")
    job = advance_job(app.context, UUID(document_id), target.to, by=f"service:{caller.user_id}")
    if job is None:
        raise unknown_job()
    return JSONResponse(job_json(job))


def visible_job(connection: Connection, caller: Caller, document_id: str) -> Row[Any]:
    """The status columns of a job; 404 unless the caller may see it."""
    row = connection.execute(_STATUS_QUERY, {"document": UUID(document_id)}).one_or_none()
    user_id = _visible_user(caller, "admin", "service")
    if row is None or (user_id is not None and row.user_id != user_id):
        raise unknown_job()
    return row


def _visible_user(caller: Caller, *scopes: str) -> UUID | None:
    return None if caller.scope in scopes else caller.user_id


def job_notice(connection: Connection, job: Job | Row[Any], now: datetime) -> str | None:
    """The notice for the user of a job that nothing works on."""
    return NO_WORKER if is_stuck(connection, [job], now) else None


def job_json(job: Job | Row[Any], *, notice: str | None = None) -> dict[str, Any]:
    """The JSON of a job."""
    stored = (job.parsed_map or {}).get("reading") if isinstance(job, Job) else job.reading
    reading = Reading.model_validate(stored) if stored else None
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
        "reading": reading and reading.model_dump(mode="json"),
        "retry_count": job.retry_count,
        "next_attempt_at": _timestamp(job.next_attempt_at),
        "last_error": job.last_error,
        "notice": notice,
        "created_at": _timestamp(job.created_at),
        "arrived_at": _timestamp(job.arrived_at),
        "first_embedded_at": _timestamp(job.first_embedded_at),
        "updated_at": _timestamp(job.updated_at),
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


def _timestamp(at: datetime | None) -> str | None:
    return None if at is None else format_timestamp(at)

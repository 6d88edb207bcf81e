"""Jobs over HTTP: where each of them stands, all of mine, once more, one step further.

Moving a job on from outside: only where its writes are there already.

A service that did a stage's work itself, or found it done, may say so; what it says is checked as
the worker's own work is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query, Request
from sqlalchemy import Connection, Row, Select, bindparam, select
from starlette.responses import JSONResponse

from fonds import ids
from fonds.api.dependencies import desk_of, require_scope, unknown_job
from fonds.api.idempotency import Key, StoredResponse, once, respond
from fonds.api.problems import ProblemError
from fonds.api.schemas import BEARER, Advance, JobAnswer, JobPage, UploadId, problems
from fonds.context import Context
from fonds.errors import BlobMissingError, GateError, LeaseLostError
from fonds.model import NormalizedBody
from fonds.runs.normalization import chunker_label, passages_of_text
from fonds.stores.columns import format_timestamp
from fonds.stores.passages import staged, staged_hashes
from fonds.stores.tables import upload_jobs
from fonds.stores.vectors import current_generation
from fonds.uploads.intake import retry_upload
from fonds.uploads.jobs import Job, job_of, move, page_of_jobs
from fonds.uploads.parsing import read_parsed
from fonds.uploads.states import ENDED, FAILURES, MOVES, JobStatus, check_embedded
from fonds.uploads.users import Caller

_Check = Callable[[Connection, Job, "_PreparedText"], dict[str, Any]]
"""Refuses a move whose writes are not there; gives the columns that go with it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _PreparedText:
    """What was found before the transaction, as reading and cutting a text takes its time."""

    now: datetime
    chunker: str
    passages: Mapping[int, str] = field(default_factory=dict)
    """The hash of each passage that the text has."""


def advance_job(context: Context, document_id: UUID, to: JobStatus, *, by: str) -> Job | None:
    """Move a job, if it may and can; None where there is none."""
    with context.database.read() as connection:
        seen = job_of(connection, document_id)
    if seen is None:
        return None
    _check_move(seen, to)
    found = _look(context, seen, to)
    with context.database.write() as connection:
        job = job_of(connection, document_id, to_write=True)
        if job is None or _what_counts(job) != _what_counts(seen):
            raise LeaseLostError(f"job {seen.job_id} has moved on; nothing was written")
        columns = _CHECKS[to](connection, job, found)
        return move(
            connection,
            job,
            to,
            by=by,
            why="advanced from outside",
            now=found.now,
            lease_owner=None,
            lease_until=None,
            **columns,
        )


def _look(context: Context, job: Job, to: JobStatus) -> _PreparedText:
    label, passages = chunker_label(context.chunker), {}
    if to in _NEED_TEXT:
        text = _text(context, job)
        if to is JobStatus.CHUNKS_STORED:
            name = ids.upload_id(job.document_id)
            cut = passages_of_text(name, job.name, None, text, context.chunker)
            passages = {chunk.ordinal: ids.chunk_sha(chunk.text) for chunk in cut.chunks}
    return _PreparedText(now=context.seams.clock.now(), chunker=label, passages=passages)


def _text(context: Context, job: Job) -> NormalizedBody:
    if job.parsed_path is None or job.parsed_sha256 is None:
        raise GateError("no parsed text is stored")
    try:
        return read_parsed(context.blobs, job)
    except BlobMissingError:
        raise GateError("the parsed text is not in the store") from None


def _what_counts(job: Job) -> tuple[JobStatus, str | None, str | None]:
    return job.status, job.parsed_path, job.parsed_sha256


def _check_move(job: Job, to: JobStatus) -> None:
    if to not in MOVES[job.status]:
        raise ProblemError(409, "illegal-move", f"a job cannot move from {job.status} to {to}")
    if job.status in FAILURES:
        raise ProblemError(409, "use-retry", "a job that failed is sent back by its retry")
    if to not in _CHECKS:
        raise ProblemError(409, "not-by-hand", f"only the worker itself moves a job to {to}")


def _has_come(_connection: Connection, job: Job, _found: _PreparedText) -> dict[str, Any]:
    if job.arrived_at is None:
        raise GateError("the file has not come: complete the upload")
    return {}


def _is_parsed(_connection: Connection, _job: Job, _found: _PreparedText) -> dict[str, Any]:
    return {}


def _can_be_cut(_connection: Connection, _job: Job, found: _PreparedText) -> dict[str, Any]:
    return {"chunks_version": found.chunker}


def _is_cut(connection: Connection, job: Job, found: _PreparedText) -> dict[str, Any]:
    held, count = staged_hashes(connection, job.document_id), len(found.passages)
    if held != found.passages:
        raise GateError(f"{len(held)} passages are stored, and not the {count} that the text has")
    return {
        "chunks_version": found.chunker,
        "progress": {"chunks_total": count, "chunks_done": count},
        "chunked_at": found.now,
    }


def _has_model(connection: Connection, job: Job, _found: _PreparedText) -> dict[str, Any]:
    generation = current_generation(connection)
    if generation is None:
        raise GateError("there is no model yet that passages could wait for")
    return {
        "embed_model": generation.name,
        "embed_version": generation.version,
        "progress": {**(job.progress or {}), "embeds_total": _total(job), "embeds_done": 0},
    }


def _has_vectors(connection: Connection, job: Job, found: _PreparedText) -> dict[str, Any]:
    passages, vectors = _counts(connection, job)
    if not vectors:
        raise GateError(f"none of {passages} passages has a vector")
    return {
        "progress": {**(job.progress or {}), "embeds_done": vectors},
        "first_embedded_at": job.first_embedded_at or found.now,
    }


def _is_embedded(connection: Connection, job: Job, found: _PreparedText) -> dict[str, Any]:
    check_embedded(*_counts(connection, job), _total(job))
    return _has_vectors(connection, job, found)


def _counts(connection: Connection, job: Job) -> tuple[int, int]:
    if job.embed_model is None or job.embed_version is None:
        raise GateError("no model was chosen for this job")
    found = staged(connection, job.document_id, job.embed_model, job.embed_version)
    return found.passages, found.vectors


def _total(job: Job) -> int:
    return (job.progress or {}).get("chunks_total", 0)


_CHECKS: Final[Mapping[JobStatus, _Check]] = {
    JobStatus.PARSE_QUEUED: _has_come,
    JobStatus.PARSED: _is_parsed,
    JobStatus.PARSE_VALIDATED: _is_parsed,
    JobStatus.CHUNKING: _can_be_cut,
    JobStatus.CHUNKS_STORED: _is_cut,
    JobStatus.EMBEDDING_QUEUED: _has_model,
    JobStatus.EMBEDDING_IN_PROGRESS: _has_vectors,
    JobStatus.EMBEDDINGS_STORED: _is_embedded,
}
_NEED_TEXT: Final = frozenset(
    {JobStatus.PARSED, JobStatus.PARSE_VALIDATED, JobStatus.CHUNKING, JobStatus.CHUNKS_STORED}
)


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

    def work() -> StoredResponse:
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
        return StoredResponse(status=202, body=job_answer(retry_upload(desk.context, job, by=by)))

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
    moved = advance_job(desk.context, UUID(document_id), wanted.to, by=f"service:{caller.user_id}")
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

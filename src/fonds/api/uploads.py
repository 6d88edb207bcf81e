"""Routes for uploads, signed file addresses and the webhook of the external parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote
from uuid import UUID

import anyio
import anyio.to_thread
from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from sqlalchemy import select
from starlette.responses import JSONResponse, Response, StreamingResponse

from fonds import ids
from fonds.api.dependencies import AppState, app_state, unknown_job
from fonds.api.idempotency import Key, StoredResponse, once, respond
from fonds.api.jobs import job_json
from fonds.api.problems import ProblemError
from fonds.api.schemas import (
    BEARER,
    MAX_ID_LENGTH,
    TEXT_PATTERN,
    FileRequest,
    JobResponse,
    Payload,
    UploadId,
    UploadResponse,
    WebhookResponse,
    problems,
    schema_of,
)
from fonds.api.spools import CHUNK_BYTES, spooled
from fonds.errors import BlobMissingError
from fonds.stores.blobs import Blobs, Method, read_reference
from fonds.stores.tables import upload_jobs
from fonds.uploads.deletion import delete_upload
from fonds.uploads.files import FORMATS
from fonds.uploads.intake import UploadRequest, begin_upload, complete_upload, staging_key
from fonds.uploads.jobs import Job, job_of
from fonds.uploads.states import JobStatus
from fonds.uploads.users import Caller
from fonds.uploads.webhook import Effect, check_headers, receive_webhook

MAX_WEBHOOK_BYTES: Final = 64 * 1024 * 1024
_WEBHOOK_CONCURRENCY: Final = 2
"""Webhooks read into memory at a time."""
_CREATED: Final = 201

router: Final = APIRouter(tags=["uploads"])


@router.post(
    "/uploads",
    status_code=201,
    openapi_extra=BEARER,
    responses={
        201: {"model": UploadResponse, "description": "A new upload."},
        200: {
            "model": UploadResponse,
            "description": "You have uploaded these bytes before; this is their job.",
        },
        **problems(400, 401, 409, 413, 422, 429, 503),
    },
)
def begin(request: Request, file: FileRequest, idempotency_key: Key = None) -> JSONResponse:
    """Announce a file and get the address to send it to, valid for five minutes."""
    app = app_state(request)
    caller, is_repeated = _caller_and_repetition(app, request, file.sha256)

    def work() -> StoredResponse:
        announced = UploadRequest(name=file.name, size=file.bytes, sha256=file.sha256)
        job = begin_upload(app.context, app.library.settings, caller.user_id, announced)
        return StoredResponse(status=200 if is_repeated else _CREATED, body=job_json(job))

    response, is_replayed = once(
        app, request, caller.user_id, idempotency_key, work, content=file.model_dump()
    )
    if response.status <= _CREATED:
        response = _with_address(app, request, response)
        headers = {"Location": response.body["links"]["self"]}
        return respond(response, is_replayed=is_replayed, headers=headers)
    return respond(response, is_replayed=is_replayed, headers={})


@router.post(
    "/uploads/{document_id}/complete",
    openapi_extra=BEARER,
    responses={200: {"model": JobResponse}, **problems(401, 404, 409, 413, 422, 503)},
)
def complete(request: Request, document_id: UploadId, idempotency_key: Key = None) -> JSONResponse:
    """Complete an upload: the file is checked against its announcement and queued."""
    app = app_state(request)
    caller = app.caller(request)

    def work() -> StoredResponse:
        with app.library.database.read() as connection:
            job = job_of(connection, UUID(document_id), user_id=caller.user_id)
        if job is None:
            raise unknown_job()
        done = complete_upload(app.context, app.library.settings, job)
        return StoredResponse(status=200, body=job_json(done))

    response, is_replayed = once(app, request, caller.user_id, idempotency_key, work)
    return respond(response, is_replayed=is_replayed, headers={})


@router.delete(
    "/uploads/{document_id}",
    status_code=204,
    openapi_extra=BEARER,
    responses={
        204: {"description": "It is deleted; back-ups made before keep it."},
        **problems(401, 404, 422, 503),
    },
)
def delete(request: Request, document_id: UploadId) -> Response:
    """Delete an upload with its file, text, passages and vectors; its job is stopped."""
    app = app_state(request)
    caller = app.caller(request)
    by = f"user:{caller.user_id}"
    if not delete_upload(app.context, caller.user_id, UUID(document_id), by=by):
        raise unknown_job()
    return Response(status_code=204)


@router.post(
    "/webhooks/llamaparse",
    openapi_extra=schema_of(Payload),
    responses={200: {"model": WebhookResponse}, **problems(400, 401, 404, 408, 409, 413, 422, 503)},
)
async def webhook(request: Request) -> JSONResponse:
    """Receive the result of the external parser; it must be signed, recent and not a replay."""
    app = app_state(request)
    settings = app.library.settings
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw
    ]
    check_headers(headers, settings.webhook_secrets)
    spool = spooled(
        request,
        "webhook",
        sender="",
        folder=settings.home / "tmp",
        max_bytes=min(MAX_WEBHOOK_BYTES, settings.max_file_mib * 1024 * 1024),
    )
    async with spool as path, _webhook_slots(request):
        effect = await anyio.to_thread.run_sync(_receive, app, headers, path)
    return JSONResponse({"effect": effect})


def _receive(app: AppState, headers: list[tuple[str, str]], path: Path) -> Effect:
    return receive_webhook(app.context, app.library.settings, headers, path.read_bytes())


def _webhook_slots(request: Request) -> anyio.Semaphore:
    """Made by the first request, since a semaphore belongs to the running event loop."""
    state = request.app.state
    if not hasattr(state, "webhook_slots"):
        state.webhook_slots = anyio.Semaphore(_WEBHOOK_CONCURRENCY)
    slots: anyio.Semaphore = state.webhook_slots
    return slots


def _caller_and_repetition(app: AppState, request: Request, sha256: str) -> tuple[Caller, bool]:
    """The caller, and whether they have announced these bytes before."""
    with app.library.database.read() as connection:
        caller = app.require_caller(request, connection)
        uid = ids.upload_uid(caller.user_id, sha256)
        query = select(upload_jobs.c.job_id).where(upload_jobs.c.document_id == uid)
        return caller, connection.scalar(query) is not None


def _with_address(app: AppState, request: Request, response: StoredResponse) -> StoredResponse:
    """The response with a freshly signed address, if the file is still expected."""
    with app.library.database.read() as connection:
        job = job_of(connection, UUID(response.body["document_id"]))
    if job is None or job.status is not JobStatus.UPLOADED:
        return response
    return StoredResponse(
        status=response.status, body={**response.body, **_upload(app, request, job)}
    )


def _upload(app: AppState, request: Request, job: Job) -> dict[str, Any]:
    return {"upload": app.signed(request, "PUT", staging_key(job))}


_STAGED: Final = re.compile(
    r"incoming/[0-9a-f-]{36}/(?P<job>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_MEDIA_TYPES: Final = {
    **{each.extension: each.media_type for each in FORMATS.values()},
    "json": "application/json",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "zip": "application/zip",
    "csv": "text/csv",
    "htm": "text/html",
}
_UNKNOWN: Final = "application/octet-stream"
_UNSAFE_IN_NAME: Final = re.compile(r"[^ !#-\[\]-~]|[\\/]")

_Key = Annotated[
    str,
    PathParameter(min_length=1, max_length=2 * MAX_ID_LENGTH, pattern=TEXT_PATTERN),
]
_Expires = Annotated[int, Query(ge=0, le=2**40, description="Seconds since 1970.")]
_Signature = Annotated[str, Query(max_length=100)]
_Filename = Annotated[str | None, Query(max_length=1000)]

files_router: Final = APIRouter(tags=["files"])


@files_router.put(
    "/files/{key:path}",
    status_code=204,
    responses={
        204: {"description": "The file is stored; complete the upload."},
        **problems(400, 403, 404, 408, 409, 413, 422, 503),
    },
    openapi_extra={
        "requestBody": {"content": {_UNKNOWN: {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def put_file(
    request: Request, key: _Key, expires: _Expires, signature: _Signature
) -> Response:
    """Send the file of an upload to its signed address."""
    app = app_state(request)
    _check(app, "PUT", key, expires, signature)
    announced = await anyio.to_thread.run_sync(_announced, app, key)
    spool = spooled(
        request,
        "file",
        sender=key.split("/")[1],  # its user
        folder=app.library.settings.home / "tmp",
        max_bytes=announced,
    )
    async with spool as path:
        await anyio.to_thread.run_sync(_stage, app, key, path, announced)
    return Response(status_code=204)


@files_router.get(
    "/files/{key:path}",
    responses={
        200: {"content": {"*/*": {}}, "description": "The file."},
        206: {"content": {"*/*": {}}, "description": "A range of it."},
        **problems(403, 404, 416, 422, 503),
    },
)
def get_file(
    request: Request,
    key: _Key,
    expires: _Expires,
    signature: _Signature,
    filename: _Filename = None,
) -> Response:
    """Read a file at its signed address."""
    app = app_state(request)
    _check(app, "GET", key, expires, signature, filename=filename)
    blobs, headers = app.library.blobs, _headers(key, filename)
    if "#" in key:
        return Response(read_reference(blobs, key), headers=headers)
    info = blobs.head(key)
    if info is None:
        raise BlobMissingError(key)
    start, end, status = _range(request, info.size)
    headers |= {"ETag": f'"{info.etag.strip(chr(34))}"', "Accept-Ranges": "bytes"}
    headers["Content-Length"] = str(end - start)
    if status == 206:  # noqa: PLR2004 — Partial Content
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{info.size}"
    chunks = iter(()) if request.method == "HEAD" else _chunks(blobs, key, start, end)
    return StreamingResponse(chunks, status, headers)


files_router.add_api_route("/files/{key:path}", get_file, methods=["HEAD"], include_in_schema=False)


def _check(
    app: AppState, method: Method, key: str, expires: int, signature: str, **more: Any
) -> None:
    app.signer.check(method, key, expires, signature, app.now(), **more)


def _announced(app: AppState, key: str) -> int:
    """The announced size of the file with this key."""
    match = _STAGED.fullmatch(key)
    table = upload_jobs.c
    row = None
    if match is not None:
        query = select(table.status, table.bytes).where(table.job_id == UUID(match["job"]))
        with app.library.database.read() as connection:
            row = connection.execute(query).one_or_none()
    if row is None:
        raise ProblemError(404, "unknown-job", "no upload expects a file here")
    if row.status != JobStatus.UPLOADED:
        raise ProblemError(409, "not-awaited", "the file of this upload has already arrived")
    size: int = row.bytes
    return size


def _stage(app: AppState, key: str, path: Path, announced: int) -> None:
    size = path.stat().st_size
    if size != announced:
        raise ProblemError(
            400, "size-mismatch", f"{announced} bytes were announced, but {size} arrived"
        )
    app.library.blobs.put(key, path)
    try:
        _announced(app, key)
    except ProblemError:
        # The upload was completed with another file while this one was being sent.
        app.library.blobs.delete(key)
        raise


def _headers(key: str, filename: str | None) -> dict[str, str]:
    name = filename or key.rpartition("/")[2]
    safe_name = _UNSAFE_IN_NAME.sub("_", name)
    ending = key.partition("#")[0].rpartition(".")[2].lower()
    names = f"filename=\"{safe_name}\"; filename*=UTF-8''{quote(name)}"
    return {
        "Content-Type": _MEDIA_TYPES.get(ending, _UNKNOWN),
        "Content-Disposition": f"attachment; {names}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }


def _range(request: Request, size: int) -> tuple[int, int, int]:
    """Start, end and status of the response to a range request."""
    match = _RANGE.fullmatch(request.headers.get("range", ""))
    if match is None or not (match[1] or match[2]):
        return 0, size, 200  # an invalid range is ignored, as RFC 9110 allows
    if match[1]:
        start, end = int(match[1]), min(int(match[2] or size) + bool(match[2]), size)
    else:
        start, end = max(size - int(match[2]), 0), size
    if start >= end:
        raise ProblemError(
            416,
            "range",
            f"the file has {size} bytes",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, end, 206


def _chunks(blobs: Blobs, key: str, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        chunk = blobs.get_range(key, start, min(CHUNK_BYTES, end - start))
        if not chunk:
            raise BlobMissingError(key)
        yield chunk
        start += len(chunk)

"""Uploads over HTTP: announced, completed, and the webhook of the parser outside.

Our own signed addresses: files in and out of stores that give out none themselves.

Bodies too large for memory, taken in on disk, never more of them than allowed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote
from uuid import UUID

import anyio
import anyio.to_thread
from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from sqlalchemy import select
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response, StreamingResponse

from fonds import ids
from fonds.api.dependencies import AppState, desk_of, unknown_job
from fonds.api.idempotency import Key, StoredResponse, once, respond
from fonds.api.jobs import job_answer
from fonds.api.middleware import refuse_beyond
from fonds.api.problems import ProblemError
from fonds.api.schemas import (
    BEARER,
    LONGEST_ID,
    PLAIN_PATTERN,
    FileRequest,
    JobAnswer,
    Payload,
    UploadAnswer,
    UploadId,
    WebhookAnswer,
    problems,
    schema_of,
)
from fonds.errors import BlobMissingError
from fonds.stores.blobs import Blobs, Method, read_reference
from fonds.stores.tables import upload_jobs
from fonds.uploads.files import FORMATS
from fonds.uploads.intake import UploadRequest, begin_upload, complete_upload, staging_key
from fonds.uploads.jobs import Job, job_of
from fonds.uploads.states import JobStatus
from fonds.uploads.users import Caller
from fonds.uploads.webhook import Effect, receive_webhook

PIECE: Final = 1 << 20
"""Bytes that are written at once."""


@asynccontextmanager
async def spooled(request: Request, folder: Path, most: int) -> AsyncIterator[Path]:
    """The body of a request as a file that is gone afterwards; 413 beyond so many bytes."""
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit():
        refuse_beyond(most, int(announced[:18]))
    file = await anyio.to_thread.run_sync(_open, folder)
    try:
        await _fill(request, file, most)
        yield Path(file.name)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(file.close)


def _open(folder: Path) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.NamedTemporaryFile(dir=folder)


async def _fill(request: Request, file: Any, most: int) -> None:
    size, waiting = 0, bytearray()
    try:
        async for piece in request.stream():
            size += len(piece)
            refuse_beyond(most, size)
            waiting += piece
            if len(waiting) >= PIECE:
                await anyio.to_thread.run_sync(file.write, bytes(waiting))
                waiting.clear()
    except ClientDisconnect:
        raise ProblemError(400, "cut-short", "the connection ended before the body did") from None
    await anyio.to_thread.run_sync(_finish, file, bytes(waiting))


def _finish(file: Any, rest: bytes) -> None:
    file.write(rest)
    file.flush()


LARGEST_WEBHOOK: Final = 64 * 1024 * 1024
"""Bytes; text has far fewer than the file it was in."""
_AT_ONCE: Final = 2
"""Webhooks that are held in memory."""
_CREATED: Final = 201

router: Final = APIRouter(tags=["uploads"])


@router.post(
    "/uploads",
    status_code=201,
    openapi_extra=BEARER,
    responses={
        201: {"model": UploadAnswer, "description": "A file that was not known."},
        200: {"model": UploadAnswer, "description": "These bytes are known; this is their job."},
        **problems(400, 401, 409, 413, 422, 503),
    },
)
def begin(request: Request, claim: FileRequest, idempotency_key: Key = None) -> JSONResponse:
    """Announce a file, and learn where to send it; the address is good for five minutes."""
    desk = desk_of(request)
    caller, is_known = _known(desk, request, claim.sha256)

    def work() -> StoredResponse:
        said = UploadRequest(name=claim.name, size=claim.bytes, sha256=claim.sha256)
        job = begin_upload(desk.context, desk.library.settings, caller.user_id, said)
        return StoredResponse(status=200 if is_known else _CREATED, body=job_answer(job))

    answer, is_replayed = once(
        desk, request, caller.user_id, idempotency_key, work, asked=claim.model_dump()
    )
    if answer.status <= _CREATED:
        answer = _with_address(desk, request, answer)
        headers = {"Location": answer.body["links"]["self"]}
        return respond(answer, is_replayed=is_replayed, headers=headers)
    return respond(answer, is_replayed=is_replayed, headers={})


@router.post(
    "/uploads/{document_id}/complete",
    openapi_extra=BEARER,
    responses={200: {"model": JobAnswer}, **problems(401, 404, 409, 413, 422, 503)},
)
def complete(request: Request, document_id: UploadId, idempotency_key: Key = None) -> JSONResponse:
    """Say that the file is there: it is compared with what was announced, and queued."""
    desk = desk_of(request)
    caller = desk.caller(request)

    def work() -> StoredResponse:
        with desk.library.database.read() as connection:
            job = job_of(connection, UUID(document_id), user_id=caller.user_id)
        if job is None:
            raise unknown_job()
        done = complete_upload(desk.context, desk.library.settings, job)
        return StoredResponse(status=200, body=job_answer(done))

    answer, is_replayed = once(desk, request, caller.user_id, idempotency_key, work)
    return respond(answer, is_replayed=is_replayed, headers={})


@router.post(
    "/webhooks/llamaparse",
    openapi_extra=schema_of(Payload),
    responses={200: {"model": WebhookAnswer}, **problems(400, 401, 404, 409, 413, 422, 503)},
)
async def webhook(request: Request) -> JSONResponse:
    """Take the answer of the parser outside, if it is signed, fresh, new and true."""
    desk = desk_of(request)
    settings = desk.library.settings
    most = min(LARGEST_WEBHOOK, settings.max_file_mib * 1024 * 1024)
    async with spooled(request, settings.home / "tmp", most) as path, _turn(request):
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw
        ]
        effect = await anyio.to_thread.run_sync(_received, desk, headers, path)
    return JSONResponse({"effect": effect})


def _received(desk: AppState, headers: list[tuple[str, str]], path: Path) -> Effect:
    return receive_webhook(desk.context, desk.library.settings, headers, path.read_bytes())


def _turn(request: Request) -> anyio.Semaphore:
    """Of those who hold a webhook in memory; the loop that it belongs to runs by now."""
    state = request.app.state
    if not hasattr(state, "webhook_turns"):
        state.webhook_turns = anyio.Semaphore(_AT_ONCE)
    turns: anyio.Semaphore = state.webhook_turns
    return turns


def _known(desk: AppState, request: Request, sha256: str) -> tuple[Caller, bool]:
    """Who calls, and whether they have announced these bytes before."""
    with desk.library.database.read() as connection:
        caller = desk.known_caller(request, connection)
        uid = ids.upload_uid(caller.user_id, sha256)
        query = select(upload_jobs.c.job_id).where(upload_jobs.c.document_id == uid)
        return caller, connection.scalar(query) is not None


def _with_address(desk: AppState, request: Request, answer: StoredResponse) -> StoredResponse:
    """Where to send the file, if it is still awaited; signed anew where an answer is repeated."""
    with desk.library.database.read() as connection:
        job = job_of(connection, UUID(answer.body["document_id"]))
    if job is None or job.status is not JobStatus.UPLOADED:
        return answer
    return StoredResponse(status=answer.status, body={**answer.body, **_upload(desk, request, job)})


def _upload(desk: AppState, request: Request, job: Job) -> dict[str, Any]:
    return {"upload": desk.signed(request, "PUT", staging_key(job))}


_STAGED: Final = re.compile(
    r"incoming/[0-9a-f-]{36}/(?P<job>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_MEDIA_TYPES: Final = {
    **{one.extension: one.media_type for one in FORMATS.values()},
    "json": "application/json",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "zip": "application/zip",
    "csv": "text/csv",
    "htm": "text/html",
}
_UNKNOWN: Final = "application/octet-stream"
_NOT_IN_A_NAME: Final = re.compile(r"[^ !#-\[\]-~]|[\\/]")

_Key = Annotated[
    str,
    PathParameter(min_length=1, max_length=2 * LONGEST_ID, pattern=PLAIN_PATTERN),
]
_Expires = Annotated[int, Query(ge=0, le=2**40, description="Seconds since 1970.")]
_Signature = Annotated[str, Query(max_length=100)]
_Filename = Annotated[str | None, Query(max_length=1000)]

files_router: Final = APIRouter(tags=["files"])


@files_router.put(
    "/files/{key:path}",
    status_code=204,
    responses={
        204: {"description": "The file is there; complete the upload."},
        **problems(400, 403, 404, 409, 413, 422, 503),
    },
    openapi_extra={
        "requestBody": {"content": {_UNKNOWN: {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def put_file(
    request: Request, key: _Key, expires: _Expires, signature: _Signature
) -> Response:
    """Send the file of an upload to the address that was given out for it."""
    desk = desk_of(request)
    _check(desk, "PUT", key, expires, signature)
    announced = await anyio.to_thread.run_sync(_announced, desk, key)
    folder = desk.library.settings.home / "tmp"
    async with spooled(request, folder, announced) as path:
        await anyio.to_thread.run_sync(_stage, desk, key, path, announced)
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
    """Read a file at an address that was given out for it."""
    desk = desk_of(request)
    _check(desk, "GET", key, expires, signature, filename=filename)
    blobs, headers = desk.library.blobs, _headers(key, filename)
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
    pieces = iter(()) if request.method == "HEAD" else _pieces(blobs, key, start, end)
    return StreamingResponse(pieces, status, headers)


files_router.add_api_route("/files/{key:path}", get_file, methods=["HEAD"], include_in_schema=False)


def _check(
    desk: AppState, method: Method, key: str, expires: int, signature: str, **more: Any
) -> None:
    desk.signer.check(method, key, expires, signature, desk.now(), **more)


def _announced(desk: AppState, key: str) -> int:
    """How many bytes are awaited under a key."""
    named = _STAGED.fullmatch(key)
    table = upload_jobs.c
    row = None
    if named is not None:
        query = select(table.status, table.bytes).where(table.job_id == UUID(named["job"]))
        with desk.library.database.read() as connection:
            row = connection.execute(query).one_or_none()
    if row is None:
        raise ProblemError(404, "unknown-job", "no upload awaits a file here")
    if row.status != JobStatus.UPLOADED:
        raise ProblemError(409, "not-awaited", "the file of this upload has come already")
    size: int = row.bytes
    return size


def _stage(desk: AppState, key: str, path: Path, announced: int) -> None:
    size = path.stat().st_size
    if size != announced:
        raise ProblemError(
            400, "size-mismatch", f"{announced} bytes were announced, but {size} came"
        )
    desk.library.blobs.put(key, path)
    try:
        _announced(desk, key)
    except ProblemError:
        # It was completed with an earlier file, while this one was on its way.
        desk.library.blobs.delete(key)
        raise


def _headers(key: str, filename: str | None) -> dict[str, str]:
    name = filename or key.rpartition("/")[2]
    plain = _NOT_IN_A_NAME.sub("_", name)
    ending = key.partition("#")[0].rpartition(".")[2].lower()
    return {
        "Content-Type": _MEDIA_TYPES.get(ending, _UNKNOWN),
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }


def _range(request: Request, size: int) -> tuple[int, int, int]:
    """From where to where, and the status that says so."""
    asked = _RANGE.fullmatch(request.headers.get("range", ""))
    if asked is None or not (asked[1] or asked[2]):
        return 0, size, 200  # what cannot be read is no range, and the whole is always right
    if asked[1]:
        start, end = int(asked[1]), min(int(asked[2] or size) + bool(asked[2]), size)
    else:
        start, end = max(size - int(asked[2]), 0), size
    if start >= end:
        raise ProblemError(
            416,
            "range",
            f"the file has {size} bytes",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, end, 206


def _pieces(blobs: Blobs, key: str, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        piece = blobs.get_range(key, start, min(PIECE, end - start))
        if not piece:
            raise BlobMissingError(key)
        yield piece
        start += len(piece)

"""Our own signed addresses: files in and out of stores that give out none themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from sqlalchemy import select
from starlette.responses import Response, StreamingResponse

from fonds.api.answers import LONGEST_ID, PLAIN_PATTERN, problems
from fonds.api.desk import Desk, desk_of
from fonds.api.problems import ProblemError
from fonds.api.spooling import PIECE, spooled
from fonds.errors import BlobMissingError
from fonds.stores.blobs import Blobs, Method
from fonds.stores.body_refs import read_body
from fonds.stores.tables import upload_jobs
from fonds.uploads.files import FORMATS
from fonds.uploads.states import JobStatus

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
        return Response(read_body(blobs, key), headers=headers)
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


def _check(desk: Desk, method: Method, key: str, expires: int, signature: str, **more: Any) -> None:
    desk.signer.check(method, key, expires, signature, desk.now(), **more)


def _announced(desk: Desk, key: str) -> int:
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


def _stage(desk: Desk, key: str, path: Path, announced: int) -> None:
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

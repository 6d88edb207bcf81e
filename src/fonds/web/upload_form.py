"""Files of a form, stored one after another while the form is still arriving.

At most a chunk of the form is in memory, and at most one of its files in the temporary folder.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import anyio
import anyio.to_thread
from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from fonds import ids
from fonds.api.dependencies import LOCAL, NIL_ID, AppState, app_state
from fonds.api.middleware import refuse_beyond
from fonds.api.problems import ProblemError
from fonds.api.spools import CHUNK_BYTES, spool_slots
from fonds.errors import UploadRefusedError
from fonds.stores.permissions import make_private_folder
from fonds.uploads.intake import UploadRequest, begin_upload, complete_upload, staging_key
from fonds.uploads.jobs import Job, job_of
from fonds.uploads.states import FAILURES, JobStatus
from fonds.uploads.users import Caller, ensure_user
from fonds.web.rendering import FORM_KEY

MAX_FILES: Final = 50

_MAX_FIELD_LENGTH: Final = 2000
_OTHER_BYTES: Final = 256 * 1024
"""Bytes of a form in addition to its files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileOutcome:
    """The outcome for one file of a form."""

    name: str
    job: Job | None
    problem: str | None
    """Why it was rejected, for the user."""


@dataclass(kw_only=True, slots=True)
class _FormPart:
    """A part of a form that is arriving."""

    name: str
    filename: str | None
    file: Any = None
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)
    text: bytearray = field(default_factory=bytearray)


async def take_files(
    request: Request, caller: Caller, check: Callable[[str], None]
) -> list[FileOutcome]:
    """Store the files of a form; `check` verifies its key before any file is read."""
    settings = app_state(request).library.settings
    reader = _form_reader(request, caller, check)
    max_bytes = MAX_FILES * settings.max_file_mib * 1024 * 1024 + _OTHER_BYTES
    size, buffer = 0, bytearray()
    try:
        with spool_slots(request, "file").take(str(caller.user_id)):
            async for chunk in request.stream():
                size += len(chunk)
                refuse_beyond(max_bytes, size)
                buffer += chunk
                if len(buffer) >= CHUNK_BYTES:
                    await anyio.to_thread.run_sync(reader.feed, bytes(buffer))
                    buffer.clear()
            await anyio.to_thread.run_sync(reader.finish, bytes(buffer))
    except ClientDisconnect:
        raise ProblemError(
            400, "cut-short", "the connection closed before the whole form arrived"
        ) from None
    except FormParserError:
        raise _malformed() from None
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(reader.close)
    if not reader.outcomes:
        raise ProblemError(422, "no-file", "the form has no file: choose one first")
    return reader.outcomes


def _form_reader(request: Request, caller: Caller, check: Callable[[str], None]) -> _FormReader:
    kind, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise _malformed()
    try:
        return _FormReader(app_state(request), caller, check, boundary)
    except FormParserError:
        raise _malformed() from None


def _malformed() -> ProblemError:
    return ProblemError(400, "malformed", "this is not a form with files")


class _FormReader:
    """Parser of one form, in worker threads because it waits for disk and database."""

    def __init__(
        self, app: AppState, caller: Caller, check: Callable[[str], None], boundary: bytes
    ) -> None:
        self.outcomes: list[FileOutcome] = []
        self._app = app
        self._caller = caller
        self._check = check
        self._key: str | None = None
        self._is_checked = self._is_complete = False
        self._max_file_bytes = app.library.settings.max_file_mib * 1024 * 1024
        self._header: tuple[bytearray, bytearray] = bytearray(), bytearray()
        self._disposition = b""
        self._part: _FormPart | None = None
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._on_name,
                "on_header_value": self._on_value,
                "on_header_end": self._on_header,
                "on_headers_finished": self._open,
                "on_part_data": self._on_data,
                "on_part_end": self._end,
                "on_end": self._on_end,
            },
        )

    def feed(self, chunk: bytes) -> None:
        """Parse the next chunk."""
        self._parser.write(chunk)

    def finish(self, rest: bytes) -> None:
        """Parse the rest, and check that the form is complete."""
        self._parser.write(rest)
        if not self._is_complete:
            raise _malformed()
        self._require_own()

    def close(self) -> None:
        """Delete the temporary file, if there is one."""
        if self._part is not None and self._part.file is not None:
            self._part.file.close()

    def _begin(self) -> None:
        self._disposition = b""

    def _on_name(self, data: bytes, start: int, end: int) -> None:
        self._header[0].extend(data[start:end])

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1].extend(data[start:end])

    def _on_header(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = bytes(value)
        self._header = bytearray(), bytearray()

    def _open(self) -> None:
        _, options = parse_options_header(self._disposition)
        filename = options.get(b"filename")
        self._part = _FormPart(
            name=options.get(b"name", b"").decode("utf-8", "replace"),
            filename=None if filename is None else _read_name(filename),
        )
        # Browsers send a field without a file with an empty name.
        if self._part.filename:
            self._require_own()
            if len(self.outcomes) >= MAX_FILES:
                raise ProblemError(413, "too-many", f"a form may have at most {MAX_FILES} files")
            folder = self._app.library.settings.home / "tmp"
            make_private_folder(folder)
            self._part.file = tempfile.NamedTemporaryFile(dir=folder)  # noqa: SIM115 — closed in _end or close

    def _require_own(self) -> None:
        """Check the form key, which must precede the files."""
        if not self._is_checked:
            self._check(self._key or "")
            self._is_checked = True

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        assert part is not None
        part.size += end - start
        if part.file is None:
            refuse_beyond(_MAX_FIELD_LENGTH, part.size)
            part.text += data[start:end]
        elif part.size <= self._max_file_bytes:
            part.digest.update(data[start:end])
            part.file.write(data[start:end])

    def _end(self) -> None:
        part, self._part = self._part, None
        assert part is not None
        if part.file is not None:
            with part.file:
                part.file.flush()
                self.outcomes.append(_file_outcome(self._app, self._caller, part))
        elif part.name == FORM_KEY:
            self._key = part.text.decode("utf-8", "replace")

    def _on_end(self) -> None:
        self._is_complete = True


def _read_name(raw: bytes) -> str:
    """The name of a file, in which browsers escape quotation marks."""
    return raw.decode("utf-8", "replace").replace("%22", '"')


def _file_outcome(app: AppState, caller: Caller, part: _FormPart) -> FileOutcome:
    name = part.filename or ""
    user_id, sha256 = _user(app, caller), part.digest.hexdigest()
    problem = None
    try:
        _store(
            app,
            user_id,
            UploadRequest(name=name, size=part.size, sha256=sha256),
            Path(part.file.name),
        )
    except UploadRefusedError as error:
        problem = str(error)
        if error.kind == "too-large":  # only its beginning was hashed
            return FileOutcome(name=name, job=None, problem=problem)
    with app.library.database.read() as connection:
        job = job_of(connection, ids.upload_uid(user_id, sha256))
    if job is not None and job.status not in FAILURES | {JobStatus.UPLOADED}:
        problem = None  # the same file was sent twice at the same time
    return FileOutcome(name=name, job=job, problem=problem)


def _store(app: AppState, user_id: UUID, file: UploadRequest, path: Path) -> None:
    settings = app.library.settings
    job = begin_upload(app.context, settings, user_id, file)
    if job.status is JobStatus.UPLOADED:
        app.library.blobs.put(staging_key(job), path)
        complete_upload(app.context, settings, job)


def _user(app: AppState, caller: Caller) -> UUID:
    """The id of the user; the local user is created with the first file."""
    if caller.user_id != NIL_ID:
        return caller.user_id
    seams = app.library.seams
    with app.library.database.write() as connection:
        return ensure_user(connection, LOCAL, now=app.now(), rng=seams.rng)

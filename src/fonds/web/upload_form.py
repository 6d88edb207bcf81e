"""Files that a form brings: taken in one after the other while it still comes.

No more of a form than a piece is in memory, and no more than one of its files on disk beside the
store.
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
from fonds.api.dependencies import LOCAL, NOBODY, AppState, desk_of
from fonds.api.middleware import refuse_beyond
from fonds.api.problems import ProblemError
from fonds.api.uploads import PIECE
from fonds.errors import UploadRefusedError
from fonds.uploads.intake import UploadRequest, begin_upload, complete_upload, staging_key
from fonds.uploads.jobs import Job, job_of
from fonds.uploads.states import FAILURES, JobStatus
from fonds.uploads.users import Caller, ensure_user
from fonds.web.rendering import FORM_KEY

MOST_FILES: Final = 50
"""In one form."""

_LONGEST_FIELD: Final = 2000
_BESIDES: Final = 256 * 1024
"""Bytes that a form may have beside its files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileOutcome:
    """What became of one file of a form."""

    name: str
    job: Job | None
    problem: str | None
    """Why it was not taken in, in words for its user."""


@dataclass(kw_only=True, slots=True)
class _Coming:
    """A part of a form on its way."""

    named: str
    filename: str | None
    file: Any = None
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)
    text: bytearray = field(default_factory=bytearray)


async def take_files(
    request: Request, caller: Caller, check: Callable[[str], None]
) -> list[FileOutcome]:
    """Take in the files of a form; `check` refuses its key before a byte of a file is read."""
    settings = desk_of(request).library.settings
    tray = _tray(request, caller, check)
    most = MOST_FILES * settings.max_file_mib * 1024 * 1024 + _BESIDES
    size, waiting = 0, bytearray()
    try:
        async for piece in request.stream():
            size += len(piece)
            refuse_beyond(most, size)
            waiting += piece
            if len(waiting) >= PIECE:
                await anyio.to_thread.run_sync(tray.feed, bytes(waiting))
                waiting.clear()
        await anyio.to_thread.run_sync(tray.finish, bytes(waiting))
    except ClientDisconnect:
        raise ProblemError(400, "cut-short", "the connection ended before the form did") from None
    except FormParserError:
        raise _malformed() from None
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(tray.close)
    if not tray.outcomes:
        raise ProblemError(422, "no-file", "choose a file first")
    return tray.outcomes


def _tray(request: Request, caller: Caller, check: Callable[[str], None]) -> _Tray:
    kind, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise _malformed()
    try:
        return _Tray(desk_of(request), caller, check, boundary)
    except FormParserError:
        raise _malformed() from None


def _malformed() -> ProblemError:
    return ProblemError(400, "malformed", "this is no form with files")


class _Tray:
    """Reads one form; all of it in threads that may wait for disks and databases."""

    def __init__(
        self, desk: AppState, caller: Caller, check: Callable[[str], None], boundary: bytes
    ) -> None:
        self.outcomes: list[FileOutcome] = []
        self._desk = desk
        self._caller = caller
        self._check = check
        self._key: str | None = None
        self._is_checked = self._is_whole = False
        self._most = desk.library.settings.max_file_mib * 1024 * 1024
        self._header: tuple[bytearray, bytearray] = bytearray(), bytearray()
        self._disposition = b""
        self._coming: _Coming | None = None
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

    def feed(self, piece: bytes) -> None:
        """Read on."""
        self._parser.write(piece)

    def finish(self, rest: bytes) -> None:
        """Read the rest, and see that nothing is missing."""
        self._parser.write(rest)
        if not self._is_whole:
            raise _malformed()
        self._require_own()

    def close(self) -> None:
        """Leave no file behind."""
        if self._coming is not None and self._coming.file is not None:
            self._coming.file.close()

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
        self._coming = _Coming(
            named=options.get(b"name", b"").decode("utf-8", "replace"),
            filename=None if filename is None else _read_name(filename),
        )
        # Browsers send a field without a file as one without a name.
        if self._coming.filename:
            self._require_own()
            if len(self.outcomes) >= MOST_FILES:
                raise ProblemError(413, "too-many", f"send at most {MOST_FILES} files at once")
            folder = self._desk.library.settings.home / "tmp"
            folder.mkdir(parents=True, exist_ok=True)
            self._coming.file = tempfile.NamedTemporaryFile(dir=folder)  # noqa: SIM115 — closed at its end

    def _require_own(self) -> None:
        """The key comes first in the form; without it nothing is taken in."""
        if not self._is_checked:
            self._check(self._key or "")
            self._is_checked = True

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        part = self._coming
        assert part is not None
        part.size += end - start
        if part.file is None:
            refuse_beyond(_LONGEST_FIELD, part.size)
            part.text += data[start:end]
        elif part.size <= self._most:
            part.digest.update(data[start:end])
            part.file.write(data[start:end])

    def _end(self) -> None:
        part, self._coming = self._coming, None
        assert part is not None
        if part.file is not None:
            with part.file:
                part.file.flush()
                self.outcomes.append(_taken(self._desk, self._caller, part))
        elif part.named == FORM_KEY:
            self._key = part.text.decode("utf-8", "replace")

    def _on_end(self) -> None:
        self._is_whole = True


def _read_name(given: bytes) -> str:
    """A file's name; browsers write the sign that ends it in this way."""
    return given.decode("utf-8", "replace").replace("%22", '"')


def _taken(desk: AppState, caller: Caller, part: _Coming) -> FileOutcome:
    name = part.filename or ""
    user_id, sha256 = _user(desk, caller), part.digest.hexdigest()
    problem = None
    try:
        _store(
            desk,
            user_id,
            UploadRequest(name=name, size=part.size, sha256=sha256),
            Path(part.file.name),
        )
    except UploadRefusedError as error:
        problem = str(error)
        if error.kind == "too-large":  # what was hashed of it is another file
            return FileOutcome(name=name, job=None, problem=problem)
    with desk.library.database.read() as connection:
        job = job_of(connection, ids.upload_uid(user_id, sha256))
    if job is not None and job.status not in FAILURES | {JobStatus.UPLOADED}:
        problem = None  # the same file came twice at once, and one of them is enough
    return FileOutcome(name=name, job=job, problem=problem)


def _store(desk: AppState, user_id: UUID, claim: UploadRequest, path: Path) -> None:
    settings = desk.library.settings
    job = begin_upload(desk.context, settings, user_id, claim)
    if job.status is JobStatus.UPLOADED:
        desk.library.blobs.put(staging_key(job), path)
        complete_upload(desk.context, settings, job)


def _user(desk: AppState, caller: Caller) -> UUID:
    """Whoever sits at this machine becomes a user with the first file."""
    if caller.user_id != NOBODY:
        return caller.user_id
    seams = desk.library.seams
    with desk.library.database.write() as connection:
        return ensure_user(connection, LOCAL, now=desk.now(), rng=seams.chance)

"""Where an edition is read from: a folder or file as the publisher lays it out, or an address.

Pages that are walked are archived while ingesting (`KeptOrigin`); while planning they are only
looked at. Bodies that are pages of their own are fetched one by one, and kept in packs.

Members of zip archives, read without trust: by name, bounded, never to a path of their own.

Pages: files of a publisher, wherever they lie on their way to the archive.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Final, Protocol
from urllib.parse import quote, urlsplit

from fonds.context import Context
from fonds.errors import MalformedError, NotFoundError, TooLargeError, UsageError
from fonds.fetch.client import Download
from fonds.fetch.redact import public_url
from fonds.model import Archived
from fonds.runs.concurrency import in_thread
from fonds.runs.discover import pace_of
from fonds.runs.tasks import recall_files, remember_files
from fonds.sources.jurisdiction import CodeInfo, Page
from fonds.stores.blobs import Blobs

PIECE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class LocalPage:
    """A page that is a file of this machine."""

    name: str
    archived: Archived
    path: Path

    def read(self) -> bytes:
        """All of it."""
        return self.path.read_bytes()

    def open(self) -> IO[bytes]:
        """A stream over it."""
        return self.path.open("rb")


@dataclass(frozen=True, slots=True)
class BlobPage:
    """A page in the archive."""

    name: str
    archived: Archived
    blobs: Blobs

    def read(self) -> bytes:
        """All of it."""
        return self.blobs.get(self.archived.key)

    def open(self) -> IO[bytes]:
        """A stream over it."""
        return open_blob(self.blobs, self.archived.key)


@dataclass(frozen=True, slots=True)
class MemberPage:
    """A page that is a member of an archive on this machine."""

    name: str
    archived: Archived
    archive: Path
    member: str

    def read(self) -> bytes:
        """All of it."""
        with self.open() as stream:
            return stream.read()

    def open(self) -> IO[bytes]:
        """A stream over it."""
        # The member keeps the archive open until it is closed itself.
        return zipfile.ZipFile(self.archive).open(self.member)


def open_blob(blobs: Blobs, key: str) -> IO[bytes]:
    """A blob as a file; one blob operation, however long it is."""
    return io.BufferedReader(_Stream(blobs.stream(key)), PIECE)


class _Stream(io.RawIOBase):
    """Pieces of bytes as a file that can be read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        taken = min(len(buffer), len(self._rest))
        buffer[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken


def archived(download: Download) -> Archived:
    """What is known of a file that is not kept."""
    return Archived(
        url=download.url,
        key="",
        sha256=download.sha256,
        size=download.size,
        retrieved_at=download.retrieved_at,
        media_type=download.media_type,
    )


def described(file: Path, url: str, retrieved_at: datetime) -> Download:
    """A file of this machine, as if it had been fetched."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(PIECE):
            digest.update(piece)
        size = opened.tell()
    return Download(
        url=url,
        file=file,
        sha256=digest.hexdigest(),
        size=size,
        media_type=None,
        etag=None,
        last_modified=None,
        retrieved_at=retrieved_at,
    )


LARGEST: Final = 1 << 30
"""Bytes, unpacked; the largest title of any code has a sixth of it."""

_LOOKED_AT: Final = 512


def unpacked(archive: Download, pattern: str, target: IO[bytes]) -> Download:
    """The one member that fits a pattern, written to a file."""
    with _opened_member(archive, pattern) as (_, pieces):
        for piece in pieces:
            target.write(piece)
    target.flush()
    return described(Path(target.name), archive.url, archive.retrieved_at)


def look_into(archive: Download, pattern: str) -> tuple[str, Archived]:
    """The name of the one member that fits, and what is known of it."""
    digest, size = hashlib.sha256(), 0
    with _opened_member(archive, pattern) as (name, pieces):
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
    return name, replace(archived(archive), sha256=digest.hexdigest(), size=size)


@contextmanager
def _opened_member(archive: Download, pattern: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    try:
        with zipfile.ZipFile(archive.file) as opened:
            name = _member(opened, pattern, archive.url)
            with opened.open(name) as source:
                yield name, _bounded(source, f"{name} of {archive.url}")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise MalformedError(f"{archive.url} is {_what(archive)}, not a zip archive") from error


def _bounded(source: IO[bytes], name: str) -> Iterator[bytes]:
    size = 0
    while piece := source.read(PIECE):
        size += len(piece)
        if size > LARGEST:
            raise TooLargeError(f"{name} is too large unpacked")
        yield piece


def _member(archive: zipfile.ZipFile, pattern: str, url: str) -> str:
    found = [name for name in archive.namelist() if fnmatchcase(name, pattern)]
    if len(found) != 1:
        held = ", ".join(archive.namelist()[:10]) or "nothing"
        raise NotFoundError(f"{url} has {len(found)} files {pattern!r}; it holds {held}")
    return found[0]


def _what(archive: Download) -> str:
    """What was served in its place, in words."""
    with archive.file.open("rb") as file:
        start = file.read(_LOOKED_AT).lstrip().lower()
    if not start:
        return "empty"
    return "an HTML page" if start.startswith((b"<!doctype html", b"<html")) else "damaged"


_MEMBER: Final = "!"
_SAFE: Final = "/:@$&'()*+,;=~?"


class EditionLocation(Protocol):
    """Files by their path: a folder, or an address."""

    @property
    def files(self) -> list[str] | None:
        """All there are; None for an address, which has no list."""
        ...

    def url(self, path: str) -> str:
        """The publisher's address of a file."""
        ...

    async def download(self, path: str) -> tuple[Download, bool]:
        """A file, and whether it is to be removed once it is read."""
        ...


class EditionFolder:
    """A folder laid out as the publisher lays it out, or one file of it."""

    def __init__(self, path: Path, *, base: str) -> None:
        if not path.exists():
            raise UsageError(f"{path} does not exist")
        self._path = path
        self._base = base

    @cached_property
    def files(self) -> list[str]:
        """Names relative to the folder, sorted."""
        if self._path.is_file():
            return [self._path.name]
        found = (path for path in self._path.rglob("*") if path.is_file())
        return sorted(path.relative_to(self._path).as_posix() for path in found)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.files)

    def url(self, path: str) -> str:
        """What the publisher would call it."""
        return self._base + quote(path, safe=_SAFE)

    async def download(self, path: str) -> tuple[Download, bool]:
        """The file of that path; only what lies in the folder can be named."""
        if path not in self._names:
            raise NotFoundError(f"there is no {path} in {self._path.name}")
        file = self._path if self._path.is_file() else self._path / path
        changed = datetime.fromtimestamp(int(file.stat().st_mtime), UTC)
        return described(file, self.url(path), changed), False


class Address:
    """The publisher, or a mirror of it."""

    files = None

    def __init__(self, base: str, info: CodeInfo, context: Context) -> None:
        self._base = base if base.endswith("/") else f"{base}/"
        self._info = info
        self._context = context

    def url(self, path: str) -> str:
        """The address itself."""
        return self._base + quote(path, safe=_SAFE)

    async def download(self, path: str) -> tuple[Download, bool]:
        """The file, fetched politely."""
        pace = pace_of(self._info, self._context.settings)
        fetcher = self._context.fetcher
        download = await fetcher.download(self.url(path), source=self._info.name, pace=pace)
        assert download is not None, "an unconditional request is never answered by None"
        return download, True


def open_place(given: str | None, info: CodeInfo, context: Context) -> EditionLocation:
    """Where `--from` points to: an address, a folder, a file; by default the publisher."""
    if given is None or urlsplit(given).scheme in {"http", "https"}:
        return Address(given or info.base, info, context)
    return EditionFolder(Path(given).expanduser(), base=info.base)


class PlaceOrigin:
    """An edition that is only looked at; what had to be fetched for it is removed at the end."""

    def __init__(self, place: EditionLocation, *, version: str = "") -> None:
        self.version = version
        self.place = place
        self._opened = AsyncExitStack()

    @property
    def files(self) -> list[str] | None:
        """The names in the folder, or of the single file; None for an address."""
        return self.place.files

    async def read(self, page: str) -> Page:
        """A page to be looked at."""
        path, _, pattern = page.partition(_MEMBER)
        download = await self._opened.enter_async_context(self._downloaded(path))
        if not pattern:
            return LocalPage(page, archived(download), download.file)
        name, described = await in_thread(look_into, download, pattern)
        return MemberPage(page, described, download.file, name)

    @asynccontextmanager
    async def fetched(self, page: str) -> AsyncIterator[Download]:
        """A page as a file, for as long as it is needed: a file itself, or a member of one."""
        path, _, pattern = page.partition(_MEMBER)
        async with self._downloaded(path) as download:
            if not pattern:
                yield download
                return
            with NamedTemporaryFile() as file:
                yield await in_thread(unpacked, download, pattern, file)

    @asynccontextmanager
    async def _downloaded(self, path: str) -> AsyncIterator[Download]:
        download, is_temporary = await self.place.download(path)
        try:
            yield download
        finally:
            if is_temporary:
                download.file.unlink(missing_ok=True)

    async def close(self) -> None:
        """Remove what was fetched."""
        await self._opened.aclose()


class LocalOrigin(PlaceOrigin):
    """An edition in a folder, or in one file."""

    def __init__(self, path: Path, *, base: str, version: str = "") -> None:
        super().__init__(EditionFolder(path, base=base), version=version)


class KeptOrigin(PlaceOrigin):
    """The same, each page that is read being archived under `corpus/<source>/<version>/`."""

    def __init__(
        self, place: EditionLocation, info: CodeInfo, context: Context, *, version: str
    ) -> None:
        super().__init__(place, version=version)
        self._info = info
        self._context = context

    async def read(self, page: str) -> Page:
        """A page to be looked at, and kept; of a member also the archive that was served."""
        path, _, pattern = page.partition(_MEMBER)
        archived = await self._kept(path)
        if pattern:
            archived = await in_thread(self._keep_member, path, pattern, archived)
        return BlobPage(page, archived, self._context.blobs)

    async def sha256(self, page: str) -> str:
        """Of a page as it is served now; files of this machine are only looked at."""
        if self.place.files is None:
            return (await self.read(page)).archived.sha256
        async with self.fetched(page) as download:
            return download.sha256

    async def _kept(self, path: str) -> Archived:
        if self.place.files is None:
            return await self._asked_again(path)
        async with self.fetched(path) as download:
            return await in_thread(self._keep, path, download)

    def _keep(self, name: str, download: Download) -> Archived:
        path = f"{self.version}/{name}"
        return self._context.archive.add(self._info.name, path, download)

    def _keep_member(self, path: str, pattern: str, archive: Archived) -> Archived:
        with NamedTemporaryFile() as packed, NamedTemporaryFile() as file:
            for piece in self._context.blobs.stream(archive.key):
                packed.write(piece)
            packed.flush()
            served = described(Path(packed.name), archive.url, archive.retrieved_at)
            download = unpacked(served, pattern, file)
            return self._keep(f"{path}.unpacked/{pattern.replace('*', 'member')}", download)

    async def _asked_again(self, path: str) -> Archived:
        """A file of the publisher, fetched anew only if it has changed."""
        url, database = self.place.url(path), self._context.database
        with database.read() as connection:
            known = recall_files(connection, self._info.name, [url]).get(public_url(url))
        obtained = await self._context.archive.download(
            source=self._info.name,
            url=url,
            path=f"{self.version}/{_file_name(path)}",
            pace=pace_of(self._info, self._context.settings),
            previous=known,
        )
        if obtained.record is not None:
            with database.write() as connection:
                remember_files(connection, [obtained.record])
        return obtained.archived


def _file_name(path: str) -> str:
    """Where a page is archived; one may be called as the folder of others, and a blob may not."""
    return path if "." in path.rpartition("/")[2] else f"{path}/index"

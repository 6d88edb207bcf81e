"""The origin of an edition: a folder or file in the publisher's layout, or an address.

Walked pages are archived while a code is ingested (`ArchivingOrigin`), and only read while it is
planned. Bodies that are separate pages are fetched one by one, and stored in packs.

Members of zip archives are untrusted: they are read by name and up to a limit of size, and never
extracted to a path that the archive names.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from typing import IO, Final, Protocol
from urllib.parse import quote, urlsplit

from fonds.context import Context
from fonds.errors import MalformedError, NotFoundError, TooLargeError, UsageError
from fonds.fetch.archive import FileRecord
from fonds.fetch.client import Download
from fonds.model import Archived
from fonds.runs.concurrency import in_thread
from fonds.runs.discover import pace_of
from fonds.runs.tasks import previous_file, remember_files
from fonds.sources.jurisdiction import CodeInfo, Page
from fonds.stores.blobs import Blobs
from fonds.stores.database import Database, repeatable

BLOCK_SIZE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class LocalPage:
    """A page in a local file."""

    name: str
    archived: Archived
    path: Path

    def read(self) -> bytes:
        """The content of the page."""
        return self.path.read_bytes()

    def open(self) -> IO[bytes]:
        """Open the page as a stream."""
        return self.path.open("rb")


@dataclass(frozen=True, slots=True)
class BlobPage:
    """A page in the archive."""

    name: str
    archived: Archived
    blobs: Blobs

    def read(self) -> bytes:
        """The content of the page."""
        return self.blobs.get(self.archived.key)

    def open(self) -> IO[bytes]:
        """Open the page as a stream."""
        return open_blob(self.blobs, self.archived.key)


@dataclass(frozen=True, slots=True)
class MemberPage:
    """A page that is a member of a local zip archive."""

    name: str
    archived: Archived
    archive: Path
    member: str

    def read(self) -> bytes:
        """The content of the page."""
        with self.open() as stream:
            return stream.read()

    def open(self) -> IO[bytes]:
        """Open the page as a stream."""
        # The open member keeps the archive open.
        return zipfile.ZipFile(self.archive).open(self.member)


def open_blob(blobs: Blobs, key: str) -> IO[bytes]:
    """Open a blob as a file, in one blob operation."""
    return io.BufferedReader(_BlockStream(blobs.stream(key)), BLOCK_SIZE)


class _BlockStream(io.RawIOBase):
    """Blocks of bytes as a file that can be read once."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = memoryview(next(self._blocks, b""))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def unarchived(download: Download) -> Archived:
    """The record of a file that is not stored."""
    return Archived(
        url=download.url,
        key="",
        sha256=download.sha256,
        size=download.size,
        retrieved_at=download.retrieved_at,
        media_type=download.media_type,
    )


def local_download(file: Path, url: str, retrieved_at: datetime) -> Download:
    """A local file as a download."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(BLOCK_SIZE):
            digest.update(block)
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


MAX_MEMBER_BYTES: Final = 1 << 30
"""Size of an extracted file; the largest title of any code has a sixth of it."""

_PREFIX_BYTES: Final = 512


def extract_member(archive: Download, pattern: str, target: IO[bytes]) -> Download:
    """Write the only member that matches a pattern to a file."""
    with _opened_member(archive, pattern) as (_, blocks):
        for block in blocks:
            target.write(block)
    target.flush()
    return local_download(Path(target.name), archive.url, archive.retrieved_at)


def inspect_member(archive: Download, pattern: str) -> tuple[str, Archived]:
    """The name of the only member that matches a pattern, and its record."""
    digest, size = hashlib.sha256(), 0
    with _opened_member(archive, pattern) as (name, blocks):
        for block in blocks:
            digest.update(block)
            size += len(block)
    return name, replace(unarchived(archive), sha256=digest.hexdigest(), size=size)


@contextmanager
def _opened_member(archive: Download, pattern: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    try:
        with zipfile.ZipFile(archive.file) as opened:
            name = _member(opened, pattern, archive.url)
            with opened.open(name) as source:
                yield name, _bounded(source, f"{name} of {archive.url}")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise MalformedError(f"{archive.url} is {_describe(archive)}, not a zip archive") from error


def _bounded(source: IO[bytes], name: str) -> Iterator[bytes]:
    size = 0
    while block := source.read(BLOCK_SIZE):
        size += len(block)
        if size > MAX_MEMBER_BYTES:
            raise TooLargeError(f"{name} is larger than {MAX_MEMBER_BYTES >> 20} MiB unpacked")
        yield block


def _member(archive: zipfile.ZipFile, pattern: str, url: str) -> str:
    matches = [name for name in archive.namelist() if fnmatchcase(name, pattern)]
    if len(matches) != 1:
        names = ", ".join(archive.namelist()[:10]) or "nothing"
        raise NotFoundError(f"{url} has {len(matches)} files {pattern!r}; it contains {names}")
    return matches[0]


def _describe(archive: Download) -> str:
    """A guess at the kind of a file that is not a zip archive, for a message."""
    with archive.file.open("rb") as file:
        start = file.read(_PREFIX_BYTES).lstrip().lower()
    if not start:
        return "empty"
    return "an HTML page" if start.startswith((b"<!doctype html", b"<html")) else "damaged"


_MEMBER: Final = "!"
_SAFE: Final = "/:@$&'()*+,;=~?"


class EditionLocation(Protocol):
    """A folder or an address, whose files are named by relative paths."""

    @property
    def files(self) -> list[str] | None:
        """The paths of all files; None for an address, which has no list."""
        ...

    def url(self, path: str) -> str:
        """The publisher's address of a file."""
        ...

    async def download(self, path: str) -> tuple[Download, bool]:
        """A file, and whether it must be removed after reading."""
        ...


class EditionFolder:
    """A folder in the publisher's layout, or one file of it."""

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
        return sorted(_files_below(self._path))

    def url(self, path: str) -> str:
        """The publisher's address of a file."""
        return self._base + quote(path, safe=_SAFE)

    async def download(self, path: str) -> tuple[Download, bool]:
        """The file at a path, which must be in the folder."""
        file = self._file(path)
        if file is None:
            raise NotFoundError(f"{self._path.name} has no file {path}")
        changed = datetime.fromtimestamp(int(file.stat().st_mtime), UTC)
        return local_download(file, self.url(path), changed), False

    def _file(self, path: str) -> Path | None:
        """The file at a path that `files` has; a folder of thousands is not listed for that."""
        if self._path.is_file():
            return self._path if path == self._path.name else None
        relative, file = PurePosixPath(path), self._path / path
        is_inside = not relative.is_absolute() and ".." not in relative.parts
        has_that_name = is_inside and relative.as_posix() == path
        # Unlike a Path's method, this is False for names that the system refuses.
        return file if has_that_name and os.path.isfile(file) else None  # noqa: PTH113


def _files_below(folder: Path) -> Iterator[str]:
    """The names of all files, relative to a folder; many times faster than `rglob`."""
    for above, _, names in os.walk(folder):
        prefix = Path(above).relative_to(folder).as_posix()
        for name in names:
            if os.path.isfile(f"{above}/{name}"):  # noqa: PTH113 — a Path of each takes longer
                yield name if prefix == "." else f"{prefix}/{name}"


class Address:
    """The publisher, or a mirror of it."""

    files = None

    def __init__(self, base: str, info: CodeInfo, context: Context) -> None:
        self._base = base if base.endswith("/") else f"{base}/"
        self._info = info
        self._context = context

    def url(self, path: str) -> str:
        """The address of a file."""
        return self._base + quote(path, safe=_SAFE)

    async def download(self, path: str) -> tuple[Download, bool]:
        """Fetch a file at the rate of the source."""
        pace = pace_of(self._info, self._context.settings)
        fetcher = self._context.fetcher
        download = await fetcher.download(self.url(path), source=self._info.name, pace=pace)
        assert download is not None, "an unconditional request never returns None"
        return download, True


def open_location(location: str | None, info: CodeInfo, context: Context) -> EditionLocation:
    """Open the value of `--from`: an address, a folder, a file; by default the publisher."""
    if location is None or is_address(location):
        return Address(location or info.base, info, context)
    return EditionFolder(Path(location).expanduser(), base=info.base)


def local_size(location: str | None, pages: Sequence[str]) -> int:
    """The size of pages in a folder, or of the archives they are in; 0 for an address."""
    if location is None or is_address(location):
        return 0
    folder = Path(location).expanduser()
    files = {page.partition(_MEMBER)[0] for page in pages}
    paths = [folder] if folder.is_file() else [folder / file for file in files]
    return sum(path.stat().st_size for path in paths if path.is_file())


def is_address(location: str | None) -> bool:
    """True if the value of `--from` is an address, as the publisher's is, and not a path."""
    return location is None or urlsplit(location).scheme in {"http", "https"}


class EditionOrigin:
    """An edition whose pages are read and not archived; `close` removes fetched files."""

    def __init__(self, location: EditionLocation, *, version: str = "") -> None:
        self.version = version
        self.location = location
        self._opened = AsyncExitStack()

    @property
    def files(self) -> list[str] | None:
        """The paths of all files; None for an address."""
        return self.location.files

    async def read(self, page: str) -> Page:
        """Read a page: a file, or the member of a zip archive."""
        path, _, pattern = page.partition(_MEMBER)
        download = await self._opened.enter_async_context(self._downloaded(path))
        if not pattern:
            return LocalPage(page, unarchived(download), download.file)
        name, record = await in_thread(inspect_member, download, pattern)
        return MemberPage(page, record, download.file, name)

    @asynccontextmanager
    async def fetched(self, page: str) -> AsyncIterator[Download]:
        """A page as a temporary file: a file itself, or the member of a zip archive."""
        path, _, pattern = page.partition(_MEMBER)
        async with self._downloaded(path) as download:
            if not pattern:
                yield download
                return
            with NamedTemporaryFile() as file:
                yield await in_thread(extract_member, download, pattern, file)

    @asynccontextmanager
    async def _downloaded(self, path: str) -> AsyncIterator[Download]:
        download, is_temporary = await self.location.download(path)
        try:
            yield download
        finally:
            if is_temporary:
                download.file.unlink(missing_ok=True)

    async def close(self) -> None:
        """Remove fetched files."""
        await self._opened.aclose()


class LocalOrigin(EditionOrigin):
    """An edition in a folder, or in one file."""

    def __init__(self, path: Path, *, base: str, version: str = "") -> None:
        super().__init__(EditionFolder(path, base=base), version=version)


class ArchivingOrigin(EditionOrigin):
    """An edition whose pages are archived under `corpus/<source>/<version>/` when read."""

    def __init__(
        self, location: EditionLocation, info: CodeInfo, context: Context, *, version: str
    ) -> None:
        super().__init__(location, version=version)
        self._info = info
        self._context = context

    async def read(self, page: str) -> Page:
        """Read a page and archive it; for a member, also the zip archive."""
        path, _, pattern = page.partition(_MEMBER)
        archived = await self._archived(path)
        if pattern:
            archived = await in_thread(self._archive_member, path, pattern, archived)
        return BlobPage(page, archived, self._context.blobs)

    async def sha256(self, page: str) -> str:
        """The hash of a page as it is served at present; local files are not archived."""
        if self.location.files is None:
            return (await self.read(page)).archived.sha256
        async with self.fetched(page) as download:
            return download.sha256

    async def _archived(self, path: str) -> Archived:
        if self.location.files is None:
            return await self._refetched(path)
        async with self.fetched(path) as download:
            return await in_thread(self._archive, path, download)

    def _archive(self, name: str, download: Download) -> Archived:
        path = f"{self.version}/{name}"
        return self._context.archive.add(self._info.name, path, download)

    def _archive_member(self, path: str, pattern: str, archive: Archived) -> Archived:
        with NamedTemporaryFile() as packed, NamedTemporaryFile() as file:
            for block in self._context.blobs.stream(archive.key):
                packed.write(block)
            packed.flush()
            served = local_download(Path(packed.name), archive.url, archive.retrieved_at)
            download = extract_member(served, pattern, file)
            return self._archive(f"{path}.unpacked/{pattern.replace('*', 'member')}", download)

    async def _refetched(self, path: str) -> Archived:
        """A file of the publisher, downloaded again only if it has changed."""
        url, database = self.location.url(path), self._context.database
        previous = previous_file(database, self._info.name, url)
        result = await self._context.archive.download(
            source=self._info.name,
            url=url,
            path=f"{self.version}/{_file_name(path)}",
            pace=pace_of(self._info, self._context.settings),
            previous=previous,
        )
        if result.record is not None:
            _remember(database, result.record)
        return result.archived


@repeatable
def _remember(database: Database, record: FileRecord) -> None:
    with database.write() as connection:
        remember_files(connection, [record])


def _file_name(path: str) -> str:
    """The name of an archived page; a page may have the name of a folder, and a blob may not."""
    return path if "." in path.rpartition("/")[2] else f"{path}/index"

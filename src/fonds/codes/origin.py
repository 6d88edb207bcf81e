"""Where an edition is read from: a folder or file as the publisher lays it out, or an address.

Pages that are walked are archived while ingesting (`KeptOrigin`); while planning they are only
looked at. Bodies that are pages of their own are fetched one by one, and kept in packs.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Final, Protocol
from urllib.parse import quote, urlsplit

from fonds.codes.thread import in_thread
from fonds.errors import MalformedError, NotFoundError, TooLargeError, UsageError
from fonds.fetch.client import Download
from fonds.fetch.secrecy import public_url
from fonds.model import Archived
from fonds.runs.context import Workplace
from fonds.runs.discovery import pace_of
from fonds.runs.inputs import recall_files, remember_files
from fonds.sources.jurisdiction import CodeInfo, Page
from fonds.stores.blobs import Blobs

_PIECE: Final = 1 << 18
_MEMBER: Final = "!"
_LARGEST_MEMBER: Final = 1 << 30
"""Bytes, unpacked; the largest title of any code has a sixth of it."""
_SAFE: Final = "/:@$&'()*+,;=~?"


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


class Place(Protocol):
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


class Folder:
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
        return _described(file, self.url(path), changed), False


class Address:
    """The publisher, or a mirror of it."""

    files = None

    def __init__(self, base: str, info: CodeInfo, workplace: Workplace) -> None:
        self._base = base if base.endswith("/") else f"{base}/"
        self._info = info
        self._workplace = workplace

    def url(self, path: str) -> str:
        """The address itself."""
        return self._base + quote(path, safe=_SAFE)

    async def download(self, path: str) -> tuple[Download, bool]:
        """The file, fetched politely."""
        pace = pace_of(self._info, self._workplace.settings)
        fetcher = self._workplace.fetcher
        download = await fetcher.download(self.url(path), source=self._info.name, pace=pace)
        assert download is not None, "an unconditional request is never answered by None"
        return download, True


def open_place(given: str | None, info: CodeInfo, workplace: Workplace) -> Place:
    """Where `--from` points to: an address, a folder, a file; by default the publisher."""
    if given is None or urlsplit(given).scheme in {"http", "https"}:
        return Address(given or info.base, info, workplace)
    return Folder(Path(given).expanduser(), base=info.base)


class PlaceOrigin:
    """An edition that is only looked at; what had to be fetched for it is removed at the end."""

    def __init__(self, place: Place, *, version: str = "") -> None:
        self.version = version
        self.place = place
        self._opened = AsyncExitStack()

    @property
    def files(self) -> list[str] | None:
        """The names in the folder, or of the single file; None for an address."""
        return self.place.files

    async def read(self, page: str) -> Page:
        """A page to be looked at."""
        download = await self._opened.enter_async_context(self.fetched(page))
        return LocalPage(page, _archived(download), download.file)

    @asynccontextmanager
    async def fetched(self, page: str) -> AsyncIterator[Download]:
        """A page as a file, for as long as it is needed: a file itself, or a member of one."""
        path, _, member = page.partition(_MEMBER)
        download, is_temporary = await self.place.download(path)
        try:
            if not member:
                yield download
                return
            with NamedTemporaryFile() as file:
                yield await in_thread(_unpacked, download, member, file)
        finally:
            if is_temporary:
                download.file.unlink(missing_ok=True)

    async def close(self) -> None:
        """Remove what was fetched."""
        await self._opened.aclose()


class LocalOrigin(PlaceOrigin):
    """An edition in a folder, or in one file."""

    def __init__(self, path: Path, *, base: str, version: str = "") -> None:
        super().__init__(Folder(path, base=base), version=version)


class KeptOrigin(PlaceOrigin):
    """The same, each page that is read being archived under `corpus/<source>/<version>/`."""

    def __init__(self, place: Place, info: CodeInfo, workplace: Workplace, *, version: str) -> None:
        super().__init__(place, version=version)
        self._info = info
        self._workplace = workplace

    async def read(self, page: str) -> Page:
        """A page to be looked at, and kept."""
        path, _, member = page.partition(_MEMBER)
        if self.place.files is None and not member:
            archived = await self._asked_again(path)
        else:
            async with self.fetched(page) as download:
                name = f"{path}/{member}" if member else path
                archived = await in_thread(self._keep, name, download)
        return BlobPage(page, archived, self._workplace.blobs)

    def _keep(self, name: str, download: Download) -> Archived:
        path = f"{self.version}/{name}"
        return self._workplace.archive.keep(self._info.name, path, download)

    async def _asked_again(self, path: str) -> Archived:
        """A file of the publisher, fetched anew only if it has changed."""
        url, database = self.place.url(path), self._workplace.database
        with database.read() as connection:
            known = recall_files(connection, self._info.name, [url]).get(public_url(url))
        obtained = await self._workplace.archive.obtain(
            source=self._info.name,
            url=url,
            path=f"{self.version}/{path}",
            pace=pace_of(self._info, self._workplace.settings),
            known=known,
        )
        if obtained.known is not None:
            with database.write() as connection:
                remember_files(connection, [obtained.known])
        return obtained.archived


def open_blob(blobs: Blobs, key: str) -> IO[bytes]:
    """A blob as a file; one blob operation, however long it is."""
    return io.BufferedReader(_Stream(blobs.stream(key)), _PIECE)


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


def _archived(download: Download) -> Archived:
    return Archived(
        url=download.url,
        key="",
        sha256=download.sha256,
        size=download.size,
        retrieved_at=download.retrieved_at,
        media_type=download.media_type,
    )


def _described(file: Path, url: str, retrieved_at: datetime) -> Download:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
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


def _unpacked(archive: Download, pattern: str, target: IO[bytes]) -> Download:
    try:
        with zipfile.ZipFile(archive.file) as opened:
            name = _member(opened, pattern, archive.url)
            with opened.open(name) as source:
                while piece := source.read(_PIECE):
                    target.write(piece)
                    if target.tell() > _LARGEST_MEMBER:
                        raise TooLargeError(f"{name} of {archive.url} is too large unpacked")
            target.flush()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise MalformedError(f"{archive.url} is no zip archive that can be read") from error
    return _described(Path(target.name), archive.url, archive.retrieved_at)


def _member(archive: zipfile.ZipFile, pattern: str, url: str) -> str:
    found = [name for name in archive.namelist() if fnmatchcase(name, pattern)]
    if len(found) != 1:
        held = ", ".join(archive.namelist()[:10]) or "nothing"
        raise NotFoundError(f"{url} has {len(found)} files {pattern!r}; it holds {held}")
    return found[0]

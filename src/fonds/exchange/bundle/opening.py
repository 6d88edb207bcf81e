"""Opens a bundle at any address: a folder or bucket as it is, an archive or a URL as a local copy.

An archive and a server are not trusted: only names of a bundle are taken, up to their sizes, and
nothing else is created.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fonds.errors import BundleError, NotFoundError, TooLargeError
from fonds.exchange.bundle.contents import (
    DESCRIPTOR,
    INPUTS,
    MAX_DESCRIPTOR,
    RESOURCES,
    BundlePackage,
    read_package,
)
from fonds.exchange.bundle.raw import MAX_CONTAINER, RAW, Container, RawPackage
from fonds.exchange.bundle.statement import MAX_STATEMENT, STATEMENT
from fonds.fetch.client import Download, Fetcher
from fonds.fetch.rates import Pace
from fonds.seams import Seams
from fonds.stores.blobs import Blobs, FolderBlobs, open_existing_blobs

_NAME: Final = re.compile(
    r"(datapackage|statement|raw)\.json|data/[a-z]+/[0-9a-f]{64}\.jsonl|raw/[0-9a-f]{64}"
)
_DESCRIPTORS: Final = {DESCRIPTOR: MAX_DESCRIPTOR, STATEMENT: MAX_STATEMENT, RAW: MAX_DESCRIPTOR}
_MAX_MEMBERS: Final = 1_000_000
_BLOCK_SIZE: Final = 1 << 20
RANGE_SIZE: Final = 8 << 20
"""Bytes of a request: what a process that is killed has to fetch again at most."""
_PACE: Final = Pace(per_second=50.0, burst=50)
_CONCURRENCY: Final = 4
_SOURCE: Final = "bundle"

Watch = Callable[[str, int], None]


def is_url(address: str) -> bool:
    """True for an address that is fetched over HTTP."""
    return urlsplit(address).scheme in {"http", "https"}


def open_folder(address: str, folder: Path) -> Blobs:
    """A bundle in a folder or bucket; one in a tar archive is unpacked to `folder`."""
    path = Path(address)
    if "://" in address or not path.is_file():
        return open_existing_blobs(address, seams=Seams(), private=False)
    _unpack(path, folder)
    return FolderBlobs(folder, seams=Seams())


def _unpack(archive: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    try:
        with tarfile.open(archive, "r|") as opened:
            # `next` returns None at the end, and the archive remembers all members.
            for number, member in enumerate(iter(opened.next, None)):
                opened.members.clear()  # type: ignore[attr-defined]
                if number >= _MAX_MEMBERS:
                    raise BundleError(f"{archive.name} has more than {_MAX_MEMBERS:,} members")
                _unpack_member(opened, member, folder)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise BundleError(
            f"{archive.name} cannot be read as a tar archive without compression: {error}"
        ) from error


def _unpack_member(opened: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    name = member.name.removeprefix("./")
    if member.isdir() and re.fullmatch(r"\.?|data|raw|data/[a-z]+", name):
        return
    if not _NAME.fullmatch(name):
        raise BundleError(f"the archive contains {member.name!r}, which no bundle contains")
    # A sparse member may be a few bytes long and say that it is a terabyte.
    file = opened.extractfile(member) if member.isreg() and not member.issparse() else None
    if file is None:
        raise BundleError(f"{name} in the archive is not an ordinary file")
    if member.size > _DESCRIPTORS.get(name, MAX_CONTAINER):
        raise BundleError(f"{name} in the archive is too long for a bundle: {member.size:,} bytes")
    target = folder / name
    if target.exists():
        raise BundleError(f"the archive contains {name} twice")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as target_file:
        shutil.copyfileobj(file, target_file, _BLOCK_SIZE)


@dataclass(frozen=True, slots=True)
class _RemoteFile:
    path: str
    size: int
    sha256: str | None
    """The hash over its bytes; None for a container, whose files are checked one by one."""


class BundleMirror:
    """A local copy of a bundle at a URL, fetched file by file, and continued where it ended."""

    def __init__(self, url: str, folder: Path, fetcher: Fetcher, *, watch: Watch | None) -> None:
        self._url = url if url.endswith("/") else f"{url}/"
        self._folder = folder / "files"
        self._partial = folder / "partial"
        self._fetcher = fetcher
        self._watch = watch
        self._slots = asyncio.Semaphore(_CONCURRENCY)
        self._fetched = 0

    @property
    def blobs(self) -> Blobs:
        """The files that were fetched."""
        return FolderBlobs(self._folder, seams=Seams())

    async def fetch_descriptors(self) -> BundlePackage:
        """Fetch what says what the bundle contains, without its contents."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, limit in _DESCRIPTORS.items():
            data = await self._fetch_descriptor(name, limit)
            (self._folder / name).unlink(missing_ok=True)
            if data is not None:
                (self._folder / name).write_bytes(data)
        return read_package(self.blobs, self._url)

    async def _fetch_descriptor(self, name: str, limit: int) -> bytes | None:
        try:
            download = await self._fetcher.download(
                self._url + name, source=_SOURCE, pace=_PACE, max_size=limit, max_in_memory=limit
            )
        except NotFoundError:
            if name == DESCRIPTOR:
                raise BundleError(
                    f"there is no bundle at {self._url}: it has no {DESCRIPTOR}"
                ) from None
            return None
        except TooLargeError as error:
            raise BundleError(f"{name} is too long for one of a bundle: {error}") from error
        assert download is not None, "an unconditional request never returns None"
        return download.read()

    async def fetch_tables(self, package: BundlePackage, raw: RawPackage | None) -> None:
        """Fetch the tables' files that are missing, and remove those of an earlier bundle."""
        files = list(_table_files(package, raw))
        containers = {container.path for container in raw.containers} if raw else set()
        self._sweep({file.path for file in files} | containers)
        await self._fetch_all(files)

    async def fetch_containers(self, containers: Sequence[Container]) -> None:
        """Fetch containers of publishers' files that are missing."""
        await self._fetch_all(
            [_RemoteFile(container.path, container.size, None) for container in containers]
        )

    def drop_containers(self) -> None:
        """Remove the containers, whose files are in the library by now."""
        shutil.rmtree(self._folder / "raw", ignore_errors=True)

    async def _fetch_all(self, files: Sequence[_RemoteFile]) -> None:
        tasks = [asyncio.ensure_future(self._fetch_file(file)) for file in files]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _fetch_file(self, file: _RemoteFile) -> None:
        async with self._slots:
            target = self._folder / file.path
            if not (target.is_file() and target.stat().st_size == file.size):
                await self._fetch_missing(file, target)
            self._fetched += file.size
            if self._watch is not None:
                self._watch("bytes fetched", self._fetched)

    async def _fetch_missing(self, file: _RemoteFile, target: Path) -> None:
        partial = self._partial / target.name
        for folder in (partial.parent, target.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial.touch()
        while (start := partial.stat().st_size) < file.size:
            download = await self._fetch_range(file, start)
            await asyncio.to_thread(_append, partial, download)
            if partial.stat().st_size == start:
                raise BundleError(f"{file.path} ended after {start:,} of {file.size:,} bytes")
        if partial.stat().st_size > file.size or not await asyncio.to_thread(_is, partial, file):
            partial.unlink()
            raise BundleError(
                f"{file.path} is not the file that {DESCRIPTOR} names; if the bundle was being "
                "replaced meanwhile, run the command again"
            )
        partial.rename(target)

    async def _fetch_range(self, file: _RemoteFile, start: int) -> Download:
        end = min(start + RANGE_SIZE, file.size)
        try:
            download = await self._fetcher.download(
                self._url + file.path,
                source=_SOURCE,
                pace=_PACE,
                max_size=file.size,
                byte_range=(start, end) if (start, end) != (0, file.size) else None,
            )
        except NotFoundError:
            raise BundleError(f"{file.path} is missing") from None
        except TooLargeError as error:
            raise BundleError(f"{file.path} has more than {file.size:,} bytes: {error}") from error
        assert download is not None, "an unconditional request never returns None"
        return download

    def _sweep(self, current: set[str]) -> None:
        for folder in ("data", "raw"):
            for path in (self._folder / folder).rglob("*"):
                if path.is_file() and path.relative_to(self._folder).as_posix() not in current:
                    path.unlink()
        names = {name.rpartition("/")[2] for name in current}
        for path in self._partial.glob("*"):
            if path.name not in names:
                path.unlink()


def _table_files(package: BundlePackage, raw: RawPackage | None) -> Iterator[_RemoteFile]:
    tables = [(each, package.parts[each]) for each in RESOURCES]
    tables += [(INPUTS, raw.inputs)] if raw else []
    for resource, parts in tables:
        for part in parts:
            yield _RemoteFile(part.path(resource), part.bytes, part.sha256)


def _append(partial: Path, download: Download) -> None:
    """Add what was fetched; a server that knows no ranges sent the whole file."""
    try:
        with partial.open("r+b") as target, download.file.open("rb") as source:
            target.seek(download.start)
            target.truncate()
            shutil.copyfileobj(source, target, _BLOCK_SIZE)
    finally:
        download.discard()


def _is(path: Path, file: _RemoteFile) -> bool:
    if file.sha256 is None:
        return True
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256

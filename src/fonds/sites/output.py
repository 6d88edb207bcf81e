"""The output of a crawl: a folder or an object store, in which each file is complete or absent.

One crawl at a time writes to an output, as its journal has one writer.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Final, Literal, Self, TypeVar
from urllib.parse import quote, unquote, urlsplit

from fonds import ids
from fonds.context import Context
from fonds.errors import (
    BlobExistsError,
    BlobMissingError,
    SettingsError,
    SourceBusyError,
    StoreError,
)
from fonds.runs.locks import LEASE, SourceLock, keep_lock, lock_source
from fonds.seams import Seams
from fonds.sites.filenames import collided
from fonds.stores.blobs import Blobs, Data, open_blobs

METADATA: Final = "metadata.json"
JOURNAL: Final = "metadata.journal.jsonl"
PDFS: Final = "pdfs/"
PARTS: Final = "parts/"

Backend = Literal["local", "adls", "s3"]

_BACKENDS: Final[dict[str, Backend]] = {"file": "local", "az": "adls", "s3": "s3"}
_POSSIBLE: Final = (
    "a folder, s3://bucket/prefix, az://container/prefix or abfs://container@account/prefix"
)
_AZURE_HOST: Final = re.compile(
    r"(?P<account>[a-z0-9]{3,24})(?:\.(?:dfs|blob)\.(?P<cloud>[a-z0-9.-]+))?"
)
_AZURE: Final = "core.windows.net"


@dataclass(frozen=True, kw_only=True)
class Output:
    """The files of a crawl."""

    address: str
    """For display: without options and credentials."""
    backend: Backend
    folder: Path | None
    """None if they are not in a folder of this machine."""
    seams: Seams
    blobs: Blobs = field(repr=False)
    records: str = ""
    """The path of the metadata and journal; the PDFs of all parts of a crawl have one path."""

    def part(self, name: str) -> Self:
        """The same PDFs, with metadata and journal of a part."""
        return replace(self, records=f"{PARTS}{name}/")

    @property
    def whole(self) -> Self:
        """The output that this is a part of."""
        return replace(self, records="")

    def parts(self) -> list[Self]:
        """The parts whose metadata or journal is here."""
        keys = (info.key.split("/") for info in self.blobs.list(PARTS))
        return [self.part(name) for name in sorted({key[1] for key in keys})]

    def store(self, filename: str, data: Data, sha256: str) -> str:
        """Store a file under its name, and return its path below the output.

        A file that already has this name and the same bytes is not written again; if it has other
        bytes, the new one gets its hash into its name.
        """
        size = _check(data, sha256)
        for name in (filename, collided(filename, sha256)):
            key = f"{PDFS}{name}"
            try:
                self.blobs.create(key, data)
            except BlobExistsError:
                if not self._has_bytes(key, size, sha256):
                    continue
            return key
        raise StoreError(f"{key} in {self.address} is damaged: remove it, and crawl again")

    def files(self) -> Iterator[tuple[str, int]]:
        """The path and size of all stored files, of any crawl, in no order."""
        if not self.folder:
            yield from ((info.key, info.size) for info in self.blobs.list(PDFS))
            return
        with suppress(FileNotFoundError), os.scandir(self.folder / PDFS) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    yield f"{PDFS}{entry.name}", entry.stat(follow_symlinks=False).st_size

    def read(self, name: str) -> Iterator[bytes] | None:
        """The metadata or the journal, in chunks; None if there is none."""
        chunks = self.blobs.stream(f"{self.records}{name}")
        try:
            first = next(chunks, b"")
        except BlobMissingError:
            return None
        return chain([first], chunks)

    def write(self, name: str, data: Data) -> None:
        """Replace the metadata or the journal, atomically and durably."""
        self.blobs.put(f"{self.records}{name}", data)

    def discard(self) -> None:
        """Delete the metadata and journal of a part, which were merged into the whole."""
        assert self.records
        for name in (JOURNAL, METADATA):
            self.blobs.delete(f"{self.records}{name}")
        if self.folder:
            with suppress(OSError):
                (self.folder / self.records).rmdir()

    def _has_bytes(self, key: str, size: int, sha256: str) -> bool:
        info = self.blobs.head(key)
        if info is None or info.size != size:
            return False
        digest = hashlib.sha256()
        for chunk in self.blobs.stream(key):
            digest.update(chunk)
        return digest.hexdigest() == sha256


def open_output(address: str, *, seams: Seams) -> Output:
    """The output at an address; options and credentials are in its query or the environment."""
    if "://" not in address:
        address = f"file://{quote(str(Path(address).absolute()))}" if address else ""
    scheme = address.partition("://")[0].lower()
    if scheme in {"abfs", "abfss"}:
        address, scheme = _as_az(address), "az"
    backend = _BACKENDS.get(scheme)
    if backend is None:
        raise SettingsError(f"This cannot be the output of a crawl. Use {_POSSIBLE}.")
    blobs = open_blobs(address, seams=seams, private=False)
    parts = urlsplit(address, allow_fragments=False)
    folder = Path(unquote(parts.path)) if backend == "local" else None
    return Output(
        address=str(folder or f"{scheme}://{parts.netloc}{parts.path}"),
        backend=backend,
        folder=folder,
        seams=seams,
        blobs=blobs,
    )


def _as_az(address: str) -> str:
    """`abfs://container@account.dfs.core.windows.net/path` in the form of `az://`."""
    try:
        parts = urlsplit(address, allow_fragments=False)
    except ValueError:
        raise SettingsError(f"The address of the output is malformed. Use {_POSSIBLE}.") from None
    container, at, host = parts.netloc.partition("@")
    options = [parts.query] if parts.query else []
    if at:
        match = _AZURE_HOST.fullmatch(host.lower())
        if not match:
            raise SettingsError("An abfs:// address has the name of an account after its @.")
        name, cloud = match["account"], match["cloud"]
        options.append(f"account_name={name}")
        if cloud not in {None, _AZURE}:
            options.append(f"endpoint=https://{name}.blob.{cloud}")
    query = f"?{'&'.join(options)}" if options else ""
    return f"az://{container}{parts.path}{query}"


def _check(data: Data, sha256: str) -> int:
    """The size of a file, which must have this hash."""
    if isinstance(data, bytes):
        digest, size = hashlib.sha256(data).hexdigest(), len(data)
    else:
        with data.open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
            size = source.tell()
    if digest != sha256:
        name = "a file" if isinstance(data, bytes) else data.name
        raise StoreError(f"{name} is not what was downloaded: its bytes have changed")
    return size


T = TypeVar("T")

RETRY_SECONDS: Final = 0.5
LEASE_EXPIRY_SECONDS: Final = LEASE.total_seconds() + 5
"""Seconds after which the lease of a killed process has expired, on PostgreSQL."""


@asynccontextmanager
async def lock_output(
    output: str, context: Context, *, waits: bool, part: str = ""
) -> AsyncIterator[None]:
    """Lock an output; one that `waits` does so for as long as another crawl writes there.

    A part of a crawl has a lock of its own, beside that of the whole.
    """
    address = open_output(output, seams=context.seams).address
    # The kernel releases a locked file; a lease outlives its process for a while. A part can only
    # be locked by a machine that was lost.
    timeout = LEASE_EXPIRY_SECONDS if part or not context.database.is_sqlite else 0.0
    name = f"output-{ids.text_sha256(address + part)[:16]}"
    with ExitStack() as stack:
        try:
            lock = await retry_while_busy(
                lambda: _lock(name, context, stack), math.inf if waits else timeout
            )
        except SourceBusyError:
            raise SourceBusyError(
                f"another crawl writes to {address}: wait for its end, or choose another output"
            ) from None
        async with keep_lock(lock):
            yield


async def retry_while_busy(act: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Act; try again for so many seconds if another process has the lock."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await act()
        except SourceBusyError:
            if asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(RETRY_SECONDS)


async def _lock(name: str, context: Context, stack: ExitStack) -> SourceLock:
    lock = lock_source(context.database, context.settings.home, name, context.seams.clock)
    return await asyncio.to_thread(stack.enter_context, lock)

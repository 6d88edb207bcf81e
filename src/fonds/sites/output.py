"""Where a crawl leaves its files: a folder, or a store of objects, each file whole or not there.

One crawl at a time writes to an output: its ledger has one writer.
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
from fonds.runs.locks import LEASE, SourceLock, claim_source, keep_lock
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
_ACCOUNT: Final = re.compile(
    r"(?P<account>[a-z0-9]{3,24})(?:\.(?:dfs|blob)\.(?P<cloud>[a-z0-9.-]+))?"
)
_AZURE: Final = "core.windows.net"


@dataclass(frozen=True, kw_only=True)
class Output:
    """The files of a crawl."""

    address: str
    """For people's eyes: without options and credentials."""
    backend: Backend
    folder: Path | None
    """None where they are in no folder of this machine."""
    seams: Seams
    blobs: Blobs = field(repr=False)
    records: str = ""
    """Below what path a ledger stands; the files of all parts of a crawl stand together."""

    def part(self, name: str) -> Self:
        """The same files, with a ledger of its own."""
        return replace(self, records=f"{PARTS}{name}/")

    @property
    def whole(self) -> Self:
        """The output that this is a part of."""
        return replace(self, records="")

    def parts(self) -> list[Self]:
        """Those whose ledgers stand here."""
        keys = (info.key.split("/") for info in self.blobs.list(PARTS))
        return [self.part(name) for name in sorted({key[1] for key in keys})]

    def place(self, filename: str, data: Data, sha256: str) -> str:
        """Store a file under its name and give its path below the output.

        A name that holds the same bytes already stays as it is; one that holds others is left to
        them, and the file gets its hash into its own.
        """
        size = _check(data, sha256)
        for name in (filename, collided(filename, sha256)):
            key = f"{PDFS}{name}"
            try:
                self.blobs.create(key, data)
            except BlobExistsError:
                if not self._holds(key, size, sha256):
                    continue
            return key
        raise StoreError(f"{key} in {self.address} is damaged: remove it, and crawl again")

    def files(self) -> Iterator[tuple[str, int]]:
        """The path and size of all files placed here, by whatever crawl, in no order."""
        if not self.folder:
            yield from ((info.key, info.size) for info in self.blobs.list(PDFS))
            return
        with suppress(FileNotFoundError), os.scandir(self.folder / PDFS) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    yield f"{PDFS}{entry.name}", entry.stat(follow_symlinks=False).st_size

    def read(self, name: str) -> Iterator[bytes] | None:
        """A file of the ledger in pieces; None where there is none."""
        pieces = self.blobs.stream(f"{self.records}{name}")
        try:
            first = next(pieces, b"")
        except BlobMissingError:
            return None
        return _chained(first, pieces)

    def write(self, name: str, data: Data) -> None:
        """Replace a file of the ledger by another, at once and durably."""
        self.blobs.put(f"{self.records}{name}", data)

    def discard(self) -> None:
        """Delete a part's ledger; what it told stands elsewhere by now."""
        assert self.records
        for name in (JOURNAL, METADATA):
            self.blobs.delete(f"{self.records}{name}")
        if self.folder:
            with suppress(OSError):
                (self.folder / self.records).rmdir()

    def _holds(self, key: str, size: int, sha256: str) -> bool:
        info = self.blobs.head(key)
        if info is None or info.size != size:
            return False
        digest = hashlib.sha256()
        for piece in self.blobs.stream(key):
            digest.update(piece)
        return digest.hexdigest() == sha256


def open_output(address: str, *, seams: Seams) -> Output:
    """The output at an address; options and credentials stand in its query or the environment."""
    if "://" not in address:
        address = f"file://{quote(str(Path(address).absolute()))}" if address else ""
    scheme = address.partition("://")[0].lower()
    if scheme in {"abfs", "abfss"}:
        address, scheme = _as_az(address), "az"
    backend = _BACKENDS.get(scheme)
    if backend is None:
        raise SettingsError(f"a crawl cannot leave its files there; possible are {_POSSIBLE}")
    blobs = open_blobs(address, seams=seams)
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
        raise SettingsError(
            f"the output's address is malformed; possible are {_POSSIBLE}"
        ) from None
    container, at, host = parts.netloc.partition("@")
    options = [parts.query] if parts.query else []
    if at:
        found = _ACCOUNT.fullmatch(host.lower())
        if not found:
            raise SettingsError("after the @ of an abfs:// address stands the name of an account")
        account, cloud = found["account"], found["cloud"]
        options.append(f"account_name={account}")
        if cloud not in {None, _AZURE}:
            options.append(f"endpoint=https://{account}.blob.{cloud}")
    query = f"?{'&'.join(options)}" if options else ""
    return f"az://{container}{parts.path}{query}"


def _check(data: Data, sha256: str) -> int:
    """The size of what is to be stored, which must have this hash."""
    if isinstance(data, bytes):
        told, size = hashlib.sha256(data).hexdigest(), len(data)
    else:
        with data.open("rb") as source:
            told = hashlib.file_digest(source, "sha256").hexdigest()
            size = source.tell()
    if told != sha256:
        named = "a file" if isinstance(data, bytes) else data.name
        raise StoreError(f"{named} is not what was downloaded: its bytes have changed")
    return size


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


T = TypeVar("T")

GLANCE: Final = 0.5
AFTER_A_KILL: Final = LEASE.total_seconds() + 5
"""Seconds after which the claim of a killed process has run out, on PostgreSQL."""


@asynccontextmanager
async def turn_at(
    output: str, context: Context, *, waits: bool, part: str = ""
) -> AsyncIterator[None]:
    """Hold an output; who waits does so for as long as another crawl writes there.

    A part of a crawl is held by itself, while whoever divided the crawl holds the whole.
    """
    address = open_output(output, seams=context.seams).address
    # A file is let go by the kernel; a lease outlives its holder for a while. Only a machine that
    # was given up can hold a part.
    patience = AFTER_A_KILL if part or not context.database.is_sqlite else 0.0
    name = f"output-{ids.text_sha256(address + part)[:16]}"
    with ExitStack() as stack:
        try:
            claim = await patiently(
                lambda: _claimed(name, context, stack), math.inf if waits else patience
            )
        except SourceBusyError:
            raise SourceBusyError(
                f"another crawl writes to {address}: wait for its end, or give another output"
            ) from None
        async with keep_lock(claim):
            yield


async def patiently(act: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Act; try again for so long where another process holds what is needed."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await act()
        except SourceBusyError:
            if asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(GLANCE)


async def _claimed(name: str, context: Context, stack: ExitStack) -> SourceLock:
    claim = claim_source(context.database, context.settings.home, name, context.seams.clock)
    return await asyncio.to_thread(stack.enter_context, claim)

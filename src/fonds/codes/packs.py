"""Packs: the publisher's bytes of a batch of sections in one blob, behind an index.

The first line is the index, as JSON: of every section its id, where it begins after that line, its
length, hash, address and time. The bytes follow as they were served, one section after the other.
A pack is never changed: sections that come late go to `<pack>.r1`, `<pack>.r2`.

The bytes of sections: cut out of an archived file, or fetched one by one; kept in packs.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import IO, Final, Self

from fonds.codes.origin import PlaceOrigin
from fonds.codes.plan import BATCH_BYTES, NodeBatch, PlanHead, PlannedNode
from fonds.errors import (
    BlobExistsError,
    BudgetSpentError,
    FondsError,
    RetryableFetchError,
    StoreError,
)
from fonds.model import Archived
from fonds.runs.concurrency import in_thread
from fonds.stores.blobs import Blobs, body_ref
from fonds.stores.columns import format_timestamp

FORMAT: Final = "fonds pack 1"
_PIECE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class PackEntry:
    """One section in a pack."""

    id: str
    start: int
    """After the index."""
    length: int
    sha256: str
    url: str
    retrieved_at: datetime


class Pack:
    """A pack at hand: a local copy of the blob, and its index."""

    def __init__(self, key: str, file: IO[bytes], entries: list[PackEntry], begin: int) -> None:
        self.key = key
        self.entries = {entry.id: entry for entry in entries}
        self._file = file
        self._begin = begin

    def read(self, entry: PackEntry) -> bytes:
        """The bytes of one section, proven to be those that were packed."""
        self._file.seek(self._begin + entry.start)
        data = self._file.read(entry.length)
        if sha256(data).hexdigest() != entry.sha256:
            raise StoreError(f"{self.key} is damaged: delete it from the blob store and run again")
        return data

    def ref(self, entry: PackEntry) -> str:
        """What `body_ref` says of a section: pack, offset, length."""
        return body_ref(self.key, self._begin + entry.start, entry.length)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


class PackWriter:
    """Gathers sections on disk, so that a pack of any size takes little memory."""

    def __init__(self) -> None:
        self._bodies = NamedTemporaryFile()  # noqa: SIM115 — closed with the writer
        self._entries: list[PackEntry] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to be packed."""
        return not self._entries

    def add(self, section: str, data: bytes, *, url: str, retrieved_at: datetime) -> None:
        """Put one more section behind the others."""
        start = self._bodies.tell()
        self._bodies.write(data)
        digest = sha256(data).hexdigest()
        self._entries.append(PackEntry(section, start, len(data), digest, url, retrieved_at))

    def close(self) -> None:
        """Give up what was gathered."""
        self._bodies.close()

    def store(self, blobs: Blobs, key: str) -> Pack:
        """Write the pack, unless somebody did who died after it, or was faster."""
        index = _index_line(self._entries)
        file = NamedTemporaryFile()  # noqa: SIM115 — closed with the pack
        file.write(index)
        self._bodies.seek(0)
        shutil.copyfileobj(self._bodies, file, _PIECE)
        file.flush()
        self.close()
        try:
            blobs.create(key, Path(file.name))
        except BlobExistsError:
            file.close()
            return open_pack(blobs, key)
        except BaseException:
            file.close()
            raise
        return Pack(key, file, self._entries, len(index))


def open_pack(blobs: Blobs, key: str) -> Pack:
    """A pack that is there, copied to this machine in one blob operation."""
    file = NamedTemporaryFile()  # noqa: SIM115 — closed with the pack
    try:
        for piece in blobs.stream(key):
            file.write(piece)
        size = file.tell()
        file.seek(0)
        line = file.readline()
        return Pack(key, file, list(_read_index(line, key, size)), len(line))
    except BaseException:
        file.close()
        raise


def _index_line(entries: list[PackEntry]) -> bytes:
    told = [
        [one.id, one.start, one.length, one.sha256, one.url, format_timestamp(one.retrieved_at)]
        for one in entries
    ]
    line = json.dumps({"format": FORMAT, "sections": told}, ensure_ascii=False)
    return line.encode("utf-8", "surrogatepass") + b"\n"


def _read_index(line: bytes, key: str, size: int) -> Iterator[PackEntry]:
    try:
        told = json.loads(line)
        for known, start, length, digest, url, retrieved_at in told["sections"]:
            moment = datetime.fromisoformat(retrieved_at)
            yield PackEntry(known, _within(start, size), _within(length, size), digest, url, moment)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{key} is no pack: its first line is no index") from error


def _within(number: object, size: int) -> int:
    if type(number) is not int or not 0 <= number <= size:
        raise ValueError("no place in this file")
    return number


HOPELESS: Final = 20
"""After so many sections in a row that gave no answer, the publisher is down."""
_GAP: Final = 1 << 18
"""Bytes between two sections of a file that are rather read than asked around."""


@dataclass(frozen=True, slots=True)
class PackedSection:
    """A section's bytes in a pack at hand."""

    node: PlannedNode
    pack: Pack
    entry: PackEntry


class Bodies:
    """Gives the sections of a batch, from its pack if that is written, and else by writing it."""

    def __init__(
        self,
        head: PlanHead,
        origin: PlaceOrigin,
        blobs: Blobs,
        *,
        prefix: str,
        at_once: int,
        check: Callable[[PlannedNode, bytes], None],
    ) -> None:
        """`check` raises for a page that cannot be read: packs keep forever what is in them."""
        self._check = check
        self._origin = origin
        self._blobs = blobs
        self._prefix = prefix
        self._at_once = at_once
        self._pages = dict(head.pages)
        self._failures: list[tuple[str, str]] = []
        self._in_a_row = 0

    def fetches(self, batch: NodeBatch, wanted: Sequence[PlannedNode]) -> int:
        """How many requests the batch takes if its pack is not written."""
        own = sum(node.page not in self._pages for node in batch.leaves)
        return own if wanted else 0

    async def packed(
        self, batch: NodeBatch, wanted: Sequence[PlannedNode]
    ) -> AsyncIterator[list[PackedSection]]:
        """The wanted sections, a portion of about `BATCH_BYTES` at a time."""
        remaining = {node.id: node for node in wanted}
        late = 0
        while remaining:
            key = f"{self._prefix}/{batch.number:05}" + (f".r{late}" if late else "")
            is_there = await in_thread(self._blobs.head, key) is not None
            if is_there:
                pack = await in_thread(open_pack, self._blobs, key)
            else:
                writer = await self._gathered(list(remaining.values()) if late else batch.leaves)
                if writer.is_empty:
                    writer.close()
                    return
                pack = await in_thread(writer.store, self._blobs, key)
            with pack:
                for portion in _portions(pack, remaining):
                    yield portion
            if not is_there:
                return
            late += 1

    def take_failures(self) -> list[tuple[str, str]]:
        """Sections that could not be had since the last call, each with the cause."""
        failures, self._failures = self._failures, []
        return failures

    async def _gathered(self, sections: Sequence[PlannedNode]) -> PackWriter:
        writer = PackWriter()
        try:
            return await self._filled(writer, sections)
        except BaseException:
            writer.close()
            raise

    async def _filled(self, writer: PackWriter, sections: Sequence[PlannedNode]) -> PackWriter:
        walked = [node for node in sections if node.page in self._pages]
        cut = await in_thread(self._cut, walked) if walked else {}
        others = (node for node in sections if node.page not in self._pages)
        fetched = self._fetched(list(others))
        for node in sections:
            if node.id in cut:
                archived = self._pages[node.page or ""]
                data = cut.pop(node.id)
                writer.add(node.id, data, url=archived.url, retrieved_at=archived.retrieved_at)
            else:
                body = await anext(fetched)
                if body is not None:
                    writer.add(node.id, body[0], url=body[1].url, retrieved_at=body[1].retrieved_at)
        return writer

    # Cut out of a file that was walked ----------------------------------------------------------

    def _cut(self, sections: Sequence[PlannedNode]) -> dict[str, bytes]:
        bodies: dict[str, bytes] = {}
        for run in _runs(sections):
            archived = self._pages[run[0].page or ""]
            if run[0].span is None:
                bodies[run[0].id] = self._blobs.get(archived.key)
                continue
            start = run[0].span.start
            end = max(node.span.start + node.span.length for node in run if node.span)
            data = self._blobs.get_range(archived.key, start, end - start)
            if len(data) != end - start:
                raise StoreError(f"{archived.key} is shorter than its plan says; fetch it again")
            for node in run:
                assert node.span is not None
                at = node.span.start - start
                bodies[node.id] = data[at : at + node.span.length]
        return bodies

    # Fetched one by one -------------------------------------------------------------------------

    async def _fetched(
        self, sections: Sequence[PlannedNode]
    ) -> AsyncIterator[tuple[bytes, Archived] | None]:
        """Bodies in order, some at once; None for one that failed."""
        for start in range(0, len(sections), self._at_once):
            wave = sections[start : start + self._at_once]
            for body in await asyncio.gather(*map(self._fetch, wave)):
                yield body

    async def _fetch(self, node: PlannedNode) -> tuple[bytes, Archived] | None:
        try:
            async with self._origin.fetched(node.page or "") as download:
                data = await in_thread(self._readable, node, download.file)
        except BudgetSpentError:
            raise
        except FondsError as error:
            self._failures.append((node.id, f"{type(error).__name__}: {error}"))
            self._in_a_row += isinstance(error, RetryableFetchError)
            if self._in_a_row >= HOPELESS:
                raise
            return None
        self._in_a_row = 0
        archived = Archived(
            url=download.url,
            key="",
            sha256=download.sha256,
            size=download.size,
            retrieved_at=download.retrieved_at,
        )
        return data, archived

    def _readable(self, node: PlannedNode, file: Path) -> bytes:
        data, span = file.read_bytes(), node.span
        body = data[span.start : span.start + span.length] if span else data
        self._check(node, body)
        return body


def _portions(pack: Pack, remaining: dict[str, PlannedNode]) -> Iterator[list[PackedSection]]:
    """What a pack holds of what remains, as much at a time as is written together."""
    portion: list[PackedSection] = []
    size = 0
    for entry in pack.entries.values():
        node = remaining.pop(entry.id, None)
        if node is None:
            continue
        if portion and size + entry.length > BATCH_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(PackedSection(node, pack, entry))
        size += entry.length
    if portion:
        yield portion


def _runs(sections: Sequence[PlannedNode]) -> Iterator[list[PlannedNode]]:
    """Sections that stand near each other in one file, so that one read gives them all."""
    run: list[PlannedNode] = []
    page, reach = "", 0
    for node in sorted(sections, key=_place):
        there, start = _place(node)
        apart = node.span is None or (run and run[-1].span is None)
        if run and (apart or there != page or start - reach > _GAP):
            yield run
            run = []
        run.append(node)
        page, reach = there, start + (node.span.length if node.span else 0)
    if run:
        yield run


def _place(node: PlannedNode) -> tuple[str, int]:
    return node.page or "", node.span.start if node.span else 0

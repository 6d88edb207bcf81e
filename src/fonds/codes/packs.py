"""Packs: the publisher's bytes of a batch of sections in one blob, after an index.

The first line is the index in JSON: for every section its id, its offset after that line, its
length, hash, address and time. The original bytes follow, one section after the other. A pack is
never changed: sections that are fetched later are stored in `<pack>.r1`, `<pack>.r2`.

The bytes of a section are cut out of an archived file, or fetched as a page.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Final, Self

from fonds.codes.origin import EditionOrigin
from fonds.codes.plan import BATCH_BYTES, NodeBatch, PlanHead, PlannedNode
from fonds.errors import (
    BlobExistsError,
    BudgetSpentError,
    RetryableFetchError,
    StoreError,
    StoreUnavailableError,
)
from fonds.fetch.client import Download
from fonds.model import Archived
from fonds.runs.concurrency import in_thread
from fonds.stores.blobs import Blobs, body_ref
from fonds.stores.columns import format_timestamp

FORMAT: Final = "fonds pack 1"
_BLOCK_SIZE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class PackEntry:
    """One section in a pack."""

    id: str
    start: int
    """Offset after the index."""
    length: int
    sha256: str
    url: str
    retrieved_at: datetime


class Pack:
    """An open pack: a local copy of the blob, and its index."""

    def __init__(self, key: str, file: IO[bytes], entries: list[PackEntry], offset: int) -> None:
        self.key = key
        self.entries = {entry.id: entry for entry in entries}
        self._file = file
        self._offset = offset

    def read(self, entry: PackEntry) -> bytes:
        """The bytes of one section; raises if their hash differs from the index."""
        self._file.seek(self._offset + entry.start)
        data = self._file.read(entry.length)
        if sha256(data).hexdigest() != entry.sha256:
            raise StoreError(f"{self.key} is damaged: delete it from the blob store and run again")
        return data

    def ref(self, entry: PackEntry) -> str:
        """The `body_ref` of a section: pack, offset, length."""
        return body_ref(self.key, self._offset + entry.start, entry.length)

    def close(self) -> None:
        """Remove the local copy."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PackWriter:
    """Collects sections on disk, so that a pack of any size needs little memory."""

    def __init__(self) -> None:
        self._contents = NamedTemporaryFile()  # noqa: SIM115 — closed with the writer
        self._entries: list[PackEntry] = []

    @property
    def is_empty(self) -> bool:
        """Whether no section was added."""
        return not self._entries

    def add(self, section: str, data: bytes, *, url: str, retrieved_at: datetime) -> None:
        """Append a section."""
        start = self._contents.tell()
        self._contents.write(data)
        digest = sha256(data).hexdigest()
        self._entries.append(PackEntry(section, start, len(data), digest, url, retrieved_at))

    def close(self) -> None:
        """Discard the sections."""
        self._contents.close()

    def references(self, key: str) -> dict[str, str]:
        """The `body_ref` of each section, if the pack is stored under a key."""
        offset = len(_index_line(self._entries))
        return {
            entry.id: body_ref(key, offset + entry.start, entry.length) for entry in self._entries
        }

    def store(self, blobs: Blobs, key: str) -> Pack:
        """Write the pack, or open the one that another process has written."""
        index = _index_line(self._entries)
        file = NamedTemporaryFile()  # noqa: SIM115 — closed with the pack
        file.write(index)
        self._contents.seek(0)
        shutil.copyfileobj(self._contents, file, _BLOCK_SIZE)
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
    """Copy a stored pack to this machine in one blob operation, and open it."""
    file = NamedTemporaryFile()  # noqa: SIM115 — closed with the pack
    try:
        for block in blobs.stream(key):
            file.write(block)
        size = file.tell()
        file.seek(0)
        line = file.readline()
        return Pack(key, file, list(_read_index(line, key, size)), len(line))
    except BaseException:
        file.close()
        raise


def _index_line(entries: list[PackEntry]) -> bytes:
    sections = [
        [e.id, e.start, e.length, e.sha256, e.url, format_timestamp(e.retrieved_at)]
        for e in entries
    ]
    line = json.dumps({"format": FORMAT, "sections": sections}, ensure_ascii=False)
    return line.encode("utf-8", "surrogatepass") + b"\n"


def _read_index(line: bytes, key: str, size: int) -> Iterator[PackEntry]:
    try:
        for section, start, length, digest, url, retrieved_at in json.loads(line)["sections"]:
            yield PackEntry(
                id=section,
                start=_checked(start, size),
                length=_checked(length, size),
                sha256=digest,
                url=url,
                retrieved_at=datetime.fromisoformat(retrieved_at),
            )
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{key} is not a pack: its first line is not an index") from error


def _checked(number: object, size: int) -> int:
    if type(number) is not int or not 0 <= number <= size:
        raise ValueError("outside of the file")
    return number


MAX_CONSECUTIVE_FAILURES: Final = 20
"""After so many failed fetches in a row, the publisher is assumed to be down."""
_MAX_GAP: Final = 1 << 18
"""Unused bytes between two sections that are read to save a request."""


@dataclass(frozen=True, slots=True)
class PackedSection:
    """A section in an open pack."""

    node: PlannedNode
    pack: Pack
    entry: PackEntry


class BatchPacks:
    """Reads the sections of a batch from its pack, which is written first if it is missing."""

    def __init__(
        self,
        head: PlanHead,
        origin: EditionOrigin,
        blobs: Blobs,
        *,
        prefix: str,
        concurrency: int,
        check: Callable[[PlannedNode, bytes, str], None],
    ) -> None:
        """`check` raises for a page (bytes, address) that cannot be parsed: packs never change."""
        self._check = check
        self._origin = origin
        self._blobs = blobs
        self._prefix = prefix
        self._concurrency = concurrency
        self._pages = dict(head.pages)
        self._failures: list[tuple[str, str]] = []
        self._consecutive_failures = 0

    def fetches(self, batch: NodeBatch, missing: Sequence[PlannedNode]) -> int:
        """The number of requests for the batch if its pack does not exist."""
        fetched = sum(node.page not in self._pages for node in batch.leaves)
        return fetched if missing else 0

    async def sections(
        self, batch: NodeBatch, missing: Sequence[PlannedNode]
    ) -> AsyncIterator[list[PackedSection]]:
        """The missing sections, about `BATCH_BYTES` at a time."""
        remaining = {node.id: node for node in missing}
        repeat = 0
        while remaining:
            key = f"{self._prefix}/{batch.number:05}" + (f".r{repeat}" if repeat else "")
            exists = await in_thread(self._blobs.head, key) is not None
            if exists:
                pack = await in_thread(open_pack, self._blobs, key)
            else:
                nodes = list(remaining.values()) if repeat else batch.leaves
                writer = await self._collected(nodes)
                if writer.is_empty:
                    writer.close()
                    return
                pack = await in_thread(writer.store, self._blobs, key)
            with pack:
                for portion in _portions(pack, remaining):
                    yield portion
            if not exists:
                return
            repeat += 1

    async def restore(self, batch: NodeBatch, references: Mapping[str, str]) -> None:
        """Write packs again that are named by rows and are not in the blob store.

        Raises if they would not be the same: rows name the place of each section in its pack.
        A section that was loaded from a bundle without its bytes is in none.
        """
        packs: dict[str, list[PlannedNode]] = {}
        for node in batch.leaves:
            if references.get(node.id):
                packs.setdefault(references[node.id].partition("#")[0], []).append(node)
        for key, sections in packs.items():
            if await in_thread(self._blobs.head, key) is None:
                await self._restore(key, sections, references)

    async def _restore(
        self, key: str, sections: Sequence[PlannedNode], references: Mapping[str, str]
    ) -> None:
        writer = await self._collected(sections)
        try:
            if writer.references(key) != {node.id: references[node.id] for node in sections}:
                raise StoreError(
                    f"{key} is not in the blob store, and cannot be made again: its sections are "
                    "not served as they were"
                )
            pack = await in_thread(writer.store, self._blobs, key)
        finally:
            writer.close()
        pack.close()

    def take_failures(self) -> list[tuple[str, str]]:
        """Sections that failed since the last call, each with its error."""
        failures, self._failures = self._failures, []
        return failures

    async def _collected(self, sections: Sequence[PlannedNode]) -> PackWriter:
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
                page = await anext(fetched)
                if page is not None:
                    writer.add(node.id, page[0], url=page[1].url, retrieved_at=page[1].retrieved_at)
        return writer

    # Cut out of a file that was walked ----------------------------------------------------------

    def _cut(self, sections: Sequence[PlannedNode]) -> dict[str, bytes]:
        contents: dict[str, bytes] = {}
        for run in _runs(sections):
            archived = self._pages[run[0].page or ""]
            if run[0].span is None:
                contents[run[0].id] = self._blobs.get(archived.key)
                continue
            start = run[0].span.start
            end = max(node.span.start + node.span.length for node in run if node.span)
            data = self._blobs.get_range(archived.key, start, end - start)
            if len(data) != end - start:
                raise StoreError(f"{archived.key} is shorter than in its plan; fetch it again")
            for node in run:
                assert node.span is not None
                offset = node.span.start - start
                contents[node.id] = data[offset : offset + node.span.length]
        return contents

    # Fetched one by one -------------------------------------------------------------------------

    async def _fetched(
        self, sections: Sequence[PlannedNode]
    ) -> AsyncIterator[tuple[bytes, Archived] | None]:
        """Pages in order, fetched concurrently; None for one that failed."""
        for start in range(0, len(sections), self._concurrency):
            wave = sections[start : start + self._concurrency]
            for page in await asyncio.gather(*map(self._fetch, wave)):
                yield page

    async def _fetch(self, node: PlannedNode) -> tuple[bytes, Archived] | None:
        try:
            async with self._origin.fetched(node.page or "") as download:
                data = await in_thread(self._read_checked, node, download)
        except (BudgetSpentError, StoreUnavailableError, MemoryError):
            raise
        except Exception as error:
            # Whatever hostile bytes do to a normalizer is the failure of this section.
            self._failures.append((node.id, f"{type(error).__name__}: {error}"))
            self._consecutive_failures += isinstance(error, RetryableFetchError)
            if self._consecutive_failures >= MAX_CONSECUTIVE_FAILURES:
                raise
            return None
        self._consecutive_failures = 0
        archived = Archived(
            url=download.url,
            key="",
            sha256=download.sha256,
            size=download.size,
            retrieved_at=download.retrieved_at,
        )
        return data, archived

    def _read_checked(self, node: PlannedNode, download: Download) -> bytes:
        data, span = download.file.read_bytes(), node.span
        body = data[span.start : span.start + span.length] if span else data
        self._check(node, body, download.url)
        return body


def _portions(pack: Pack, remaining: dict[str, PlannedNode]) -> Iterator[list[PackedSection]]:
    """The remaining sections that a pack contains, in portions that are written together."""
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
    """Sections near each other in one file, which one request can read."""
    run: list[PlannedNode] = []
    page, end = "", 0
    for node in sorted(sections, key=_position):
        node_page, start = _position(node)
        is_whole_page = node.span is None or (run and run[-1].span is None)
        if run and (is_whole_page or node_page != page or start - end > _MAX_GAP):
            yield run
            run = []
        run.append(node)
        page, end = node_page, start + (node.span.length if node.span else 0)
    if run:
        yield run


def _position(node: PlannedNode) -> tuple[str, int]:
    return node.page or "", node.span.start if node.span else 0

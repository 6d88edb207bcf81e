"""`metadata.json`, with one entry to a line, so that it is written and read in a stream."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from pydantic import ValidationError

from fonds.errors import StoreError
from fonds.sites.journal import CrawlTotals
from fonds.sites.models import (
    METADATA_VERSION,
    CrawlError,
    CrawlMetadata,
    DownloadedPDF,
    read_metadata,
)
from fonds.stores.folder import CHUNK_SIZE

Entry = DownloadedPDF | CrawlError

_FILES: Final = b'"downloaded_files": ['
_BETWEEN: Final = b"],"
_ERRORS: Final = b'"errors": ['
_SEPARATOR: Final = b",\n"
_LINE_SIZE: Final = 4096
_HEAD: Final = 50
"""Lines; if the entries start later, the file was not written by this program."""


@dataclass(frozen=True, kw_only=True)
class StoredMetadata:
    """A `metadata.json` in an output."""

    opening: CrawlMetadata
    """Without its entries."""
    entries: Iterator[Entry]


def totals_of(metadata: CrawlMetadata) -> CrawlTotals:
    """The counts of a crawl."""
    return CrawlTotals(
        websites_crawled=metadata.websites_crawled,
        websites_failed=metadata.websites_failed,
        pdfs_discovered=metadata.total_pdfs_discovered,
        pdfs_downloaded=metadata.total_pdfs_downloaded,
        pdfs_failed=metadata.total_pdfs_failed,
        bytes_downloaded=metadata.total_bytes_downloaded,
    )


def with_totals(
    opening: CrawlMetadata, totals: CrawlTotals, ended: datetime | None
) -> CrawlMetadata:
    """The metadata of a crawl with later counts."""
    changes = {
        "crawl_end_time": ended,
        "websites_crawled": totals.websites_crawled,
        "websites_failed": totals.websites_failed,
        "total_pdfs_discovered": totals.pdfs_discovered,
        "total_pdfs_downloaded": totals.pdfs_downloaded,
        "total_pdfs_failed": totals.pdfs_failed,
        "total_bytes_downloaded": totals.bytes_downloaded,
        "metadata_version": METADATA_VERSION,
    }
    return opening.model_copy(update=changes)


class EntryLines:
    """The lines of an array in a scratch file, each at a position that is not 0."""

    def __init__(self, folder: Path | None) -> None:
        self._file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 — open as long as the crawl
        self._handle = self._file.fileno()
        self._removed: dict[int, int] = {}
        self.end = os.pwrite(self._handle, b"\n", 0)
        """The position of the next line."""

    def add(self, line: bytes) -> int:
        """Add a line, and return its position."""
        position = self.end
        count = os.pwrite(self._handle, line + _SEPARATOR, position)
        if count < len(line) + len(_SEPARATOR):
            raise StoreError("a scratch file of the crawl cannot be written: the disk is full")
        self.end += count
        return position

    def read(self, position: int) -> bytes:
        """The line at a position."""
        size = _LINE_SIZE
        while (end := os.pread(self._handle, size, position).find(_SEPARATOR)) < 0:
            size *= 2
        return os.pread(self._handle, end, position)

    def remove(self, position: int) -> None:
        """Leave a line out of what is copied."""
        self._removed[position] = position + len(self.read(position)) + len(_SEPARATOR)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for start, end in self.ranges():
            position = start
            while position < end:
                line = self.read(position)
                yield position, line
                position += len(line) + len(_SEPARATOR)

    def ranges(self) -> list[tuple[int, int]]:
        """The positions of the present lines that are not removed, as starts and ends."""
        edges = [1, *chain.from_iterable(sorted(self._removed.items())), self.end]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return [(start, end) for start, end in pairs if start < end]

    def copy(self, ranges: Sequence[tuple[int, int]], out: BinaryIO) -> None:
        """Write the lines of some ranges, also while others are added."""
        last = ranges[-1][1] if ranges else 0
        for start, end in ranges:
            position, stop = start, end - len(_SEPARATOR) if end == last else end
            while position < stop:
                size = min(CHUNK_SIZE, stop - position)
                position += out.write(os.pread(self._handle, size, position))
        out.write(b"\n" if ranges else b"")

    def close(self) -> None:
        """Close the file, which removes it."""
        self._file.close()


def write_metadata(
    file: Path,
    opening: CrawlMetadata,
    write_files: Callable[[BinaryIO], None],
    write_errors: Callable[[BinaryIO], None],
) -> None:
    """Write metadata whose entries are written by functions."""
    fields = opening.model_dump(mode="json", exclude={"downloaded_files", "errors"})
    with file.open("wb") as out:
        out.write(b"{\n")
        for name, value in fields.items():
            out.write(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)},\n".encode())
        out.write(_FILES + b"\n")
        write_files(out)
        out.write(_BETWEEN + b"\n" + _ERRORS + b"\n")
        write_errors(out)
        out.write(b"]\n}\n")


def scan_metadata(chunks: Iterator[bytes], *, path: str) -> StoredMetadata:
    """Read metadata: our own entry by entry, that of another program as a whole."""
    lines = _lines(chunks)
    head = list(islice(lines, 1))
    while head[0] == b"{" and head[-1] != _FILES and len(head) < _HEAD:
        following = next(lines, None)
        if following is None:
            break
        head.append(following)
    if head[-1] != _FILES:
        whole = read_metadata(b"\n".join(chain(head, lines)), path=path)
        entries: list[Entry] = [*whole.downloaded_files, *whole.errors]
        return StoredMetadata(opening=_emptied(whole), entries=iter(entries))
    opening = read_metadata(b"\n".join([*head, _BETWEEN, _ERRORS, b"]}"]), path=path)
    return StoredMetadata(opening=opening, entries=_entries(lines, path))


def _emptied(metadata: CrawlMetadata) -> CrawlMetadata:
    return metadata.model_copy(update={"downloaded_files": [], "errors": []})


def _entries(lines: Iterator[bytes], path: str) -> Iterator[Entry]:
    try:
        for line in iter(lines.__next__, _BETWEEN):
            yield DownloadedPDF.model_validate_json(line.removesuffix(b","))
        if next(lines) == _ERRORS:
            for line in iter(lines.__next__, b"]"):
                yield CrawlError.model_validate_json(line.removesuffix(b","))
            if list(lines) == [b"}", b""]:
                return
    except (StopIteration, ValidationError):
        pass
    raise StoreError(f"{path} is damaged: restore it from a backup, or choose another output")


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest.append(first)
        if others:
            yield b"".join(rest)
            yield from others[:-1]
            rest = [others[-1]]
    yield b"".join(rest)

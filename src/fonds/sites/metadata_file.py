"""`metadata.json` with one entry to a line, so that it is written and read without being held."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
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
from fonds.stores.folder import PIECE

Entry = DownloadedPDF | CrawlError

_FILES: Final = b'"downloaded_files": ['
_BETWEEN: Final = b"],"
_ERRORS: Final = b'"errors": ['
_HEAD: Final = 50
"""Lines; a file whose files begin later was not written here."""


@dataclass(frozen=True, kw_only=True)
class StoredMetadata:
    """A `metadata.json` that was found."""

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
    """The metadata of a crawl at a later moment."""
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


class Entries:
    """The lines of an array, written once to a scratch file and copied from there as a whole."""

    def __init__(self, folder: Path | None) -> None:
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 — open as long as the crawl
        self.last = 0
        """The position of the last line."""

    def extend(self, lines: Iterable[tuple[int, bytes]]) -> None:
        """Add lines, each with its position."""
        for position, line in lines:
            self._file.write(b",\n" + line if self.last else line)
            self.last = position

    def clear(self) -> None:
        """Begin anew."""
        self._file.seek(0)
        self._file.truncate()
        self.last = 0

    def copy_to(self, out: BinaryIO) -> None:
        """Write all lines."""
        self._file.seek(0)
        shutil.copyfileobj(self._file, out, PIECE)
        out.write(b"\n" if self.last else b"")

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


def write_metadata(file: Path, opening: CrawlMetadata, files: Entries, errors: Entries) -> None:
    """Write metadata of entries that stand ready."""
    told = opening.model_dump(mode="json", exclude={"downloaded_files", "errors"})
    with file.open("wb") as out:
        out.write(b"{\n")
        for name, value in told.items():
            out.write(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)},\n".encode())
        out.write(_FILES + b"\n")
        files.copy_to(out)
        out.write(_BETWEEN + b"\n" + _ERRORS + b"\n")
        errors.copy_to(out)
        out.write(b"]\n}\n")


def scan_metadata(pieces: Iterator[bytes], *, path: str) -> StoredMetadata:
    """Metadata in pieces: ours entry by entry, that of another program as a whole."""
    lines = _lines(pieces)
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
    raise StoreError(f"{path} is damaged: take it from a backup, or choose another output")


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    for piece in pieces:
        first, *others = piece.split(b"\n")
        rest.append(first)
        if others:
            yield b"".join(rest)
            yield from others[:-1]
            rest = [others[-1]]
    yield b"".join(rest)

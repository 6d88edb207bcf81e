"""The journal of a crawl: an event to a line, each with its time and the counts after it.

In a folder it is appended to; in an object store, which cannot append, it is replaced as a whole.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Annotated, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fonds.errors import StoreError
from fonds.sites.models import Count, CrawlError, DownloadedPDF, Id, PdfState, UtcTime
from fonds.sites.output import JOURNAL, Output


class CrawlJournal(Protocol):
    """Lines, each of which outlives the process that wrote it."""

    def append(self, lines: bytes) -> int:
        """Add lines, and return the position after them for `wait_until_stored`."""
        ...

    def wait_until_stored(self, position: int) -> None:
        """Return when the lines before a position outlive this process."""
        ...

    def size(self) -> int:
        """The length of the journal."""
        ...

    def restart(self, opening: bytes, *, since: int) -> None:
        """Start again with these lines and those after a size."""
        ...

    def close(self) -> None:
        """Release the resources of the journal."""
        ...


def open_journal(output: Output, opening: bytes) -> CrawlJournal:
    """Replace the journal by one that starts with these lines."""
    return FileJournal(output, opening) if output.folder else ObjectJournal(output, opening)


class FileJournal:
    """A journal in a file; callers let one thread at a time in."""

    def __init__(self, output: Output, opening: bytes) -> None:
        assert output.folder
        self._output = output
        self._path = output.folder / output.records / JOURNAL
        self._start(opening)

    def append(self, lines: bytes) -> int:
        """Add lines, all or none; the operating system has them when this returns."""
        self._output.seams.durable("journal.append", JOURNAL)
        try:
            count = os.write(self._file, lines)
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror}") from error
        if count < len(lines):
            # A partial line would hide all lines after it.
            os.ftruncate(self._file, self._size)
            raise StoreError(f"cannot write {self._path}: the disk is full")
        self._size += len(lines)
        return self._size

    def wait_until_stored(self, position: int) -> None:
        """Do nothing: the lines are stored."""

    def size(self) -> int:
        """The number of bytes."""
        return self._size

    def restart(self, opening: bytes, *, since: int) -> None:
        """Replace the file by one that starts with these lines."""
        with self._path.open("rb") as file:
            file.seek(since)
            tail = file.read()
        previous = self._file
        self._start(opening + tail)
        os.close(previous)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _start(self, lines: bytes) -> None:
        self._output.write(JOURNAL, lines)
        self._file, self._size = -1, len(lines)
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        except OSError as error:
            raise StoreError(f"cannot open {self._path}: {error.strerror}") from error


class ObjectJournal:
    """A journal in an object; lines that are added during a put share the next put."""

    def __init__(self, output: Output, opening: bytes) -> None:
        self._output = output
        self._lines = bytearray(opening)
        self._version = 1
        self._stored_version = 0
        self._is_putting = False
        self._change = threading.Condition()
        self.wait_until_stored(1)

    def append(self, lines: bytes) -> int:
        """Add lines, to be put when a caller waits for them."""
        with self._change:
            self._lines += lines
            self._version += 1
            return self._version

    def wait_until_stored(self, position: int) -> None:
        """Return when the store has all lines up to a version."""
        while True:
            with self._change:
                self._change.wait_for(
                    lambda: self._stored_version >= position or not self._is_putting
                )
                if self._stored_version >= position:
                    return
                self._is_putting = True
                data, version = bytes(self._lines), self._version
            try:
                self._output.write(JOURNAL, data)
            except BaseException:
                version = self._stored_version
                raise
            finally:
                with self._change:
                    self._stored_version, self._is_putting = version, False
                    self._change.notify_all()

    def size(self) -> int:
        """The number of bytes."""
        with self._change:
            return len(self._lines)

    def restart(self, opening: bytes, *, since: int) -> None:
        """Put a journal that starts with these lines."""
        with self._change:
            self._lines = bytearray(opening) + self._lines[since:]
            self._version += 1
            version = self._version
        self.wait_until_stored(version)

    def close(self) -> None:
        """Do nothing: there are no resources."""


Outcome = Literal["crawled", "incomplete", "failed"]
"""An incomplete website counts as crawled, and `--resume` crawls it again."""


class _JournalModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CrawlTotals(_JournalModel):
    """The counts of a crawl at one time; they grow with it, and so identify the time."""

    websites_crawled: Count = 0
    websites_failed: Count = 0
    pdfs_discovered: Count = 0
    pdfs_downloaded: Count = 0
    pdfs_failed: Count = 0
    bytes_downloaded: Count = 0

    @property
    def progress(self) -> int:
        """A number that grows with each event, also when a failed PDF is downloaded later."""
        websites = self.websites_crawled + self.websites_failed
        return websites + self.pdfs_discovered + 2 * self.pdfs_downloaded + self.pdfs_failed


class _JournalLine(_JournalModel):
    at: UtcTime
    totals: CrawlTotals


class JournalOpened(_JournalLine):
    """The start of the journal; what happened before is in the metadata."""

    event: Literal["opened"] = "opened"
    crawl_id: Id


class Discovered(_JournalLine):
    """A website lists some PDFs."""

    event: Literal["discovered"] = "discovered"
    website_id: str
    urls: tuple[str, ...]


class Downloaded(_JournalLine):
    """Some PDFs are in the output."""

    event: Literal["downloaded"] = "downloaded"
    pdfs: tuple[DownloadedPDF, ...]


class Unchanged(_JournalLine):
    """A PDF has not changed since an earlier crawl."""

    event: Literal["unchanged"] = "unchanged"
    url: str


class DownloadFailed(_JournalLine):
    """A PDF was not downloaded."""

    event: Literal["failed"] = "failed"
    url: str
    error: CrawlError


class CrawlProblem(_JournalLine):
    """An error that is not of one PDF."""

    event: Literal["trouble"] = "trouble"
    error: CrawlError


class FilesAdvanced(_JournalLine):
    """The state of some PDFs."""

    event: Literal["state"] = "state"
    urls: tuple[str, ...]
    state: PdfState


class WebsiteDone(_JournalLine):
    """The end of a website, and how it ended."""

    event: Literal["website"] = "website"
    website_id: str
    outcome: Outcome
    error: CrawlError | None = None


Event = (
    JournalOpened
    | Discovered
    | Downloaded
    | Unchanged
    | DownloadFailed
    | CrawlProblem
    | FilesAdvanced
    | WebsiteDone
)
_LINE: Final[TypeAdapter[Event]] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def line_of(event: Event) -> bytes:
    """The line of an event in the journal."""
    return event.model_dump_json().encode() + b"\n"


def read_events(journal: bytes) -> Iterator[Event]:
    """The events of a journal, up to the first incomplete line."""
    *lines, _ = journal.split(b"\n")
    for line in lines:
        try:
            yield _LINE.validate_json(line)
        except ValidationError:
            return

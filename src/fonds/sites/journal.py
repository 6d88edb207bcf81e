"""The journal of a crawl: appended to in a folder, put again whole where nothing can append.

What the journal of a crawl tells: an object to a line, each with its time and the counts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Annotated, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fonds.errors import StoreError
from fonds.sites.models import Count, CrawlError, DownloadedPDF, Id, Moment, PdfState
from fonds.sites.output import JOURNAL, Output


class CrawlJournal(Protocol):
    """Lines, each of which outlives the process that wrote it."""

    def append(self, lines: bytes) -> int:
        """Add lines; `settle` tells when they are safe."""
        ...

    def settle(self, upto: int) -> None:
        """Return when what was appended is safe from the death of this process."""
        ...

    def mark(self) -> int:
        """How long the journal is."""
        ...

    def restart(self, opening: bytes, *, since: int) -> None:
        """Begin anew with these lines and those that came after a mark."""
        ...

    def close(self) -> None:
        """Give back what the journal holds of the machine."""
        ...


def open_journal(output: Output, opening: bytes) -> CrawlJournal:
    """A journal that begins with these lines, in place of any other."""
    return FileJournal(output, opening) if output.folder else ObjectJournal(output, opening)


class FileJournal:
    """A journal in a file; whoever calls lets one thread at a time in."""

    def __init__(self, output: Output, opening: bytes) -> None:
        assert output.folder
        self._output = output
        self._path = output.folder / output.records / JOURNAL
        self._begin(opening)

    def append(self, lines: bytes) -> int:
        """Add lines, all or none; they are with the operating system when this returns."""
        self._output.seams.durable("journal.append", JOURNAL)
        try:
            written = os.write(self._file, lines)
        except OSError as error:
            raise StoreError(f"cannot write {self._path}: {error.strerror}") from error
        if written < len(lines):
            # Half a line would hide all that follow it.
            os.ftruncate(self._file, self._size)
            raise StoreError(f"cannot write {self._path}: the disk is full")
        self._size += len(lines)
        return self._size

    def settle(self, upto: int) -> None:
        """Nothing is left to do."""

    def mark(self) -> int:
        """How many bytes there are."""
        return self._size

    def restart(self, opening: bytes, *, since: int) -> None:
        """Replace the file by one that begins with these lines."""
        with self._path.open("rb") as file:
            file.seek(since)
            tail = file.read()
        former = self._file
        self._begin(opening + tail)
        os.close(former)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _begin(self, lines: bytes) -> None:
        self._output.write(JOURNAL, lines)
        self._file, self._size = -1, len(lines)
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        except OSError as error:
            raise StoreError(f"cannot open {self._path}: {error.strerror}") from error


class ObjectJournal:
    """A journal in an object; lines that come while it is being put share the next time."""

    def __init__(self, output: Output, opening: bytes) -> None:
        self._output = output
        self._lines = bytearray(opening)
        self._asked = 1
        self._safe = 0
        self._is_putting = False
        self._change = threading.Condition()
        self.settle(1)

    def append(self, lines: bytes) -> int:
        """Add lines, to be put when somebody waits for them."""
        with self._change:
            self._lines += lines
            self._asked += 1
            return self._asked

    def settle(self, upto: int) -> None:
        """Return when all lines up to one are in the store."""
        while True:
            with self._change:
                self._change.wait_for(lambda: self._safe >= upto or not self._is_putting)
                if self._safe >= upto:
                    return
                self._is_putting = True
                data, asked = bytes(self._lines), self._asked
            try:
                self._output.write(JOURNAL, data)
            except BaseException:
                asked = self._safe
                raise
            finally:
                with self._change:
                    self._safe, self._is_putting = asked, False
                    self._change.notify_all()

    def mark(self) -> int:
        """How many bytes there are."""
        with self._change:
            return len(self._lines)

    def restart(self, opening: bytes, *, since: int) -> None:
        """Put a journal that begins with these lines."""
        with self._change:
            self._lines = bytearray(opening) + self._lines[since:]
            self._asked += 1
            asked = self._asked
        self.settle(asked)

    def close(self) -> None:
        """Nothing is held."""


Outcome = Literal["crawled", "failed"]


class _JournalModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CrawlTotals(_JournalModel):
    """The counts of a crawl at one moment; they grow with it, and so tell its moments apart."""

    websites_crawled: Count = 0
    websites_failed: Count = 0
    pdfs_discovered: Count = 0
    pdfs_downloaded: Count = 0
    pdfs_failed: Count = 0
    bytes_downloaded: Count = 0

    @property
    def progress(self) -> int:
        """How far a crawl has come; a failed PDF that is fetched after all is a step ahead."""
        websites = self.websites_crawled + self.websites_failed
        return websites + self.pdfs_discovered + 2 * self.pdfs_downloaded + self.pdfs_failed


class _JournalLine(_JournalModel):
    at: Moment
    totals: CrawlTotals


class JournalOpened(_JournalLine):
    """The journal begins here; what came before stands in the metadata."""

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
    """A PDF is what an earlier crawl got."""

    event: Literal["unchanged"] = "unchanged"
    url: str


class DownloadFailed(_JournalLine):
    """A PDF was not fetched."""

    event: Literal["failed"] = "failed"
    url: str
    error: CrawlError


class CrawlProblem(_JournalLine):
    """Something else went wrong: a page, an answer that makes no sense."""

    event: Literal["trouble"] = "trouble"
    error: CrawlError


class FilesAdvanced(_JournalLine):
    """Some PDFs have come so far."""

    event: Literal["state"] = "state"
    urls: tuple[str, ...]
    state: PdfState


class WebsiteDone(_JournalLine):
    """A website has been gone through, or given up."""

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
    """An event as it stands in the journal."""
    return event.model_dump_json().encode() + b"\n"


def read_events(journal: bytes) -> Iterator[Event]:
    """The events of a journal, up to where it is torn."""
    *lines, _ = journal.split(b"\n")
    for line in lines:
        try:
            yield _LINE.validate_json(line)
        except ValidationError:
            return

"""The state of a crawl: `metadata.json`, and the journal of what happened since it was written.

Every event is recorded in the journal at once. From time to time all is folded: `metadata.json` is
replaced first, then the journal is started again. Each line of it carries the counts after it:
after a crash, what follows the first line whose counts are those of `metadata.json` is not yet in
there. An event that changes no count can be added twice and changes nothing the second time.

A part of a crawl that runs on another machine has a state of its own beside that of the whole.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Self

from fonds.errors import FondsError, StoreError
from fonds.seams import Clock
from fonds.sites.crawl_index import CrawlIndex
from fonds.sites.journal import (
    CrawlJournal,
    CrawlProblem,
    CrawlTotals,
    Discovered,
    Downloaded,
    DownloadFailed,
    Event,
    FilesAdvanced,
    JournalOpened,
    Outcome,
    Unchanged,
    WebsiteDone,
    line_of,
    open_journal,
    read_events,
)
from fonds.sites.metadata_file import (
    Entry,
    StoredMetadata,
    scan_metadata,
    with_totals,
    write_metadata,
)
from fonds.sites.models import CrawlError, CrawlMetadata, DownloadedPDF, PdfState
from fonds.sites.output import JOURNAL, METADATA, Output
from fonds.stores.sqlite import batched


@dataclass(kw_only=True)
class PartRecord:
    """The files, errors and websites of a part of a crawl, however it ended."""

    crawl_id: str
    files: list[DownloadedPDF] = field(default_factory=list)
    """Those of earlier crawls too."""
    errors: list[CrawlError] = field(default_factory=list)
    websites: dict[str, Outcome] = field(default_factory=dict)
    """How each ended that did."""


def read_stored(output: Output) -> StoredMetadata | None:
    """The metadata of an output or a part; None if it has none."""
    chunks = output.read(METADATA)
    path = f"{output.address}/{output.records}{METADATA}"
    return scan_metadata(chunks, path=path) if chunks else None


def read_part(part: Output) -> PartRecord | None:
    """The record of a part; None if it has not started."""
    stored = read_stored(part)
    if stored is None:
        return None
    record = PartRecord(crawl_id=stored.opening.crawl_id)
    for entry in stored.entries:
        if isinstance(entry, DownloadedPDF):
            record.files.append(entry)
        else:
            record.errors.append(entry)
    for event in _part_events(part, record.crawl_id):
        match event:
            case Downloaded(pdfs=pdfs):
                record.files.extend(pdfs)
            case DownloadFailed(error=error) | CrawlProblem(error=error):
                record.errors.append(error)
            case WebsiteDone(website_id=website, outcome=outcome, error=reason):
                record.websites[website] = outcome
                record.errors.extend([reason] if reason else [])
    return record


def _part_events(part: Output, crawl_id: str) -> Iterator[Event]:
    """The events of a part, unless its journal is that of an earlier crawl."""
    events = read_events(b"".join(part.read(JOURNAL) or ()))
    first = next(events, None)
    if isinstance(first, JournalOpened) and first.crawl_id == crawl_id:
        yield from events


FOLD_SECONDS: Final = 10.0
MAX_UNFOLDED: Final = 1000
"""Downloads that are in the journal alone."""
_FOLD_DOWNLOADS: Final = 700
_FOLD_EVENTS: Final = 20_000


Load = Callable[[Iterable[Event], Iterable[tuple[str, int]]], None]
"""Called with the events of a journal, and the paths and sizes of the files in the output."""


class CrawlState:
    """All that a crawl found, stored and failed on; for several threads of one process."""

    def __init__(
        self, output: Output, opening: CrawlMetadata, clock: Clock, scratch: Path | None
    ) -> None:
        self.opening = opening
        self.follows = False
        """True if the output had a crawl before, be it this one."""
        self._output = output
        self._clock = clock
        self._scratch = scratch
        self._index = CrawlIndex(opening, scratch)
        self._journal: CrawlJournal | None = None
        self._downloads = self._events = 0
        """In the journal alone."""
        self._failure: Exception | None = None
        self._is_closed = False
        self._change = threading.Condition()
        self._folding = threading.Lock()
        self._wake = threading.Event()
        self._folder = threading.Thread(target=self._fold_regularly, name="fold", daemon=True)

    # Opening and closing

    @classmethod
    def begin(
        cls,
        output: Output,
        opening: CrawlMetadata,
        clock: Clock,
        *,
        scratch: Path | None = None,
        newer_entries: Iterable[Entry] = (),
    ) -> Self:
        """A new crawl; the entries of earlier ones whose files still exist are carried over.

        `newer_entries` come from other outputs and follow those of this one.
        """
        stored = read_stored(output)
        state = cls(output, opening, clock, scratch)
        entries = chain(stored.entries if stored else (), newer_entries)
        state._start(stored, partial(state._index.carry_over, entries))
        return state

    @classmethod
    def resume(cls, output: Output, clock: Clock, *, scratch: Path | None = None) -> Self:
        """The crawl that was stopped in this output, as it was then."""
        stored = read_stored(output)
        if stored is None:
            raise StoreError(
                f"There is no crawl in {output.address} to resume. Crawl without --resume."
            )
        opening = stored.opening.model_copy(update={"crawl_end_time": None})
        state = cls(output, opening, clock, scratch)
        state._start(stored, partial(state._index.restore, stored.entries))
        return state

    def close(self, ended: datetime | None = None) -> None:
        """Fold everything; without an end, the crawl can be resumed."""
        if self._is_closed:
            return
        self._is_closed = True
        self._wake.set()
        self._folder.join()
        if ended:
            ended = max(ended, self.started + timedelta(milliseconds=1))
        try:
            self.fold(ended)
        finally:
            self._dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading

    @property
    def crawl_id(self) -> str:
        """The crawl's UUID, the same after it was resumed."""
        return self.opening.crawl_id

    @property
    def started(self) -> datetime:
        """The time when the crawl started, not when it was resumed."""
        return self.opening.crawl_start_time

    @property
    def totals(self) -> CrawlTotals:
        """The current counts."""
        return self._index.totals

    def find(self, url: str) -> DownloadedPDF | None:
        """The newest entry of an address, of any crawl, whose file is in this output."""
        with self._change:
            return self._index.find(url)

    def path_of(self, sha256: str) -> str | None:
        """The path in this output of bytes with this hash."""
        with self._change:
            return self._index.path_of(sha256)

    def websites(self) -> dict[str, Outcome]:
        """How each website ended that this crawl is done with."""
        with self._change:
            return dict(self._index.websites)

    def recall(self, urls: Iterable[str]) -> None:
        """Name addresses that this crawl discovered before it was resumed.

        Its files do not name those that are unchanged. Unless they are named, as many addresses
        that are new would be taken for them, and not be counted.
        """
        with self._change:
            self._index.recall(urls)

    # Recording

    def discovered(self, website_id: str, *urls: str) -> None:
        """Record PDFs that a website lists; an address counts once."""
        if urls:
            self.record(Discovered(**self._header(), website_id=website_id, urls=urls))

    def moved(self, urls: Iterable[str], state: PdfState) -> None:
        """Record the state of some PDFs; no caller waits until the journal is stored."""
        if moved := tuple(urls):
            event = FilesAdvanced(**self._header(), urls=moved, state=state)
            self.record(event, waits=False)

    def stored(self, pdf: DownloadedPDF) -> None:
        """Record a PDF that is in the output."""
        header, url = self._header(), pdf.original_url
        advanced = FilesAdvanced(**header, urls=(url,), state=PdfState.STORED)
        self.record(advanced, Downloaded(**header, pdfs=(pdf,)))

    def unchanged(self, url: str) -> None:
        """Record a PDF that is in the output and has not changed since."""
        self.record(Unchanged(**self._header(), url=url))

    def failed(self, url: str, error: CrawlError) -> None:
        """Record a PDF that was not stored; if it is stored later, it counts as downloaded."""
        error = error.model_copy(update={"url": url})
        self.record(DownloadFailed(**self._header(), url=url, error=error))

    def problem(self, error: CrawlError) -> None:
        """Record an error that no PDF is counted for."""
        self.record(CrawlProblem(**self._header(), error=error))

    def website(self, website_id: str, outcome: Outcome, error: CrawlError | None = None) -> None:
        """Record the end of a website."""
        header = self._header()
        self.record(WebsiteDone(**header, website_id=website_id, outcome=outcome, error=error))

    def merge(self, part: PartRecord, discovered: Mapping[str, Sequence[str]]) -> None:
        """Record a part of this crawl; a second time, it changes nothing.

        Its metadata does not list what was `discovered`, by website, and has not changed.
        """
        header = self._header()
        events: list[Event] = [
            Discovered(**header, website_id=website, urls=tuple(batch))
            for website, urls in discovered.items()
            for batch in batched(urls)
        ]
        for error in part.errors:
            failed = error.url and DownloadFailed(**header, url=error.url, error=error)
            events.append(failed or CrawlProblem(**header, error=error))
        new = (pdf for pdf in part.files if pdf.download_timestamp >= self.started)
        events += (Downloaded(**header, pdfs=tuple(batch)) for batch in batched(new))
        # Last: a crawl that is stopped before this has not recorded the end of the website.
        for website, outcome in part.websites.items():
            events.append(WebsiteDone(**header, website_id=website, outcome=outcome))
        self.record(*events)

    def record(self, *events: Event, waits: bool = True) -> None:
        """Add events to the journal and the counts; return when they outlive this process."""
        assert self._journal
        size = 0
        for event in events:
            with self._change:
                self._wait_for_fold(event)
                size = self._append(event)
        if waits:
            self._journal.wait_until_stored(size)

    def _header(self) -> dict[str, Any]:
        return {"at": self._clock.now(), "totals": self.totals}

    def _append(self, event: Event) -> int:
        assert self._journal
        totals = self._index.totals_after(event)
        size = self._journal.append(line_of(event.model_copy(update={"totals": totals})))
        self._index.add(event)
        self._events += 1
        self._downloads += _downloads(event)
        if self._downloads >= _FOLD_DOWNLOADS or self._events >= _FOLD_EVENTS:
            self._wake.set()
        return size

    def _wait_for_fold(self, event: Event) -> None:
        if new := _downloads(event):
            limit = max(0, MAX_UNFOLDED - new)
            self._change.wait_for(lambda: self._downloads <= limit or self._failure)
            if self._failure and self._downloads > limit:
                raise self._failure

    # Folding

    def fold(self, ended: datetime | None = None) -> None:
        """Bring `metadata.json` up to date, and start the journal again."""
        index = self._index
        with self._folding:
            with self._change:
                totals, downloads, events = self.totals, self._downloads, self._events
                write_files = partial(index.files.copy, index.files.ranges())
                write_errors = partial(index.errors.copy, index.errors.ranges())
                size = self._journal.size() if self._journal else 0
            metadata = with_totals(self.opening, totals, ended)
            with NamedTemporaryFile(prefix="fonds-crawl-", dir=self._scratch) as file:
                write_metadata(Path(file.name), metadata, write_files, write_errors)
                self._output.write(METADATA, Path(file.name))
            with self._change:
                self._start_journal(totals, size)
                self._downloads -= downloads
                self._events -= events
                self._failure = None
                self._change.notify_all()

    def _fold_regularly(self) -> None:
        while not self._is_closed:
            # Early enough to be done in time.
            self._wake.wait(0.8 * FOLD_SECONDS)
            self._wake.clear()
            try:
                if self._events and not self._is_closed:
                    self.fold()
            except (FondsError, OSError) as error:
                # Everything is in the journal; `close` raises the error if it persists.
                with self._change:
                    self._failure = error
                    self._change.notify_all()

    def _start(self, stored: StoredMetadata | None, load: Load) -> None:
        self.follows = stored is not None
        try:
            journal = b"".join((stored and self._output.read(JOURNAL)) or ())
            load(read_events(journal), self._output.files())
            self.fold()
        except BaseException:
            self._dispose()
            raise
        self._folder.start()

    def _dispose(self) -> None:
        if self._journal:
            self._journal.close()
        self._index.close()

    def _start_journal(self, totals: CrawlTotals, size: int) -> None:
        """Start with what `metadata.json` does not contain: ended websites, PDFs in progress."""
        header: dict[str, Any] = {"at": self._clock.now(), "totals": totals}
        events: list[Event] = [JournalOpened(**header, crawl_id=self.crawl_id)]
        for website, outcome in sorted(self._index.websites.items()):
            events.append(WebsiteDone(**header, website_id=website, outcome=outcome))
        for url, state in sorted(self._index.in_progress.items()):
            events.append(FilesAdvanced(**header, urls=(url,), state=state))
        opening = b"".join(map(line_of, events))
        if self._journal:
            self._journal.restart(opening, since=size)
        else:
            self._journal = open_journal(self._output, opening)


def _downloads(event: Event) -> int:
    return len(event.pdfs) if isinstance(event, Downloaded) else 0

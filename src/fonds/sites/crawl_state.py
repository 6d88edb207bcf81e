"""The state of a crawl: `metadata.json`, and the journal of what happened since it was written.

Whatever happens goes to the journal at once. From time to time all is folded: `metadata.json` is
replaced first, then the journal is begun anew. Every line of it carries the counts of its moment:
after a crash, what follows the first line whose counts are those of `metadata.json` is not yet in
there. Events that change no count can be told twice and change nothing the second time.

What the events of a crawl add up to, also when they are told a second time.

Parts of a crawl that run on machines of their own, each with a ledger beside the whole one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import Any, Final, Self

from fonds.errors import FondsError, StoreError
from fonds.seams import Clock
from fonds.sites.book import Book
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
    Entries,
    Entry,
    StoredMetadata,
    scan_metadata,
    totals_of,
    with_totals,
    write_metadata,
)
from fonds.sites.models import CrawlError, CrawlMetadata, DownloadedPDF, PdfState
from fonds.sites.output import JOURNAL, METADATA, Output
from fonds.stores.sqlite import batched

_STRANGE: Final = (
    f"{JOURNAL} goes on from another {METADATA}: bring back the one it belongs to, or remove the"
    " journal"
)


class Accounts:
    """The counts of a crawl, and the book from which they can be counted again."""

    def __init__(self, opening: CrawlMetadata, book: Book) -> None:
        self.totals = totals_of(opening)
        self._websites = opening.total_websites
        self._crawl_id = opening.crawl_id
        self._book = book
        self._unnamed = 0

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Forget what is added in this block if it ends with an error."""
        before = self.totals, self._unnamed
        self._book.begin()
        try:
            yield
        except BaseException:
            self._book.undo()
            self.totals, self._unnamed = before
            raise
        self._book.keep()

    def add(self, event: Event) -> Event:
        """Take an event in, and give it with the counts after it."""
        self.totals = self._after(event)
        if event.totals is self.totals:
            return event
        return event.model_copy(update={"totals": self.totals})

    # What an event changes

    def _after(self, event: Event) -> CrawlTotals:
        totals = self.totals
        match event:
            case Discovered(urls=urls):
                totals = self._meet(urls)
            case Unchanged(url=url):
                totals = self._move([url], PdfState.INDEXED)
            case FilesAdvanced(urls=urls, state=state):
                totals = self._move(urls, state)
            case Downloaded(pdfs=pdfs):
                totals = self._take(pdfs)
            case DownloadFailed(url=url, error=error):
                self._book.add_error(error)
                totals = self._fail(url)
            case CrawlProblem(error=error):
                self._book.add_error(error)
            case WebsiteDone():
                totals = self._finish(event)
        return totals

    def _meet(self, urls: Sequence[str]) -> CrawlTotals:
        new = self._book.meet(urls)
        # Of a crawl that was resumed, nothing tells which addresses had been discovered and not
        # yet fetched. They are met again, and count as what they are: known.
        known = min(new, self._unnamed)
        self._unnamed -= known
        return _raised(self.totals, pdfs_discovered=new - known)

    def _move(self, urls: Sequence[str], state: PdfState) -> CrawlTotals:
        if self._book.move(urls, state) == len(set(urls)):
            return self.totals
        totals = self._meet(urls)
        self._book.move(urls, state)
        return totals

    def _take(self, pdfs: Sequence[DownloadedPDF]) -> CrawlTotals:
        urls = [pdf.original_url for pdf in pdfs]
        totals = self._meet(urls)
        self._book.enter(pdfs, is_here=True)
        before = self._book.counted(urls)
        self._book.count(urls, "downloaded")
        new = {
            pdf.original_url: pdf
            for pdf in reversed(pdfs)
            if before.get(pdf.original_url) != "downloaded"
        }
        return _raised(
            totals,
            pdfs_downloaded=len(new),
            bytes_downloaded=sum(pdf.file_size_bytes for pdf in new.values()),
            pdfs_failed=-sum(before.get(url) == "failed" for url in new),
        )

    def _fail(self, url: str) -> CrawlTotals:
        totals = self._meet([url])
        if self._book.counted([url]):
            return totals
        self._book.count([url], "failed")
        return _raised(totals, pdfs_failed=1)

    def _finish(self, event: WebsiteDone) -> CrawlTotals:
        if event.error:
            self._book.add_error(event.error)
        before = self._book.outcome(event.website_id)
        if before is None and len(self._book.websites()) >= self._websites:
            raise StoreError(f"{event.website_id} is not one of the websites of this crawl")
        self._book.end(event.website_id, event.outcome)
        totals = _raised(self.totals, **{f"websites_{before}": -1}) if before else self.totals
        return _raised(totals, **{f"websites_{event.outcome}": 1})

    # What was there

    def carry_over(self, entries: Iterable[Entry], journal: Iterable[Event]) -> None:
        """Take over the entries of earlier crawls whose files still stand."""
        for entry in entries:
            if isinstance(entry, DownloadedPDF) and self._book.holds(entry):
                self._book.enter([entry], is_here=True)
        for event in journal:
            if isinstance(event, Downloaded):
                here = [pdf for pdf in event.pdfs if self._book.holds(pdf)]
                self._book.enter(here, is_here=True)

    def recall(self, entries: Iterable[Entry], journal: Iterable[Event]) -> None:
        """Come to where this crawl was when it was stopped."""
        for entry in entries:
            if isinstance(entry, DownloadedPDF):
                self._book.enter([entry], is_here=self._book.holds(entry))
                continue
            self._book.add_error(entry)
            if entry.url:
                self._fail(entry.url)
        # Those of this crawl stand behind those that it carried over.
        self._book.count_newest(self.totals.pdfs_downloaded)
        self._replay(iter(journal))
        ended = list(self._book.websites().values())
        self.totals = self.totals.model_copy(
            update={
                "websites_crawled": ended.count("crawled"),
                "websites_failed": ended.count("failed"),
            }
        )
        self._unnamed = max(0, self.totals.pdfs_discovered - self._book.met())

    def _replay(self, journal: Iterator[Event]) -> None:
        first = next(journal, None)
        if not isinstance(first, JournalOpened) or first.crawl_id != self._crawl_id:
            # The metadata of a new crawl was written, and its journal not yet begun.
            return
        folded, last = self.totals, first.totals
        is_folded = last != folded
        for event in journal:
            # Folded or not, the book takes it in a second time without harm.
            self._after(event)
            last = event.totals
            is_folded = is_folded and last != folded
            self.totals = folded if is_folded else last
        # A store may have got the metadata before the last lines that are in it.
        if is_folded and last.progress > folded.progress:
            raise StoreError(_STRANGE)


def _raised(totals: CrawlTotals, **by: int) -> CrawlTotals:
    if not any(by.values()):
        return totals
    return totals.model_copy(
        update={name: getattr(totals, name) + amount for name, amount in by.items()}
    )


@dataclass(kw_only=True)
class PartTold:
    """What the ledger of a part tells, however it ended."""

    crawl_id: str
    files: list[DownloadedPDF] = field(default_factory=list)
    """Those of earlier crawls too."""
    errors: list[CrawlError] = field(default_factory=list)
    websites: dict[str, Outcome] = field(default_factory=dict)
    """How each ended that did."""


def stored_in(output: Output) -> StoredMetadata | None:
    """The metadata of an output or a part; None where there is none."""
    pieces = output.read(METADATA)
    path = f"{output.address}/{output.records}{METADATA}"
    return scan_metadata(pieces, path=path) if pieces else None


def read_part(part: Output) -> PartTold | None:
    """What a part tells; None where it has not begun."""
    stored = stored_in(part)
    if stored is None:
        return None
    told = PartTold(crawl_id=stored.opening.crawl_id)
    for entry in stored.entries:
        if isinstance(entry, DownloadedPDF):
            told.files.append(entry)
        else:
            told.errors.append(entry)
    for event in _journal(part, told.crawl_id):
        _add(told, event)
    return told


def _journal(part: Output, crawl_id: str) -> Iterator[Event]:
    """The events of a part, unless its journal is that of an earlier crawl."""
    events = read_events(b"".join(part.read(JOURNAL) or ()))
    first = next(events, None)
    if isinstance(first, JournalOpened) and first.crawl_id == crawl_id:
        yield from events


def _add(told: PartTold, event: Event) -> None:
    match event:
        case Downloaded(pdfs=pdfs):
            told.files.extend(pdfs)
        case DownloadFailed(error=error) | CrawlProblem(error=error):
            told.errors.append(error)
        case WebsiteDone(website_id=website, outcome=outcome, error=reason):
            told.websites[website] = outcome
            told.errors.extend([reason] if reason else [])


FOLD_SECONDS: Final = 10.0
FOLD_FILES: Final = 1000
"""So many downloads at most stand in the journal alone."""
_FOLD_BEGIN: Final = 700
_FOLD_EVENTS: Final = 20_000
_AT_ONCE: Final = 1000


class CrawlState:
    """What a crawl found, fetched, skipped and failed on; for many threads of one process."""

    def __init__(
        self, output: Output, opening: CrawlMetadata, clock: Clock, scratch: Path | None
    ) -> None:
        self.opening = opening
        self.follows = False
        """Whether the output held a crawl before, be it this one."""
        self._output = output
        self._clock = clock
        self._scratch = scratch
        self._book = Book(scratch)
        self._files, self._errors = Entries(scratch), Entries(scratch)
        self._accounts = Accounts(opening, self._book)
        self._journal: CrawlJournal | None = None
        self._downloads = self._events = 0
        self._failure: Exception | None = None
        self._is_closed = False
        self._change = threading.Condition()
        self._folding = threading.Lock()
        self._wake = threading.Event()
        self._folder = threading.Thread(target=self._fold_on, name="fold", daemon=True)

    # Opening and closing

    @classmethod
    def begin(
        cls,
        output: Output,
        opening: CrawlMetadata,
        clock: Clock,
        *,
        scratch: Path | None = None,
        besides: Iterable[Entry] = (),
    ) -> Self:
        """A new crawl; the entries of earlier ones whose files still stand are carried over.

        `besides` are further ones, from other ledgers, and newer than those of this one.
        """
        stored = stored_in(output)
        ledger = cls(output, opening, clock, scratch)
        ledger._start(stored, ledger._accounts.carry_over, besides)
        return ledger

    @classmethod
    def resume(cls, output: Output, clock: Clock, *, scratch: Path | None = None) -> Self:
        """The crawl that was stopped here, as it was then."""
        stored = stored_in(output)
        if stored is None:
            raise StoreError(f"there is no crawl in {output.address} that could be resumed")
        opening = stored.opening.model_copy(update={"crawl_end_time": None})
        ledger = cls(output, opening, clock, scratch)
        ledger._start(stored, ledger._accounts.recall)
        return ledger

    def close(self, ended: datetime | None = None) -> None:
        """Fold all there is; without an end, the crawl is one that can be resumed."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # What is known

    @property
    def crawl_id(self) -> str:
        """The crawl's UUID, the same after it was resumed."""
        return self.opening.crawl_id

    @property
    def started(self) -> datetime:
        """When the crawl began, not when it was resumed."""
        return self.opening.crawl_start_time

    @property
    def totals(self) -> CrawlTotals:
        """The counts of this moment."""
        return self._accounts.totals

    def find(self, url: str) -> DownloadedPDF | None:
        """What this output holds for an address, by whatever crawl; the newest, if several."""
        with self._change:
            return self._book.find(url)

    def path_of(self, sha256: str) -> str | None:
        """Where this output holds bytes with this hash."""
        with self._change:
            return self._book.path_of(sha256)

    def websites(self) -> dict[str, Outcome]:
        """How each website ended that has been gone through in this crawl."""
        with self._change:
            return self._book.websites()

    # What happens

    def discovered(self, website_id: str, *urls: str) -> None:
        """Some PDFs are listed; an address counts once, however often it is told."""
        if urls:
            self._note(Discovered(**self._stamp(), website_id=website_id, urls=urls))

    def downloaded(self, *pdfs: DownloadedPDF) -> None:
        """Some PDFs are in the output."""
        self._note(Downloaded(**self._stamp(), pdfs=pdfs))

    def unchanged(self, url: str) -> None:
        """A PDF is what an earlier crawl got."""
        self._note(Unchanged(**self._stamp(), url=url))

    def failed(self, url: str, error: CrawlError) -> None:
        """A PDF was not fetched; should it be fetched after all, it counts as downloaded."""
        told = error.model_copy(update={"url": url})
        self._note(DownloadFailed(**self._stamp(), url=url, error=told))

    def trouble(self, error: CrawlError) -> None:
        """Something else went wrong, which no PDF is counted for."""
        self._note(CrawlProblem(**self._stamp(), error=error))

    def stored(self, pdfs: Sequence[DownloadedPDF]) -> None:
        """Some PDFs have just been placed in the output."""
        if pdfs:
            moment, urls = self._stamp(), tuple(pdf.original_url for pdf in pdfs)
            moved = FilesAdvanced(**moment, urls=urls, state=PdfState.STORED)
            self._note(moved, Downloaded(**moment, pdfs=tuple(pdfs)))

    def moved(self, urls: Iterable[str], state: PdfState) -> None:
        """Some PDFs have come so far; where a journal is put whole, nobody waits for it."""
        if some := tuple(urls):
            self._note(FilesAdvanced(**self._stamp(), urls=some, state=state), waits=False)

    def website(self, website_id: str, outcome: Outcome, error: CrawlError | None = None) -> None:
        """A website has been gone through, or given up for a reason."""
        self._note(
            WebsiteDone(**self._stamp(), website_id=website_id, outcome=outcome, error=error)
        )

    def merge(self, part: PartTold, discovered: Mapping[str, Sequence[str]]) -> None:
        """Take in the ledger of a part of this crawl; told a second time, it changes nothing.

        Metadata does not tell what was `discovered` and has not changed, by website.
        """
        moment = self._stamp()
        events: list[Event] = [
            Discovered(**moment, website_id=website, urls=tuple(some))
            for website, urls in discovered.items()
            for some in batched(urls)
        ]
        for error in part.errors:
            failed = error.url and DownloadFailed(**moment, url=error.url, error=error)
            events.append(failed or CrawlProblem(**moment, error=error))
        new = (pdf for pdf in part.files if pdf.download_timestamp >= self.started)
        events += (Downloaded(**moment, pdfs=tuple(some)) for some in batched(new))
        # Last: whoever is stopped before has not seen the end of the website.
        for website, outcome in part.websites.items():
            events.append(WebsiteDone(**moment, website_id=website, outcome=outcome))
        for some in batched(events):
            self._note(*some)

    def _stamp(self) -> dict[str, Any]:
        return {"at": self._clock.now(), "totals": self.totals}

    def _note(self, *events: Event, waits: bool = True) -> None:
        """Return when the events outlive this process."""
        assert self._journal
        with self._change:
            self._hold_back(events)
            upto = self._append(events)
        if waits:
            self._journal.settle(upto)

    def _append(self, events: tuple[Event, ...]) -> int:
        assert self._journal
        with self._accounts.all_or_nothing():
            lines = [line_of(self._accounts.add(event)) for event in events]
            upto = self._journal.append(b"".join(lines))
        self._events += len(events)
        self._downloads += _downloads(events)
        if self._downloads >= _FOLD_BEGIN or self._events >= _FOLD_EVENTS:
            self._wake.set()
        return upto

    def _hold_back(self, events: tuple[Event, ...]) -> None:
        if new := _downloads(events):
            most = max(0, FOLD_FILES - new)
            self._change.wait_for(lambda: self._downloads <= most or self._failure)
            if self._failure and self._downloads > most:
                raise self._failure

    # Folding

    def fold(self, ended: datetime | None = None) -> None:
        """Bring `metadata.json` up to date, and begin the journal anew."""
        with self._folding:
            with self._change:
                totals, downloads, events = self.totals, self._downloads, self._events
                ends = self._book.last("files"), self._book.last("errors")
                mark = self._journal.mark() if self._journal else 0
                if self._book.has_changed(self._files.last):
                    self._files.clear()
            self._write(totals, ends, ended)
            with self._change:
                self._begin_journal(totals, mark)
                self._downloads -= downloads
                self._events -= events
                self._failure = None
                self._change.notify_all()

    def _fold_on(self) -> None:
        while not self._is_closed:
            # Begun early enough to be done in time.
            self._wake.wait(0.8 * FOLD_SECONDS)
            self._wake.clear()
            try:
                if self._events and not self._is_closed:
                    self.fold()
            except (FondsError, OSError) as error:
                # All is in the journal; whoever closes is told if it goes on like this.
                with self._change:
                    self._failure = error
                    self._change.notify_all()

    def _start(
        self,
        stored: StoredMetadata | None,
        take: Callable[[Iterable[Entry], Iterable[Event]], None],
        besides: Iterable[Entry] = (),
    ) -> None:
        self.follows = stored is not None
        try:
            with self._accounts.all_or_nothing():
                for path, size in self._output.files():
                    self._book.hold(path, size)
                journal = b"".join((stored and self._output.read(JOURNAL)) or ())
                entries = stored.entries if stored else ()
                take(chain(entries, besides), read_events(journal))
            self.fold()
        except BaseException:
            self._dispose()
            raise
        self._folder.start()

    def _dispose(self) -> None:
        for each in (self._journal, self._book, self._files, self._errors):
            if each:
                each.close()

    def _write(self, totals: CrawlTotals, ends: tuple[int, int], ended: datetime | None) -> None:
        metadata = with_totals(self.opening, totals, ended)
        self._files.extend(self._lines(self._book.files, self._files.last, ends[0]))
        self._errors.extend(self._lines(self._book.errors, self._errors.last, ends[1]))
        with NamedTemporaryFile(prefix="fonds-crawl-", dir=self._scratch) as file:
            write_metadata(Path(file.name), metadata, self._files, self._errors)
            self._output.write(METADATA, Path(file.name))

    def _lines(
        self, some: Callable[[int, int, int], list[tuple[int, bytes]]], after: int, upto: int
    ) -> Iterator[tuple[int, bytes]]:
        while True:
            with self._change:
                found = some(after, upto, _AT_ONCE)
            if not found:
                return
            yield from found
            after = found[-1][0]

    def _begin_journal(self, totals: CrawlTotals, mark: int) -> None:
        """What `metadata.json` has no place for is told again: websites done, PDFs under way."""
        at = self._clock.now()
        events: list[Event] = [JournalOpened(at=at, totals=totals, crawl_id=self.crawl_id)]
        for website, outcome in self._book.websites().items():
            events.append(WebsiteDone(at=at, totals=totals, website_id=website, outcome=outcome))
        for url, state in self._book.under_way():
            events.append(FilesAdvanced(at=at, totals=totals, urls=(url,), state=state))
        opening = b"".join(map(line_of, events))
        if self._journal:
            self._journal.restart(opening, since=mark)
        else:
            self._journal = open_journal(self._output, opening)


def _downloads(events: Iterable[Event]) -> int:
    return sum(len(event.pdfs) for event in events if isinstance(event, Downloaded))

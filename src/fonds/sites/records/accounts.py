"""What the events of a crawl add up to, also when they are told a second time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from fonds.errors import StoreError
from fonds.sites.models import CrawlMetadata, DownloadedPDF, PdfState
from fonds.sites.records.book import Book
from fonds.sites.records.events import (
    Discovered,
    Downloaded,
    Event,
    Failed,
    Moved,
    Opened,
    Totals,
    Trouble,
    Unchanged,
    WebsiteDone,
)
from fonds.sites.records.layout import Entry, totals_of
from fonds.sites.records.output import JOURNAL, METADATA

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

    def _after(self, event: Event) -> Totals:
        totals = self.totals
        match event:
            case Discovered(urls=urls):
                for url in urls:
                    self.totals = totals = self._meet(url)
            case Unchanged(url=url):
                totals = self._move(url, PdfState.INDEXED)
            case Moved(urls=urls, state=state):
                for url in urls:
                    self.totals = totals = self._move(url, state)
            case Downloaded(pdf=pdf):
                totals = self._take(pdf)
            case Failed(url=url, error=error):
                self._book.add_error(error)
                totals = self._fail(url)
            case Trouble(error=error):
                self._book.add_error(error)
            case WebsiteDone():
                totals = self._finish(event)
        return totals

    def _meet(self, url: str) -> Totals:
        if not self._book.meet(url):
            return self.totals
        # Of a crawl that was resumed, nothing tells which addresses had been discovered and not
        # yet fetched. They are met again, and count as what they are: known.
        if self._unnamed:
            self._unnamed -= 1
            return self.totals
        return _raised(self.totals, pdfs_discovered=1)

    def _move(self, url: str, state: PdfState) -> Totals:
        if self._book.move(url, state):
            return self.totals
        totals = self._meet(url)
        self._book.move(url, state)
        return totals

    def _take(self, pdf: DownloadedPDF) -> Totals:
        totals, url = self._meet(pdf.original_url), pdf.original_url
        self._book.enter(pdf, is_here=True)
        before = self._book.counted(url)
        self._book.count(url, "downloaded")
        if before == "downloaded":
            return totals
        return _raised(
            totals,
            pdfs_downloaded=1,
            bytes_downloaded=pdf.file_size_bytes,
            pdfs_failed=-1 if before == "failed" else 0,
        )

    def _fail(self, url: str) -> Totals:
        totals = self._meet(url)
        if self._book.counted(url):
            return totals
        self._book.count(url, "failed")
        return _raised(totals, pdfs_failed=1)

    def _finish(self, event: WebsiteDone) -> Totals:
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
                self._book.enter(entry, is_here=True)
        for event in journal:
            if isinstance(event, Downloaded) and self._book.holds(event.pdf):
                self._book.enter(event.pdf, is_here=True)

    def recall(self, entries: Iterable[Entry], journal: Iterable[Event]) -> None:
        """Come to where this crawl was when it was stopped."""
        for entry in entries:
            if isinstance(entry, DownloadedPDF):
                self._book.enter(entry, is_here=self._book.holds(entry))
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
        if not isinstance(first, Opened) or first.crawl_id != self._crawl_id:
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


def _raised(totals: Totals, **by: int) -> Totals:
    return totals.model_copy(
        update={name: getattr(totals, name) + amount for name, amount in by.items()}
    )

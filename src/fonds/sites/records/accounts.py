"""What the events of a crawl add up to, also when they are told a second time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
                totals = self._meet(urls)
            case Unchanged(url=url):
                totals = self._move([url], PdfState.INDEXED)
            case Moved(urls=urls, state=state):
                totals = self._move(urls, state)
            case Downloaded(pdfs=pdfs):
                totals = self._take(pdfs)
            case Failed(url=url, error=error):
                self._book.add_error(error)
                totals = self._fail(url)
            case Trouble(error=error):
                self._book.add_error(error)
            case WebsiteDone():
                totals = self._finish(event)
        return totals

    def _meet(self, urls: Sequence[str]) -> Totals:
        new = self._book.meet(urls)
        # Of a crawl that was resumed, nothing tells which addresses had been discovered and not
        # yet fetched. They are met again, and count as what they are: known.
        known = min(new, self._unnamed)
        self._unnamed -= known
        return _raised(self.totals, pdfs_discovered=new - known)

    def _move(self, urls: Sequence[str], state: PdfState) -> Totals:
        if self._book.move(urls, state) == len(set(urls)):
            return self.totals
        totals = self._meet(urls)
        self._book.move(urls, state)
        return totals

    def _take(self, pdfs: Sequence[DownloadedPDF]) -> Totals:
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

    def _fail(self, url: str) -> Totals:
        totals = self._meet([url])
        if self._book.counted([url]):
            return totals
        self._book.count([url], "failed")
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
    if not any(by.values()):
        return totals
    return totals.model_copy(
        update={name: getattr(totals, name) + amount for name, amount in by.items()}
    )

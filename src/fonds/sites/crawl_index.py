"""The index of a crawl: its counts, and what it has recorded of each address.

It is made from `metadata.json` and the journal when a crawl is opened, and kept in memory. An
address takes some 130 bytes; entries are in a scratch file, from which `metadata.json` is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Final

from fonds.errors import StoreError
from fonds.sites.journal import (
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
)
from fonds.sites.metadata_file import Entry, EntryLines, totals_of
from fonds.sites.models import CrawlError, CrawlMetadata, DownloadedPDF, PdfState
from fonds.sites.output import JOURNAL, METADATA

_NOT_ADVANCING = frozenset(
    {PdfState.DISCOVERED, PdfState.INDEXED, PdfState.FAILED, PdfState.FORBIDDEN}
)

_COUNTS: Final[dict[Outcome, str]] = {
    "crawled": "websites_crawled",
    "incomplete": "websites_crawled",
    "failed": "websites_failed",
}


class _Result(IntEnum):
    """The result of an address in this crawl, by which it is counted."""

    UNLISTED = 0
    DISCOVERED = 1
    FAILED = 2
    DOWNLOADED = 3


class CrawlIndex:
    """Addresses, entries, errors and counts; callers let one thread at a time in."""

    def __init__(self, opening: CrawlMetadata, scratch: Path | None) -> None:
        self.totals = totals_of(opening)
        self.files, self.errors = EntryLines(scratch), EntryLines(scratch)
        self.websites: dict[str, Outcome] = {}
        """How each website ended that did."""
        self.in_progress: dict[str, PdfState] = {}
        """The addresses that are neither waiting nor done."""
        self._total_websites = opening.total_websites
        self._crawl_id = opening.crawl_id
        # By the hash of an address: the position of its newest entry, times four, and its result.
        self._addresses: dict[int, int] = {}
        self._older: dict[int, int] = {}
        """Positions of entries, with that of the entry before it of the same address."""
        self._missing: set[int] = set()
        """Positions of entries whose files are not in the output."""
        self._error_hashes: set[int] = set()
        self._paths: dict[str, str] | None = None
        self._unnamed = 0
        """Addresses discovered before the crawl was resumed that are not in its files."""

    def close(self) -> None:
        """Close the scratch files."""
        self.files.close()
        self.errors.close()

    def find(self, url: str) -> DownloadedPDF | None:
        """The newest entry of an address whose file is in the output."""
        for position, entry in self._entries_of(url):
            if position not in self._missing:
                return entry
        return None

    def path_of(self, sha256: str) -> str | None:
        """The path of the first file in the output with this hash."""
        if self._paths is None:
            self._paths = {}
            for position, line in self.files:
                if position not in self._missing:
                    entry = DownloadedPDF.model_validate_json(line)
                    self._paths.setdefault(entry.sha256_hash, entry.local_path)
        return self._paths.get(sha256)

    def recall(self, urls: Iterable[str]) -> None:
        """Name addresses that were discovered and counted before the crawl was resumed."""
        for url in urls:
            if self._unnamed and self._result(url) == _Result.UNLISTED:
                self._discover([url])

    # Events

    def totals_after(self, event: Event) -> CrawlTotals:
        """The counts as they are when an event has been added."""
        new = len(self._unlisted(event))
        changes = {"pdfs_discovered": new - min(new, self._unnamed)}
        match event:
            case Downloaded(pdfs=pdfs):
                # Of several entries of an address, the first one counts.
                counted = {pdf.original_url: pdf for pdf in reversed(pdfs)}
                before = {url: self._result(url) for url in counted}
                added = [pdf for url, pdf in counted.items() if before[url] != _Result.DOWNLOADED]
                changes["pdfs_downloaded"] = len(added)
                changes["bytes_downloaded"] = sum(pdf.file_size_bytes for pdf in added)
                changes["pdfs_failed"] = -sum(each == _Result.FAILED for each in before.values())
            case DownloadFailed(url=url):
                changes["pdfs_failed"] = int(self._result(url) < _Result.FAILED)
            case WebsiteDone(website_id=website, outcome=outcome):
                before_outcome = self.websites.get(website)
                if before_outcome is None and len(self.websites) >= self._total_websites:
                    raise StoreError(f"{website} is not one of the websites of this crawl")
                if before_outcome:
                    changes[_COUNTS[before_outcome]] = -1
                changes[_COUNTS[outcome]] = changes.get(_COUNTS[outcome], 0) + 1
        return _raised(self.totals, changes)

    def add(self, event: Event) -> None:
        """Add an event; adding it again changes nothing but its time."""
        self.totals = self.totals_after(event)
        self._discover(self._unlisted(event))
        match event:
            case Unchanged(url=url):
                self.in_progress.pop(url, None)
            case FilesAdvanced(urls=urls, state=state):
                self._advance(urls, state)
            case Downloaded(pdfs=pdfs):
                for pdf in pdfs:
                    self._enter(pdf)
                    self._set_result(pdf.original_url, _Result.DOWNLOADED)
            case DownloadFailed(url=url, error=error):
                self._add_error(error)
                self._fail(url)
            case CrawlProblem(error=error):
                self._add_error(error)
            case WebsiteDone(website_id=website, outcome=outcome, error=reason):
                self.websites[website] = outcome
                if reason:
                    self._add_error(reason)

    def _unlisted(self, event: Event) -> list[str]:
        """The addresses of an event that this crawl has not discovered."""
        return [url for url in _urls(event) if self._result(url) == _Result.UNLISTED]

    def _discover(self, urls: Sequence[str]) -> None:
        # The files of a resumed crawl do not name the addresses that were discovered and not yet
        # fetched. They are discovered again, and already counted.
        self._unnamed -= min(len(urls), self._unnamed)
        for url in urls:
            self._set_result(url, _Result.DISCOVERED)

    def _advance(self, urls: Iterable[str], state: PdfState) -> None:
        for url in urls:
            if state in _NOT_ADVANCING:
                self.in_progress.pop(url, None)
            else:
                self.in_progress[url] = state

    def _fail(self, url: str) -> None:
        self.in_progress.pop(url, None)
        if self._result(url) < _Result.FAILED:
            self._set_result(url, _Result.FAILED)

    def _enter(self, pdf: DownloadedPDF, *, is_missing: bool = False) -> None:
        """Add an entry; an earlier one of the same address and file is removed."""
        url = pdf.original_url
        for position, entry in self._entries_of(url):
            if entry.local_path == pdf.local_path:
                self.files.remove(position)
        newest = self._position(url)
        position = self.files.add(pdf.model_dump_json().encode())
        if newest:
            self._older[position] = newest
        self._addresses[hash(url)] = position * 4 + self._result(url)
        self.in_progress.pop(url, None)
        if is_missing:
            self._missing.add(position)
        elif self._paths is not None:
            self._paths.setdefault(pdf.sha256_hash, pdf.local_path)

    def _entries_of(self, url: str) -> Iterator[tuple[int, DownloadedPDF]]:
        """The entries of an address with their positions, newest first."""
        position = self._position(url)
        while position:
            yield position, DownloadedPDF.model_validate_json(self.files.read(position))
            position = self._older.get(position, 0)

    def _position(self, url: str) -> int:
        return self._addresses.get(hash(url), 0) // 4

    def _result(self, url: str) -> int:
        return self._addresses.get(hash(url), 0) % 4

    def _set_result(self, url: str, result: _Result) -> None:
        self._addresses[hash(url)] = self._position(url) * 4 + result

    def _add_error(self, error: CrawlError) -> None:
        line = error.model_dump_json().encode()
        if hash(line) not in self._error_hashes:
            self._error_hashes.add(hash(line))
            self.errors.add(line)

    # Earlier crawls

    def carry_over(
        self, entries: Iterable[Entry], journal: Iterable[Event], files: Iterable[tuple[str, int]]
    ) -> None:
        """Take over the entries of earlier crawls whose files, as path and size, still exist."""
        existing = set(map(hash, files))
        for entry in entries:
            if isinstance(entry, DownloadedPDF) and _file_hash(entry) in existing:
                self._enter(entry)
        for event in journal:
            for pdf in event.pdfs if isinstance(event, Downloaded) else ():
                if _file_hash(pdf) in existing:
                    self._enter(pdf)

    def restore(
        self, entries: Iterable[Entry], journal: Iterable[Event], files: Iterable[tuple[str, int]]
    ) -> None:
        """Restore this crawl as it was when it was stopped."""
        existing = set(map(hash, files))
        for entry in entries:
            if isinstance(entry, DownloadedPDF):
                self._enter(entry, is_missing=_file_hash(entry) not in existing)
                continue
            self._add_error(entry)
            if entry.url:
                self._fail(entry.url)
        self._count_newest(self.totals.pdfs_downloaded)
        self._replay(iter(journal))
        ended = [_COUNTS[outcome] for outcome in self.websites.values()]
        counts = {name: ended.count(name) for name in _COUNTS.values()}
        self.totals = self.totals.model_copy(update=counts)
        listed = sum(bool(value % 4) for value in self._addresses.values())
        self._unnamed = max(0, self.totals.pdfs_discovered - listed)

    def _count_newest(self, count: int) -> None:
        """Mark the addresses of the newest entries as downloaded.

        Entries of this crawl come after those that it carried over.
        """
        with_entry = [key for key, value in self._addresses.items() if value // 4]
        with_entry.sort(key=lambda key: self._addresses[key], reverse=True)
        for key in with_entry[:count]:
            self._addresses[key] |= _Result.DOWNLOADED

    def _replay(self, journal: Iterator[Event]) -> None:
        first = next(journal, None)
        if not isinstance(first, JournalOpened) or first.crawl_id != self._crawl_id:
            # The metadata of a new crawl was written, and its journal not yet opened.
            return
        stored, last = self.totals, first.totals
        is_stored = last != stored
        for event in journal:
            # An event that is in the metadata already can be added again without harm.
            self.add(event)
            last = event.totals
            is_stored = is_stored and last != stored
            self.totals = stored if is_stored else last
        # An object store may have received the metadata before the last lines that are in it.
        if is_stored and last.progress > stored.progress:
            raise StoreError(
                f"{JOURNAL} continues another {METADATA}: restore the one it belongs to, or remove"
                " the journal"
            )


def _urls(event: Event) -> Iterable[str]:
    """The addresses that an event names, each once."""
    match event:
        case Discovered(urls=urls) | FilesAdvanced(urls=urls):
            return dict.fromkeys(urls)
        case Downloaded(pdfs=pdfs):
            return dict.fromkeys(pdf.original_url for pdf in pdfs)
        case Unchanged(url=url) | DownloadFailed(url=url):
            return [url]
    return []


def _file_hash(pdf: DownloadedPDF) -> int:
    return hash((pdf.local_path, pdf.file_size_bytes))


def _raised(totals: CrawlTotals, changes: dict[str, int]) -> CrawlTotals:
    if not any(changes.values()):
        return totals
    raised = {name: getattr(totals, name) + amount for name, amount in changes.items()}
    return totals.model_copy(update=raised)

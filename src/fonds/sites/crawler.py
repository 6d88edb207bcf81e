"""The pages of one website, nearest first, and the PDFs that they list.

If its pages list nothing, the sitemaps that it publishes for crawlers are read.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final
from urllib.parse import urljoin, urlsplit

from fonds.context import Context
from fonds.engine.readers import ReaderPool
from fonds.errors import (
    EngineError,
    FetchError,
    FondsError,
    ItemTimeoutError,
    NotFoundError,
    RobotsForbiddenError,
    StoreUnavailableError,
    TooLargeError,
    WrongContentError,
)
from fonds.fetch.client import Check, Download
from fonds.sites import sitemaps
from fonds.sites.browser import Browser
from fonds.sites.frontier import Frontier, Listed, PageVisit, Visited
from fonds.sites.page_reading import PageBytes, UnparsedPage, typed
from fonds.sites.pages.urls import canonical, file_name, is_trap, looks_like_pdf
from fonds.sites.pages.wording import organization_name, period_of
from fonds.sites.robots import PACE, Robots
from fonds.sites.sitemaps import Sitemap, sitemap_fields
from fonds.sites.strategy import PageMatch, PdfLink
from fonds.sites.strategy_manager import StrategyManager
from fonds.sites.website import Website

MAX_PAGE_SIZE: Final = 16 << 20
"""Bytes of a page; longer ones are not read to their end."""
MAX_SITEMAPS: Final = 20
MAX_IN_MEMORY: Final = 1 << 20
"""Bytes of a page that stays in memory until it is read; a longer one goes through a file."""
READ_AHEAD: Final = 64
"""Pages read from the frontier in one query."""
MAX_OVER_LIMITS: Final = 20
"""Pages of a website that may exceed the limits of a reader process; the rest is not read."""
_PDF: Final = b"%PDF-"
_PDF_TYPE: Final = re.compile(r"\s*application/(?:x-)?pdf\b", re.IGNORECASE)
_PDF_NAME: Final = re.compile(r"filename\*?=[^;]*\.pdf\b", re.IGNORECASE)
_TOO_MANY: Final = (
    f"not requested, since {MAX_OVER_LIMITS} pages of this website took too much time or memory"
)
_NESTED: Final = f"it is an index below {sitemaps.MAX_LEVELS - 1} others, which is not followed"
_PROBLEMS: Final = (FetchError, EngineError)
_EXPECTED: Final = (NotFoundError, RobotsForbiddenError, TooLargeError)
"""Errors that are not problems of the crawl: dead links, what robots.txt forbids, large files."""


class _IsPdfError(FetchError):
    """A page is a PDF; as such it is fetched without the limits of pages."""


def _check_page(headers: Mapping[str, str], first: bytes) -> None:
    """Raise if headers or first bytes tell that a page is a PDF, however large."""
    is_typed = _PDF_TYPE.match(headers.get("content-type", "")) or _PDF_NAME.search(
        headers.get("content-disposition", "")
    )
    # A server may apologise in HTML under the name of the file.
    if first.startswith(_PDF) or (is_typed and not first.lstrip().startswith(b"<")):
        raise _IsPdfError("it is a PDF")


@dataclass(frozen=True, slots=True)
class _VisitedPage:
    """A page that was visited, and its file, until it is archived."""

    visited: Visited
    download: Download | None = None

    def discard(self) -> None:
        if self.download is not None:
            self.download.discard()


@dataclass(kw_only=True)
class Crawler:
    """Visits the pages of a website, several at a time."""

    website: Website
    context: Context
    frontier: Frontier
    strategies: StrategyManager
    readers: ReaderPool
    robots: Robots
    slots: asyncio.Semaphore
    parallelism: int
    browser: Browser | None = None
    """Renders pages; None: they are read as they are served."""
    visited: int = 0
    unread: int = 0
    """Pages that could not be fetched."""
    first_error: str = ""
    """The error of the first of them."""
    _listed: int = 0
    _over_limits: int = 0

    async def listed(self, *, resumed: bool) -> AsyncIterator[list[Listed]]:
        """The PDFs of the website, each once, as its pages are visited."""
        if resumed and await asyncio.to_thread(self.frontier.resume):
            # A run that lists nothing, or only what fails again, would look like a failed website.
            yield await asyncio.to_thread(self.frontier.one_indexed)
            for batch in self.frontier.unfinished():
                yield batch
            self._listed += await asyncio.to_thread(self.frontier.has_pdfs_of_pages)
        else:
            start = canonical(self.website.configuration.base_url)
            await asyncio.to_thread(self.frontier.begin, [PageVisit(url=start or "")])
        async for batch in self._visit_all():
            yield batch
        if not self._listed:
            async for batch in self._follow_sitemaps():
                yield batch

    async def _visit_all(self) -> AsyncIterator[list[Listed]]:
        waiting: deque[PageVisit] = deque()
        running: set[asyncio.Task[_VisitedPage]] = set()
        try:
            while True:
                if len(waiting) < self.parallelism and self.frontier.has_more:
                    waiting += await asyncio.to_thread(self.frontier.next_pages, READ_AHEAD)
                while waiting and len(running) < self.parallelism:
                    running.add(asyncio.create_task(self._visit(waiting.popleft())))
                if not running:
                    return
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                new = await asyncio.to_thread(self._finish, [task.result() for task in done])
                self.visited += len(done)
                self._listed += len(new)
                yield new
        finally:
            for task in running:
                task.cancel()
            for page in await asyncio.gather(*running, return_exceptions=True):
                if isinstance(page, _VisitedPage):
                    page.discard()

    def _finish(self, pages: Sequence[_VisitedPage]) -> list[Listed]:
        """Archive the pages that list PDFs, and store the links of all of them."""
        try:
            return self.frontier.record([self._archived(page) for page in pages])
        finally:
            for page in pages:
                page.discard()

    def _archived(self, page: _VisitedPage) -> Visited:
        """A page with its key in the archive: names and periods of its PDFs come from there."""
        visited, download = page.visited, page.download
        if download is None or not visited.pdfs:
            return visited
        name = sha256(visited.visit.url.encode()).hexdigest()[:16]
        path = f"pages/{name}-{download.sha256[:16]}.html"
        try:
            archived = self.context.archive.add(self.website.info.name, path, download)
        except StoreUnavailableError:
            raise
        except FondsError as error:
            return _failed(visited.visit, error)
        return replace(visited, origin=archived)

    async def _visit(self, visit: PageVisit) -> _VisitedPage:
        """Visit one page; its error is recorded, and the crawl continues."""
        try:
            if self._over_limits >= MAX_OVER_LIMITS:
                raise ItemTimeoutError(_TOO_MANY)
            await self.robots.permit(visit.url)  # before a slot is taken
            async with self.slots:
                download = await self._fetch(visit.url, check=_check_page)
            return await self._read(visit, download)
        except _IsPdfError:
            return _VisitedPage(Visited(visit=visit, pdfs=(_as_pdf(visit),), is_pdf=True))
        except StoreUnavailableError:
            raise
        except FondsError as error:
            self._over_limits += isinstance(error, EngineError)
            expected = isinstance(error, _EXPECTED) or not isinstance(error, _PROBLEMS)
            if not expected or visit.depth == 0:
                self._add_problem(visit.url, error)
            return _VisitedPage(_failed(visit, error))

    def _add_problem(self, url: str, problem: FondsError | str) -> None:
        self.unread += 1
        self.first_error = self.first_error or f"{url}: {problem}"

    async def _fetch(
        self, url: str, max_size: int = MAX_PAGE_SIZE, check: Check | None = None
    ) -> Download:
        download = await self.context.fetcher.download(
            url,
            source=self.website.info.name,
            pace=PACE,
            max_in_memory=MAX_IN_MEMORY,
            max_size=max_size,
            permit=self.robots.permit,
            check=check,
        )
        assert download is not None, "an unconditional request never returns None"
        return download

    async def _fetch_for_page(self, url: str) -> Download:
        """Fetch what the scripts of a page request, by the rules for pages."""
        await self.robots.permit(url)
        async with self.slots:
            return await self._fetch(url)

    async def _read(self, visit: PageVisit, download: Download) -> _VisitedPage:
        try:
            _check_page({}, download.head(len(_PDF)))  # again, if it was sent compressed
            page = unparsed_page(download, self.readers)
            if self.browser is not None:
                page = await self.browser.render(page, fetch=self._fetch_for_page)
            match = await self.strategies.match(page, visit.trail)
            return _VisitedPage(self._visited(visit, match), download)
        except BaseException:
            download.discard()
            raise

    def _visited(self, visit: PageVisit, match: PageMatch) -> Visited:
        further = tuple(
            PageVisit(url=url, depth=visit.depth + 1, trail=(*visit.trail, text))
            for url, text in match.further
            if not is_trap(url)
        )
        list_pages = tuple(
            PageVisit(url=url, depth=visit.depth, trail=visit.trail, turn=visit.turn + 1)
            for url in match.next_pages
        )
        return Visited(
            visit=visit,
            pdfs=match.pdfs,
            further=further,
            list_pages=list_pages,
            likely_list_pages=self.strategies.likely_list_pages,
        )

    # Sitemaps -----------------------------------------------------------------------------

    async def _follow_sitemaps(self) -> AsyncIterator[list[Listed]]:
        """Visit the pages in the sitemaps of the website, in its part of the host."""
        base = self.website.configuration.base_url
        rules = await self.robots.rules(base)
        waiting = deque((url, 1) for url in (*rules.sitemaps, urljoin(base, "/sitemap.xml")))
        requested: set[str] = set()
        while waiting and len(requested) < MAX_SITEMAPS:
            address, level = waiting.popleft()
            url = canonical(address)
            if url is None or url in requested:
                continue
            requested.add(url)
            sitemap = await self._sitemap(url)
            if sitemap.sitemaps and level == sitemaps.MAX_LEVELS:
                sitemap = replace(sitemap, sitemaps=(), error=_NESTED)
            waiting += [(further, level + 1) for further in sitemap.sitemaps]
            if sitemap.error:
                self._add_problem(url, sitemap.error)
            listed = _near(base, sitemap.pages)
            files = [page for page in listed if looks_like_pdf(page)]
            visited = Visited(
                visit=PageVisit(url=url),
                pdfs=tuple(_as_pdf(PageVisit(url=file)) for file in files),
                further=tuple(PageVisit(url=page, depth=1) for page in listed if page not in files),
            )
            yield await asyncio.to_thread(self.frontier.record, [visited])
        async for batch in self._visit_all():
            yield batch

    async def _sitemap(self, url: str) -> Sitemap:
        try:
            await self.robots.permit(url)
            async with self.slots:
                download = await self._fetch(url, sitemaps.MAX_SIZE)
        except TooLargeError as error:
            return Sitemap(error=str(error))
        except FetchError:
            return Sitemap()
        try:
            content = download.file if download.data is None else download.data
            return typed(Sitemap, await self.readers.read(sitemap_fields, content))
        except EngineError as error:
            return Sitemap(error=f"the sitemap cannot be read: {error}")
        except WrongContentError:
            return Sitemap()
        finally:
            download.discard()


def unparsed_page(download: Download, readers: ReaderPool) -> UnparsedPage:
    """A page that was fetched."""
    url = canonical(download.address) or download.url
    content = download.file if download.data is None else download.data
    return UnparsedPage(
        PageBytes(url=url, content=content, media_type=download.media_type), readers
    )


def _failed(visit: PageVisit, error: FondsError) -> Visited:
    return Visited(
        visit=visit,
        error=f"{type(error).__name__}: {error}",
        is_forbidden=isinstance(error, RobotsForbiddenError),
    )


def _as_pdf(visit: PageVisit) -> PdfLink:
    """The link to a page that is a PDF."""
    trail = tuple(reversed(visit.trail))
    text = trail[0] if trail else ""
    organization = next(filter(None, map(organization_name, trail)), None)
    period = period_of(*trail, file_name(visit.url), visit.url)
    guesses = {
        "organization": organization is not None and organization != organization_name(text),
        "period": period is not None and period != period_of(text),
    }
    return PdfLink(
        url=visit.url,
        text=text,
        organization=organization,
        period=period,
        guesses=tuple(name for name, is_guess in guesses.items() if is_guess),
    )


def _near(base: str, urls: Iterable[str]) -> list[str]:
    """The addresses on the same host; if some are below the base address, only those."""
    same_host = [url for url in urls if urlsplit(url).netloc == urlsplit(base).netloc]
    folder = base.rpartition("/")[0] + "/"
    below = [url for url in same_host if url.startswith(folder)]
    return below or same_host

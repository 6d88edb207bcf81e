"""The pages of one website, nearest first, and the PDFs that they list.

Sitemaps: lists of addresses that a website publishes for crawlers.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import zlib
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final
from urllib.parse import urljoin, urlsplit

from lxml import etree

from fonds.context import Context
from fonds.errors import (
    FetchError,
    FondsError,
    NotFoundError,
    RobotsForbiddenError,
    WrongContentError,
)
from fonds.fetch.client import Download
from fonds.fetch.rates import Pace
from fonds.sites.browser import Browser
from fonds.sites.frontier import Frontier, Listed, PageVisit, Visited
from fonds.sites.pages.page import WebPage, read_page
from fonds.sites.pages.urls import canonical, file_name, is_trap, looks_like_pdf
from fonds.sites.pages.wording import organization_name, period_of
from fonds.sites.robots import Robots
from fonds.sites.strategy import PdfLink, Sighting
from fonds.sites.strategy_manager import StrategyManager, in_thread_if_large
from fonds.sites.website import Website

LARGEST: Final = 50 << 20
"""Bytes of a sitemap, unpacked, as its specification allows."""
MOST: Final = 50_000
"""Addresses in one sitemap, as its specification allows."""
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What one sitemap lists."""

    pages: tuple[str, ...]
    sitemaps: tuple[str, ...]
    """Further ones, where it is an index."""


def read_sitemap(data: bytes) -> Sitemap:
    """The addresses of a sitemap or an index of sitemaps: XML, packed or not, or plain lines."""
    text = _unpacked(data)
    if text.lstrip()[:1] != b"<":
        lines = text.decode("utf-8-sig", errors="replace").split()
        return Sitemap(_addresses(lines), ())
    pages: list[str] = []
    sitemaps: list[str] = []
    try:
        for _, element in _elements(text):
            parent = element.getparent()
            is_index = parent is not None and etree.QName(parent).localname == "sitemap"
            into = sitemaps if is_index else pages
            into.append(element.text or "")
            element.clear()
            if len(pages) + len(sitemaps) >= MOST:
                break
    except etree.XMLSyntaxError as error:
        if not pages and not sitemaps:
            raise WrongContentError(f"this is no sitemap: {error}") from error
    return Sitemap(_addresses(pages), _addresses(sitemaps))


def _elements(text: bytes) -> etree.iterparse:
    return etree.iterparse(
        io.BytesIO(text),
        tag="{*}loc",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        recover=False,
    )


def _addresses(found: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(url for text in found if (url := canonical(text.strip()))))


def _unpacked(data: bytes) -> bytes:
    if data[:2] != _GZIP:
        return data[:LARGEST]
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(LARGEST)
    except (OSError, EOFError, zlib.error) as error:
        raise WrongContentError(f"this sitemap cannot be unpacked: {error}") from error


LARGEST_PAGE: Final = 16 << 20
"""Bytes; what is longer is no page that anybody reads."""
MOST_SITEMAPS: Final = 20
HELD: Final = 1 << 20
"""Bytes of a page that stays in memory until it is read; a longer one goes through a file."""
READ_AHEAD: Final = 64
"""Pages taken from the frontier at once."""
_PDF: Final = b"%PDF-"
_EXPECTED: Final = (NotFoundError, RobotsForbiddenError)
"""Dead links are the website's own, and what it forbids is its right."""


@dataclass(frozen=True, slots=True)
class _VisitedPage:
    """A page that was looked at, and its file, until it is archived."""

    visited: Visited
    download: Download | None = None

    def discard(self) -> None:
        if self.download is not None:
            self.download.discard()


@dataclass(kw_only=True)
class Crawler:
    """Visits pages, several at a time."""

    website: Website
    context: Context
    frontier: Frontier
    strategies: StrategyManager
    robots: Robots
    slots: asyncio.Semaphore
    parallelism: int
    browser: Browser | None = None
    """Where pages are rendered; None: they are read as they come."""
    visited: int = 0
    unread: int = 0
    """Pages that could not be had, though they should be there."""
    first_error: str = ""
    """With the first of them."""
    _found: int = 0

    async def listed(self, *, resumed: bool) -> AsyncIterator[list[Listed]]:
        """The PDFs of the website, each once, as its pages are visited."""
        if resumed and await asyncio.to_thread(self.frontier.resume):
            is_whole = True
            for some in self.frontier.unfinished():
                is_whole = False
                yield some
            if is_whole:
                # Whoever was stopped just before the end: nothing at all would look like a failure.
                yield await asyncio.to_thread(self.frontier.one_indexed)
        else:
            start = canonical(self.website.configuration.base_url)
            await asyncio.to_thread(self.frontier.begin, [PageVisit(url=start or "")])
        async for some in self._visit_all():
            yield some
        if not self._found:
            async for some in self._follow_sitemaps():
                yield some

    async def _visit_all(self) -> AsyncIterator[list[Listed]]:
        waiting: deque[PageVisit] = deque()
        begun: set[asyncio.Task[_VisitedPage]] = set()
        try:
            while True:
                if len(waiting) < self.parallelism and self.frontier.has_more:
                    waiting += await asyncio.to_thread(self.frontier.next_pages, READ_AHEAD)
                while waiting and len(begun) < self.parallelism:
                    begun.add(asyncio.create_task(self._visit(waiting.popleft())))
                if not begun:
                    return
                done, begun = await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
                new = await asyncio.to_thread(self._settle, [one.result() for one in done])
                self.visited += len(done)
                self._found += len(new)
                yield new
        finally:
            for task in begun:
                task.cancel()
            for seen in await asyncio.gather(*begun, return_exceptions=True):
                if isinstance(seen, _VisitedPage):
                    seen.discard()

    def _settle(self, pages: Sequence[_VisitedPage]) -> list[Listed]:
        """Archive the pages that list PDFs, and store the links of all of them."""
        try:
            return self.frontier.settle([self._archived(page) for page in pages])
        finally:
            for page in pages:
                page.discard()

    def _archived(self, page: _VisitedPage) -> Visited:
        """A page with its key in the archive: names and periods of its PDFs come from there."""
        visited, download = page.visited, page.download
        if download is None or not visited.found:
            return visited
        name = sha256(visited.visit.url.encode()).hexdigest()[:16]
        path = f"pages/{name}-{download.sha256[:16]}.html"
        try:
            archived = self.context.archive.add(self.website.info.name, path, download)
        except FondsError as error:
            return _failed(visited.visit, error)
        return replace(visited, origin=archived)

    async def _visit(self, visit: PageVisit) -> _VisitedPage:
        """One page; its trouble is written down, and the crawl goes on."""
        try:
            rules = await self.robots.rules(visit.url)
            rules.require(visit.url)
            async with self.slots:
                download = await self._ask(visit.url, rules.pace)
            return await self._looked_at(visit, download)
        except FondsError as error:
            expected = isinstance(error, _EXPECTED) or not isinstance(error, FetchError)
            if not expected or visit.depth == 0:
                self.unread += 1
                self.first_error = self.first_error or f"{visit.url}: {error}"
            return _VisitedPage(_failed(visit, error))

    async def _ask(self, url: str, pace: Pace) -> Download:
        download = await self.context.fetcher.download(
            url, source=self.website.info.name, pace=pace, max_in_memory=HELD
        )
        assert download is not None, "an unconditional request is never answered by None"
        return download

    async def _ask_for_page(self, url: str) -> Download:
        """What the scripts of a page want, by the rules that hold for pages."""
        rules = await self.robots.rules(url)
        rules.require(url)
        async with self.slots:
            return await self._ask(url, rules.pace)

    async def _looked_at(self, visit: PageVisit, download: Download) -> _VisitedPage:
        try:
            page = await in_thread_if_large(download.size, _read, download)
            if page is None:
                download.discard()
                return _VisitedPage(Visited(visit=visit, found=(_itself(visit),)))
            if self.browser is not None:
                page = await self.browser.render(page, ask=self._ask_for_page)
            sighting = await self.strategies.sight(page, visit.trail)
            return _VisitedPage(self._told(visit, sighting), download)
        except BaseException:
            download.discard()
            raise

    def _told(self, visit: PageVisit, sighting: Sighting) -> Visited:
        further = tuple(
            PageVisit(url=url, depth=visit.depth + 1, trail=(*visit.trail, text))
            for url, text in sighting.further
            if not is_trap(url)
        )
        turns = tuple(
            PageVisit(url=url, depth=visit.depth, trail=visit.trail, turn=visit.turn + 1)
            for url in sighting.next_pages
            if visit.turn < self.strategies.max_list_pages
        )
        return Visited(visit=visit, found=sighting.found, further=further, turns=turns)

    # Sitemaps -----------------------------------------------------------------------------

    async def _follow_sitemaps(self) -> AsyncIterator[list[Listed]]:
        """Where pages led to nothing: what the website's sitemaps list of its part of the host."""
        base = self.website.configuration.base_url
        rules = await self.robots.rules(base)
        waiting = deque([*rules.sitemaps, urljoin(base, "/sitemap.xml")])
        asked: set[str] = set()
        while waiting and len(asked) < MOST_SITEMAPS:
            url = canonical(waiting.popleft())
            if url is None or url in asked:
                continue
            asked.add(url)
            sitemap = await self._sitemap(url)
            waiting += sitemap.sitemaps
            listed = _near(base, sitemap.pages)
            files = [one for one in listed if looks_like_pdf(one)]
            visited = Visited(
                visit=PageVisit(url=url),
                found=tuple(_itself(PageVisit(url=one)) for one in files),
                further=tuple(PageVisit(url=one, depth=1) for one in listed if one not in files),
            )
            yield await asyncio.to_thread(self.frontier.settle, [visited])
        async for some in self._visit_all():
            yield some

    async def _sitemap(self, url: str) -> Sitemap:
        try:
            rules = await self.robots.rules(url)
            async with self.slots:
                download = await self._ask(url, rules.pace)
        except FetchError:
            return Sitemap((), ())
        try:
            data = await asyncio.to_thread(download.read)
            return await asyncio.to_thread(read_sitemap, data)
        except WrongContentError:
            return Sitemap((), ())
        finally:
            download.discard()


def _read(download: Download) -> WebPage | None:
    """The page that was fetched; None if it turns out to be a PDF."""
    if download.size > LARGEST_PAGE:
        raise WrongContentError(f"{download.size:,} bytes are no page")
    data = download.read()
    if data.startswith(_PDF):
        return None
    address = canonical(download.address) or download.url
    return read_page(data, address, download.media_type)


def _failed(visit: PageVisit, error: FondsError) -> Visited:
    return Visited(visit=visit, error=f"{type(error).__name__}: {error}")


def _itself(visit: PageVisit) -> PdfLink:
    """A page that turns out to be a PDF."""
    trail = tuple(reversed(visit.trail))
    return PdfLink(
        url=visit.url,
        text=trail[0] if trail else "",
        organization=next(filter(None, map(organization_name, trail)), None),
        period=period_of(*trail, file_name(visit.url), visit.url),
    )


def _near(base: str, urls: Iterable[str]) -> list[str]:
    """Addresses of the same host, below the base address where there are such."""
    here = [url for url in urls if urlsplit(url).netloc == urlsplit(base).netloc]
    folder = base.rpartition("/")[0] + "/"
    below = [url for url in here if url.startswith(folder)]
    return below or here

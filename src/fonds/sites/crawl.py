"""One crawl: the pages of its websites, visited politely and side by side, for their PDFs.

frontier ─ visit ─ page ─ strategy ─┬─ PDFs ─ fetched, checked, archived, stored, noted
    └──────── further pages ────────┘
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from fonds.errors import FetchError, FondsError, WrongContentError
from fonds.fetch.archive import DownloadResult, KnownFile
from fonds.model import FetchTask, Part
from fonds.runs.context import Workplace
from fonds.sites.advice.strategy import Advisor
from fonds.sites.browser import Browser
from fonds.sites.collection import Collection
from fonds.sites.exploring import Explorer
from fonds.sites.frontier import Frontier, Listed
from fonds.sites.models import PdfState
from fonds.sites.robots import FORBIDDEN, Robots, agent_of
from fonds.sites.source import Website
from fonds.sites.tactics import Tactics

MARKED_AT_ONCE: Final = 50
"""PDFs whose states are written down together."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a crawl goes."""

    parallelism: int = 4
    max_files: int | None = None
    max_pages: int = 1_000
    """Of each website."""
    max_depth: int = 5


@dataclass(slots=True)
class Progress:
    """What came of a website so far."""

    pages: int = 0
    found: int = 0
    fetched: int = 0
    unchanged: int = 0
    failed: int = 0
    forbidden: int = 0
    """Listed, and not asked for because robots.txt says so."""


CrawlWatch = Callable[[str, Progress], None]
"""Told (website, progress) as a crawl goes on."""


@dataclass(kw_only=True)
class Crawl:
    """Everything that the websites of a crawl share."""

    id: UUID
    workplace: Workplace
    advisors: tuple[Advisor, ...]
    limits: Limits
    collection: Collection | None = None
    """None: only looked at."""
    resumed: bool = False
    browser: Browser | None = None
    """Where pages are rendered."""
    watch: CrawlWatch = lambda _website, _progress: None
    progress: dict[str, Progress] = field(default_factory=dict)
    _frontiers: dict[str, Frontier] = field(default_factory=dict)
    _robots: dict[str, Robots] = field(default_factory=dict)
    _states: dict[str, dict[str, tuple[PdfState, str | None]]] = field(default_factory=dict)
    _found: int = 0

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.limits.parallelism)

    @property
    def is_full(self) -> bool:
        """Whether it has found as many files as it may."""
        return self.limits.max_files is not None and self._found >= self.limits.max_files

    async def explore(self, website: Website) -> AsyncIterator[Listed]:
        """The PDFs of a website, each once, as its pages are visited.

        Ends with an error if there were pages that could not be read: they may have listed more.
        """
        explorer = self._explorer(website)
        progress = self.progress_of(website)
        async for some in explorer.listed(resumed=self.resumed):
            progress.pages = explorer.visited
            wanted = self._within_limit([one for one in some if await self._may(website, one)])
            if self.collection is not None:
                urls = [listed.url for listed in wanted]
                await asyncio.to_thread(self.collection.discovered, website, urls)
            progress.found += len(wanted)
            self.watch(website.configuration.id, progress)
            for listed in wanted:
                yield listed
            if self.is_full:
                return
        if explorer.unread:
            raise FetchError(f"{explorer.unread:,} pages could not be read: {explorer.trouble}")

    async def collect(
        self, website: Website, task: FetchTask, part: Part, known: KnownFile | None
    ) -> DownloadResult:
        """A PDF, archived, and stored where the crawl leaves its files."""
        assert self.collection is not None, "nothing is fetched by who only looks"
        progress = self.progress_of(website)
        try:
            rules = await self._robots_of(website).rules(part.url)
            async with self._slots:
                obtained = await self.collection.collect(website, task, part, known, rules.pace)
        except Exception as error:
            progress.failed += 1
            await asyncio.to_thread(self.collection.failed, website, part.url, error)
            await self._mark(website, part.url, PdfState.FAILED, str(error))
            if isinstance(error, WrongContentError):
                raise WrongContentError(f"{part.url}: {error}") from error
            raise
        progress.fetched += obtained.changed
        progress.unchanged += not obtained.changed
        await self._mark(website, part.url, PdfState.STORED)
        self.watch(website.configuration.id, progress)
        return obtained

    def progress_of(self, website: Website) -> Progress:
        """What came of a website so far."""
        return self.progress.setdefault(website.configuration.id, Progress())

    async def finish(self, website: Website) -> None:
        """Write down how far the PDFs of a website have come, after its run."""
        await self._flush(website)
        await asyncio.to_thread(self._frontier(website).mark_indexed)

    async def _flush(self, website: Website) -> None:
        if states := self._states.pop(website.configuration.id, None):
            await asyncio.to_thread(self._frontier(website).mark, states)

    async def _mark(
        self, website: Website, url: str, state: PdfState, error: str | None = None
    ) -> None:
        states = self._states.setdefault(website.configuration.id, {})
        states[url] = state, error
        if len(states) >= MARKED_AT_ONCE:
            await self._flush(website)

    async def _may(self, website: Website, listed: Listed) -> bool:
        """Whether a PDF may be asked for; one that may not is told of, and is no failure."""
        try:
            rules = await self._robots_of(website).rules(listed.url)
        except FondsError:
            return True  # its host is down: the fetch will say so, as a failure
        if rules.allows(listed.url):
            return True
        self.progress_of(website).forbidden += 1
        if self.collection is not None:
            await asyncio.to_thread(self.collection.forbidden, website, listed.url)
        await self._mark(website, listed.url, PdfState.FAILED, FORBIDDEN)
        return False

    def _within_limit(self, listed: list[Listed]) -> list[Listed]:
        if self.limits.max_files is not None:
            listed = listed[: self.limits.max_files - self._found]
        self._found += len(listed)
        return listed

    def _explorer(self, website: Website) -> Explorer:
        return Explorer(
            website=website,
            workplace=self.workplace,
            frontier=self._frontier(website),
            tactics=Tactics(
                website=website.configuration,
                advisors=self.advisors,
                database=self.workplace.database,
                clock=self.workplace.seams.clock,
            ),
            robots=self._robots_of(website),
            slots=self._slots,
            at_once=self.limits.parallelism,
            browser=self.browser,
        )

    def _frontier(self, website: Website) -> Frontier:
        name = website.configuration.id
        if name not in self._frontiers:
            self._frontiers[name] = Frontier(
                database=self.workplace.database,
                website=name,
                crawl=self.id,
                clock=self.workplace.seams.clock,
                max_pages=self.limits.max_pages,
                max_depth=self.limits.max_depth,
            )
        return self._frontiers[name]

    def _robots_of(self, website: Website) -> Robots:
        """A host's rules are asked for by the website that comes to it first."""
        name = website.configuration.id
        if name not in self._robots:
            self._robots[name] = Robots(
                self.workplace.fetcher,
                source=website.info.name,
                agent=agent_of(self.workplace.settings.user_agent),
            )
        return self._robots[name]

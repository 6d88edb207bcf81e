"""A crawl as somebody wants it: opened with its ledger, and ended with what came of it.

One crawl: the pages of its websites, visited politely and side by side, for their PDFs.

frontier ─ visit ─ page ─ strategy ─┬─ PDFs ─ fetched, checked, archived, stored, noted
    └──────── further pages ────────┘
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID, uuid4

from fonds.context import Context
from fonds.errors import FetchError, FondsError, UsageError, WrongContentError
from fonds.fetch.archive import DownloadResult, FileRecord
from fonds.model import FetchTask, Part
from fonds.runs.state import RunReport, RunStatus
from fonds.seams import Clock
from fonds.settings import Settings
from fonds.sites.browser import Browser, open_browser
from fonds.sites.crawl_state import CrawlState, read_part, stored_in
from fonds.sites.crawler import Explorer
from fonds.sites.downloads import PdfDownloader, PdfOpener
from fonds.sites.frontier import Frontier, Listed
from fonds.sites.journal import Outcome
from fonds.sites.metadata_file import Entry
from fonds.sites.models import (
    METADATA_VERSION,
    CrawlError,
    CrawlMetadata,
    PdfState,
    WebsiteConfiguration,
)
from fonds.sites.output import Output, open_output
from fonds.sites.robots import FORBIDDEN, Robots, agent_of
from fonds.sites.strategy import Advisor
from fonds.sites.strategy_manager import Tactics, advisors_of
from fonds.sites.website import Website, get_website, remember
from fonds.stores.database import Database

MARKED_AT_ONCE: Final = 50
"""PDFs whose states are written down together."""


@dataclass(frozen=True, kw_only=True)
class CrawlLimits:
    """How far a crawl goes."""

    parallelism: int = 4
    max_files: int | None = None
    max_pages: int = 1_000
    """Of each website."""
    max_depth: int = 5


@dataclass(slots=True)
class WebsiteProgress:
    """What came of a website so far."""

    pages: int = 0
    found: int = 0
    fetched: int = 0
    unchanged: int = 0
    failed: int = 0
    forbidden: int = 0
    """Listed, and not asked for because robots.txt says so."""


CrawlWatch = Callable[[str, WebsiteProgress], None]
"""Told (website, progress) as a crawl goes on."""


@dataclass(kw_only=True)
class Crawl:
    """Everything that the websites of a crawl share."""

    id: UUID
    context: Context
    advisors: tuple[Advisor, ...]
    limits: CrawlLimits
    collection: PdfDownloader | None = None
    """None: only looked at."""
    resumed: bool = False
    browser: Browser | None = None
    """Where pages are rendered."""
    watch: CrawlWatch = lambda _website, _progress: None
    progress: dict[str, WebsiteProgress] = field(default_factory=dict)
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
        self, website: Website, task: FetchTask, part: Part, known: FileRecord | None
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

    def progress_of(self, website: Website) -> WebsiteProgress:
        """What came of a website so far."""
        return self.progress.setdefault(website.configuration.id, WebsiteProgress())

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
            context=self.context,
            frontier=self._frontier(website),
            tactics=Tactics(
                website=website.configuration,
                advisors=self.advisors,
                database=self.context.database,
                clock=self.context.seams.clock,
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
                database=self.context.database,
                website=name,
                crawl=self.id,
                clock=self.context.seams.clock,
                max_pages=self.limits.max_pages,
                max_depth=self.limits.max_depth,
            )
        return self._frontiers[name]

    def _robots_of(self, website: Website) -> Robots:
        """A host's rules are asked for by the website that comes to it first."""
        name = website.configuration.id
        if name not in self._robots:
            self._robots[name] = Robots(
                self.context.fetcher,
                source=website.info.name,
                agent=agent_of(self.context.settings.user_agent),
            )
        return self._robots[name]


_M_ARENA_MAX: Final = -8
"""What glibc calls the setting for how many heaps there may be."""


@dataclass(frozen=True, kw_only=True)
class CrawlPart:
    """Which part of a crawl it is, where other machines crawl the rest."""

    name: str
    """Of its ledger."""
    crawl_id: str
    started: datetime
    follows: bool
    """Whether the output held a crawl before, be it this one."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be crawled, how, and where its files go."""

    websites: Sequence[WebsiteConfiguration]
    output: str
    config_path: str
    advisors: tuple[Advisor, ...]
    limits: CrawlLimits = field(default_factory=CrawlLimits)
    dedupe: bool = False
    resume: bool = False
    browser: bool = False
    """Whether pages are rendered before they are read."""
    share: CrawlPart | None = None
    """None: the whole crawl."""

    @property
    def goes_on(self) -> bool:
        """Whether something of this crawl may have been done before; a lost part comes again."""
        return self.resume or self.share is not None


@dataclass(frozen=True, kw_only=True)
class Expedition:
    """An open crawl."""

    plan: Plan
    crawl: Crawl
    ledger: CrawlState
    output: Output

    def websites(self) -> list[Website]:
        """Those that are still to be crawled."""
        done = self.ledger.websites()
        return [
            Website(configuration, self.crawl, self.plan.limits.parallelism)
            for configuration in self.plan.websites
            if configuration.enabled and done.get(configuration.id) != "crawled"
        ]

    async def end(self, website: Website, report: RunReport) -> None:
        """Note how a website ended: crawled, if anything of it is in the library."""
        await self.crawl.finish(website)
        failed = report.status is RunStatus.FAILED
        error = None
        if report.error_summary:
            error = CrawlError(
                website_id=website.configuration.id,
                error_type="WebsiteFailed" if failed else "WebsiteIncomplete",
                error_message=report.error_summary,
                timestamp=self.crawl.context.seams.clock.now(),
            )
        outcome: Outcome = "failed" if failed else "crawled"
        await asyncio.to_thread(self.ledger.website, website.configuration.id, outcome, error)


def plan_again(database: Database, website: str, settings: Settings) -> Plan:
    """One website, crawled again as it was the last time."""
    known, output, rendered = get_website(database, website)
    if output is None:
        raise UsageError(f"it is not known where the files of {website} go: run `fonds crawl`")
    return Plan(
        websites=[known.configuration],
        output=output,
        config_path=known.info.name,
        advisors=advisors_of(settings),
        browser=rendered,
    )


@asynccontextmanager
async def open_expedition(
    plan: Plan, context: Context, *, watch: CrawlWatch | None = None
) -> AsyncIterator[Expedition]:
    """A crawl with its ledger: ended in it if all went well, else ready to be resumed."""
    _share_one_heap()
    clock = context.seams.clock
    output = open_output(plan.output, seams=context.seams)
    output = output.part(plan.share.name) if plan.share else output
    ledger = await asyncio.to_thread(_ledger, plan, output, context)
    opener = PdfOpener()
    try:
        for configuration in plan.websites:
            await asyncio.to_thread(
                remember,
                context.database,
                configuration,
                output.address,
                clock,
                rendered=plan.browser,
            )
        collection = PdfDownloader(
            context=context,
            output=output,
            ledger=ledger,
            opener=opener,
            dedupe=plan.dedupe,
            resumed=plan.goes_on,
        )
        crawl = Crawl(
            id=UUID(ledger.crawl_id),
            context=context,
            advisors=plan.advisors,
            limits=plan.limits,
            collection=collection,
            resumed=plan.goes_on,
        )
        crawl.watch = watch or crawl.watch
        try:
            async with open_browser(context.settings, wanted=plan.browser) as browser:
                crawl.browser = browser
                yield Expedition(plan=plan, crawl=crawl, ledger=ledger, output=output)
        finally:
            await collection.finish()
    except BaseException:
        await asyncio.to_thread(ledger.close)
        raise
    else:
        await asyncio.to_thread(ledger.close, clock.now())
    finally:
        opener.close()


def _share_one_heap() -> None:
    """Have the threads of this process take memory from one heap, where that can be said.

    glibc gives each a heap of its own, and what one of them frees is of no use to the others.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def _ledger(plan: Plan, output: Output, context: Context) -> CrawlState:
    clock, scratch = context.seams.clock, context.settings.home / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    if plan.share and _is_begun(plan.share, output):
        return CrawlState.resume(output, clock, scratch=scratch)
    if plan.share:
        opening, earlier = _opening(plan, output, clock), _earlier(plan, plan.share, output)
        return CrawlState.begin(output, opening, clock, scratch=scratch, besides=earlier)
    if plan.resume:
        ledger = CrawlState.resume(output, clock, scratch=scratch)
        _take_in(ledger, output)
    else:
        opening, left = _opening(plan, output, clock), _left_over(output)
        ledger = CrawlState.begin(output, opening, clock, scratch=scratch, besides=left)
    for part in output.parts():
        part.discard()
    return ledger


def _is_begun(share: CrawlPart, part: Output) -> bool:
    stored = stored_in(part)
    return stored is not None and stored.opening.crawl_id == share.crawl_id


def _earlier(plan: Plan, share: CrawlPart, part: Output) -> Iterator[Entry]:
    """What the whole output tells of the websites of a part."""
    stored = stored_in(part.whole) if share.follows else None
    mine = {website.id for website in plan.websites}
    yield from (entry for entry in (stored.entries if stored else ()) if entry.website_id in mine)


def _left_over(output: Output) -> Iterator[Entry]:
    """What parts of a crawl had fetched that was stopped, and is not resumed."""
    for part in output.parts():
        if told := read_part(part):
            yield from told.files


def _take_in(ledger: CrawlState, output: Output) -> None:
    """What parts of this crawl had done when it was stopped."""
    for part in output.parts():
        told = read_part(part)
        if told and told.crawl_id == ledger.crawl_id:
            ledger.merge(told, {})
    ledger.fold()  # whoever crawls a part reads what is folded


def _opening(plan: Plan, output: Output, clock: Clock) -> CrawlMetadata:
    share = plan.share
    return CrawlMetadata(
        crawl_id=share.crawl_id if share else str(uuid4()),
        crawl_start_time=share.started if share else clock.now(),
        total_websites=len(plan.websites),
        websites_crawled=0,
        websites_failed=0,
        total_pdfs_discovered=0,
        total_pdfs_downloaded=0,
        total_pdfs_failed=0,
        total_bytes_downloaded=0,
        parallelism=plan.limits.parallelism,
        max_files_limit=plan.limits.max_files,
        output_folder=output.address,
        storage_backend=output.backend,
        config_file_path=plan.config_path,
        downloaded_files=[],
        errors=[],
        metadata_version=METADATA_VERSION,
    )

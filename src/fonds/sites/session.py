"""A crawl session: websites whose pages are visited for their PDFs, at the same time and politely.

frontier ─ visit ─ page ─ strategy ─┬─ PDFs ─ fetched, archived, opened, stored, recorded
    └──────── further pages ────────┘

`WebsiteCrawl` is the source that `run_source` runs for a website: its `discover` is a `Crawler`,
its `collect` a `PdfDownloader`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Final
from uuid import UUID, uuid4

from fonds import ids
from fonds.context import Context
from fonds.engine.readers import ReaderPool
from fonds.errors import (
    FetchError,
    FondsError,
    RobotsForbiddenError,
    StoreUnavailableError,
    SuspiciousYieldError,
    UsageError,
    WrongContentError,
)
from fonds.fetch.archive import DownloadResult, FileRecord
from fonds.model import Discovery, FetchTask, KeyListing, ParsedRecord, Part, Raw, SourceState
from fonds.runs.state import RunReport, RunStatus
from fonds.seams import Clock
from fonds.settings import Settings
from fonds.sites.browser import Browser, open_browser
from fonds.sites.crawl_state import CrawlState, read_part, read_stored
from fonds.sites.crawler import Crawler
from fonds.sites.downloads import PdfDownloader
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
from fonds.sites.page_reading import open_site_readers
from fonds.sites.robots import Robots, agent_of
from fonds.sites.strategy import Advisor
from fonds.sites.strategy_manager import StrategyManager, advisors_of
from fonds.sites.website import Website, get_website, save_website
from fonds.sources.base import Ask, Expected, SourceInfo
from fonds.stores.database import Database
from fonds.stores.permissions import make_private_folder

BATCH_SIZE: Final = 50
"""PDFs whose states are stored in one transaction."""


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
    """The counts of a website so far."""

    pages: int = 0
    listed: int = 0
    fetched: int = 0
    unchanged: int = 0
    failed: int = 0
    forbidden: int = 0
    """Listed, and not requested because robots.txt forbids it."""


CrawlWatch = Callable[[str, WebsiteProgress], None]
"""Called with a website and its progress during a crawl."""


@dataclass(frozen=True, kw_only=True)
class CrawlPart:
    """The part of a crawl that runs here, where other machines crawl the rest."""

    name: str
    """Of its state."""
    crawl_id: str
    started: datetime
    follows: bool
    """True if the output had a crawl before, be it this one."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The websites of a crawl, how they are crawled, and where their files go."""

    websites: Sequence[WebsiteConfiguration]
    output: str
    config_path: str
    advisors: tuple[Advisor, ...]
    limits: CrawlLimits = field(default_factory=CrawlLimits)
    dedupe: bool = False
    resume: bool = False
    browser: bool = False
    """True if pages are rendered before they are read."""
    part: CrawlPart | None = None
    """None: the whole crawl."""

    @property
    def is_continued(self) -> bool:
        """Whether some of this crawl may have been done before; a lost part is crawled again."""
        return self.resume or self.part is not None


def plan_again(database: Database, website: str, settings: Settings) -> Plan:
    """The plan to crawl one website again as it was crawled last."""
    previous, output, rendered = get_website(database, website)
    if output is None:
        raise UsageError(
            f"No output folder is recorded for {website}. Crawl it once with"
            " `fonds crawl CONFIG --output FOLDER`."
        )
    if not previous.configuration.enabled:
        raise UsageError(
            f"{website} is disabled in its configuration. Set `enabled` to true there, and crawl it"
            " with `fonds crawl`."
        )
    return Plan(
        websites=[previous.configuration],
        output=output,
        config_path=previous.info.name,
        advisors=advisors_of(settings),
        browser=rendered,
    )


@dataclass(kw_only=True)
class CrawlSession:
    """An open crawl: everything that its websites share."""

    id: UUID
    plan: Plan
    context: Context
    readers: ReaderPool
    downloader: PdfDownloader | None = None
    """None: pages are visited, and no PDF is fetched."""
    browser: Browser | None = None
    """Renders pages; None: they are read as they are served."""
    watch: CrawlWatch = lambda _website, _progress: None
    listed: int = 0
    """PDFs listed on all websites."""
    over_max_files: int = 0
    """PDFs that were left out, as there were `max_files`."""

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(self.plan.limits.parallelism)
        """One for each concurrent request."""

    @property
    def state(self) -> CrawlState:
        """The state of a crawl with an output."""
        assert self.downloader is not None, "a dry run has no output"
        return self.downloader.state

    @property
    def output(self) -> Output:
        """The output of a crawl that has one."""
        assert self.downloader is not None, "a dry run has no output"
        return self.downloader.output

    @property
    def is_full(self) -> bool:
        """Whether as many PDFs are listed as may be."""
        limit = self.plan.limits.max_files
        return limit is not None and self.listed >= limit

    def limit(self, listed: list[Listed]) -> list[Listed]:
        """Count PDFs; those over the limit are left out."""
        if self.plan.limits.max_files is not None:
            room = self.plan.limits.max_files - self.listed
            self.over_max_files += len(listed[room:])
            listed = listed[:room]
        self.listed += len(listed)
        return listed

    def websites(self) -> list[WebsiteCrawl]:
        """The websites that are still to be crawled: those with failures too, if it is resumed."""
        done = self.state.websites() if self.downloader else {}
        return [
            website
            for website in self.all_websites()
            if done.get(website.website.configuration.id) != "crawled"
        ]

    def all_websites(self) -> list[WebsiteCrawl]:
        """The websites of the plan that are enabled."""
        return [
            WebsiteCrawl(session=self, website=Website(configuration))
            for configuration in self.plan.websites
            if configuration.enabled
        ]


@dataclass(kw_only=True)
class WebsiteCrawl:
    """A website in a session, as the source that `run_source` runs."""

    session: CrawlSession
    website: Website
    progress: WebsiteProgress = field(default_factory=WebsiteProgress)
    _outcomes: dict[str, tuple[PdfState, str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        session, name = self.session, self.website.configuration.id
        context, limits = session.context, session.plan.limits
        self.info: SourceInfo = replace(self.website.info, fetch_concurrency=limits.parallelism)
        self.frontier = Frontier(
            database=context.database,
            website=name,
            crawl=session.id,
            clock=context.seams.clock,
            max_pages=limits.max_pages,
            max_depth=limits.max_depth,
        )
        self.robots = Robots(
            context.fetcher,
            source=self.info.name,
            agent=agent_of(context.settings.user_agent),
        )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:  # noqa: ARG002 — pages are fetched as robots.txt allows
        """The PDFs that the website's pages list; at the end, that it lists no others."""
        async for listed in self.explore():
            yield self.website.task_of(listed)
        keys = await asyncio.to_thread(self.frontier.listed_keys)
        prefix = ids.site_file_id(self.website.configuration.id, "").rpartition("/")[0] + "/"
        yield KeyListing(prefix=prefix, task_keys=keys)

    async def enumerate(
        self,
        ask: Ask,  # noqa: ARG002 — as above
        since: date | None,  # noqa: ARG002 — pages seldom say when a report was published
        until: date | None,  # noqa: ARG002 — as above
    ) -> AsyncIterator[Expected]:
        """The documents that each page lists."""
        documents: dict[str, set[str]] = {}
        async for listed in self.explore():
            documents.setdefault(listed.found_on, set()).add(self.website.task_of(listed).key)
        for page, keys in documents.items():
            yield Expected(scope=page, document_ids=frozenset(keys))

    async def collect(
        self, task: FetchTask, part: Part, previous: FileRecord | None
    ) -> DownloadResult:
        """A PDF, archived and stored in the output."""
        downloader = self.session.downloader
        assert downloader is not None, "a dry run fetches no PDF"
        try:
            permit = self.robots.permit
            await permit(part.url)  # before a slot is taken
            async with self.session.slots:
                result = await downloader.collect(self.website, task, part, previous, permit)
        except StoreUnavailableError:
            raise
        except RobotsForbiddenError as error:
            await self._record_forbidden(part.url, error)
            raise
        except Exception as error:
            self.progress.failed += 1
            await asyncio.to_thread(downloader.failed, self.website, part.url, error)
            await self._store_outcome(part.url, PdfState.FAILED, str(error))
            if isinstance(error, WrongContentError):
                raise WrongContentError(f"{part.url}: {error}") from error
            raise
        self.progress.fetched += result.changed
        self.progress.unchanged += not result.changed
        await self._store_outcome(part.url, PdfState.STORED)
        self._report()
        return result

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """The document of a PDF."""
        return self.website.parse(raw)

    async def explore(self) -> AsyncIterator[Listed]:
        """The PDFs of the website, each once, as its pages are visited.

        Ends with an error if pages could not be read: they may have listed more.
        """
        session, name = self.session, self.website.configuration.id
        crawler = self._crawler()
        async for batch in crawler.listed(resumed=session.plan.is_continued):
            self.progress.pages = crawler.visited
            listed = session.limit([pdf for pdf in batch if await self._is_allowed(pdf.url)])
            if session.downloader is not None:
                urls = [pdf.url for pdf in listed]
                await asyncio.to_thread(session.state.discovered, name, *urls)
            self.progress.listed += len(listed)
            self._report()
            for pdf in listed:
                yield pdf
            if session.is_full:
                break
        limits = self._limits_reached()
        for limit in limits:
            await self._record_limit(limit)
        if crawler.unread:
            raise FetchError(f"{crawler.unread:,} pages could not be read: {crawler.first_error}")
        if limits:
            raise SuspiciousYieldError(f"left out: {', '.join(limits)}")

    def _limits_reached(self) -> list[str]:
        """Name the limits that left out a part of the website, with the options that raise them."""
        frontier, session = self.frontier, self.session
        limits = session.plan.limits
        over_files = session.is_full and (session.over_max_files or frontier.has_more)
        counts = {
            f"pages over the limit of {limits.max_pages:,} (--max-pages)": frontier.over_max_pages,
            f"pages behind more than {limits.max_depth} links (--max-depth)": (
                frontier.over_max_depth
            ),
            "lists of pages without PDFs that go on": frontier.cut_lists,
            f"PDFs over the limit of {limits.max_files} (--max-files)": over_files,
        }
        return [name for name, is_reached in counts.items() if is_reached]

    async def _record_limit(self, message: str) -> None:
        if self.session.downloader is None:
            return
        error = CrawlError(
            website_id=self.website.configuration.id,
            error_type="LimitReached",
            error_message=f"left out: {message}",
            timestamp=self.session.context.seams.clock.now(),
        )
        await asyncio.to_thread(self.session.state.problem, error)

    async def finish(self, report: RunReport) -> None:
        """Record how the website ended: as failed, if nothing of it is in the library."""
        await self._store_outcomes()
        await asyncio.to_thread(self.frontier.mark_indexed)
        name = self.website.configuration.id
        failed = report.status is RunStatus.FAILED
        error = None
        if report.error_summary:
            error = CrawlError(
                website_id=name,
                error_type="WebsiteFailed" if failed else "WebsiteIncomplete",
                error_message=report.error_summary,
                timestamp=self.session.context.seams.clock.now(),
            )
        outcome: Outcome = "incomplete" if report.error_summary else "crawled"
        outcome = "failed" if failed else outcome
        await asyncio.to_thread(self.session.state.website, name, outcome, error)

    def _crawler(self) -> Crawler:
        session = self.session
        return Crawler(
            website=self.website,
            context=session.context,
            frontier=self.frontier,
            strategies=StrategyManager(
                website=self.website.configuration,
                advisors=session.plan.advisors,
                database=session.context.database,
                clock=session.context.seams.clock,
            ),
            readers=session.readers,
            robots=self.robots,
            slots=session.slots,
            parallelism=session.plan.limits.parallelism,
            browser=session.browser,
        )

    async def _is_allowed(self, url: str) -> bool:
        """Whether robots.txt allows a PDF; one that it forbids is recorded, and not a failure."""
        try:
            await self.robots.permit(url)
        except RobotsForbiddenError as error:
            await self._record_forbidden(url, error)
            return False
        except FondsError:
            return True  # its host is down: fetching the PDF will fail
        return True

    async def _record_forbidden(self, url: str, error: RobotsForbiddenError) -> None:
        self.progress.forbidden += 1
        if self.session.downloader is not None:
            await asyncio.to_thread(self.session.downloader.forbidden, self.website, error)
        await self._store_outcome(url, PdfState.FORBIDDEN, str(error))

    async def _store_outcome(self, url: str, state: PdfState, error: str | None = None) -> None:
        self._outcomes[url] = state, error
        if len(self._outcomes) >= BATCH_SIZE:
            await self._store_outcomes()

    async def _store_outcomes(self) -> None:
        outcomes, self._outcomes = self._outcomes, {}
        if outcomes:
            await asyncio.to_thread(self.frontier.mark, outcomes)

    def _report(self) -> None:
        self.session.watch(self.website.configuration.id, self.progress)


# Opening ----------------------------------------------------------------------------------


@asynccontextmanager
async def open_session(
    plan: Plan, context: Context, *, watch: CrawlWatch | None = None
) -> AsyncIterator[CrawlSession]:
    """A crawl with its state: ended if all goes well, else ready to be resumed."""
    clock = context.seams.clock
    output = open_output(plan.output, seams=context.seams)
    output = output.part(plan.part.name) if plan.part else output
    state = await asyncio.to_thread(_open_state, plan, output, context)
    readers = open_site_readers(plan.limits.parallelism, context.settings)
    try:
        for configuration in plan.websites:
            await asyncio.to_thread(
                save_website,
                context.database,
                configuration,
                output.address,
                clock,
                rendered=plan.browser,
            )
        downloader = PdfDownloader(
            context=context,
            output=output,
            state=state,
            readers=readers,
            dedupe=plan.dedupe,
            resumed=plan.is_continued,
        )
        session = CrawlSession(
            id=UUID(state.crawl_id),
            plan=plan,
            context=context,
            readers=readers,
            downloader=downloader,
        )
        if plan.resume:
            await asyncio.to_thread(_recall, session)
        session.watch = watch or session.watch
        async with open_browser(context.settings, enabled=plan.browser) as session.browser:
            yield session
    except BaseException:
        await asyncio.to_thread(state.close)
        raise
    else:
        await asyncio.to_thread(state.close, clock.now())
    finally:
        readers.close()


def _open_state(plan: Plan, output: Output, context: Context) -> CrawlState:
    clock, scratch = context.seams.clock, context.settings.home / "tmp"
    make_private_folder(scratch)
    if plan.part and _is_started(plan.part, output):
        return CrawlState.resume(output, clock, scratch=scratch)
    if plan.part:
        opening, entries = _opening(plan, output, clock), _earlier_entries(plan, plan.part, output)
        return CrawlState.begin(output, opening, clock, scratch=scratch, newer_entries=entries)
    if plan.resume:
        state = CrawlState.resume(output, clock, scratch=scratch)
        _merge_parts(state, output)
    else:
        opening, entries = _opening(plan, output, clock), _entries_of_parts(output)
        state = CrawlState.begin(output, opening, clock, scratch=scratch, newer_entries=entries)
    for part in output.parts():
        part.discard()
    return state


def _recall(session: CrawlSession) -> None:
    """Name the PDFs of a resumed crawl that its files do not name."""
    for website in session.all_websites():
        for urls in website.frontier.discovered():
            session.state.recall(urls)


def _is_started(part: CrawlPart, output: Output) -> bool:
    stored = read_stored(output)
    return stored is not None and stored.opening.crawl_id == part.crawl_id


def _earlier_entries(plan: Plan, part: CrawlPart, output: Output) -> Iterator[Entry]:
    """The entries in the whole output of the websites of a part."""
    stored = read_stored(output.whole) if part.follows else None
    names = {website.id for website in plan.websites}
    yield from (entry for entry in (stored.entries if stored else ()) if entry.website_id in names)


def _entries_of_parts(output: Output) -> Iterator[Entry]:
    """The files of the parts of a crawl that was stopped, and is not resumed."""
    for part in output.parts():
        if record := read_part(part):
            yield from record.files


def _merge_parts(state: CrawlState, output: Output) -> None:
    """Record the parts of this crawl as they were when it was stopped."""
    for part in output.parts():
        record = read_part(part)
        if record and record.crawl_id == state.crawl_id:
            state.merge(record, {})
    state.fold()  # a part reads what is in `metadata.json`


def _opening(plan: Plan, output: Output, clock: Clock) -> CrawlMetadata:
    part = plan.part
    return CrawlMetadata(
        crawl_id=part.crawl_id if part else str(uuid4()),
        crawl_start_time=part.started if part else clock.now(),
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

"""A crawl as somebody wants it: opened with its ledger, and ended with what came of it."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID, uuid4

from fonds.errors import UsageError
from fonds.runs.context import Workplace
from fonds.runs.state import RunReport, RunStatus
from fonds.seams import Clock
from fonds.settings import Settings
from fonds.sites.advice.strategy import Advisor
from fonds.sites.browser import open_browser
from fonds.sites.collection import Collection
from fonds.sites.crawl import Crawl, CrawlWatch, Limits
from fonds.sites.models import METADATA_VERSION, CrawlError, CrawlMetadata, WebsiteConfiguration
from fonds.sites.opening import Opener
from fonds.sites.records.events import Outcome
from fonds.sites.records.layout import Entry
from fonds.sites.records.ledger import Ledger
from fonds.sites.records.output import Output, open_output
from fonds.sites.records.parts import read_part, stored_in
from fonds.sites.source import Website
from fonds.sites.tactics import advisors_of
from fonds.sites.websites import get_website, remember
from fonds.stores.database import Database

_M_ARENA_MAX: Final = -8
"""What glibc calls the setting for how many heaps there may be."""


@dataclass(frozen=True, kw_only=True)
class Share:
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
    limits: Limits = field(default_factory=Limits)
    dedupe: bool = False
    resume: bool = False
    browser: bool = False
    """Whether pages are rendered before they are read."""
    share: Share | None = None
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
    ledger: Ledger
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
                timestamp=self.crawl.workplace.seams.clock.now(),
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
    plan: Plan, workplace: Workplace, *, watch: CrawlWatch | None = None
) -> AsyncIterator[Expedition]:
    """A crawl with its ledger: ended in it if all went well, else ready to be resumed."""
    _share_one_heap()
    clock = workplace.seams.clock
    output = open_output(plan.output, seams=workplace.seams)
    output = output.part(plan.share.name) if plan.share else output
    ledger = await asyncio.to_thread(_ledger, plan, output, workplace)
    opener = Opener()
    try:
        for configuration in plan.websites:
            await asyncio.to_thread(
                remember,
                workplace.database,
                configuration,
                output.address,
                clock,
                rendered=plan.browser,
            )
        collection = Collection(
            workplace=workplace,
            output=output,
            ledger=ledger,
            opener=opener,
            dedupe=plan.dedupe,
            resumed=plan.goes_on,
        )
        crawl = Crawl(
            id=UUID(ledger.crawl_id),
            workplace=workplace,
            advisors=plan.advisors,
            limits=plan.limits,
            collection=collection,
            resumed=plan.goes_on,
        )
        crawl.watch = watch or crawl.watch
        try:
            async with open_browser(workplace.settings, wanted=plan.browser) as browser:
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


def _ledger(plan: Plan, output: Output, workplace: Workplace) -> Ledger:
    clock, scratch = workplace.seams.clock, workplace.settings.home / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    if plan.share and _is_begun(plan.share, output):
        return Ledger.resume(output, clock, scratch=scratch)
    if plan.share:
        opening, earlier = _opening(plan, output, clock), _earlier(plan, plan.share, output)
        return Ledger.begin(output, opening, clock, scratch=scratch, besides=earlier)
    if plan.resume:
        ledger = Ledger.resume(output, clock, scratch=scratch)
        _take_in(ledger, output)
    else:
        opening, left = _opening(plan, output, clock), _left_over(output)
        ledger = Ledger.begin(output, opening, clock, scratch=scratch, besides=left)
    for part in output.parts():
        part.discard()
    return ledger


def _is_begun(share: Share, part: Output) -> bool:
    stored = stored_in(part)
    return stored is not None and stored.opening.crawl_id == share.crawl_id


def _earlier(plan: Plan, share: Share, part: Output) -> Iterator[Entry]:
    """What the whole output tells of the websites of a part."""
    stored = stored_in(part.whole) if share.follows else None
    mine = {website.id for website in plan.websites}
    yield from (entry for entry in (stored.entries if stored else ()) if entry.website_id in mine)


def _left_over(output: Output) -> Iterator[Entry]:
    """What parts of a crawl had fetched that was stopped, and is not resumed."""
    for part in output.parts():
        if told := read_part(part):
            yield from told.files


def _take_in(ledger: Ledger, output: Output) -> None:
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

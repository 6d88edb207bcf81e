"""Dry runs: the strategy for one page, and the PDFs that a crawl would fetch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from fonds.context import Context
from fonds.fetch.client import Download
from fonds.seams import Seams
from fonds.sites.browser import open_browser
from fonds.sites.crawler import MAX_PAGE_SIZE, unparsed_page
from fonds.sites.models import ScrapingStrategy, WebsiteConfiguration
from fonds.sites.page_reading import open_site_readers
from fonds.sites.pages.page import WebPage
from fonds.sites.robots import PACE, Robots, agent_of
from fonds.sites.session import CrawlSession, CrawlWatch, Plan
from fonds.sites.strategy import Advisor, PageMatch
from fonds.sites.strategy_manager import StrategyManager
from fonds.sites.tables import website_tables
from fonds.sites.website import Website
from fonds.stores.blobs import open_blobs
from fonds.stores.database import Database, open_database
from fonds.stores.tables import core_tables, metadata


@dataclass(frozen=True, kw_only=True)
class PageProbe:
    """The strategy for one page, and what it matches there."""

    url: str
    title: str
    strategy: ScrapingStrategy | None
    """None if the page has no list of PDFs that differs from its other links."""
    advisor: str
    match: PageMatch


async def probe(
    url: str, context: Context, advisors: tuple[Advisor, ...], *, browser: bool = False
) -> PageProbe:
    """Find the strategy for a page."""
    website = WebsiteConfiguration(id="probe", name=url, base_url=url)
    source = Website(website)
    robots = Robots(
        context.fetcher,
        source=source.info.name,
        agent=agent_of(context.settings.user_agent),
    )

    async def fetch(url: str) -> Download:
        download = await context.fetcher.download(
            url,
            source=source.info.name,
            pace=PACE,
            max_size=MAX_PAGE_SIZE,
            permit=robots.permit,
        )
        assert download is not None, "an unconditional request never returns None"
        return download

    download = await fetch(url)
    try:
        async with (
            open_browser(context.settings, enabled=browser) as chromium,
            _scratch(context) as scratch,
        ):
            with open_site_readers(1, context.settings) as readers:
                page = unparsed_page(download, readers)
                if chromium is not None:
                    page = await chromium.render(page, fetch=fetch)
                strategies = StrategyManager(
                    website=website,
                    advisors=advisors,
                    database=scratch.database,
                    clock=context.seams.clock,
                )
                return PageProbe(
                    match=await strategies.match(page, ()),
                    url=page.url,
                    title=await page.read(WebPage.title),
                    strategy=strategies.strategy,
                    advisor=strategies.advisor,
                )
    finally:
        download.discard()


@asynccontextmanager
async def open_dry_run(
    plan: Plan, context: Context, *, watch: CrawlWatch | None = None
) -> AsyncIterator[CrawlSession]:
    """A crawl that visits pages and fetches no PDF; nothing of it is stored."""
    async with _scratch(context) as scratch:
        with open_site_readers(plan.limits.parallelism, context.settings) as readers:
            session = CrawlSession(id=uuid4(), plan=plan, context=scratch, readers=readers)
            session.watch = watch or session.watch
            async with open_browser(context.settings, enabled=plan.browser) as session.browser:
                yield session


@asynccontextmanager
async def _scratch(context: Context) -> AsyncIterator[Context]:
    """The context with an empty library that is removed afterwards."""
    with TemporaryDirectory(prefix="fonds-look-") as folder:
        database = open_database(f"sqlite:///{Path(folder) / 'look.db'}", seams=Seams())
        try:
            await asyncio.to_thread(_create_tables, database)
            blobs = open_blobs(folder, seams=Seams())
            yield context.with_stores(database, blobs)
        finally:
            database.close()


def _create_tables(database: Database) -> None:
    """Create the tables of a crawl; those of all sources would take longer than the crawl."""
    with database.write() as connection:
        metadata.create_all(connection, tables=[*core_tables, *website_tables])

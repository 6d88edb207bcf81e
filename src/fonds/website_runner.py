"""How websites are crawled, several at a time, and how one is run by the name of its source."""

from __future__ import annotations

from dataclasses import dataclass

from fonds import ids
from fonds.context import Context
from fonds.engine.opening import LOCAL
from fonds.errors import FondsError
from fonds.pipeline import run_source
from fonds.runs.audit import Audit, AuditRange, audit_source
from fonds.runs.concurrency import in_order
from fonds.runs.state import RunReport, RunRequest
from fonds.sites.cluster import PartCrawler, crawl_on_cluster, divide
from fonds.sites.output import LEASE_EXPIRY_SECONDS, lock_output, retry_while_busy
from fonds.sites.probe import open_dry_run
from fonds.sites.session import CrawlSession, CrawlWatch, Plan, open_session, plan_again
from fonds.sites.structure_advisor import StructureAdvisor
from fonds.sites.website import get_website


@dataclass(frozen=True)
class WebsiteRunner:
    """Crawls a website as it was crawled the last time."""

    source: str

    async def run(self, request: RunRequest, context: Context) -> RunReport:
        """Crawl all pages: they do not say when their PDFs were published."""
        plan = plan_again(context.database, ids.website_of_source(self.source), context.settings)
        (report,) = await crawl(plan, request, context, waits=True)
        return report

    async def audit(self, dates: AuditRange, context: Context) -> Audit:
        """Visit all pages, without the strategies of earlier crawls."""
        website = get_website(context.database, ids.website_of_source(self.source)).website
        plan = Plan(
            websites=[website.configuration.model_copy(update={"enabled": True})],
            output="",
            config_path=self.source,
            advisors=(StructureAdvisor(),),
        )
        async with open_dry_run(plan, context) as session:
            (crawl,) = session.websites()
            return await audit_source(crawl, context, dates)


async def crawl(
    plan: Plan,
    request: RunRequest,
    context: Context,
    *,
    watch: CrawlWatch | None = None,
    waits: bool = False,
    crawl_part: PartCrawler | None = None,
) -> list[RunReport]:
    """Crawl websites for their PDFs, several at a time; each is a run of its own.

    An output has one crawl at a time: one that `waits` starts when another has ended. `crawl_part`
    crawls the websites of one host on a machine of a cluster.
    """
    part = plan.part.name if plan.part else ""
    async with (
        lock_output(plan.output, context, waits=waits, part=part),
        open_session(plan, context, watch=watch) as session,
    ):
        names = [website.info.name for website in session.websites()]
        if crawl_part and context.settings.engine != LOCAL and (orders := divide(session)):
            reports = await crawl_on_cluster(orders, crawl_part, session)
        else:
            reports = await _crawl_here(session, request, context)
    return [reports[name] for name in names]


async def _crawl_here(
    session: CrawlSession, request: RunRequest, context: Context
) -> dict[str, RunReport]:
    """Crawl the websites in this process."""
    plan = session.plan
    websites = {website.info.name: website for website in session.websites()}
    # A part may be repeated while the locks of the machine that was lost with it have not expired.
    seconds = LEASE_EXPIRY_SECONDS if plan.part else 0.0

    async def run(name: str) -> RunReport:
        website = websites[name]
        try:
            report = await retry_while_busy(lambda: run_source(website, request, context), seconds)
        except FondsError as error:
            report = RunReport.refused(name, error)
        await website.finish(report)
        return report

    graph: dict[str, set[str]] = {name: set() for name in websites}
    return await in_order(graph, run, concurrency=plan.limits.parallelism)

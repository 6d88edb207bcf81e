"""A crawl of many websites on a cluster, divided by their hosts.

All websites of a host are one part, so that the host sees one visitor. A part has a ledger of its
own, which is taken into the one of the whole crawl when the part has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from sqlalchemy import func, select

from fonds import ids
from fonds.engine.base import ItemResult, on_the_way, require_here
from fonds.engine.opening import LOCAL, open_engine
from fonds.errors import FondsError, SettingsError
from fonds.runs.concurrency import finish_in_thread
from fonds.runs.overview import last_report
from fonds.runs.state import RunReport
from fonds.settings import Settings
from fonds.sites.crawl_state import PartRecord, read_part
from fonds.sites.frontier import VISITED
from fonds.sites.models import CrawlError, WebsiteConfiguration
from fonds.sites.output import PARTS
from fonds.sites.robots import FORBIDDEN
from fonds.sites.session import CrawlPart, CrawlSession, Plan, WebsiteProgress
from fonds.sites.strategy_manager import advisors_of
from fonds.sites.tables import site_addresses

MEMORY_MIB: Final = 4096
"""What an engine allows a part; a crawl needs far less."""
SECONDS: Final = 6 * 3600.0
"""Likewise: a host that wants to be asked seldom takes hours."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartOrder:
    """A part of a crawl on its way to another machine."""

    plan: Plan
    """Without advisors: they are made where it arrives."""
    settings: Settings

    def unpacked(self) -> tuple[Plan, Settings]:
        """What is to be done on this machine; refused where it does not have the files."""
        require_here(self.settings)
        output = self.plan.output
        if "://" not in output and not Path(output).is_dir():
            raise SettingsError(
                f"{output} is not on every machine of the cluster: let the files of the crawl go"
                " to an object store, or set FONDS_ENGINE=local"
            )
        return replace(self.plan, advisors=advisors_of(self.settings)), self.settings


PartCrawler = Callable[[PartOrder], list[RunReport]]


def divide(session: CrawlSession) -> list[PartOrder]:
    """The parts of a crawl; none where one process has to see it all, or might as well."""
    plan = session.plan
    looks_across = plan.dedupe or plan.browser or plan.limits.max_files is not None
    if looks_across or session.context.settings.engine == LOCAL:
        return []
    hosts: dict[str, list[WebsiteConfiguration]] = {}
    for website in session.websites():
        host = urlsplit(website.website.configuration.base_url).netloc.lower()
        hosts.setdefault(host, []).append(website.website.configuration)
    if len(hosts) == 1:
        return []
    return [_order(session, host, websites) for host, websites in hosts.items()]


def _order(session: CrawlSession, host: str, websites: Sequence[WebsiteConfiguration]) -> PartOrder:
    plan, state, folder = session.plan, session.state, session.output.folder
    part = CrawlPart(
        name=ids.text_sha256(host)[:16],
        crawl_id=state.crawl_id,
        started=state.started,
        follows=state.follows,
    )
    settings = replace(on_the_way(session.context.settings), engine=LOCAL)
    output = str(folder) if folder else plan.output
    plan = replace(plan, websites=tuple(websites), output=output, advisors=(), part=part)
    return PartOrder(plan=plan, settings=settings)


async def crawl_apart(
    orders: Sequence[PartOrder], crawl_part: PartCrawler, session: CrawlSession
) -> dict[str, RunReport]:
    """Have parts crawled on the cluster of the settings; what came of each source."""
    address = session.context.settings.engine
    reports: dict[str, RunReport] = {}
    with open_engine(address, memory_mib=MEMORY_MIB, seconds=SECONDS) as engine:
        outcomes = engine.run(crawl_part, orders)
        while outcome := await asyncio.to_thread(next, outcomes, None):
            settled = await finish_in_thread(_merge, session, outcome)
            reports |= {report.source: report for report in settled}
    if folder := session.output.folder:
        with suppress(OSError):
            (folder / PARTS).rmdir()
    return reports


# When a part has ended --------------------------------------------------------------------


def _merge(
    session: CrawlSession, outcome: ItemResult[PartOrder, list[RunReport]]
) -> list[RunReport]:
    """Take a part's ledger into that of the crawl, and say what came of its websites."""
    plan = outcome.item.plan
    assert plan.part
    part = session.output.part(plan.part.name)
    told = read_part(part)
    if told is None or told.crawl_id != plan.part.crawl_id:
        told = PartRecord(crawl_id=plan.part.crawl_id)
    discovered: dict[str, list[str]] = {}
    if outcome.error is None:
        discovered = {each.id: _listed(session, each.id) for each in plan.websites}
    else:
        _give_up(told, plan, session, outcome.error)
    session.state.merge(told, discovered)
    part.discard()
    known = {report.source: report for report in outcome.result or ()}
    reports = [
        known.get(ids.site_source(each.id)) or _report(session, each.id, told, outcome.error)
        for each in plan.websites
    ]
    for website, report in zip(plan.websites, reports, strict=True):
        _show(session, website.id, report)
    return reports


def _give_up(told: PartRecord, plan: Plan, session: CrawlSession, error: FondsError) -> None:
    """Note of the websites of a part that it ended with an error; what it had done is kept."""
    for website in plan.websites:
        if told.websites.get(website.id) != "crawled":
            told.websites[website.id] = "failed"
            failure = CrawlError(
                website_id=website.id,
                error_type="WebsiteFailed",
                error_message=str(error),
                timestamp=session.context.seams.clock.now(),
            )
            told.errors.append(failure)


def _report(
    session: CrawlSession, website: str, told: PartRecord, error: FondsError | None
) -> RunReport:
    """The report of a website whose part came twice, or did not come back."""
    if error is not None and told.websites[website] == "failed":
        return RunReport.refused(ids.site_source(website), error)
    return last_report(session.context.database, ids.site_source(website))


def _listed(session: CrawlSession, website: str) -> list[str]:
    """The PDFs that a website lists, and that may be asked for."""
    table = site_addresses.c
    allowed = table.error.is_(None) | (table.error != FORBIDDEN)
    query = select(table.url).where(_seen(session, website, "pdf"), allowed)
    with session.context.database.read() as connection:
        return list(connection.scalars(query.order_by(table.place)))


def _seen(session: CrawlSession, website: str, kind: str) -> Any:
    table = site_addresses.c
    of_this_crawl = table.crawl_id == session.id
    return (table.website_id == website) & (table.kind == kind) & of_this_crawl


def _show(session: CrawlSession, website: str, report: RunReport) -> None:
    visited = _seen(session, website, "page") & (site_addresses.c.state == VISITED)
    with session.context.database.read() as connection:
        pages = connection.scalar(select(func.count()).where(visited)) or 0
    counts = report.counts
    progress = WebsiteProgress(
        pages=pages,
        found=counts.discovered,
        fetched=counts.inserted + counts.updated,
        unchanged=counts.skipped,
        failed=counts.error,
    )
    session.watch(website, progress)
    session.context.progress(report.source, counts)

"""A crawl of many websites on a cluster, divided by their hosts.

All websites of a host are one part, so that the host has one client. A part has a state of its
own, which is merged into that of the whole crawl when the part has ended.
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
from fonds.engine.base import ItemResult, portable_settings, require_local_files
from fonds.engine.opening import LOCAL, open_engine
from fonds.errors import FondsError, SettingsError
from fonds.runs.concurrency import finish_in_thread
from fonds.runs.overview import last_report
from fonds.runs.state import RunReport
from fonds.settings import Settings
from fonds.sites.crawl_state import PartRecord, read_part
from fonds.sites.frontier import VISITED
from fonds.sites.models import CrawlError, PdfState, WebsiteConfiguration
from fonds.sites.output import PARTS
from fonds.sites.session import CrawlPart, CrawlSession, Plan, WebsiteProgress
from fonds.sites.strategy_manager import advisors_of
from fonds.sites.tables import site_addresses

MEMORY_MIB: Final = 4096
"""The limit of an engine for a part; a crawl needs far less."""
SECONDS: Final = 6 * 3600.0
"""Likewise: a host with a long crawl delay takes hours."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartOrder:
    """A part of a crawl that is sent to another machine."""

    plan: Plan
    """Without advisors: they are created on the other machine."""
    settings: Settings

    def unpacked(self) -> tuple[Plan, Settings]:
        """The plan and settings for this machine; SettingsError if it does not have the files."""
        require_local_files(self.settings)
        output = self.plan.output
        if "://" not in output and not Path(output).is_dir():
            raise SettingsError(
                f"{output} is not on every machine of the cluster: choose an object store as the"
                " output, or set FONDS_ENGINE=local"
            )
        return replace(self.plan, advisors=advisors_of(self.settings)), self.settings


PartCrawler = Callable[[PartOrder], list[RunReport]]


def divide(session: CrawlSession) -> list[PartOrder]:
    """The parts of a crawl; none if one process has to do it all, or can as well."""
    plan = session.plan
    is_indivisible = plan.dedupe or plan.browser or plan.limits.max_files is not None
    if is_indivisible or session.context.settings.engine == LOCAL:
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
    settings = replace(portable_settings(session.context.settings), engine=LOCAL)
    output = str(folder) if folder else plan.output
    plan = replace(plan, websites=tuple(websites), output=output, advisors=(), part=part)
    return PartOrder(plan=plan, settings=settings)


async def crawl_on_cluster(
    orders: Sequence[PartOrder], crawl_part: PartCrawler, session: CrawlSession
) -> dict[str, RunReport]:
    """Crawl parts on the cluster of the settings; the report of each source."""
    address = session.context.settings.engine
    reports: dict[str, RunReport] = {}
    with open_engine(address, memory_mib=MEMORY_MIB, seconds=SECONDS) as engine:
        outcomes = engine.run(crawl_part, orders)
        while outcome := await asyncio.to_thread(next, outcomes, None):
            merged = await finish_in_thread(_merge, session, outcome)
            reports |= {report.source: report for report in merged}
    if folder := session.output.folder:
        with suppress(OSError):
            (folder / PARTS).rmdir()
    return reports


# When a part has ended --------------------------------------------------------------------


def _merge(
    session: CrawlSession, outcome: ItemResult[PartOrder, list[RunReport]]
) -> list[RunReport]:
    """Merge the state of a part into that of the crawl; the reports of its websites."""
    plan = outcome.item.plan
    assert plan.part
    part = session.output.part(plan.part.name)
    record = read_part(part)
    if record is None or record.crawl_id != plan.part.crawl_id:
        record = PartRecord(crawl_id=plan.part.crawl_id)
    discovered: dict[str, list[str]] = {}
    if outcome.error is None:
        discovered = {website.id: _listed(session, website.id) for website in plan.websites}
    else:
        _mark_failed(record, plan, session, outcome.error)
    session.state.merge(record, discovered)
    part.discard()
    returned = {report.source: report for report in outcome.result or ()}
    reports = [
        returned.get(ids.site_source(website.id))
        or _report(session, website.id, record, outcome.error)
        for website in plan.websites
    ]
    for website, report in zip(plan.websites, reports, strict=True):
        _show(session, website.id, report)
    return reports


def _mark_failed(record: PartRecord, plan: Plan, session: CrawlSession, error: FondsError) -> None:
    """Mark the websites of a part as failed, except those that were crawled before the error."""
    for website in plan.websites:
        if record.websites.get(website.id, "failed") == "failed":
            record.websites[website.id] = "failed"
            failure = CrawlError(
                website_id=website.id,
                error_type="WebsiteFailed",
                error_message=str(error),
                timestamp=session.context.seams.clock.now(),
            )
            record.errors.append(failure)


def _report(
    session: CrawlSession, website: str, record: PartRecord, error: FondsError | None
) -> RunReport:
    """The report of a website whose part was crawled twice, or was lost."""
    if error is not None and record.websites[website] == "failed":
        return RunReport.refused(ids.site_source(website), error)
    return last_report(session.context.database, ids.site_source(website))


def _listed(session: CrawlSession, website: str) -> list[str]:
    """The PDFs that a website lists, except those that robots.txt forbids."""
    table = site_addresses.c
    allowed = table.state != PdfState.FORBIDDEN
    query = select(table.url).where(_addresses_of(session, website, "pdf"), allowed)
    with session.context.database.read() as connection:
        return list(connection.scalars(query.order_by(table.place)))


def _addresses_of(session: CrawlSession, website: str, kind: str) -> Any:
    table = site_addresses.c
    of_this_crawl = table.crawl_id == session.id
    return (table.website_id == website) & (table.kind == kind) & of_this_crawl


def _show(session: CrawlSession, website: str, report: RunReport) -> None:
    visited = _addresses_of(session, website, "page") & (site_addresses.c.state == VISITED)
    with session.context.database.read() as connection:
        pages = connection.scalar(select(func.count()).where(visited)) or 0
    counts = report.counts
    progress = WebsiteProgress(
        pages=pages,
        listed=counts.discovered,
        fetched=counts.inserted + counts.updated,
        unchanged=counts.skipped,
        failed=counts.error,
    )
    session.watch(website, progress)
    session.context.progress(report.source, counts)

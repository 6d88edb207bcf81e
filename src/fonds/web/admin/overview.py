"""The page to look at first: what is wrong, how each source stands, what waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from fonds.api.desk import desk_of
from fonds.runs.backlog import Backlog, backlogs
from fonds.runs.insight import SourceInsight, sources_at_a_glance
from fonds.runs.schedule import next_run
from fonds.runs.state import RunStatus
from fonds.sources.registry import all_sources
from fonds.upkeep.work_checks import LATE, SLOW
from fonds.web import charts
from fonds.web.admin.asking import AT, Asked, admin_page, standing
from fonds.web.frame import ago, operator_of

SHORT: Final = frozenset({RunStatus.FAILED, RunStatus.PARTIAL})

router: Final = APIRouter(prefix=AT)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """Something that somebody should look at."""

    what: str
    why: str
    href: str
    is_grave: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """All sources together."""

    documents: int
    fine: int
    short: int
    """Whose last run fell short."""
    never: int
    running: int
    open_errors: int


@router.get("")
def show_overview(request: Request, asked: Asked = 0) -> Response:
    """All sources, those in trouble first."""
    visitor, desk = operator_of(request), desk_of(request)
    now = desk.now()
    with desk.library.database.read() as connection:
        sources = sources_at_a_glance(connection, list(all_sources().values()), now)
        queues = backlogs(connection, now)
        state = standing(connection, now, asked)
    late = {each.name for each in sources if is_late(each, now)}
    troubles = [*_of_sources(sources, late, now), *_of_queues(queues, now)]
    return admin_page(
        request,
        "overview.html",
        visitor,
        state,
        sources=sorted(sources, key=lambda each: (_gravity(each, late), each.title.lower())),
        totals=_totals(sources),
        queues=queues,
        late=late,
        troubles=sorted(troubles, key=lambda each: not each.is_grave),
        strip=charts.strip,
        is_running=any(each.running for each in sources),
    )


def is_late(each: SourceInsight, now: datetime) -> bool:
    """Whether a source should have succeeded since it last did."""
    since = each.overview.last_success_at or each.overview.last_run_at
    if since is None:
        return False
    due = next_run(all_sources()[each.name].info, since + timedelta(seconds=1))
    return due is not None and due + LATE < now


def _gravity(each: SourceInsight, late: set[str]) -> int:
    """What needs somebody stands above what goes on, and that above what is as it should be."""
    last = each.overview.last_status
    ranks = (
        last == RunStatus.FAILED,
        last in SHORT,
        bool(each.overview.open_errors),
        each.name in late,
        each.running is not None,
        last is not None,
    )
    return next((rank for rank, holds in enumerate(ranks) if holds), len(ranks))


def _totals(sources: Sequence[SourceInsight]) -> Totals:
    short = sum(each.overview.last_status in SHORT for each in sources)
    never = sum(not each.strip for each in sources)
    return Totals(
        documents=sum(each.overview.documents for each in sources),
        fine=len(sources) - short - never,
        short=short,
        never=never,
        running=sum(each.running is not None for each in sources),
        open_errors=sum(each.overview.open_errors for each in sources),
    )


def _of_sources(
    sources: Sequence[SourceInsight], late: set[str], now: datetime
) -> Iterator[Trouble]:
    for each in sources:
        last, href = each.overview.last_status, f"{AT}/sources/{each.name}"
        if last in SHORT:
            run = each.strip[-1]
            why = run.error_summary or f"{run.counts.error:,} of its tasks failed"
            what = "failed" if last == RunStatus.FAILED else "fell short"
            told = f"{each.title} {what} {ago(run.started_at, now)}"
            yield Trouble(what=told, why=why, href=href, is_grave=last == RunStatus.FAILED)
        elif each.name in late:
            told = f"{each.title} is behind its schedule"
            why = f"last success {ago(each.overview.last_success_at, now)}"
            yield Trouble(what=told, why=why, href=href, is_grave=False)


def _of_queues(queues: Sequence[Backlog], now: datetime) -> Iterator[Trouble]:
    for queue in queues:
        href = f"{AT}/{queue.queue}"
        if queue.given_up:
            cause = f": {queue.causes[0].cause}" if queue.causes else ""
            told = f"{queue.given_up:,} documents were given up in the queue for {queue.queue}"
            yield Trouble(what=told, why=f"tried again and again{cause}", href=href, is_grave=False)
        elif (queue.oldest_seconds or 0) > SLOW.total_seconds():
            told = f"The queue for {queue.queue} does not move"
            why = f"{queue.waiting:,} wait, the first came {ago(queue.oldest_at, now)}"
            yield Trouble(what=told, why=why, href=href, is_grave=False)

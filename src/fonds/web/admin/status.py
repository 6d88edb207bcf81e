"""The page to look at first: what is wrong, how each source stands, what waits.

The pages of the queues: what waits, why some of it fails, how fast it goes, what it costs.

The pages of what was done: audits with what they found missing, commands with what became.

The pages of what stands beside sources: uploads, websites, and indexes on the store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from fonds.api.admin_schemas import LAST_ID
from fonds.api.admin_status import index_health, site_health, upload_work
from fonds.api.dependencies import desk_of
from fonds.embed.client import left_alone
from fonds.maintenance.checks import LATE, SLOW
from fonds.runs import audit, commands
from fonds.runs.commands import QueueName
from fonds.runs.overview import SourceInsight, sources_at_a_glance
from fonds.runs.queue_status import Backlog, backlogs, embedding_work
from fonds.runs.schedule import next_run
from fonds.runs.state import RunStatus
from fonds.sources.base import SourceInfo
from fonds.uploads.states import ACTIVE, FAILURES, JobStatus
from fonds.web import charts
from fonds.web.admin.actions import AT, Asked, admin_page, standing
from fonds.web.rendering import ago, operator_of, query

SHORT: Final = frozenset({RunStatus.FAILED, RunStatus.PARTIAL})

router: Final = APIRouter(prefix=AT)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenProblem:
    """Something that somebody should look at."""

    what: str
    why: str
    href: str
    is_grave: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceTotals:
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
        sources = sources_at_a_glance(connection, list(desk.library.sources.values()), now)
        queues = backlogs(connection, now)
        state = standing(connection, now, asked)
    registry = desk.library.sources
    late = {each.name for each in sources if is_late(each, registry[each.name].info, now)}
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


def is_late(each: SourceInsight, info: SourceInfo, now: datetime) -> bool:
    """Whether a source should have succeeded since it last did."""
    since = each.overview.last_success_at or each.overview.last_run_at
    if since is None:
        return False
    due = next_run(info, since + timedelta(seconds=1))
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


def _totals(sources: Sequence[SourceInsight]) -> SourceTotals:
    short = sum(each.overview.last_status in SHORT for each in sources)
    never = sum(not each.strip for each in sources)
    return SourceTotals(
        documents=sum(each.overview.documents for each in sources),
        fine=len(sources) - short - never,
        short=short,
        never=never,
        running=sum(each.running is not None for each in sources),
        open_errors=sum(each.overview.open_errors for each in sources),
    )


def _of_sources(
    sources: Sequence[SourceInsight], late: set[str], now: datetime
) -> Iterator[OpenProblem]:
    for each in sources:
        last, href = each.overview.last_status, f"{AT}/sources/{each.name}"
        if last in SHORT:
            run = each.strip[-1]
            why = run.error_summary or f"{run.counts.error:,} of its tasks failed"
            what = "failed" if last == RunStatus.FAILED else "fell short"
            told = f"{each.title} {what} {ago(run.started_at, now)}"
            yield OpenProblem(what=told, why=why, href=href, is_grave=last == RunStatus.FAILED)
        elif each.name in late:
            told = f"{each.title} is behind its schedule"
            why = f"last success {ago(each.overview.last_success_at, now)}"
            yield OpenProblem(what=told, why=why, href=href, is_grave=False)


def _of_queues(queues: Sequence[Backlog], now: datetime) -> Iterator[OpenProblem]:
    for queue in queues:
        href = f"{AT}/{queue.queue}"
        if queue.given_up:
            cause = f": {queue.causes[0].cause}" if queue.causes else ""
            told = f"{queue.given_up:,} documents were given up in the queue for {queue.queue}"
            yield OpenProblem(
                what=told, why=f"tried again and again{cause}", href=href, is_grave=False
            )
        elif (queue.oldest_seconds or 0) > SLOW.total_seconds():
            told = f"The queue for {queue.queue} does not move"
            why = f"{queue.waiting:,} wait, the first came {ago(queue.oldest_at, now)}"
            yield OpenProblem(what=told, why=why, href=href, is_grave=False)


TITLES: Final[dict[QueueName, str]] = {
    "normalization": "Texts",
    "embedding": "Vectors",
    "citations": "Citations",
}
MEANINGS: Final[dict[QueueName, str]] = {
    "normalization": "Documents whose files wait to be made into text.",
    "embedding": "Documents whose passages wait for vectors, by which search finds what is meant.",
    "citations": "Documents whose text waits to be searched for what it cites.",
}
COMMANDS: Final[dict[QueueName, str]] = {
    "normalization": "fonds normalize",
    "embedding": "fonds embed",
    "citations": "fonds citations",
}


@router.get("/normalization")
def show_normalization(request: Request, asked: Asked = 0) -> Response:
    """What waits for its text to be made."""
    return _queue(request, "normalization", asked)


@router.get("/embedding")
def show_embedding(request: Request, asked: Asked = 0) -> Response:
    """What waits for vectors."""
    return _queue(request, "embedding", asked)


@router.get("/citations")
def show_citations(request: Request, asked: Asked = 0) -> Response:
    """What waits to be searched for citations."""
    return _queue(request, "citations", asked)


def _queue(request: Request, name: QueueName, asked: int) -> Response:
    visitor, desk = operator_of(request), desk_of(request)
    now = desk.now()
    with desk.library.database.read() as connection:
        all_of_them = backlogs(connection, now)
        work = embedding_work(connection, now) if name == "embedding" else None
        alone = sorted(left_alone(connection, now)) if name == "embedding" else []
        state = standing(connection, now, asked)
    return admin_page(
        request,
        "queue.html",
        visitor,
        state,
        name=name,
        queue=next(each for each in all_of_them if each.queue == name),
        queues=all_of_them,
        titles=TITLES,
        meaning=MEANINGS[name],
        command=COMMANDS[name],
        work=work,
        alone=alone,
        is_draining=any(each.args.get("queue") == name for each in state.under_way),
    )


ON_A_PAGE: Final = 30

_Source = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]
_Before = Annotated[int, Query(ge=0, le=LAST_ID)]


@router.get("/audits")
def show_audits(
    request: Request, source: _Source = "", before: _Before = 0, asked: Asked = 0
) -> Response:
    """What audits found, the newest first."""
    visitor, desk = operator_of(request), desk_of(request)
    with desk.library.database.read() as connection:
        found = audit.history(
            connection, source=source or None, before=before or None, limit=ON_A_PAGE + 1
        )
        state = standing(connection, desk.now(), asked)
    more = len(found) > ON_A_PAGE
    next_ = query({"source": source, "before": found[ON_A_PAGE - 1].id}) if more else None
    return admin_page(
        request,
        "audits.html",
        visitor,
        state,
        audits=found[:ON_A_PAGE],
        sources=sorted(desk.library.sources),
        source=source,
        before=before,
        following=f"{AT}/audits?{next_}" if next_ else None,
    )


@router.get("/commands")
def show_commands(
    request: Request,
    source: _Source = "",
    which: Literal["", "open", "done"] = "",
    before: _Before = 0,
    asked: Asked = 0,
) -> Response:
    """What was asked for, by whom, and what came of it, the newest first."""
    visitor, desk = operator_of(request), desk_of(request)
    with desk.library.database.read() as connection:
        found = commands.listing(
            connection,
            source=source or None,
            is_open={"open": True, "done": False}.get(which),
            before=before or None,
            limit=ON_A_PAGE + 1,
        )
        state = standing(connection, desk.now(), asked)
    here = {"source": source, "which": which}
    more = len(found) > ON_A_PAGE
    next_ = query({**here, "before": found[ON_A_PAGE - 1].id}) if more else None
    return admin_page(
        request,
        "commands.html",
        visitor,
        state,
        commands=found[:ON_A_PAGE],
        sources=sorted(desk.library.sources),
        source=source,
        which=which,
        before=before,
        following=f"{AT}/commands?{next_}" if next_ else None,
    )


@router.get("/uploads")
def show_uploads(request: Request, asked: Asked = 0) -> Response:
    """Uploads by where they stand, and those that have waited longest."""
    visitor, desk = operator_of(request), desk_of(request)
    now = desk.now()
    with desk.library.database.read() as connection:
        work = upload_work(connection, now)
        state = standing(connection, now, asked)
    jobs = work.figures.jobs
    return admin_page(
        request,
        "uploads.html",
        visitor,
        state,
        work=work,
        figures=work.figures,
        under_way=_sum(jobs, ACTIVE),
        failed=_sum(jobs, FAILURES),
        complete=jobs[JobStatus.COMPLETE],
        most=max(jobs.values(), default=0),
        failures=FAILURES,
        share=charts.share,
    )


def _sum(jobs: Mapping[JobStatus, int], which: Collection[JobStatus]) -> int:
    return sum(count for status, count in jobs.items() if status in which)


@router.get("/sites")
def show_sites(request: Request, asked: Asked = 0) -> Response:
    """Websites, how their PDFs are found, and how well that works."""
    visitor, desk = operator_of(request), desk_of(request)
    sites = site_health(desk.library)
    with desk.library.database.read() as connection:
        state = standing(connection, desk.now(), asked)
    return admin_page(
        request, "sites.html", visitor, state, sites=sites, known=frozenset(desk.library.sources)
    )


@router.get("/indexes")
def show_indexes(request: Request, asked: Asked = 0) -> Response:
    """Indexes on the object store, their sizes, and who compiles a shard of them."""
    visitor, desk = operator_of(request), desk_of(request)
    found = index_health(desk.library)
    with desk.library.database.read() as connection:
        state = standing(connection, desk.now(), asked)
    return admin_page(request, "indexes.html", visitor, state, found=found)

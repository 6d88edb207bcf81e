"""Pages of status: overview, queues, audits, commands, uploads, websites and indexes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from fonds.api.admin_schemas import LAST_ID
from fonds.api.admin_status import index_health, site_health, upload_work
from fonds.api.dependencies import app_state
from fonds.embed.client import open_breakers
from fonds.maintenance.checks import MAX_DELAY, MAX_QUEUE_WAIT
from fonds.runs import audit, commands
from fonds.runs.commands import QueueName
from fonds.runs.overview import SourceInsight, source_insights
from fonds.runs.queue_status import Backlog, backlogs, embedding_work
from fonds.runs.schedule import next_run
from fonds.runs.state import RunStatus
from fonds.sources.base import SourceInfo
from fonds.uploads.states import ACTIVE, FAILURES, JobStatus
from fonds.web import charts
from fonds.web.admin.actions import AT, CommandParameter, admin_page, open_commands
from fonds.web.rendering import ago, query, require_operator

UNSUCCESSFUL: Final = frozenset({RunStatus.FAILED, RunStatus.PARTIAL})

router: Final = APIRouter(prefix=AT)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenProblem:
    """A problem that needs an operator."""

    summary: str
    reason: str
    href: str
    is_serious: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceTotals:
    """Totals of all sources."""

    documents: int
    healthy: int
    unsuccessful: int
    """Sources whose last run failed or was partial."""
    never_run: int
    running: int
    open_errors: int


@router.get("/")
def redirect_to_overview(request: Request) -> Response:
    """The overview, whose address has no slash at its end."""
    require_operator(request)
    return RedirectResponse(AT, HTTPStatus.PERMANENT_REDIRECT)


@router.get("")
def show_overview(request: Request, asked: CommandParameter = 0) -> Response:
    """All sources, those with problems first."""
    viewer, app = require_operator(request), app_state(request)
    now = app.now()
    with app.library.database.read() as connection:
        sources = source_insights(connection, list(app.library.sources.values()), now)
        queues = backlogs(connection, now)
        state = open_commands(connection, now, asked)
    registry = app.library.sources
    late = {each.name for each in sources if is_late(each, registry[each.name].info, now)}
    problems = [*_source_problems(sources, late, now), *_queue_problems(queues, now)]
    return admin_page(
        request,
        "overview.html",
        viewer,
        state,
        sources=sorted(sources, key=lambda each: (_rank(each, late), each.title.lower())),
        totals=_totals(sources),
        queues=queues,
        late=late,
        problems=sorted(problems, key=lambda each: not each.is_serious),
        strip=charts.strip,
        is_running=any(each.running for each in sources),
    )


def is_late(each: SourceInsight, info: SourceInfo, now: datetime) -> bool:
    """Whether a scheduled run of a source is overdue."""
    since = each.overview.last_success_at or each.overview.last_run_at
    if since is None:
        return False
    due = next_run(info, since + timedelta(seconds=1))
    return due is not None and due + MAX_DELAY < now


def _rank(each: SourceInsight, late: set[str]) -> int:
    """Sources with problems first, then running ones, then the others."""
    last = each.overview.last_status
    conditions = (
        last == RunStatus.FAILED,
        last in UNSUCCESSFUL,
        bool(each.overview.open_errors),
        each.name in late,
        each.running is not None,
        last is not None,
    )
    return next((rank for rank, is_true in enumerate(conditions) if is_true), len(conditions))


def _totals(sources: Sequence[SourceInsight]) -> SourceTotals:
    unsuccessful = sum(each.overview.last_status in UNSUCCESSFUL for each in sources)
    never_run = sum(not each.strip for each in sources)
    return SourceTotals(
        documents=sum(each.overview.documents for each in sources),
        healthy=len(sources) - unsuccessful - never_run,
        unsuccessful=unsuccessful,
        never_run=never_run,
        running=sum(each.running is not None for each in sources),
        open_errors=sum(each.overview.open_errors for each in sources),
    )


def _source_problems(
    sources: Sequence[SourceInsight], late: set[str], now: datetime
) -> Iterator[OpenProblem]:
    for each in sources:
        last, href = each.overview.last_status, f"{AT}/sources/{each.name}"
        if last in UNSUCCESSFUL:
            run = each.strip[-1]
            reason = run.error_summary or f"{run.counts.error:,} of its tasks failed"
            outcome = "failed" if last == RunStatus.FAILED else "was incomplete"
            summary = f"{each.title} {outcome} {ago(run.started_at, now)}"
            yield OpenProblem(
                summary=summary, reason=reason, href=href, is_serious=last == RunStatus.FAILED
            )
        elif each.name in late:
            summary = f"{each.title} is behind its schedule"
            reason = f"last success {ago(each.overview.last_success_at, now)}"
            yield OpenProblem(summary=summary, reason=reason, href=href, is_serious=False)


def _queue_problems(queues: Sequence[Backlog], now: datetime) -> Iterator[OpenProblem]:
    for queue in queues:
        href = f"{AT}/{queue.queue}"
        if queue.given_up:
            detail = f": {queue.causes[0].cause}" if queue.causes else ""
            summary = f"{queue.given_up:,} documents were given up in the {queue.queue} queue"
            yield OpenProblem(
                summary=summary, reason=f"all attempts failed{detail}", href=href, is_serious=False
            )
        elif (queue.oldest_seconds or 0) > MAX_QUEUE_WAIT.total_seconds():
            summary = f"The {queue.queue} queue makes no progress"
            reason = f"{queue.waiting:,} waiting, the oldest added {ago(queue.oldest_at, now)}"
            yield OpenProblem(summary=summary, reason=reason, href=href, is_serious=False)


TITLES: Final[dict[QueueName, str]] = {
    "normalization": "Texts",
    "embedding": "Vectors",
    "citations": "Citations",
}
DESCRIPTIONS: Final[dict[QueueName, str]] = {
    "normalization": "Documents whose files are not converted to text yet.",
    "embedding": "Documents whose passages have no vectors for semantic search yet.",
    "citations": "Documents whose text is not searched for citations yet.",
}
COMMANDS: Final[dict[QueueName, str]] = {
    "normalization": "fonds normalize",
    "embedding": "fonds embed",
    "citations": "fonds citations",
}


@router.get("/normalization")
def show_normalization(request: Request, asked: CommandParameter = 0) -> Response:
    """The normalization queue."""
    return _queue_page(request, "normalization", asked)


@router.get("/embedding")
def show_embedding(request: Request, asked: CommandParameter = 0) -> Response:
    """The embedding queue."""
    return _queue_page(request, "embedding", asked)


@router.get("/citations")
def show_citations(request: Request, asked: CommandParameter = 0) -> Response:
    """The citation queue."""
    return _queue_page(request, "citations", asked)


def _queue_page(request: Request, name: QueueName, command_id: int) -> Response:
    viewer, app = require_operator(request), app_state(request)
    now = app.now()
    with app.library.database.read() as connection:
        queues = backlogs(connection, now)
        work = embedding_work(connection, now) if name == "embedding" else None
        paused = sorted(open_breakers(connection, now)) if name == "embedding" else []
        state = open_commands(connection, now, command_id)
    return admin_page(
        request,
        "queue.html",
        viewer,
        state,
        name=name,
        queue=next(each for each in queues if each.queue == name),
        queues=queues,
        titles=TITLES,
        description=DESCRIPTIONS[name],
        command=COMMANDS[name],
        work=work,
        paused=paused,
        is_draining=any(each.args.get("queue") == name for each in state.pending),
    )


PAGE_SIZE: Final = 30

_Source = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]
_Before = Annotated[int, Query(ge=0, le=LAST_ID)]


@router.get("/audits")
def show_audits(
    request: Request, source: _Source = "", before: _Before = 0, asked: CommandParameter = 0
) -> Response:
    """Results of audits, newest first."""
    viewer, app = require_operator(request), app_state(request)
    with app.library.database.read() as connection:
        rows = audit.history(
            connection, source=source or None, before=before or None, limit=PAGE_SIZE + 1
        )
        state = open_commands(connection, app.now(), asked)
    more = len(rows) > PAGE_SIZE
    next_ = query({"source": source, "before": rows[PAGE_SIZE - 1].id}) if more else None
    return admin_page(
        request,
        "audits.html",
        viewer,
        state,
        audits=rows[:PAGE_SIZE],
        sources=sorted(app.library.sources),
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
    asked: CommandParameter = 0,
) -> Response:
    """Commands with their outcomes, newest first."""
    viewer, app = require_operator(request), app_state(request)
    with app.library.database.read() as connection:
        rows = commands.listing(
            connection,
            source=source or None,
            is_open={"open": True, "done": False}.get(which),
            before=before or None,
            limit=PAGE_SIZE + 1,
        )
        state = open_commands(connection, app.now(), asked)
    params = {"source": source, "which": which}
    more = len(rows) > PAGE_SIZE
    next_ = query({**params, "before": rows[PAGE_SIZE - 1].id}) if more else None
    return admin_page(
        request,
        "commands.html",
        viewer,
        state,
        commands=rows[:PAGE_SIZE],
        sources=sorted(app.library.sources),
        source=source,
        which=which,
        before=before,
        following=f"{AT}/commands?{next_}" if next_ else None,
    )


@router.get("/uploads")
def show_uploads(request: Request, asked: CommandParameter = 0) -> Response:
    """Uploads by status, and those that have waited longest."""
    viewer, app = require_operator(request), app_state(request)
    now = app.now()
    with app.library.database.read() as connection:
        work = upload_work(connection, now)
        state = open_commands(connection, now, asked)
    jobs = work.statistics.jobs
    return admin_page(
        request,
        "uploads.html",
        viewer,
        state,
        work=work,
        statistics=work.statistics,
        active=_sum(jobs, ACTIVE),
        failed=_sum(jobs, FAILURES),
        complete=jobs[JobStatus.COMPLETE],
        max_value=max(jobs.values(), default=0),
        failures=FAILURES,
        bar=charts.bar,
    )


def _sum(jobs: Mapping[JobStatus, int], statuses: Collection[JobStatus]) -> int:
    return sum(count for status, count in jobs.items() if status in statuses)


@router.get("/sites")
def show_sites(request: Request, asked: CommandParameter = 0) -> Response:
    """Websites with their crawl strategies and scores."""
    viewer, app = require_operator(request), app_state(request)
    sites = site_health(app.library)
    with app.library.database.read() as connection:
        state = open_commands(connection, app.now(), asked)
    return admin_page(
        request, "sites.html", viewer, state, sites=sites, sources=frozenset(app.library.sources)
    )


@router.get("/indexes")
def show_indexes(request: Request, asked: CommandParameter = 0) -> Response:
    """Indexes on the object store, with sizes and locks."""
    viewer, app = require_operator(request), app_state(request)
    indexes = index_health(app.library)
    with app.library.database.read() as connection:
        state = open_commands(connection, app.now(), asked)
    return admin_page(request, "indexes.html", viewer, state, indexes=indexes)

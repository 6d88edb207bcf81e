"""Runs: a list of them, and each with its stages, tasks, errors and its log as it is written.

The page of one source: where it stands, what it brought, and what can be done with it.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from fonds.api import events
from fonds.api.admin import After, Stage, cursor_of, known_run, read_cursor, source_named
from fonds.api.admin_schemas import RunId, SourceNamed
from fonds.api.dependencies import desk_of
from fonds.runs import audit, overview
from fonds.runs.overview import YIELD_DAYS
from fonds.runs.state import RunStatus
from fonds.web import charts
from fonds.web.admin.actions import AT, Asked, admin_page, standing
from fonds.web.admin.status import is_late
from fonds.web.rendering import operator_of, query

SOURCES_ON_A_PAGE: Final = 15
Cursor = Annotated[str, Query(pattern=r"^([0-9]{13}-[0-9a-f]{32})?$")]

router: Final = APIRouter(prefix=AT)


@router.get("/sources/{name}")
def show_source(
    request: Request, name: SourceNamed, cursor: Cursor = "", asked: Asked = 0
) -> Response:
    """One source, with its runs, the newest first."""
    visitor, desk = operator_of(request), desk_of(request)
    source, now = source_named(request, name), desk.now()
    before = read_cursor(cursor) if cursor else None
    with desk.library.database.read() as connection:
        detail = overview.source_detail(connection, source, now)
        runs = overview.runs(connection, source=name, before=before, limit=SOURCES_ON_A_PAGE + 1)
        errors = overview.standing_groups(connection, name)
        audited = audit.history(connection, source=name, limit=1)
        state = standing(connection, now, asked)
    return admin_page(
        request,
        "source.html",
        visitor,
        state,
        detail=detail,
        source=detail.insight,
        runs=runs[:SOURCES_ON_A_PAGE],
        following=_further(name, runs),
        cursor=cursor,
        errors=errors,
        audit=audited[0] if audited else None,
        strip=charts.strip(detail.insight.strip, now),
        speed=_speed(detail.insight.strip),
        chart=charts.by_day(detail.days, now.date(), YIELD_DAYS),
        is_late=is_late(detail.insight, source.info, now),
    )


def _further(name: str, runs: list[overview.RunInsight]) -> str | None:
    if len(runs) <= SOURCES_ON_A_PAGE:
        return None
    return f"{AT}/sources/{name}?{query({'cursor': cursor_of(runs[SOURCES_ON_A_PAGE - 1])})}#runs"


def _speed(runs: tuple[overview.RunInsight, ...]) -> dict[str, object] | None:
    """How long runs take, of which some have ended."""
    took = [run.seconds(run.finished_at) for run in runs if run.finished_at is not None]
    if len(took) < 2:  # noqa: PLR2004 — a line has two ends
        return None
    label = f"seconds that the last {len(took)} runs took: from {took[0]:,.0f} to {took[-1]:,.0f}"
    return {"picture": charts.sparkline(took, label), "last": took[-1], "most": max(took)}


ON_A_PAGE: Final = 50
TASKS: Final = 50
LINES: Final = 1000
"""Of a log; a run keeps a hundred of each cause."""

_Source = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]


@router.get("/runs")
def show_runs(
    request: Request,
    source: _Source = "",
    status: RunStatus | Literal[""] = "",
    cursor: Cursor = "",
    asked: Asked = 0,
) -> Response:
    """Runs of all sources, the newest first."""
    visitor, desk = operator_of(request), desk_of(request)
    with desk.library.database.read() as connection:
        found = overview.runs(
            connection,
            source=source or None,
            status=RunStatus(status) if status else None,
            before=read_cursor(cursor) if cursor else None,
            limit=ON_A_PAGE + 1,
        )
        state = standing(connection, desk.now(), asked)
    here = {"source": source, "status": status}
    more = len(found) > ON_A_PAGE
    next_ = query({**here, "cursor": cursor_of(found[ON_A_PAGE - 1])}) if more else None
    return admin_page(
        request,
        "runs.html",
        visitor,
        state,
        runs=found[:ON_A_PAGE],
        sources=sorted(desk.library.sources),
        statuses=list(RunStatus),
        source=source,
        wanted=status,
        cursor=cursor,
        following=f"{AT}/runs?{next_}" if next_ else None,
    )


@router.get("/runs/{run_id}")
def show_run(
    request: Request,
    run_id: RunId,
    stage: Stage | Literal[""] = "",
    after: After = 0,
    asked: Asked = 0,
) -> Response:
    """One run; `stage` and `after` choose among its tasks."""
    visitor, desk = operator_of(request), desk_of(request)
    now = desk.now()
    with desk.library.database.read() as connection:
        detail = overview.run_detail(connection, known_run(connection, run_id))
        run = detail.run
        tasks = overview.tasks(
            connection, run.id, stage=stage or None, after=after, limit=TASKS + 1
        )
        lines = overview.logs(connection, run.id, limit=LINES)
        state = standing(connection, now, asked)
    more = len(tasks) > TASKS
    next_ = query({"stage": stage, "after": tasks[TASKS - 1].id}) if more else None
    ended = run.finished_at or now
    source = desk.library.sources.get(run.source)
    return admin_page(
        request,
        "run.html",
        visitor,
        state,
        run=run,
        detail=detail,
        spans=[(each, charts.span(each, run.started_at, ended)) for each in detail.stages],
        tasks=tasks[:TASKS],
        stage=stage,
        after=after,
        following=f"{AT}/runs/{run_id}?{next_}#tasks" if next_ else None,
        lines=lines,
        most_lines=LINES,
        title=source.info.title if source else run.source,
        is_going=run.status is RunStatus.RUNNING,
        is_ending=any(each.args.get("run_id") == run_id for each in state.under_way),
    )


@router.get("/runs/{run_id}/events")
async def follow_run(
    request: Request,
    run_id: RunId,
    after: After = 0,
    last_event_id: Annotated[str, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,18}$")] = "",
) -> Response:
    """The same as it goes on, behind the lines that a page has already."""
    return await events.follow_run(request, run_id, last_event_id or str(after or ""))

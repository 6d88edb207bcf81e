"""Pages of runs, of one run with its log, and of one source."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from fonds.api import events
from fonds.api.admin import After, Stage, run_or_404, source_or_404
from fonds.api.admin_schemas import RunId, SourceName
from fonds.api.dependencies import app_state
from fonds.api.schemas import decode_cursor, encode_cursor
from fonds.runs import audit, overview
from fonds.runs.overview import YIELD_DAYS
from fonds.runs.state import RunStatus
from fonds.web import charts
from fonds.web.admin.actions import AT, CommandParameter, admin_page, open_commands
from fonds.web.admin.status import is_late
from fonds.web.rendering import query, require_operator

RUNS_PER_SOURCE: Final = 15
Cursor = Annotated[str, Query(pattern=r"^([0-9]{13}-[0-9a-f]{32})?$")]

router: Final = APIRouter(prefix=AT)


@router.get("/sources/{name}")
def show_source(
    request: Request, name: SourceName, cursor: Cursor = "", asked: CommandParameter = 0
) -> Response:
    """A source with its runs, newest first."""
    viewer, app = require_operator(request), app_state(request)
    source, now = source_or_404(request, name), app.now()
    before = decode_cursor(cursor) if cursor else None
    with app.library.database.read() as connection:
        detail = overview.source_detail(connection, source, now)
        runs = overview.runs(connection, source=name, before=before, limit=RUNS_PER_SOURCE + 1)
        errors = overview.open_error_groups(connection, name)
        audits = audit.history(connection, source=name, limit=1)
        state = open_commands(connection, now, asked)
    return admin_page(
        request,
        "source.html",
        viewer,
        state,
        detail=detail,
        source=detail.insight,
        runs=runs[:RUNS_PER_SOURCE],
        following=_next_page(name, runs),
        cursor=cursor,
        errors=errors,
        audit=audits[0] if audits else None,
        strip=charts.strip(detail.insight.strip, now),
        speed=_speed(detail.insight.strip),
        chart=charts.by_day(detail.days, now.date(), YIELD_DAYS),
        is_late=is_late(detail.insight, source.info, now),
    )


def _next_page(name: str, runs: list[overview.RunInsight]) -> str | None:
    if len(runs) <= RUNS_PER_SOURCE:
        return None
    last = runs[RUNS_PER_SOURCE - 1]
    cursor = encode_cursor(last.started_at, last.id)
    return f"{AT}/sources/{name}?{query({'cursor': cursor})}#runs"


def _speed(runs: tuple[overview.RunInsight, ...]) -> dict[str, object] | None:
    """The durations of finished runs; None for fewer than two."""
    seconds = [run.seconds(run.finished_at) for run in runs if run.finished_at is not None]
    if len(seconds) < 2:  # noqa: PLR2004 — a line has two ends
        return None
    label = f"seconds of the last {len(seconds)} runs: from {seconds[0]:,.0f} to {seconds[-1]:,.0f}"
    return {"picture": charts.sparkline(seconds, label), "last": seconds[-1]}


PAGE_SIZE: Final = 50
TASKS: Final = 50
LOG_LINES: Final = 1000

_Source = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]


@router.get("/runs")
def show_runs(
    request: Request,
    source: _Source = "",
    status: RunStatus | Literal[""] = "",
    cursor: Cursor = "",
    asked: CommandParameter = 0,
) -> Response:
    """Runs of all sources, newest first."""
    viewer, app = require_operator(request), app_state(request)
    with app.library.database.read() as connection:
        rows = overview.runs(
            connection,
            source=source or None,
            status=RunStatus(status) if status else None,
            before=decode_cursor(cursor) if cursor else None,
            limit=PAGE_SIZE + 1,
        )
        state = open_commands(connection, app.now(), asked)
    params = {"source": source, "status": status}
    next_ = None
    if len(rows) > PAGE_SIZE:
        last = rows[PAGE_SIZE - 1]
        next_ = query({**params, "cursor": encode_cursor(last.started_at, last.id)})
    return admin_page(
        request,
        "runs.html",
        viewer,
        state,
        runs=rows[:PAGE_SIZE],
        sources=sorted(app.library.sources),
        statuses=list(RunStatus),
        source=source,
        selected_status=status,
        cursor=cursor,
        following=f"{AT}/runs?{next_}" if next_ else None,
    )


@router.get("/runs/{run_id}")
def show_run(
    request: Request,
    run_id: RunId,
    stage: Stage | Literal[""] = "",
    after: After = 0,
    asked: CommandParameter = 0,
) -> Response:
    """A run; `stage` and `after` select its tasks."""
    viewer, app = require_operator(request), app_state(request)
    now = app.now()
    with app.library.database.read() as connection:
        detail = overview.run_detail(connection, run_or_404(connection, run_id))
        run = detail.run
        tasks = overview.tasks(
            connection, run.id, stage=stage or None, after=after, limit=TASKS + 1
        )
        lines = overview.logs(connection, run.id, limit=LOG_LINES)
        state = open_commands(connection, now, asked)
    more = len(tasks) > TASKS
    next_ = query({"stage": stage, "after": tasks[TASKS - 1].id}) if more else None
    ended_at = run.finished_at or now
    source = app.library.sources.get(run.source)
    return admin_page(
        request,
        "run.html",
        viewer,
        state,
        run=run,
        detail=detail,
        spans=[(each, charts.span(each, run.started_at, ended_at)) for each in detail.stages],
        tasks=tasks[:TASKS],
        stage=stage,
        after=after,
        following=f"{AT}/runs/{run_id}?{next_}#tasks" if next_ else None,
        lines=lines,
        max_lines=LOG_LINES,
        title=source.info.title if source else run.source,
        is_running=run.status is RunStatus.RUNNING,
        is_ending=any(each.args.get("run_id") == run_id for each in state.pending),
    )


@router.get("/runs/{run_id}/events")
async def follow_run(
    request: Request,
    run_id: RunId,
    after: After = 0,
    last_event_id: Annotated[str, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,18}$")] = "",
) -> Response:
    """Stream a run after the log lines that the page already has."""
    return await events.follow_run(request, run_id, last_event_id or str(after or ""))

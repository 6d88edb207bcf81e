"""The page of one source: where it stands, what it brought, and what can be done with it."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from fonds.api.admin import cursor_of, read_cursor, source_named
from fonds.api.admin_answers import SourceNamed
from fonds.api.desk import desk_of
from fonds.runs import audits, insight
from fonds.runs.insight import YIELD_DAYS
from fonds.web import charts
from fonds.web.admin.asking import AT, Asked, admin_page, standing
from fonds.web.admin.overview import is_late
from fonds.web.frame import operator_of, query

SOURCES_ON_A_PAGE: Final = 15
Cursor = Annotated[str, Query(pattern=r"^([0-9]{13}-[0-9a-f]{32})?$")]

router: Final = APIRouter(prefix=AT)


@router.get("/sources/{name}")
def show_source(
    request: Request, name: SourceNamed, cursor: Cursor = "", asked: Asked = 0
) -> Response:
    """One source, with its runs, the newest first."""
    visitor, desk = operator_of(request), desk_of(request)
    source, now = source_named(name), desk.now()
    before = read_cursor(cursor) if cursor else None
    with desk.library.database.read() as connection:
        detail = insight.source_detail(connection, source, now)
        runs = insight.runs(connection, source=name, before=before, limit=SOURCES_ON_A_PAGE + 1)
        errors = insight.standing_groups(connection, name)
        audited = audits.history(connection, source=name, limit=1)
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
        is_late=is_late(detail.insight, now),
    )


def _further(name: str, runs: list[insight.RunInsight]) -> str | None:
    if len(runs) <= SOURCES_ON_A_PAGE:
        return None
    return f"{AT}/sources/{name}?{query({'cursor': cursor_of(runs[SOURCES_ON_A_PAGE - 1])})}#runs"


def _speed(runs: tuple[insight.RunInsight, ...]) -> dict[str, object] | None:
    """How long runs take, of which some have ended."""
    took = [run.seconds(run.finished_at) for run in runs if run.finished_at is not None]
    if len(took) < 2:  # noqa: PLR2004 — a line has two ends
        return None
    label = f"seconds that the last {len(took)} runs took: from {took[0]:,.0f} to {took[-1]:,.0f}"
    return {"picture": charts.sparkline(took, label), "last": took[-1], "most": max(took)}

"""The pages of what was done: audits with what they found missing, commands with what became."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from fonds.api.admin_answers import LAST_ID
from fonds.api.desk import desk_of
from fonds.runs import audits, commands
from fonds.sources.registry import all_sources
from fonds.web.admin.asking import AT, Asked, admin_page, standing
from fonds.web.frame import operator_of, query

ON_A_PAGE: Final = 30

_Source = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]
_Before = Annotated[int, Query(ge=0, le=LAST_ID)]

router: Final = APIRouter(prefix=AT)


@router.get("/audits")
def show_audits(
    request: Request, source: _Source = "", before: _Before = 0, asked: Asked = 0
) -> Response:
    """What audits found, the newest first."""
    visitor, desk = operator_of(request), desk_of(request)
    with desk.library.database.read() as connection:
        found = audits.history(
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
        sources=sorted(all_sources()),
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
        sources=sorted(all_sources()),
        source=source,
        which=which,
        before=before,
        following=f"{AT}/commands?{next_}" if next_ else None,
    )

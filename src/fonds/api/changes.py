"""What changed, over HTTP: in the order in which it was seen."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse

from fonds.api.answers import BEARER_OR_NOBODY, LONGEST_ID, PLAIN_PATTERN, problems
from fonds.api.desk import desk_of
from fonds.api.reading_answers import ChangesAnswer
from fonds.catalog.changes import MOST_CHANGES, Change, Wanted, changes
from fonds.search.filters import source_named
from fonds.stores.columns import format_timestamp

_Text = Annotated[str, Query(min_length=1, max_length=LONGEST_ID, pattern=PLAIN_PATTERN)]
_Since = Annotated[
    date | datetime,
    Query(description="A day, or a moment with its zone.", examples=["2026-01-31"]),
]
_Cursor = Annotated[
    str,
    Query(
        min_length=1,
        max_length=LONGEST_ID + 30,
        pattern=PLAIN_PATTERN,
        description="`next_cursor` of the page before.",
    ),
]

router: Final = APIRouter(prefix="/api", tags=["changes"])


@router.get(
    "/changes",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": ChangesAnswer}, **problems(401, 422, 503)},
)
def get_changes(
    request: Request,
    since: _Since,
    *,
    source: _Text | None = None,
    under: _Text | None = None,
    order: Literal["oldest", "newest"] = "oldest",
    reprints: Annotated[
        bool, Query(description="With sections that only came again, in another edition.")
    ] = False,
    cursor: _Cursor | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_CHANGES)] = 100,
) -> JSONResponse:
    """What was added, changed and withdrawn; a page may be short and not the last."""
    desk = desk_of(request)
    wanted = Wanted(
        since=_moment(since),
        source=source and source_named(source),
        under=under,
        owner=desk.owner(request),
        newest_first=order == "newest",
        reprints=reprints,
    )
    found = changes(desk.library.database, wanted, limit=limit, cursor=cursor)
    return JSONResponse(
        {"changes": [_change(one) for one in found.items], "next_cursor": found.next_cursor}
    )


def _moment(since: date | datetime) -> datetime:
    """A moment without a zone is one of UTC, as all of ours are."""
    if not isinstance(since, datetime):
        return datetime.combine(since, time(), UTC)
    return since if since.tzinfo else since.replace(tzinfo=UTC)


def _change(change: Change) -> dict[str, Any]:
    return {**asdict(change), "at": format_timestamp(change.at)}

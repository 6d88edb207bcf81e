"""What changed: added, changed and withdrawn documents, the newest first."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from fonds.api.desk import desk_of
from fonds.catalog.changes import Wanted, changes
from fonds.catalog.shelves import sources_held
from fonds.web.frame import page, query, visitor_of

CHANGES_ON_A_PAGE: Final = 50

_Text = Annotated[str, Query(max_length=1000)]

router: Final = APIRouter()


@router.get("/changes")
def show_changes(
    request: Request, source: _Text = "", under: _Text = "", cursor: _Text = ""
) -> Response:
    """A page of changes."""
    visitor, database = visitor_of(request), desk_of(request).library.database
    wanted = Wanted(
        source=source or None, under=under or None, owner=visitor.user_id, newest_first=True
    )
    found = changes(database, wanted, limit=CHANGES_ON_A_PAGE, cursor=cursor or None)
    here = {"source": source, "under": under}
    return page(
        request,
        "changes.html",
        visitor=visitor,
        found=found,
        source=source,
        under=under,
        held=sources_held(database, owner=visitor.user_id),
        following=f"/changes?{query({**here, 'cursor': found.next_cursor})}"
        if found.next_cursor
        else None,
    )

"""What surrounds a document, over HTTP: its citations, its versions, its editions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse

from fonds.api.answers import BEARER_OR_NOBODY, DocumentId, problems
from fonds.api.desk import desk_of
from fonds.api.reading_answers import LinksAnswer, Offset, ShapesAnswer
from fonds.catalog import editions, links
from fonds.stores.columns import format_timestamp

_LinkLimit = Annotated[int, Query(ge=1, le=links.MOST_LINKS)]

router: Final = APIRouter(prefix="/api", tags=["documents"])


@router.get(
    "/documents/{document_id:path}/links",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": LinksAnswer}, **problems(401, 404, 422, 503)},
)
def get_links(
    request: Request,
    document_id: DocumentId,
    *,
    direction: Literal["cites", "cited-by"] = "cites",
    limit: _LinkLimit = 50,
    offset: Offset = 0,
) -> JSONResponse:
    """What a document cites, in its own order; or what cites it, the newest first."""
    desk = desk_of(request)
    owner = desk.owner(request)
    row = desk.library.document(document_id, owner=owner, with_text=False)
    body: dict[str, Any] = {"id": row["id"], "direction": direction}
    asked: dict[str, Any] = {"owner": owner, "limit": limit, "offset": offset}
    if direction == "cites":
        cited = links.cites(desk.library.database, row["id"], **asked)
        body |= {"cites": [asdict(one) for one in cited.items], "next_offset": cited.next_offset}
    else:
        citing = links.cited_by(desk.library.database, row["id"], **asked)
        body |= {
            "cited_by": [asdict(one) for one in citing.items],
            "next_offset": citing.next_offset,
        }
    return JSONResponse(body)


@router.get(
    "/documents/{document_id:path}/editions",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": ShapesAnswer}, **problems(401, 404, 422, 503)},
)
def get_editions(request: Request, document_id: DocumentId) -> JSONResponse:
    """What a document said before, and the same section in other editions of a code."""
    desk = desk_of(request)
    owner = desk.owner(request)
    row = desk.library.document(document_id, owner=owner, with_text=False)
    shapes = editions.shapes(desk.library.database, row["id"], owner=owner)
    return JSONResponse(
        {
            "document": shapes.document.model_dump(mode="json"),
            "versions": [_version(one) for one in shapes.versions],
            "editions": [_document_edition(one) for one in shapes.editions],
        }
    )


def _version(version: editions.Version) -> dict[str, Any]:
    return {
        **asdict(version),
        "first_seen_at": format_timestamp(version.first_seen_at),
        "last_seen_at": format_timestamp(version.last_seen_at),
    }


def _document_edition(edition: editions.Edition) -> dict[str, Any]:
    return {
        "document": edition.document.model_dump(mode="json"),
        "has_same_words": edition.has_same_words,
        "is_asked": edition.is_asked,
    }

"""Citations over HTTP: how something is cited, what a citation leads to, and two texts compared."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse

from fonds.api.answers import BEARER_OR_NOBODY, Day, problems
from fonds.api.desk import desk_of
from fonds.api.limits import refuse_hurry
from fonds.api.reading_answers import CiteAnswer, ComparedAnswer, Name
from fonds.catalog import comparison
from fonds.catalog.citing import Style, cited_as
from fonds.codes.diff.redline import excerpt
from fonds.errors import UnknownDocumentError
from fonds.results import Resolution

_Version = Annotated[
    str | None,
    Query(
        pattern=rf"^[0-9a-fA-F]{{{comparison.SHORTEST_VERSION},64}}$",
        description="Beginning of the `content_sha256` of an earlier version.",
    ),
]

citations_router: Final = APIRouter(prefix="/api", tags=["citations"])


@citations_router.get(
    "/cite",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": CiteAnswer}, **problems(401, 404, 422, 503)},
)
def cite(
    request: Request,
    name: Annotated[Name, Query(alias="id")],
    style: Style = "bluebook",
) -> JSONResponse:
    """How a document is cited, or a passage of it: `fr:2026-00101#3`."""
    desk = desk_of(request)
    owner = desk.owner(request)
    resolution = desk.library.resolve(name, owner=owner)
    if resolution.document is None:
        raise UnknownDocumentError(resolution.message)
    row = desk.library.document(resolution.document.id, owner=owner, with_text=False)
    return JSONResponse(
        {
            "id": row["id"],
            "style": style,
            "citation": cited_as(row, style),
            "passage": resolution.passage,
            "locator": resolution.locator and resolution.locator.model_dump(mode="json"),
            "document": {
                "citation_string": row["citation_string"],
                "title": row["title"],
                "organization": row["source_org"],
                "url": row["source_url"],
                "published_at": row["published_at"],
            },
        }
    )


@citations_router.get(
    "/resolve",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": Resolution}, **problems(401, 422, 503)},
)
def resolve(
    request: Request,
    citation: Name,
    as_of: Annotated[Day, Query(description="Of several editions, the one of that day.")] = None,
) -> JSONResponse:
    """What a citation leads to, or why it leads nowhere."""
    desk = desk_of(request)
    found = desk.library.resolve(citation, as_of=as_of, owner=desk.owner(request))
    return JSONResponse(found.model_dump(mode="json"))


@citations_router.get(
    "/compare",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": ComparedAnswer}, **problems(401, 404, 422, 429, 503)},
)
def compare(
    request: Request,
    before: Annotated[Name, Query(alias="from")],
    after: Annotated[Name, Query(alias="to")],
    *,
    from_version: _Version = None,
    to_version: _Version = None,
    whole: Annotated[bool, Query(description="With all that is unchanged.")] = False,
) -> JSONResponse:
    """The words that were deleted and inserted between two documents, or versions of one."""
    refuse_hurry(request, "search")
    desk = desk_of(request)
    owner = desk.owner(request)
    old, new = (
        desk.library.document(name, owner=owner, with_text=False)["id"] for name in (before, after)
    )
    found = comparison.compare(
        desk.shelf,
        comparison.Name(id=old, version=from_version),
        comparison.Name(id=new, version=to_version),
        owner=owner,
    )
    shown = list(found.redline.shown() if whole else excerpt(found.redline))
    return JSONResponse(
        {
            "before": _side(found.before),
            "after": _side(found.after),
            "is_changed": found.redline.is_change,
            "redline": [{"op": op, "text": text} for op, text in shown],
        }
    )


def _side(side: comparison.Side) -> dict[str, Any]:
    return {"document": side.document.model_dump(mode="json"), "version": side.version}

"""Documents over HTTP: found, read, cited, and the raw files they were made from.

What surrounds a document, over HTTP: its citations, its versions, its editions.

Citations over HTTP: how something is cited, what a citation leads to, and two texts compared.

Codes over HTTP: from the codes that are held down to a section, one level at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from fonds import ids
from fonds.api.dependencies import desk_of, refuse_hurry
from fonds.api.middleware import UNCHANGED, answered, etag_of
from fonds.api.schemas import (
    BEARER_OR_NOBODY,
    LONGEST_ID,
    PLAIN_PATTERN,
    CiteAnswer,
    CodePath,
    CodesAnswer,
    ComparedAnswer,
    Day,
    DocumentAnswer,
    DocumentId,
    FacetedAnswer,
    LinksAnswer,
    Name,
    Offset,
    PlaceAnswer,
    ShapesAnswer,
    problems,
)
from fonds.catalog import codes, links, versions
from fonds.catalog.codes import EditionHeld
from fonds.citations.export import Style, cited_as
from fonds.codes.diff.redline import excerpt
from fonds.errors import UnknownDocumentError
from fonds.results import Resolution
from fonds.search.filters import UPLOADS, Filters, require_source
from fonds.search.retrieve import MOST_RESULTS as RANKED
from fonds.stores.columns import format_timestamp

MOST_RESULTS: Final = 50
LONGEST_QUERY: Final = 2000
_FURTHEST: Final = RANKED - MOST_RESULTS - 1

_Name = Annotated[str, Query(min_length=1, max_length=LONGEST_ID, pattern=PLAIN_PATTERN)]
_Names = Annotated[list[_Name], Query(max_length=50)]
_Year = Annotated[int, Query(ge=1, le=9999)]
_Query = Annotated[
    str,
    Query(
        min_length=1,
        max_length=LONGEST_QUERY,
        pattern=r"^[^\x00]*$",
        description="As for `fonds search`.",
        examples=["overtime salary threshold"],
    ),
]

router: Final = APIRouter(prefix="/api", tags=["documents"])


@router.get(
    "/search",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": FacetedAnswer}, **problems(401, 422, 429, 503)},
)
def search(
    request: Request,
    q: _Query,
    *,
    source: _Names = [],  # noqa: B006 — never changed
    kind: _Names = [],  # noqa: B006 — as above
    organization: _Names = [],  # noqa: B006 — as above
    since: Annotated[Day, Query(description="First day of publication.")] = None,
    until: Annotated[Day, Query(description="Last day of publication.")] = None,
    year: Annotated[list[_Year], Query(max_length=50, description="Of publication.")] = [],  # noqa: B006 — as above
    jurisdiction: _Names = [],  # noqa: B006 — as above
    under: _Name | None = None,
    edition: _Name | None = None,
    mode: Literal["hybrid", "lexical", "semantic"] | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_RESULTS)] = 10,
    offset: Annotated[int, Query(ge=0, le=_FURTHEST)] = 0,
    facets: Annotated[bool, Query(description="With counts over the best documents.")] = False,
) -> JSONResponse:
    """The best passages for a question, of what is public and what you have uploaded."""
    refuse_hurry(request, "search")
    desk = desk_of(request)
    filters = Filters(
        sources=[require_source(name, desk.library.sources) for name in source],
        kinds=kind,
        organizations=organization,
        since=since,
        until=until,
        years=year,
        jurisdictions=jurisdiction,
        under=under,
        edition=edition,
        owner=desk.owner(request),
    )
    found = desk.library.look(q, filters, mode=mode, limit=limit + 1, offset=offset)
    body: dict[str, Any] = {
        "results": [hit.model_dump(mode="json") for hit in found.results[:limit]],
        "next_offset": offset + limit if len(found.results) > limit else None,
    }
    return JSONResponse({**body, "facets": found.facets.model_dump()} if facets else body)


@router.get(
    "/documents/{document_id:path}/raw",
    status_code=307,
    openapi_extra=BEARER_OR_NOBODY,
    responses={
        307: {"description": "The file is there, for five minutes."},
        **problems(401, 404, 422, 503),
    },
)
def get_raw(request: Request, document_id: DocumentId) -> RedirectResponse:
    """The file that a document was made from."""
    desk = desk_of(request)
    row = desk.library.document(document_id, owner=desk.owner(request))
    key, filename = _raw(row)
    signed = desk.signed(request, "GET", key, filename=filename)
    return RedirectResponse(signed["url"])


_HASHES: Final = ("raw_sha256", "body_raw_sha256", "body_text_sha256", "content_sha256")


_LinkLimit = Annotated[int, Query(ge=1, le=links.MOST_LINKS)]


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
    shapes = versions.shapes(desk.library.database, row["id"], owner=owner)
    return JSONResponse(
        {
            "document": shapes.document.model_dump(mode="json"),
            "versions": [_version(one) for one in shapes.versions],
            "editions": [_document_edition(one) for one in shapes.editions],
        }
    )


def _version(version: versions.DocumentVersion) -> dict[str, Any]:
    return {
        **asdict(version),
        "first_seen_at": format_timestamp(version.first_seen_at),
        "last_seen_at": format_timestamp(version.last_seen_at),
    }


def _document_edition(edition: versions.SectionEdition) -> dict[str, Any]:
    return {
        "document": edition.document.model_dump(mode="json"),
        "has_same_words": edition.has_same_words,
        "is_asked": edition.is_asked,
    }


_Version = Annotated[
    str | None,
    Query(
        pattern=rf"^[0-9a-fA-F]{{{versions.SHORTEST_VERSION},64}}$",
        description="Beginning of the `content_sha256` of an earlier version.",
    ),
]


# An id may contain slashes: the routes below a document come before the document itself.
@router.get(
    "/documents/{document_id:path}",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": DocumentAnswer}, 304: UNCHANGED, **problems(401, 404, 422, 503)},
)
def get_document(
    request: Request,
    document_id: DocumentId,
    text: Annotated[bool, Query(description="With its text, as Markdown.")] = False,  # noqa: FBT002 — a flag of the query
) -> Response:
    """A document: how to cite it, and what it was made from."""
    desk = desk_of(request)
    row = desk.library.document(document_id, owner=desk.owner(request), with_text=text)
    body = _document(row)
    tag = etag_of(body, row["body_text_sha256"] if text else None)
    return answered(
        request, tag, lambda: JSONResponse({**body, "text": row["body_text"]} if text else body)
    )


def _raw(row: Mapping[str, Any]) -> tuple[str, str | None]:
    """The key of the file, and what to call it."""
    if row["source"] == UPLOADS:
        return row["raw_path"], row["title"]  # the text may be from what a parser made of it
    return row["body_raw_path"] or row["raw_path"], None


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    at = f"/api/documents/{row['id']}"
    return {
        **{name: row[name] for name in ("id", "source", "kind", "title", "summary")},
        "is_own": row["owner"] is not None,
        "gone_at": row["gone_at"] and format_timestamp(row["gone_at"]),
        "updated_at": format_timestamp(row["updated_at"]),
        "citation": {
            "citation_string": row["citation_string"],
            "title": row["title"],
            "organization": row["source_org"],
            "url": row["source_url"],
            "published_at": row["published_at"],
        },
        "provenance": {
            "source_url": row["source_url"],
            "source_org": row["source_org"],
            "retrieved_at": format_timestamp(row["retrieved_at"]),
            **{name: row[name] for name in _HASHES},
            "normalizer": row["body_normalizer_version"],
        },
        "links": {
            "self": at,
            **{name: f"{at}/{name}" for name in ("raw", "links", "editions")},
        },
    }


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
            "citation": cited_as(row, style, desk.library.sources.csl_type(row)),
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
    found = versions.compare(
        desk.context,
        versions.VersionName(id=old, version=from_version),
        versions.VersionName(id=new, version=to_version),
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


def _side(side: versions.ComparedText) -> dict[str, Any]:
    return {"document": side.document.model_dump(mode="json"), "version": side.version}


_ChildLimit = Annotated[int, Query(ge=1, le=codes.MOST_CHILDREN)]

codes_router: Final = APIRouter(prefix="/api", tags=["codes"])


@codes_router.get("/codes", responses={200: {"model": CodesAnswer}, **problems(503)})
def list_codes(request: Request) -> JSONResponse:
    """The codes that are held, and their editions."""
    library = desk_of(request).library
    found = codes.codes(library.database, library.sources)
    return JSONResponse({"codes": [_code(one) for one in found]})


@codes_router.get(
    "/codes/{path:path}",
    responses={200: {"model": PlaceAnswer}, **problems(404, 422, 503)},
)
def get_place(
    request: Request,
    path: CodePath,
    *,
    limit: _ChildLimit = 100,
    offset: Offset = 0,
) -> JSONResponse:
    """What stands at a path of a code, and a page of what stands below; texts are documents."""
    library = desk_of(request).library
    name, _, below = path.strip("/").partition("/")
    if not below:
        return JSONResponse(_of_code(codes.code(library.database, library.sources, name)))
    return JSONResponse(_of_place(codes.place(library.database, path, limit=limit, offset=offset)))


def _of_code(code: codes.Code) -> dict[str, Any]:
    links = {"self": f"/api/codes/{code.name}", "changes": f"/feeds/{code.name}.atom"}
    return {"code": _code(code), "node": None, "links": links}


def _of_place(place: codes.CodePosition) -> dict[str, Any]:
    root = ids.tree_root(place.source, place.version)
    at = place.node.id if place.node else root
    links = {"self": f"/api/codes/{at}", "changes": f"/feeds/c/{at}.atom"}
    if place.node and place.node.is_leaf:
        links["document"] = f"/api/documents/{at}"
    return {
        "node": place.node and asdict(place.node),
        "above": [asdict(one) for one in place.above],
        "children": [asdict(one) for one in place.children.items],
        "total_children": place.children.total,
        "next_offset": place.children.next_offset,
        "previous": place.previous and asdict(place.previous),
        "next": place.next and asdict(place.next),
        "links": links,
    }


def _code(code: codes.Code) -> dict[str, Any]:
    return {
        "id": code.name,
        "title": code.title,
        "jurisdiction": code.jurisdiction,
        "unit": code.unit,
        "language": code.language,
        "editions": [_code_edition(one) for one in code.editions],
    }


def _code_edition(one: EditionHeld) -> dict[str, Any]:
    return {
        "id": ids.tree_root(one.source, one.version).removesuffix("/root"),
        "version": one.version,
        "units": one.units,
        "complete": one.complete,
        "sections": one.sections,
        "is_newest": one.is_newest,
    }

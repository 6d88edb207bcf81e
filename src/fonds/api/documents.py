"""Routes for documents: search, text, raw files, links, versions, citations, comparison, codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, RedirectResponse, Response

from fonds import ids
from fonds.api.dependencies import app_state, limit_searches
from fonds.api.middleware import UNCHANGED, conditional_response, etag_of
from fonds.api.readings import reading_queue
from fonds.api.schemas import (
    MAX_ID_LENGTH,
    OPTIONAL_BEARER,
    TEXT_PATTERN,
    CiteResponse,
    CodePath,
    CodesResponse,
    ComparedResponse,
    Day,
    DocumentId,
    DocumentResponse,
    FacetedResponse,
    LinksResponse,
    Name,
    NodePageResponse,
    Offset,
    ShapesResponse,
    problems,
    returns,
)
from fonds.catalog import codes, links, versions
from fonds.catalog.codes import StoredEdition
from fonds.citations.export import Style, cited_as
from fonds.errors import UnknownDocumentError
from fonds.results import Citation, Reading, Resolution
from fonds.search.filters import UPLOADS, Filters, require_source
from fonds.search.retrieve import MAX_PER_DOCUMENT, PER_DOCUMENT
from fonds.search.retrieve import MAX_RESULTS as MAX_RANKED
from fonds.stores.columns import format_timestamp

MAX_RESULTS: Final = 50
MAX_QUERY_LENGTH: Final = 2000
_MAX_OFFSET: Final = MAX_RANKED - MAX_RESULTS - 1

_Name = Annotated[str, Query(min_length=1, max_length=MAX_ID_LENGTH, pattern=TEXT_PATTERN)]
_Names = Annotated[list[_Name], Query(max_length=50)]
_Year = Annotated[int, Query(ge=1, le=9999)]
_Query = Annotated[
    str,
    Query(
        min_length=1,
        max_length=MAX_QUERY_LENGTH,
        pattern=r"^[^\x00]*$",
        description="As for `fonds search`.",
        examples=["overtime salary threshold"],
    ),
]

router: Final = APIRouter(prefix="/api", tags=["documents"])


@router.get("/search", **returns(FacetedResponse, 401, 422, 429, 503))
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
    document: Annotated[
        _Name | None, Query(description="Search inside this document: each result is a passage.")
    ] = None,
    mode: Literal["hybrid", "lexical", "semantic"] | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_RESULTS)] = 10,
    offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET)] = 0,
    per_document: Annotated[
        int, Query(ge=1, le=MAX_PER_DOCUMENT, description="Passages of a document, at most.")
    ] = PER_DOCUMENT,
    facets: Annotated[bool, Query(description="Include counts over the best documents.")] = False,
) -> JSONResponse:
    """Search public documents and your uploads; returns the best documents and passages."""
    limit_searches(request)
    app = app_state(request)
    filters = Filters(
        sources=[require_source(name, app.library.sources) for name in source],
        kinds=kind,
        organizations=organization,
        since=since,
        until=until,
        years=year,
        jurisdictions=jurisdiction,
        under=under,
        edition=edition,
        document=document,
        owner=app.owner(request),
    )
    page = app.library.look(
        q, filters, mode=mode, limit=limit + 1, offset=offset, per_document=per_document
    )
    content: dict[str, Any] = {
        "results": [hit.model_dump(mode="json") for hit in page.results[:limit]],
        "next_offset": offset + limit if len(page.results) > limit else None,
    }
    return JSONResponse({**content, "facets": page.facets.model_dump()} if facets else content)


@router.get(
    "/documents/{document_id:path}/raw",
    status_code=307,
    openapi_extra=OPTIONAL_BEARER,
    responses={
        307: {"description": "The address of the file, valid for five minutes."},
        **problems(401, 404, 422, 503),
    },
)
def get_raw(request: Request, document_id: DocumentId) -> RedirectResponse:
    """Download the original file of a document."""
    app = app_state(request)
    row = app.library.document(document_id, owner=app.owner(request))
    key, filename = _raw(row)
    if not key:
        raise UnknownDocumentError(
            f"the file of {row['id']} is not here: a bundle without files brought the document"
        )
    signed = app.signed(request, "GET", key, filename=filename)
    return RedirectResponse(signed["url"])


_HASHES: Final = ("raw_sha256", "body_raw_sha256", "body_text_sha256", "content_sha256")


_LinkLimit = Annotated[int, Query(ge=1, le=links.MAX_LINKS)]


@router.get("/documents/{document_id:path}/links", **returns(LinksResponse, 401, 404, 422, 503))
def get_links(
    request: Request,
    document_id: DocumentId,
    *,
    direction: Literal["cites", "cited-by"] = "cites",
    limit: _LinkLimit = 50,
    offset: Offset = 0,
) -> JSONResponse:
    """The citations in a document in its order, or the documents that cite it, newest first."""
    app = app_state(request)
    owner = app.owner(request)
    row = app.library.document(document_id, owner=owner, with_text=False)
    content: dict[str, Any] = {"id": row["id"], "direction": direction}
    options: dict[str, Any] = {"owner": owner, "limit": limit, "offset": offset}
    if direction == "cites":
        cited = links.cites(app.library.database, row["id"], **options)
        content |= {
            "cites": [asdict(link) for link in cited.items],
            "next_offset": cited.next_offset,
        }
    else:
        citing = links.cited_by(app.library.database, row["id"], **options)
        content |= {
            "cited_by": [asdict(link) for link in citing.items],
            "next_offset": citing.next_offset,
        }
    return JSONResponse(content)


@router.get("/documents/{document_id:path}/editions", **returns(ShapesResponse, 401, 404, 422, 503))
def get_editions(request: Request, document_id: DocumentId) -> JSONResponse:
    """Earlier versions of a document, and the same section in other editions of a code."""
    app = app_state(request)
    owner = app.owner(request)
    row = app.library.document(document_id, owner=owner, with_text=False)
    shapes = versions.shapes(app.library.database, row["id"], owner=owner)
    return JSONResponse(
        {
            "document": shapes.document.model_dump(mode="json"),
            "versions": [_version(version) for version in shapes.versions],
            "editions": [_document_edition(edition) for edition in shapes.editions],
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
        pattern=rf"^[0-9a-fA-F]{{{versions.MIN_HASH_LENGTH},64}}$",
        description="A prefix of the `content_sha256` of an earlier version.",
    ),
]


# Ids may contain slashes, so routes below a document must precede the document itself.
@router.get(
    "/documents/{document_id:path}",
    openapi_extra=OPTIONAL_BEARER,
    responses={200: {"model": DocumentResponse}, 304: UNCHANGED, **problems(401, 404, 422, 503)},
)
def get_document(
    request: Request,
    document_id: DocumentId,
    text: Annotated[bool, Query(description="Include its text, as Markdown.")] = False,  # noqa: FBT002 — a flag of the query
) -> Response:
    """A document with its citation and provenance."""
    app = app_state(request)
    row = app.library.document(document_id, owner=app.owner(request), with_text=text)
    content = _document(row)
    tag = etag_of(content, row["body_text_sha256"] if text else None)
    return conditional_response(
        request,
        tag,
        lambda: JSONResponse({**content, "text": row["body_text"]} if text else content),
    )


def _raw(row: Mapping[str, Any]) -> tuple[str, str | None]:
    """The blob key of the original file, and its file name."""
    if row["source"] == UPLOADS:
        return row["raw_path"], row["file_name"]  # its body may be the output of a parser
    return row["body_raw_path"] or row["raw_path"], None


def _reading(row: Mapping[str, Any]) -> dict[str, Any] | None:
    return (
        Reading.model_validate(row["reading"]).model_dump(mode="json") if row["reading"] else None
    )


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    at = f"/api/documents/{row['id']}"
    return {
        **{name: row[name] for name in ("id", "source", "kind", "title", "file_name", "summary")},
        "is_own": row["owner"] is not None,
        "gone_at": row["gone_at"] and format_timestamp(row["gone_at"]),
        "updated_at": format_timestamp(row["updated_at"]),
        "citation": Citation.of(row).model_dump(mode="json"),
        "reading": _reading(row),
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


@citations_router.get("/cite", **returns(CiteResponse, 401, 404, 422, 503))
def cite(
    request: Request,
    name: Annotated[Name, Query(alias="id")],
    style: Style = "bluebook",
) -> JSONResponse:
    """The citation of a document or of one of its passages, such as `fr:2026-00101#3`."""
    app = app_state(request)
    owner = app.owner(request)
    resolution = app.library.resolve(name, owner=owner)
    if resolution.document is None:
        raise UnknownDocumentError(resolution.message)
    row = app.library.document(resolution.document.id, owner=owner, with_text=False)
    return JSONResponse(
        {
            "id": row["id"],
            "style": style,
            "citation": cited_as(row, style, app.library.sources.csl_type(row)),
            "passage": resolution.passage,
            "locator": resolution.locator and resolution.locator.model_dump(mode="json"),
            "document": Citation.of(row).model_dump(mode="json"),
        }
    )


@citations_router.get("/resolve", **returns(Resolution, 401, 422, 503))
def resolve(
    request: Request,
    citation: Name,
    as_of: Annotated[
        Day, Query(description="Of several editions, the one in force on that day.")
    ] = None,
) -> JSONResponse:
    """The document that a citation refers to, or why there is none."""
    app = app_state(request)
    resolution = app.library.resolve(citation, as_of=as_of, owner=app.owner(request))
    return JSONResponse(resolution.model_dump(mode="json"))


@citations_router.get("/compare", **returns(ComparedResponse, 401, 404, 422, 429, 503))
async def compare(
    request: Request,
    before: Annotated[Name, Query(alias="from")],
    after: Annotated[Name, Query(alias="to")],
    *,
    from_version: _Version = None,
    to_version: _Version = None,
    whole: Annotated[bool, Query(description="Include all unchanged text.")] = False,
) -> JSONResponse:
    """Words deleted and inserted between two documents, or between versions of edition."""
    limit_searches(request)
    app = app_state(request)

    def authorize() -> tuple[UUID | None, str, str]:
        owner = app.owner(request)
        names = (before, after)
        old, new = (app.library.document(name, owner=owner, with_text=False) for name in names)
        return owner, old["id"], new["id"]

    owner, old, new = await run_in_threadpool(authorize)
    work = partial(
        versions.compare,
        app.context,
        versions.VersionName(id=old, version=from_version),
        versions.VersionName(id=new, version=to_version),
        owner=owner,
        is_whole=whole,
    )
    comparison = await reading_queue(request).run(request, work, user=owner)
    return JSONResponse(
        {
            "before": _side(comparison.before),
            "after": _side(comparison.after),
            "is_changed": comparison.is_changed,
            "redline": [{"op": op, "text": text} for op, text in comparison.passages],
        }
    )


def _side(side: versions.ComparedText) -> dict[str, Any]:
    return {"document": side.document.model_dump(mode="json"), "version": side.version}


_ChildLimit = Annotated[int, Query(ge=1, le=codes.MAX_CHILDREN)]

codes_router: Final = APIRouter(prefix="/api", tags=["codes"])


@codes_router.get("/codes", responses={200: {"model": CodesResponse}, **problems(503)})
def list_codes(request: Request) -> JSONResponse:
    """The codes in the library with their editions."""
    library = app_state(request).library
    all_codes = codes.codes(library.database, library.sources)
    return JSONResponse({"codes": [_code(code) for code in all_codes]})


@codes_router.get(
    "/codes/{path:path}",
    responses={200: {"model": NodePageResponse}, **problems(404, 422, 503)},
)
def get_node(
    request: Request,
    path: CodePath,
    *,
    limit: _ChildLimit = 100,
    offset: Offset = 0,
) -> JSONResponse:
    """The node at a path of a code and a page of its children; leaves are documents."""
    library = app_state(request).library
    name, _, below = path.strip("/").partition("/")
    if not below:
        return JSONResponse(_code_root(codes.code(library.database, library.sources, name)))
    return JSONResponse(
        _code_position(codes.code_position(library.database, path, limit=limit, offset=offset))
    )


def _code_root(code: codes.Code) -> dict[str, Any]:
    links = {"self": f"/api/codes/{code.name}", "changes": f"/feeds/{code.name}.atom"}
    return {"code": _code(code), "node": None, "links": links}


def _code_position(position: codes.CodePosition) -> dict[str, Any]:
    root = ids.tree_root(position.source, position.version)
    at = position.node.id if position.node else root
    links = {"self": f"/api/codes/{at}", "changes": f"/feeds/c/{at}.atom"}
    if position.node and position.node.is_leaf:
        links["document"] = f"/api/documents/{at}"
    return {
        "node": position.node and asdict(position.node),
        "above": [asdict(node) for node in position.above],
        "children": [asdict(node) for node in position.children.items],
        "total_children": position.children.total,
        "next_offset": position.children.next_offset,
        "previous": position.previous and asdict(position.previous),
        "next": position.next and asdict(position.next),
        "links": links,
    }


def _code(code: codes.Code) -> dict[str, Any]:
    return {
        "id": code.name,
        "title": code.title,
        "jurisdiction": code.jurisdiction,
        "unit": code.unit,
        "language": code.language,
        "editions": [_code_edition(edition) for edition in code.editions],
    }


def _code_edition(edition: StoredEdition) -> dict[str, Any]:
    return {
        "id": ids.tree_root(edition.source, edition.version).removesuffix("/root"),
        "version": edition.version,
        "units": edition.units,
        "complete": edition.complete,
        "sections": edition.sections,
        "is_newest": edition.is_newest,
    }

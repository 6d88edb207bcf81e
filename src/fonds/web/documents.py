"""Pages of documents: text, citations, links and verification; code browser and comparison."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from fonds.api.dependencies import app_state, limit_searches
from fonds.api.readings import MAX_BYTES, reading_queue
from fonds.api.schemas import DocumentId
from fonds.catalog.bills import bill
from fonds.catalog.codes import code, code_position, codes
from fonds.catalog.links import cited_by, cites
from fonds.catalog.members import member, sponsored, statements, votes_cast
from fonds.catalog.versions import VersionName, compare, shapes
from fonds.citations.export import cited_as
from fonds.codes.diff.redline import ChangedPassage, Op
from fonds.library import Library
from fonds.results import Reading
from fonds.stores.database import Database
from fonds.web.document_html import RenderedSection, UnrenderedError
from fonds.web.rendering import PageCache, Viewer, at, page, texts_of, viewer_of

LINKS: Final = 12
"""Links of each kind next to a text."""
ALL_LINKS: Final = 100
"""Links on their own page."""

_TEXT_MARK: Final = "<!--text-->"
_MAX_NUMBER: Final = 2**31 - 1
_BILL, _MEMBER = "bill", "legislator"
_Number = Annotated[int, Query(ge=0, le=_MAX_NUMBER)]

router: Final = APIRouter()


@dataclass(frozen=True, kw_only=True, slots=True)
class _PartRequest:
    """The requested part of a document and the offsets in its lists."""

    id: str
    part: int
    passage: int | None
    actions: int
    bills: int
    votes: int
    statements: int


@router.get("/d/{document_id:path}")
async def show_document(
    request: Request,
    document_id: DocumentId,
    *,
    part: _Number = 1,
    passage: _Number | None = None,
    actions: _Number = 0,
    bills: _Number = 0,
    votes: _Number = 0,
    said: _Number = 0,
) -> Response:
    """A document, or the part of it that contains a passage."""
    requested = _PartRequest(
        id=document_id,
        part=part,
        passage=passage,
        actions=actions,
        bills=bills,
        votes=votes,
        statements=said,
    )
    try:
        return await run_in_threadpool(_show, request, requested)
    except UnrenderedError as unrendered:
        render = partial(texts_of(request).render, unrendered)
        owner = unrendered.document["owner"]
        rendered = await reading_queue(request).run(request, render, user=owner)
        return await run_in_threadpool(_show, request, requested, rendered)


def _show(
    request: Request, requested: _PartRequest, rendered: RenderedSection | None = None
) -> Response:
    """The page; UnrenderedError unless the text is rendered."""
    viewer = viewer_of(request)
    make = partial(_document_page, request, viewer, requested, rendered)
    # The page then contains a form key, or an upload, which may be deleted.
    if viewer.is_logged_in or viewer.user_id is not None:
        return make()
    cache: PageCache = request.app.state.page_cache
    return cache.get((requested, viewer.user_id, viewer.is_operator), make)


def _document_page(
    request: Request,
    viewer: Viewer,
    requested: _PartRequest,
    rendered: RenderedSection | None,
) -> Response:
    library, texts = app_state(request).library, texts_of(request)
    document = library.document(requested.id, owner=viewer.user_id, with_text=False)
    if document["id"] != requested.id:
        return RedirectResponse(at(document["id"]))
    if rendered is None:
        is_of_passage = requested.passage is not None
        part = texts.part_of(document, requested.passage or 0) if is_of_passage else requested.part
        rendered = texts.part(document, part)
    response = page(
        request,
        _template(document),
        viewer=viewer,
        document=document,
        part=rendered,
        place=_TEXT_MARK,
        **_common(library, document, viewer),
        **_details(library.database, document, viewer, requested),
    )
    return _with_text(response, rendered.html if rendered else b"")


@router.get("/links/{document_id:path}")
def show_links(
    request: Request, document_id: DocumentId, cites_from: _Number = 0, cited_from: _Number = 0
) -> Response:
    """All citations in a document, and all documents that cite it."""
    viewer, library = viewer_of(request), app_state(request).library
    document = library.document(document_id, owner=viewer.user_id, with_text=False)
    options: dict[str, Any] = {"owner": viewer.user_id, "limit": ALL_LINKS}
    return page(
        request,
        "links.html",
        viewer=viewer,
        document=document,
        cites=cites(library.database, document["id"], offset=cites_from, **options),
        cited_by=cited_by(library.database, document["id"], offset=cited_from, **options),
        cites_from=cites_from,
        cited_from=cited_from,
    )


@router.get("/verify/{document_id:path}")
async def verify(request: Request, document_id: DocumentId) -> Response:
    """The verification of a document against the archived bytes."""
    limit_searches(request)
    viewer, document = await run_in_threadpool(_visible_document, request, document_id)
    library = app_state(request).library
    check = partial(library.verify, document["id"], owner=viewer.user_id, max_bytes=MAX_BYTES)
    verification = await reading_queue(request).run(request, check, user=viewer.user_id)
    return await run_in_threadpool(
        page, request, "verify.html", viewer=viewer, document=document, verification=verification
    )


def _visible_document(request: Request, document_id: str) -> tuple[Viewer, dict[str, Any]]:
    viewer, library = viewer_of(request), app_state(request).library
    return viewer, library.document(document_id, owner=viewer.user_id, with_text=False)


def _template(document: Mapping[str, Any]) -> str:
    prefix = document["id"].partition(":")[0]
    if prefix == _BILL and "/" not in document["id"]:
        return "bill.html"
    return "member.html" if prefix == _MEMBER else "document.html"


def _common(library: Library, document: Mapping[str, Any], viewer: Viewer) -> dict[str, Any]:
    """Template values for every document."""
    database, name, csl = library.database, document["id"], library.sources.csl_type(document)
    options: dict[str, Any] = {"owner": viewer.user_id, "limit": LINKS}
    return {
        "citations": {
            "Bluebook": cited_as(document, "bluebook", csl),
            "CSL-JSON": cited_as(document, "csl", csl),
            "BibTeX": cited_as(document, "bibtex", csl),
        },
        "cites": cites(database, name, **options),
        "cited_by": cited_by(database, name, **options),
        "shapes": shapes(database, name, owner=viewer.user_id),
        "reading": Reading.model_validate(document["reading"]) if document["reading"] else None,
        "code_place": code_position(database, name, limit=1) if document["unit"] else None,
    }


def _details(
    database: Database, document: Mapping[str, Any], viewer: Viewer, requested: _PartRequest
) -> dict[str, Any]:
    """Template values for bills and members only."""
    template, name, owner = _template(document), document["id"], viewer.user_id
    if template == "bill.html":
        return {"bill": bill(database, name, owner=owner, offset=requested.actions)}
    if template == "member.html":
        details = replace(
            member(database, name, owner=owner),
            sponsored=sponsored(database, name, offset=requested.bills),
            votes=votes_cast(database, name, offset=requested.votes),
            statements=statements(database, name, owner=owner, offset=requested.statements),
        )
        return {"member": details}
    return {}


def _with_text(response: Response, html: bytes) -> Response:
    """Insert the text as bytes: it is long, and stored as such."""
    before, _, after = bytes(response.body).partition(_TEXT_MARK.encode())
    response.body = b"".join((before, html, after))
    response.headers["content-length"] = str(len(response.body))
    return response


_MARKUP: Final = re.compile(r"^#{1,6} |(?<!\\)\*{1,3}|<!--.*?-->", re.MULTILINE)
_Start = Annotated[int, Query(ge=0, le=_MAX_NUMBER)]
_Id = Annotated[str, Query(min_length=1, max_length=1000)]
_Version = Annotated[str | None, Query(pattern="^[0-9a-f]{8,64}$")]


@router.get("/c")
def show_codes(request: Request) -> Response:
    """All codes in the library."""
    library = app_state(request).library
    return page(request, "codes.html", codes=codes(library.database, library.sources))


@router.get("/c/{path:path}")
def show_node(
    request: Request,
    path: DocumentId,
    *,
    start: _Start = 0,
    fragment: bool = False,
) -> Response:
    """A code with its editions, or a node in the tree of an edition; leaves are documents."""
    library = app_state(request).library
    database, registry = library.database, library.sources
    name = path.strip("/")
    if "/" not in name:
        return page(request, "code.html", code=code(database, registry, name))
    here = code_position(database, name, offset=start)
    if here.node is not None and here.node.is_leaf:
        return RedirectResponse(at(here.node.id))
    template = "branches.html" if fragment else "node.html"
    return page(
        request,
        template,
        here=here,
        code=code(database, registry, here.source),
        start=start,
        path=name,
    )


@router.get("/compare")
async def show_comparison(
    request: Request,
    before: _Id,
    after: _Id,
    *,
    before_version: _Version = None,
    after_version: _Version = None,
) -> Response:
    """Two texts side by side, with deletions and insertions."""
    limit_searches(request)
    viewer = await run_in_threadpool(viewer_of, request)
    work = partial(
        compare,
        app_state(request).context,
        VersionName(id=before, version=before_version),
        VersionName(id=after, version=after_version),
        owner=viewer.user_id,
    )
    comparison = await reading_queue(request).run(request, work, user=viewer.user_id)

    def show() -> Response:
        rows = list(_rows(comparison.passages))
        return page(request, "compare.html", viewer=viewer, comparison=comparison, rows=rows)

    return await run_in_threadpool(show)


@dataclass(slots=True)
class AlignedRow:
    """Segments of two texts, side by side."""

    before: list[Op] = field(default_factory=list)
    after: list[Op] = field(default_factory=list)
    is_heading: bool = False

    @property
    def is_done(self) -> bool:
        """Whether the last insertion or deletion ends a paragraph."""
        last = (*self.before[-1:], *self.after[-1:])
        return any(op != "keep" and text.endswith("\n\n") for op, text in last)


def _rows(ops: Iterable[ChangedPassage]) -> Iterator[AlignedRow]:
    """Group segments by paragraph; the end of an unchanged paragraph ends the row."""
    row = AlignedRow()
    for op, text in ops:
        if op == "delete":
            row.before.append(Op(op, unmarked(text)))
        elif op == "insert":
            row.after.append(Op(op, unmarked(text)))
        else:
            if row.is_done:
                yield row
                row = AlignedRow()
            first, *others = text.split("\n\n")
            _add_unchanged(row, first)
            for paragraph in others:
                yield row
                row = AlignedRow()
                _add_unchanged(row, paragraph)
    yield row


def unmarked(text: str) -> str:
    """Text without Markdown markup."""
    return _MARKUP.sub("", text)


def _add_unchanged(row: AlignedRow, text: str) -> None:
    if text:
        segment = Op("keep", unmarked(text))
        row.before.append(segment)
        row.after.append(segment)
        row.is_heading = row.is_heading or text.startswith("#")

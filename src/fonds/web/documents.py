"""The page of a document: its text, how to cite it, where it came from, what it is linked with.

The code browser: trees of statutes, level by level, and two editions beside each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from fonds.api.dependencies import desk_of, refuse_hurry
from fonds.api.schemas import DocumentId
from fonds.catalog.bills import bill
from fonds.catalog.codes import code, codes, place
from fonds.catalog.links import cited_by, cites
from fonds.catalog.members import member, sponsored, statements, votes_cast
from fonds.catalog.versions import VersionName, compare, shapes
from fonds.citations.export import cited_as
from fonds.codes.diff.redline import Op
from fonds.library import Library
from fonds.stores.database import Database
from fonds.web.rendering import Kept, Visitor, at, page, texts_of, visitor_of

LINKS: Final = 12
"""Of each kind, beside a text."""
ALL_LINKS: Final = 100
"""On a page of their own."""

_PLACE: Final = "<!--text-->"
_LAST: Final = 2**31 - 1
_BILL, _MEMBER = "bill", "legislator"
_Number = Annotated[int, Query(ge=0, le=_LAST)]

router: Final = APIRouter()


@dataclass(frozen=True, kw_only=True, slots=True)
class _PartRequest:
    """Which part of a document, and from where on its lists; each has its own number."""

    id: str
    part: int
    passage: int | None
    actions: int
    bills: int
    votes: int
    said: int


@router.get("/d/{document_id:path}")
def show_document(
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
    """A document, or the part of it that a passage stands in."""
    visitor = visitor_of(request)
    asked = _PartRequest(
        id=document_id,
        part=part,
        passage=passage,
        actions=actions,
        bills=bills,
        votes=votes,
        said=said,
    )
    if visitor.is_logged_in:  # its page has a form of its own
        return _shown(request, visitor, asked)
    kept: Kept = request.app.state.kept
    key = (asked, visitor.user_id, visitor.is_operator)
    return kept.get(key, lambda: _shown(request, visitor, asked))


def _shown(request: Request, visitor: Visitor, asked: _PartRequest) -> Response:
    library, texts = desk_of(request).library, texts_of(request)
    document = library.document(asked.id, owner=visitor.user_id, with_text=False)
    if document["id"] != asked.id:
        return RedirectResponse(at(document["id"]))
    is_of_passage = asked.passage is not None
    part = texts.part_of(document, asked.passage or 0) if is_of_passage else asked.part
    shown = texts.part(document, part)
    response = page(
        request,
        _template(document),
        visitor=visitor,
        document=document,
        part=shown,
        place=_PLACE,
        **_around(library, document, visitor),
        **_details(library.database, document, visitor, asked),
    )
    return _with_text(response, shown.html if shown else b"")


@router.get("/links/{document_id:path}")
def show_links(
    request: Request, document_id: DocumentId, cites_from: _Number = 0, cited_from: _Number = 0
) -> Response:
    """Everything a document cites, and everything that cites it."""
    visitor, library = visitor_of(request), desk_of(request).library
    document = library.document(document_id, owner=visitor.user_id, with_text=False)
    whose: dict[str, Any] = {"owner": visitor.user_id, "limit": ALL_LINKS}
    return page(
        request,
        "links.html",
        visitor=visitor,
        document=document,
        cites=cites(library.database, document["id"], offset=cites_from, **whose),
        cited_by=cited_by(library.database, document["id"], offset=cited_from, **whose),
        cites_from=cites_from,
        cited_from=cited_from,
    )


@router.get("/verify/{document_id:path}")
def verify(request: Request, document_id: DocumentId) -> Response:
    """A document made again from the archived bytes, and compared link by link."""
    refuse_hurry(request, "search")
    visitor, library = visitor_of(request), desk_of(request).library
    document = library.document(document_id, owner=visitor.user_id, with_text=False)
    found = library.verify(document["id"], owner=visitor.user_id)
    return page(request, "verify.html", visitor=visitor, document=document, found=found)


def _template(document: Mapping[str, Any]) -> str:
    prefix = document["id"].partition(":")[0]
    if prefix == _BILL and "/" not in document["id"]:
        return "bill.html"
    return "member.html" if prefix == _MEMBER else "document.html"


def _around(library: Library, document: Mapping[str, Any], visitor: Visitor) -> dict[str, Any]:
    """What is shown of every document."""
    database, name, csl = library.database, document["id"], library.sources.csl_type(document)
    whose: dict[str, Any] = {"owner": visitor.user_id, "limit": LINKS}
    return {
        "citations": {
            "Bluebook": cited_as(document, "bluebook", csl),
            "CSL-JSON": cited_as(document, "csl", csl),
            "BibTeX": cited_as(document, "bibtex", csl),
        },
        "cites": cites(database, name, **whose),
        "cited_by": cited_by(database, name, **whose),
        "shapes": shapes(database, name, owner=visitor.user_id),
        "code_place": place(database, name, limit=1) if document["unit"] else None,
    }


def _details(
    database: Database, document: Mapping[str, Any], visitor: Visitor, asked: _PartRequest
) -> dict[str, Any]:
    """What is shown of bills and of members alone."""
    template, name, owner = _template(document), document["id"], visitor.user_id
    if template == "bill.html":
        return {"bill": bill(database, name, owner=owner, offset=asked.actions)}
    if template == "member.html":
        known = replace(
            member(database, name, owner=owner),
            sponsored=sponsored(database, name, offset=asked.bills),
            votes=votes_cast(database, name, offset=asked.votes),
            statements=statements(database, name, owner=owner, offset=asked.said),
        )
        return {"member": known}
    return {}


def _with_text(response: Response, html: bytes) -> Response:
    """The text is put in as bytes: it is long, kept as such, and no template need look at it."""
    before, _, after = bytes(response.body).partition(_PLACE.encode())
    response.body = b"".join((before, html, after))
    response.headers["content-length"] = str(len(response.body))
    return response


_SIGNS: Final = re.compile(r"^#{1,6} |(?<!\\)\*{1,3}|<!--.*?-->", re.MULTILINE)
_Start = Annotated[int, Query(ge=0, le=_LAST)]
_Id = Annotated[str, Query(min_length=1, max_length=1000)]
_Version = Annotated[str | None, Query(pattern="^[0-9a-f]{8,64}$")]


@router.get("/c")
def show_codes(request: Request) -> Response:
    """All codes that are held."""
    library = desk_of(request).library
    return page(request, "codes.html", codes=codes(library.database, library.sources))


@router.get("/c/{path:path}")
def show_place(
    request: Request,
    path: DocumentId,
    *,
    start: _Start = 0,
    fragment: bool = False,
) -> Response:
    """A code with its editions, or a place in the tree of one; of a text, its own page."""
    library = desk_of(request).library
    database, registry = library.database, library.sources
    name = path.strip("/")
    if "/" not in name:
        return page(request, "code.html", code=code(database, registry, name))
    here = place(database, name, offset=start)
    if here.node is not None and here.node.is_leaf:
        return RedirectResponse(at(here.node.id))
    template = "branches.html" if fragment else "place.html"
    return page(
        request,
        template,
        here=here,
        code=code(database, registry, here.source),
        start=start,
        path=name,
    )


@router.get("/compare")
def show_comparison(
    request: Request,
    before: _Id,
    after: _Id,
    *,
    before_version: _Version = None,
    after_version: _Version = None,
) -> Response:
    """Two texts side by side, with what was deleted and inserted."""
    refuse_hurry(request, "search")
    visitor = visitor_of(request)
    found = compare(
        desk_of(request).context,
        VersionName(id=before, version=before_version),
        VersionName(id=after, version=after_version),
        owner=visitor.user_id,
    )
    rows = list(_rows(found.redline.shown()))
    return page(request, "compare.html", visitor=visitor, found=found, rows=rows)


@dataclass(slots=True)
class AlignedRow:
    """Stretches of text that stand beside each other."""

    before: list[Op] = field(default_factory=list)
    after: list[Op] = field(default_factory=list)
    is_heading: bool = False

    @property
    def is_done(self) -> bool:
        """Whether what was inserted or deleted last ends a paragraph."""
        last = (*self.before[-1:], *self.after[-1:])
        return any(op != "keep" and text.endswith("\n\n") for op, text in last)


def _rows(ops: Iterable[Op]) -> Iterator[AlignedRow]:
    """Paragraph by paragraph: where a kept stretch ends one, it ends on both sides."""
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
            _keep(row, first)
            for paragraph in others:
                yield row
                row = AlignedRow()
                _keep(row, paragraph)
    yield row


def unmarked(text: str) -> str:
    """Text without the signs of Markdown, which are no words."""
    return _SIGNS.sub("", text)


def _keep(row: AlignedRow, text: str) -> None:
    if text:
        kept = Op("keep", unmarked(text))
        row.before.append(kept)
        row.after.append(kept)
        row.is_heading = row.is_heading or text.startswith("#")

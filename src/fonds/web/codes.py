"""The code browser: trees of statutes, level by level, and two editions beside each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from fonds.api.answers import DocumentId
from fonds.api.desk import desk_of
from fonds.api.limits import refuse_hurry
from fonds.catalog.comparison import Name, compare
from fonds.catalog.tree import code, codes, place
from fonds.codes.diff.redline import Op
from fonds.web.frame import at, page, visitor_of

_SIGNS: Final = re.compile(r"^#{1,6} |(?<!\\)\*{1,3}|<!--.*?-->", re.MULTILINE)
_LAST: Final = 2**31 - 1
_Start = Annotated[int, Query(ge=0, le=_LAST)]
_Id = Annotated[str, Query(min_length=1, max_length=1000)]
_Version = Annotated[str | None, Query(pattern="^[0-9a-f]{8,64}$")]

router: Final = APIRouter()


@router.get("/c")
def show_codes(request: Request) -> Response:
    """All codes that are held."""
    return page(request, "codes.html", codes=codes(desk_of(request).library.database))


@router.get("/c/{path:path}")
def show_place(
    request: Request,
    path: DocumentId,
    *,
    start: _Start = 0,
    fragment: bool = False,
) -> Response:
    """A code with its editions, or a place in the tree of one; of a text, its own page."""
    database = desk_of(request).library.database
    name = path.strip("/")
    if "/" not in name:
        return page(request, "code.html", code=code(database, name))
    here = place(database, name, offset=start)
    if here.node is not None and here.node.is_leaf:
        return RedirectResponse(at(here.node.id))
    template = "branches.html" if fragment else "place.html"
    return page(
        request, template, here=here, code=code(database, here.source), start=start, path=name
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
        desk_of(request).shelf,
        Name(id=before, version=before_version),
        Name(id=after, version=after_version),
        owner=visitor.user_id,
    )
    rows = list(_rows(found.redline.shown()))
    return page(request, "compare.html", visitor=visitor, found=found, rows=rows)


@dataclass(slots=True)
class Row:
    """Stretches of text that stand beside each other."""

    before: list[Op] = field(default_factory=list)
    after: list[Op] = field(default_factory=list)
    is_heading: bool = False

    @property
    def is_done(self) -> bool:
        """Whether what was inserted or deleted last ends a paragraph."""
        last = (*self.before[-1:], *self.after[-1:])
        return any(op != "keep" and text.endswith("\n\n") for op, text in last)


def _rows(ops: Iterable[Op]) -> Iterator[Row]:
    """Paragraph by paragraph: where a kept stretch ends one, it ends on both sides."""
    row = Row()
    for op, text in ops:
        if op == "delete":
            row.before.append(Op(op, unmarked(text)))
        elif op == "insert":
            row.after.append(Op(op, unmarked(text)))
        else:
            if row.is_done:
                yield row
                row = Row()
            first, *others = text.split("\n\n")
            _keep(row, first)
            for paragraph in others:
                yield row
                row = Row()
                _keep(row, paragraph)
    yield row


def unmarked(text: str) -> str:
    """Text without the signs of Markdown, which are no words."""
    return _SIGNS.sub("", text)


def _keep(row: Row, text: str) -> None:
    if text:
        kept = Op("keep", unmarked(text))
        row.before.append(kept)
        row.after.append(kept)
        row.is_heading = row.is_heading or text.startswith("#")

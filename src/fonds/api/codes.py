"""Codes over HTTP: from the codes that are held down to a section, one level at a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse

from fonds import ids
from fonds.api.answers import problems
from fonds.api.desk import desk_of
from fonds.api.reading_answers import CodePath, CodesAnswer, Offset, PlaceAnswer
from fonds.catalog import tree
from fonds.codes.outline import EditionHeld

_ChildLimit = Annotated[int, Query(ge=1, le=tree.MOST_CHILDREN)]

codes_router: Final = APIRouter(prefix="/api", tags=["codes"])


@codes_router.get("/codes", responses={200: {"model": CodesAnswer}, **problems(503)})
def list_codes(request: Request) -> JSONResponse:
    """The codes that are held, and their editions."""
    found = tree.codes(desk_of(request).library.database)
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
    database = desk_of(request).library.database
    name, _, below = path.strip("/").partition("/")
    if not below:
        return JSONResponse(_of_code(tree.code(database, name)))
    return JSONResponse(_of_place(tree.place(database, path, limit=limit, offset=offset)))


def _of_code(code: tree.Code) -> dict[str, Any]:
    links = {"self": f"/api/codes/{code.name}", "changes": f"/feeds/{code.name}.atom"}
    return {"code": _code(code), "node": None, "links": links}


def _of_place(place: tree.Place) -> dict[str, Any]:
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


def _code(code: tree.Code) -> dict[str, Any]:
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

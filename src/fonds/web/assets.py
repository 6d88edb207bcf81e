"""Files of our own that pages load."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FOLDER: Final = files("fonds.web") / "static"
_FILES: Final = {
    each.name: (each.read_bytes(), _TYPES[each.name.rpartition(".")[2]])
    for each in _FOLDER.iterdir()
    if each.name.rpartition(".")[2] in _TYPES
}
# Their addresses change with their content.
_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable"}

router: Final = APIRouter()


@router.get("/static/{name}")
def get_asset(name: str) -> Response:
    """One of our files."""
    if name not in _FILES:
        raise HTTPException(404)
    content, media_type = _FILES[name]
    return Response(content, media_type=media_type, headers=_KEPT)


@router.get("/favicon.ico")
def get_icon() -> Response:
    """What browsers ask for unasked."""
    return get_asset("icon.svg")

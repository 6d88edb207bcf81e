"""What changed, over HTTP: in the order in which it was seen.

Atom feeds (RFC 4287) of what changed: of a source, and of a path of a code.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from lxml import etree
from starlette.responses import JSONResponse, Response

from fonds.api.dependencies import AppState, desk_of
from fonds.api.middleware import UNCHANGED, answered, etag_of
from fonds.api.problems import ProblemError
from fonds.api.schemas import (
    BEARER_OR_NOBODY,
    LONGEST_ID,
    PLAIN_PATTERN,
    ChangesAnswer,
    CodePath,
    problems,
)
from fonds.catalog.changes import MOST_CHANGES, ChangeFilter, DocumentChange, changes
from fonds.errors import UnknownSourceError
from fonds.search.filters import require_source
from fonds.sources.base import SourceInfo
from fonds.stores.columns import format_timestamp

_Text = Annotated[str, Query(min_length=1, max_length=LONGEST_ID, pattern=PLAIN_PATTERN)]
_Since = Annotated[
    date | datetime,
    Query(description="A day, or a moment with its zone.", examples=["2026-01-31"]),
]
_Cursor = Annotated[
    str,
    Query(
        min_length=1,
        max_length=LONGEST_ID + 30,
        pattern=PLAIN_PATTERN,
        description="`next_cursor` of the page before.",
    ),
]

router: Final = APIRouter(prefix="/api", tags=["changes"])


@router.get(
    "/changes",
    openapi_extra=BEARER_OR_NOBODY,
    responses={200: {"model": ChangesAnswer}, **problems(401, 422, 503)},
)
def get_changes(
    request: Request,
    since: _Since,
    *,
    source: _Text | None = None,
    under: _Text | None = None,
    order: Literal["oldest", "newest"] = "oldest",
    reprints: Annotated[
        bool, Query(description="With sections that only came again, in another edition.")
    ] = False,
    cursor: _Cursor | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST_CHANGES)] = 100,
) -> JSONResponse:
    """What was added, changed and withdrawn; a page may be short and not the last."""
    desk = desk_of(request)
    wanted = ChangeFilter(
        since=_moment(since),
        source=source and require_source(source, desk.library.sources),
        under=under,
        owner=desk.owner(request),
        newest_first=order == "newest",
        reprints=reprints,
    )
    found = changes(desk.library.database, wanted, limit=limit, cursor=cursor)
    return JSONResponse(
        {"changes": [_change(one) for one in found.items], "next_cursor": found.next_cursor}
    )


def _moment(since: date | datetime) -> datetime:
    """A moment without a zone is one of UTC, as all of ours are."""
    if not isinstance(since, datetime):
        return datetime.combine(since, time(), UTC)
    return since if since.tzinfo else since.replace(tzinfo=UTC)


def _change(change: DocumentChange) -> dict[str, Any]:
    return {**asdict(change), "at": format_timestamp(change.at)}


ENTRIES: Final = 100
"""The newest that a feed has; `/api/changes` has them all."""
MEDIA_TYPE: Final = "application/atom+xml"

_ATOM: Final = "http://www.w3.org/2005/Atom"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Characters that no XML document may have.
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_WORDS: Final = {
    "added": "Added",
    "changed": "Changed",
    "withdrawn": "Withdrawn",
    "reprinted": "In another edition",
}
_SourceName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=LONGEST_ID,
        pattern=r"^[a-z0-9_.-]+$",
        description="As `fonds sources` names it.",
        examples=["federal_register"],
    ),
]
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The newest changes.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
    },
    304: UNCHANGED,
    **problems(404, 422, 503),
}

feeds_router: Final = APIRouter(prefix="/feeds", tags=["changes"])


@feeds_router.get("/c/{path:path}.atom", response_class=Response, responses=_RESPONSES)
def feed_of_path(request: Request, path: CodePath) -> Response:
    """What changed below a path of a code: in one edition, or `usc/title-42` in all of them."""
    clean = path.strip("/")
    name = _source_info(request, clean.partition("/")[0]).title
    wanted = ChangeFilter(under=clean, newest_first=True)
    return _feed(request, wanted, f"{name}: {clean}", f"/feeds/c/{clean}.atom")


@feeds_router.get("/{source}.atom", response_class=Response, responses=_RESPONSES)
def feed_of_source(request: Request, source: _SourceName) -> Response:
    """What changed of one source."""
    info = _source_info(request, source)
    wanted = ChangeFilter(source=info.name, newest_first=True)
    return _feed(request, wanted, info.title, f"/feeds/{info.name}.atom")


def _source_info(request: Request, name: str) -> SourceInfo:
    try:
        return desk_of(request).library.sources.require(name).info
    except UnknownSourceError as error:
        raise ProblemError(404, "unknown-source", str(error)) from None


def _feed(request: Request, wanted: ChangeFilter, title: str, path: str) -> Response:
    desk = desk_of(request)
    found = changes(desk.library.database, wanted, limit=ENTRIES).items
    told = [(change.id, change.what, format_timestamp(change.at), change.title) for change in found]

    def make() -> Response:
        return Response(_written(desk, request, title, path, found), media_type=MEDIA_TYPE)

    return answered(
        request, etag_of(desk.address(request, path), title, told), make, changed_at=_at(found)
    )


def _written(
    desk: AppState,
    request: Request,
    title: str,
    path: str,
    found: tuple[DocumentChange, ...],
) -> bytes:
    own = desk.address(request, quote(path))
    names: dict[Any, str] = {None: _ATOM}
    feed = etree.Element(f"{{{_ATOM}}}feed", nsmap=names)
    _put(feed, "id", f"urn:fonds:changes:{quote(path, safe=':')}")
    _put(feed, "title", f"{title}: changes")
    _put(feed, "updated", format_timestamp(_at(found)))
    _put(feed, "link", rel="self", type=MEDIA_TYPE, href=own)
    _put(feed, "link", rel="alternate", type="text/html", href=desk.address(request, "/"))
    _put(_put(feed, "author"), "name", "fonds")
    for change in found:
        _entry(feed, change, desk.address(request, f"/d/{quote(change.id)}"))
    written: bytes = etree.tostring(feed, xml_declaration=True, encoding="utf-8")
    return written


def _at(found: tuple[DocumentChange, ...]) -> datetime:
    return max((change.at for change in found), default=_EPOCH)


def _entry(feed: Any, change: DocumentChange, address: str) -> None:
    entry = _put(feed, "entry")
    moment = format_timestamp(change.at)
    _put(entry, "id", f"urn:fonds:change:{quote(change.id, safe=':')}:{change.what}:{moment}")
    _put(entry, "title", f"{_WORDS[change.what]}: {change.title}")
    _put(entry, "updated", moment)
    _put(entry, "link", rel="alternate", type="text/html", href=address)
    _put(entry, "category", term=change.what)
    _put(entry, "category", term=change.kind)
    _put(entry, "summary", change.citation_string)


def _put(parent: Any, name: str, text: str | None = None, **attributes: str) -> Any:
    element = etree.SubElement(parent, f"{{{_ATOM}}}{name}")
    for key, value in attributes.items():
        element.set(key, _FORBIDDEN.sub("\ufffd", value))
    if text is not None:
        element.text = _FORBIDDEN.sub("\ufffd", text)
    return element

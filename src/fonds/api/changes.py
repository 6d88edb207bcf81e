"""Routes for changes: a JSON list, and Atom feeds (RFC 4287) of a source or a path of a code."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from lxml import etree
from starlette.responses import JSONResponse, Response

from fonds.api.dependencies import AppState, app_state
from fonds.api.middleware import UNCHANGED, conditional_response, etag_of
from fonds.api.problems import ProblemError
from fonds.api.schemas import (
    MAX_ID_LENGTH,
    TEXT_PATTERN,
    ChangesResponse,
    CodePath,
    problems,
    returns,
)
from fonds.catalog.changes import MAX_CHANGES, ChangeFilter, DocumentChange, changes, utc_time
from fonds.errors import UnknownSourceError
from fonds.search.filters import require_source
from fonds.sources.base import SourceInfo
from fonds.stores.columns import format_timestamp

_Text = Annotated[str, Query(min_length=1, max_length=MAX_ID_LENGTH, pattern=TEXT_PATTERN)]
_Since = Annotated[
    # A string that is both is a time: as a date, it would lose its zone.
    datetime | date,
    Query(description="A day, or a time with its zone.", examples=["2026-01-31"]),
]
_Cursor = Annotated[
    str,
    Query(
        min_length=1,
        max_length=MAX_ID_LENGTH + 30,
        pattern=TEXT_PATTERN,
        description="`next_cursor` of the previous page.",
    ),
]

router: Final = APIRouter(prefix="/api", tags=["changes"])


@router.get("/changes", **returns(ChangesResponse, 401, 422, 503))
def get_changes(
    request: Request,
    since: _Since,
    *,
    source: _Text | None = None,
    under: _Text | None = None,
    order: Literal["oldest", "newest"] = "oldest",
    reprints: Annotated[
        bool, Query(description="Include sections whose text is the same in another edition.")
    ] = False,
    cursor: _Cursor | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_CHANGES)] = 100,
) -> JSONResponse:
    """Documents added, changed and withdrawn; only a page without `next_cursor` is the last."""
    app = app_state(request)
    filters = ChangeFilter(
        since=utc_time(since),
        source=source and require_source(source, app.library.sources),
        under=under,
        owner=app.owner(request),
        newest_first=order == "newest",
        reprints=reprints,
    )
    page = changes(app.library.database, filters, limit=limit, cursor=cursor)
    return JSONResponse(
        {"changes": [_change(change) for change in page.items], "next_cursor": page.next_cursor}
    )


def _change(change: DocumentChange) -> dict[str, Any]:
    return {**asdict(change), "at": format_timestamp(change.at)}


FEED_ENTRIES: Final = 100
"""The newest changes, in a feed; `/api/changes` has all."""
MEDIA_TYPE: Final = "application/atom+xml"

_ATOM: Final = "http://www.w3.org/2005/Atom"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Characters that XML does not allow.
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
        max_length=MAX_ID_LENGTH,
        pattern=r"^[a-z0-9_.-]+$",
        description="A name listed by `fonds sources`.",
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
    """Changes below a path of a code: in one edition, or in all, such as `usc/title-42`."""
    clean = path.strip("/")
    name = _source_info(request, clean.partition("/")[0]).title
    filters = ChangeFilter(under=clean, newest_first=True)
    return _feed(request, filters, f"{name}: {clean}", f"/feeds/c/{clean}.atom")


@feeds_router.get("/{source}.atom", response_class=Response, responses=_RESPONSES)
def feed_of_source(request: Request, source: _SourceName) -> Response:
    """Changes of one source."""
    info = _source_info(request, source)
    filters = ChangeFilter(source=info.name, newest_first=True)
    return _feed(request, filters, info.title, f"/feeds/{info.name}.atom")


def _source_info(request: Request, name: str) -> SourceInfo:
    try:
        return app_state(request).library.sources.require(name).info
    except UnknownSourceError as error:
        raise ProblemError(404, "unknown-source", str(error)) from None


def _feed(request: Request, filters: ChangeFilter, title: str, path: str) -> Response:
    app = app_state(request)
    entries = changes(app.library.database, filters, limit=FEED_ENTRIES).items
    contents = [
        (change.id, change.what, format_timestamp(change.at), change.title) for change in entries
    ]

    def make() -> Response:
        return Response(_feed_xml(app, request, title, path, entries), media_type=MEDIA_TYPE)

    return conditional_response(
        request,
        etag_of(app.address(request, path), title, contents),
        make,
        changed_at=_latest(entries),
    )


def _feed_xml(
    app: AppState,
    request: Request,
    title: str,
    path: str,
    entries: tuple[DocumentChange, ...],
) -> bytes:
    own = app.address(request, quote(path))
    names: dict[Any, str] = {None: _ATOM}
    feed = etree.Element(f"{{{_ATOM}}}feed", nsmap=names)
    _add(feed, "id", f"urn:fonds:changes:{quote(path, safe=':')}")
    _add(feed, "title", f"{title}: changes")
    _add(feed, "updated", format_timestamp(_latest(entries)))
    _add(feed, "link", rel="self", type=MEDIA_TYPE, href=own)
    _add(feed, "link", rel="alternate", type="text/html", href=app.address(request, "/"))
    _add(_add(feed, "author"), "name", "fonds")
    for change in entries:
        _entry(feed, change, app.address(request, f"/d/{quote(change.id)}"))
    xml: bytes = etree.tostring(feed, xml_declaration=True, encoding="utf-8")
    return xml


def _latest(entries: tuple[DocumentChange, ...]) -> datetime:
    return max((change.at for change in entries), default=_EPOCH)


def _entry(feed: Any, change: DocumentChange, address: str) -> None:
    entry = _add(feed, "entry")
    timestamp = format_timestamp(change.at)
    _add(entry, "id", f"urn:fonds:change:{quote(change.id, safe=':')}:{change.what}:{timestamp}")
    _add(entry, "title", f"{_WORDS[change.what]}: {change.title}")
    _add(entry, "updated", timestamp)
    _add(entry, "link", rel="alternate", type="text/html", href=address)
    _add(entry, "category", term=change.what)
    _add(entry, "category", term=change.kind)
    _add(entry, "summary", change.citation_string)


def _add(parent: Any, name: str, text: str | None = None, **attributes: str) -> Any:
    element = etree.SubElement(parent, f"{{{_ATOM}}}{name}")
    for key, value in attributes.items():
        element.set(key, _FORBIDDEN.sub("\ufffd", value))
    if text is not None:
        element.text = _FORBIDDEN.sub("\ufffd", text)
    return element

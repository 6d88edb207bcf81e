"""Shared by all pages: templates and filters, the viewer, form keys, and a cache of pages."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID

import jinja2
from fastapi import Request
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from fonds.api.dependencies import NIL_ID, AppState, app_state
from fonds.api.problems import ProblemError
from fonds.api.sessions import SessionCookies, new_nonce
from fonds.seams import Clock
from fonds.uploads.users import Caller
from fonds.web.document_html import BIDI, HtmlTexts

FORM_KEY: Final = "form_key"
"""The field in every form that protects against cross-site requests."""

_STATIC: Final = files("fonds.web") / "static"
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@dataclass(frozen=True, kw_only=True, slots=True)
class Viewer:
    """The user who views a page, logged in or not."""

    cookies: SessionCookies
    caller: Caller | None

    @property
    def user_id(self) -> UUID | None:
        """The user whose uploads are visible in addition to public documents."""
        return self.caller.user_id if self.caller else None

    @property
    def is_operator(self) -> bool:
        """Whether the viewer may open the pages for operators."""
        return self.caller is not None and self.caller.scope == "admin"

    @property
    def is_logged_in(self) -> bool:
        """Whether there is a session that can be ended."""
        return self.caller is not None and self.caller.token_id != NIL_ID


def viewer_of(request: Request) -> Viewer:
    """The logged-in viewer, or the local one on a server for this machine only."""
    app = app_state(request)
    cookies = app.sessions.cookies(request)
    if cookies.session is None and not app.is_local(request):
        return Viewer(cookies=cookies, caller=None)
    with app.library.database.read() as connection:
        caller = app.session_caller(request, connection) or app.local_caller(request, connection)
    return Viewer(cookies=cookies, caller=caller)


def require_viewer(request: Request) -> Viewer:
    """The viewer of a page that requires a login."""
    viewer = viewer_of(request)
    if viewer.caller is None:
        raise ProblemError(401, "login", "log in to open this page")
    return viewer


def require_operator(request: Request) -> Viewer:
    """The viewer of a page for operators."""
    viewer = require_viewer(request)
    if not viewer.is_logged_in:
        raise ProblemError(401, "login", "log in to open this page")
    if not viewer.is_operator:
        raise ProblemError(403, "scope", "this page requires a token of the scope admin")
    return viewer


def require_own_form(request: Request, viewer: Viewer, form_key: str) -> None:
    """Raise 403 for a form that a page of another site may have sent."""
    if not app_state(request).sessions.is_own_form(viewer.cookies, form_key):
        raise ProblemError(
            403,
            "form",
            "the form has expired or is from another session: go back, reload and send it again",
        )


def page(
    request: Request,
    template: str,
    *,
    viewer: Viewer | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **context: Any,
) -> Response:
    """Render a template as a page."""
    viewer = viewer or viewer_of(request)
    forms = _Forms(app_state(request), viewer)
    html = (
        templates()
        .get_template(template)
        .render(request=request, viewer=viewer, form_key=forms.field, **context)
    )
    response = HTMLResponse(html, status, headers=dict(headers or {}))
    forms.remember(response)
    return response


class _Forms:
    """The form keys of one page; sets the browser's nonce if it has none."""

    def __init__(self, app: AppState, viewer: Viewer) -> None:
        self._sessions = app.sessions
        self._cookies = viewer.cookies
        self._new_nonce: str | None = None

    def field(self) -> Markup:
        nonce = self._cookies.nonce or self._new_nonce
        if nonce is None:
            nonce = self._new_nonce = new_nonce()
        key = self._sessions.form_key(nonce, self._cookies.session)
        return Markup('<input type="hidden" name="{}" value="{}">').format(FORM_KEY, key)

    def remember(self, response: Response) -> None:
        if self._new_nonce is not None:
            self._sessions.set_nonce(response, self._new_nonce)


def texts_of(request: Request) -> HtmlTexts:
    """The rendered texts of the application."""
    texts: HtmlTexts = request.app.state.texts
    return texts


# Templates --------------------------------------------------------------------------------


@cache
def templates() -> jinja2.Environment:
    """The template environment: values are escaped, and undefined names are errors."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fonds.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        **{
            each.__name__: each for each in (one_line, day, timestamp, ago, size, number, at, words)
        },
        outside=outside,
        host=host,
    )
    environment.globals.update(asset=asset, query=query)
    return environment


def one_line(text: object) -> str:
    """Text on one line, without control characters that could reorder the text around it."""
    return " ".join(_CONTROLS.sub(" ", str(text or "").translate(BIDI)).split())


def words(name: object) -> str:
    """An identifier as words: `proposed_rule` becomes `proposed rule`."""
    return str(name or "").replace("_", " ")


def day(value: object) -> str:
    """A date such as 4 March 2026."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value[:10])
        except ValueError:
            return one_line(value)
    return f"{value.day} {value:%B %Y}" if isinstance(value, date) else ""


def timestamp(value: datetime | None) -> str:
    """A time in UTC."""
    return "" if value is None else f"{value:%Y-%m-%d %H:%M:%S}"


def ago(value: datetime | None, now: datetime) -> str:
    """The distance from now, such as `3 h ago`."""
    if value is None:
        return "never"
    seconds = (now - value).total_seconds()
    span = _span(abs(seconds))
    return f"in {span}" if seconds < 0 else f"{span} ago"


def _span(seconds: float) -> str:
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return f"{int(seconds)} s"


def size(value: float | None) -> str:
    """A number of bytes with its unit."""
    amount = float(value or 0)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:  # noqa: PLR2004 — the step between units
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"  # noqa: PLR2004 — two digits do
        amount /= 1024
    return f"{amount:.1f} TiB"


def number(value: int | None) -> str:
    """A number with separators."""
    return f"{value or 0:,}"


def at(document_id: object, base: str = "/d/") -> str:
    """The address of a document's page."""
    return base + quote(str(document_id), safe="/:@")


def outside(address: object) -> str:
    """An address from a document, if it is one of the web; else nothing."""
    text = str(address or "")
    return text if text.startswith(("https://", "http://")) else ""


def host(address: object) -> str:
    """The host of an address."""
    try:
        return one_line(urlsplit(str(address or "")).hostname)
    except ValueError:
        return ""


def query(pairs: Mapping[str, Any]) -> str:
    """A query string without empty values."""
    return urlencode({name: value for name, value in pairs.items() if value}, doseq=True)


@cache
def asset(name: str) -> str:
    """The address of a static file, with a hash of its content."""
    content = (_STATIC / name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:8]}"


CACHE_SECONDS: Final = 10.0
MAX_CACHE_BYTES: Final = 32 * 1024 * 1024
_ENTRY_BYTES: Final = 2048
"""Of the objects of an entry, beside its texts."""


@dataclass(frozen=True, slots=True)
class _CachedPage:
    response: Response
    made_at: float
    size: int


class PageCache:
    """Recently rendered pages, by the values that determine their content, up to a total size."""

    def __init__(self, clock: Clock, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._pages: OrderedDict[Hashable, _CachedPage] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The bytes of memory that its pages and their keys take, approximately."""
        return self._bytes

    def get(self, key: Hashable, make: Callable[[], Response]) -> Response:
        """The page with this key, rendered at most some seconds ago."""
        now = self._clock.monotonic()
        with self._lock:
            page = self._pages.get(key)
        if page is not None and now - page.made_at < CACHE_SECONDS:
            return page.response
        response = make()
        # Redirects and errors cost little to make, and their keys are whatever a client sends.
        if response.status_code == HTTPStatus.OK:
            self._keep(key, _CachedPage(response, now, _size_of(key, response)))
        return response

    def _keep(self, key: Hashable, page: _CachedPage) -> None:
        with self._lock:
            self._remove(key)
            self._pages[key] = page
            self._bytes += page.size
            while self._bytes > self._max_bytes:
                self._remove(next(iter(self._pages)))

    def _remove(self, key: Hashable) -> None:
        page = self._pages.pop(key, None)
        self._bytes -= page.size if page else 0


def _size_of(key: Hashable, response: Response) -> int:
    headers = sum(len(name) + len(value) for name, value in response.raw_headers)
    return _ENTRY_BYTES + len(response.body) + headers + len(repr(key))

"""What all pages share: templates, who is looking, and the keys of forms.

Pages that were just made, kept in memory for whoever asks for the same one next.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID

import jinja2
from fastapi import Request
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from fonds.api.dependencies import AppState, desk_of
from fonds.api.problems import ProblemError
from fonds.api.sessions import SessionCookies, new_name
from fonds.seams import Clock
from fonds.uploads.users import Caller
from fonds.web.document_html import BIDI, HtmlTexts

FORM_KEY: Final = "form_key"
"""The field of every form that says where the form was shown."""

_STATIC: Final = files("fonds.web") / "static"
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@dataclass(frozen=True, kw_only=True, slots=True)
class Visitor:
    """Who looks at a page."""

    visit: SessionCookies
    caller: Caller | None

    @property
    def user_id(self) -> UUID | None:
        """Whose uploads are seen beside what is public."""
        return self.caller.user_id if self.caller else None

    @property
    def is_operator(self) -> bool:
        """Whether the pages of those who run the library are theirs."""
        return self.caller is not None and self.caller.scope == "admin"

    @property
    def is_logged_in(self) -> bool:
        """Whether there is a session that can be ended."""
        return self.caller is not None and self.visit.token_id is not None


def visitor_of(request: Request) -> Visitor:
    """Who looks: whoever is logged in, or sits at a machine that nobody else reaches."""
    desk = desk_of(request)
    visit = desk.sessions.visit(request, desk.now())
    if visit.token_id is None and not desk.is_local(request):
        return Visitor(visit=visit, caller=None)
    with desk.library.database.read() as connection:
        caller = desk.in_session(request, connection) or desk.local(request, connection)
    return Visitor(visit=visit, caller=caller)


def known_visitor(request: Request) -> Visitor:
    """Who looks at a page that is not for everybody."""
    visitor = visitor_of(request)
    if visitor.caller is None:
        raise ProblemError(401, "login", "log in to see this page")
    return visitor


def operator_of(request: Request) -> Visitor:
    """Who looks at a page for those who run the library."""
    visitor = known_visitor(request)
    if not visitor.is_operator:
        raise ProblemError(403, "scope", "this page needs a token of the scope admin")
    return visitor


def require_own_form(request: Request, visitor: Visitor, given: str) -> None:
    """Refuse a form that another page may have sent in somebody's name."""
    if not desk_of(request).sessions.is_own_form(visitor.visit, given):
        raise ProblemError(
            403, "form", "this form was shown too long ago, or elsewhere: go back and send it again"
        )


def page(
    request: Request,
    template: str,
    *,
    visitor: Visitor | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **context: Any,
) -> Response:
    """A page made from a template."""
    visitor = visitor or visitor_of(request)
    forms = _Forms(desk_of(request), visitor)
    html = (
        templates()
        .get_template(template)
        .render(
            request=request, visitor=visitor, form_key=forms.field, desk=desk_of(request), **context
        )
    )
    response = HTMLResponse(html, status, headers=dict(headers or {}))
    forms.remember(response)
    return response


class _Forms:
    """The keys of the forms of one page; a browser without a name gets one with the page."""

    def __init__(self, desk: AppState, visitor: Visitor) -> None:
        self._sessions = desk.sessions
        self._visit = visitor.visit
        self._made: str | None = None

    def field(self) -> Markup:
        nonce = self._visit.nonce or self._made
        if nonce is None:
            nonce = self._made = new_name()
        key = self._sessions.form_key(nonce, self._visit.token_id)
        return Markup('<input type="hidden" name="{}" value="{}">').format(FORM_KEY, key)

    def remember(self, response: Response) -> None:
        if self._made is not None:
            self._sessions.name(response, self._made)


def texts_of(request: Request) -> HtmlTexts:
    """The rendered texts of the application that was asked."""
    texts: HtmlTexts = request.app.state.texts
    return texts


# Templates --------------------------------------------------------------------------------


@cache
def templates() -> jinja2.Environment:
    """The templates; everything put into them is escaped, and what is missing is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fonds.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        **{each.__name__: each for each in (plain, day, moment, ago, size, number, at, words)},
        outside=outside,
        host=host,
    )
    environment.globals.update(asset=asset, query=query)
    return environment


def plain(text: object) -> str:
    """Text of a document on one line, unable to reorder or break what stands around it."""
    return " ".join(_CONTROLS.sub(" ", str(text or "").translate(BIDI)).split())


def words(name: object) -> str:
    """A name of ours as words: `proposed_rule` is `proposed rule`."""
    return str(name or "").replace("_", " ")


def day(value: object) -> str:
    """A day for people: 4 March 2026."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value[:10])
        except ValueError:
            return plain(value)
    return f"{value.day} {value:%B %Y}" if isinstance(value, date) else ""


def moment(value: datetime | None) -> str:
    """A moment for people, in UTC."""
    return "" if value is None else f"{value:%Y-%m-%d %H:%M:%S}"


def ago(value: datetime | None, now: datetime) -> str:
    """How long before now, or after it."""
    if value is None:
        return "never"
    seconds = (now - value).total_seconds()
    told = _span(abs(seconds))
    return f"in {told}" if seconds < 0 else f"{told} ago"


def _span(seconds: float) -> str:
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return f"{int(seconds)} s"


def size(value: float | None) -> str:
    """A number of bytes for people."""
    left = float(value or 0)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if left < 1024:  # noqa: PLR2004 — the step between units
            return f"{left:.0f} {unit}" if unit == "B" or left >= 10 else f"{left:.1f} {unit}"  # noqa: PLR2004 — two digits do
        left /= 1024
    return f"{left:.1f} TiB"


def number(value: int | None) -> str:
    """A number with separators."""
    return f"{value or 0:,}"


def at(document_id: object, base: str = "/d/") -> str:
    """The address of a document's page."""
    return base + quote(str(document_id), safe="/:@")


def outside(address: object) -> str:
    """An address that a document names; only one that leads to a web page leads anywhere."""
    text = str(address or "")
    return text if text.startswith(("https://", "http://")) else ""


def host(address: object) -> str:
    """The host of an address, for people who want to know where a link leads."""
    try:
        return plain(urlsplit(str(address or "")).hostname)
    except ValueError:
        return ""


def query(pairs: Mapping[str, Any]) -> str:
    """A query string without what is empty."""
    return urlencode({name: value for name, value in pairs.items() if value}, doseq=True)


@cache
def asset(name: str) -> str:
    """The address of a file of ours; another content has another address."""
    content = (_STATIC / name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:8]}"


SECONDS: Final = 10.0
"""How old a page may be that somebody is shown."""
MOST_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _TemplatePage:
    response: Response
    at: float


class Kept:
    """Pages by whatever decides what is on them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pages: OrderedDict[Hashable, _TemplatePage] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Response]) -> Response:
        """The page under a key: the one that was made some seconds ago, or else another."""
        now = self._clock.monotonic()
        with self._lock:
            page = self._pages.get(key)
        if page is not None and now - page.at < SECONDS:
            return page.response
        response = make()
        with self._lock:
            self._forget(key)
            self._pages[key] = _TemplatePage(response, now)
            self._bytes += len(response.body)
            while self._bytes > MOST_BYTES:
                self._forget(next(iter(self._pages)))
        return response

    def _forget(self, key: Hashable) -> None:
        page = self._pages.pop(key, None)
        self._bytes -= len(page.response.body) if page else 0

"""What surrounds every request: bodies are bounded, answers are hardened, no error leaks.

The requests of this server: how many, of which route, how answered, and how soon.

These figures are the process's own, and begin at nought with it.

Answers that are sent only to whoever does not have them yet.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any, Final

import structlog
from fastapi import Request
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fonds import ids
from fonds.api.problems import UNEXPECTED, ProblemError, answer
from fonds.seams import Clock

LARGEST_BODY: Final = 1024 * 1024
STREAMED: Final = ("/files/", "/upload/files", "/webhooks/")
"""Paths whose handlers read the body in pieces, each with a limit of its own."""

_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HARDENED: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_DEFAULTS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", _POLICY),
)
"""For answers that say nothing else themselves."""

_OURS: Final = "/fonds/"

_log: Final = structlog.get_logger("fonds.api")


class Edge:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and answer 500 in place of an application that broke."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_begun = False

        async def hardened(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                _harden(message)
            await send(message)

        try:
            await self._app(scope, _bounded(scope, receive), hardened)
        except Exception as error:
            _log.error("request_failed", **_place(error), method=scope["method"])
            if is_begun:
                raise
            await answer(scope, UNEXPECTED)(scope, receive, hardened)


def _harden(message: Message) -> None:
    headers = [*message.get("headers", ()), *_HARDENED]
    given = {name for name, _ in headers}
    message["headers"] = [*headers, *(each for each in _DEFAULTS if each[0] not in given)]


def _bounded(scope: Scope, receive: Receive) -> Callable[[], Awaitable[Message]]:
    if scope["method"] in _BODILESS or scope["path"].startswith(STREAMED):
        return receive
    size = _announced(scope)

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        refuse_beyond(LARGEST_BODY, size)
        return message

    async def refused() -> Message:
        refuse_beyond(LARGEST_BODY, size)
        return await receive()

    if size > LARGEST_BODY:
        return refused
    size = 0
    return bounded


def _announced(scope: Scope) -> int:
    given = Headers(scope=scope).get("content-length", "")
    return int(given[:18]) if given.isascii() and given.isdigit() else 0


def refuse_beyond(most: int, size: int) -> None:
    """Stop at the first byte too many."""
    if size > most:
        raise ProblemError(413, "too-large", f"a body may have at most {most} bytes here")


def _place(error: Exception) -> dict[str, str]:
    """Which error, and where in our code; its text may hold what was sent, or a statement's."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if _OURS in each.filename]
    at = f"{frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return {"error": type(error).__name__, "at": at}


FIGURE: Final = (
    "fonds_http_request_seconds",
    "Time until the answer to a request began.",
    ("method", "route", "status"),
)
"""Name, meaning and labels of what is counted."""
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
UNROUTED: Final = "none"
"""Stands for whatever leads to no route: their number has no bound."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class Traffic:
    """Counts requests; one for an application."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(*FIGURE, buckets=SECONDS, registry=self._registry)

    def count(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one request by its route, never by its path."""
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = getattr(scope.get("route"), "path", UNROUTED)
        self._seconds.labels(method, route, str(status)).observe(seconds)

    def render(self) -> str:
        """The figures in Prometheus' text format."""
        # When each series began is of no use to anybody, and as long as the figures.
        lines = generate_latest(self._registry).decode().splitlines(keepends=True)
        return "".join(line for line in lines if "_seconds_created" not in line)


class Watched:
    """A layer that tells of each request once its answer begins."""

    def __init__(self, app: ASGIApp, traffic: Traffic, clock: Clock) -> None:
        self._app = app
        self._traffic = traffic
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._clock.monotonic()

        async def seen(message: Message) -> None:
            if message["type"] == "http.response.start":
                took = self._clock.monotonic() - began
                self._traffic.count(scope, message["status"], took)
            await send(message)

        await self._app(scope, receive, seen)


_KEPT: Final = {"Cache-Control": "no-cache", "Vary": "Authorization, Cookie"}
"""An answer may be kept, and is asked about again before it is used."""
UNCHANGED: Final = {"description": "It is as you have it."}
"""For the `responses` of a route that answers so."""


def etag_of(*parts: Any) -> str:
    """A strong tag: the same for the same bytes, another for any other."""
    return f'"{ids.json_sha256([*parts])[:32]}"'


def answered(
    request: Request,
    tag: str,
    make: Callable[[], Response],
    *,
    changed_at: datetime | None = None,
) -> Response:
    """What `make` gives, or 304 to a client that has it."""
    headers = {**_KEPT, "ETag": tag}
    if changed_at is not None:
        headers["Last-Modified"] = format_datetime(changed_at.astimezone(UTC), usegmt=True)
    if _is_held(request.headers, tag, changed_at):
        return Response(status_code=304, headers=headers)
    response = make()
    response.headers.update(headers)
    return response


def _is_held(sent: Mapping[str, str], tag: str, changed_at: datetime | None) -> bool:
    if (given := sent.get("if-none-match")) is not None:
        tags = {each.strip().removeprefix("W/") for each in given.split(",")}
        return tag in tags or tags == {"*"}
    since = sent.get("if-modified-since")
    if since is None or changed_at is None:
        return False
    try:
        held = parsedate_to_datetime(since)
    except ValueError:
        return False
    # The header knows whole seconds only; one without a zone means nothing.
    return held.tzinfo is not None and changed_at.replace(microsecond=0) <= held

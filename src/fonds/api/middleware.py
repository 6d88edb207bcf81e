"""Middleware: request limits, security headers, request metrics and conditional responses.

Request metrics belong to this process and start at zero with it.
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
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fonds import ids
from fonds.api.problems import UNEXPECTED, ProblemError, error_response
from fonds.seams import Clock

MAX_REQUEST_BYTES: Final = 1024 * 1024
STREAMED: Final = ("/files/", "/upload/files", "/webhooks/")
"""Paths whose handlers read the body in chunks, with a limit of their own."""

_METHODS_WITHOUT_CONTENT: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_CONTENT_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_DEFAULT_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", _CONTENT_POLICY),
)
"""For responses that do not set these headers."""

_OWN_CODE: Final = "/fonds/"

_log: Final = structlog.get_logger("fonds.api")


class ResponseGuard:
    """Outermost middleware: limits bodies, adds security headers, hides unexpected errors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; an unexpected error becomes a 500 without details."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_started = False

        async def send_hardened(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                _harden(message)
            await send(message)

        try:
            await self._app(scope, _bounded(scope, receive), send_hardened)
        except ClientDisconnect:
            return  # there is no client to respond to
        except Exception as error:
            _log.error("request_failed", **_error_location(error), method=scope["method"])
            if has_started:
                raise
            await error_response(scope, UNEXPECTED)(scope, receive, send_hardened)


def _harden(message: Message) -> None:
    headers = [*message.get("headers", ()), *_SECURITY_HEADERS]
    names = {name for name, _ in headers}
    message["headers"] = [*headers, *(each for each in _DEFAULT_HEADERS if each[0] not in names)]


def _bounded(scope: Scope, receive: Receive) -> Callable[[], Awaitable[Message]]:
    if scope["method"] in _METHODS_WITHOUT_CONTENT or scope["path"].startswith(STREAMED):
        return receive
    size = _declared_size(scope)

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        refuse_beyond(MAX_REQUEST_BYTES, size)
        return message

    async def refused() -> Message:
        refuse_beyond(MAX_REQUEST_BYTES, size)
        return await receive()

    if size > MAX_REQUEST_BYTES:
        return refused
    size = 0
    return bounded


def _declared_size(scope: Scope) -> int:
    header = Headers(scope=scope).get("content-length", "")
    return int(header[:18]) if header.isascii() and header.isdigit() else 0


def refuse_beyond(max_bytes: int, size: int) -> None:
    """Raise 413 if a body is larger than allowed."""
    if size > max_bytes:
        raise ProblemError(
            413, "too-large", f"the body is too large: at most {max_bytes} bytes are accepted here"
        )


def _error_location(error: Exception) -> dict[str, str]:
    """Type and location of an error; its text may contain user data or SQL."""
    frames = [
        each for each in traceback.extract_tb(error.__traceback__) if _OWN_CODE in each.filename
    ]
    at = f"{frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return {"error": type(error).__name__, "at": at}


HISTOGRAM: Final = (
    "fonds_http_request_seconds",
    "Time until the answer to a request began.",
    ("method", "route", "status"),
)
"""Name, help text and labels."""
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
UNROUTED: Final = "none"
"""The label of requests without a route: the number of such paths is unbounded."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class RequestMetrics:
    """Durations of requests by method, route and status."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(*HISTOGRAM, buckets=BUCKETS, registry=self._registry)

    def count(self, scope: Scope, status: int, seconds: float) -> None:
        """Record one request by its route, never by its path."""
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = getattr(scope.get("route"), "path", UNROUTED)
        self._seconds.labels(method, route, str(status)).observe(seconds)

    def render(self) -> str:
        """The metrics in Prometheus' text format."""
        # The creation time of each series would double the output and is not used.
        lines = generate_latest(self._registry).decode().splitlines(keepends=True)
        return "".join(line for line in lines if "_seconds_created" not in line)


class MetricsMiddleware:
    """Middleware that records each request when its response starts."""

    def __init__(self, app: ASGIApp, request_metrics: RequestMetrics, clock: Clock) -> None:
        self._app = app
        self._traffic = request_metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = self._clock.monotonic()

        async def send_recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                seconds = self._clock.monotonic() - started
                self._traffic.count(scope, message["status"], seconds)
            await send(message)

        await self._app(scope, receive, send_recorded)


_REVALIDATE: Final = {"Cache-Control": "no-cache", "Vary": "Authorization, Cookie"}
"""Clients may cache a response, but must revalidate it."""
UNCHANGED: Final = {"description": "Your copy is current."}
"""For the `responses` of a route."""


def etag_of(*parts: Any) -> str:
    """A strong entity tag of these values."""
    return f'"{ids.json_sha256([*parts])[:32]}"'


def conditional_response(
    request: Request,
    tag: str,
    make: Callable[[], Response],
    *,
    changed_at: datetime | None = None,
) -> Response:
    """The response that `make` returns, or 304 if the client has it already."""
    headers = {**_REVALIDATE, "ETag": tag}
    if changed_at is not None:
        headers["Last-Modified"] = format_datetime(changed_at.astimezone(UTC), usegmt=True)
    if _is_current(request.headers, tag, changed_at):
        return Response(status_code=304, headers=headers)
    response = make()
    response.headers.update(headers)
    return response


def _is_current(sent: Mapping[str, str], tag: str, changed_at: datetime | None) -> bool:
    if (header := sent.get("if-none-match")) is not None:
        tags = {each.strip().removeprefix("W/") for each in header.split(",")}
        return tag in tags or tags == {"*"}
    since = sent.get("if-modified-since")
    if since is None or changed_at is None:
        return False
    try:
        cached_at = parsedate_to_datetime(since)
    except (ValueError, OverflowError):
        return False
    # The header has whole seconds only; one without a zone is invalid.
    return cached_at.tzinfo is not None and changed_at.replace(microsecond=0) <= cached_at

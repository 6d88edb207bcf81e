"""What surrounds every request: bodies are bounded, answers are hardened, no error leaks."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fonds.api.problems import UNEXPECTED, ProblemError, answer

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

"""The server over HTTP: on loopback, or with a token; only under names it is known by."""

from __future__ import annotations

import asyncio
import hmac
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fonds.mcp.exposure import is_any
from fonds.mcp.server import LibraryServer

PATH: Final = "/mcp"
LARGEST_REQUEST: Final = 1024 * 1024
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_GRACE: Final = 2
"""Seconds an open stream may go on after the server was told to stop."""


def make_app(
    server: LibraryServer, *, host: str, token: str = "", names: Sequence[str] = ()
) -> ASGIApp:
    """The server as an ASGI application that checks Host, Origin and token of each request."""
    known = [*_LOOPBACK, *names, *([] if is_any(host) else [_in_address(host)])]
    hosts = [spelled for name in known for spelled in (name, f"{name}:*")]
    origins = [f"{scheme}://{spelled}" for scheme in ("http", "https") for spelled in hosts]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        # No tool keeps anything between two calls, so neither does the server.
        stateless_http=True,
        max_request_body_size=LARGEST_REQUEST,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    return TokenGuard(app, token) if token else app


class TokenGuard:
    """Lets through only requests that carry the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 in place of the application where the token is missing or wrong."""
        if scope["type"] == "lifespan" or self._carries_token(scope):
            await self._app(scope, receive, send)
            return
        problem = {"error": "unauthorized", "hint": "send Authorization: Bearer and the token"}
        refusal = JSONResponse(
            problem, HTTPStatus.UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"}
        )
        await refusal(scope, receive, send)

    def _carries_token(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        # In constant time: how long a comparison takes must not tell how much of it is right.
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound, so that its port is known; 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def address_of(listening: socket.socket, host: str) -> str:
    """What clients connect to."""
    name = "127.0.0.1" if host == "0.0.0.0" else _in_address(host)  # noqa: S104 — it is not bound here
    return f"http://{name}:{listening.getsockname()[1]}{PATH}"


async def serve(app: ASGIApp, listening: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    server = _Quiet(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    await server.serve(sockets=[listening])


class _Quiet(uvicorn.Server):
    """Ends well when told to; uvicorn would raise the signal once more after its end."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        self.should_exit = True


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host

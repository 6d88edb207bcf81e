"""The MCP server over HTTP: on loopback, or with API tokens, and only for allowed host names."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

import anyio
import anyio.to_thread
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fonds.connections import ConnectionLimits, bounded_protocol
from fonds.errors import DatabaseUnavailableError
from fonds.library import Library
from fonds.mcp.server import OWNER, LibraryServer
from fonds.serving import is_any, is_exposed
from fonds.uploads import users
from fonds.uploads.users import Caller

Authenticate = Callable[[str], Caller | None]
"""Returns the user of a token; None for an invalid one."""

PATH: Final = "/mcp"
MAX_REQUEST_BYTES: Final = 1024 * 1024
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_GRACE_SECONDS: Final = 2
"""How long open streams may continue after the signal to stop."""
_LOOKUP_CONCURRENCY: Final = 4
"""Concurrent token lookups; each uses a database connection."""
_UNAUTHORIZED: Final = {
    "error": "unauthorized",
    "hint": "send the header Authorization: Bearer with a token from `fonds token create`",
}
_UNAVAILABLE: Final = {"error": "unavailable", "hint": "try again later"}


def make_app(
    server: LibraryServer, authenticate: Authenticate, *, host: str, names: Sequence[str] = ()
) -> ASGIApp:
    """Make the ASGI application, which checks Host, Origin and token of each request."""
    host_names = [*_LOOPBACK, *names, *([] if is_any(host) else [_bracketed(host)])]
    hosts = [pattern for name in host_names for pattern in (name, f"{name}:*")]
    origins = [f"{scheme}://{pattern}" for scheme in ("http", "https") for pattern in hosts]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        # Tools have no state between calls.
        stateless_http=True,
        max_request_body_size=MAX_REQUEST_BYTES,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    return TokenGuard(app, authenticate, is_required=is_exposed(host, names))


def token_authenticator(library: Library) -> Authenticate:
    """Looks up the token of each request, so that revoking one takes effect at once."""

    def authenticate(secret: str) -> Caller | None:
        with library.database.read() as connection:
            return users.authenticate(connection, secret, library.seams.clock.now())

    return authenticate


class TokenGuard:
    """Middleware that authenticates tokens; without one, only public documents are visible."""

    def __init__(self, app: ASGIApp, authenticate: Authenticate, *, is_required: bool) -> None:
        self._app = app
        self._authenticate = authenticate
        self._is_required = is_required
        self._lookup_slots = anyio.CapacityLimiter(_LOOKUP_CONCURRENCY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; 401 if its token is invalid or missing."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        credentials = [value for name, value in scope["headers"] if name == b"authorization"]
        if not credentials and not self._is_required:
            await self._app({**scope, OWNER: None}, receive, send)
            return
        try:
            caller = await anyio.to_thread.run_sync(
                self._caller, credentials, limiter=self._lookup_slots
            )
        except (SQLAlchemyError, DatabaseUnavailableError):
            await JSONResponse(_UNAVAILABLE, HTTPStatus.SERVICE_UNAVAILABLE)(scope, receive, send)
            return
        if caller is None:
            # The same response for all causes, so that it does not reveal a revoked token.
            response = JSONResponse(
                _UNAUTHORIZED, HTTPStatus.UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"}
            )
            await response(scope, receive, send)
            return
        await self._app({**scope, OWNER: caller.user_id}, receive, send)

    def _caller(self, credentials: Sequence[bytes]) -> Caller | None:
        if len(credentials) != 1:
            return None
        scheme, _, token = credentials[0].partition(b" ")
        is_bearer = scheme.lower() == b"bearer"
        return self._authenticate(token.strip().decode("latin-1")) if is_bearer else None


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind a socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def address_of(listening: socket.socket, host: str) -> str:
    """The address to which clients connect."""
    name = "127.0.0.1" if host == "0.0.0.0" else _bracketed(host)  # noqa: S104 — it is not bound here
    return f"http://{name}:{listening.getsockname()[1]}{PATH}"


async def serve(
    app: ASGIApp, listening: socket.socket, *, on_stop: Callable[[], None] = lambda: None
) -> None:
    """Serve until cancelled; then `on_stop` is called, and requests have two seconds to end."""
    limits = ConnectionLimits()
    config = uvicorn.Config(
        app,
        http=bounded_protocol(limits),
        timeout_keep_alive=limits.idle_seconds,
        log_config=None,
        access_log=False,
        ws="none",
        server_header=False,
        proxy_headers=False,  # uvicorn would trust every process of this machine
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = _GracefulServer(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        on_stop()
        await serving


class _GracefulServer(uvicorn.Server):
    """Leaves signals to the command that serves."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host

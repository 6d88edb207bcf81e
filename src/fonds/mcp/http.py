"""The server over HTTP: on loopback, or with API tokens; only under names it is known by."""

from __future__ import annotations

import asyncio
import signal
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

from fonds.library import Library
from fonds.mcp.server import OWNER, LibraryServer
from fonds.serving import is_any, is_exposed
from fonds.uploads import users
from fonds.uploads.users import Caller

Authenticate = Callable[[str], Caller | None]
"""Who a token belongs to; None if it is good for nothing."""

PATH: Final = "/mcp"
LARGEST_REQUEST: Final = 1024 * 1024
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_GRACE: Final = 2
"""Seconds an open stream may go on after the server was told to stop."""
_LOOKED_UP_AT_ONCE: Final = 4
"""Tokens; each takes a connection to the database."""
_UNAUTHORIZED: Final = {
    "error": "unauthorized",
    "hint": "send Authorization: Bearer and a token of `fonds token create`",
}
_UNAVAILABLE: Final = {"error": "unavailable", "hint": "try again later"}


def make_app(
    server: LibraryServer, authenticate: Authenticate, *, host: str, names: Sequence[str] = ()
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
    return TokenGuard(app, authenticate, is_required=is_exposed(host, names))


def by_token(library: Library) -> Authenticate:
    """Looks tokens up in a library, anew for each request: one that is revoked ends at once."""

    def authenticate(secret: str) -> Caller | None:
        with library.database.read() as connection:
            return users.authenticate(connection, secret, library.seams.clock.now())

    return authenticate


class TokenGuard:
    """Tells the application whose token a request carries; without one it shows what is public."""

    def __init__(self, app: ASGIApp, authenticate: Authenticate, *, is_required: bool) -> None:
        self._app = app
        self._authenticate = authenticate
        self._is_required = is_required
        self._turns = anyio.CapacityLimiter(_LOOKED_UP_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 in place of the application where a token is wrong, or missing."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given and not self._is_required:
            await self._app({**scope, OWNER: None}, receive, send)
            return
        try:
            caller = await anyio.to_thread.run_sync(self._caller, given, limiter=self._turns)
        except SQLAlchemyError:
            await JSONResponse(_UNAVAILABLE, HTTPStatus.SERVICE_UNAVAILABLE)(scope, receive, send)
            return
        if caller is None:
            # The same whatever is wrong: nobody learns that a token was good once.
            refusal = JSONResponse(
                _UNAUTHORIZED, HTTPStatus.UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"}
            )
            await refusal(scope, receive, send)
            return
        await self._app({**scope, OWNER: caller.user_id}, receive, send)

    def _caller(self, given: Sequence[bytes]) -> Caller | None:
        if len(given) != 1:
            return None
        scheme, _, token = given[0].partition(b" ")
        is_bearer = scheme.lower() == b"bearer"
        return self._authenticate(token.strip().decode("latin-1")) if is_bearer else None


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

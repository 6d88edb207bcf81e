"""The start of `fonds serve` while its database does not respond: it answers 503 until it does."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, TypeVar

from starlette.types import Receive, Scope, Send

from fonds.api.problems import error_text, problem_response
from fonds.cli.output import err
from fonds.cli.process import run_until_stopped
from fonds.errors import DatabaseUnavailableError
from fonds.mcp import http

RETRY_SECONDS: Final = 1.0
"""Between two attempts to open the library."""

T = TypeVar("T")


def prepare_or_wait(prepare: Callable[[], T], listening: socket.socket, address: str) -> T | None:
    """The result of `prepare`, as soon as the database responds; None if asked to stop.

    A server does not wait: meanwhile clients get 503, and may try again.
    """
    try:
        return prepare()
    except DatabaseUnavailableError as error:
        message = f"{error}; {address} answers 503 until it does, stop it with Ctrl-C"
        err.print(message, markup=False, highlight=False)
    return run_until_stopped(_serve_until_prepared(prepare, listening), exit_code=0)


async def _serve_until_prepared(prepare: Callable[[], T], listening: socket.socket) -> T | None:
    # Closing the copy of the socket leaves the address to the server that follows.
    serving = asyncio.ensure_future(http.serve(_respond_unavailable, listening.dup()))
    try:
        while True:
            try:
                return await asyncio.to_thread(prepare)
            except DatabaseUnavailableError:
                await asyncio.sleep(RETRY_SECONDS)
    except asyncio.CancelledError:
        return None
    finally:
        serving.cancel()
        await serving


async def _respond_unavailable(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        text = error_text(DatabaseUnavailableError())
        assert text is not None
        await problem_response(text, scope["path"])(scope, receive, send)

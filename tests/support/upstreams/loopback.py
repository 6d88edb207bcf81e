"""Servers on loopback: one with threads that keeps tracebacks, and a bare port for asyncio."""

from __future__ import annotations

import asyncio
import socket
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Talk = Callable[[socket.socket], Coroutine[Any, Any, None]]
"""What is done about a client; cancelled when the port is closed, perhaps before it has begun."""


@asynccontextmanager
async def open_port(talk: Talk, port: int = 0) -> AsyncIterator[int]:
    """The number of a port that accepts clients until the block ends; then all are closed.

    asyncio's own server leaks what it accepts while it is being closed, and Python warns of that
    in whichever test runs next.
    """
    loop = asyncio.get_running_loop()
    talks: dict[asyncio.Task[None], socket.socket] = {}

    def let_in() -> None:
        with suppress(BlockingIOError, ConnectionAbortedError):  # who came has gone
            connection, _ = listening.accept()
            talks[loop.create_task(talk(connection))] = connection

    with socket.create_server(("127.0.0.1", port), backlog=256) as listening:
        listening.setblocking(False)
        loop.add_reader(listening, let_in)
        try:
            yield listening.getsockname()[1]
        finally:
            loop.remove_reader(listening)
    for task in talks:
        task.cancel()
    await asyncio.gather(*talks, return_exceptions=True)
    await asyncio.sleep(0)
    for connection in talks.values():
        connection.close()


class LoopbackServer(ThreadingHTTPServer):
    """Waits for its threads, and keeps the tracebacks of handlers that crashed."""

    daemon_threads = False
    request_queue_size = 256

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.crashes: list[str] = []
        super().__init__(("127.0.0.1", 0), handler)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 — the library's names
        text = traceback.format_exc()
        # Clients that gave up waiting are part of the game.
        if "ConnectionResetError" not in text and "BrokenPipeError" not in text:
            self.crashes.append(text)

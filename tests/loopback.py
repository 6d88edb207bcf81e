"""A loopback server that remembers what went wrong in it."""

from __future__ import annotations

import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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

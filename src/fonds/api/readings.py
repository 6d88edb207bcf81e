"""The queue of requests for the reader processes: they wait in the event loop, and not for ever.

A reading takes up to minutes, so its request waits in no thread that other requests need. Each
client has one reading at a time and a few that wait, so that no one can occupy all processes.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeVar
from uuid import UUID

from fastapi import Request

from fonds.api.dependencies import client_address
from fonds.api.problems import ProblemError
from fonds.context import READERS

MAX_WAITING: Final = 64
"""Requests that wait, of all clients."""
MAX_WAITING_OF_CLIENT: Final = 4
"""Requests of one client that wait, beside the one that is being read."""
WAIT_SECONDS: Final = 45.0
"""How long a request waits for a reader process; proxies give up after a minute."""
MAX_BYTES: Final = 64 << 20
"""The size of a file, with its text, that is read for a request; commands read larger ones."""

_RETRY_SECONDS: Final = "15"

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _QueuedRequest:
    client: str
    is_next: Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class ReadingQueue:
    """Requests that read files of others, as many at a time as there are reader processes."""

    def __init__(
        self,
        *,
        readers: int = READERS,
        max_waiting: int = MAX_WAITING,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._readers = readers
        self._max_waiting = max_waiting
        self._wait_seconds = wait_seconds
        self._running: set[str] = set()
        """Their clients."""
        self._waiting: list[_QueuedRequest] = []
        self._threads = ThreadPoolExecutor(readers, "fonds-readings")

    async def run(self, request: Request, work: Callable[[], T], *, user: UUID | None = None) -> T:
        """Call `work` in a thread when a reader process is free for this client.

        The client is the user, or the address of a visitor. 429 if too many of its requests wait,
        503 if too many wait in all, or this one for too long.
        """
        client = str(user) if user else client_address(request)
        await self._wait(client)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._end(client)

    async def _wait(self, client: str) -> None:
        if sum(request.client == client for request in self._waiting) >= MAX_WAITING_OF_CLIENT:
            raise _too_many(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too-many-requests",
                "several of your requests are waiting to be read; try again when they have ended",
            )
        if len(self._waiting) >= self._max_waiting:
            raise _busy()
        queued = _QueuedRequest(client)
        self._waiting.append(queued)
        self._start_next()
        try:
            await asyncio.wait_for(queued.is_next, self._wait_seconds)
        except TimeoutError:
            self._leave(queued)
            raise _busy() from None
        except BaseException:
            self._leave(queued)
            raise

    def _start_next(self) -> None:
        """Give free readers to the requests that have waited longest, one for each client."""
        for request in list(self._waiting):
            if len(self._running) >= self._readers:
                return
            if request.client not in self._running:
                self._waiting.remove(request)
                self._running.add(request.client)
                request.is_next.set_result(None)

    def _leave(self, request: _QueuedRequest) -> None:
        with suppress(ValueError):
            self._waiting.remove(request)
            return
        self._end(request.client)

    def _end(self, client: str) -> None:
        self._running.discard(client)
        self._start_next()


def reading_queue(request: Request) -> ReadingQueue:
    """The queue of the application that serves a request."""
    queue: ReadingQueue = request.app.state.reading_queue
    return queue


def _busy() -> ProblemError:
    return _too_many(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "readers-busy",
        "the server is reading other documents; try again in a while",
    )


def _too_many(status: HTTPStatus, kind: str, detail: str) -> ProblemError:
    return ProblemError(status, kind, detail, headers={"Retry-After": _RETRY_SECONDS})

"""Connections that are kept alive between requests.

httpcore's own pool looks at every connection for every request, which takes longer than the
request itself where one host is asked over many of them.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from contextlib import suppress
from typing import Final

import httpcore
import httpx

MOST: Final = 32
"""Connections at once, to all hosts together."""
KEPT_ALIVE_SECONDS: Final = 30.0
_HARMLESS: Final = frozenset({b"GET", b"HEAD"})


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()


class Exchange:
    """An answer, and the connection that it still comes over."""

    def __init__(
        self,
        answer: httpcore.Response,
        connection: httpcore.AsyncHTTPConnection,
        owner: Connections,
    ) -> None:
        self.answer = answer
        self._connection = connection
        self._owner = owner
        self._is_open = True

    async def aclose(self) -> None:
        """Read no further, and let the connection go; it is kept if the answer came whole."""
        if self._is_open:
            self._is_open = False
            try:
                await self.answer.aclose()
            finally:
                await self._owner.take_back(self._connection)


class Connections:
    """Asks over a connection that is idle, or over a new one."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend) -> None:
        self._backend = backend
        self._room = asyncio.Semaphore(MOST)
        self._idle: list[httpcore.AsyncHTTPConnection] = []
        self._keeps = MOST

    async def ask(self, request: httpcore.Request) -> Exchange:
        """The answer to one request; whoever gets it closes it.

        A server may end a connection in the moment when we use it again: then nothing was
        answered, and a question that changes nothing is asked once more over a new one.
        """
        await self._room.acquire()
        try:
            connection = await self._idle_one(request.url.origin)
            if connection is not None and request.method in _HARMLESS:
                with suppress(httpcore.RemoteProtocolError, httpcore.NetworkError):
                    return Exchange(
                        await connection.handle_async_request(request), connection, self
                    )
                connection = None
            connection = connection or self._new(request.url.origin)
            return Exchange(await connection.handle_async_request(request), connection, self)
        except BaseException:  # the connection has closed itself
            self._room.release()
            raise

    async def take_back(self, connection: httpcore.AsyncHTTPConnection) -> None:
        """Keep a connection for the next request, if it can serve one."""
        self._room.release()
        if connection.is_idle():
            self._idle.append(connection)
        while len(self._idle) > self._keeps:
            await self._idle.pop(0).aclose()

    async def aclose(self) -> None:
        """Close every connection: now, or when its answer has been read."""
        self._keeps = 0
        while self._idle:
            await self._idle.pop().aclose()

    async def _idle_one(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection | None:
        """The one that has been idle for longest: if its server has ended it, that is known."""
        place = 0
        while place < len(self._idle):
            if not self._idle[place].can_handle_request(origin):
                place += 1
                continue
            connection = self._idle.pop(place)
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return None

    def _new(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        return httpcore.AsyncHTTPConnection(
            origin,
            ssl_context=_tls(),
            keepalive_expiry=KEPT_ALIVE_SECONDS,
            network_backend=self._backend,
        )

"""Connections that are kept alive between requests.

httpcore's own pool looks at every connection for every request, which takes longer than the
request itself where one host is asked over many of them.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from fonds.fetch.dialogue import BreachError, Dialogue, connect
from fonds.fetch.heads import Head
from fonds.fetch.sockets import Dialer
from fonds.fetch.wire import Question

MOST: Final = 32
"""Connections at once, to all hosts together."""
_HARMLESS: Final = frozenset({b"GET", b"HEAD"})


@functools.cache
def _tls() -> ssl.SSLContext:
    import httpx  # noqa: PLC0415 — knows where certificates are; not everybody asks over TLS

    context = httpx.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Exchange:
    """An answer, and the connection that it still comes over."""

    def __init__(self, head: Head, connection: Dialogue, owner: Connections) -> None:
        self.head = head
        self._connection = connection
        self._owner = owner
        self._is_open = True

    def body(self) -> AsyncIterator[bytes]:
        """What follows the head, as it arrives."""
        return self._connection.body()

    async def aclose(self) -> None:
        """Read no further, and let the connection go; it is kept if the answer came whole."""
        if self._is_open:
            self._is_open = False
            try:
                await self._connection.end()
            finally:
                await self._owner.take_back(self._connection)


class Connections:
    """Asks over a connection that is idle, or over a new one."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._room = asyncio.Semaphore(MOST)
        self._idle: list[Dialogue] = []
        self._busy: set[Dialogue] = set()
        self._keeps = MOST

    async def ask(self, question: Question) -> Exchange:
        """The answer to one request; whoever gets it closes it.

        A server may end a connection in the moment when we use it again: then nothing was
        answered, and a question that changes nothing is asked once more over a new one.
        """
        await self._room.acquire()
        try:
            connection = await self._idle_one(question.address.origin)
            if connection is not None and question.method in _HARMLESS:
                with suppress(BreachError, ConnectionError):
                    return await self._answered(connection, question)
                connection = None
            connection = connection or await connect(self._dialer, question, _tls)
            return await self._answered(connection, question)
        except BaseException:  # the connection has closed itself
            self._room.release()
            raise

    async def _answered(self, connection: Dialogue, question: Question) -> Exchange:
        head = await connection.ask(question)
        self._busy.add(connection)
        return Exchange(head, connection, self)

    async def take_back(self, connection: Dialogue) -> None:
        """Keep a connection for the next request, if it can serve one."""
        self._room.release()
        self._busy.discard(connection)
        if connection.is_idle:
            self._idle.append(connection)
        while len(self._idle) > self._keeps:
            await self._idle.pop(0).aclose()

    async def aclose(self) -> None:
        """Close every connection, also one whose answer nobody has read to its end."""
        self._keeps = 0
        while self._idle or self._busy:
            connection = self._idle.pop() if self._idle else self._busy.pop()
            await connection.aclose()

    async def _idle_one(self, origin: tuple[str, str, int]) -> Dialogue | None:
        """The one that has been idle for longest: if its server has ended it, that is known."""
        place = 0
        while place < len(self._idle):
            if self._idle[place].origin != origin:
                place += 1
                continue
            connection = self._idle.pop(place)
            if not connection.has_expired:
                return connection
            await connection.aclose()
        return None

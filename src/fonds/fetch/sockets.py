"""Sockets for HTTP, on asyncio alone.

Those of the common libraries go through anyio, whose cancel scopes take longer than a small answer
takes to arrive. Here a timer runs only while something is really waited for.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections import deque
from contextlib import suppress
from typing import Any, Final, Protocol

_MOST_HELD: Final = 256 * 1024
"""Bytes that are taken from the network before somebody has read them."""


class Stream(Protocol):
    """A connection; patience is in seconds, and ends with a TimeoutError."""

    async def read(self, max_bytes: int, patience: float | None) -> bytes:
        """What has arrived, or arrives next; nothing at the end."""
        ...

    async def write(self, data: bytes, patience: float | None) -> None:
        """Send, and wait where the other end does not take it."""
        ...

    async def start_tls(self, context: ssl.SSLContext, host: str, patience: float | None) -> Stream:
        """The same connection, encrypted."""
        ...

    @property
    def is_readable(self) -> bool:
        """Whether something has arrived, be it the end."""
        ...

    async def aclose(self) -> None:
        """Close the connection, without waiting for the other end."""
        ...


class Dialer(Protocol):
    """Opens connections."""

    async def connect(self, host: str, port: int, patience: float | None) -> Stream:
        """A connection to an address; OSError if there is none to be had."""
        ...


class Sockets:
    """Connects to whatever it is told to."""

    async def connect(self, host: str, port: int, patience: float | None) -> Stream:
        """A connection to an address."""
        loop = asyncio.get_running_loop()
        stream = _Socket()
        try:
            async with asyncio.timeout(patience):
                await loop.create_connection(lambda: stream, host, port)
        except TimeoutError as error:
            raise TimeoutError(f"{host} took too long") from error
        return stream


class _Socket(asyncio.Protocol):
    """One end of a connection: asyncio tells what happens, and who reads and writes asks."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._has_ended = self._is_full = self._is_stuck = False
        self._trouble: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    # What asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._held += len(data)
        if self._held > _MOST_HELD and not self._is_full:
            self._is_full = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._has_ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended, self._trouble = True, exc
        self._wake()

    def pause_writing(self) -> None:
        self._is_stuck = True

    def resume_writing(self) -> None:
        self._is_stuck = False
        self._wake()

    # What is asked for

    async def read(self, max_bytes: int, patience: float | None) -> bytes:
        if not self._pieces and not self._has_ended:
            await self._wait(patience)
        if not self._pieces:
            if self._trouble is not None:
                raise ConnectionError(str(self._trouble)) from self._trouble
            return b""
        data = self._pieces.popleft()
        if len(data) > max_bytes:
            self._pieces.appendleft(data[max_bytes:])
            data = data[:max_bytes]
        self._held -= len(data)
        if self._is_full and self._held <= _MOST_HELD // 2:
            self._is_full = False
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes, patience: float | None) -> None:
        if self._transport.is_closing():
            raise ConnectionError("the connection is closed")
        self._transport.write(data)
        while self._is_stuck and not self._has_ended:
            await self._wait(patience)

    async def aclose(self) -> None:
        self._transport.close()
        await asyncio.sleep(0)
        self._transport.abort()

    async def start_tls(self, context: ssl.SSLContext, host: str, patience: float | None) -> Stream:
        inner = _Socket()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(patience):
                inner._transport = await loop.start_tls(
                    self._transport, inner, context, server_hostname=host
                )
        except BaseException as error:
            self._transport.abort()
            if isinstance(error, TimeoutError):
                raise TimeoutError("the handshake took too long") from error
            raise
        return inner

    @property
    def is_readable(self) -> bool:
        return bool(self._pieces) or self._has_ended or self._has_more()

    def _has_more(self) -> bool:
        socket = self._transport.get_extra_info("socket")
        watched = select.poll()
        with suppress(OSError, ValueError):
            watched.register(socket, select.POLLIN)
            return bool(watched.poll(0))
        return True

    async def _wait(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _give_up, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _give_up(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())

"""Sockets for HTTP, on asyncio alone.

httpcore's own go through anyio, whose cancel scopes take longer than a small answer takes to
arrive. Here a timer runs only while something is really waited for.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import httpcore

from fonds.fetch.guard import SocketOption

_MOST_HELD: Final = 256 * 1024
"""Bytes that are taken from the network before somebody has read them."""
_NAMES: Final = {"client_addr": "sockname", "server_addr": "peername"}
"""What httpcore and asyncio call differently."""


class Sockets(httpcore.AsyncNetworkBackend):
    """Connects to whatever it is told to."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 — httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to an address."""
        loop = asyncio.get_running_loop()
        source = (local_address, 0) if local_address else None
        stream = _Stream()
        try:
            async with asyncio.timeout(timeout):
                await loop.create_connection(lambda: stream, host, port, local_addr=source)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} took too long") from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        for option in socket_options or ():
            stream.get_extra_info("socket").setsockopt(*option)
        return stream

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream, asyncio.Protocol):
    """The two ends of httpcore and asyncio in one."""

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

    # What httpcore asks for

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 — httpcore's signature
    ) -> bytes:
        """What has arrived, or arrives next; nothing at the end."""
        if not self._pieces and not self._has_ended:
            await self._wait(timeout, httpcore.ReadTimeout)
        if not self._pieces:
            if self._trouble is not None:
                raise httpcore.ReadError(str(self._trouble)) from self._trouble
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

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 — httpcore's signature
    ) -> None:
        """Send, and wait where the other end does not take it."""
        if self._transport.is_closing():
            raise httpcore.WriteError("the connection is closed")
        self._transport.write(buffer)
        while self._is_stuck and not self._has_ended:
            await self._wait(timeout, httpcore.WriteTimeout)

    async def aclose(self) -> None:
        """Close the connection, without waiting for the other end."""
        self._transport.close()
        await asyncio.sleep(0)
        self._transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 — httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        """The same connection, encrypted."""
        inner = _Stream()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                inner._transport = await loop.start_tls(
                    self._transport, inner, ssl_context, server_hostname=server_hostname
                )
        except BaseException as error:
            self._transport.abort()
            if isinstance(error, TimeoutError):
                raise httpcore.ConnectTimeout("the handshake took too long") from error
            if isinstance(error, OSError):  # ssl.SSLError is one
                raise httpcore.ConnectError(str(error)) from error
            raise
        return inner

    def get_extra_info(self, info: str) -> Any:
        """`is_readable` is whether something has arrived, be it the end."""
        if info == "is_readable":
            return bool(self._pieces) or self._has_ended or self._is_readable()
        return self._transport.get_extra_info(_NAMES.get(info, info))

    def _is_readable(self) -> bool:
        socket = self._transport.get_extra_info("socket")
        watched = select.poll()
        with suppress(OSError, ValueError):
            watched.register(socket, select.POLLIN)
            return bool(watched.poll(0))
        return True

    async def _wait(self, seconds: float | None, late: type[httpcore.TimeoutException]) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _give_up, waiter, late)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _give_up(waiter: asyncio.Future[None], late: type[httpcore.TimeoutException]) -> None:
    if not waiter.done():
        waiter.set_exception(late())

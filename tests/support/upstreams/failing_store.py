"""A proxy before a real object store: it fails as asked, and remembers what it was asked for.

    with FailingStore(s3_address, lambda request: Fault.BUSY) as way:
        ... open_blobs(way.address, seams=Seams()) ...
        assert way.count("PUT") == 6

Signatures stay valid: they cover the name under which the client knows the proxy, which is passed
on, and neither the conditions of a request nor what concerns the connection.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain, repeat
from typing import Final, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from tests.support.upstreams.loopback import open_port

PATIENCE: Final = 30.0


class Fault(Enum):
    """What can go wrong with one request."""

    BUSY = auto()
    """503; nothing was done."""
    SILENT = auto()
    """No answer until the client gives up, or the proxy closes; nothing was done."""
    BUSY_AFTERWARDS = auto()
    """503, though all was done."""
    LOST = auto()
    """All was done; the connection ends without an answer."""
    CUT = auto()
    """All was done; the connection ends inside the answer."""


@dataclass(frozen=True)
class Request:
    """A request as it arrived; header names are lower-case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def key(self) -> str:
        """What it is about: bucket or account, prefix, and the key of the object."""
        return unquote(urlsplit(self.target).path)

    @property
    def is_listing(self) -> bool:
        """Whether objects are to be listed."""
        return "list-type=" in self.target or "comp=list" in self.target


Choice = Callable[[Request], Fault | None]


def _nothing(_: Request) -> None:
    return None


def first(method: str, *faults: Fault) -> Choice:
    """The first requests of a method go wrong, each in its own way."""
    coming: Iterator[Fault | None] = chain(faults, repeat(None))
    return lambda request: next(coming) if request.method == method else None


def always(method: str, fault: Fault) -> Choice:
    """Every request of a method goes wrong."""
    return lambda request: fault if request.method == method else None


class FailingStore:
    """Runs in a thread of its own between `with` and the end of the block."""

    def __init__(
        self,
        address: str,
        choose: Choice = _nothing,
        *,
        forgets: str | None = None,
        silence: float = 1.5,
        timeout: str = "1s",
    ) -> None:
        self.choose = choose
        self.requests: list[Request] = []
        self._behind, self._forgets = address, forgets
        self._silence, self._timeout = silence, timeout
        endpoint = urlsplit(dict(parse_qsl(urlsplit(address).query))["endpoint"])
        assert endpoint.hostname
        assert endpoint.port
        self._server = (endpoint.hostname, endpoint.port)
        self._path = endpoint.path
        self._port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="failing-store", daemon=True)

    @property
    def address(self) -> str:
        """The store, by way of this proxy; clients wait for an answer for `timeout`."""
        parts = urlsplit(self._behind)
        options = dict(parse_qsl(parts.query)) | {
            "endpoint": f"http://127.0.0.1:{self._port}{self._path}",
            "timeout": self._timeout,
        }
        return urlunsplit(parts._replace(query=urlencode(options, quote_via=quote)))

    def count(self, method: str, ending: str = "") -> int:
        """How many requests of a method came for objects, those whose key ends like this."""
        return sum(
            request.method == method and not request.is_listing and request.key.endswith(ending)
            for request in self.requests
        )

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with open_port(self._attend) as self._port:
            self._ready.set()
            await self._stop.wait()

    async def _attend(self, connection: socket.socket) -> None:
        """One request, and then the connection is closed: so an answer ends where it ends."""
        reader, writer = await asyncio.open_connection(sock=connection)
        # Who is killed while asking, or has gone when the answer comes, is part of the game.
        with closing(writer), suppress(ConnectionError, asyncio.IncompleteReadError):
            request = await _read(reader)
            self.requests.append(request)
            await self._answer(request, reader, writer)

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        fault = self.choose(request)
        if fault is Fault.SILENT:
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(), self._silence)
            return
        answer = _BUSY if fault is Fault.BUSY else await self._ask(request)
        if fault is Fault.BUSY_AFTERWARDS:
            answer = _BUSY
        elif fault is Fault.LOST:
            answer = b""
        elif fault is Fault.CUT:
            answer = answer[:-1]
        writer.write(answer)
        await writer.drain()

    async def _ask(self, request: Request) -> bytes:
        """What the real server says."""
        reader, writer = await asyncio.open_connection(*self._server)
        dropped = {"connection", self._forgets if request.method == "DELETE" else None}
        headers = {name: value for name, value in request.headers.items() if name not in dropped}
        lines = [f"{request.method} {request.target} HTTP/1.1", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + request.body)
        try:
            return await reader.read()
        finally:
            writer.close()


_BUSY: Final = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)

"""An HTTP server on a loopback port that serves what it is told to, and misbehaves on request.

    with MisbehavingServer() as upstream:
        upstream.serve("/a.json", b"{}", "application/json")
        upstream.route("/search", lambda request: Response(request.query["q"].encode()))
        ... upstream.url("/a.json"), upstream.url("/truncated") ...
        assert upstream.requests[0].status == 200

Routes that are always there, each failing in its own way: `/429-storm`, `/429-then-fine`,
`/503-then-fine`, `/500-storm`, `/apology`, `/truncated`, `/truncated-gzip`, `/wrong-length`,
`/endless`, `/drip`, `/gzip-bomb`, `/redirect?to=…`, `/redirect-private`, `/redirect-loop`,
`/redirect-file`, `/redirect-nowhere`, `/etag`, `/hangs`, `/resets`, `/malformed-chunk`,
`/no-http`, `/unasked-encoding`, `/not-modified`, `/no-content`, `/partial`.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import http
import socket
import struct
import threading
import traceback
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.upstreams.loopback import open_port

METADATA_ADDRESS: Final = "http://169.254.169.254/latest/meta-data/"
LAST_MODIFIED: Final = "Mon, 02 Mar 2026 08:00:00 GMT"
FINE: Final = b"fine at last"
_ZEROS: Final = 2**20


@dataclass(frozen=True)
class Request:
    """A request as it arrived; header names are lower-case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    count: int = 1
    """How often this path has been asked for, this time included."""

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


@dataclass(frozen=True)
class Response:
    """An honest answer: its length is right, and its ETag follows from its body."""

    body: bytes = b""
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str | None] = field(default_factory=dict)
    """Added to the usual ones; None takes one away."""

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'


@dataclass(frozen=True)
class Seen:
    """A request with the status it was answered with (0: none)."""

    method: str
    target: str
    headers: Mapping[str, str]
    status: int
    body: bytes = b""


Handler = Callable[[Request], Response]
Lie = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Writes raw bytes as it likes; the connection is closed after it."""


class MisbehavingServer:
    """Runs in a thread of its own between `with` and the end of the block."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self.port = 0
        self.crashes: list[str] = []
        self._routes: dict[str, Handler] = dict(_ROUTES)
        self._prefixes: dict[str, Handler] = {}
        self._counts: Counter[str] = Counter()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="misbehaving", daemon=True)

    # What tests use

    def url(self, path: str = "/") -> str:
        """The address of a path."""
        return f"{self.address}{path}"

    @property
    def address(self) -> str:
        """The base address, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    def serve(
        self,
        path: str,
        body: bytes | str,
        content_type: str = "text/plain; charset=utf-8",
        *,
        status: int = 200,
        **headers: str | None,
    ) -> None:
        """Answer a path, or a path with its exact query, with these bytes from here on.

        Other bytes have another ETag. Header names are written with underscores;
        None takes a header away (`etag=None`).
        """
        given = {name.replace("_", "-").title(): value for name, value in headers.items()}
        content = body.encode() if isinstance(body, str) else body
        response = Response(content, status, content_type, given)
        self._routes[path] = lambda _request: response

    def route(self, path: str, handler: Handler) -> None:
        """Let a function answer a path; one that ends in `*` answers all that begin so."""
        if path.endswith("*"):
            self._prefixes[path[:-1]] = handler
        else:
            self._routes[path] = handler

    def remove(self, path: str) -> None:
        """Answer 404 from here on."""
        del self._routes[path]

    def seen(self, path: str) -> list[Seen]:
        """The requests for one path, whatever their query."""
        return [seen for seen in self.requests if urlsplit(seen.target).path == path]

    # How it runs

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the misbehaving server did not start")
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        if self.crashes and error is None:
            raise AssertionError("a route crashed:\n" + "\n".join(self.crashes))

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with open_port(self._talk) as self.port:
            self._ready.set()
            await self._stop.wait()

    async def _talk(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client went away, as clients do
        except Exception:  # noqa: BLE001 — a test's own route may raise anything; reported at exit
            self.crashes.append(traceback.format_exc())
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = self._counted(await _read_request(reader))
        path = urlsplit(request.target).path
        if path in _LIES:
            status, lie = _LIES[path]
            self._note(request, status)
            await lie(writer)
            await _close_politely(writer)
            return False
        response = _conditional(request, self._handler(request)(request))
        self._note(request, response.status)
        writer.write(_head(response) + (b"" if request.method == "HEAD" else response.body))
        await writer.drain()
        return request.headers.get("connection", "").lower() != "close"

    def _counted(self, request: Request) -> Request:
        path = urlsplit(request.target).path
        self._counts[path] += 1
        count = self._counts[path]
        return Request(request.method, request.target, request.headers, request.body, count)

    def _handler(self, request: Request) -> Handler:
        path = urlsplit(request.target).path
        exact = self._routes.get(request.target) or self._routes.get(path)
        if exact:
            return exact
        fitting = [prefix for prefix in self._prefixes if path.startswith(prefix)]
        return self._prefixes[max(fitting, key=len)] if fitting else _not_found

    def _note(self, request: Request, status: int) -> None:
        headers = dict(request.headers)
        self.requests.append(Seen(request.method, request.target, headers, status, request.body))


async def _read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    method, target, _ = line.split(" ", 2)
    pairs = (entry.partition(":") for entry in rest)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


def _conditional(request: Request, response: Response) -> Response:
    if response.status != http.HTTPStatus.OK:
        return response
    headers: dict[str, str | None] = {"ETag": response.etag}
    for name, value in response.headers.items():
        headers["ETag" if name.lower() == "etag" else name] = value
    etag, modified = headers.get("ETag"), headers.get("Last-Modified")
    asked = request.headers.get("if-none-match"), request.headers.get("if-modified-since")
    same = etag == asked[0] if asked[0] else modified == asked[1]
    if any(asked) and same:
        return Response(status=304, headers={**headers, "Content-Type": None})
    return Response(response.body, response.status, response.content_type, headers)


def _head(response: Response) -> bytes:
    headers: dict[str, str | None] = {
        "Content-Type": response.content_type,
        "Content-Length": str(len(response.body)),
        **response.headers,
    }
    if response.status in {204, 304}:
        headers["Content-Length"] = None
    return _raw_head(response.status, {k: v for k, v in headers.items() if v is not None})


def _raw_head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {_reason(status)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("utf-8")


def _reason(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Whatever"


async def _close_politely(writer: asyncio.StreamWriter) -> None:
    """Without this, unsent bytes would be lost in the abort that follows."""
    with suppress(OSError):
        await writer.drain()
        if not writer.transport.is_closing():
            writer.close()
            await writer.wait_closed()


# Honest routes


def _not_found(_request: Request) -> Response:
    return Response(b"no such page", 404)


def _moody(status: int, failures: int, **headers: str) -> Handler:
    given = {name.replace("_", "-").title(): value for name, value in headers.items()}

    def answer(request: Request) -> Response:
        if failures and request.count > failures:
            return Response(FINE)
        return Response(b"not yet", status, headers=given)

    return answer


def _redirect(request: Request) -> Response:
    status = int(request.query.get("status", "302"))
    return Response(b"elsewhere", status, headers={"Location": request.query["to"]})


def _redirect_private(request: Request) -> Response:
    to = request.query.get("to", METADATA_ADDRESS)
    return Response(b"inside", 302, headers={"Location": to})


def _always(response: Response) -> Handler:
    return lambda _request: response


_APOLOGY: Final = b"<!doctype html><title>Sorry</title><p>We are replacing this edition.</p>"
_ROUTES: Final[dict[str, Handler]] = {
    "/429-storm": _moody(429, 0, retry_after="0"),
    "/429-then-fine": _moody(429, 2, retry_after="0"),
    "/503-then-fine": _moody(503, 1),
    "/500-storm": _moody(500, 0),
    "/apology": _always(Response(_APOLOGY, content_type="text/html; charset=utf-8")),
    "/redirect": _redirect,
    "/redirect-private": _redirect_private,
    "/redirect-loop": _always(Response(status=302, headers={"Location": "/redirect-loop"})),
    "/redirect-file": _always(Response(status=302, headers={"Location": "file:///etc/passwd"})),
    "/redirect-nowhere": _always(Response(status=302)),
    "/etag": _always(Response(b"tagged", headers={"Last-Modified": LAST_MODIFIED})),
    "/not-modified": _always(Response(status=304)),
    "/no-content": _always(Response(status=204)),
    "/partial": _always(Response(b"a part", 206)),
    "/unasked-encoding": _always(Response(b"?", headers={"Content-Encoding": "br"})),
}


# Lies


async def _truncated(writer: asyncio.StreamWriter) -> None:
    writer.write(_raw_head(200, {"Content-Length": "1000"}) + b"only this")


async def _truncated_gzip(writer: asyncio.StreamWriter) -> None:
    half = gzip.compress(b"the quick brown fox " * 1000)[:-20]
    headers = {"Content-Length": str(len(half)), "Content-Encoding": "gzip"}
    writer.write(_raw_head(200, headers) + half)


async def _wrong_length(writer: asyncio.StreamWriter) -> None:
    writer.write(_raw_head(200, {"Content-Length": "4"}) + b"more than four bytes")


async def _endless(writer: asyncio.StreamWriter) -> None:
    writer.write(_raw_head(200, {"Connection": "close"}))
    while not writer.transport.is_closing():
        writer.write(bytes(65536))
        await writer.drain()
        await asyncio.sleep(0)


async def _drip(writer: asyncio.StreamWriter) -> None:
    writer.write(_raw_head(200, {"Content-Length": "1000000"}))
    while not writer.transport.is_closing():
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.01)


async def _gzip_bomb(writer: asyncio.StreamWriter) -> None:
    """Four GiB of zeros; a flushed block stands for itself and can be repeated."""
    writer.write(_raw_head(200, {"Content-Encoding": "gzip", "Connection": "close"}))
    engine = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    writer.write(engine.compress(b"") + engine.flush(zlib.Z_FULL_FLUSH))
    block = engine.compress(bytes(_ZEROS)) + engine.flush(zlib.Z_FULL_FLUSH)
    for _ in range(4096):
        if writer.transport.is_closing():
            return
        writer.write(block)
        await writer.drain()
        await asyncio.sleep(0)


async def _hangs(_writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def _resets(writer: asyncio.StreamWriter) -> None:
    writer.write(_raw_head(200, {"Content-Length": "100000"}) + b"half a loaf")
    await writer.drain()
    await asyncio.sleep(0.02)
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _malformed_chunk(writer: asyncio.StreamWriter) -> None:
    writer.write(_raw_head(200, {"Transfer-Encoding": "chunked"}) + b"5\r\nhello\r\n")
    await writer.drain()
    await asyncio.sleep(0.02)
    writer.write(b"zz\r\nnonsense")


async def _no_http(writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ESMTP ready\r\n\r\n")


_LIES: Final[dict[str, tuple[int, Lie]]] = {
    "/truncated": (200, _truncated),
    "/truncated-gzip": (200, _truncated_gzip),
    "/wrong-length": (200, _wrong_length),
    "/endless": (200, _endless),
    "/drip": (200, _drip),
    "/gzip-bomb": (200, _gzip_bomb),
    "/hangs": (0, _hangs),
    "/resets": (200, _resets),
    "/malformed-chunk": (200, _malformed_chunk),
    "/no-http": (0, _no_http),
}

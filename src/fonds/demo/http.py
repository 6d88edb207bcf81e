"""A little HTTP/1.1 server on loopback: persistent connections, conditional requests, no more.

It answers GET and HEAD with whole bodies from one function. The function runs in the loop of the
server's own thread, so it must not wait for anything.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate, parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from fonds.errors import UsageError

_Result = TypeVar("_Result")

_LOG: Final = logging.getLogger(__name__)
_LONGEST_HEAD: Final = 64 * 1024
_END_OF_HEAD: Final = b"\r\n\r\n"


@dataclass(frozen=True)
class Request:
    """A request as it arrived; header names are lower-case."""

    method: str
    target: str
    headers: Mapping[str, str]

    @cached_property
    def path(self) -> str:
        """The path, decoded, without the query."""
        return unquote(urlsplit(self.target).path)

    @cached_property
    def query(self) -> list[tuple[str, str]]:
        """The names and values of the query, decoded, in their order."""
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def conditional(self) -> bool:
        """Whether the client already has something and asks for news only."""
        return "if-none-match" in self.headers or "if-modified-since" in self.headers


@dataclass(frozen=True, kw_only=True)
class Response:
    """A whole answer; its ETag follows from its body."""

    body: bytes = b""
    status: HTTPStatus = HTTPStatus.OK
    media_type: str = "text/plain; charset=utf-8"
    modified: datetime | None = None
    """Sent as Last-Modified, cut to seconds."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent beside the usual ones."""

    @cached_property
    def etag(self) -> str:
        """A strong validator: other bytes, other tag."""
        return f'"{hashlib.sha256(self.body).hexdigest()}"'


Handler = Callable[[Request], Response]
"""Answers one request."""


def not_found(message: str = "Not Found") -> Response:
    """The answer for what is not there."""
    return Response(status=HTTPStatus.NOT_FOUND, body=message.encode())


def conditioned(request: Request, response: Response) -> Response:
    """The same answer, or 304 where the client has these bytes already."""
    if response.status == HTTPStatus.OK and request.conditional and _is_current(request, response):
        return replace(response, status=HTTPStatus.NOT_MODIFIED)
    return response


def _is_current(request: Request, response: Response) -> bool:
    # A tag outranks a date: the date is looked at only where no tag was sent.
    if (tags := request.headers.get("if-none-match")) is not None:
        known = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return "*" in known or response.etag in known
    if response.modified is None:
        return False
    try:
        since = parsedate_to_datetime(request.headers["if-modified-since"])
    except ValueError:
        return False
    return response.modified.replace(microsecond=0) <= since.replace(tzinfo=since.tzinfo or UTC)


class LoopbackServer:
    """Serves a handler on 127.0.0.1 between `with` and the end of the block."""

    def __init__(self, handler: Handler, *, port: int = 0) -> None:
        self._handler = handler
        self._asked_port = port
        self._connections: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None, "the server runs only inside its with block"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="demo-upstream")
        self._thread.start()
        try:
            self._server = self._run(self._listen())
        except OSError as error:
            self._stop()
            raise UsageError(
                f"port {self._asked_port} cannot be served on 127.0.0.1: {error.strerror}; "
                "choose another one, or 0 for any that is free"
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._close())
        self._stop()

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(
            lambda: _Connection(self._handler, self._connections), "127.0.0.1", self._asked_port
        )

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for transport in list(self._connections):
            transport.abort()
        # An aborted transport lets go of its socket in the next turn of the loop.
        await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    def __init__(self, handler: Handler, connections: set[asyncio.Transport]) -> None:
        self._handler = handler
        self._connections = connections
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(_END_OF_HEAD)) >= 0:
            head, self._received = self._received[:end], self._received[end + 4 :]
            self._answer(head)
            if self._transport.is_closing():
                return
        if len(self._received) > _LONGEST_HEAD:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _answer(self, head: bytes) -> None:
        request = _read(head)
        if request is None:
            self._refuse(HTTPStatus.BAD_REQUEST)
        elif request.method not in {"GET", "HEAD"}:
            # Any body that follows is not read, so the connection is of no further use.
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "GET, HEAD"})
        else:
            self._transport.write(_written(request, self._ask(request)))
            if request.headers.get("connection", "").lower() == "close":
                self._transport.close()

    def _ask(self, request: Request) -> Response:
        try:
            return self._handler(request)
        except Exception:  # noqa: BLE001 — logged, and the client learns of it as a 500
            _LOG.exception("the handler failed at %s", request.target)
            return Response(status=HTTPStatus.INTERNAL_SERVER_ERROR, body=b"see the server's log")

    def _refuse(self, status: HTTPStatus, headers: Mapping[str, str] | None = None) -> None:
        self._transport.write(_head(Response(status=status, headers=headers or {})))
        self._transport.close()


def _read(head: bytes) -> Request | None:
    first, *lines = head.decode("latin-1").split("\r\n")
    try:
        method, target, version = first.split(" ")
    except ValueError:
        return None
    if not version.startswith("HTTP/1.") or not target.startswith("/"):
        return None
    pairs = (line.partition(":") for line in lines)
    return Request(method, target, {name.lower(): value.strip() for name, _, value in pairs})


def _written(request: Request, response: Response) -> bytes:
    if request.method == "HEAD" or response.status == HTTPStatus.NOT_MODIFIED:
        return _head(response)
    return _head(response) + response.body


def _head(response: Response) -> bytes:
    status = response.status
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Date: {formatdate(usegmt=True)}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    if status in {HTTPStatus.OK, HTTPStatus.NOT_MODIFIED}:
        lines.append(f"ETag: {response.etag}")
        if response.modified is not None:
            modified = format_datetime(response.modified.astimezone(UTC), usegmt=True)
            lines.append(f"Last-Modified: {modified}")
    if status != HTTPStatus.NOT_MODIFIED:
        lines.append(f"Content-Type: {response.media_type}")
        lines.append(f"Content-Length: {len(response.body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")

"""HTTP requests and responses, and the transport that sends them: aiohttp, checked by the guard.

A recording and a replay are transports as well, and so are those of tests.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

from yarl import URL

from fonds.errors import (
    ConnectionFailedError,
    FetchError,
    FetchTimeoutError,
    ForbiddenAddressError,
    IncompleteBodyError,
    RetryableFetchError,
    TooLargeError,
)
from fonds.fetch.redact import public_url

if TYPE_CHECKING:
    import aiohttp

    from fonds.fetch.guard import LookUp

T = TypeVar("T")
Headers = list[tuple[str, str]]

MAX_CONNECTIONS: Final = 32
"""Connections that serve a request at the same time, to all hosts together."""
MAX_LINE: Final = 64 * 1024
"""Bytes of one header of a response, or of its status line."""

_CHUNK: Final = 64 * 1024
_AUTOMATIC_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
# What browsers leave as it is in a path and in a query; everything else is percent-encoded.
_PATH_CHARACTERS: Final = "!$%&'()*+,-./:;=@[\\]^_|~"
_QUERY_CHARACTERS: Final = "!$%&()*+,-./:;=?@[\\]^_`{|}~"


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpRequest:
    """One request; the transport adds `Host`, and `Content-Length` where the body is bytes."""

    url: str = field(repr=False)
    """As `normalize_url` gives it."""
    headers: Headers = field(repr=False, default_factory=list)
    timeout: float | None = None
    """Seconds to wait for a connection, and for each chunk that is sent or received."""
    method: str = "GET"
    body: bytes | AsyncIterable[bytes] | None = field(repr=False, default=None)


class BodyStream(Protocol):
    """The body of a response, read once; to be closed, read or not."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The chunks, as they arrive."""
        ...

    async def aclose(self) -> None:
        """Stop reading."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpResponse:
    """One response, whose body is still to be read."""

    status: int
    body: BodyStream
    headers: Headers = field(default_factory=list)
    reason: str = ""
    received_at: datetime | None = None
    """If a recording or a replay knows it."""


class Transport(Protocol):
    """Sends requests."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The response to a request; the caller closes its body."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferedResponse:
    """One response with all of its body."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    content: bytes = field(repr=False)
    reason: str = ""


async def read_response(
    transport: Transport, request: HttpRequest, *, max_bytes: int, seconds: float | None
) -> BufferedResponse:
    """The response to a request, with a body of so many bytes that arrives in so many seconds."""
    response = await transport.send(request)
    return await buffer_response(response, request.url, max_bytes=max_bytes, seconds=seconds)


async def buffer_response(
    response: HttpResponse, url: str, *, max_bytes: int, seconds: float | None
) -> BufferedResponse:
    """All of a response, with a body of so many bytes that arrives in so many seconds."""
    where = public_url(url)
    content = bytearray()
    try:
        async with aclosing(response.body), asyncio.timeout(seconds):
            async for chunk in response.body:
                content += chunk
                if len(content) > max_bytes:
                    raise TooLargeError(f"{where} answers with more than {max_bytes // 2**20} MiB")
    except TimeoutError as error:
        raise FetchTimeoutError(f"{where} answers too slowly") from error
    return BufferedResponse(
        status=response.status,
        headers=fold_headers(response.headers),
        content=bytes(content),
        reason=response.reason,
    )


def fold_headers(headers: Headers) -> dict[str, str]:
    """Headers by lower-case name; repeated headers are joined with commas."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


def normalize_url(url: str) -> str:
    """An http or https address as it is sent, without user and fragment; ValueError if malformed.

    What is percent-encoded already stays as it is: a signature may cover it.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ValueError("not an http or https address")
    host = URL.build(scheme=parts.scheme, host=parts.hostname, port=parts.port)
    path = quote(parts.path, safe=_PATH_CHARACTERS) or "/"
    query = quote(parts.query, safe=_QUERY_CHARACTERS)
    return str(host.join(URL.build(path=path, query_string=query, encoded=True)))


def endpoint_url(base: str, path: str) -> str:
    """An address below that of a service; ValueError if it is malformed, or has a password."""
    parts = urlsplit(normalize_url(base))
    if "@" in urlsplit(base).netloc:
        raise ValueError("it has a user or a password, which would be sent to the service")
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{path}"))


def host_of(url: str) -> str:
    """The host of a normalized address, as people write it."""
    return URL(url, encoded=True).host or ""


def map_url(url: str, hosts: Mapping[str, str]) -> str:
    """The address to ask instead: the base that `hosts` names, then the path and query of the URL.

    A key is a host name, or `name:port` where one port of a host is mapped on its own.
    """
    if not hosts:
        return url
    parts = urlsplit(url)
    name = (parts.hostname or "").lower()
    base = hosts.get(f"{name}:{parts.port}") or hosts.get(name)
    if base is None:
        return url
    target = urlsplit(base)
    path = target.path.rstrip("/") + (parts.path or "/")
    return urlunsplit((target.scheme, target.netloc, path, parts.query, ""))


def is_loopback(url: str) -> bool:
    """True if a mapped address names the loopback interface; its name is not looked up."""
    name = (urlsplit(url).hostname or "").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


class HttpTransport:
    """Sends requests over the network, from one event loop; redirects are not followed.

    It maps hosts itself, so that what wraps it (a recording) sees the original addresses.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        hosts: Mapping[str, str] | None = None,
        look_up: LookUp | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        # Not with the imports above: aiohttp takes 100 ms, and most commands send nothing. Nor at
        # the first request, which would be late for its turn.
        from fonds.fetch import guard  # noqa: PLC0415

        self._hosts = hosts or {}
        self._guard = guard.Guard(allow_private=allow_private, look_up=look_up or guard.look_up)
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        # Not aiohttp's own limit: its time to connect would count the wait for it.
        self._connections = asyncio.Semaphore(MAX_CONNECTIONS)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request over an idle connection or a new one."""
        await self._connections.acquire()
        body = _RequestBody(request) if request.body else None
        try:
            with _own_errors(request.url, broken=ConnectionFailedError):
                response = await self._send(request, body)
        except BaseException as error:
            self._connections.release()
            if isinstance(error, FetchError) and body and body.error:
                raise body.error from None
            raise
        return HttpResponse(
            status=response.status,
            headers=[
                (name.decode("latin-1"), _text(value)) for name, value in response.raw_headers
            ],
            reason=response.reason or "",
            body=_ResponseBody(response, request.url, self._connections),
        )

    async def _send(
        self, request: HttpRequest, body: _RequestBody | None
    ) -> aiohttp.ClientResponse:
        import aiohttp  # noqa: PLC0415 — as above

        session = self._session or self._open()
        headers = list(request.headers)
        if isinstance(request.body, bytes) and "content-length" not in fold_headers(headers):
            headers.append(("Content-Length", str(len(request.body))))
        async with asyncio.timeout(None) as deadline:
            if body is not None:
                body.deadline = deadline
            return await session.request(
                request.method,
                URL(self._target(request.url), encoded=True),
                headers=headers,
                data=body,
                timeout=aiohttp.ClientTimeout(connect=request.timeout, sock_read=request.timeout),
                allow_redirects=False,
            )

    def _target(self, url: str) -> str:
        mapped = map_url(url, self._hosts)
        return url if mapped == url else normalize_url(mapped)

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp  # noqa: PLC0415 — as above

        from fonds.fetch.guard import GuardedConnector  # noqa: PLC0415 — as above

        self._session = aiohttp.ClientSession(
            connector=GuardedConnector(self._guard, self._tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=_AUTOMATIC_HEADERS,
            max_line_size=MAX_LINE,
            max_field_size=MAX_LINE,
        )
        return self._session

    async def aclose(self) -> None:
        """Close every connection, also one whose response is still being read."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class _RequestBody:
    """The body of a request; the deadline moves on whenever the server has taken a chunk."""

    def __init__(self, request: HttpRequest) -> None:
        self.deadline = asyncio.timeout(None)
        self.error: Exception | None = None
        """Why there are no more chunks; aiohttp reports it as a broken connection."""
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in _chunks(self._request.body):
                self._allow(1)
                yield chunk
        except Exception as error:
            self.error = error
            raise
        self._allow(2)  # for the last chunk, and for the response

    def _allow(self, timeouts: int) -> None:
        if self._request.timeout is not None:
            now = asyncio.get_running_loop().time()
            with suppress(RuntimeError):  # the server may have answered before it has read all
                self.deadline.reschedule(now + timeouts * self._request.timeout)


async def _chunks(body: bytes | AsyncIterable[bytes] | None) -> AsyncIterator[bytes]:
    if isinstance(body, bytes):
        for start in range(0, len(body), _CHUNK):
            yield body[start : start + _CHUNK]
    elif body is not None:
        async for chunk in body:
            yield chunk


class _ResponseBody:
    """The body of a response, and the place among the connections that it occupies."""

    def __init__(
        self, response: aiohttp.ClientResponse, url: str, connections: asyncio.Semaphore
    ) -> None:
        self._response = response
        self._url = url
        self._connections = connections
        self._is_open = True
        # Queues of aiohttp are false while they are empty.
        self._protocol = response.connection.protocol if response.connection is not None else None
        self._closed = self._protocol.closed if self._protocol is not None else None
        if self._closed is not None:
            self._closed.add_done_callback(self._fail)
        elif self._protocol is not None:
            self._fail(None)

    def _fail(self, closed: asyncio.Future[None] | None) -> None:
        # After a malformed chunk, aiohttp closes the connection and leaves the reader waiting.
        error = None if closed is None or closed.cancelled() else closed.exception()
        if self._protocol is not None:
            error = self._protocol.exception() or error
        content = self._response.content
        if not content.is_eof() and content.exception() is None:
            content.set_exception(_broken_off(self._url, error, IncompleteBodyError))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _own_errors(self._url, broken=IncompleteBodyError):
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            if self._closed is not None:
                self._closed.remove_done_callback(self._fail)
            self._response.close()  # after the end of the body, this leaves the connection open
            self._connections.release()


@contextmanager
def _own_errors(url: str, *, broken: type[RetryableFetchError]) -> Iterator[None]:
    """Turn errors of aiohttp into ours; `broken` is for connections that end and invalid HTTP."""
    import aiohttp  # noqa: PLC0415 — as above

    where = public_url(url)
    try:
        yield
    except TimeoutError:
        raise FetchTimeoutError(
            f"{where} did not answer in time; FONDS_TIMEOUT sets how long to wait"
        ) from None
    except aiohttp.InvalidURL:
        raise ForbiddenAddressError(
            f"{where} was refused: its host is neither a name nor an IP address"
        ) from None
    except (aiohttp.ClientPayloadError, aiohttp.ClientResponseError) as error:
        raise _broken_off(url, error, broken) from None
    except aiohttp.ClientConnectorError as error:
        failure = ConnectionFailedError(f"cannot connect to {where}: {_reason(error)}")
        failure.was_open = False
        raise failure from None
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionFailedError(f"the connection to {where} failed: {_reason(error)}") from None
    except ValueError:
        # The message may repeat the header, which may be a key.
        raise FetchError(f"{where} cannot be requested: malformed address or header") from None


def _broken_off(
    url: str, error: BaseException | None, broken: type[RetryableFetchError]
) -> RetryableFetchError:
    reason = _reason(error) if error else "the connection was closed"
    return broken(f"{public_url(url)} broke off or is not valid HTTP: {reason}")


def _reason(error: BaseException) -> str:
    """The cause of an error; its own text may repeat the address or the headers, and so a key."""
    origin = error.__cause__ or error
    message = getattr(origin, "message", None)
    text = message if isinstance(message, str) else str(origin)
    return text.partition("\n")[0].rstrip(":") or type(origin).__name__


def _text(value: bytes) -> str:
    """The value of a header: what is not ASCII is mostly UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, for synchronous code in any thread.

    It runs on an event loop that this process keeps in a thread of its own, so that a transport
    used through here keeps its connections from one call to the next.
    """
    future = asyncio.run_coroutine_threadsafe(work, _background_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def close_soon(transport: Transport) -> None:
    """Close a transport that `run_sync` used; a finalizer may call this in any thread."""
    loop = _background_loop()
    closing = asyncio.run_coroutine_threadsafe(transport.aclose(), loop)
    if loop is not _running_loop():
        with suppress(TimeoutError):
            closing.result(timeout=1)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_lock = threading.RLock()


def _background_loop() -> asyncio.AbstractEventLoop:
    with _lock:
        return _started_loop(os.getpid())


@cache
def _started_loop(_process: int) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="fonds-http", daemon=True).start()
    return loop

"""The network through aiohttp, whose connections only go to addresses that were checked.

aiohttp calls the guard twice: as its resolver, so that a name is refused if any of its addresses
is private; and to create sockets, so that the very address connected to is checked, even if the
URL has a number instead of a name or the name's addresses have changed (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from fonds.errors import (
    ConnectionFailedError,
    FetchError,
    FetchTimeoutError,
    ForbiddenAddressError,
    IncompleteBodyError,
    RetryableFetchError,
)

IpAddress = IPv4Address | IPv6Address
LookUp = Callable[[str, int], Awaitable[list[str]]]
"""Takes host and port, and returns addresses in the order to try them."""

MAX_CONNECTIONS: Final = 32
"""Connections that serve a request at the same time, to all hosts together."""
MAX_LINE: Final = 64 * 1024
"""Bytes of one header of a response, or of its status line."""
MAX_ADDRESSES: Final = 4
"""Addresses of one name that are tried."""
KEEP_ALIVE_SECONDS: Final = 30.0

_CHUNK_SIZE: Final = 64 * 1024
_AUTOMATIC_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")

# Ranges that the standard library's predicates leave out, or did in some versions.
_MORE_FORBIDDEN: Final = (
    ("shared (carrier-grade NAT)", IPv4Network("100.64.0.0/10")),
    ("special-purpose", IPv4Network("192.0.0.0/24")),
    ("6to4 relay", IPv4Network("192.88.99.0/24")),
    ("benchmarking", IPv4Network("198.18.0.0/15")),
    ("local NAT64", IPv6Network("64:ff9b:1::/48")),
    ("discard-only", IPv6Network("100::/64")),
    ("documentation", IPv6Network("3fff::/20")),
    ("site-local", IPv6Network("fec0::/10")),
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE: Final = IPv6Network("::/96")


def why_forbidden(address: IpAddress) -> str | None:
    """The kind of non-public address this is, or None if it is public."""
    embedded = list(_embedded(address)) if isinstance(address, IPv6Address) else []
    if embedded:
        reasons = (why_forbidden(target) for target in embedded)
        return next((reason for reason in reasons if reason), None)
    checks = {
        "unspecified": address.is_unspecified,
        "loopback": address.is_loopback,
        "link-local": address.is_link_local,
        "multicast": address.is_multicast,
        "private": address.is_private,
        "reserved": address.is_reserved,
    }
    kind = next((name for name, applies in checks.items() if applies), None)
    return kind or next((name for name, net in _MORE_FORBIDDEN if address in net), None)


def _embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """IPv4 addresses to which a gateway would forward packets for this IPv6 address."""
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    elif address.sixtofour:
        yield address.sixtofour
    elif address.teredo:
        yield from address.teredo
    elif address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        yield IPv4Address(int(address) & 0xFFFFFFFF)


async def _look_up(host: str, port: int) -> list[str]:
    """The addresses of a host, in the order of the system's resolver."""
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class Guard(AbstractResolver):
    """Looks up names and makes sockets for aiohttp, and refuses private addresses."""

    def __init__(self, *, allow_private: bool, look_up: LookUp) -> None:
        self._allow_private = allow_private
        self._look_up = look_up

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 — both families, always
    ) -> list[ResolveResult]:
        """The checked addresses of a name; ForbiddenAddressError if one of them is private."""
        try:
            addresses = await self._look_up(host, port)
        except UnicodeError as error:
            raise OSError(f"{host!r} is not a valid name: {error}") from error
        if not addresses:
            raise OSError(f"{host} has no address")
        for address in addresses:
            self._check(host, address)
        return [_result(host, address, port) for address in addresses[:MAX_ADDRESSES]]

    def open_socket(self, address_info: aiohttp.AddrInfoType) -> socket.socket:
        """A socket for a connection to this address; ForbiddenAddressError if it is private."""
        family, kind, protocol, _name, address = address_info
        self._check(address[0], address[0])
        return socket.socket(family, kind, protocol)

    async def close(self) -> None:
        """Nothing is open."""

    def _check(self, host: str, address: str) -> None:
        reason = None if self._allow_private else why_forbidden(ip_address(address))
        if reason:
            where = host if host == address else f"{host} ({address})"
            raise ForbiddenAddressError(
                f"{where} was refused, as it is not a public address but {reason}; "
                "set FONDS_ALLOW_PRIVATE=1 to allow such addresses"
            )


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


class GuardedConnector(aiohttp.TCPConnector):
    """Opens connections to checked addresses, and keeps them for a while."""

    def __init__(self, guard: Guard, tls: ssl.SSLContext | None) -> None:
        super().__init__(
            resolver=guard,
            socket_factory=guard.open_socket,
            use_dns_cache=False,
            ssl=tls or True,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            limit=0,
        )

    async def _get(self, key: Any, traces: Any) -> Any:
        # What a server sends while a connection is idle would be the response to the next request.
        while (connection := await super()._get(key, traces)) is not None:
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()
        return None


class Network:
    """Connections to all hosts, used from one event loop and kept alive between requests."""

    def __init__(
        self, *, allow_private: bool, look_up: LookUp | None, tls: ssl.SSLContext | None
    ) -> None:
        self._guard = Guard(allow_private=allow_private, look_up=look_up or _look_up)
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        # Not aiohttp's own limit: its time to connect would include the wait for a connection.
        self._connections = asyncio.Semaphore(MAX_CONNECTIONS)

    async def send(
        self,
        method: str,
        url: str,
        *,
        where: str,
        headers: list[tuple[str, str]],
        content: bytes | AsyncIterable[bytes] | None,
        timeout: float | None,  # noqa: ASYNC109 — of each step, not of the whole call
    ) -> NetworkResponse:
        """Send a request; `where` is its address in error messages, without secrets."""
        await self._connections.acquire()
        upload = _Upload(content, timeout) if content else None
        try:
            with _own_errors(where, broken=ConnectionFailedError):
                async with asyncio.timeout(None) as deadline:
                    if upload is not None:
                        upload.deadline = deadline
                    response = await (self._session or self._open()).request(
                        method,
                        URL(url, encoded=True),
                        headers=headers,
                        data=upload,
                        timeout=aiohttp.ClientTimeout(connect=timeout, sock_read=timeout),
                        allow_redirects=False,
                    )
        except BaseException as error:
            self._connections.release()
            if isinstance(error, FetchError) and upload and upload.error:
                raise upload.error from None
            raise
        return NetworkResponse(response, where, self._connections)

    def _open(self) -> aiohttp.ClientSession:
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


class _Upload:
    """The content of a request; the deadline moves whenever the server has taken a chunk."""

    def __init__(self, content: bytes | AsyncIterable[bytes], timeout: float | None) -> None:
        self.deadline = asyncio.timeout(None)
        self.error: Exception | None = None
        """The reason why there are no more chunks; aiohttp reports it as a broken connection."""
        self._content = content
        self._timeout = timeout

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in _chunks(self._content):
                self._allow(1)
                yield chunk
        except Exception as error:
            self.error = error
            raise
        self._allow(2)  # for the last chunk, and for the response

    def _allow(self, timeouts: int) -> None:
        if self._timeout is not None:
            now = asyncio.get_running_loop().time()
            with suppress(RuntimeError):  # the server may respond before it has read everything
                self.deadline.reschedule(now + timeouts * self._timeout)


async def _chunks(content: bytes | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    if isinstance(content, bytes):
        for start in range(0, len(content), _CHUNK_SIZE):
            yield content[start : start + _CHUNK_SIZE]
    else:
        async for chunk in content:
            yield chunk


class NetworkResponse:
    """A response whose body is still to be read; it occupies a connection until it is closed."""

    def __init__(
        self, response: aiohttp.ClientResponse, where: str, connections: asyncio.Semaphore
    ) -> None:
        self.status = response.status
        self.reason = response.reason or ""
        self.headers = [(name.decode("latin-1"), _text(v)) for name, v in response.raw_headers]
        self._response = response
        self._where = where
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
            content.set_exception(_broken_off(self._where, error, IncompleteBodyError))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _own_errors(self._where, broken=IncompleteBodyError):
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        """Stop reading."""
        if self._is_open:
            self._is_open = False
            if self._closed is not None:
                self._closed.remove_done_callback(self._fail)
            self._response.close()  # after the end of the body, this leaves the connection open
            self._connections.release()


@contextmanager
def _own_errors(where: str, *, broken: type[RetryableFetchError]) -> Iterator[None]:
    """Translate aiohttp's errors; `broken` is for connections that end and for invalid HTTP."""
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
        raise _broken_off(where, error, broken) from None
    except aiohttp.ClientConnectorError as error:
        failure = ConnectionFailedError(f"cannot connect to {where}: {_reason(error)}")
        failure.was_open = False
        raise failure from None
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionFailedError(f"the connection to {where} failed: {_reason(error)}") from None
    except ValueError:
        # The message may repeat a header, which may be a key.
        raise FetchError(f"{where} cannot be requested: malformed address or header") from None


def _broken_off(
    where: str, error: BaseException | None, broken: type[RetryableFetchError]
) -> RetryableFetchError:
    reason = _reason(error) if error else "the connection was closed"
    return broken(f"{where} broke off or is not valid HTTP: {reason}")


def _reason(error: BaseException) -> str:
    """The message of an error's origin, without the address or headers, which may be secret."""
    origin = error.__cause__ or error
    message = getattr(origin, "message", None)
    text = message if isinstance(message, str) else str(origin)
    return text.partition("\n")[0].rstrip(":") or type(origin).__name__


def _text(value: bytes) -> str:
    """The value of a header: non-ASCII ones are mostly UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")

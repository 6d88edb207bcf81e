"""HTTP requests, responses, and the transport that sends requests over the network.

Recording and replay are transports as well, and so are those of tests.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from urllib.parse import quote, unquote_plus, urlsplit, urlunsplit

from yarl import URL

from fonds.errors import (
    FetchError,
    FetchTimeoutError,
    ForbiddenAddressError,
    TooLargeError,
)

if TYPE_CHECKING:
    from fonds.fetch.network import LookUp

T = TypeVar("T")
Headers = list[tuple[str, str]]

SECRET_PARAMETERS: Final = frozenset(
    {
        "access_token",
        "api-key",
        "api_key",
        "apikey",
        "auth",
        "key",
        "password",
        "secret",
        "sig",
        "signature",
        "token",
        "x-amz-credential",
        "x-amz-security-token",
        "x-amz-signature",
    }
)
"""Names of parameters of an address that contain a secret."""

# What browsers leave as it is in a path and in a query; everything else is percent-encoded.
_PATH_CHARACTERS: Final = "!$%&'()*+,-./:;=@[\\]^_|~"
_QUERY_CHARACTERS: Final = "!$%&()*+,-./:;=?@[\\]^_`{|}~"


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpRequest:
    """One request; the transport adds `Host`, and `Content-Length` where the body is bytes."""

    url: str = field(repr=False)
    """As `normalize_url` returns it."""
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
    """Set by a recording or a replay."""


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
    """The response to a request with its body, which is limited in size and time."""
    response = await transport.send(request)
    return await buffer_response(response, request.url, max_bytes=max_bytes, seconds=seconds)


async def buffer_response(
    response: HttpResponse, url: str, *, max_bytes: int, seconds: float | None
) -> BufferedResponse:
    """A response with its body, which is limited in size and time."""
    where = public_url(url)
    content = bytearray()
    try:
        async with aclosing(response.body), asyncio.timeout(seconds):
            async for chunk in response.body:
                content += chunk
                if len(content) > max_bytes:
                    limit = f"{max_bytes // 2**20} MiB"
                    raise TooLargeError(f"the response of {where} is larger than {limit}")
    except TimeoutError as error:
        raise FetchTimeoutError(f"the response of {where} took too long") from error
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
    """An http or https address without user and fragment; ValueError if malformed.

    Percent-encoded characters are not changed, as a signature may cover them.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ValueError("not an http or https address")
    host = URL.build(scheme=parts.scheme, host=parts.hostname, port=parts.port)
    path = quote(parts.path, safe=_PATH_CHARACTERS) or "/"
    query = quote(parts.query, safe=_QUERY_CHARACTERS)
    return str(host.join(URL.build(path=path, query_string=query, encoded=True)))


def endpoint_url(base: str, path: str) -> str:
    """The address of a path below a base; ValueError if the base is malformed or has a password."""
    parts = urlsplit(normalize_url(base))
    if "@" in urlsplit(base).netloc:
        raise ValueError("it has a user or a password, which would be sent to the service")
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{path}"))


def host_of(url: str) -> str:
    """The host of a normalized address, not in Punycode."""
    return URL(url, encoded=True).host or ""


def public_url(url: str) -> str:
    """The address without credentials; one that has none is returned as it is."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "a malformed address"
    netloc = parts.netloc.rpartition("@")[2]
    pairs = parts.query.split("&")
    public = [pair for pair in pairs if not _is_secret(pair)]
    if netloc == parts.netloc and len(public) == len(pairs):
        return url
    return urlunsplit(parts._replace(netloc=netloc, query="&".join(public)))


def _is_secret(pair: str) -> bool:
    return unquote_plus(pair.partition("=")[0]).strip().lower() in SECRET_PARAMETERS


def map_url(url: str, hosts: Mapping[str, str]) -> str:
    """The address to request instead: the base in `hosts`, then the path and query of the URL.

    A key is a host name, or `name:port` to map a single port.
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
    """True if an address is on the loopback interface; its name is not looked up."""
    name = (urlsplit(url).hostname or "").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


NO_CONTACT: Final = (
    "this library contacts no publishers, as that of the demo, whose documents are invented; fill "
    "another one, or set contact_publishers = true in its fonds.toml"
)


class HttpTransport:
    """Sends requests over the network, from one event loop; redirects are not followed.

    It maps hosts itself, so that a recording, which wraps it, sees the original addresses. With
    `only_mapped`, requests to other hosts are refused.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        hosts: Mapping[str, str] | None = None,
        only_mapped: bool = False,
        look_up: LookUp | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        # aiohttp takes 100 ms to import, and most commands send nothing. Importing it at the first
        # request would delay one that has waited for its turn.
        from fonds.fetch.network import Network  # noqa: PLC0415

        self._hosts = hosts or {}
        self._only_mapped = only_mapped
        self._network = Network(allow_private=allow_private, look_up=look_up, tls=tls)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request over an idle connection or a new one."""
        headers = list(request.headers)
        if isinstance(request.body, bytes) and "content-length" not in fold_headers(headers):
            headers.append(("Content-Length", str(len(request.body))))
        response = await self._network.send(
            request.method,
            self._target(request.url),
            where=public_url(request.url),
            headers=headers,
            content=request.body,
            timeout=request.timeout,
        )
        return HttpResponse(
            status=response.status, headers=response.headers, reason=response.reason, body=response
        )

    def _target(self, url: str) -> str:
        target = map_url(url, self._hosts)
        if self._only_mapped and target == url:
            raise ForbiddenAddressError(f"{public_url(url)} was not requested: {NO_CONTACT}")
        try:
            return url if target == url else normalize_url(target)
        except ValueError:
            raise FetchError(
                f"{public_url(url)} cannot be requested: the address that FONDS_HOSTS maps it to "
                "is malformed"
            ) from None

    async def aclose(self) -> None:
        """Close every connection, also one whose response is still being read."""
        await self._network.aclose()


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, for synchronous code in any thread.

    It runs on the event loop of a background thread, so that a transport keeps its connections
    from one call to the next.
    """
    future = asyncio.run_coroutine_threadsafe(work, _background_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def close_soon(transport: Transport) -> None:
    """Close a transport that was used with `run_sync`; a finalizer may call this in any thread."""
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

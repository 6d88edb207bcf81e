"""The wire: an httpx transport that maps hosts, guards addresses and speaks our errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpcore
import httpx

from fonds.errors import (
    ConnectionFailedError,
    FetchError,
    FetchTimeoutError,
    IncompleteBodyError,
    RetryableFetchError,
)
from fonds.fetch.connections import Connections, Exchange
from fonds.fetch.guard import GuardedBackend
from fonds.fetch.hosts import map_url
from fonds.fetch.secrecy import public_url
from fonds.fetch.sockets import Sockets
from fonds.settings import Settings


class NetworkTransport(httpx.AsyncBaseTransport):
    """Asks the network; takes original addresses and maps them itself.

    What wraps it (a recording) therefore sees the addresses the sources speak of.
    """

    def __init__(
        self, settings: Settings, *, backend: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._hosts = settings.hosts
        backend = backend or GuardedBackend(allow_private=settings.allow_private, dialer=Sockets())
        self._connections = Connections(backend)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the body is still to be read from the answer's stream."""
        url = str(request.url)
        with _our_errors(url, broken=ConnectionFailedError):
            exchange = await self._connections.ask(self._mapped(request, url))
        return httpx.Response(
            status_code=exchange.status,
            headers=exchange.headers,
            stream=_Body(exchange, url),
            extensions=exchange.extensions,
        )

    def _mapped(self, request: httpx.Request, url: str) -> httpcore.Request:
        target = map_url(url, self._hosts)
        address, headers = request.url, request.headers.raw
        if target != url:
            address = httpx.URL(target)
            kept = [(name, value) for name, value in headers if name.lower() != b"host"]
            headers = [(b"Host", address.netloc), *kept]
        return httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=address.raw_scheme,
                host=address.raw_host,
                port=address.port,
                target=address.raw_path,
            ),
            headers=headers,
            content=request.stream,
            extensions=request.extensions,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._connections.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, exchange: Exchange, url: str) -> None:
        self._exchange = exchange
        self._url = url

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _our_errors(self._url, broken=IncompleteBodyError):
            async for chunk in self._exchange.body():
                yield chunk

    async def aclose(self) -> None:
        with _our_errors(self._url, broken=IncompleteBodyError):
            await self._exchange.aclose()


@contextmanager
def _our_errors(url: str, *, broken: type[RetryableFetchError]) -> Iterator[None]:
    """`broken` is what a breach of the protocol means at this stage of the exchange."""
    try:
        yield
    except httpcore.TimeoutException as error:
        raise FetchTimeoutError(
            f"{public_url(url)} did not answer in time; FONDS_TIMEOUT sets how long to wait"
        ) from error
    except httpcore.RemoteProtocolError as error:
        raise broken(f"{public_url(url)} broke off or spoke no HTTP: {error}") from error
    except (httpcore.NetworkError, OSError) as error:
        raise ConnectionFailedError(
            f"the connection to {public_url(url)} failed: {str(error) or type(error).__name__}"
        ) from error
    except (httpcore.LocalProtocolError, httpcore.UnsupportedProtocol):
        # The library's message repeats the header, which may be a key.
        raise FetchError(f"{public_url(url)} cannot be asked: malformed header or scheme") from None

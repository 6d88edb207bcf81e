"""The network: maps hosts, guards addresses and speaks our errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace

from fonds.errors import (
    ConnectionFailedError,
    FetchError,
    FetchTimeoutError,
    IncompleteBodyError,
    RetryableFetchError,
)
from fonds.fetch.addresses import read_address
from fonds.fetch.connections import Connections, Exchange
from fonds.fetch.dialogue import BreachError, UnspeakableError
from fonds.fetch.guard import Guard
from fonds.fetch.hosts import map_url
from fonds.fetch.secrecy import public_url
from fonds.fetch.sockets import Dialer
from fonds.fetch.wire import Answer, Question
from fonds.settings import Settings


class Network:
    """Asks upstreams; takes original addresses and maps them itself.

    What wraps it (a recording) therefore sees the addresses the sources speak of.
    """

    def __init__(self, settings: Settings, *, dialer: Dialer | None = None) -> None:
        self._hosts = settings.hosts
        self._connections = Connections(dialer or Guard(allow_private=settings.allow_private))

    async def ask(self, question: Question) -> Answer:
        """Send one request; the body of the answer is still to be read."""
        url = question.address.url
        with _our_errors(url, broken=ConnectionFailedError):
            exchange = await self._connections.ask(self._mapped(question))
        head = exchange.head
        return Answer(
            status=head.status,
            headers=head.headers,
            reason=head.reason,
            body=_Body(exchange, url),
        )

    def _mapped(self, question: Question) -> Question:
        address = question.address
        if self._hosts and (target := map_url(address.url, self._hosts)) != address.url:
            address = read_address(target)
        host = (b"Host", address.netloc.encode("ascii"))
        return replace(question, address=address, headers=[host, *question.headers])

    async def aclose(self) -> None:
        """Close every connection."""
        await self._connections.aclose()


class _Body:
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
    except TimeoutError as error:
        raise FetchTimeoutError(
            f"{public_url(url)} did not answer in time; FONDS_TIMEOUT sets how long to wait"
        ) from error
    except BreachError as error:
        raise broken(f"{public_url(url)} broke off or spoke no HTTP: {error}") from error
    except OSError as error:
        raise ConnectionFailedError(
            f"the connection to {public_url(url)} failed: {str(error) or type(error).__name__}"
        ) from error
    except UnspeakableError:
        # The library's message repeats the header, which may be a key.
        raise FetchError(f"{public_url(url)} cannot be asked: malformed header") from None

"""Transports that need no network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from fonds.fetch.transport import HttpRequest, HttpResponse, Transport, normalize_url, read_response


class StoredBody:
    """A body that is in memory."""

    def __init__(self, data: bytes = b"") -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._data:
            yield self._data

    async def aclose(self) -> None:
        return


class InMemoryTransport:
    """Responds as a function says."""

    def __init__(self, respond: Callable[[HttpRequest], HttpResponse]) -> None:
        self._respond = respond

    async def send(self, request: HttpRequest) -> HttpResponse:
        return self._respond(request)

    async def aclose(self) -> None:
        return


async def fetch_content(
    transport: Transport, url: str, *, method: str = "GET", body: bytes = b""
) -> bytes:
    """The content of the response to one request."""
    request = HttpRequest(url=normalize_url(url), method=method, body=body or None)
    response = await read_response(transport, request, max_bytes=2**30, seconds=None)
    return response.content

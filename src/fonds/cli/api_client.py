"""A client of the HTTP API of `fonds serve`."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final, Self
from urllib.parse import quote, urlencode, urljoin
from uuid import uuid4

from fonds.errors import (
    ConnectionFailedError,
    FetchError,
    RetryableFetchError,
    ServerError,
    UsageError,
)
from fonds.fetch.transport import (
    BodyStream,
    BufferedResponse,
    HttpRequest,
    HttpResponse,
    HttpTransport,
    buffer_response,
    normalize_url,
    run_sync,
)

MAX_ATTEMPTS: Final = 4
TIMEOUT_SECONDS: Final = 60.0
_PAGE_SIZE: Final = 200
_MAX_RESPONSE_BYTES: Final = 64 * 2**20
_RETRYABLE_STATUS: Final = frozenset({429, 500, 502, 503, 504})
_FAILED_STATUS: Final = ("failed_parse", "failed_chunking", "failed_embedding")
_FIRST_UNSUCCESSFUL: Final = 300
_NO_CONTENT: Final = 204


class ApiClient:
    """A client of one server, with the token of one user."""

    def __init__(self, server: str, token: str | None) -> None:
        try:
            normalize_url(server)
        except ValueError:
            raise UsageError(
                f"invalid server address {server!r}: expected http://… or https://…"
            ) from None
        if not token:
            raise UsageError(
                "no token: pass --token or set FONDS_TOKEN; make one with `fonds token create`"
            )
        if not token.isascii() or not token.isprintable():
            raise UsageError("invalid token: it must be printable ASCII")
        self._server = server.rstrip("/")
        self._bearer = {"Authorization": f"Bearer {token.strip()}"}
        self._transport = HttpTransport(allow_private=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        run_sync(self._transport.aclose())

    def announce(self, name: str, size: int, sha256: str) -> dict[str, Any]:
        """Create an upload; the response says where to send the file."""
        return self._request("POST", "/uploads", {"name": name, "bytes": size, "sha256": sha256})

    def send(self, address: Mapping[str, Any], size: int, chunks: Iterator[bytes]) -> None:
        """Send a file to the address in the response of `announce`."""
        request = HttpRequest(
            url=normalize_url(urljoin(self._server + "/", address["url"])),
            method=address["method"],
            headers=[*address["headers"].items(), ("Content-Length", str(size))],
            timeout=TIMEOUT_SECONDS,
            body=_to_async(chunks),
        )
        try:
            response = self._read(request)
        except FetchError as error:
            raise ServerError(f"the file could not be sent: {error}") from error
        if response.status >= _FIRST_UNSUCCESSFUL:
            raise ServerError(f"the server rejected the file: {_detail(response)}")

    def complete(self, document_id: str) -> dict[str, Any]:
        """Report that the file has been sent."""
        return self._request("POST", f"/uploads/{document_id}/complete", {})

    def retry(self, document_id: str) -> dict[str, Any]:
        """Retry a failed job."""
        return self._request("POST", f"/jobs/{quote(document_id, safe='')}/retry", {})

    def delete(self, document_id: str) -> None:
        """Delete an upload."""
        self._request("DELETE", f"/uploads/{quote(document_id, safe='')}")

    def jobs(self, *, failed: bool, all_users: bool, limit: int) -> list[dict[str, Any]]:
        """Jobs, newest first."""
        jobs: list[dict[str, Any]] = []
        params: dict[str, Any] = {"status": list(_FAILED_STATUS) if failed else []}
        if all_users:
            params["all"] = "true"
        while len(jobs) < limit:
            params["limit"] = min(_PAGE_SIZE, limit - len(jobs))
            page = self._request("GET", f"/jobs?{urlencode(params, doseq=True)}")
            jobs += page["jobs"]
            if page["next_cursor"] is None:
                break
            params["cursor"] = page["next_cursor"]
        return jobs

    def follow(self, document_id: str) -> Iterator[dict[str, Any]]:
        """Yield the state of a job whenever it changes, until it ends."""
        last_id, failures = "", 0
        while failures < MAX_ATTEMPTS:
            try:
                for event in self._events(document_id, last_id):
                    failures, last_id = 0, event.get("id") or last_id
                    if event["event"] in {"progress", "end"}:
                        yield event["data"]
                    if event["event"] == "end":
                        return
            except RetryableFetchError:
                failures += 1
                time.sleep(2**failures / 4)
        raise ServerError(
            f"the server stopped responding; see `fonds jobs` for the status of {document_id}"
        )

    def _events(self, document_id: str, last_id: str) -> Iterator[dict[str, Any]]:
        headers = self._bearer | ({"Last-Event-ID": last_id} if last_id else {})
        request = HttpRequest(
            url=normalize_url(f"{self._server}/jobs/{document_id}/events"),
            headers=list(headers.items()),
            timeout=TIMEOUT_SECONDS,
        )
        response = run_sync(self._transport.send(request))
        try:
            if response.status == _NO_CONTENT:  # the job has ended and there are no further events
                yield {"event": "end", "data": self._request("GET", f"/jobs/{document_id}")}
                return
            if response.status >= _FIRST_UNSUCCESSFUL:
                raise ServerError(_detail(run_sync(_buffered(response, request.url))))
            yield from _read_events(_lines(response.body))
        finally:
            run_sync(response.body.aclose())

    def _request(self, method: str, path: str, payload: Any = None) -> dict[str, Any]:
        """Send a request, with retries; its idempotency key makes the server execute it once."""
        headers = dict(self._bearer)
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid4())
        if payload:
            headers["Content-Type"] = "application/json"
        request = HttpRequest(
            url=normalize_url(self._server + path),
            method=method,
            headers=list(headers.items()),
            timeout=TIMEOUT_SECONDS,
            body=json.dumps(payload).encode() if payload else None,
        )
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                response = self._read(request)
            except RetryableFetchError as error:
                is_unreachable = isinstance(error, ConnectionFailedError) and not error.was_open
                if is_unreachable or attempt == MAX_ATTEMPTS:
                    raise ServerError(self._unreachable(error)) from error
            else:
                if response.status not in _RETRYABLE_STATUS or attempt == MAX_ATTEMPTS:
                    return _content(response)
            time.sleep(2**attempt / 4)
        raise AssertionError

    def _read(self, request: HttpRequest) -> BufferedResponse:
        async def exchange() -> BufferedResponse:
            return await _buffered(await self._transport.send(request), request.url)

        return run_sync(exchange())

    def _unreachable(self, error: FetchError) -> str:
        return (
            f"{self._server} does not respond ({error}): start `fonds serve` and `fonds worker`, "
            "or pass another address with --server"
        )


def _content(response: BufferedResponse) -> dict[str, Any]:
    if response.status >= _FIRST_UNSUCCESSFUL:
        raise ServerError(_detail(response))
    if response.status == _NO_CONTENT:
        return {}
    try:
        content: dict[str, Any] = json.loads(response.content)
    except ValueError:
        raise ServerError("the server at this address is not a fonds server") from None
    return content


def _detail(response: BufferedResponse) -> str:
    try:
        return str(json.loads(response.content)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the server responded {response.status} {response.reason}".strip()


async def _buffered(response: HttpResponse, url: str) -> BufferedResponse:
    return await buffer_response(response, url, max_bytes=_MAX_RESPONSE_BYTES, seconds=None)


async def _to_async(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def _lines(stream: BodyStream) -> Iterator[str]:
    chunks = aiter(stream)

    async def next_chunk() -> bytes:
        return await anext(chunks, b"")

    unfinished = b""
    while chunk := run_sync(next_chunk()):
        *lines, unfinished = (unfinished + chunk).split(b"\n")
        for line in lines:
            yield line.decode().removesuffix("\r")


def _read_events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    for line in lines:
        if not line and "data" in event:
            yield {"event": "message", **event}
            event = {}
        name, _, value = line.partition(": ")
        if name in {"id", "event"}:
            event[name] = value
        elif name == "data":
            event["data"] = json.loads(value)

"""A client of the API of `fonds serve`, with errors in plain words."""

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

TRIES: Final = 4
TIMEOUT: Final = 60.0
_PAGE: Final = 200
_MAX_RESPONSE: Final = 64 * 2**20
_WORTH_REPEATING: Final = frozenset({429, 500, 502, 503, 504})
_FAILED: Final = ("failed_parse", "failed_chunking", "failed_embedding")
_GOOD: Final = 300
_NO_CONTENT: Final = 204


class ApiClient:
    """Speaks to one server as one user."""

    def __init__(self, server: str, token: str | None) -> None:
        try:
            normalize_url(server)
        except ValueError:
            raise UsageError(
                f"{server!r} is not the address of a server: it begins with http://"
            ) from None
        if not token:
            raise UsageError(
                "say who you are: --token, or FONDS_TOKEN, with what `fonds token create` printed"
            )
        if not token.isascii() or not token.isprintable():
            raise UsageError("a token has neither spaces nor signs outside of ASCII")
        self._server = server.rstrip("/")
        self._bearer = {"Authorization": f"Bearer {token.strip()}"}
        self._transport = HttpTransport(allow_private=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_cause: object) -> None:
        run_sync(self._transport.aclose())

    def announce(self, name: str, size: int, sha256: str) -> dict[str, Any]:
        """Say what is coming, and learn where to send it."""
        return self._ask("POST", "/uploads", {"name": name, "bytes": size, "sha256": sha256})

    def send(self, address: Mapping[str, Any], size: int, pieces: Iterator[bytes]) -> None:
        """Send a file to the address that was given out for it."""
        request = HttpRequest(
            url=normalize_url(urljoin(self._server + "/", address["url"])),
            method=address["method"],
            headers=[*address["headers"].items(), ("Content-Length", str(size))],
            timeout=TIMEOUT,
            body=_iterated(pieces),
        )
        try:
            response = self._read(request)
        except FetchError as error:
            raise ServerError(f"the file could not be sent: {error}") from error
        if response.status >= _GOOD:
            raise ServerError(f"the file was refused: {_detail(response)}")

    def complete(self, document_id: str) -> dict[str, Any]:
        """Announce that the file has been sent."""
        return self._ask("POST", f"/uploads/{document_id}/complete", {})

    def retry(self, document_id: str) -> dict[str, Any]:
        """Send a failed job back."""
        return self._ask("POST", f"/jobs/{quote(document_id, safe='')}/retry", {})

    def jobs(self, *, failed: bool, everybody: bool, limit: int) -> list[dict[str, Any]]:
        """Jobs, the newest first."""
        jobs: list[dict[str, Any]] = []
        params: dict[str, Any] = {"status": list(_FAILED) if failed else []}
        if everybody:
            params["all"] = "true"
        while len(jobs) < limit:
            params["limit"] = min(_PAGE, limit - len(jobs))
            page = self._ask("GET", f"/jobs?{urlencode(params, doseq=True)}")
            jobs += page["jobs"]
            if page["next_cursor"] is None:
                break
            params["cursor"] = page["next_cursor"]
        return jobs

    def follow(self, document_id: str) -> Iterator[dict[str, Any]]:
        """The state of a job, whenever it changes; the last one has ended."""
        last_id, failures = "", 0
        while failures < TRIES:
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
            f"the server no longer answers; `fonds jobs` shows what became of {document_id}"
        )

    def _events(self, document_id: str, last_id: str) -> Iterator[dict[str, Any]]:
        headers = self._bearer | ({"Last-Event-ID": last_id} if last_id else {})
        request = HttpRequest(
            url=normalize_url(f"{self._server}/jobs/{document_id}/events"),
            headers=list(headers.items()),
            timeout=TIMEOUT,
        )
        response = run_sync(self._transport.send(request))
        try:
            if response.status == _NO_CONTENT:  # the job has ended, and every event was seen
                yield {"event": "end", "data": self._ask("GET", f"/jobs/{document_id}")}
                return
            if response.status >= _GOOD:
                raise ServerError(_detail(run_sync(_buffered(response, request.url))))
            yield from _read_events(_lines(response.body))
        finally:
            run_sync(response.body.aclose())

    def _ask(self, method: str, path: str, payload: Any = None) -> dict[str, Any]:
        """Ask until there is an answer; what is repeated is done once."""
        headers = dict(self._bearer)
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid4())
        if payload:
            headers["Content-Type"] = "application/json"
        request = HttpRequest(
            url=normalize_url(self._server + path),
            method=method,
            headers=list(headers.items()),
            timeout=TIMEOUT,
            body=json.dumps(payload).encode() if payload else None,
        )
        for tried in range(1, TRIES + 1):
            try:
                response = self._read(request)
            except RetryableFetchError as error:
                never_open = isinstance(error, ConnectionFailedError) and not error.was_open
                if never_open or tried == TRIES:
                    raise ServerError(self._absent(error)) from error
            else:
                if response.status not in _WORTH_REPEATING or tried == TRIES:
                    return _content(response)
            time.sleep(2**tried / 4)
        raise AssertionError

    def _read(self, request: HttpRequest) -> BufferedResponse:
        async def exchange() -> BufferedResponse:
            return await _buffered(await self._transport.send(request), request.url)

        return run_sync(exchange())

    def _absent(self, error: FetchError) -> str:
        return (
            f"{self._server} does not answer ({error}): start `fonds serve`, and "
            "`fonds worker` beside it, or name another server with --server"
        )


def _content(response: BufferedResponse) -> dict[str, Any]:
    if response.status >= _GOOD:
        raise ServerError(_detail(response))
    try:
        content: dict[str, Any] = json.loads(response.content)
    except ValueError:
        raise ServerError("the server at this address is not a fonds server") from None
    return content


def _detail(response: BufferedResponse) -> str:
    try:
        return str(json.loads(response.content)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {response.status} {response.reason}".strip()


async def _buffered(response: HttpResponse, url: str) -> BufferedResponse:
    return await buffer_response(response, url, max_bytes=_MAX_RESPONSE, seconds=None)


async def _iterated(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _lines(stream: BodyStream) -> Iterator[str]:
    pieces = aiter(stream)

    async def next_piece() -> bytes:
        return await anext(pieces, b"")

    unfinished = b""
    while piece := run_sync(next_piece()):
        *lines, unfinished = (unfinished + piece).split(b"\n")
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

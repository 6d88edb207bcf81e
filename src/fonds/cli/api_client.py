"""A client of the API of `fonds serve`; what goes wrong is told in plain words."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit
from uuid import uuid4

import httpx

from fonds.errors import ServerError, UsageError

TRIES: Final = 4
PATIENCE: Final = httpx.Timeout(60.0, connect=10.0)
_PAGE: Final = 200
_WORTH_REPEATING: Final = frozenset({429, 500, 502, 503, 504})
_FAILED: Final = ("failed_parse", "failed_chunking", "failed_embedding")
_GOOD: Final = 300


class ApiClient:
    """Speaks to one server as one user."""

    def __init__(self, server: str, token: str | None) -> None:
        if urlsplit(server).scheme not in {"http", "https"}:
            raise UsageError(f"{server!r} is no address of a server: it begins with http://")
        if not token:
            raise UsageError(
                "say who you are: --token, or FONDS_TOKEN, with what `fonds token create` printed"
            )
        if not token.isascii() or not token.isprintable():
            raise UsageError("a token has neither spaces nor signs outside of ASCII")
        self._server = server.rstrip("/")
        self._bearer = {"Authorization": f"Bearer {token.strip()}"}
        self._http = httpx.Client(timeout=PATIENCE, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_cause: object) -> None:
        self._http.close()

    def announce(self, name: str, size: int, sha256: str) -> dict[str, Any]:
        """Say what is coming, and learn where to send it."""
        return self._ask("POST", "/uploads", {"name": name, "bytes": size, "sha256": sha256})

    def send(self, address: Mapping[str, Any], size: int, pieces: Iterator[bytes]) -> None:
        """Send a file to the address that was given out for it."""
        headers = {**address["headers"], "Content-Length": str(size)}
        url = httpx.URL(self._server + "/").join(address["url"])
        try:
            answer = self._http.request(
                address["method"], url, content=pieces, headers=headers, timeout=PATIENCE
            )
        except httpx.TransportError as error:
            raise ServerError(f"the file could not be sent: {_words(error)}") from error
        if answer.status_code >= _GOOD:
            raise ServerError(f"the file was not taken: {_told(answer)}")

    def complete(self, document_id: str) -> dict[str, Any]:
        """Say that the file is there."""
        return self._ask("POST", f"/uploads/{document_id}/complete", {})

    def retry(self, document_id: str) -> dict[str, Any]:
        """Send a failed job back."""
        return self._ask("POST", f"/jobs/{quote(document_id, safe='')}/retry", {})

    def jobs(self, *, failed: bool, everybody: bool, limit: int) -> list[dict[str, Any]]:
        """Jobs, the newest first."""
        found: list[dict[str, Any]] = []
        asked: dict[str, Any] = {"status": list(_FAILED) if failed else []}
        if everybody:
            asked["all"] = "true"
        while len(found) < limit:
            asked["limit"] = min(_PAGE, limit - len(found))
            page = self._ask("GET", "/jobs", params=asked)
            found += page["jobs"]
            if page["next_cursor"] is None:
                break
            asked["cursor"] = page["next_cursor"]
        return found

    def follow(self, document_id: str) -> Iterator[dict[str, Any]]:
        """Where a job stands, whenever that changes; the last one has ended."""
        seen, failures = "", 0
        while failures < TRIES:
            try:
                for event in self._events(document_id, seen):
                    failures, seen = 0, event.get("id") or seen
                    if event["event"] in {"progress", "end"}:
                        yield event["data"]
                    if event["event"] == "end":
                        return
            except httpx.TransportError:
                failures += 1
                time.sleep(2**failures / 4)
        raise ServerError(
            f"the server no longer answers; `fonds jobs` says what became of {document_id}"
        )

    def _events(self, document_id: str, seen: str) -> Iterator[dict[str, Any]]:
        headers = self._bearer | ({"Last-Event-ID": seen} if seen else {})
        url = f"{self._server}/jobs/{document_id}/events"
        with self._http.stream("GET", url, headers=headers) as answer:
            if answer.status_code == 204:  # noqa: PLR2004 — it has ended, and all of it was seen
                yield {"event": "end", "data": self._ask("GET", f"/jobs/{document_id}")}
                return
            if answer.status_code >= _GOOD:
                answer.read()
                raise ServerError(_told(answer))
            yield from _read_events(answer.iter_lines())

    def _ask(
        self, method: str, path: str, body: Any = None, *, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Ask until there is an answer; whatever is done is done once."""
        headers = self._bearer | ({"Idempotency-Key": str(uuid4())} if method == "POST" else {})
        for tried in range(1, TRIES + 1):
            try:
                answer = self._http.request(
                    method,
                    self._server + path,
                    params=params,
                    json=body or None,
                    headers=headers,
                )
            except httpx.TransportError as error:
                if isinstance(error, httpx.ConnectError) or tried == TRIES:
                    raise ServerError(self._absent(error)) from error
            else:
                if answer.status_code not in _WORTH_REPEATING or tried == TRIES:
                    return _content(answer)
            time.sleep(2**tried / 4)
        raise AssertionError

    def _absent(self, error: httpx.TransportError) -> str:
        return (
            f"{self._server} does not answer ({_words(error)}): start `fonds serve`, and "
            "`fonds worker` beside it, or name another server with --server"
        )


def _content(answer: httpx.Response) -> dict[str, Any]:
    if answer.status_code >= _GOOD:
        raise ServerError(_told(answer))
    try:
        content: dict[str, Any] = answer.json()
    except ValueError:
        raise ServerError("what answers there is no fonds server") from None
    return content


def _told(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {answer.status_code} {answer.reason_phrase}".strip()


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


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

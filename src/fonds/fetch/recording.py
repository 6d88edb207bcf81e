"""Recordings of whole runs as WARC/1.1, which are replayed without a network."""

from __future__ import annotations

import asyncio
import hashlib
import io
import shutil
import tempfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from fonds.errors import IncompleteBodyError, NotRecordedError, UsageError
from fonds.fetch.redact import recorded_request_headers, recorded_response_headers
from fonds.fetch.transport import (
    BodyStream,
    HttpRequest,
    HttpResponse,
    HttpTransport,
    Transport,
    public_url,
)
from fonds.fetch.warc import (
    Exchange,
    ExchangeKey,
    RecordedResponse,
    exchange_key,
    open_response,
    read_recording,
)
from fonds.seams import Clock, Seams
from fonds.settings import Settings

_MAX_IN_MEMORY: Final = 4 * 2**20
# Bodies are recorded without their transfer encoding, so these headers would be wrong.
_CONNECTION_HEADERS: Final = frozenset({"connection", "keep-alive", "transfer-encoding"})


def open_recording(
    settings: Settings, seams: Seams, *, record: Path | None, replay: Path | None
) -> tuple[Settings, Seams, Transport]:
    """A transport that records to a file or replays one, with the settings and seams for it."""
    # A cluster's requests would pass by the transport.
    settings = replace(settings, engine="local")
    if replay is not None:
        replayed = ReplayTransport(replay)
        return without_waits(settings), replace(seams, clock=replayed.clock), replayed
    assert record is not None
    network = HttpTransport(
        allow_private=settings.allow_private,
        hosts=settings.hosts,
        only_mapped=not settings.contact_publishers,
    )
    return settings, seams, RecordingTransport(network, record, clock=seams.clock)


def without_waits(settings: Settings) -> Settings:
    """The settings for a replay, where no server needs politeness or time to recover."""
    return replace(settings, rate_factor=0.0, retry_wait=0.0, retry_wait_max=0.0)


class RecordingTransport:
    """Writes every request and its response to a new file, without secrets.

    It wraps the transport that maps hosts, so the recording has the original addresses. Each
    exchange is appended as soon as its body has been read, so that the recording of a killed
    process is readable up to there.
    """

    def __init__(self, inner: Transport, path: Path, *, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._lock = threading.Lock()
        try:
            self._file = path.open("xb")
        except FileExistsError as error:
            raise UsageError(f"{path} exists; a recording is never overwritten") from error
        info = _records().create_warcinfo_record(
            path.name, {"software": "fonds", "format": "WARC File Format 1.1"}
        )
        info.rec_headers.replace_header("WARC-Date", _iso(clock.now()))
        self._append(info)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request, and return a response whose body is recorded while it is read."""
        sent = await _request_content(request)
        response = await self._inner.send(replace(request, body=sent or None))
        time = self._clock.now()
        stream = _Tee(response.body, self, _ExchangeHead(request, sent, response, time))
        return replace(response, body=stream, received_at=time)

    async def write(self, head: _ExchangeHead, content: IO[bytes], truncated: str | None) -> None:
        """Append one exchange, and return when it is on file."""
        await asyncio.to_thread(lambda: self._append(*head.records(content, truncated)))

    def _append(self, *records: Any) -> None:
        with self._lock, tempfile.SpooledTemporaryFile(_MAX_IN_MEMORY) as buffer:
            writer = _records(buffer)
            for record in records:
                writer.write_record(record)
            buffer.seek(0)
            shutil.copyfileobj(buffer, self._file, 2**20)
            self._file.flush()

    async def aclose(self) -> None:
        """Close the recording and the transport that it wraps."""
        await self._inner.aclose()
        with self._lock:
            self._file.close()


class _ExchangeHead:
    """An exchange without the body of the response."""

    def __init__(
        self, request: HttpRequest, sent: bytes, response: HttpResponse, time: datetime
    ) -> None:
        self._url = public_url(request.url)
        self._method = request.method
        self._sent = sent
        host = ("Host", urlsplit(request.url).netloc)
        self._request_headers = recorded_request_headers([host, *request.headers])
        self._status = f"{response.status} {response.reason.encode('ascii', 'ignore').decode()}"
        self._response_headers = recorded_response_headers(
            pair for pair in response.headers if pair[0].lower() not in _CONNECTION_HEADERS
        )
        self._date = _iso(time)

    def records(self, content: IO[bytes], truncated: str | None) -> tuple[Any, Any]:
        request = self._request()
        fields = {
            "WARC-Date": self._date,
            "WARC-Concurrent-To": request.rec_headers.get_header("WARC-Record-ID"),
        }
        if truncated:
            fields["WARC-Truncated"] = truncated
        size = content.seek(0, io.SEEK_END)
        content.seek(0)
        head = StatusAndHeaders(self._status, self._response_headers, protocol="HTTP/1.1")
        response = _records().create_warc_record(
            self._url,
            "response",
            payload=content,
            length=size,
            warc_headers_dict=fields,
            http_headers=head,
        )
        return request, response

    def _request(self) -> Any:
        parts = urlsplit(self._url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        line = f"{self._method} {target} HTTP/1.1"
        return _records().create_warc_record(
            self._url,
            "request",
            payload=io.BytesIO(self._sent),
            length=len(self._sent),
            warc_headers_dict={"WARC-Date": self._date},
            http_headers=StatusAndHeaders(line, self._request_headers, is_http_request=True),
        )


class _Tee:
    """A body that is copied while it is read, and recorded at its end."""

    def __init__(
        self, stream: BodyStream, recording: RecordingTransport, head: _ExchangeHead
    ) -> None:
        self._stream = stream
        self._recording = recording
        self._head = head
        self._spool = tempfile.SpooledTemporaryFile(_MAX_IN_MEMORY)  # noqa: SIM115 — closed in _finish
        self._finished = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                self._spool.write(chunk)
                yield chunk
        except Exception:
            await self._finish("disconnect")
            raise
        await self._finish(None)

    async def aclose(self) -> None:
        await self._stream.aclose()
        await self._finish("unspecified")

    async def _finish(self, truncated: str | None) -> None:
        if self._finished:
            return
        self._finished = True
        with self._spool:
            await self._recording.write(self._head, self._spool, truncated)


class ReplayClock:
    """The recorded time: the start of the recording, then the time of the latest response."""

    def __init__(self, started_at: datetime) -> None:
        self._now = started_at

    def now(self) -> datetime:
        """The recorded time, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Seconds of this machine's monotonic clock."""
        return time.monotonic()

    def advance(self, time: datetime) -> None:
        """Advance to a time; responses in another order do not turn time back."""
        self._now = max(self._now, time)


class ReplayTransport:
    """Responds from a recording, without a network.

    A request that was recorded several times gets its responses in that order; the last one
    repeats. With `unfinished`, a recording may break off inside its last record.
    """

    def __init__(self, path: Path, *, unfinished: bool = False) -> None:
        self._path = path
        recording = read_recording(path, unfinished=unfinished)
        self._exchanges: dict[ExchangeKey, deque[Exchange]] = defaultdict(deque)
        for exchange in recording.exchanges:
            self._exchanges[exchange.key].append(exchange)
        self.clock = ReplayClock(recording.started_at)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The recorded response to this request."""
        sent = hashlib.sha256(await _request_content(request)).hexdigest()
        exchange = self._next(exchange_key(request.method, request.url, sent), request.url)
        response = open_response(self._path, exchange)
        self.clock.advance(exchange.received_at)
        return HttpResponse(
            status=response.status,
            headers=response.headers,
            reason=response.reason,
            body=_ReplayStream(response, public_url(request.url)),
            received_at=exchange.received_at,
        )

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    def _next(self, key: ExchangeKey, url: str) -> Exchange:
        exchanges = self._exchanges.get(key)
        if not exchanges:
            raise NotRecordedError(
                f"{self._path} has no response to {key[0]} {public_url(url)}; record the run again"
            )
        return exchanges.popleft() if len(exchanges) > 1 else exchanges[0]


class _ReplayStream:
    def __init__(self, response: RecordedResponse, url: str) -> None:
        self._response = response
        self._url = url

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._response.chunks():
            yield chunk
        if self._response.broke_off:
            raise IncompleteBodyError(f"{self._url} broke off when it was recorded")

    async def aclose(self) -> None:
        self._response.close()


def _records(out: IO[bytes] | None = None) -> Any:
    return WARCWriter(out, gzip=True, warc_version="1.1")


async def _request_content(request: HttpRequest) -> bytes:
    if request.body is None or isinstance(request.body, bytes):
        return request.body or b""
    return b"".join([chunk async for chunk in request.body])


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

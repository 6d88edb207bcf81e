"""Whole runs on file: recorded as WARC/1.1, replayed without a network."""

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
from fonds.fetch.secrecy import public_url, recorded_answer_headers, recorded_request_headers
from fonds.fetch.warcfile import (
    Exchange,
    Key,
    RecordedAnswer,
    exchange_key,
    read_answer,
    read_recording,
)
from fonds.fetch.wire import Answer, Body, Headers, Question, Wire, text
from fonds.seams import Clock
from fonds.settings import Settings

_HELD_IN_MEMORY: Final = 4 * 2**20
# Bodies are recorded after chunks have been joined, so these would be untrue of them.
_OF_THE_CONNECTION: Final = frozenset({"connection", "keep-alive", "transfer-encoding"})


def without_waits(settings: Settings) -> Settings:
    """The settings for a replay: nobody is there to be polite to or to recover."""
    return replace(settings, rate_factor=0.0, retry_wait=0.0, retry_wait_max=0.0)


class RecordingWire:
    """Passes questions on and writes every answered one to a new file, without secrets.

    It stands outside whatever maps hosts, so the recording speaks of the original addresses.
    An exchange is appended in one go once its body has been read, so a recording that was killed
    is readable up to there.
    """

    def __init__(self, inner: Wire, path: Path, *, clock: Clock) -> None:
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

    async def ask(self, question: Question) -> Answer:
        """Ask, and hand out an answer whose body is recorded while it is read."""
        sent = await _sent(question)
        if question.content is not None:
            question = replace(question, content=_once(sent))
        answer = await self._inner.ask(question)
        moment = self._clock.now()
        body = _Tee(answer.body, self, _Head(question, sent, answer, moment))
        return replace(answer, body=body, given_at=moment)

    async def write(self, head: _Head, body: IO[bytes], truncated: str | None) -> None:
        """Append one exchange, and have it on file before anybody goes on."""
        await asyncio.to_thread(lambda: self._append(*head.records(body, truncated)))

    def _append(self, *records: Any) -> None:
        with self._lock, tempfile.SpooledTemporaryFile(_HELD_IN_MEMORY) as buffer:
            writer = _records(buffer)
            for record in records:
                writer.write_record(record)
            buffer.seek(0)
            shutil.copyfileobj(buffer, self._file, 2**20)
            self._file.flush()

    async def aclose(self) -> None:
        """Close the recording and what it wraps."""
        await self._inner.aclose()
        with self._lock:
            self._file.close()


class _Head:
    """All of an exchange but the body of the answer."""

    def __init__(self, question: Question, sent: bytes, answer: Answer, moment: datetime) -> None:
        self._url = public_url(question.address.url)
        self._method = question.method.decode("ascii")
        self._sent = sent
        asked = [("Host", question.address.netloc), *_pairs(question.headers)]
        self._request_headers = recorded_request_headers(asked)
        self._status = f"{answer.status} {answer.reason.decode('ascii', 'ignore')}"
        kept = [p for p in _pairs(answer.headers) if p[0].lower() not in _OF_THE_CONNECTION]
        self._answer_headers = recorded_answer_headers(kept)
        self._date = _iso(moment)

    def records(self, body: IO[bytes], truncated: str | None) -> tuple[Any, Any]:
        request = self._request()
        fields = {
            "WARC-Date": self._date,
            "WARC-Concurrent-To": request.rec_headers.get_header("WARC-Record-ID"),
        }
        if truncated:
            fields["WARC-Truncated"] = truncated
        size = body.seek(0, io.SEEK_END)
        body.seek(0)
        head = StatusAndHeaders(self._status, self._answer_headers, protocol="HTTP/1.1")
        answer = _records().create_warc_record(
            self._url,
            "response",
            payload=body,
            length=size,
            warc_headers_dict=fields,
            http_headers=head,
        )
        return request, answer

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
    """A body that is kept aside while it is read, and recorded when that ends."""

    def __init__(self, body: Body, recording: RecordingWire, head: _Head) -> None:
        self._body = body
        self._recording = recording
        self._head = head
        self._spool = tempfile.SpooledTemporaryFile(_HELD_IN_MEMORY)  # noqa: SIM115 — closed in _finish
        self._finished = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._body:
                self._spool.write(chunk)
                yield chunk
        except Exception:
            await self._finish("disconnect")
            raise
        await self._finish(None)

    async def aclose(self) -> None:
        await self._body.aclose()
        await self._finish("unspecified")

    async def _finish(self, truncated: str | None) -> None:
        if self._finished:
            return
        self._finished = True
        with self._spool:
            await self._recording.write(self._head, self._spool, truncated)


class ReplayClock:
    """The recorded time: when the recording began, then when the latest answer was given."""

    def __init__(self, begun_at: datetime) -> None:
        self._now = begun_at

    def now(self) -> datetime:
        """The recorded moment, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that never go backwards, of this machine."""
        return time.monotonic()

    def advance(self, moment: datetime) -> None:
        """Go on to a moment; answers given in another order do not turn time back."""
        self._now = max(self._now, moment)


class ReplayWire:
    """Answers from a recording and never touches the network.

    The same request is answered as often as it was recorded, in that order; the last answer
    repeats. With `unfinished`, a recording may break off inside its last record.
    """

    def __init__(self, path: Path, *, unfinished: bool = False) -> None:
        self._path = path
        recording = read_recording(path, unfinished=unfinished)
        self._answers: dict[Key, deque[Exchange]] = defaultdict(deque)
        for exchange in recording.exchanges:
            self._answers[exchange.key].append(exchange)
        self.clock = ReplayClock(recording.begun_at)

    async def ask(self, question: Question) -> Answer:
        """The recorded answer to this question."""
        url = question.address.url
        sent = hashlib.sha256(await _sent(question)).hexdigest()
        exchange = self._next(exchange_key(question.method.decode("ascii"), url, sent), url)
        answer = read_answer(self._path, exchange)
        self.clock.advance(exchange.answered_at)
        return Answer(
            status=answer.status,
            headers=[(name.encode(), value.encode()) for name, value in answer.headers],
            reason=answer.reason.encode("ascii", "replace"),
            body=_Replayed(answer, public_url(url)),
            given_at=exchange.answered_at,
        )

    async def aclose(self) -> None:
        """Nothing is open."""

    def _next(self, key: Key, url: str) -> Exchange:
        waiting = self._answers.get(key)
        if not waiting:
            raise NotRecordedError(
                f"{self._path} holds no answer to {key[0]} {public_url(url)}; record the run anew"
            )
        return waiting.popleft() if len(waiting) > 1 else waiting[0]


class _Replayed:
    def __init__(self, answer: RecordedAnswer, url: str) -> None:
        self._answer = answer
        self._url = url

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._answer.pieces():
            yield piece
        if self._answer.broke_off:
            raise IncompleteBodyError(f"{self._url} broke off when it was recorded")

    async def aclose(self) -> None:
        self._answer.close()


def _records(out: IO[bytes] | None = None) -> Any:
    return WARCWriter(out, gzip=True, warc_version="1.1")


async def _sent(question: Question) -> bytes:
    return b"".join([piece async for piece in question.content or _once(b"")])


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), text(value)) for name, value in headers]


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

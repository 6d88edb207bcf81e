"""Reads WARC files: an index of exchanges by offset, and one response at a time."""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from warcio.limitreader import LimitReader
from warcio.statusandheaders import StatusAndHeadersParser, StatusAndHeadersParserException

from fonds.errors import MalformedError, UsageError
from fonds.fetch.redact import matching_url

_GZIP: Final = 16 + zlib.MAX_WBITS
_READ_SIZE: Final = 16 * 1024
_CHUNK_SIZE: Final = 64 * 1024
_MAX_HEAD: Final = 512 * 1024
_END_OF_RECORD: Final = b"\r\n\r\n"
_WARC: Final = StatusAndHeadersParser(["WARC/1.1", "WARC/1.0"])
_RESPONSE: Final = StatusAndHeadersParser(["HTTP/1.1", "HTTP/1.0"])
_REQUEST: Final = StatusAndHeadersParser([], verify=False)
_DAMAGE_ERRORS: Final = (EOFError, zlib.error, ValueError, StatusAndHeadersParserException)

ExchangeKey = tuple[str, str, str]
"""Method, address as `matching_url` returns it, SHA-256 of the request's body."""

_RecordedRequest = tuple[str, str]
"""Method, SHA-256 of the body."""


def exchange_key(method: str, url: str, body_sha256: str) -> ExchangeKey:
    """The key that a request and its recorded response have in common."""
    return method.upper(), matching_url(url), body_sha256


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """The offset of a response in the file, and the time it arrived."""

    key: ExchangeKey
    offset: int
    received_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """The contents of a recording, in its order."""

    started_at: datetime
    exchanges: tuple[Exchange, ...]


@dataclass(kw_only=True)
class RecordedResponse:
    """A recorded response whose body is still to be read; `close` it."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    broke_off: bool
    """The body was not complete when it was recorded."""
    _block: Any = field(repr=False)
    _file: IO[bytes] = field(repr=False)

    def chunks(self) -> Iterator[bytes]:
        """The body, chunk by chunk."""
        try:
            yield from _read_all(self._block)
        except _DAMAGE_ERRORS as error:
            raise MalformedError(f"{self._file.name} is damaged: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_recording(path: Path, *, unfinished: bool) -> Recording:
    """The index of a recording; an `unfinished` one may break off inside its last record."""
    index = _ResponseIndex()
    offset = 0
    try:
        with path.open("rb") as file:
            for offset, headers, request in _records(file):
                index.add(offset, headers, request)
    except FileNotFoundError as error:
        raise UsageError(f"the recording {path} does not exist") from error
    except EOFError as error:
        if not unfinished:
            raise MalformedError(
                f"{path} breaks off inside the record after byte {offset}"
            ) from error
    except _DAMAGE_ERRORS as error:
        raise MalformedError(
            f"{path} is not a readable WARC after byte {offset}: {error}"
        ) from error
    if index.started_at is None:
        raise MalformedError(f"{path} has no complete record")
    return Recording(started_at=index.started_at, exchanges=tuple(index.exchanges()))


def open_response(path: Path, exchange: Exchange) -> RecordedResponse:
    """One response of a recording."""
    file = path.open("rb")
    try:
        file.seek(exchange.offset)
        headers, block = _head(_GzipMember(file).buffered())
        http = _RESPONSE.parse(block)
        status, _, reason = http.statusline.partition(" ")
        return RecordedResponse(
            status=int(status),
            reason=reason,
            headers=http.headers,
            broke_off=headers.get_header("WARC-Truncated") is not None,
            _block=block,
            _file=file,
        )
    except _DAMAGE_ERRORS as error:
        file.close()
        raise MalformedError(f"{path} is damaged at byte {exchange.offset}: {error}") from error


class _GzipMember(io.RawIOBase):
    """One gzip member, which must be complete and have the right checksum."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._engine = zlib.decompressobj(_GZIP)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        while not self._engine.eof:
            raw = self._engine.unconsumed_tail or self._file.read(_READ_SIZE)
            if not raw:
                raise EOFError("the file is truncated")
            chunk = self._engine.decompress(raw, len(view))
            if chunk:
                view[: len(chunk)] = chunk
                return len(chunk)
        return 0

    def buffered(self) -> io.BufferedReader:
        return io.BufferedReader(self, _CHUNK_SIZE)

    def end(self) -> int:
        return self._file.tell() - len(self._engine.unused_data)


def _records(file: IO[bytes]) -> Iterator[tuple[int, Any, _RecordedRequest | None]]:
    """Complete records: the offset and headers of each, and its request if it is one."""
    size = file.seek(0, io.SEEK_END)
    offset = 0
    while offset < size:
        file.seek(offset)
        member = _GzipMember(file)
        stream = member.buffered()
        headers, block = _head(stream)
        request = _request(block) if headers.get_header("WARC-Type") == "request" else None
        for _ in _read_all(block):
            pass
        if block.limit or stream.read(len(_END_OF_RECORD) + 1) != _END_OF_RECORD:
            raise ValueError("the length of a record does not match its Content-Length")
        yield offset, headers, request
        offset = member.end()


def _head(stream: io.BufferedReader) -> tuple[Any, Any]:
    headers = _WARC.parse(LimitReader(stream, _MAX_HEAD))
    length = int(headers.get_header("Content-Length", ""))
    if length < 0:
        raise ValueError("a record has a negative length")
    return headers, LimitReader(stream, length)


def _read_all(block: Any) -> Iterator[bytes]:
    while chunk := block.read(_CHUNK_SIZE):
        yield chunk


class _ResponseIndex:
    """Collects responses, and matches requests to them by the ids in either record."""

    def __init__(self) -> None:
        self.started_at: datetime | None = None
        self._responses: list[tuple[int, Any]] = []
        self._requests: dict[str, _RecordedRequest] = {}

    def add(self, offset: int, headers: Any, request: _RecordedRequest | None) -> None:
        if self.started_at is None:
            self.started_at = _date(headers)
        if headers.get_header("WARC-Type") == "response":
            self._responses.append((offset, headers))
        elif request is not None:
            for name in ("WARC-Record-ID", "WARC-Concurrent-To"):
                self._requests[headers.get_header(name, "")] = request

    def exchanges(self) -> Iterator[Exchange]:
        empty = hashlib.sha256().hexdigest()
        for offset, headers in self._responses:
            own = headers.get_header("WARC-Record-ID", "")
            other = headers.get_header("WARC-Concurrent-To", "")
            requests = self._requests
            method, sha = requests.get(own) or requests.get(other) or ("GET", empty)
            url = headers.get_header("WARC-Target-URI", "").strip("<>")
            yield Exchange(
                key=exchange_key(method, url, sha), offset=offset, received_at=_date(headers)
            )


def _request(block: Any) -> _RecordedRequest:
    head = _REQUEST.parse(block)
    sha = hashlib.sha256()
    for chunk in _read_all(block):
        sha.update(chunk)
    return head.protocol, sha.hexdigest()


def _date(headers: Any) -> datetime:
    date = datetime.fromisoformat(headers.get_header("WARC-Date", ""))
    return date if date.tzinfo else date.replace(tzinfo=UTC)

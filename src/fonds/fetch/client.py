"""Fetches files politely, with retries, caps and deadlines."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, NamedTuple, Self
from urllib.parse import urljoin, urlsplit

from fonds.errors import (
    BadRedirectError,
    FetchError,
    FetchTimeoutError,
    NotFoundError,
    RateLimitedError,
    RefusedError,
    RetryableFetchError,
    UpstreamDownError,
)
from fonds.fetch.body_writer import BodyWriter, remove_stale_files
from fonds.fetch.rates import Pace, Rates, Sleep, log_retry
from fonds.fetch.transport import (
    BodyStream,
    HttpRequest,
    HttpResponse,
    HttpTransport,
    Transport,
    fold_headers,
    host_of,
    normalize_url,
    public_url,
)
from fonds.seams import Seams, spend
from fonds.settings import Settings
from fonds.stores.permissions import make_private_folder

MAX_REDIRECTS: Final = 10

FILE_HEADERS: Final = (
    "Content-Type",
    "Content-Length",
    "Content-Disposition",
    "ETag",
    "Last-Modified",
)
"""Headers of a response that describe the file."""

_FILE_HEADERS: Final = tuple((name, name.lower()) for name in FILE_HEADERS)

_MIB: Final = 2**20
# After so many timeouts, a server that sends single bytes to keep the connection alive must have
# sent this many bytes per second.
_DEADLINE_TIMEOUTS: Final = 20
_MIN_BYTES_PER_SECOND: Final = 32 * 1024
# A short response to an error or redirect is read to its end, so that its connection is reused.
_MAX_DRAINED: Final = 64 * 1024
_HARMLESS_HEADERS: Final = frozenset({"accept", "accept-language"})

_CAP_HINT: Final = "; FONDS_MAX_FILE_MIB sets the limit"

_PARTIAL: Final = 206
_NOT_MODIFIED: Final = 304
_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MISSING: Final = frozenset({404, 410})
_SERVER_ERRORS: Final = range(500, 600)
_SUCCESSES: Final = range(200, 300)
# Responses without a body or with a part of it: nothing that could be archived as the file.
_WITHOUT_FILE: Final = frozenset({204, 205, 206})

_log = logging.getLogger("fonds.fetch")


@dataclass(frozen=True, kw_only=True, slots=True)
class Validators:
    """ETag and date of the archived version, for a conditional request."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Download:
    """A file as it arrived; the caller moves or removes `file`."""

    url: str
    """As requested, before hosts and redirects, without secrets."""
    file: Path
    sha256: str
    """Of the decoded bytes."""
    size: int
    """Of the decoded bytes."""
    media_type: str | None
    etag: str | None
    last_modified: str | None
    retrieved_at: datetime
    address: str = ""
    """The address it was served from in the end, after redirects, without secrets."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Those of `FILE_HEADERS` that the response has."""
    is_temporary: bool = False
    """The fetcher made the file, and it may be moved; others have an owner."""
    start: int = 0
    """The offset of its first byte in the file, if a range was requested and the server sent it."""
    status: int = 200
    data: bytes | None = field(default=None, repr=False)
    """The content, if it is small enough for memory; there is no file then."""

    def read(self) -> bytes:
        """The content."""
        return self.file.read_bytes() if self.data is None else self.data

    def head(self, size: int) -> bytes:
        """The first bytes of the content."""
        if self.data is not None:
            return self.data[:size]
        with self.file.open("rb", buffering=0) as file:
            return file.read(size)

    def discard(self) -> None:
        """Remove the file, unless it was moved."""
        if self.data is None:
            self.file.unlink(missing_ok=True)


@dataclass(slots=True)
class RequestCounts:
    """How many requests were made, redirects and retries included."""

    total: int = 0
    conditional: int = 0
    hosts: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The hosts that each source requested, by their original names."""


Permit = Callable[[str], Awaitable[Pace]]
"""The pace at which an address may be requested; FetchError if it may not be."""

Check = Callable[[Mapping[str, str], bytes], None]
"""Called with the headers of a file, in lower case, and its first bytes, as they were sent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Hop:
    """One request of one attempt; each redirect makes another."""

    url: str
    target: str
    source: str
    pace: Pace
    validators: Validators
    max_in_memory: int
    max_size: int
    headers: Mapping[str, str] = field(repr=False)
    byte_range: tuple[int, int] | None
    permit: Permit | None
    check: Check | None

    @property
    def is_conditional(self) -> bool:
        return bool(self.validators.etag or self.validators.last_modified)


class Fetcher:
    """Fetches files for all sources of a process, over connections that are kept alive.

    `deadline` is the seconds that one response may take before it must arrive at a minimum rate;
    by default twenty timeouts.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        seams: Seams,
        folder: Path,
        transport: Transport | None = None,
        sleep: Sleep = asyncio.sleep,
        deadline: float | None = None,
    ) -> None:
        self._settings = settings
        self._seams = seams
        self._folder = folder
        self._transport = transport or HttpTransport(
            allow_private=settings.allow_private,
            hosts=settings.hosts,
            only_mapped=not settings.contact_publishers,
        )
        self._sleep = sleep
        self._rates = Rates(settings, seams.clock, sleep)
        self._deadline = deadline or settings.timeout * _DEADLINE_TIMEOUTS
        self.counts = RequestCounts()

    async def __aenter__(self) -> Self:
        self.prepare_folder()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def prepare_folder(self) -> None:
        """Create the folder for temporary files, and remove those of killed processes."""
        make_private_folder(self._folder)
        remove_stale_files(self._folder, self._seams.clock)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def download(
        self,
        url: str,
        *,
        source: str,
        pace: Pace,
        validators: Validators | None = None,
        headers: Mapping[str, str] | None = None,
        max_in_memory: int = 0,
        max_size: int | None = None,
        byte_range: tuple[int, int] | None = None,
        permit: Permit | None = None,
        check: Check | None = None,
    ) -> Download | None:
        """The file at an address, or None if it has not changed since the validators.

        `permit` is asked before each request, also of a redirect, and gives its pace. `check` sees
        the headers of the file and its first bytes, and may raise: then no more of it is read.

        A download of at most `max_in_memory` bytes is in memory and not in a file. TooLargeError
        at the first byte beyond `max_size`, or beyond the limit of the settings if that is less.
        Of a `byte_range`, its first byte and the one after its last, a server may send all of the
        file instead: see `Download.start`.
        """
        limit = self._settings.max_file_mib * _MIB
        hop = _Hop(
            url=url,
            target=url,
            source=source,
            pace=pace,
            validators=validators or Validators(),
            max_in_memory=max_in_memory,
            max_size=limit if max_size is None else min(limit, max_size),
            headers=headers or {},
            byte_range=byte_range,
            permit=permit,
            check=check,
        )
        backoff = Backoff(self._settings, self._seams.rng)
        while True:
            try:
                return await self._follow(hop)
            except RetryableFetchError as error:
                wait = backoff.next_wait(error)
                if wait is None:
                    raise
                _log.info("retrying in %.3f s: %s", wait, error)
            await self._sleep(wait)
            log_retry()

    async def _follow(self, hop: _Hop) -> Download | None:
        for _ in range(MAX_REDIRECTS + 1):
            if hop.permit is not None:
                hop = replace(hop, pace=await hop.permit(hop.target))
            outcome = await self._exchange(hop)
            if not isinstance(outcome, _Hop):
                return outcome
            hop = outcome
        raise BadRedirectError(
            f"{public_url(hop.url)} redirects more than {MAX_REDIRECTS} times; "
            f"it last pointed to {public_url(hop.target)}"
        )

    async def _exchange(self, hop: _Hop) -> Download | _Hop | None:
        request = self._request(hop)
        await self._rates.take(hop.source, hop.target, hop.pace)
        spend("http")
        self.counts.total += 1
        self.counts.conditional += hop.is_conditional
        self.counts.hosts[hop.source].add(host_of(request.url))
        try:
            async with asyncio.timeout(self._deadline) as deadline:
                return await self._respond(hop, request, deadline)
        except TimeoutError as error:
            raise FetchTimeoutError(f"{public_url(hop.target)} took too long") from error
        except RateLimitedError as error:
            wait = min(error.retry_after or 0.0, self._settings.retry_wait_max)
            self._rates.pause(hop.target, wait)
            raise

    def _request(self, hop: _Hop) -> HttpRequest:
        try:
            url = normalize_url(hop.target)
        except ValueError as error:
            raise BadRedirectError(
                f"{public_url(hop.url)} redirects to {public_url(hop.target)}, "
                "which is not an http or https address"
            ) from error
        headers = {
            "User-Agent": self._settings.user_agent,
            "Accept-Encoding": "gzip",
            **host_headers(self._settings, hop.target),
            **hop.headers,
        }
        if hop.byte_range is not None:
            start, end = hop.byte_range
            # Ranges of compressed bytes would be other ones.
            headers |= {"Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
        if hop.validators.etag:
            headers["If-None-Match"] = hop.validators.etag
        if hop.validators.last_modified:
            headers["If-Modified-Since"] = hop.validators.last_modified
        return HttpRequest(url=url, headers=list(headers.items()), timeout=self._settings.timeout)

    async def _respond(
        self, hop: _Hop, request: HttpRequest, deadline: asyncio.Timeout
    ) -> Download | _Hop | None:
        response = await self._transport.send(request)
        try:
            if response.status in _SUCCESSES and response.status not in _WITHOUT_FILE:
                return await self._receive(hop, response, deadline)
            if response.status == _PARTIAL and hop.byte_range is not None:
                _require_range(hop, response)
                return await self._receive(hop, response, deadline, start=hop.byte_range[0])
            await _drain(response.body)
            return self._without_file(hop, response)
        finally:
            await response.body.aclose()

    def _without_file(self, hop: _Hop, response: HttpResponse) -> _Hop | None:
        if response.status == _NOT_MODIFIED and hop.is_conditional:
            return None
        headers = fold_headers(response.headers)
        if response.status in _REDIRECTS:
            return _redirected(hop, headers.get("location"))
        raise _error_for(hop.target, response.status, headers, self._seams.clock.now())

    async def _receive(
        self, hop: _Hop, response: HttpResponse, deadline: asyncio.Timeout, *, start: int = 0
    ) -> Download:
        retrieved_at = response.received_at or self._seams.clock.now()
        headers = fold_headers(response.headers)
        body = aiter(response.body)
        if hop.check is not None:
            first = await anext(body, b"")
            hop.check(headers, first)
            body = _joined(first, body)
        writer = BodyWriter(
            hop.target,
            self._folder,
            cap=hop.max_size,
            hint=_CAP_HINT if hop.max_size == self._settings.max_file_mib * _MIB else "",
            encoding=headers.get("content-encoding", ""),
            announced=headers.get("content-length", ""),
            max_in_memory=hop.max_in_memory,
        )
        try:
            await _save(writer, body, deadline)
            await response.body.aclose()
            sha256 = writer.finish()
        except BaseException:
            writer.discard()
            raise
        return Download(
            url=(requested := public_url(hop.url)),
            file=writer.file,
            sha256=sha256,
            size=writer.size,
            media_type=headers.get("content-type"),
            etag=_sendable(headers.get("etag")),
            last_modified=_sendable(headers.get("last-modified")),
            retrieved_at=retrieved_at,
            address=requested if hop.target == hop.url else public_url(hop.target),
            headers={name: headers[low] for name, low in _FILE_HEADERS if low in headers},
            is_temporary=True,
            start=start,
            status=response.status,
            data=writer.data,
        )


def _require_range(hop: _Hop, response: HttpResponse) -> None:
    """RefusedError unless the server sent the range that was requested, or the start of it."""
    assert hop.byte_range is not None
    sent = fold_headers(response.headers).get("content-range", "")
    if not sent.startswith(f"bytes {hop.byte_range[0]}-"):
        raise RefusedError(f"{public_url(hop.target)} sent another range than requested: {sent!r}")


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


async def _save(
    writer: BodyWriter, stream: AsyncIterator[bytes], deadline: asyncio.Timeout
) -> None:
    """Write a body; every MiB that arrives extends the deadline."""
    first_deadline = deadline.when()
    extend_at = _MIB
    async for chunk in stream:
        writer.add(chunk)
        if writer.received >= extend_at and first_deadline is not None:
            extend_at = writer.received + _MIB
            deadline.reschedule(first_deadline + writer.received / _MIN_BYTES_PER_SECOND)


async def _drain(stream: BodyStream) -> None:
    drained = 0
    try:
        async for chunk in stream:
            drained += len(chunk)
            if drained > _MAX_DRAINED:
                return
    except FetchError:
        return  # only the status is needed


def _redirected(hop: _Hop, location: str | None) -> _Hop:
    if not location:
        raise BadRedirectError(f"{public_url(hop.target)} redirects without a Location header")
    try:
        target = urljoin(hop.target, location)
        may_send_headers = _may_send_key(hop.target, target)
    except ValueError as error:
        raise BadRedirectError(
            f"{public_url(hop.target)} redirects to a malformed address"
        ) from error
    headers = hop.headers
    if not may_send_headers:
        headers = {n: value for n, value in headers.items() if n.lower() in _HARMLESS_HEADERS}
    return replace(hop, target=target, headers=headers)


def _may_send_key(old_url: str, new_url: str) -> bool:
    """True if a key sent to one address may be sent to the other: same host, no loss of TLS."""
    old, new = urlsplit(old_url), urlsplit(new_url)
    if old.hostname != new.hostname:
        return False
    return (old.scheme, old.port) == (new.scheme, new.port) or (
        (old.scheme, new.scheme) == ("http", "https") and old.port is None and new.port is None
    )


def _sendable(validator: str | None) -> str | None:
    """A validator that can be sent back byte for byte, or None."""
    return validator if validator and validator.isascii() and validator.isprintable() else None


def _error_for(url: str, status: int, headers: Mapping[str, str], now: datetime) -> FetchError:
    """The error of an unsuccessful response."""
    where = public_url(url)
    wait = retry_after(headers.get("retry-after"), now)
    if status in _MISSING:
        return NotFoundError(f"{where} does not exist ({status})")
    if status == _TOO_MANY_REQUESTS or (status == _UNAVAILABLE and wait is not None):
        return RateLimitedError(f"{where} has too many requests ({status})", retry_after=wait)
    if status in _SERVER_ERRORS:
        return UpstreamDownError(f"{where} failed ({status})", retry_after=wait)
    return RefusedError(f"{where} answered {status} instead of the file")


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header, which contains seconds or a date."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        time = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    aware = time if time.tzinfo else time.replace(tzinfo=now.tzinfo)
    return max(0.0, (aware - now).total_seconds())


class Backoff:
    """The waits between the tries of one request."""

    def __init__(self, settings: Settings, jitter: random.Random) -> None:
        self._first = settings.retry_wait
        self._max = settings.retry_wait_max
        self._max_tries = settings.retries
        self._jitter = jitter
        self._failures = 0

    def next_wait(self, error: RetryableFetchError) -> float | None:
        """Seconds before the next try, by the server's header or a guess; None: no more tries."""
        self._failures += 1
        if self._failures >= self._max_tries:
            return None
        if error.retry_after is not None:
            return float(min(error.retry_after, self._max))
        return float(min(self._guess(), self._max))

    def _guess(self) -> float:
        # Without jitter, parallel requests that failed together would be retried together.
        doubled = self._first * 2.0 ** min(self._failures - 1, 32)
        return doubled + self._jitter.uniform(0, self._first)


class _ApiKey(NamedTuple):
    setting: str
    header: str
    form: str


_DATA_GOV: Final = _ApiKey("data_gov_key", "X-Api-Key", "{}")
_API_KEYS: Final = {
    "api.congress.gov": _DATA_GOV,
    "api.govinfo.gov": _DATA_GOV,
    "lda.gov": _ApiKey("lda_key", "Authorization", "Token {}"),
}


def host_headers(settings: Settings, url: str) -> dict[str, str]:
    """The headers that particular hosts need: media types, and keys for their own host only."""
    return {"Accept": _accepted(url), **_key_header(settings, url)}


def _accepted(url: str) -> str:
    parts = urlsplit(url)
    # These listings respond with 406 to `Accept: */*`.
    is_listing = parts.hostname == "www.govinfo.gov" and parts.path.startswith("/bulkdata/json/")
    return "application/json" if is_listing else "*/*"


def _key_header(settings: Settings, url: str) -> dict[str, str]:
    """The header with the API key for this address, if it needs one and one is set."""
    parts = urlsplit(url)
    api_key = _API_KEYS.get((parts.hostname or "").lower())
    # A key is never sent unencrypted, not even after a redirect.
    if api_key is None or parts.scheme != "https":
        return {}
    key: str = getattr(settings, api_key.setting)
    return {api_key.header: api_key.form.format(key)} if key else {}

"""Asking: one file at a time to a temporary file, politely, with retries and caps."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

import httpx
import stamina

from fonds.errors import (
    BadRedirectError,
    ConnectionFailedError,
    FetchError,
    FetchTimeoutError,
    RateLimitedError,
)
from fonds.fetch import answers
from fonds.fetch.bodies import Intake, sweep
from fonds.fetch.customs import headers_for
from fonds.fetch.network import NetworkTransport
from fonds.fetch.patience import retried
from fonds.fetch.rates import Pace, Rates, Sleep
from fonds.fetch.retries import Backoff
from fonds.fetch.secrecy import public_url
from fonds.seams import Seams, spend
from fonds.settings import Settings

MAX_REDIRECTS: Final = 10

RETRIEVED_AT: Final = "fonds.retrieved_at"
"""Extension of an answer by which a recording or a replay says when it was given."""

TOLD: Final = ("Content-Type", "Content-Length", "Content-Disposition", "ETag", "Last-Modified")
"""Headers of an answer that tell of the file."""

_READ: Final = (*TOLD, "Content-Encoding")
_MIB: Final = 2**20
# An upstream that keeps a connection alive with single bytes is given up after so many timeouts,
# and has to deliver this much a second from then on.
_PATIENCE: Final = 20
_SLOWEST: Final = 32 * 1024
# The text of an error or redirect is read to its end, if that is near, to reuse the connection.
_DRAINED: Final = 64 * 1024
_HARMLESS_HEADERS: Final = frozenset({"accept", "accept-language"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Validators:
    """What an upstream said about the version we hold, for asking whether it has changed."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Download:
    """A file as it arrived; whoever receives it moves or removes `file`."""

    url: str
    """As asked for, before hosts and redirects, without secrets."""
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
    """Where it was served in the end, after redirects, without secrets."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Those of the answer that tell of the file: `TOLD`."""
    is_ours: bool = False
    """The file was made by the fetcher, and may be moved; others belong to somebody."""
    data: bytes | None = field(default=None, repr=False)
    """All of it, where it is no longer than was to be held in memory; there is no file then."""

    def read(self) -> bytes:
        """All of it."""
        return self.file.read_bytes() if self.data is None else self.data

    def discard(self) -> None:
        """Remove its file, if it has one that nobody has moved."""
        if self.data is None:
            self.file.unlink(missing_ok=True)


@dataclass(slots=True)
class Tally:
    """How often upstreams were asked, redirects and repetitions included."""

    total: int = 0
    conditional: int = 0
    hosts: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Those that each source asked, whoever stood in for them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ask:
    """One hop of one try."""

    url: str
    target: str
    source: str
    pace: Pace
    validators: Validators
    held: int
    headers: Mapping[str, str] = field(repr=False)

    @property
    def is_conditional(self) -> bool:
        return bool(self.validators.etag or self.validators.last_modified)


class Fetcher:
    """Fetches files for all sources of a process, over kept-alive connections.

    `deadline` is how many seconds one answer may take in all before it must at least be
    trickling in; by default twenty timeouts.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        seams: Seams,
        folder: Path,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Sleep = asyncio.sleep,
        deadline: float | None = None,
    ) -> None:
        self._settings = settings
        self._seams = seams
        self._folder = folder
        self._transport = transport or NetworkTransport(settings)
        self._rates = Rates(settings, seams.clock, sleep)
        self._deadline = deadline or settings.timeout * _PATIENCE
        wait = settings.timeout
        self._extensions = {"timeout": {"connect": wait, "read": wait, "write": wait}}
        self.tally = Tally()

    async def __aenter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        sweep(self._folder, self._seams.clock)
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._transport.__aexit__(kind, error, trace)

    async def download(
        self,
        url: str,
        *,
        source: str,
        pace: Pace,
        validators: Validators | None = None,
        headers: Mapping[str, str] | None = None,
        held: int = 0,
    ) -> Download | None:
        """The file at an address, or None where it has not changed since the validators.

        One that has no more bytes than `held` is kept in memory, and has no file.
        """
        ask = _Ask(
            url=url,
            target=url,
            source=source,
            pace=pace,
            validators=validators or Validators(),
            held=held,
            headers=headers or {},
        )
        try:
            return await self._follow(ask)
        except FetchError as error:
            first = error
        # Most requests succeed at once, and the machinery of trying again costs as much as they do.
        tries = stamina.retry_context(
            on=Backoff(self._settings, self._seams.chance),
            attempts=max(1, self._settings.retries),
            timeout=None,
        )
        async for attempt in tries:
            with attempt:
                if attempt.num == 1:
                    raise first
                retried()
                return await self._follow(ask)
        raise AssertionError("the last try returns or raises")

    async def _follow(self, ask: _Ask) -> Download | None:
        for _ in range(MAX_REDIRECTS + 1):
            outcome = await self._exchange(ask)
            if not isinstance(outcome, _Ask):
                return outcome
            ask = outcome
        raise BadRedirectError(
            f"{public_url(ask.url)} redirects more than {MAX_REDIRECTS} times; "
            f"it last pointed to {public_url(ask.target)}"
        )

    async def _exchange(self, ask: _Ask) -> Download | _Ask | None:
        address = _http_address(ask)
        request = self._request(ask, address)
        await self._rates.take(ask.source, ask.target, ask.pace)
        spend("http")
        self.tally.total += 1
        self.tally.conditional += ask.is_conditional
        self.tally.hosts[ask.source].add(address.host)
        try:
            async with asyncio.timeout(self._deadline) as deadline:
                return await self._answered(ask, request, deadline)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise FetchTimeoutError(f"{public_url(ask.target)} took too long") from error
        except httpx.TransportError as error:
            raise ConnectionFailedError(
                f"the connection to {public_url(ask.target)} failed: {error}"
            ) from error
        except RateLimitedError as error:
            wait = min(error.retry_after or 0.0, self._settings.retry_wait_max)
            self._rates.hold(ask.target, wait)
            raise

    def _request(self, ask: _Ask, address: httpx.URL) -> httpx.Request:
        headers = {
            "User-Agent": self._settings.user_agent,
            "Accept-Encoding": "gzip",
            **headers_for(self._settings, ask.target),
            **ask.headers,
        }
        if ask.validators.etag:
            headers["If-None-Match"] = ask.validators.etag
        if ask.validators.last_modified:
            headers["If-Modified-Since"] = ask.validators.last_modified
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        return httpx.Request("GET", address, headers=encoded, extensions=self._extensions)

    async def _answered(
        self, ask: _Ask, request: httpx.Request, deadline: asyncio.Timeout
    ) -> Download | _Ask | None:
        answer = await self._transport.handle_async_request(request)
        body = answer.stream
        assert isinstance(body, httpx.AsyncByteStream)
        try:
            if answers.is_fine(answer.status_code):
                return await self._received(ask, answer, body, deadline)
            await _drain(body)
            return self._without_file(ask, answer)
        finally:
            await body.aclose()

    def _without_file(self, ask: _Ask, answer: httpx.Response) -> _Ask | None:
        if answer.status_code == answers.NOT_MODIFIED and ask.is_conditional:
            return None
        if answer.status_code in answers.REDIRECTS:
            return _redirected(ask, answer.headers.get("location"))
        now = self._seams.clock.now()
        raise answers.failure(ask.target, answer.status_code, answer.headers, now)

    async def _received(
        self,
        ask: _Ask,
        answer: httpx.Response,
        body: httpx.AsyncByteStream,
        deadline: asyncio.Timeout,
    ) -> Download:
        retrieved_at = answer.extensions.get(RETRIEVED_AT) or self._seams.clock.now()
        told = _told(answer)
        intake = Intake(
            ask.target,
            self._folder,
            cap=self._settings.max_file_mib * _MIB,
            encoding=told.get("Content-Encoding", ""),
            announced=told.get("Content-Length", ""),
            held=ask.held,
        )
        try:
            await _fill(intake, body, deadline)
            await body.aclose()
            sha256 = intake.finish()
        except BaseException:
            intake.discard()
            raise
        return Download(
            url=(asked := public_url(ask.url)),
            file=intake.file,
            sha256=sha256,
            size=intake.size,
            media_type=told.get("Content-Type"),
            etag=_sendable(told.get("ETag")),
            last_modified=_sendable(told.get("Last-Modified")),
            retrieved_at=retrieved_at,
            address=asked if ask.target == ask.url else public_url(ask.target),
            headers={name: told[name] for name in TOLD if name in told},
            is_ours=True,
            data=intake.data,
        )


def _told(answer: httpx.Response) -> dict[str, str]:
    """Those headers that matter here; each look into httpx's own goes through all of them."""
    held: dict[str, str] = {}
    for name, value in answer.headers.multi_items():
        held[name] = f"{held[name]}, {value}" if name in held else value
    return {name: held[name.lower()] for name in _READ if name.lower() in held}


async def _fill(intake: Intake, body: httpx.AsyncByteStream, deadline: asyncio.Timeout) -> None:
    """Every MiB that arrives buys the upstream some more time."""
    promised = deadline.when()
    extended = _MIB
    async for chunk in body:
        intake.add(chunk)
        if intake.received >= extended and promised is not None:
            extended = intake.received + _MIB
            deadline.reschedule(promised + intake.received / _SLOWEST)


async def _drain(body: httpx.AsyncByteStream) -> None:
    drained = 0
    try:
        async for chunk in body:
            drained += len(chunk)
            if drained > _DRAINED:
                return
    except (FetchError, httpx.TransportError):
        return  # the status has said it all


def _http_address(ask: _Ask) -> httpx.URL:
    with suppress(httpx.InvalidURL, ValueError):
        address = httpx.URL(ask.target)
        # httpx lets pass some hosts and ports that others stumble over.
        has_host = bool(urlsplit(ask.target).hostname) and urlsplit(ask.target).port != 0
        if has_host and address.scheme in {"http", "https"}:
            return address
    raise BadRedirectError(
        f"{public_url(ask.url)} leads to {public_url(ask.target)}, "
        "which is no http or https address"
    )


def _redirected(ask: _Ask, location: str | None) -> _Ask:
    if not location:
        raise BadRedirectError(f"{public_url(ask.target)} redirects without saying where to")
    try:
        target = urljoin(ask.target, location)
        keeps_headers = _is_same_party(ask.target, target)
    except ValueError as error:
        raise BadRedirectError(
            f"{public_url(ask.target)} redirects to an address that cannot be read"
        ) from error
    headers = ask.headers
    if not keeps_headers:
        headers = {n: value for n, value in headers.items() if n.lower() in _HARMLESS_HEADERS}
    return replace(ask, target=target, headers=headers)


def _is_same_party(here: str, there: str) -> bool:
    """Whether a key sent here may also be sent there: same host, and no step back from TLS."""
    old, new = urlsplit(here), urlsplit(there)
    if old.hostname != new.hostname:
        return False
    return (old.scheme, old.port) == (new.scheme, new.port) or (
        (old.scheme, new.scheme) == ("http", "https") and old.port is None and new.port is None
    )


def _sendable(validator: str | None) -> str | None:
    """A validator is sent back byte for byte or not at all."""
    return validator if validator and validator.isascii() and validator.isprintable() else None

"""Asking: one file at a time to a temporary file, politely, with retries and caps."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

from fonds.errors import (
    BadRedirectError,
    FetchError,
    FetchTimeoutError,
    RateLimitedError,
)
from fonds.fetch import answers
from fonds.fetch.addresses import Address, read_address
from fonds.fetch.bodies import Intake, sweep
from fonds.fetch.customs import headers_for
from fonds.fetch.network import Network
from fonds.fetch.patience import retried
from fonds.fetch.rates import Pace, Rates, Sleep
from fonds.fetch.secrecy import public_url
from fonds.fetch.wire import Answer, Body, Question, Wire, told
from fonds.seams import Seams, spend
from fonds.settings import Settings

MAX_REDIRECTS: Final = 10

TOLD: Final = ("Content-Type", "Content-Length", "Content-Disposition", "ETag", "Last-Modified")
"""Headers of an answer that tell of the file."""

_TOLD: Final = tuple((name, name.lower()) for name in TOLD)

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
        wire: Wire | None = None,
        sleep: Sleep = asyncio.sleep,
        deadline: float | None = None,
    ) -> None:
        self._settings = settings
        self._seams = seams
        self._folder = folder
        self._wire = wire or Network(settings)
        self._rates = Rates(settings, seams.clock, sleep)
        self._deadline = deadline or settings.timeout * _PATIENCE
        self.tally = Tally()

    async def __aenter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        sweep(self._folder, self._seams.clock)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._wire.aclose()

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
        from fonds.fetch.retries import tries  # noqa: PLC0415 — nor is it loaded for those

        async for attempt in tries(self._settings, self._seams.chance):
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
        question = self._question(ask, address)
        await self._rates.take(ask.source, ask.target, ask.pace)
        spend("http")
        self.tally.total += 1
        self.tally.conditional += ask.is_conditional
        self.tally.hosts[ask.source].add(address.name)
        try:
            async with asyncio.timeout(self._deadline) as deadline:
                return await self._answered(ask, question, deadline)
        except TimeoutError as error:
            raise FetchTimeoutError(f"{public_url(ask.target)} took too long") from error
        except RateLimitedError as error:
            wait = min(error.retry_after or 0.0, self._settings.retry_wait_max)
            self._rates.hold(ask.target, wait)
            raise

    def _question(self, ask: _Ask, address: Address) -> Question:
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
        return Question(address=address, headers=encoded, patience=self._settings.timeout)

    async def _answered(
        self, ask: _Ask, question: Question, deadline: asyncio.Timeout
    ) -> Download | _Ask | None:
        answer = await self._wire.ask(question)
        try:
            if answers.is_fine(answer.status):
                return await self._received(ask, answer, deadline)
            await _drain(answer.body)
            return self._without_file(ask, answer)
        finally:
            await answer.body.aclose()

    def _without_file(self, ask: _Ask, answer: Answer) -> _Ask | None:
        if answer.status == answers.NOT_MODIFIED and ask.is_conditional:
            return None
        headers = told(answer.headers)
        if answer.status in answers.REDIRECTS:
            return _redirected(ask, headers.get("location"))
        raise answers.failure(ask.target, answer.status, headers, self._seams.clock.now())

    async def _received(self, ask: _Ask, answer: Answer, deadline: asyncio.Timeout) -> Download:
        retrieved_at = answer.given_at or self._seams.clock.now()
        headers = told(answer.headers)
        intake = Intake(
            ask.target,
            self._folder,
            cap=self._settings.max_file_mib * _MIB,
            encoding=headers.get("content-encoding", ""),
            announced=headers.get("content-length", ""),
            held=ask.held,
        )
        try:
            await _fill(intake, answer.body, deadline)
            await answer.body.aclose()
            sha256 = intake.finish()
        except BaseException:
            intake.discard()
            raise
        return Download(
            url=(asked := public_url(ask.url)),
            file=intake.file,
            sha256=sha256,
            size=intake.size,
            media_type=headers.get("content-type"),
            etag=_sendable(headers.get("etag")),
            last_modified=_sendable(headers.get("last-modified")),
            retrieved_at=retrieved_at,
            address=asked if ask.target == ask.url else public_url(ask.target),
            headers={name: headers[low] for name, low in _TOLD if low in headers},
            is_ours=True,
            data=intake.data,
        )


async def _fill(intake: Intake, body: Body, deadline: asyncio.Timeout) -> None:
    """Every MiB that arrives buys the upstream some more time."""
    promised = deadline.when()
    extended = _MIB
    async for chunk in body:
        intake.add(chunk)
        if intake.received >= extended and promised is not None:
            extended = intake.received + _MIB
            deadline.reschedule(promised + intake.received / _SLOWEST)


async def _drain(body: Body) -> None:
    drained = 0
    try:
        async for chunk in body:
            drained += len(chunk)
            if drained > _DRAINED:
                return
    except FetchError:
        return  # the status has said it all


def _http_address(ask: _Ask) -> Address:
    try:
        return read_address(ask.target)
    except ValueError as error:
        raise BadRedirectError(
            f"{public_url(ask.url)} leads to {public_url(ask.target)}, "
            "which is no http or https address"
        ) from error


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

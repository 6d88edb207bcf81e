"""Rate limits: when a source may send a request to a host, and a log of waits and retries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from fonds.fetch.transport import is_loopback, map_url
from fonds.seams import Clock
from fonds.settings import Settings

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Requests per second of a source, and how many may be sent together after a pause."""

    per_second: float
    burst: int = 1
    include_loopback: bool = False
    """It also applies to servers on this machine, which are exempt otherwise."""

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1:
            raise ValueError("a pace needs more than 0 requests per second and a burst of 1")


class Bucket:
    """A token bucket: callers reserve tokens in order and wait until they are available."""

    def __init__(self, pace: Pace, clock: Clock) -> None:
        self._pace = pace
        self._clock = clock
        self._tokens = float(pace.burst)
        self._filled_at = clock.monotonic()
        self._paused_until = self._filled_at

    def slow_to(self, pace: Pace) -> None:
        """Use the stricter of both paces."""
        self._pace = Pace(
            per_second=min(pace.per_second, self._pace.per_second),
            burst=min(pace.burst, self._pace.burst),
        )

    def pause(self, seconds: float) -> None:
        """Let every caller wait for at least so many seconds from now."""
        self._paused_until = max(self._paused_until, self._clock.monotonic() + seconds)

    def reserve(self, amount: float = 1.0) -> float:
        """Take tokens, and return the seconds until they are available."""
        now = self._clock.monotonic()
        earned = (now - self._filled_at) * self._pace.per_second
        self._tokens = min(float(self._pace.burst), self._tokens + earned) - amount
        self._filled_at = now
        return max(0.0, -self._tokens / self._pace.per_second, self._paused_until - now)


class Rates:
    """One bucket for each source and one for each host; a request takes a token from both.

    The strictest pace of the sources that share a host applies to it. Servers on this machine
    are exempt, unless a pace includes them.
    """

    def __init__(self, settings: Settings, clock: Clock, sleep: Sleep = asyncio.sleep) -> None:
        self._factor = settings.rate_factor
        self._hosts = settings.hosts
        self._clock = clock
        self._sleep = sleep
        self._sources: dict[str, Bucket] = {}
        self._upstreams: dict[str, Bucket] = {}

    async def take(self, source: str, url: str, pace: Pace) -> None:
        """Wait until this source may send a request to this address."""
        if self._factor <= 0 or (not pace.include_loopback and self._is_local(url)):
            return
        scaled = Pace(per_second=pace.per_second * self._factor, burst=pace.burst)
        waits = (
            self._bucket(self._sources, source, scaled).reserve(),
            self._bucket(self._upstreams, _host(url), scaled).reserve(),
        )
        if max(waits) > 0:
            await self._sleep(max(waits))
            log_wait(max(waits))

    def pause(self, url: str, seconds: float) -> None:
        """Let all requests to this host wait, as its response requires."""
        bucket = self._upstreams.get(_host(url))
        if bucket is not None:
            bucket.pause(seconds)

    def _is_local(self, url: str) -> bool:
        return is_loopback(map_url(url, self._hosts))

    def _bucket(self, buckets: dict[str, Bucket], name: str, pace: Pace) -> Bucket:
        bucket = buckets.get(name)
        if bucket is None:
            bucket = buckets[name] = Bucket(pace, self._clock)
        else:
            bucket.slow_to(pace)
        return bucket


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").lower()


class RetryLog(Protocol):
    """Counts the waits and retries of some requests."""

    def waited(self, seconds: float) -> None:
        """Count a request that had to wait for the rate limit."""
        ...

    def retried(self) -> None:
        """Count a request that is sent again."""
        ...


# By context and not by process, as sources run concurrently and share hosts.
_retry_log: Final[ContextVar[RetryLog | None]] = ContextVar("retry_log", default=None)


def log_wait(seconds: float) -> None:
    """Count a request that had to wait, in the log of this context."""
    log = _retry_log.get()
    if log is not None:
        log.waited(seconds)


def log_retry() -> None:
    """Count a request that is sent again, in the log of this context."""
    log = _retry_log.get()
    if log is not None:
        log.retried()


def use_retry_log(log: RetryLog) -> None:
    """Count the waits and retries of this asyncio task, to its end."""
    _retry_log.set(log)


@contextmanager
def logged_to(log: RetryLog) -> Iterator[None]:
    """Count the waits and retries of this context, and of the tasks it starts."""
    token = _retry_log.set(log)
    try:
        yield
    finally:
        _retry_log.reset(token)

"""Politeness: how often an upstream is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from fonds.fetch.hosts import is_this_machine, map_url
from fonds.fetch.patience import waited
from fonds.seams import Clock
from fonds.settings import Settings

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """How often a source may ask, and how many requests may come at once after a pause."""

    per_second: float
    burst: int = 1
    at_home: bool = False
    """It holds on this machine, too: a server here that asks for patience means it."""

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1:
            raise ValueError("a pace needs more than 0 requests per second and a burst of 1")


class Bucket:
    """Hands out turns: each caller is told how long to wait for its own, in order of asking."""

    def __init__(self, pace: Pace, clock: Clock) -> None:
        self._pace = pace
        self._clock = clock
        self._tokens = float(pace.burst)
        self._filled_at = clock.monotonic()
        self._held_until = self._filled_at

    def slow_to(self, pace: Pace) -> None:
        """Keep the stricter of both paces."""
        self._pace = Pace(
            per_second=min(pace.per_second, self._pace.per_second),
            burst=min(pace.burst, self._pace.burst),
        )

    def hold(self, seconds: float) -> None:
        """Give no turn before so many seconds have passed."""
        self._held_until = max(self._held_until, self._clock.monotonic() + seconds)

    def reserve(self, amount: float = 1.0) -> float:
        """Take a turn, or as much as so many, and say in how many seconds it comes."""
        now = self._clock.monotonic()
        earned = (now - self._filled_at) * self._pace.per_second
        self._tokens = min(float(self._pace.burst), self._tokens + earned) - amount
        self._filled_at = now
        return max(0.0, -self._tokens / self._pace.per_second, self._held_until - now)


class Rates:
    """One bucket for each source and one for each host; a request takes a turn from both.

    Sources that share a host are held to the strictest of their paces there. A stand-in on this
    machine needs no politeness, unless a pace says so.
    """

    def __init__(self, settings: Settings, clock: Clock, sleep: Sleep = asyncio.sleep) -> None:
        self._factor = settings.rate_factor
        self._hosts = settings.hosts
        self._clock = clock
        self._sleep = sleep
        self._sources: dict[str, Bucket] = {}
        self._upstreams: dict[str, Bucket] = {}

    async def take(self, source: str, url: str, pace: Pace) -> None:
        """Wait until this source may ask this address."""
        if self._factor <= 0 or (not pace.at_home and self._is_here(url)):
            return
        scaled = Pace(per_second=pace.per_second * self._factor, burst=pace.burst)
        turns = (
            self._bucket(self._sources, source, scaled).reserve(),
            self._bucket(self._upstreams, _host(url), scaled).reserve(),
        )
        if max(turns) > 0:
            await self._sleep(max(turns))
            waited(max(turns))

    def hold(self, url: str, seconds: float) -> None:
        """Let everybody wait for this host, as it asked for."""
        bucket = self._upstreams.get(_host(url))
        if bucket is not None:
            bucket.hold(seconds)

    def _is_here(self, url: str) -> bool:
        return is_this_machine(map_url(url, self._hosts))

    def _bucket(self, buckets: dict[str, Bucket], name: str, pace: Pace) -> Bucket:
        bucket = buckets.get(name)
        if bucket is None:
            bucket = buckets[name] = Bucket(pace, self._clock)
        else:
            bucket.slow_to(pace)
        return bucket


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").lower()

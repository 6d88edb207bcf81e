"""How often one client may ask; each has a bucket that fills at a steady rate."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from threading import Lock
from typing import Final

from fastapi import Request

from fonds.api.desk import desk_of
from fonds.api.problems import ProblemError
from fonds.seams import Clock

MOST_CLIENTS: Final = 10_000
"""Whoever has not asked for longest is forgotten, and begins with a full bucket."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Limit:
    """So many at once, and so many a second."""

    def __init__(self, *, burst: int, per_second: float, clock: Clock) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = Lock()

    def wait(self, client: str) -> float:
        """Take one; the seconds until there is one again, or 0 if it was given."""
        now = self._clock.monotonic()
        with self._lock:
            bucket = self._buckets.pop(client, None) or _Bucket(self._burst, now)
            filled = bucket.tokens + (now - bucket.at) * self._per_second
            bucket.tokens, bucket.at = min(self._burst, filled), now
            self._buckets[client] = bucket
            if len(self._buckets) > MOST_CLIENTS:
                self._buckets.popitem(last=False)
            if bucket.tokens < 1:
                return (1 - bucket.tokens) / self._per_second
            bucket.tokens -= 1
            return 0.0


def refuse_hurry(request: Request, what: str) -> None:
    """Answer 429 to a client that asks too often; where nobody else is served, as often as wanted.

    Guesses at a token are counted everywhere.
    """
    desk = desk_of(request)
    if what != "login" and not desk.is_exposed:
        return
    limits: dict[str, Limit] = request.app.state.limits
    wait = limits[what].wait(request.client.host if request.client else "")
    if wait:
        raise ProblemError(
            HTTPStatus.TOO_MANY_REQUESTS,
            "too-many-requests",
            f"this was asked too often; try again in {ceil(wait)} seconds",
            headers={"Retry-After": str(ceil(wait))},
        )


def make_limits(clock: Clock) -> dict[str, Limit]:
    """How often each client may search, and try to log in."""
    return {
        "search": Limit(burst=30, per_second=5, clock=clock),
        "login": Limit(burst=5, per_second=5 / 60, clock=clock),
    }

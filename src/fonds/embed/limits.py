"""How often, and with how many tokens, an endpoint is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock

from fonds.errors import SettingsError
from fonds.fetch.rates import Bucket, Pace
from fonds.seams import Clock


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """What an endpoint allows in a minute; infinite where it sets no limit."""

    requests: float
    tokens: float


def read_rate(text: str) -> Rate | None:
    """The limits of the setting `embed_rate`: `500/1000000`, `500`, `/1000000`; None for none."""
    if not text.strip():
        return None
    requests, _, tokens = text.partition("/")
    try:
        rate = Rate(requests=_number(requests), tokens=_number(tokens))
    except ValueError as error:
        raise SettingsError(
            f"embed_rate: {text!r} is not requests/tokens a minute, such as 500/1000000"
        ) from error
    return rate


def _number(text: str) -> float:
    number = float(text.replace("_", "")) if text.strip() else math.inf
    if not number > 0:
        raise ValueError("a limit must let something through")
    return number


class Limits:
    """Tells whoever asks how long to wait; one for all threads that share an endpoint."""

    def __init__(self, rate: Rate | None, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._requests = _bucket(rate.requests, clock) if rate else None
        self._tokens = _bucket(rate.tokens, clock) if rate else None
        self._held_until = 0.0

    def reserve(self, tokens: int) -> float:
        """Take a turn for one request, and say in how many seconds it comes."""
        with self._lock:
            turn = self._requests.reserve() if self._requests else 0.0
            share = self._tokens.reserve(tokens) if self._tokens else 0.0
        return max(turn, share, self.held())

    def hold(self, seconds: float) -> None:
        """Let nobody ask before so many seconds have passed."""
        with self._lock:
            self._held_until = max(self._held_until, self._clock.monotonic() + seconds)

    def held(self) -> float:
        """For how many seconds nobody may ask."""
        return max(0.0, self._held_until - self._clock.monotonic())


def _bucket(a_minute: float, clock: Clock) -> Bucket | None:
    """Evenly spread: no minute, wherever it begins, has more than is allowed and one request."""
    return None if math.isinf(a_minute) else Bucket(Pace(per_second=a_minute / 60), clock)

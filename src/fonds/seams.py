"""The places where the program touches what it does not control: time, chance, durability.

Every durable operation announces itself through `Seams.durable` just before it happens. The
default does nothing. A test counts the calls, raises in the Nth, or kills the process there;
product code never asks which.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> datetime:
        """The current moment, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards, for measuring waits."""
        ...


class SystemClock:
    """The machine's own clock, cut to milliseconds as the database keeps them."""

    def now(self) -> datetime:
        """The current moment, in UTC."""
        moment = datetime.now(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()


def _unobserved(_operation: str, _subject: str) -> None:
    return


@dataclass(frozen=True, kw_only=True)
class Seams:
    """One small seam for each thing outside our control."""

    clock: Clock = field(default_factory=SystemClock)
    """Time."""
    chance: random.Random = field(default_factory=random.SystemRandom)
    """Jitter and generated identities."""
    durable: Callable[[str, str], None] = _unobserved
    """Called as (operation, subject) before each `commit`, `blob.put`, `blob.rename`,
    `blob.delete`."""

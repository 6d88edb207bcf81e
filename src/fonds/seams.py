"""The places where the program touches what it does not control: time, chance, durability.

Every durable operation announces itself through `Seams.durable` just before it happens. The
default does nothing. A test counts the calls, raises in the Nth, or kills the process there;
product code never asks which.

Every HTTP request, database statement and blob operation announces itself through `spend`. Whoever
works under a budget has them charged to it; others pay nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, Protocol


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
    `blob.delete` and `journal.append`."""


Expense = Literal["http", "database", "blob"]

# By context and not by process: sources run side by side, each under a budget of its own.
_payer: Final[ContextVar[Callable[[Expense], None] | None]] = ContextVar("payer", default=None)


def spend(expense: Expense) -> None:
    """Announce one sub-request just before it is made; a budget may refuse it by raising."""
    charge = _payer.get()
    if charge is not None:
        charge(expense)


@contextmanager
def charged_to(charge: Callable[[Expense], None]) -> Iterator[None]:
    """Have all sub-requests of this context, and of threads it hands work to, charged."""
    token = _payer.set(charge)
    try:
        yield
    finally:
        _payer.reset(token)

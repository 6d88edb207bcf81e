"""Interfaces to what the program does not control: time, randomness, durability and costs.

`Seams.durable` is called just before every durable operation. By default it does nothing; a test
counts the calls, raises in the Nth, or kills the process there.

`time_left` says how long the process may still work on its item.

`spend` is called before every HTTP request, database statement and blob operation, and charges it
to the budget of the current context, if there is one.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, Protocol


class Clock(Protocol):
    """The source of time."""

    def now(self) -> datetime:
        """The current time in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards, for durations."""
        ...


class SystemClock:
    """The clock of the machine, truncated to milliseconds as in the database."""

    def now(self) -> datetime:
        """The current time in UTC."""
        now = datetime.now(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()


def _unobserved(_operation: str, _subject: str) -> None:
    return


@dataclass(frozen=True, kw_only=True)
class Seams:
    """Replaceable sources of time, randomness and durability."""

    clock: Clock = field(default_factory=SystemClock)
    rng: random.Random = field(default_factory=random.SystemRandom)
    """For jitter and generated ids."""
    durable: Callable[[str, str], None] = _unobserved
    """Called as (operation, subject) before each `commit`, `blob.put`, `blob.rename`,
    `blob.delete` and `journal.append`."""
    outage_seconds: float = 0.0
    """How long an operation waits for a database or an object store that does not respond."""


Expense = Literal["http", "database", "blob"]

# By context, since sources run concurrently with their own budgets.
_charge: Final[ContextVar[Callable[[Expense], None] | None]] = ContextVar("charge", default=None)


def spend(expense: Expense) -> None:
    """Charge one request before it is made; raises if the budget does not allow it."""
    charge = _charge.get()
    if charge is not None:
        charge(expense)


# Of the item that a worker process runs; it is stopped then.
_deadline: Final[ContextVar[float]] = ContextVar("deadline", default=math.inf)


def time_left() -> float:
    """Seconds until this process is stopped, if it reads a file under a limit; else infinity."""
    return _deadline.get() - time.monotonic()


@contextmanager
def limited_to(seconds: float) -> Iterator[None]:
    """Tell what runs in this context how much time it has."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


@contextmanager
def charged_to(charge: Callable[[Expense], None]) -> Iterator[None]:
    """Charge all requests of this context and of its threads."""
    token = _charge.set(charge)
    try:
        yield
    finally:
        _charge.reset(token)

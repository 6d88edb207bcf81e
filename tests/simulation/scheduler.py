"""Threads of which exactly one moves at a time, in an order and at a pace that a seed decides.

A strand is a real thread that waits for the baton. Whoever holds it runs until it waits for
something: then the strand that is due first is handed the baton, and the clock jumps to that
moment. Nobody waits for real, and nothing depends on how fast the machine is.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import inf
from random import Random
from typing import Final

BEGINNING: Final = datetime(2026, 3, 10, 12, tzinfo=UTC)
PATIENCE: Final = 20.0
"""Seconds in which somebody moves, unless a strand waits for something real."""
MOST_STEPS: Final = 100_000
SHOWN: Final = 40


class KilledError(SystemExit):
    """The end of a process. asyncio, too, lets a SystemExit through."""


class ViolationError(AssertionError):
    """Something happened that must never happen."""


@dataclass(eq=False)
class Process:
    """Strands that live and die together, with a clock that may be wrong."""

    scheduler: Scheduler
    name: str
    is_alive: bool = True
    skew: timedelta = timedelta()
    strands: list[Strand] = field(default_factory=list)
    frozen_until: float = 0.0

    def now(self) -> datetime:
        """What the process takes for the current moment."""
        moment = BEGINNING + timedelta(seconds=self.scheduler.now) + self.skew
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return self.scheduler.now

    def spawn(self, name: str, work: Callable[[], object]) -> Strand:
        """Begin another strand, which comes to move soon."""
        self.require_alive()
        strand = Strand(self, name, work)
        self.strands.append(strand)
        self.scheduler.add(strand)
        return strand

    def require_alive(self) -> None:
        """Nothing that a dead process does has an effect."""
        if not self.is_alive:
            raise KilledError

    def freeze(self, seconds: float) -> None:
        """Let the whole machine stand still, as one that is suspended; the world goes on."""
        self.frozen_until = self.scheduler.now + seconds
        for strand in self.strands:
            strand.due = max(strand.due, self.frozen_until)

    def kill(self) -> None:
        """End the process where it stands; its strands find out when they come to move."""
        self.is_alive = False
        for strand in self.strands:
            strand.due = self.scheduler.now

    def join(self) -> None:
        """Wait until nothing of the process moves any more."""
        for strand in self.strands:
            strand.join()


class Strand:
    """One thread of a process."""

    def __init__(self, process: Process, name: str, work: Callable[[], object]) -> None:
        self.process = process
        self.name = name
        self.work = work
        self.due = max(process.scheduler.now, process.frozen_until)
        """When it goes on; never, while it waits for others."""
        self.is_atomic = False
        self.ended = Signal(process.scheduler)
        self.has_ended = False
        self.baton = threading.Lock()
        self.baton.acquire()
        self.thread = threading.get_ident()
        """The real thread that carries it; until it has one, that of whoever made it."""

    def join(self) -> None:
        """Wait until it has ended."""
        while not self.has_ended:
            self.ended.wait()


class Signal:
    """What strands wait for."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiting: list[Strand] = []

    def wait(self, until: float = inf) -> None:
        """Wait for `tell`, or until a moment; whoever waits looks for himself what is new."""
        strand = self._scheduler.current
        assert not strand.is_atomic, "nobody else could ever tell"
        self._waiting.append(strand)
        try:
            self._scheduler.wait(until)
        finally:
            self._waiting.remove(strand)

    def tell(self) -> None:
        """Let all who wait look."""
        for strand in self._waiting:
            soon = max(self._scheduler.now, strand.process.frozen_until)
            strand.due = min(strand.due, soon)


class Scheduler:
    """Decides who moves, and what time it is; whoever makes it is the first strand."""

    def __init__(self, chance: Random) -> None:
        self.rng = chance
        self.now = 0.0
        self.steps = 0
        self.failure: BaseException | None = None
        self._is_stuck = False
        self._lines: list[str] = []
        self._digest = sha256()
        self._strands: list[Strand] = []
        self.outside = Process(self, "world")
        self.current = self._first = Strand(self.outside, "main", lambda: None)
        self._strands.append(self._first)

    def has_baton(self) -> bool:
        """Whether whoever asks belongs to the simulation: a process may have other threads."""
        return self.current.thread == threading.get_ident()

    # Telling ------------------------------------------------------------------------------

    def note(self, what: str) -> None:
        """Add a line to the trace."""
        process = self.current.process
        if not process.is_alive:
            return
        line = f"{self.now:12.3f}  {process.name:<12} {what}"
        self._lines.append(line)
        self._digest.update(line.encode("utf-8", "backslashreplace"))

    @property
    def last_lines(self) -> list[str]:
        """The end of the trace."""
        return self._lines[-SHOWN:]

    @property
    def trace_hash(self) -> str:
        """Identity of all that happened."""
        return self._digest.hexdigest()

    # Waiting ------------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        """Let time pass for whoever moves, and others move meanwhile."""
        self.wait(self.now + seconds)

    def wait(self, until: float) -> None:
        """Wait until a moment, or until somebody sets an earlier one."""
        strand = self.current
        strand.process.require_alive()
        if strand.is_atomic:
            return
        strand.due = max(until, strand.process.frozen_until)
        self._hand_on(strand)
        if strand is self._first:
            self._require_health()
        strand.process.require_alive()

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Nobody else moves while the block lasts, as if all of it happened at one moment."""
        strand = self.current
        before, strand.is_atomic = strand.is_atomic, True
        try:
            yield
        finally:
            strand.is_atomic = before

    # Moving -------------------------------------------------------------------------------

    def add(self, strand: Strand) -> None:
        """Have a strand moved, too."""
        self._strands.append(strand)
        _Carrier.of(strand)

    def close(self) -> None:
        """End all processes, and wait for their threads."""
        if self._is_stuck:
            return
        self.current = self._first
        for strand in list(self._strands):
            if strand is not self._first:
                strand.process.is_alive = False
                strand.due = self.now
        while len(self._strands) > 1:
            self._first.due = inf
            self._hand_on(self._first)

    def ended(self, strand: Strand) -> None:
        """Hand the baton on for good."""
        strand.has_ended = True
        strand.process.strands.remove(strand)
        self._strands.remove(strand)
        strand.ended.tell()
        self._give(self._next())

    def check(self, look: Callable[[], object]) -> None:
        """Have the world end here if what is looked at is wrong, whoever would catch the error."""
        try:
            look()
        except AssertionError as error:
            self.fail(error)
            self.current.process.kill()
            raise KilledError from error

    def fail(self, error: BaseException) -> None:
        """Have the world end with an error."""
        self.failure = self.failure or error
        self._first.due = -inf

    def _require_health(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _hand_on(self, strand: Strand) -> None:
        self.steps += 1
        if self.steps == MOST_STEPS:
            self.fail(ViolationError(f"no end after {MOST_STEPS} steps"))
        following = self._next()
        if following is strand:
            return
        self._give(following)
        seen = [-1]
        while not strand.baton.acquire(timeout=PATIENCE):
            seen.append(self.steps)
            # More than once: a test that is itself suspended finds all its time gone.
            if seen[-3:] == [self.steps] * 3:
                self._is_stuck = True
                raise RuntimeError(f"a strand waits for something real:\n{_stacks()}")

    def _next(self) -> Strand:
        first = min([strand.due for strand in self._strands])
        if first == inf:
            told = ", ".join(f"{each.process.name}/{each.name}" for each in self._strands)
            self.fail(ViolationError(f"everybody waits for somebody else: {told}"))
            return self._first
        self.now = max(self.now, first)
        due = [strand for strand in self._strands if strand.due <= self.now]
        return due[0] if len(due) == 1 else due[int(self.rng.random() * len(due))]

    def _give(self, strand: Strand) -> None:
        self.current = strand
        strand.baton.release()


def _stacks() -> str:
    """Where all threads are."""
    stacks = (traceback.format_stack(frame)[-6:] for frame in sys._current_frames().values())
    return "\n".join("".join(stack) for stack in stacks)


class _Carrier(threading.Thread):
    """A real thread that carries one strand after the other."""

    _idle: Final[list[_Carrier]] = []

    def __init__(self) -> None:
        super().__init__(name="strand", daemon=True)
        self._begun = threading.Lock()
        self._begun.acquire()
        self._strand: Strand | None = None

    @classmethod
    def of(cls, strand: Strand) -> None:
        if cls._idle:
            carrier = cls._idle.pop()
        else:
            carrier = cls()
            carrier.start()
        carrier._strand = strand
        carrier._begun.release()

    def run(self) -> None:
        while True:
            self._begun.acquire()
            strand = self._strand
            assert strand is not None
            strand.baton.acquire()
            strand.thread = threading.get_ident()
            _carry(strand)
            self._idle.append(self)
            strand.process.scheduler.ended(strand)


def _carry(strand: Strand) -> None:
    scheduler = strand.process.scheduler
    try:
        strand.process.require_alive()
        Context().run(strand.work)
    except KilledError as killed:
        if strand.process.is_alive:
            scheduler.fail(killed)
    except BaseException as error:  # noqa: BLE001 — whatever nobody expected is a violation
        if strand.process.is_alive:
            scheduler.fail(error)

"""Killing a process, or failing it, at a durable operation of a step."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, NoReturn

import pysqlite3.dbapi2
from sqlalchemy.exc import OperationalError

from fonds.testing import LaterClock

How = Literal["kill", "fail", "jump"]
BACK: Final = timedelta(hours=1)
"""How far the clock jumps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Strike:
    """What is to happen to a process, and where."""

    step: str
    at: int
    """Which durable operation of the step, counted from 1."""
    how: How = "kill"
    delay: float | None = None
    """Seconds after which the process is killed, in the midst of the operation; None: before it."""
    errno: int = 0
    """Of the error that fails it."""
    lasting: float = 0.0
    """Seconds for which all operations after it fail, too."""


class JumpingClock(LaterClock):
    """A clock that can be put back."""

    def __init__(self, **by: float) -> None:
        super().__init__(**by)
        self._back = timedelta()

    def now(self) -> datetime:
        """The moment it shows."""
        return super().now() - self._back

    def jump(self) -> None:
        """Put it back."""
        self._back = BACK


class FaultLog:
    """A file of lines that a killed process leaves behind."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, **note: Any) -> None:
        """Write a line; the kernel keeps it, whatever becomes of the process."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, json.dumps(note).encode() + b"\n")
        finally:
            os.close(file)

    def read(self) -> list[dict[str, Any]]:
        """All lines."""
        with suppress(FileNotFoundError):
            return [json.loads(line) for line in self._path.read_bytes().splitlines()]
        return []


class Intruder:
    """A `Seams.durable` that counts the operations of each step and strikes at some of them."""

    def __init__(
        self, strikes: Iterable[Strike], notes: FaultLog, wal: Path, clock: JumpingClock
    ) -> None:
        self._strikes = {strike.step: strike for strike in strikes}
        self._notes = notes
        self._wal = wal
        self._clock = clock
        self._lock = Lock()
        self._step = ""
        self._count = 0
        self._errno = 0
        self._fails_until = 0.0

    def enter(self, step: str) -> None:
        """Begin to count anew."""
        with self._lock:
            self._step, self._count = step, 0

    @property
    def count(self) -> int:
        """Operations of the step so far."""
        return self._count

    def __call__(self, operation: str, subject: str) -> None:
        """Count one operation, and perhaps strike."""
        with self._lock:
            self._count += 1
            strike = self._strikes.get(self._step)
            if strike is not None and strike.at == self._count:
                self._note(strike, operation, subject)
                self._strike(strike)
            elif time.monotonic() > self._fails_until:
                self._errno = 0
            number = self._errno
        if number:
            raise _error(number, operation, subject)

    def _note(self, strike: Strike, operation: str, subject: str) -> None:
        size = self._wal.stat().st_size if self._wal.exists() else 0
        self._notes.add(struck=asdict(strike), operation=operation, subject=subject, wal=size)

    def _strike(self, strike: Strike) -> None:
        if strike.how == "jump":
            self._clock.jump()
        elif strike.how == "fail":
            self._errno, self._fails_until = strike.errno, time.monotonic() + strike.lasting
        elif strike.delay is None:
            _die()
        else:
            threading.Thread(target=_die, args=(strike.delay,), daemon=True).start()


def _die(delay: float = 0.0) -> NoReturn:
    time.sleep(delay)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody outlives this")


def _error(number: int, operation: str, subject: str) -> Exception:
    """What the operating system, or SQLite above it, would have said."""
    said = os.strerror(number)
    if operation != "commit":
        return OSError(number, said, subject)
    return OperationalError("COMMIT", None, pysqlite3.dbapi2.OperationalError(said))

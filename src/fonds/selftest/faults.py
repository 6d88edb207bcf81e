"""Injects faults into a process at durable operations: kills, errors and clock jumps."""

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
JUMP: Final = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class InjectedFault:
    """A fault, and the operation at which it occurs."""

    step: str
    at: int
    """The number of the durable operation in its step, from 1."""
    how: How = "kill"
    delay: float | None = None
    """Seconds until the kill, during the operation; None: before it."""
    errno: int = 0
    """The error number of a failure."""
    lasting: float = 0.0
    """Seconds during which all later operations fail, too."""


class JumpingClock(LaterClock):
    """A clock that can jump back."""

    def __init__(self, **by: float) -> None:
        super().__init__(**by)
        self._back = timedelta()

    def now(self) -> datetime:
        """The current time of this clock."""
        return super().now() - self._back

    def jump(self) -> None:
        """Jump back."""
        self._back = JUMP


class FaultLog:
    """A log file that survives the kill of its process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, **note: Any) -> None:
        """Append a line with one write."""
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


class FaultInjector:
    """A `Seams.durable` that counts the operations of each step and injects faults."""

    def __init__(
        self, faults: Iterable[InjectedFault], notes: FaultLog, wal: Path, clock: JumpingClock
    ) -> None:
        self._strikes = {fault.step: fault for fault in faults}
        self._notes = notes
        self._wal = wal
        self._clock = clock
        self._lock = Lock()
        self._step = ""
        self._count = 0
        self._errno = 0
        self._fails_until = 0.0

    def enter_step(self, step: str) -> None:
        """Reset the count for the next step."""
        with self._lock:
            self._step, self._count = step, 0

    @property
    def count(self) -> int:
        """The number of operations in this step so far."""
        return self._count

    def __call__(self, operation: str, subject: str) -> None:
        """Count an operation, and inject the fault planned for it."""
        with self._lock:
            self._count += 1
            fault = self._strikes.get(self._step)
            if fault is not None and fault.at == self._count:
                self._note(fault, operation, subject)
                self._inject(fault)
            elif time.monotonic() > self._fails_until:
                self._errno = 0
            number = self._errno
        if number:
            raise _error(number, operation, subject)

    def _note(self, fault: InjectedFault, operation: str, subject: str) -> None:
        size = self._wal.stat().st_size if self._wal.exists() else 0
        self._notes.add(injected=asdict(fault), operation=operation, subject=subject, wal=size)

    def _inject(self, fault: InjectedFault) -> None:
        if fault.how == "jump":
            self._clock.jump()
        elif fault.how == "fail":
            self._errno, self._fails_until = fault.errno, time.monotonic() + fault.lasting
        elif fault.delay is None:
            _kill_self()
        else:
            threading.Thread(target=_kill_self, args=(fault.delay,), daemon=True).start()


def _kill_self(delay: float = 0.0) -> NoReturn:
    time.sleep(delay)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL was sent")


def _error(number: int, operation: str, subject: str) -> Exception:
    """The exception that the operating system or SQLite would raise."""
    message = os.strerror(number)
    if operation != "commit":
        return OSError(number, message, subject)
    return OperationalError("COMMIT", None, pysqlite3.dbapi2.OperationalError(message))

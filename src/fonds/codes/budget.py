"""Limits of one invocation, and measurement of its requests and memory."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from fonds.errors import BudgetSpentError
from fonds.seams import Expense

MIB: Final = 1 << 20
_STATUS: Final = Path("/proc/self/status")
_CLEAR: Final = Path("/proc/self/clear_refs")
_RESET_PEAK: Final = "5"


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """The limits of one invocation."""

    subrequests: int = 1000
    """HTTP requests, database statements and blob operations together."""
    memory_mib: int = 128
    """Peak of the process's anonymous memory."""


WORKER: Final = "worker"
"""The name of the budget that the specification has."""


class Meter:
    """Counts the sub-requests of an invocation, and raises before one would exceed a limit."""

    def __init__(self, budget: Budget | None) -> None:
        """Without a budget, requests are counted and nothing is limited."""
        self.budget = budget
        self.usage: Counter[Expense] = Counter()
        self._lock = Lock()

    @property
    def subrequests(self) -> int:
        """Sub-requests made so far."""
        return self.usage.total()

    @property
    def left(self) -> int:
        """Sub-requests that may still be made."""
        if self.budget is None:
            return sys.maxsize
        return self.budget.subrequests - self.subrequests

    def charge(self, expense: Expense) -> None:
        """Count one sub-request; raises `BudgetSpentError` if none is left."""
        with self._lock:
            if self.left < 1:
                raise BudgetSpentError(f"the invocation's {self.subrequests} sub-requests are used")
            self.usage[expense] += 1

    def require(self, *, subrequests: int = 0, memory: int = 0) -> None:
        """Raise `BudgetSpentError` unless so much is left, so that work does not stop half-way."""
        if self.left < subrequests:
            raise BudgetSpentError(f"{subrequests} more sub-requests would exceed the limit")
        if self.budget and memory_in_use() + memory > self.budget.memory_mib * MIB:
            raise BudgetSpentError(
                f"more memory would exceed the limit of {self.budget.memory_mib} MiB"
            )


def memory_in_use() -> int:
    """Bytes of anonymous memory of this process.

    Pages mapped from files are not counted: libraries are shared by all processes that use them.
    """
    return _status("RssAnon") or _peak_of_usage()


def peak_memory() -> int:
    """Peak of anonymous memory in bytes since the last `reset_peak`, or since the start."""
    highest = _status("VmHWM")
    if highest is None:
        return _peak_of_usage()
    mapped = (_status("RssFile") or 0) + (_status("RssShmem") or 0)
    return max(memory_in_use(), highest - mapped)


def data_size() -> int:
    """Bytes that the kernel counts as data of this process, used or only reserved."""
    return _status("VmData") or memory_in_use()


def reset_peak() -> bool:
    """Reset the peak of memory; False if the system does not support it."""
    with suppress(OSError):
        _CLEAR.write_text(_RESET_PEAK)
        return True
    return False


def _peak_of_usage() -> int:
    """The highest resident size, for systems without /proc."""
    in_kib = sys.platform != "darwin"
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1024 if in_kib else 1)


def _status(name: str) -> int | None:
    # A child's `getrusage` starts with the memory of its parent.
    with suppress(OSError), _STATUS.open() as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return None

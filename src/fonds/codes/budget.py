"""What one invocation may spend, what it has spent, and how much memory it holds."""

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
    """Anonymous memory of the process, at its highest."""


class Meter:
    """What an invocation has spent; refuses what would pass a limit, before it happens."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.spent: Counter[Expense] = Counter()
        self._counting = Lock()

    @property
    def subrequests(self) -> int:
        """Spent so far."""
        return self.spent.total()

    @property
    def left(self) -> int:
        """Sub-requests that may still be made."""
        return self.budget.subrequests - self.subrequests

    def charge(self, expense: Expense) -> None:
        """Count one sub-request, or refuse it."""
        with self._counting:
            if self.left < 1:
                raise BudgetSpentError(
                    f"the invocation's {self.budget.subrequests} sub-requests are spent"
                )
            self.spent[expense] += 1

    def require(self, *, subrequests: int = 0, memory: int = 0) -> None:
        """Refuse to begin what would pass a limit half-way."""
        if self.left < subrequests:
            raise BudgetSpentError(f"{subrequests} more sub-requests would pass the limit")
        if memory_in_use() + memory > self.budget.memory_mib * MIB:
            raise BudgetSpentError(f"more memory would pass the {self.budget.memory_mib} MiB")


def memory_in_use() -> int:
    """Bytes of anonymous memory of this process.

    Pages mapped from files are not counted: libraries are shared by all processes that use them.
    """
    return _status("RssAnon") or _peak_of_usage()


def peak_memory() -> int:
    """The most bytes of anonymous memory since the last `reset_peak`, or since the start."""
    highest = _status("VmHWM")
    if highest is None:
        return _peak_of_usage()
    mapped = (_status("RssFile") or 0) + (_status("RssShmem") or 0)
    return max(memory_in_use(), highest - mapped)


def data_size() -> int:
    """Bytes of memory the kernel counts as its data, used or only reserved."""
    return _status("VmData") or memory_in_use()


def reset_peak() -> bool:
    """Measure the peak from here on; False where the system cannot."""
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

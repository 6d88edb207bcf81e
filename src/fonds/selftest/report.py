"""The report of a selftest with counts and violations, and the description of a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Literal

from fonds.errors import UsageError
from fonds.selftest.scratch import ProcessRun, ScratchLibrary

Part = Literal["chaos", "exhaustive", "faults"]

COLUMNS: Final[Mapping[Part, Sequence[str]]] = {
    "chaos": ("before", "during", "resumed", "violations"),
    "exhaustive": ("killed", "failed", "resumed", "violations"),
    "faults": ("tried", "refused", "recovered", "violations"),
}
"""The columns of each part."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A library that differs from the undisturbed one, or is damaged."""

    case: str
    says: Sequence[str]
    """The differences and problems."""
    history: Sequence[str]
    """The processes that ran on it."""
    replay: str
    """The command that repeats the case."""
    folder: str
    """The folder of the library."""


@dataclass
class SelftestReport:
    """Results of a selftest, filled by several threads."""

    seed: int
    counts: Counter[tuple[Part, str, str, str]] = field(default_factory=Counter)
    """Counts by part, step or fault, kind of operation, and column."""
    violations: list[Violation] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Faults that cannot be simulated here, with the reason."""
    planned: int = 0
    """The number of cases."""
    tried: int = 0
    """The number of finished cases."""
    seconds: float = 0.0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def count(self, part: Part, where: str, what: str, column: str, number: int = 1) -> None:
        """Add to a count."""
        with self._lock:
            self.counts[part, where, what, column] += number

    def add(self, violation: Violation) -> None:
        """Add a violation."""
        with self._lock:
            self.violations.append(violation)

    def skip(self, fault: str, reason: str) -> None:
        """Record that a fault cannot be simulated here."""
        with self._lock:
            self.skipped[fault] = reason

    def total(self, part: Part, *columns: str) -> int:
        """The sum of some columns."""
        with self._lock:
            return sum(
                count
                for (of, _, _, column), count in self.counts.items()
                if of == part and column in columns
            )

    def rows(self, part: Part) -> list[tuple[str, str, Mapping[str, int]]]:
        """Step, operation and counts by column, in the order of their first occurrence."""
        locations = dict.fromkeys((where, what) for of, where, what, _ in self.counts if of == part)
        return [
            (where, what, {name: self.counts[part, where, what, name] for name in COLUMNS[part]})
            for where, what in locations
        ]


WHOLE: Final = "whole"
SMALL: Final = "small"
MAX_LINES: Final = 5
"""Names in the error message for an unknown one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A case of the selftest, which has its own library."""

    part: Part
    name: str
    corpus: str
    run: Callable[[ScratchLibrary, SelftestReport], Iterator[str]]
    """Runs the case, fills the report, and yields problems."""
    replay: str
    """The options of the command that repeats it."""


def select_cases(cases: Sequence[Case], names: Iterable[str]) -> list[Case]:
    """Cases by their names or first words."""
    chosen: dict[str, Case] = {}
    for name in names:
        matches = {case.name: case for case in cases if f"{case.name} ".startswith(f"{name} ")}
        if not matches:
            examples = ", ".join(case.name for case in cases[:MAX_LINES])
            raise UsageError(f"there is no case {name!r}; some are: {examples}, …")
        chosen |= matches
    return list(chosen.values())


def describe(run: ProcessRun) -> str:
    """The outcome and errors of a process in one line."""
    errors = f"; errors: {'; '.join(run.errors)}" if run.errors else ""
    return f"{_outcome(run)}{errors}"


def _outcome(run: ProcessRun) -> str:
    if run.injected is None:
        return f"ended with code {run.code}"
    fault, operation = run.injected["injected"], run.injected
    action = fault["how"] if fault["delay"] is None else f"{fault['how']} during"
    subject = f"{operation['operation']} {operation['subject']}"
    return f"{action} {subject}, number {fault['at']} of {fault['step']}"

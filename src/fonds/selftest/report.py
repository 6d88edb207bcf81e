"""Something that is done to a library, and what has to hold afterwards.

What came of a selftest: counts by where something happened, and every violation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Literal

from fonds.errors import UsageError
from fonds.selftest.scratch import Life, ScratchLibrary

Part = Literal["chaos", "exhaustive", "faults"]

COLUMNS: Final[Mapping[Part, Sequence[str]]] = {
    "chaos": ("before", "during", "resumed", "violations"),
    "exhaustive": ("killed", "failed", "resumed", "violations"),
    "faults": ("tried", "refused", "recovered", "violations"),
}
"""What is counted in each part."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Violation:
    """A library that did not come out as it should."""

    case: str
    says: Sequence[str]
    """What differs, or is wrong."""
    history: Sequence[str]
    """What was done to it."""
    replay: str
    """The command that does it again."""
    folder: str
    """Where the library is kept."""


@dataclass
class SelftestReport:
    """Filled by several threads while the selftest goes on."""

    seed: int
    counts: Counter[tuple[Part, str, str, str]] = field(default_factory=Counter)
    """By part, step or fault, kind of operation, and column."""
    violations: list[Violation] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Faults that cannot be made here, and why."""
    planned: int = 0
    """Libraries that are to be tried."""
    tried: int = 0
    """Those of them that are through with it."""
    seconds: float = 0.0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def count(self, part: Part, where: str, what: str, column: str, number: int = 1) -> None:
        """Add to a cell."""
        with self._lock:
            self.counts[part, where, what, column] += number

    def add(self, violation: Violation) -> None:
        """Take in a violation."""
        with self._lock:
            self.violations.append(violation)

    def skip(self, fault: str, why: str) -> None:
        """Note that a fault cannot be made here."""
        with self._lock:
            self.skipped[fault] = why

    def total(self, part: Part, *columns: str) -> int:
        """The sum of some columns."""
        with self._lock:
            return sum(
                count
                for (of, _, _, column), count in self.counts.items()
                if of == part and column in columns
            )

    def rows(self, part: Part) -> list[tuple[str, str, Mapping[str, int]]]:
        """Where, what, and the counts by column, in the order in which they first came up."""
        points = dict.fromkeys((where, what) for of, where, what, _ in self.counts if of == part)
        return [
            (where, what, {name: self.counts[part, where, what, name] for name in COLUMNS[part]})
            for where, what in points
        ]


WHOLE: Final = "whole"
SMALL: Final = "small"
SHOWN: Final = 5
"""Names that are told to whoever asked for another."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Tried in a library of its own."""

    part: Part
    name: str
    corpus: str
    run: Callable[[ScratchLibrary, SelftestReport], Iterator[str]]
    """Counts what happens, and gives what is wrong in the end."""
    replay: str
    """The options of the command that does it again."""


def named(cases: Sequence[Case], names: Iterable[str]) -> list[Case]:
    """Cases by their names, or by the words with which these begin."""
    chosen: dict[str, Case] = {}
    for name in names:
        found = {case.name: case for case in cases if f"{case.name} ".startswith(f"{name} ")}
        if not found:
            some = ", ".join(case.name for case in cases[:SHOWN])
            raise UsageError(f"there is no case {name!r}; there are: {some}, …")
        chosen |= found
    return list(chosen.values())


def told(life: Life) -> str:
    """What happened to a process, and what it said, in one line."""
    said = f"; it said: {'; '.join(life.trouble)}" if life.trouble else ""
    return f"{_happened(life)}{said}"


def _happened(life: Life) -> str:
    if life.struck is None:
        return f"ended with code {life.code}"
    strike, did = life.struck["struck"], life.struck
    way = strike["how"] if strike["delay"] is None else f"{strike['how']} during"
    return f"{way} {did['operation']} {did['subject']}, number {strike['at']} of {strike['step']}"

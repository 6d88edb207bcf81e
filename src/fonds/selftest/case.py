"""Something that is done to a library, and what has to hold afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fonds.errors import UsageError
from fonds.selftest.place import Life, Place
from fonds.selftest.report import Part, Report

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
    run: Callable[[Place, Report], Iterator[str]]
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

"""Something that is done to a library, and what has to hold afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from fonds.selftest.place import Life, Place
from fonds.selftest.report import Part, Report

WHOLE: Final = "whole"
SMALL: Final = "small"


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


def told(life: Life) -> str:
    """What happened to a process, in one line."""
    if life.struck is None:
        return f"ended with code {life.code}"
    strike, did = life.struck["struck"], life.struck
    way = strike["how"] if strike["delay"] is None else f"{strike['how']} during"
    return f"{way} {did['operation']} {did['subject']}, number {strike['at']} of {strike['step']}"

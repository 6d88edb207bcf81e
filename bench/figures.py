"""The result of a bench: figures, each compared with a peer or a limit, in one format.

    python -m bench.load              the figures as a table
    python -m bench.load --json       the same as one JSON object, with all else that was measured

A ratio says how many times better or worse ours is, whichever of more and less is better. A bench
ends with 1 if a figure is worse than its bar allows.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NoReturn

LIMIT: Final = "the limit"
"""Stands for a peer where a number was promised."""
NO_WORSE: Final = 1.0
HEADINGS: Final = ("what", "ours", "theirs", "peer or limit", "ratio", "bar", "holds")


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One figure of ours beside that of a peer, taken in the same run."""

    what: str
    ours: float
    theirs: float
    unit: str
    peer: str
    better: Literal["more", "less"]
    least: float | None = None
    """The least that the ratio may be."""
    remark: str = ""
    """Why we lose, where we do; or what the peer leaves out."""

    @property
    def ratio(self) -> float:
        """How many times better ours is: above 1 we win, below 1 we lose."""
        one, other = self.ours, self.theirs
        if self.better == "less":
            one, other = other, one
        if one == other:
            return 1.0
        return one / other if other else math.inf

    @property
    def holds(self) -> bool | None:
        """Whether the bar is reached; None where there is none."""
        if self.peer == LIMIT:
            less = self.better == "less"
            return self.ours <= self.theirs if less else self.ours >= self.theirs
        return None if self.least is None else self.ratio >= self.least

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of its row in a table."""
        return (
            self.what,
            f"{number(self.ours)} {self.unit}".rstrip(),
            f"{number(self.theirs)} {self.unit}".rstrip(),
            self.peer,
            _part(self) if self.peer == LIMIT else _compared(self.ratio),
            _bar(self),
            {True: "yes", False: "NO", None: ""}[self.holds],
        )

    def as_json(self) -> dict[str, Any]:
        """With what follows from it, for readers who do not compute."""
        ratio = round(self.ratio, 4) if math.isfinite(self.ratio) else None
        return {**asdict(self), "ratio": ratio, "holds": self.holds}


def within(what: str, ours: float, limit: float, unit: str = "", remark: str = "") -> Figure:
    """A figure that may not be above a number."""
    return Figure(
        what=what,
        ours=ours,
        theirs=limit,
        unit=unit,
        peer=LIMIT,
        better="less",
        remark=remark,
    )


def reaching(what: str, ours: float, aim: float, unit: str = "", remark: str = "") -> Figure:
    """A figure that may not be below a number."""
    return Figure(
        what=what,
        ours=ours,
        theirs=aim,
        unit=unit,
        peer=LIMIT,
        better="more",
        remark=remark,
    )


def figure_of(row: Mapping[str, Any]) -> Figure:
    """A figure, from the JSON it was written as."""
    return Figure(**{name: row[name] for name in Figure.__dataclass_fields__})


# Telling ----------------------------------------------------------------------------------


def asking(question: str | None) -> argparse.ArgumentParser:
    """The options that all benches have; a bench adds its sizes."""
    parser = argparse.ArgumentParser(description=(question or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser


def tell(options: argparse.Namespace, figures: Sequence[Figure], **details: Any) -> NoReturn:
    """Print figures, sizes and details, and end: with 1 if a bar was missed."""
    if options.json:
        report = {
            "sizes": sizes(options),
            "figures": [figure.as_json() for figure in figures],
            **details,
        }
        print(json.dumps(report))
    else:
        print(sizes(options), "\n")
        print(table(figures))
    sys.exit(any(figure.holds is False for figure in figures))


def sizes(options: argparse.Namespace) -> str:
    """The parameters of the bench, as `documents 2,000, rounds 3`."""
    given = {name: value for name, value in vars(options).items() if name != "json"}
    return ", ".join(_said(name, value) for name, value in given.items() if value not in _UNSAID)


_UNSAID: Final[tuple[Any, ...]] = (None, False, [], "")


def _said(name: str, value: Any) -> str:
    if value is True:
        return name
    return f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"


def table(figures: Sequence[Figure], benches: Sequence[str] = ()) -> str:
    """Figures for people, each with its bench if those are named, and its remark below."""
    rows = [HEADINGS, *(figure.cells for figure in figures)]
    if benches:
        rows = [(name, *row) for name, row in zip(("bench", *benches), rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    remarks = ["", *(f"    {figure.remark}" if figure.remark else "" for figure in figures)]
    pairs = zip(lines, remarks, strict=True)
    return "\n".join(line for pair in pairs for line in pair if line)


def number(value: float) -> str:
    """Three digits that count, one more where they would round to 1, four after the point."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 4 if 0.9 < abs(value) < 1 else min(2 - math.floor(math.log10(abs(value))), 4)
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits > 0 else f"{value:.0f}"


def _compared(ratio: float) -> str:
    if math.isinf(ratio):
        return "better"
    if ratio == 0:
        return "worse"
    if number(ratio) == "1":
        return "as good"
    return f"{number(ratio)} × better" if ratio >= 1 else f"{number(1 / ratio)} × worse"


def _part(figure: Figure) -> str:
    return f"{number(figure.ours / figure.theirs)} of it" if figure.theirs else ""


def _bar(figure: Figure) -> str:
    if figure.peer == LIMIT:
        return "at most" if figure.better == "less" else "at least"
    if figure.least is None:
        return ""
    if figure.least == NO_WORSE:
        return "no worse"
    better = figure.least > 1
    times = number(figure.least if better else 1 / figure.least)
    return f"at least {times} × better" if better else f"at most {times} × worse"

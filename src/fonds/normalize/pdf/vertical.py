"""Japanese that is written from the top to the bottom, in columns from the right to the left.

Its columns become lines as if the page had been turned: the text below is to the right, and the
column to the left is the line below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from fonds.normalize.pdf.page import PdfLine, PdfPage, TextRun

_LETTER: Final = re.compile("[\u3005-\u30ff\u4e00-\u9fff\uf900-\ufaff]")
_MIN_LETTERS: Final = 8
_NARROW: Final = 1.6
_SAME_COLUMN: Final = 0.5
_GAP: Final = 1.6
_CLOSER: Final = 0.9
_TIER_GAP: Final = 0.5


@dataclass(slots=True)
class _Column:
    """Runs below each other."""

    runs: list[TextRun]

    @property
    def x(self) -> float:
        return _middle(self.runs[0])

    @property
    def top(self) -> float:
        return self.runs[0].y1

    @property
    def bottom(self) -> float:
        return self.runs[-1].y0

    def is_above(self, run: TextRun) -> bool:
        """True if a run goes on right below."""
        size = max(run.size, self.runs[-1].size)
        gap = self.bottom - run.y1
        return abs(_middle(run) - self.x) < _SAME_COLUMN * size and -size < gap < _GAP * size


def vertical_lines(page: PdfPage) -> list[PdfLine] | None:
    """The lines of a page that is mostly written in columns; None for any other page."""
    runs = [run for row in page.rows for run in row if run.text.strip() and not run.turned]
    letters = sum(map(_letters, runs))
    narrow = [run for run in runs if run.x1 - run.x0 <= _NARROW * run.size]
    if letters < _MIN_LETTERS or 2 * sum(map(_letters, narrow)) < letters:
        return None
    columns = _columns(narrow)
    if not _is_vertical(columns):
        return None
    others = [run for run in runs if run.x1 - run.x0 > _NARROW * run.size]
    top = max(column.top for column in columns)
    return [
        *(_level_line(run) for run in others if run.y0 >= top),
        *(
            _upright_line(column, page.height, tier)
            for tier, group in enumerate(_tiers(columns), 1)
            for column in sorted(group, key=lambda column: (-column.x, -column.top))
        ),
        *(_level_line(run) for run in others if run.y0 < top),
    ]


def _is_vertical(columns: Sequence[_Column]) -> bool:
    """True if letters are closer to those below them than to those at their side."""
    runs = [run for column in columns for run in column.runs]
    whole = sum(_letters(run) for run in runs if run.vertical)
    if 2 * whole > sum(map(_letters, runs)):
        return True
    steps = [a.y0 - b.y0 for column in columns for a, b in pairwise(column.runs)]
    middles = sorted(column.x for column in columns)
    distances = [b - a for a, b in pairwise(middles) if b - a > 1]
    if 2 * len(steps) < len(runs) or not distances:
        return False
    return median(steps) < _CLOSER * median(distances)


def _columns(runs: Iterable[TextRun]) -> list[_Column]:
    columns: list[_Column] = []
    for run in sorted(runs, key=lambda run: -run.y1):
        above = next((column for column in columns if column.is_above(run)), None)
        if above is None:
            columns.append(_Column([run]))
        else:
            above.runs.append(run)
    return columns


def _tiers(columns: Iterable[_Column]) -> list[list[_Column]]:
    """Columns at the same height, from the top: a page may have several tiers of them."""
    tiers: list[list[_Column]] = []
    bottom = 0.0
    for column in sorted(columns, key=lambda column: -column.top):
        if tiers and column.top > bottom - _TIER_GAP * column.runs[0].size:
            tiers[-1].append(column)
            bottom = min(bottom, column.bottom)
        else:
            tiers.append([column])
            bottom = column.bottom
    return tiers


def _upright_line(column: _Column, height: float, tier: int) -> PdfLine:
    widest = max(column.runs, key=lambda run: len(run.text))
    return PdfLine(
        text="".join(run.text.strip() for run in column.runs),
        x0=height - column.top,
        x1=height - column.bottom,
        y=column.x,
        size=widest.size,
        bold=all(run.bold for run in column.runs),
        column=tier,
    )


def _level_line(run: TextRun) -> PdfLine:
    text = " ".join(run.text.split())
    return PdfLine(text=text, x0=run.x0, x1=run.x1, y=run.y0, size=run.size, bold=run.bold)


def _middle(run: TextRun) -> float:
    return (run.x0 + run.x1) / 2


def _letters(run: TextRun) -> int:
    return len(_LETTER.findall(run.text))

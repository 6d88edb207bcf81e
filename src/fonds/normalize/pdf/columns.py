"""Geometry: columns told by the empty strip between them, and rows within a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from fonds.normalize.pdf.page import Run

_BIN: Final = 2.0
_MIN_BINS: Final = 8
_MAX_BINS: Final = 4000
_MIN_COLUMN_LINES: Final = 4
_MIN_FILL: Final = 0.55
_MIN_LETTERS: Final = 0.6
_MIN_LINE_CHARACTERS: Final = 14


def columns(runs: list[Run], depth: int) -> list[list[Run]]:
    """Groups of runs to be read one after the other."""
    inked = [run for run in runs if run.text.strip()]
    strip = gutter(inked) if depth else None
    if strip is None:
        return [runs]
    groups: list[list[Run]] = []
    for zone, full in _zones(inked, *strip):
        left = [run for run in zone if run.x1 <= strip[1]]
        right = [run for run in zone if run.x1 > strip[1]]
        if left and right:
            groups.extend(columns(left, depth - 1))
            groups.extend(columns(right, depth - 1))
        elif zone:
            groups.append(zone)
        if full:
            groups.append(full)
    return groups


def gutter(inked: Sequence[Run]) -> tuple[float, float] | None:
    """The empty strip between two columns of prose, or None."""
    if len(inked) < 2 * _MIN_COLUMN_LINES:
        return None
    start, end = min(run.x0 for run in inked), max(run.x1 for run in inked)
    em = median(run.size for run in inked) or 10.0
    strip = _emptiest_strip(inked, start, end, em)
    if strip is None:
        return None
    sides = (
        [run for run in inked if run.x1 <= strip[1]],
        [run for run in inked if run.x0 >= strip[0]],
    )
    crossing = len(inked) - len(sides[0]) - len(sides[1])
    if crossing > min(map(len, sides)) or not all(_prose(side) for side in sides):
        return None
    return strip


def _emptiest_strip(
    inked: Sequence[Run], start: float, end: float, em: float
) -> tuple[float, float] | None:
    """The vertical strip in the middle that the fewest runs reach into."""
    bins = int((end - start) / _BIN) + 1
    if not _MIN_BINS < bins < _MAX_BINS:
        return None
    steps = [0] * (bins + 2)
    for run in inked:
        steps[int((run.x0 - start) / _BIN)] += 1
        steps[min(int((run.x1 - start) / _BIN), bins) + 1] -= 1
    counts, covered = [], 0
    for step in steps[:bins]:
        covered += step
        counts.append(covered)
    low, high = bins // 5, bins - bins // 5
    least = min(counts[low:high])
    best = (low, low)
    first = low
    for at in range(low, high + 1):
        if at == high or counts[at] > least + len(inked) // 50:
            best = max(best, (first, at), key=lambda strip: strip[1] - strip[0])
            first = at + 1
    if (best[1] - best[0]) * _BIN < 0.4 * em:
        return None
    return start + best[0] * _BIN, start + best[1] * _BIN


def _prose(side: Sequence[Run]) -> bool:
    """Whether these runs fill a column with sentences, as cells of a table do not."""
    said = "".join("".join(run.text.split()) for run in side)
    if sum(map(str.isalpha, said)) < _MIN_LETTERS * len(said):
        return False
    extents: dict[int, tuple[float, float, int]] = {}
    for run in side:
        x0, x1, count = extents.get(round(run.y0 / 3), (run.x0, run.x1, 0))
        extents[round(run.y0 / 3)] = (min(x0, run.x0), max(x1, run.x1), count + len(run.text))
    if len(extents) < _MIN_COLUMN_LINES:
        return False
    width = max(x1 for _, x1, _ in extents.values()) - min(x0 for x0, _, _ in extents.values())
    filled = median(x1 - x0 for x0, x1, _ in extents.values())
    characters = median(count for _, _, count in extents.values())
    return filled >= _MIN_FILL * width and characters >= _MIN_LINE_CHARACTERS


def _zones(inked: Sequence[Run], start: float, end: float) -> Iterable[tuple[list[Run], list[Run]]]:
    """From the top: runs of both columns, and the full-width runs that end them."""
    wide = [run for run in inked if run.x0 < end - 1 and run.x1 > start + 1]
    bands = _bands(wide)
    full: list[list[Run]] = [[] for _ in bands]
    zones: list[list[Run]] = [[] for _ in range(len(bands) + 1)]
    for run in inked:
        middle = (run.y0 + run.y1) / 2
        above = 0
        while above < len(bands) and middle < bands[above][0]:
            above += 1
        if above < len(bands) and middle <= bands[above][1]:
            full[above].append(run)
        else:
            zones[above].append(run)
    return zip(zones, [*full, []], strict=True)


def _bands(wide: Sequence[Run]) -> list[tuple[float, float]]:
    """The heights that full-width runs take up, from the top, touching ones as one."""
    bands: list[tuple[float, float]] = []
    for run in sorted(wide, key=lambda run: -run.y1):
        if bands and run.y1 >= bands[-1][0] - 0.6 * run.size:
            bands[-1] = (min(bands[-1][0], run.y0), bands[-1][1])
        else:
            bands.append((run.y0, run.y1))
    return bands


def rows(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs on one baseline, from the top; raised and lowered ones stay with their row."""
    rows: list[list[Run]] = []
    low = high = 0.0
    for run in sorted(runs, key=lambda run: (-(run.y0 + run.y1) / 2, run.x0)):
        overlap = min(high, run.y1) - max(low, run.y0)
        height = min(high - low, run.y1 - run.y0)
        if rows and height > 0 and overlap > 0.35 * height:
            rows[-1].append(run)
            if run.y1 - run.y0 > high - low and run.text.strip():
                low, high = run.y0, run.y1
        else:
            rows.append([run])
            low, high = run.y0, run.y1
    return rows

"""From placed runs to lines in reading order: columns first, then rows within each column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from fonds.normalize.pdf.page import Page, Run
from fonds.normalize.pdf.table import Table

NOTE_OPEN: Final = "\ue000"
NOTE_CLOSE: Final = "\ue001"
"""Around the number of a footnote in a line's text; no reader hands these characters on."""

_BIN: Final = 2.0
_MIN_BINS: Final = 8
_MAX_BINS: Final = 4000
_MIN_COLUMN_LINES: Final = 4
_MIN_FILL: Final = 0.55
_MIN_LETTERS: Final = 0.6
_MIN_LINE_CHARACTERS: Final = 14
_SPACE: Final = 0.17
_WIDE_GAP: Final = 1.8
_SMALL: Final = 0.8
_DEPTH: Final = 3
_NOTE: Final = re.compile(r"\d{1,3}")
_SECTION_SIGN: Final = re.compile(r"\s*§")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a column, with what tells headings from text."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool
    column: int = 0
    """Counts the columns of a page; a new one begins above the end of the last."""
    cells: bool = False
    """Words stand far apart, as in a row of a table."""
    table: Table | None = None


def lines_of(page: Page) -> list[Line]:
    """All lines of a page as they are read."""
    if page.text:
        return _plain_lines(page)
    lines: list[Line] = []
    for number, column in enumerate(_columns(page.runs, _DEPTH)):
        for row in _rows(column):
            lines.extend(_lines(row, number))
    turned = [_line([run], len(lines) + 1) for run in _joined(page.turned)]
    return [line for line in (*lines, *turned) if line.text or line.table]


def _plain_lines(page: Page) -> list[Line]:
    texts = [" ".join(line.split()) for line in page.text.split("\n")]
    widest = max(map(len, texts))
    pitch = min(12.0, page.height / (len(texts) + 1))
    return [
        Line(
            text=text,
            x0=0.0,
            x1=page.width * len(text) / max(widest, 1),
            y=page.height - (number + 1) * pitch,
            size=0.0,
            bold=False,
        )
        for number, text in enumerate(texts)
        if text
    ]


def _joined(runs: Sequence[Run]) -> list[Run]:
    """Turned runs come letter by letter; what follows closely is one word."""
    words: list[Run] = []
    for run in runs:
        last = words[-1] if words else None
        if last and max(abs(run.x0 - last.x0), abs(run.y0 - last.y0)) < 1.2 * run.size:
            text = last.text + run.text
            words[-1] = Run(run.x0, run.y0, run.x1, run.y1, run.size, run.bold, text)
        else:
            words.append(run)
    return words


# Columns ----------------------------------------------------------------------------------


def _columns(runs: list[Run], depth: int) -> list[list[Run]]:
    """Groups of runs to be read one after the other."""
    inked = [run for run in runs if run.text.strip() or run.table]
    gutter = _gutter(inked) if depth else None
    if gutter is None:
        return [runs]
    groups: list[list[Run]] = []
    for zone, full in _zones(inked, *gutter):
        left = [run for run in zone if run.x1 <= gutter[1]]
        right = [run for run in zone if run.x1 > gutter[1]]
        if left and right:
            groups.extend(_columns(left, depth - 1))
            groups.extend(_columns(right, depth - 1))
        elif zone:
            groups.append(zone)
        if full:
            groups.append(full)
    return groups


def _gutter(inked: Sequence[Run]) -> tuple[float, float] | None:
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


# Rows -------------------------------------------------------------------------------------


def _rows(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs on one baseline, from the top; raised and lowered ones stay with their row."""
    rows: list[list[Run]] = []
    low = high = 0.0
    for run in sorted(runs, key=lambda run: (-(run.y0 + run.y1) / 2, run.x0)):
        overlap = min(high, run.y1) - max(low, run.y0)
        height = min(high - low, run.y1 - run.y0)
        if rows and height > 0 and overlap > 0.35 * height and not run.table:
            rows[-1].append(run)
            if run.y1 - run.y0 > high - low and run.text.strip():
                low, high = run.y0, run.y1
        else:
            rows.append([run])
            low, high = run.y0, (run.y0 if run.table else run.y1)
    return rows


def _lines(row: list[Run], column: int) -> list[Line]:
    """One line, or two where a bold section heading runs into its text."""
    row.sort(key=lambda run: run.x0)
    inked = [run for run in row if run.text.strip() or run.table]
    if not inked:
        return []
    if inked[0].bold and _SECTION_SIGN.match(inked[0].text):
        plain = next((i for i, run in enumerate(row) if run.text.strip() and not run.bold), 0)
        if plain:
            return [_line(row[:plain], column), _line(row[plain:], column)]
    return [_line(row, column)]


def _line(row: list[Run], column: int) -> Line:
    inked = [run for run in row if run.text.strip()] or row
    size = max(run.size for run in inked)
    letters = sum(len(run.text) for run in inked)
    text, cells = _text(row, size)
    return Line(
        text=" ".join(text.split()),
        x0=inked[0].x0,
        x1=max(run.x1 for run in inked),
        y=inked[0].y0,
        size=max(inked, key=lambda run: len(run.text)).size,
        bold=sum(len(run.text) for run in inked if run.bold) > 0.8 * letters,
        column=column,
        cells=cells,
        table=row[0].table,
    )


def _text(row: list[Run], size: float) -> tuple[str, bool]:
    parts: list[str] = []
    edge: Run | None = None
    gaps = 0
    for run in row:
        if edge is not None:
            gap = max(run.x0 - edge.x1, edge.x0 - run.x1)
            parts.append(" " if gap > _SPACE * min(run.size, size) else "")
            gaps += gap > _WIDE_GAP * size and bool(run.text.strip())
        parts.append(_note(run, size, edge) or run.text)
        if run.text.strip():
            edge = run
    return "".join(parts), gaps > 0


def _note(run: Run, size: float, edge: Run | None) -> str | None:
    """A small number right behind a word may point at a footnote.

    The reader puts raised runs down on the line, so that only their size tells.
    """
    if edge is None or run.size > _SMALL * size or not _NOTE.fullmatch(run.text.strip()):
        return None
    if run.x0 - edge.x1 > 0.4 * size or edge.text.strip()[-1:].isdecimal():
        return None
    return _NOTE.sub(rf"{NOTE_OPEN}\g<0>{NOTE_CLOSE}", run.text, count=1)

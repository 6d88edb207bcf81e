"""From placed runs to lines in reading order.

A file mostly draws its text in the order it is read, and no geometry knows that order better:
cells, margin notes and boxes are where their author put them. Only pages that draw two columns
line by line, or jump about, are put in order by the position of their text.

Columns are recognized by the empty strip between them, and rows within a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from fonds.normalize.pdf.page import (
    NOTE_CLOSE,
    NOTE_OPEN,
    LinePart,
    PdfLine,
    PdfPage,
    TextRun,
)
from fonds.normalize.pdf.vertical import vertical_lines

_BIN: Final = 2.0
_MIN_BINS: Final = 8
_MAX_BINS: Final = 4000
_MIN_COLUMN_LINES: Final = 4
_MIN_FILL: Final = 0.55
_MIN_LETTERS: Final = 0.6
_MIN_LINE_CHARACTERS: Final = 14


def columns(runs: list[TextRun], depth: int) -> list[list[TextRun]]:
    """Groups of runs to be read one after the other."""
    inked = [run for run in runs if run.text.strip()]
    strip = gutter(inked) if depth else None
    if strip is None:
        return [runs]
    groups: list[list[TextRun]] = []
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


def gutter(inked: Sequence[TextRun]) -> tuple[float, float] | None:
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
    inked: Sequence[TextRun], start: float, end: float, em: float
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
    minimum = min(counts[low:high])
    best = (low, low)
    first = low
    for at in range(low, high + 1):
        if at == high or counts[at] > minimum + len(inked) // 50:
            best = max(best, (first, at), key=lambda strip: strip[1] - strip[0])
            first = at + 1
    if (best[1] - best[0]) * _BIN < 0.4 * em:
        return None
    return start + best[0] * _BIN, start + best[1] * _BIN


def _prose(side: Sequence[TextRun]) -> bool:
    """Whether these runs fill a column with sentences, as cells of a table do not."""
    text = "".join("".join(run.text.split()) for run in side)
    if sum(map(str.isalpha, text)) < _MIN_LETTERS * len(text):
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


def _zones(
    inked: Sequence[TextRun], start: float, end: float
) -> Iterable[tuple[list[TextRun], list[TextRun]]]:
    """From the top: runs of both columns, and the full-width runs that end them."""
    wide = [run for run in inked if run.x0 < end - 1 and run.x1 > start + 1]
    bands = _bands(wide)
    full: list[list[TextRun]] = [[] for _ in bands]
    zones: list[list[TextRun]] = [[] for _ in range(len(bands) + 1)]
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


def _bands(wide: Sequence[TextRun]) -> list[tuple[float, float]]:
    """The heights that full-width runs take up, from the top, touching ones as one."""
    bands: list[tuple[float, float]] = []
    for run in sorted(wide, key=lambda run: -run.y1):
        if bands and run.y1 >= bands[-1][0] - 0.6 * run.size:
            bands[-1] = (min(bands[-1][0], run.y0), bands[-1][1])
        else:
            bands.append((run.y0, run.y1))
    return bands


def rows(runs: Iterable[TextRun]) -> list[list[TextRun]]:
    """Runs on one baseline, from the top; raised and lowered ones stay with their row."""
    rows: list[list[TextRun]] = []
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


_SPACE: Final = 0.5
_MIN_GAP: Final = 1.0
_WIDE_GAP: Final = 1.8
_SMALL: Final = 0.8
_DEPTH: Final = 3
_FEW_JUMPS: Final = 3
_MANY_JUMPS: Final = 0.25
_LINE_BY_LINE: Final = 0.6
_NOTE: Final = re.compile(r"\d{1,3}")
_RUN_IN: Final = re.compile(r"\s*(?:§|\d{1,3}(?:\.\d{1,3})+\.?(?:\s|$))")
_TITLE_END: Final = re.compile(r"[^\W\d_]{2,}\)?\s?[.:–—-]$")


def lines_of(page: PdfPage) -> list[PdfLine]:
    """All lines of a page as they are read."""
    if columns := vertical_lines(page):
        return columns
    # A recognizer's order is its own.
    by_position = (page.scanned and page.ocr is not None) or _out_of_order(page.rows)
    lines = _by_position(page) if by_position else _as_drawn(page)
    return [line for line in lines if line.text]


# Order ------------------------------------------------------------------------------------


def _out_of_order(drawn: Sequence[Sequence[TextRun]]) -> bool:
    """Whether the order of drawing cannot be the order of reading."""
    upright = [row for row in drawn if not row[0].turned]
    steps = list(pairwise(upright))
    jumps = sum(_jumps_back(last[-1], row[0]) for last, row in steps)
    if jumps > max(_FEW_JUMPS, _MANY_JUMPS * len(upright)):
        return True
    parts = [_extent(part) for row in upright for part in _parts(row)]
    aside = sum(row[0].x0 > last[-1].x1 for last, row in steps)
    return len(parts) - len(upright) + aside > _FEW_JUMPS and _interleaved(parts)


def _jumps_back(last: TextRun, run: TextRun) -> bool:
    """Whether a row is above the one drawn before it, in the same column."""
    side_by_side = run.x0 >= last.x1 or run.x1 <= last.x0
    return run.y0 > last.y0 + max(last.size, run.size) and not side_by_side


def _interleaved(parts: Sequence[TextRun]) -> bool:
    """Whether two columns of prose are drawn line by line, from the one to the other."""
    strip = gutter(parts)
    if strip is None:
        return False
    parts = [part for part in parts if part.x1 <= strip[1] or part.x0 >= strip[0]]
    crossings = sum(
        (one.x1 <= strip[1]) != (other.x1 <= strip[1]) and abs(one.y0 - other.y0) < other.size
        for one, other in pairwise(parts)
    )
    lines = (
        _baselines(part for part in parts if part.x1 <= strip[1]),
        _baselines(part for part in parts if part.x0 >= strip[0]),
    )
    return crossings > max(_FEW_JUMPS, _LINE_BY_LINE * min(lines))


def _baselines(runs: Iterable[TextRun]) -> int:
    return len({round(run.y0 / 3) for run in runs})


def _parts(row: Sequence[TextRun]) -> list[list[TextRun]]:
    """The runs of a row, divided at wide gaps."""
    parts = [[row[0]]]
    for edge, run in pairwise(row):
        gap = max(run.x0 - edge.x1, edge.x0 - run.x1)
        if gap > _MIN_GAP * max(run.size, edge.size):
            parts.append([])
        parts[-1].append(run)
    return parts


def _extent(part: Sequence[TextRun]) -> TextRun:
    """A part as if it were one run: columns are recognized by parts, as words alone leave gaps."""
    if len(part) == 1:
        return part[0]
    main = max(part, key=lambda run: run.size)
    x0, x1 = min(run.x0 for run in part), max(run.x1 for run in part)
    text = "".join(run.text for run in part)
    return TextRun(x0, main.y0, x1, main.y1, main.size, main.bold, text)


def columns_of(drawn: Iterable[Sequence[TextRun]]) -> list[list[TextRun]]:
    """The runs of upright rows, by columns that are read one after the other."""
    parts = [part for row in drawn if not row[0].turned for part in _parts(row)]
    extents = [_extent(part) for part in parts]
    runs = {id(extent): part for extent, part in zip(extents, parts, strict=True)}
    return [
        [run for part in column for run in runs[id(part)]] for column in columns(extents, _DEPTH)
    ]


def _by_position(page: PdfPage) -> list[PdfLine]:
    lines: list[PdfLine] = []
    parts = [part for row in page.rows if not row[0].turned for part in _parts(row)]
    extents = [_extent(part) for part in parts]
    runs = {id(extent): part for extent, part in zip(extents, parts, strict=True)}
    for number, column in enumerate(columns(extents, _DEPTH)):
        for row in rows(column):
            row.sort(key=lambda run: run.x0)
            lines.extend(_lines([run for part in row for run in runs[id(part)]], number))
    turned = [row for row in page.rows if row[0].turned]
    return lines + [_line(row, len(lines) + number) for number, row in enumerate(turned)]


def _as_drawn(page: PdfPage) -> list[PdfLine]:
    lines: list[PdfLine] = []
    column = 0
    last: list[TextRun] | None = None
    for row in _joined(page.rows):
        column += last is not None and _elsewhere(last, row)
        lines.extend(_lines(row, column))
        last = row
    return lines


def _joined(drawn: Iterable[list[TextRun]]) -> list[list[TextRun]]:
    """Rows with the raised, lowered and separately drawn pieces of their line."""
    joined: list[list[TextRun]] = []
    for row in drawn:
        if joined and _is_adjacent(joined[-1], row[0]):
            joined[-1] = joined[-1] + row
        else:
            joined.append(row)
    return joined


def _is_adjacent(row: Sequence[TextRun], run: TextRun) -> bool:
    last = row[-1]
    if last.turned or run.turned:
        return False
    main = max(row, key=lambda one: one.size)
    size, gap = max(main.size, run.size), run.x0 - last.x1
    if gap >= 0 and abs(run.y0 - main.y0) < 0.1 * size:
        return True
    return abs(run.y0 - main.y0) < 0.5 * size and -0.3 * size <= gap < _WIDE_GAP * size


def _elsewhere(last: Sequence[TextRun], row: Sequence[TextRun]) -> bool:
    """Whether a row begins a column, a cell or a box of its own."""
    if row[0].turned or last[0].turned:
        return not (row[0].turned and last[0].turned)
    above = row[0].y0 > last[0].y0 + 0.6 * max(row[0].size, last[0].size)
    return above or row[0].x0 > last[-1].x1 or row[-1].x1 < last[0].x0


# Lines ------------------------------------------------------------------------------------


def _lines(row: list[TextRun], column: int) -> list[PdfLine]:
    """One line, or two where a bold section heading runs into its text."""
    if row[0].bold and _RUN_IN.match(row[0].text):
        first_regular = next(
            (i for i, run in enumerate(row) if run.text.strip() and not run.bold), 0
        )
        if first_regular and _is_title(row[:first_regular], row[first_regular]):
            return [_line(row[:first_regular], column), _line(row[first_regular:], column)]
    return [_line(row, column)]


def _is_title(bold: Sequence[TextRun], following: TextRun) -> bool:
    """True for a heading, rather than the subject of the sentence that follows."""
    text = "".join(run.text for run in bold).strip()
    if text.startswith("§"):
        return True
    return bool(_TITLE_END.search(text)) and not following.text.lstrip()[:1].islower()


def text_of(row: Sequence[TextRun]) -> str:
    """The text of one line's runs."""
    if len(row) == 1:
        return " ".join(row[0].text.split())
    inked = [run for run in row if run.text.strip()] or row
    parts, _ = _line_parts(inked, max(run.size for run in inked))
    return " ".join(part.text for part in parts)


def _line(row: Sequence[TextRun], column: int) -> PdfLine:
    inked = [run for run in row if run.text.strip()] or row
    size = max(run.size for run in inked)
    letters = sum(len(run.text) for run in inked)
    widest = max(inked, key=lambda run: len(run.text))
    parts, gap = _line_parts(inked, size)
    return PdfLine(
        text=" ".join(part.text for part in parts),
        x0=min(run.x0 for run in inked),
        x1=max(run.x1 for run in inked),
        y=widest.y0,
        size=widest.size,
        bold=sum(len(run.text) for run in inked if run.bold) > 0.8 * letters,
        column=column,
        cells=gap > _WIDE_GAP * size,
        parts=tuple(parts) if len(parts) > 1 else (),
        turned=row[0].turned,
    )


def _line_parts(row: Sequence[TextRun], size: float) -> tuple[list[LinePart], float]:
    """The parts of a line with wide gaps between them, and the widest gap."""
    widest = 0.0
    parts: list[LinePart] = []
    runs = [row[0]]
    texts = [row[0].text]
    for edge, run in pairwise(row):
        gap = max(run.x0 - edge.x1, edge.x0 - run.x1)
        if gap > _MIN_GAP * size:
            widest = max(widest, gap)
            parts.append(_line_part(runs, texts))
            runs, texts = [], []
        elif gap > _SPACE * min(run.size, size):
            texts.append(" ")
        runs.append(run)
        texts.append(_note(run, size, edge) or run.text)
    return [*parts, _line_part(runs, texts)], widest


def _line_part(runs: Sequence[TextRun], texts: Sequence[str]) -> LinePart:
    text = " ".join("".join(texts).split())
    return LinePart(min(run.x0 for run in runs), max(run.x1 for run in runs), text)


def _note(run: TextRun, size: float, edge: TextRun) -> str | None:
    """A small number right behind a word may point at a footnote."""
    if run.size > _SMALL * size or not _NOTE.fullmatch(run.text.strip()):
        return None
    # Lowered numbers belong to formulas.
    if run.y0 < edge.y0 - 0.05 * size:
        return None
    if run.x0 - edge.x1 > 0.4 * size or edge.text.strip()[-1:].isdecimal():
        return None
    return f"{NOTE_OPEN}{run.text}{NOTE_CLOSE}"

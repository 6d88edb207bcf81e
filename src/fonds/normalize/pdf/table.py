"""Tables, recognized by cells that are drawn row by row, aligned under each other.

The order of the words is never changed: what does not fit a grid as it is drawn stays text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise
from statistics import median
from typing import Final

from fonds.normalize.pdf.page import Grid, LinePart, PdfLine

_MIN_ROWS: Final = 3
_MIN_COLUMNS: Final = 2
_MAX_CELL_LINES: Final = 25
_MIN_FILLED: Final = 0.5
_NEAR: Final = 1.6
_PARAGRAPH: Final = 3.5
_LABEL: Final = re.compile(
    r"\(?(?:\d{1,3}|[A-Za-z]|[ivxlcIVXLC]{1,6})(?:\.\d{1,3})*[.)]*|[^\w\s]{1,2}|[o§]", re.ASCII
)
_LEADERS: Final = re.compile(r"(?:\. ?){4}|…{2}")


@dataclass(slots=True)
class _Cell:
    x0: float
    x1: float
    top: float
    bottom: float
    size: float
    texts: list[str]
    first: int
    """Of the lines it is made of."""
    last: int

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    def extend(self, cell: _Cell) -> None:
        self.x0, self.x1 = min(self.x0, cell.x0), max(self.x1, cell.x1)
        self.bottom, self.last = cell.bottom, cell.last
        self.texts.extend(cell.texts)

    def below(self, part: LinePart, line: PdfLine) -> bool:
        """Whether a piece goes on right under this cell."""
        shared = min(self.x1, part.x1) - max(self.x0, part.x0)
        gap = self.bottom - line.y
        near = 0 < gap <= _NEAR * max(self.size, line.size)
        return near and shared > 0.5 * min(self.width, part.x1 - part.x0)

    def add(self, part: LinePart, line: PdfLine, number: int) -> None:
        self.x0, self.x1 = min(self.x0, part.x0), max(self.x1, part.x1)
        self.bottom, self.last = line.y, number
        self.texts.append(part.text)


@dataclass(slots=True)
class _TableRow:
    cells: list[_Cell] = field(default_factory=list)

    def continued_by(self, cell: _Cell) -> bool:
        """Whether a cell is another paragraph of the last, which is not the row's first."""
        last = self.cells[-1]
        shared = min(last.x1, cell.x1) - max(last.x0, cell.x0)
        near = 0 < last.bottom - cell.top <= _PARAGRAPH * cell.size
        return len(self.cells) > 1 and near and shared > 0.5 * min(last.width, cell.width)

    def takes(self, cell: _Cell) -> bool:
        """Whether a cell is to the right of the last, at the same height."""
        last = self.cells[-1]
        top, bottom = max(c.top for c in self.cells), min(c.bottom for c in self.cells)
        level = cell.bottom - 0.5 * cell.size <= top and cell.top >= bottom - 0.5 * cell.size
        return level and cell.x0 >= last.x1 - 0.2 * cell.size


def with_tables(lines: Sequence[PdfLine]) -> list[PdfLine]:
    """The lines of a page, those of each table as one."""
    groups = groupby(lines, key=lambda line: line.table is not None)
    return [
        line
        for are_tables, group in groups
        for line in (group if are_tables else _with_aligned(list(group)))
    ]


def _with_aligned(lines: Sequence[PdfLine]) -> list[PdfLine]:
    tables = [table for rows in _groups(_rows(_cells(lines))) if (table := _table(rows))]
    if not tables:
        return list(lines)
    lines_out: list[PdfLine] = []
    at = 0
    for first, last, rows in tables:
        lines_out.extend(lines[at:first])
        lines_out.append(replace(lines[first], text="", bold=False, parts=(), table=rows))
        at = last + 1
    return lines_out + list(lines[at:])


def _cells(lines: Sequence[PdfLine]) -> list[_Cell]:
    cells: list[_Cell] = []
    for number, line in enumerate(lines):
        for at, part in enumerate(line.parts or (LinePart(line.x0, line.x1, line.text),)):
            if cells and at == 0 and cells[-1].below(part, line):
                cells[-1].add(part, line, number)
            else:
                cells.append(
                    _Cell(part.x0, part.x1, line.y, line.y, line.size, [part.text], number, number)
                )
    return cells


def _cell(part: LinePart, line: PdfLine, number: int) -> _Cell:
    return _Cell(part.x0, part.x1, line.y, line.y, line.size, [part.text], number, number)


def _rows(cells: Iterable[_Cell]) -> list[_TableRow]:
    rows: list[_TableRow] = []
    for cell in cells:
        if rows and rows[-1].continued_by(cell):
            rows[-1].cells[-1].extend(cell)
        elif rows and rows[-1].takes(cell):
            rows[-1].cells.append(cell)
        else:
            rows.append(_TableRow([cell]))
    return rows


def _groups(rows: Sequence[_TableRow]) -> Iterable[list[_TableRow]]:
    """Rows of several cells that follow each other; single cells may be between them."""
    group: list[_TableRow] = []
    alone: list[_TableRow] = []
    for row in rows:
        if len(row.cells) < _MIN_COLUMNS:
            alone.append(row)
            continue
        if len(alone) > 1 or not _fits(alone, group, row):
            yield group
            group = []
        group += [*alone, row] if group else [row]
        alone = []
    yield group


def _fits(alone: Sequence[_TableRow], group: Sequence[_TableRow], row: _TableRow) -> bool:
    """Whether a row, and a single cell before it, go on with the grid of the rows above."""
    if not group or row.cells[0].top > group[-1].cells[0].top:
        return not group
    columns = max((r.cells for r in (*group, row)), key=len)
    return all(len(_overlapped(one.cells[0], columns)) <= 1 for one in alone)


def _overlapped(cell: _Cell, columns: Sequence[_Cell]) -> list[int]:
    return [at for at, c in enumerate(columns) if min(c.x1, cell.x1) - max(c.x0, cell.x0) > 0]


def _table(rows: Sequence[_TableRow]) -> tuple[int, int, Grid] | None:
    """First and last line of a table and its cells, or None where these rows make no grid."""
    full = [row for row in rows if len(row.cells) >= _MIN_COLUMNS]
    width = max((len(row.cells) for row in full), default=0)
    if len(full) < (_MIN_ROWS if width == _MIN_COLUMNS else _MIN_ROWS - 1):
        return None
    widest = [row for row in full if len(row.cells) == width]
    if _stretched(full):
        return None
    columns = _columns(widest)
    arranged = [_arranged(row, columns) for row in rows]
    grid = [row for row in arranged if row is not None]
    if len(grid) < len(rows) or not _sound(grid):
        return None
    cells = [cell for row in rows for cell in row.cells]
    first, last = min(c.first for c in cells), max(c.last for c in cells)
    return first, last, tuple(grid)


def _stretched(rows: Sequence[_TableRow]) -> bool:
    """Whether these are lines of prose, stretched to a narrow column's width.

    They begin and end alike, their gaps are small, and nothing between is aligned.
    """
    slack = 0.4 * rows[0].cells[0].size
    ends = ([row.cells[0].x0 for row in rows], [row.cells[-1].x1 for row in rows])
    gaps = [b.x0 - a.x1 for row in rows for a, b in pairwise(row.cells)]
    if any(max(end) - min(end) > slack for end in ends) or median(gaps) > 6 * slack:
        return False
    counts = Counter(len(row.cells) for row in rows)
    alike = [row for row in rows if len(row.cells) == counts.most_common(1)[0][0]]
    inner = range(1, len(alike[0].cells) - 1) if len(alike) > 1 else ()
    return not any(_aligned([row.cells[at] for row in alike], slack) for at in inner)


def _aligned(cells: Sequence[_Cell], slack: float) -> bool:
    """Whether all cells begin or end at one place."""
    sides = ([cell.x0 for cell in cells], [cell.x1 for cell in cells])
    return any(max(side) - min(side) < slack for side in sides)


def _columns(rows: Sequence[_TableRow]) -> list[tuple[float, float]]:
    return [
        (min(row.cells[at].x0 for row in rows), max(row.cells[at].x1 for row in rows))
        for at in range(len(rows[0].cells))
    ]


def _arranged(
    row: _TableRow, columns: Sequence[tuple[float, float]]
) -> tuple[tuple[str, ...], ...] | None:
    """The texts of a row's cells by column, or None where two of them claim one."""
    arranged: list[tuple[str, ...]] = [() for _ in columns]
    at = -1
    for cell in row.cells:
        shared = [min(cell.x1, x1) - max(cell.x0, x0) for x0, x1 in columns]
        best = next((i for i, s in enumerate(shared) if i > at and s > 0), None)
        if best is None:
            return None
        at = best
        arranged[at] = tuple(cell.texts)
    return tuple(arranged)


def _sound(grid: Sequence[Sequence[tuple[str, ...]]]) -> bool:
    cells = [cell for row in grid for cell in row]
    if max(map(len, cells)) > _MAX_CELL_LINES:
        return False
    # A label and the paragraph behind it are not a table.
    first = [" ".join(row[0]) for row in grid if row[0]]
    if not first or all(_LABEL.fullmatch(text) for text in first):
        return False
    # A table of contents reads better as lines.
    led = sum(_LEADERS.search(" ".join(chain.from_iterable(row))) is not None for row in grid)
    if 2 * led > len(grid):
        return False
    return sum(map(bool, cells)) >= _MIN_FILLED * len(cells)

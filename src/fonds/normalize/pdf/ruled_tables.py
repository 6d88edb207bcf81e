"""Tables between rules: what is drawn within a cell is its text.

Rules do not always say all: a cell that is merged by them may hold the words of several columns, or
stacked rows, and a number may have a box for each digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from typing import Final, NamedTuple

from fonds.normalize.pdf.grid import GridCell, RuledGrid
from fonds.normalize.pdf.layout import rows, text_of
from fonds.normalize.pdf.page import TextRun
from fonds.normalize.pdf.table_model import PdfTable, TableCell, without_blank_rows

_SPILL: Final = 0.25
_OVER: Final = 3.0
_OUTSIDE: Final = 3.0
_OVERLAID: Final = 6.0
_COLUMN_GAP: Final = 0.8
_NUMBER_GAP: Final = 0.45
_SEVERAL: Final = 0.5
_SAME_LINE: Final = 0.5
_TALL: Final = 6
"""Lines of a cell that are rather rows of a table in it."""
NUMBER: Final = re.compile(
    r"[-–—−+(\[<>≥≤~$€£¥₹%\s]*\d[\d.,'\s]*[%)\]*†‡a-z]{0,4}|[-–—−.…*]+|n/?a", re.IGNORECASE
)
TICK: Final = re.compile(r"[✓✔✗✘×☐☑☒□■○●◯◎△▲✱✚*+]")
NAME: Final = re.compile(r"[^\W\d_]{2}|[\u3040-\u9fff]")
_LABELLED: Final = 0.4
_DIGIT: Final = re.compile(r"[\d０-９,，.▲△\-－¥￥]")
_UNITS: Final = re.compile(r"[十百千万億兆円]{1,3}")
_MIN_BOXES: Final = 3
_BOX_WIDTH: Final = 2.6


class PageTable(NamedTuple):
    """A table, where it is on its page, and the runs it is made of."""

    table: PdfTable
    box: tuple[float, float, float, float]
    runs: list[TextRun]


@dataclass(slots=True)
class _Cell:
    at: GridCell
    box: tuple[float, float, float, float]
    lines: list[list[TextRun]] = field(default_factory=list)
    """Its runs by line, from the top."""

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for line in self.lines if (text := text_of(line)))

    @property
    def runs(self) -> Iterator[TextRun]:
        return (run for line in self.lines for run in line)


def ruled_table(grid: RuledGrid, runs: Iterable[TextRun]) -> PageTable | None:
    """The table between these rules, or None where they hold none."""
    if len(grid.tops) < 3 or len(grid.lefts) < 3:  # noqa: PLR2004 — two rows and two columns
        return None
    cells = _filled(grid, runs)
    inside = [run for cell in cells for run in cell.runs]
    spilling = sum(
        run.x1 > cell.box[2] + _OVER or run.x0 < cell.box[0] - _OVER
        for cell in cells
        for run in cell.runs
    )
    if not inside or spilling > max(1, _SPILL * len(inside)):
        return None
    finer = _with_strips(grid, cells)
    if finer is not grid:
        grid, cells = finer, _filled(finer, inside)
    if _divide_no_rows(cells):
        return None
    cells = [part for cell in cells for part in _by_columns(cell, grid)]
    cells = _by_rows(cells)
    table_cells = without_blank_rows(_with_numbers(cells))
    table = PdfTable(table_cells, lefts=grid.lefts)
    if table.row_count < 2 or table.column_count < 2 or len(table_cells) < 3:  # noqa: PLR2004
        return None
    if not _has_labels(table):
        return None
    return PageTable(table, grid.box, inside)


def _divide_no_rows(cells: Sequence[_Cell]) -> bool:
    """Most lines are in tall cells that have columns of their own: the rules are a frame."""
    lines = [line for cell in cells for line in cell.lines]
    tall = [line for cell in cells if len(cell.lines) >= _TALL for line in cell.lines]
    several = sum(len(list(_segments(line))) > 1 for line in tall)
    return several > _SEVERAL * len(lines)


def _has_labels(table: PdfTable) -> bool:
    """Rows or columns of a table have labels; the lines of a chart have none."""
    labelled = [cell for cell in table.cells if NAME.search(" ".join(cell.texts))]
    labelled_rows = sum(cell.rows for cell in labelled if not cell.column)
    labelled_columns = sum(cell.columns for cell in labelled if not cell.row)
    return labelled_rows >= max(2, _LABELLED * table.row_count) or labelled_columns >= max(
        2, _LABELLED * table.column_count
    )


def _with_strips(grid: RuledGrid, cells: Sequence[_Cell]) -> RuledGrid:
    """The grid with its columns divided where their words leave a strip empty in most rows."""
    edges: list[float] = []
    for column in range(len(grid.lefts) - 1):
        single = [cell for cell in cells if cell.at.column == column and cell.at.columns == 1]
        lines = [list(_segments(line)) for cell in single for line in cell.lines]
        several = [line for line in lines if len(line) > 1]
        marks = [text_of(segment) for line in several for segment in line]
        if len(several) < max(2, _SEVERAL * len(lines)) or not _are_numbers_or_ticks(marks):
            continue
        edges += _strips(several)
    if not edges:
        return grid
    lefts = sorted({*grid.lefts, *edges})
    numbers = {left: at for at, left in enumerate(lefts)}
    finer = [
        cell._replace(
            column=numbers[grid.lefts[cell.column]],
            columns=numbers[grid.lefts[cell.column + cell.columns]]
            - numbers[grid.lefts[cell.column]],
        )
        for cell in grid.cells
    ]
    return RuledGrid(tuple(lefts), grid.tops, tuple(finer))


def _are_numbers_or_ticks(texts: Sequence[str]) -> bool:
    """Most of these are numbers or ticks, unlike the words of a sentence."""
    marks = [text for text in texts if NUMBER.fullmatch(text) or TICK.fullmatch(text)]
    return len(marks) > _SEVERAL * len(texts)


def _strips(lines: Sequence[Sequence[Sequence[TextRun]]]) -> list[float]:
    """The middles of the empty strips through lines of several segments."""
    extents = sorted(
        (segment[0].x0, max(run.x1 for run in segment)) for line in lines for segment in line
    )
    middles = []
    end = extents[0][1]
    for x0, x1 in extents[1:]:
        if x0 - end > 1:
            middles.append((x0 + end) / 2)
        end = max(end, x1)
    return middles


def _filled(grid: RuledGrid, runs: Iterable[TextRun]) -> list[_Cell]:
    """The cells, each with the runs whose middle is in it."""
    left, bottom, right, top = grid.box
    cells = [_Cell(cell, grid.box_of(cell)) for cell in grid.cells]
    positions = {
        (row, column): cell
        for cell in cells
        for row in range(cell.at.row, cell.at.row + cell.at.rows)
        for column in range(cell.at.column, cell.at.column + cell.at.columns)
    }
    runs_by_cell: dict[int, list[TextRun]] = {}
    for run in runs:
        x, y = (run.x0 + run.x1) / 2, run.y0 + 0.3 * (run.y1 - run.y0)
        if run.turned or not (left < x < right and bottom < y < top):
            continue
        if run.x0 < left - _OUTSIDE * run.size or run.x1 > right + _OUTSIDE * run.size:
            continue
        column = sum(edge <= x for edge in grid.lefts) - 1
        row = sum(edge >= y for edge in grid.tops) - 1
        cell = positions.get((row, column))
        if cell is not None and not _is_laid_over(run, cell):
            runs_by_cell.setdefault(id(cell), []).append(run)
    for cell in cells:
        cell.lines = [
            sorted(line, key=lambda run: run.x0) for line in rows(runs_by_cell.get(id(cell), ()))
        ]
    return cells


def _is_laid_over(run: TextRun, cell: _Cell) -> bool:
    """A run of a box that is drawn over the cells."""
    left, _, right, _ = cell.box
    over = max(run.x1 - right, 0.0) + max(left - run.x0, 0.0)
    return over > max(_OVERLAID * run.size, right - left)


# Merged cells -----------------------------------------------------------------------------


def _by_columns(cell: _Cell, grid: RuledGrid) -> list[_Cell]:
    """A cell over several columns as one for each, if its words keep to them."""
    first, count = cell.at.column, cell.at.columns
    if count == 1 or not cell.lines:
        return [cell]
    edges = grid.lefts[first : first + count + 1]
    parts: dict[int, list[list[TextRun]]] = {}
    for line in cell.lines:
        for segment in _segments(line):
            column = _column_of(segment, edges)
            if column is None:
                return [cell]
            parts.setdefault(column, []).append(segment)
    segments = [segment for part in parts.values() for segment in part]
    if len(parts) == 1 or _is_spaced_out(segments):
        return [cell]
    columns = sorted(parts)
    starts = [0, *columns[1:]]
    return [
        _Cell(
            cell.at._replace(column=first + start, columns=end - start),
            (edges[start], cell.box[1], edges[end], cell.box[3]),
            parts[column],
        )
        for column, (start, end) in zip(columns, pairwise([*starts, count]), strict=True)
    ]


def _segments(line: Sequence[TextRun]) -> Iterator[list[TextRun]]:
    """The runs of a line, divided at gaps wider than between words."""
    part = [line[0]]
    for run in line[1:]:
        last = part[-1]
        numbers = NUMBER.fullmatch(run.text.strip()) and NUMBER.fullmatch(last.text.strip())
        if run.x0 - last.x1 > (_NUMBER_GAP if numbers else _COLUMN_GAP) * run.size:
            yield part
            part = []
        part.append(run)
    yield part


def _column_of(segment: Sequence[TextRun], edges: Sequence[float]) -> int | None:
    x0, x1 = segment[0].x0, max(run.x1 for run in segment)
    column = sum(edge <= (x0 + x1) / 2 for edge in edges) - 1
    if not 0 <= column < len(edges) - 1:
        return None
    fits = x0 >= edges[column] - 1 and x1 <= edges[column + 1] + 1
    return column if fits else None


def _is_spaced_out(segments: Iterable[Sequence[TextRun]]) -> bool:
    """Titles in Chinese letters are stretched over the width of their cell."""
    texts = [text_of(segment) for segment in segments]
    return all(len(text) == 1 and text.isalpha() and not text.isascii() for text in texts)


# Stacked rows -----------------------------------------------------------------------------


def _by_rows(cells: Sequence[_Cell]) -> list[_Cell]:
    """Rows of the grid, divided where stacked lines are rows of their own."""
    bands: dict[int, list[_Cell]] = {}
    for cell in cells:
        bands.setdefault(cell.at.row, []).append(cell)
    stacked = {
        row: baselines
        for row, band in bands.items()
        if all(cell.at.rows == 1 for cell in band) and (baselines := _stacked(band))
    }
    if not stacked:
        return list(cells)
    last = max(cell.at.row + cell.at.rows for cell in cells)
    counts = [len(stacked.get(row, "1")) for row in range(last)]
    starts = [0, *accumulate(counts)]
    divided: list[_Cell] = []
    for cell in cells:
        baselines = stacked.get(cell.at.row, [])
        first, end = starts[cell.at.row], starts[cell.at.row + cell.at.rows]
        cell.at = cell.at._replace(row=first, rows=end - first)
        divided += _stack(cell, baselines) if baselines else [cell]
    return divided


def _stacked(band: Sequence[_Cell]) -> list[float]:
    """The baselines that begin rows, from the top."""
    inked = [cell for cell in band if cell.lines]
    columns = [[line[0].y0 for line in cell.lines] for cell in inked]
    deep = [column for column in columns if len(column) > 1]
    if len(deep) < 2:  # noqa: PLR2004 — one column alone is a paragraph
        return []
    size = inked[0].lines[0][0].size
    numbers = [
        column
        for column, cell in zip(columns, inked, strict=True)
        if len(column) > 1 and all(NUMBER.fullmatch(text) for text in cell.texts)
    ]
    if numbers and len(max(numbers, key=len)) > 2:  # noqa: PLR2004 — two lines may be one cell
        anchors = max(numbers, key=len)
        others = [column for column in numbers if len(column) == len(anchors)]
        if all(_align(anchors, column, size) for column in others):
            return anchors
    baselines = max(deep, key=len)
    alike = len(baselines) > 2 and len(deep) == len(band) > 2  # noqa: PLR2004 — three by three
    if alike and all(_align(baselines, column, size) for column in columns):
        return baselines
    return []


def _align(one: Sequence[float], other: Sequence[float], size: float) -> bool:
    return len(one) == len(other) and all(
        abs(a - b) < _SAME_LINE * size for a, b in zip(one, other, strict=True)
    )


def _stack(cell: _Cell, baselines: Sequence[float]) -> list[_Cell]:
    """A cell for each of the rows that its lines are in."""
    parts: dict[int, list[list[TextRun]]] = {}
    for line in cell.lines:
        nearest = min(range(len(baselines)), key=lambda at: abs(baselines[at] - line[0].y0))
        parts.setdefault(nearest, []).append(line)
    return [
        _Cell(cell.at._replace(row=cell.at.row + at, rows=1), cell.box, lines)
        for at, lines in sorted(parts.items())
    ]


# Boxes for digits -------------------------------------------------------------------------


def _with_numbers(cells: Sequence[_Cell]) -> list[TableCell]:
    """All cells with their texts; those of digit boxes as one."""
    columns = max(cell.at.column + cell.at.columns for cell in cells)
    is_box = [_is_box_column(column, cells) for column in range(columns)]
    spans = [
        range(at[0], at[-1] + 1)
        for boxed, group in groupby(range(columns), key=lambda column: is_box[column])
        if boxed and len(at := list(group)) >= _MIN_BOXES
    ]
    texts = [
        TableCell(
            cell.at.row, cell.at.column, cell.texts, rows=cell.at.rows, columns=cell.at.columns
        )
        for cell in cells
    ]
    for span in spans:
        texts = _joined(texts, span)
    return texts


def _is_box_column(column: int, cells: Iterable[_Cell]) -> bool:
    """A narrow column of digits, each alone in its cell."""
    digits = 0
    for cell in cells:
        if cell.at.column != column or cell.at.columns > 1:
            continue
        size = max((run.size for run in cell.runs), default=0.0)
        if size and cell.box[2] - cell.box[0] > _BOX_WIDTH * size:
            return False
        for text in cell.texts:
            if _DIGIT.fullmatch(text):
                digits += 1
            elif not _UNITS.fullmatch(text):
                return False
        if not cell.texts and cell.box[2] - cell.box[0] > _BOX_WIDTH * 12:
            return False
    return digits > 0 or _is_blank(column, cells)


def _is_blank(column: int, cells: Iterable[_Cell]) -> bool:
    alone = (cell for cell in cells if cell.at.column == column and cell.at.columns == 1)
    return not any(cell.lines for cell in alone)


def _joined(cells: Sequence[TableCell], span: range) -> list[TableCell]:
    """The digits of each row put together, as the only cell of these columns."""
    others: list[TableCell] = []
    digits: dict[tuple[int, int], list[TableCell]] = {}
    for cell in cells:
        if cell.column in span and cell.columns == 1:
            digits.setdefault((cell.row, cell.rows), []).append(cell)
        elif cell.column in span and cell.column + cell.columns <= span.stop:
            others.append(cell._replace(column=span.start, columns=len(span)))
        else:
            others.append(cell)
    for (row, count), boxes in digits.items():
        texts = [text for box in sorted(boxes, key=lambda b: b.column) for text in box.texts]
        number = "".join(text for text in texts if not _UNITS.fullmatch(text))
        units = " ".join(text for text in texts if _UNITS.fullmatch(text))
        if units and not _label_above(others, row, span.start, units):
            number = f"{units} {number}"
        lines = (number,) if number else ()
        others.append(TableCell(row, span.start, lines, rows=count, columns=len(span)))
    return others


def _label_above(cells: list[TableCell], row: int, column: int, units: str) -> bool:
    """Add units printed over the first digits to the header of these columns, if it has one."""
    above = [
        (cell.row, at) for at, cell in enumerate(cells) if cell.column == column and cell.row < row
    ]
    if not above:
        return False
    at = max(above)[1]
    cells[at] = cells[at]._replace(texts=(*cells[at].texts, units))
    return True

"""Rules, drawn or found in a picture, as grids of cells: geometry alone, in points.

Strokes of one line are joined, so that dashes and the sides of single boxes become rules. Rules
that touch make a grid. Cells without a wall between them are merged, as where a rule ends early.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

_SNAP: Final = 2.6
"""Rules closer than that are one: double rules, and both sides of a thick one."""
_JOIN: Final = 4.2
"""The widest gap between the strokes of a dashed rule."""
_MIN_LENGTH: Final = 5.0
"""A rule; the strokes it is made of may be far shorter."""
_TOUCH: Final = 3.2
_COVERED: Final = 0.6
"""The fraction of a cell's side that a rule has to cover to be its wall."""
_THICK: Final = 3.0
_MANY: Final = 1_200
"""More rules than that, of one direction, are a drawing."""


class Rule(NamedTuple):
    """A straight stroke, level or upright, or the extent of a thin box."""

    x0: float
    y0: float
    x1: float
    y1: float


class _StraightLine(NamedTuple):
    """A level rule at its height, or an upright one at its distance from the left."""

    at: float
    start: float
    end: float


class GridCell(NamedTuple):
    """A cell, by the rows and columns it covers; both are counted from zero, rows from the top."""

    row: int
    column: int
    rows: int = 1
    columns: int = 1


@dataclass(frozen=True, slots=True)
class RuledGrid:
    """Cells between rules."""

    lefts: tuple[float, ...]
    """The rules between columns, from the left; one more than there are columns."""
    tops: tuple[float, ...]
    """The rules between rows, from the top; one more than there are rows."""
    cells: tuple[GridCell, ...]
    """From the top, then from the left; what is outside of all walls is in none."""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top."""
        return self.lefts[0], self.tops[-1], self.lefts[-1], self.tops[0]

    def box_of(self, cell: GridCell) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of a cell."""
        return (
            self.lefts[cell.column],
            self.tops[cell.row + cell.rows],
            self.lefts[cell.column + cell.columns],
            self.tops[cell.row],
        )


def grids_of(rules: Iterable[Rule]) -> list[RuledGrid]:
    """The grids that these rules make, from the top; a frame around one cell is none."""
    level, upright = straight_lines(rules)
    grids = [_grid(*part) for part in _connected(level, upright)]
    return sorted(
        (grid for grid in grids if grid and len(grid.cells) > 1), key=lambda grid: -grid.tops[0]
    )


def straight_lines(rules: Iterable[Rule]) -> tuple[list[_StraightLine], list[_StraightLine]]:
    """Level and upright rules, each of all strokes that follow each other on one line."""
    level: list[_StraightLine] = []
    upright: list[_StraightLine] = []
    for x0, y0, x1, y1 in rules:
        width, height = x1 - x0, y1 - y0
        # A dot may be of a dotted rule of either direction.
        if height <= _THICK and (width >= height or width <= _THICK):
            level.append(_StraightLine((y0 + y1) / 2, x0, x1))
        if width <= _THICK and (height > width or height <= _THICK):
            upright.append(_StraightLine((x0 + x1) / 2, y0, y1))
    return _joined(level), _joined(upright)


def _joined(strokes: Iterable[_StraightLine]) -> list[_StraightLine]:
    lines: list[_StraightLine] = []
    for cluster in _clusters(strokes):
        cluster.sort(key=lambda stroke: stroke.start)
        parts = [[cluster[0]]]
        end = cluster[0].end
        for stroke in cluster[1:]:
            if stroke.start - end > _JOIN:
                parts.append([])
                end = stroke.end
            parts[-1].append(stroke)
            end = max(end, stroke.end)
        lines += [_whole(part) for part in parts]
    by_length = sorted(
        (line for line in lines if line.end - line.start >= _MIN_LENGTH),
        key=lambda line: line.start - line.end,
    )
    return by_length[:_MANY]


def _clusters(strokes: Iterable[_StraightLine]) -> Iterable[list[_StraightLine]]:
    """Strokes on nearly one line."""
    cluster: list[_StraightLine] = []
    for stroke in sorted(strokes):
        if cluster and stroke.at - cluster[0].at > _SNAP:
            yield cluster
            cluster = []
        cluster.append(stroke)
    if cluster:
        yield cluster


def _whole(part: Sequence[_StraightLine]) -> _StraightLine:
    main = max(part, key=lambda stroke: stroke.end - stroke.start)
    return _StraightLine(main.at, part[0].start, max(stroke.end for stroke in part))


def _connected(
    level: Sequence[_StraightLine], upright: Sequence[_StraightLine]
) -> list[tuple[list[_StraightLine], list[_StraightLine]]]:
    """Rules that touch each other, directly or by way of others."""
    parents = list(range(len(level) + len(upright)))

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = node = parents[parents[node]]
        return node

    for j, wall in enumerate(upright, len(level)):
        for i, rule in enumerate(level):
            if (
                rule.start - _TOUCH <= wall.at <= rule.end + _TOUCH
                and wall.start - _TOUCH <= rule.at <= wall.end + _TOUCH
            ):
                parents[root(i)] = root(j)
    parts: dict[int, tuple[list[_StraightLine], list[_StraightLine]]] = {}
    for i, rule in enumerate(level):
        parts.setdefault(root(i), ([], []))[0].append(rule)
    for j, wall in enumerate(upright, len(level)):
        parts.setdefault(root(j), ([], []))[1].append(wall)
    return [part for part in parts.values() if all(part)]


def _grid(level: Sequence[_StraightLine], upright: Sequence[_StraightLine]) -> RuledGrid | None:
    """The cells between rules that touch each other."""
    lefts = _edges([wall.at for wall in upright], level)
    tops = _edges([rule.at for rule in level], upright)[::-1]
    if len(lefts) < 2 or len(tops) < 2:  # noqa: PLR2004 — two edges are one column
        return None
    walls = _Walls(lefts, tops, level, upright)
    cells = sorted(cell for group in walls.groups() for cell in _rectangles(group))
    return RuledGrid(
        tuple(lefts), tuple(tops), tuple(cell for cell in cells if walls.is_closed(cell))
    )


def _edges(positions: Iterable[float], crossing: Iterable[_StraightLine]) -> list[float]:
    """The rules, and the outermost ends of those that cross them: the sides may be open."""
    ends = [end for line in crossing for end in (line.start, line.end)]
    edges: list[float] = []
    for position in sorted(positions):
        if not edges or position - edges[-1] > _SNAP:
            edges.append(position)
    for end in (min(ends), max(ends)):
        if all(abs(end - edge) > _TOUCH + 1 for edge in edges):
            edges.append(end)
    return sorted(edges)


class _Walls:
    """Which sides of the smallest cells have a wall."""

    def __init__(
        self,
        lefts: Sequence[float],
        tops: Sequence[float],
        level: Iterable[_StraightLine],
        upright: Iterable[_StraightLine],
    ) -> None:
        self._rows, self._columns = len(tops) - 1, len(lefts) - 1
        bottoms = tops[::-1]
        self._above = [[False] * self._columns for _ in tops]
        for rule in level:
            row = self._above[_nearest(tops, rule.at)]
            for at, covered in enumerate(_covers(rule, lefts)):
                row[at] = row[at] or covered
        self._before = [[False] * self._rows for _ in lefts]
        for wall in upright:
            column = self._before[_nearest(lefts, wall.at)]
            for at, covered in enumerate(_covers(wall, bottoms)):
                column[-1 - at] = column[-1 - at] or covered

    def groups(self) -> Iterable[set[tuple[int, int]]]:
        """Positions without a wall between them."""
        visited: set[tuple[int, int]] = set()
        for start in (
            (row, column) for row in range(self._rows) for column in range(self._columns)
        ):
            if start in visited:
                continue
            group = {start}
            waiting = [start]
            while waiting:
                for position in self._open_sides(*waiting.pop()):
                    if position not in group:
                        group.add(position)
                        waiting.append(position)
            visited |= group
            yield group

    def _open_sides(self, row: int, column: int) -> Iterable[tuple[int, int]]:
        if row and not self._above[row][column]:
            yield row - 1, column
        if row + 1 < self._rows and not self._above[row + 1][column]:
            yield row + 1, column
        if column and not self._before[column][row]:
            yield row, column - 1
        if column + 1 < self._columns and not self._before[column + 1][row]:
            yield row, column + 1

    def is_closed(self, cell: GridCell) -> bool:
        """A cell needs walls on two opposite sides at least: the outer sides may be open."""
        rows = range(cell.row, cell.row + cell.rows)
        columns = range(cell.column, cell.column + cell.columns)
        level = all(
            self._above[row][column] for row in (rows.start, rows.stop) for column in columns
        )
        upright = all(
            self._before[column][row] for column in (columns.start, columns.stop) for row in rows
        )
        if level and upright:
            return True
        at_side = rows.start == 0 or rows.stop == self._rows
        at_end = columns.start == 0 or columns.stop == self._columns
        return (level and at_end) or (upright and at_side) or not (at_side or at_end)


def _nearest(edges: Sequence[float], position: float) -> int:
    return min(range(len(edges)), key=lambda at: abs(edges[at] - position))


def _covers(line: _StraightLine, edges: Sequence[float]) -> Iterable[bool]:
    """For each edge, if the line covers most of the way to the next."""
    for start, end in pairwise(edges):
        yield min(end, line.end) - max(start, line.start) >= _COVERED * (end - start)


def _rectangles(positions: set[tuple[int, int]]) -> list[GridCell]:
    """One cell; if the positions make no rectangle, a cell for each run of similar rows."""
    cells: list[GridCell] = []
    for row in sorted({row for row, _ in positions}):
        columns = sorted(column for at, column in positions if at == row)
        first = columns[0]
        for column, after in zip(columns, [*columns[1:], -1], strict=True):
            if after == column + 1:
                continue
            width = column - first + 1
            above = next(
                (
                    at
                    for at, cell in enumerate(cells)
                    if (cell.column, cell.columns, cell.row + cell.rows) == (first, width, row)
                ),
                None,
            )
            if above is None:
                cells.append(GridCell(row, first, 1, width))
            else:
                cells[above] = cells[above]._replace(rows=cells[above].rows + 1)
            first = after
    return cells

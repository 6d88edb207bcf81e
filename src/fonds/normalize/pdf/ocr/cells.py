"""Cells of the tables that are ruled in a picture."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import Final, NamedTuple

from fonds.normalize.pdf.ocr.picture import Box

_TOUCH: Final = 12
"""Scanned lines end this far from each other, in pixels at 300 dots an inch."""
_SAME: Final = 14
_WALL: Final = 0.6


class RuledCell(NamedTuple):
    """A cell, which may be merged of several, within its table."""

    row: int
    column: int
    box: Box


class RuledTable(NamedTuple):
    """A table with at least two rows or columns."""

    box: Box
    rows: int
    columns: int
    cells: list[RuledCell]
    rules: list[Box]


def ruled_tables(flat: Sequence[Box], upright: Sequence[Box]) -> list[RuledTable]:
    """The tables of connected lines, from the top."""
    tables = [
        table
        for lines in _connected(flat, upright)
        if (table := _table(*lines)) is not None and len(table.cells) > 1
    ]
    return sorted(tables, key=lambda table: table.box.y0)


def _connected(
    flat: Sequence[Box], upright: Sequence[Box]
) -> Iterable[tuple[list[Box], list[Box]]]:
    """Groups of horizontal and vertical lines that meet."""
    meeting = (
        (at, len(flat) + side)
        for at, side in product(range(len(flat)), range(len(upright)))
        if _meet(flat[at], upright[side])
    )
    for members in _groups(len(flat) + len(upright), meeting):
        yield (
            [flat[at] for at in members if at < len(flat)],
            [upright[at - len(flat)] for at in members if at >= len(flat)],
        )


def _meet(one: Box, other: Box) -> bool:
    across = one.x0 - _TOUCH <= other.x1 and other.x0 <= one.x1 + _TOUCH
    return across and one.y0 - _TOUCH <= other.y1 and other.y0 <= one.y1 + _TOUCH


def _table(flat: Sequence[Box], upright: Sequence[Box]) -> RuledTable | None:
    xs = _positions((rule.x0 + rule.x1) // 2 for rule in upright)
    ys = _positions((rule.y0 + rule.y1) // 2 for rule in flat)
    if len(xs) < 2 or len(ys) < 2:  # noqa: PLR2004 — two sides
        return None
    columns, rows = len(xs) - 1, len(ys) - 1
    cells = []
    for members in _merged(columns, rows, _walls(upright, xs, ys), _walls(_flipped(flat), ys, xs)):
        top, bottom = members[0][0], members[-1][0]
        left, right = min(c for _, c in members), max(c for _, c in members)
        cells.append(RuledCell(top, left, Box(xs[left], ys[top], xs[right + 1], ys[bottom + 1])))
    cells.sort()
    return RuledTable(Box(xs[0], ys[0], xs[-1], ys[-1]), rows, columns, cells, [*flat, *upright])


def _merged(
    columns: int, rows: int, walls: set[tuple[int, int]], floors: set[tuple[int, int]]
) -> Iterable[list[tuple[int, int]]]:
    """Rows and columns of what makes up each cell; what no line parts from the outside is none."""
    outside = rows * columns
    pairs = []
    for row, column in product(range(rows), range(columns + 1)):
        if (column, row) not in walls:
            left = row * columns + column - 1 if column else outside
            pairs.append((left, row * columns + column if column < columns else outside))
    for row, column in product(range(rows + 1), range(columns)):
        if (row, column) not in floors:
            above = (row - 1) * columns + column if row else outside
            pairs.append((above, row * columns + column if row < rows else outside))
    for members in _groups(outside + 1, pairs):
        if outside not in members:
            yield [divmod(member, columns) for member in members]


def _flipped(boxes: Iterable[Box]) -> list[Box]:
    return [Box(y0, x0, y1, x1) for x0, y0, x1, y1 in boxes]


def _positions(middles: Iterable[int]) -> list[int]:
    """The positions of lines, nearly equal ones as one."""
    groups: list[list[int]] = []
    for middle in sorted(middles):
        if groups and middle - groups[-1][-1] <= _SAME:
            groups[-1].append(middle)
        else:
            groups.append([middle])
    return [sum(group) // len(group) for group in groups]


def _walls(upright: Iterable[Box], xs: Sequence[int], ys: Sequence[int]) -> set[tuple[int, int]]:
    """The sides of cells that are drawn, by the number of the line and of the cell along it."""
    covered: dict[tuple[int, int], int] = {}
    for rule in upright:
        middle = (rule.x0 + rule.x1) // 2
        at = min(range(len(xs)), key=lambda at: abs(xs[at] - middle))
        first = max(bisect_left(ys, rule.y0) - 1, 0)
        for row, (top, bottom) in enumerate(pairwise(ys[first:]), first):
            if top > rule.y1:
                break
            shared = min(rule.y1, bottom) - max(rule.y0, top)
            covered[at, row] = covered.get((at, row), 0) + max(shared, 0)
    return {
        (at, row)
        for (at, row), length in covered.items()
        if length > _WALL * (ys[row + 1] - ys[row])
    }


def _groups(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The numbers below a count, in groups of those that are paired."""
    parents = list(range(count))

    def root(at: int) -> int:
        while parents[at] != at:
            parents[at] = parents[parents[at]]
            at = parents[at]
        return at

    for one, other in pairs:
        parents[root(one)] = root(other)
    groups: dict[int, list[int]] = {}
    for at in range(count):
        groups.setdefault(root(at), []).append(at)
    return list(groups.values())

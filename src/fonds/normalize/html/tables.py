"""Which HTML tables are tables, and where their cells stand once spans are counted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

_GROUPS: Final = frozenset({"thead", "tbody", "tfoot"})
_SILENT: Final = frozenset({"col", "colgroup"})
# What a line of Markdown cannot hold: such a table is written as the blocks it arranges.
_ARRANGED: Final = ("table", "pre", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "form")
_MOST_COLUMNS: Final = 200
_MOST_CELLS: Final = 200_000
_LONG_CELL: Final = 1_500
_MANY_BLOCKS: Final = 3


@dataclass(slots=True)
class Grid:
    """Where empty cells go, so that every cell stands in its own column."""

    columns: int = 0
    before: dict[Any, int] = field(default_factory=dict)
    """Empty cells before a cell: rows above reach down there."""
    after: dict[Any, int] = field(default_factory=dict)
    """Empty cells behind a cell that spans columns."""
    at_end: dict[Any, int] = field(default_factory=dict)
    """Empty cells that fill up a row."""
    spans: bool = False


def grid_of(table: Any) -> Grid | None:
    """The grid of a table of data; None for one that only arranges the page."""
    if table.get("role") in {"presentation", "none"}:
        return None
    if next(table.iterdescendants(*_ARRANGED), None) is not None:
        return None
    rows = _rows(table)
    return None if rows is None else _laid_out(rows)


def _rows(table: Any) -> list[Any] | None:
    rows: list[Any] = []
    if _stray(table):
        return None
    for child in table:
        if child.tag == "tr":
            rows.append(child)
        elif child.tag in _GROUPS:
            if _stray(child) or any(row.tag != "tr" for row in child):
                return None
            rows.extend(child)
        elif child.tag not in _SILENT and not (child.tag == "caption" and not rows):
            return None
    return rows


def _stray(element: Any) -> bool:
    return bool((element.text or "").strip()) or any(
        (child.tail or "").strip() for child in element
    )


def _laid_out(rows: list[Any]) -> Grid | None:
    grid = Grid()
    reaching: dict[int, int] = {}
    ends: list[int] = []
    for number, row in enumerate(rows):
        if _stray(row) or any(cell.tag not in {"td", "th"} or _long(cell) for cell in row):
            return None
        ends.append(_row(grid, row, reaching, len(rows) - number))
        grid.columns = max(grid.columns, ends[-1])
        if grid.columns > _MOST_COLUMNS or grid.columns * len(rows) > _MOST_CELLS:
            return None
    for row, end in zip(rows, ends, strict=True):
        grid.at_end[row] = grid.columns - end
    return grid if grid.columns > 1 else None


def _row(grid: Grid, row: Any, reaching: dict[int, int], rows_left: int) -> int:
    """Place one row; `reaching` says for how many more rows a column is taken from above."""
    taken = {column for column, rows in reaching.items() if rows > 0}
    for column in taken:
        reaching[column] -= 1
    column = 0
    for cell in row:
        free = column
        while free in taken:
            free += 1
        wide, high = _span(cell, "colspan"), min(_span(cell, "rowspan") or rows_left, rows_left)
        wide = min(max(wide, 1), _MOST_COLUMNS)
        grid.before[cell], grid.after[cell] = free - column, wide - 1
        grid.spans = grid.spans or wide > 1 or high > 1
        column = free + wide
        if high > 1:
            reaching.update(dict.fromkeys(range(free, column), high - 1))
    return column


def _span(cell: Any, name: str) -> int:
    value = cell.get(name)
    match = re.match(r"\s*(\d{1,5})", value) if value else None
    return int(match[1]) if match else 1


def _long(cell: Any) -> bool:
    return len(cell) > _MANY_BLOCKS and sum(map(len, cell.itertext())) > _LONG_CELL

"""XHTML tables inside other XML, read as a grid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

# A span beyond any real table would only be there to exhaust the memory.
_WIDEST: Final = 100
_CELLS: Final = frozenset({"td", "th"})
_SECTIONS: Final = frozenset({"thead", "tbody", "tfoot"})
_EMPTY: Final = frozenset({"colgroup", "col"})


@dataclass(kw_only=True, slots=True)
class XhtmlGrid:
    """A table's rows in the order of the file; None is covered by a span."""

    captions: list[Any] = field(default_factory=list)
    """Captions, and leading rows of one cell over the whole width."""
    rows: list[list[Any]] = field(default_factory=list)
    headed: bool = False
    """Whether the first row is a head."""
    spans: bool = False
    """Whether cells reach over others, which Markdown can only show as blanks."""


def local_name(element: Any) -> str:
    """An element's name without its namespace; empty for what is no element."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def read_table(table: Any) -> XhtmlGrid:
    """The grid of a `table` element; every element of it that holds text is in it once."""
    grid = XhtmlGrid()
    covered: dict[int, int] = {}
    heads = 0
    for row, in_head in _rows(table, grid):
        cells = _row(row, covered)
        heads += in_head
        grid.rows.append(cells)
    width = max((len(row) for row in grid.rows), default=0)
    while heads and len(grid.rows) > 1 and _is_title(grid.rows[0], width):
        grid.captions.append(grid.rows.pop(0)[0])
        heads -= 1
    grid.headed = heads > 0
    grid.spans = any(cell is None for row in grid.rows for cell in row)
    return grid


def _rows(table: Any, grid: XhtmlGrid) -> list[tuple[Any, bool]]:
    rows: list[tuple[Any, bool]] = []
    for child in table:
        name = local_name(child)
        if name in _SECTIONS:
            rows.extend((row, name == "thead") for row in child)
        elif name == "caption":
            grid.captions.append(child)
        elif name and name not in _EMPTY:
            rows.append((child, False))
    return rows


def _row(row: Any, covered: dict[int, int]) -> list[Any]:
    if local_name(row) != "tr":
        return [row]
    cells: list[Any] = []
    for cell in row:
        if covered:
            _skip(cells, covered)
        cells.append(cell)
        if local_name(cell) not in _CELLS:
            continue
        across, down = _span(cell, "colspan"), _span(cell, "rowspan")
        start = len(cells) - 1
        cells.extend([None] * (across - 1))
        if down > 1:
            covered.update(dict.fromkeys(range(start, start + across), down - 1))
    _skip(cells, covered)
    return cells


def _skip(cells: list[Any], covered: dict[int, int]) -> None:
    while left := covered.get(len(cells), 0):
        covered[len(cells)] = left - 1
        cells.append(None)


def _is_title(row: list[Any], width: int) -> bool:
    return (
        width > 1
        and len(row) in {1, width}
        and row[0] is not None
        and not any(cell is not None for cell in row[1:])
    )


def _span(cell: Any, name: str) -> int:
    value = cell.get(name)
    if value is None:
        return 1
    value = value.strip()
    return max(1, min(int(value[:4]), _WIDEST)) if value.isascii() and value.isdigit() else 1

"""The tables eCFR writes in the manner of HTML, read as a grid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fonds.errors import MalformedError
from fonds.normalize.ecfr.vocabulary import known

_WIDEST: Final = 1000
_SPAN: Final = re.compile(r"\s*0*([1-9][0-9]{0,3})\s*", re.ASCII)
_GROUPS: Final = frozenset({"THEAD", "TBODY", "TFOOT"})
_CONTAINERS: Final = _GROUPS | {"TR", "BOXHD", "ROW"}


@dataclass(slots=True)
class HtmlGrid:
    """A table as rows of cells; None is covered by a cell to the left or above."""

    captions: list[Any] = field(default_factory=list)
    rows: list[list[Any | None]] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)
    has_head: bool = False
    """Whether the first row is one of column heads."""
    has_spans: bool = False

    @property
    def columns(self) -> int:
        """The width of the widest row."""
        return max([1, *map(len, self.rows)])


def read_html_table(table: Any) -> HtmlGrid:
    """The grid of a `TABLE` element; every element of it that holds text is in it once."""
    grid = HtmlGrid()
    hanging: dict[int, int] = {}
    for row in _rows(table, grid):
        cells = list(row.iterchildren("*"))
        if not cells:
            continue
        if not grid.rows:
            grid.has_head = _is_head(row, cells)
        grid.rows.append(_placed(cells, hanging))
        grid.has_spans = grid.has_spans or None in grid.rows[-1] or bool(hanging)
    return grid


def stray_text(table: Any) -> str:
    """Text that stands between a table's cells, where none belongs."""
    pieces = []
    containers = [table]
    for container in containers:
        pieces.append(container.text)
        for child in container.iterchildren("*"):
            pieces.append(child.tail)
            if known(child.tag) in _CONTAINERS:
                containers.append(child)
    return " ".join(piece for piece in pieces if piece and not piece.isspace())


def _rows(table: Any, grid: HtmlGrid) -> Iterator[Any]:
    for child in table.iterchildren("*"):
        tag = known(child.tag)
        if tag in _GROUPS:
            yield from child.iterchildren("*")
        elif tag == "TR":
            yield child
        elif tag == "CAPTION":
            grid.captions.append(child)
        else:
            grid.notes.append(child)


def _is_head(row: Any, cells: list[Any]) -> bool:
    return known(row.getparent().tag) == "THEAD" or all(known(cell.tag) == "TH" for cell in cells)


def _placed(cells: list[Any], hanging: dict[int, int]) -> list[Any | None]:
    """The row, with room left for cells of former rows that reach down into it."""
    row: list[Any | None] = []
    begun: dict[int, int] = {}
    for cell in cells:
        while len(row) in hanging:
            row.append(None)
        width, height = _span(cell, "colspan"), _span(cell, "rowspan")
        if len(row) + width > _WIDEST:
            raise MalformedError(f"a table row has more than {_WIDEST} columns")
        if height > 1:
            begun.update(dict.fromkeys(range(len(row), len(row) + width), height - 1))
        row.extend([cell, *[None] * (width - 1)])
    for column in list(hanging):
        hanging[column] -= 1
        if not hanging[column]:
            del hanging[column]
    hanging.update(begun)
    return row


def _span(cell: Any, name: str) -> int:
    match = _SPAN.fullmatch(cell.get(name) or cell.get(name.upper()) or "")
    return int(match[1]) if match else 1

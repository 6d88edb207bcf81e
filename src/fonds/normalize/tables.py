"""Tables of publishers' XML as grids, and grids as pipe tables of Markdown.

Three table models are read: the CALS model of bills and German laws, the Government Publishing
Office's typesetting tables, and tables like HTML's. In a grid each element with text is in one
cell. A cell is a tuple of elements: none where another cell covers it, several where they follow
each other, as the heads above a column do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from lxml import etree

from fonds.normalize.markdown import MarkdownWriter

# Beyond any real table; wider spans would only be there to exhaust the memory.
MAX_COLUMNS: Final = 100
MAX_ROW_SPAN: Final = 2000
MAX_FILLED_CELLS: Final = 100_000
"""Cells of a table whose short rows are filled up with blanks."""

Cell = tuple[Any, ...]


class GridRow(NamedTuple):
    """The cells of one row, and the page marks in front of it."""

    cells: Sequence[Cell]
    pages: Sequence[Any] = ()


@dataclass(kw_only=True, slots=True)
class Grid:
    """A table: its cells in rows and columns, and the elements above and below them."""

    captions: list[Any] = field(default_factory=list)
    head: Sequence[Cell] = ()
    """The first row of the head; empty if there is none."""
    rows: list[GridRow] = field(default_factory=list)
    """All other rows, in the file's order."""
    notes: list[Any] = field(default_factory=list)
    has_spans: bool = False
    """Whether a cell reaches over others, which a pipe table can only show as blanks."""

    @property
    def columns(self) -> int:
        """The width of the widest row."""
        return max(1, len(self.head), *(len(row.cells) for row in self.rows))


def write_table(
    out: MarkdownWriter,
    grid: Grid,
    write: Callable[[Any], None],
    *,
    source: Any = None,
    page: Callable[[Any], None] | None = None,
    fills: bool = True,
) -> None:
    """Write a grid as a pipe table into the open block, and end it.

    `write` is called with each element of a cell, `page` with each page mark. If cells span others,
    `source` is stored as an artifact. Short rows are filled up with blanks unless `fills` is false.
    """
    columns = grid.columns
    if source is not None and grid.has_spans:
        out.artifact("table", etree.tostring(source, encoding="unicode", with_tail=False))
    out.in_table = True
    out.row(grid.head, columns, write)
    out.line()
    out.markup("|" + " --- |" * columns)
    # Renderers fill up short rows themselves.
    width = columns if fills and len(grid.rows) * columns <= MAX_FILLED_CELLS else 0
    for row in grid.rows:
        if page is not None:
            for mark in row.pages:
                page(mark)
        out.line()
        out.row(row.cells, width, write)
    out.in_table = False
    out.end()


def texts_between_cells(frames: Iterable[Any]) -> list[str]:
    """Text in tables, groups and rows that is in none of their cells."""
    return [
        text
        for frame in frames
        for text in (frame.text, *(child.tail for child in frame))
        if text and not text.isspace()
    ]


# Cells in their columns -------------------------------------------------------------------


class CellSpan(NamedTuple):
    """Extent of a cell in columns and rows, and the first column at which it may be."""

    across: int = 1
    down: int = 1
    start: int = 0


ONE_CELL: Final = CellSpan()


def arrange_cells(
    rows: Iterable[Iterable[Any]], span_of: Callable[[Any], CellSpan]
) -> tuple[list[list[Cell]], bool]:
    """Rows of cells, blanks included that other cells cover; and whether any cell spans others."""
    arranged: list[list[Cell]] = []
    rows_left: dict[int, int] = {}
    has_spans = False
    for elements in rows:
        covered = {column for column, left in rows_left.items() if left}
        for column in covered:
            rows_left[column] -= 1
        cells: list[Cell] = []
        for element in elements:
            across, down, start = span_of(element)
            while len(cells) < start or len(cells) in covered:
                cells.append(())
            cells.append((element,))
            if across > 1 or down > 1:
                has_spans = True
                across = max(1, min(across, MAX_COLUMNS - len(cells)))
                columns = range(len(cells) - 1, len(cells) - 1 + across)
                rows_left.update(dict.fromkeys(columns, min(down, MAX_ROW_SPAN) - 1))
                cells.extend([()] * (across - 1))
        arranged.append(cells)
    return arranged, has_spans


# Tables like HTML's -----------------------------------------------------------------------

_CELLS: Final = frozenset({"td", "th"})
_SECTIONS: Final = frozenset({"thead", "tbody", "tfoot"})
_WITHOUT_TEXT: Final = frozenset({"colgroup", "col"})


def local_name(element: Any) -> str:
    """An element's name without its namespace; empty for comments and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def html_span(cell: Any) -> CellSpan:
    """The extent that `colspan` and `rowspan` state."""
    # eCFR writes `COLSPAN` as well.
    across = cell.get("colspan") or cell.get("COLSPAN")
    down = cell.get("rowspan") or cell.get("ROWSPAN")
    if across is None and down is None:
        return ONE_CELL
    return CellSpan(_span(across), _span(down))


def _span(value: str | None) -> int:
    value = (value or "").strip()
    return max(1, int(value[:4])) if value.isascii() and value.isdigit() else 1


def read_xhtml(table: Any) -> Grid:
    """The grid of an XHTML `table` in other XML.

    Leading rows of one cell over the whole width are captions.
    """
    captions: list[Any] = []
    rows: list[Any] = []
    heads = 0
    for child in table:
        name = local_name(child)
        if name in _SECTIONS:
            rows.extend(child)
            heads += len(child) if name == "thead" else 0
        elif name == "caption":
            captions.append(child)
        elif name and name not in _WITHOUT_TEXT:
            rows.append(child)
    arranged, _ = arrange_cells(
        (row if local_name(row) == "tr" else [row] for row in rows),
        lambda cell: html_span(cell) if local_name(cell) in _CELLS else ONE_CELL,
    )
    width = max(map(len, arranged), default=0)
    while heads and len(arranged) > 1 and _is_title(arranged[0], width):
        captions.extend(arranged.pop(0)[0])
        heads -= 1
    has_spans = any(() in row for row in arranged)
    head = arranged.pop(0) if heads and arranged else []
    return Grid(
        captions=captions, head=head, rows=list(map(GridRow, arranged)), has_spans=has_spans
    )


def _is_title(row: list[Cell], width: int) -> bool:
    return width > 1 and len(row) in {1, width} and bool(row[0]) and not any(row[1:])


# The CALS model ---------------------------------------------------------------------------

_CALS_PARTS: Final = frozenset({"colspec", "thead", "tbody", "tfoot", "row"})


def is_cals_grid(tgroup: Any) -> bool:
    """Whether a `tgroup` has rows only: no other element, and no text beside its cells."""
    if any(child.tag not in _CALS_PARTS for child in tgroup.iterchildren("*")):
        return False
    frames = [tgroup, *tgroup.iterchildren("thead", "tbody", "tfoot"), *_cals_rows(tgroup)]
    return not texts_between_cells(frames)


def read_cals(tgroup: Any) -> Grid:
    """The grid of a `tgroup`."""
    columns = {
        name: index
        for index, spec in enumerate(tgroup.iterchildren("colspec"))
        if (name := spec.get("colname"))
    }

    def span_of(entry: Any) -> CellSpan:
        first, last = entry.get("namest"), entry.get("nameend")
        start = columns.get(first or entry.get("colname") or "", 0)
        across = columns[last] - columns[first] + 1 if {first, last} <= columns.keys() else 1
        below = entry.get("morerows") or ""
        down = int(below[:4]) + 1 if below[:4].isdecimal() else 1
        return CellSpan(across, down, min(start, MAX_COLUMNS))

    arranged, has_spans = arrange_cells(
        (row.iterchildren("*") for row in _cals_rows(tgroup)), span_of
    )
    head = arranged.pop(0) if arranged and tgroup.find("thead/row") is not None else []
    return Grid(head=head, rows=list(map(GridRow, arranged)), has_spans=has_spans)


def _cals_rows(tgroup: Any) -> Iterator[Any]:
    for part in tgroup.iterchildren("*"):
        if part.tag == "row":
            yield part
        else:
            yield from part.iterchildren("row")


# The Government Publishing Office's tables ------------------------------------------------

_MAX_HEADS_ABOVE: Final = 8
_NUMBER: Final = re.compile(r"\d+")
_GPO_CAPTIONS: Final = frozenset({"TTITLE", "TDESC"})


def read_gpo(table: Any) -> Grid:
    """The grid of a `GPOTABLE`; a column's head is the path of heads above it, outermost first."""
    grid = Grid()
    heads: list[Cell] = []
    is_above = True
    for child in table.iterchildren("*"):
        if child.tag == "BOXHD":
            heads.extend(_column_heads(child))
            is_above = False
        elif child.tag == "ROW":
            grid.rows.append(_gpo_row(child))
            is_above = False
        elif child.tag in _GPO_CAPTIONS or is_above:
            grid.captions.append(child)
        else:
            grid.notes.append(child)
    grid.head = heads
    grid.has_spans = any(len(path) > 1 for path in heads) or any(
        () in row.cells for row in grid.rows
    )
    return grid


def _column_heads(box: Any) -> Iterator[Cell]:
    # A head belongs to the nearest one before it with a smaller number: H="2" under H="1".
    heads = [(_first_number(head.get("H"), default=1), head) for head in box.iterchildren("*")]
    above: list[tuple[int, Any]] = []
    unwritten = 0
    for index, (level, head) in enumerate(heads):
        while above and above[-1][0] >= level:
            above.pop()
        above.append((level, head))
        unwritten += 1
        if index + 1 == len(heads) or heads[index + 1][0] <= level:
            # No head is left out, but not every one is repeated above every column below it.
            yield tuple(element for _, element in above[-max(unwritten, _MAX_HEADS_ABOVE) :])
            unwritten = 0


def _gpo_row(row: Any) -> GridRow:
    pages: list[Any] = []
    cells: list[Cell] = []
    for child in row.iterchildren("*"):
        if child.tag == "PRTPAGE":
            pages.append(child)
            continue
        # A="01" lets a cell reach over one more column; letters in it only align. EXPSTB does so
        # for the first cell.
        covered = child.get("A") if cells else row.get("EXPSTB")
        cells.append((child,))
        cells.extend([()] * min(_first_number(covered, default=0), MAX_COLUMNS))
    while cells and not cells[-1]:
        cells.pop()
    return GridRow(cells, pages)


def _first_number(value: str | None, *, default: int) -> int:
    match = _NUMBER.search(value or "")
    return int(match[0][:4]) if match else default

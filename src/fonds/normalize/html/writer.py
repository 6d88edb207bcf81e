"""Markdown for HTML: line breaks, cells, list labels as a browser displays them, and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from fonds.normalize.markdown import MarkdownWriter

_TICKS: Final = re.compile("`+")
_MAX_DEPTH: Final = 12
"""Deeper lists and quotations are written at this depth: every line repeats its prefixes."""


class HtmlWriter(MarkdownWriter):
    """A writer for text that comes as a browser would lay it out."""

    def __init__(self) -> None:
        super().__init__()
        self.in_cell = False
        self.empty = True
        """Nothing is written yet in this block or cell."""
        self.heading = self.in_link = False
        self._breaks = 0
        self._depth = 0

    @property
    def length(self) -> int:
        """The characters that are written so far."""
        return self._length

    def text(self, text: str | None) -> None:
        """Running text, with the breaks that wait before it."""
        if not text:
            return
        if text.isspace():
            self.space()
            return
        if self._breaks:
            self._break_line()
        self.empty = False
        super().text(text)

    def put_markup(self, markup: str) -> None:
        """Markdown of our own, glued to the text before it."""
        if self._breaks:
            self._break_line()
        self.markup(markup)
        self.empty = False

    def br(self) -> None:
        """A line break; two of them end a paragraph."""
        self._breaks += 1

    def block(self) -> None:
        """End the block, or within a cell its line."""
        if self.is_open and not (self._started or self._level or self._run_in or self.in_cell):
            # Several elements begin or end in one place: the block is still without text.
            self._breaks = 0
            self.empty = True
            self._pending_space = False
            return
        self.end_marks()
        if self.in_cell:
            self._breaks = 1
            return
        self._breaks = 0
        self.empty = True
        self.begin()

    def fenced(self, lines: list[str]) -> None:
        """Lines whose breaks and columns matter, kept as they are."""
        max_length = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
        fence = "`" * max(3, max_length + 1)
        self.block()
        self.markup(fence)
        for line in (*lines, fence):
            self.line()
            self.markup(line.rstrip())
        self.block()

    def open_heading(self, level: int, section: str | None) -> None:
        """Start a heading; within a cell it is a line like others."""
        self.block()
        if not self.in_cell:
            self.begin(level=level, section=section)
            self.heading = True

    def close_heading(self) -> None:
        """End a heading."""
        self.heading = False
        self.block()

    def open_indent(self, prefix: str, first: str | None = None) -> str | None:
        """Put a prefix before the blocks to come; returns the argument of `close_indent`."""
        self.block()
        if self.in_cell:
            return None
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            return None
        waiting = self._first_prefix
        outer = self.indent(prefix, first)
        if waiting is not None:
            # An item that begins with a list: both labels are on one line.
            self._first_prefix = waiting + (prefix if first is None else first)
        return outer

    def close_indent(self, outer: str | None) -> None:
        """Restore the previous prefix."""
        self.block()
        if self.in_cell:
            return
        self._depth -= 1
        if outer is not None:
            self.outdent(outer)

    def open_cell(self) -> None:
        """Begin a cell: text is one line, and pipes are escaped."""
        self.cell()
        self.markup(" ")
        self.in_cell = self.in_table = self.empty = True
        self._breaks = 0

    def close_cell(self) -> None:
        """End a cell."""
        self.end_marks()
        self._breaks = 0
        self.markup(" |")
        self.in_cell = self.in_table = False

    def _break_line(self) -> None:
        breaks, self._breaks = self._breaks, 0
        if self.empty:
            return
        if self.heading:
            self.space()
        elif self.in_cell:
            self.markup("<br>")
            self._clear()
        elif breaks > 1:
            self.block()
        else:
            self.markup("\\")
            self.line()


_STYLE: Final = re.compile(r"list-style(?:-type)?\s*:\s*([\w-]+)")
_STYLES: Final = {
    "lower-alpha": "a",
    "lower-latin": "a",
    "upper-alpha": "A",
    "upper-latin": "A",
    "lower-roman": "i",
    "upper-roman": "I",
    "decimal": "1",
    "none": "",
}
_KINDS: Final = frozenset("aAiI1")
_ROMAN: Final = (
    (1000, "m"),
    (900, "cm"),
    (500, "d"),
    (400, "cd"),
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
    (10, "x"),
    (9, "ix"),
    (5, "v"),
    (4, "iv"),
    (1, "i"),
)
_ROMAN_LIMIT: Final = 4000
_NEAR: Final = 5


class ListNumbering:
    """Counts the items of one `ol`."""

    def __init__(self, element: Any) -> None:
        self._kind = _kind(element, "1")
        self._step = -1 if element.get("reversed") is not None else 1
        first = len(element.findall("li")) if self._step < 0 else 1
        start = _number(element.get("start"))
        self._next = first if start is None else start
        self._expected: int | None = None

    def label(self, item: Any) -> tuple[str, bool]:
        """The item's label, and whether a renderer that counts would arrive at it too."""
        value = _number(item.get("value"))
        number = self._next if value is None else value
        self._next = number + self._step
        kind = _kind(item, self._kind)
        counted = kind == "1" and number >= 0 and self._expected in (None, number)
        self._expected = number + 1
        return (f"{_formatted(number, kind)}." if kind else ""), counted


def own_label(item: Any, label: str) -> bool:
    """Whether the item's text already begins with its label: `(a) …` as item `a.`."""
    bare = re.escape(label.rstrip("."))
    start = _first_text(item)
    return re.match(rf"\(?{bare}[.)]", start, re.IGNORECASE) is not None


def _first_text(item: Any) -> str:
    for _ in range(_NEAR):
        text = (item.text or "").strip()
        if text or not len(item):
            return str(text[:16])
        item = item[0]
    return ""


def _kind(element: Any, default: str) -> str:
    if (kind := element.get("type")) in _KINDS:
        return str(kind)
    style = _STYLE.search(element.get("style") or "")
    return _STYLES.get(style[1], default) if style else default


def _number(value: str | None) -> int | None:
    match = re.match(r"\s*([+-]?\d{1,9})(?!\d)", value or "")
    return int(match[1]) if match else None


def _formatted(number: int, kind: str) -> str:
    if kind == "1" or number < 1:
        return str(number)
    if kind in "iI":
        text = _roman(number) if number < _ROMAN_LIMIT else str(number)
    else:
        text = _alphabetic(number)
    return text.upper() if kind.isupper() else text


def _alphabetic(number: int) -> str:
    letters = ""
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def _roman(number: int) -> str:
    text = ""
    for value, sign in _ROMAN:
        count, number = divmod(number, value)
        text += sign * count
    return text


_GROUPS: Final = frozenset({"thead", "tbody", "tfoot"})
_SILENT: Final = frozenset({"col", "colgroup"})
# What a line of Markdown cannot hold: such a table is written as the blocks it arranges.
_ARRANGED: Final = ("table", "pre", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "form")
_MAX_COLUMNS: Final = 200
_MAX_CELLS: Final = 200_000
_LONG_CELL: Final = 1_500
_MANY_BLOCKS: Final = 3


@dataclass(slots=True)
class CellGrid:
    """The empty cells that keep each cell of a table in its own column."""

    columns: int = 0
    before: dict[Any, int] = field(default_factory=dict)
    """Empty cells before a cell: rows above reach down there."""
    after: dict[Any, int] = field(default_factory=dict)
    """Empty cells behind a cell that spans columns."""
    at_end: dict[Any, int] = field(default_factory=dict)
    """Empty cells that fill up a row."""
    spans: bool = False


def grid_of(table: Any) -> CellGrid | None:
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


def _laid_out(rows: list[Any]) -> CellGrid | None:
    grid = CellGrid()
    reaching: dict[int, int] = {}
    ends: list[int] = []
    for number, row in enumerate(rows):
        if _stray(row) or any(cell.tag not in {"td", "th"} or _long(cell) for cell in row):
            return None
        ends.append(_row(grid, row, reaching, len(rows) - number))
        grid.columns = max(grid.columns, ends[-1])
        if grid.columns > _MAX_COLUMNS or grid.columns * len(rows) > _MAX_CELLS:
            return None
    for row, end in zip(rows, ends, strict=True):
        grid.at_end[row] = grid.columns - end
    return grid if grid.columns > 1 else None


def _row(grid: CellGrid, row: Any, reaching: dict[int, int], rows_left: int) -> int:
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
        wide = min(max(wide, 1), _MAX_COLUMNS)
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

"""Tables of the CALS model, as bills and German laws have them: columns by name, and spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from lxml import etree

# Beyond any real table; a larger span would only be there to exhaust the memory.
_WIDEST: Final = 100
_TALLEST: Final = 1000
_PARTS: Final = frozenset({"colspec", "thead", "tbody", "tfoot", "row"})


@dataclass(frozen=True, kw_only=True, slots=True)
class CalsRows:
    """A table's rows, head first; None in a row is covered by a span or left out."""

    head: tuple[Any | None, ...]
    """The first row of the head; empty when there is none."""
    body: tuple[tuple[Any | None, ...], ...]
    """All other rows, in the file's order."""
    columns: int
    spanned: bool
    """Whether a cell reaches over others, which a pipe table cannot say."""


class CalsTableWriter(Protocol):
    """What a table is written to: a block of Markdown that is open."""

    in_table: bool

    def artifact(self, kind: str, content: str) -> None:
        """Keep beside the text what Markdown cannot say."""
        ...

    def markup(self, markup: str) -> None:
        """Write signs of Markdown."""
        ...

    def line(self) -> None:
        """Begin the next row."""
        ...

    def cell(self) -> None:
        """Begin or end a cell."""
        ...

    def end_marks(self) -> None:
        """Close what is emphasized."""
        ...

    def end(self) -> None:
        """End the block."""
        ...


def write_rows(
    out: CalsTableWriter, rows: CalsRows, tgroup: Any, flow: Callable[[Any], None]
) -> None:
    """The rows as a pipe table; `flow` writes the inside of a cell."""
    if rows.spanned:
        out.artifact("table", etree.tostring(tgroup, encoding="unicode", with_tail=False))
    out.in_table = True
    _write_cells(out, (*rows.head, *[None] * (rows.columns - len(rows.head))), flow)
    out.line()
    out.markup("|" + " --- |" * rows.columns)
    for row in rows.body:
        out.line()
        _write_cells(out, row, flow)
    out.in_table = False
    out.end()


def _write_cells(
    out: CalsTableWriter, cells: tuple[Any | None, ...], flow: Callable[[Any], None]
) -> None:
    out.markup("|")
    for cell in cells:
        out.cell()
        out.markup(" ")
        if cell is not None:
            flow(cell)
            out.end_marks()
        out.cell()
        out.markup(" |")


def has_loose_text(tgroup: Any) -> bool:
    """Whether text stands beside the cells, where no row could hold it."""
    frames = [tgroup, *tgroup.iterchildren("thead", "tbody", "tfoot"), *_rows(tgroup)]
    return any(
        text and not text.isspace()
        for frame in frames
        for text in (frame.text, *(child.tail for child in frame.iterchildren("*")))
    ) or any(child.tag not in _PARTS for frame in frames[:1] for child in frame.iterchildren("*"))


def read_rows(tgroup: Any) -> CalsRows:
    """The rows of a `tgroup`; every entry of it is in them once."""
    columns = {
        name: index
        for index, spec in enumerate(tgroup.iterchildren("colspec"))
        if (name := spec.get("colname"))
    }
    placed: list[tuple[Any | None, ...]] = []
    hanging: dict[int, int] = {}
    spanned = False
    for row in _rows(tgroup):
        cells, reaches = _place(row, columns, hanging)
        spanned = spanned or reaches
        placed.append(cells)
    headed = bool(placed) and tgroup.find("thead/row") is not None
    return CalsRows(
        head=placed[0] if headed else (),
        body=tuple(placed[1:] if headed else placed),
        columns=max([1, *map(len, placed)]),
        spanned=spanned,
    )


def _rows(tgroup: Any) -> Iterator[Any]:
    for part in tgroup.iterchildren("*"):
        if part.tag == "row":
            yield part
        else:
            yield from part.iterchildren("row")


def _place(
    row: Any, columns: dict[str, int], hanging: dict[int, int]
) -> tuple[tuple[Any | None, ...], bool]:
    covered = {column for column, left in hanging.items() if left > 0}
    for column in covered:
        hanging[column] -= 1
    cells: list[Any | None] = []
    reaches = False
    for entry in row.iterchildren("*"):
        start = columns.get(entry.get("namest") or entry.get("colname") or "", len(cells))
        while len(cells) < min(start, _WIDEST) or len(cells) in covered:
            cells.append(None)
        across = _across(entry, columns) if len(cells) < _WIDEST else 1
        down = _number(entry.get("morerows"))
        for column in range(len(cells), min(len(cells) + across, _WIDEST)):
            hanging[column] = down
        reaches = reaches or across > 1 or down > 0
        cells.extend([entry, *[None] * (across - 1)])
    return tuple(cells), reaches


def _across(entry: Any, columns: dict[str, int]) -> int:
    first, last = entry.get("namest"), entry.get("nameend")
    if first not in columns or last not in columns:
        return 1
    return min(max(columns[last] - columns[first] + 1, 1), _WIDEST)


def _number(value: str | None) -> int:
    return min(int(value[:4]), _TALLEST) if value and value[:4].isdecimal() else 0

"""The Government Publishing Office's typesetting tables, read as a grid."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

# A span beyond any real table would only be there to exhaust the memory.
_WIDEST: Final = 100
_DEEPEST: Final = 8
_NUMBER: Final = re.compile(r"\d+")
_CAPTIONS: Final = frozenset({"TTITLE", "TDESC"})


@dataclass(frozen=True, kw_only=True, slots=True)
class GpoRow:
    """One row: the page marks in front of it, and its cells; None is covered by a span."""

    pages: tuple[Any, ...]
    cells: tuple[Any | None, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class GpoGrid:
    """A table with its head flattened: one path of heads, outermost first, for each column."""

    columns: int
    captions: tuple[Any, ...]
    heads: tuple[tuple[Any, ...], ...]
    rows: tuple[GpoRow, ...]
    notes: tuple[Any, ...]
    """Whatever stands below the rows."""


@dataclass(slots=True)
class _Pieces:
    captions: list[Any] = field(default_factory=list)
    boxes: list[Any] = field(default_factory=list)
    rows: list[GpoRow] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)


def read_table(table: Any) -> GpoGrid:
    """The grid of a `GPOTABLE` element; every element of it that holds text is in it once."""
    pieces = _Pieces()
    for child in table.iterchildren("*"):
        _sort(child, pieces)
    heads = [path for box in pieces.boxes for path in _column_heads(box)]
    widths = [len(row.cells) for row in pieces.rows]
    return GpoGrid(
        columns=max([1, len(heads), *widths]),
        captions=tuple(pieces.captions),
        heads=tuple(heads),
        rows=tuple(pieces.rows),
        notes=tuple(pieces.notes),
    )


def _sort(child: Any, pieces: _Pieces) -> None:
    if child.tag == "BOXHD":
        pieces.boxes.append(child)
    elif child.tag == "ROW":
        pieces.rows.append(_row(child))
    elif child.tag in _CAPTIONS or not (pieces.boxes or pieces.rows):
        pieces.captions.append(child)
    else:
        pieces.notes.append(child)


def _column_heads(box: Any) -> list[tuple[Any, ...]]:
    # A head belongs to the nearest one before it with a smaller number: H="2" under H="1".
    heads = [(_level(head), head) for head in box.iterchildren("*")]
    columns = []
    above: list[tuple[int, Any]] = []
    unshown = 0
    for index, (level, head) in enumerate(heads):
        while above and above[-1][0] >= level:
            above.pop()
        above.append((level, head))
        unshown += 1
        last = index + 1 == len(heads)
        if last or heads[index + 1][0] <= level:
            # No head is left out, but not every one stands above every column below it.
            path = above[-max(unshown, _DEEPEST) :]
            columns.append(tuple(element for _, element in path))
            unshown = 0
    return columns


def _level(head: Any) -> int:
    return _first_number(head.get("H"), default=1)


def _row(row: Any) -> GpoRow:
    stub_span = _first_number(row.get("EXPSTB"), default=0)
    pages: list[Any] = []
    cells: list[Any | None] = []
    for child in row.iterchildren("*"):
        if child.tag == "PRTPAGE":
            pages.append(child)
            continue
        # A="01" lets a cell reach over one more column; letters in it only align.
        covered = _first_number(child.get("A"), default=0) if cells else stub_span
        cells.append(child)
        cells.extend([None] * min(covered, _WIDEST))
    while cells and cells[-1] is None:
        cells.pop()
    return GpoRow(pages=tuple(pages), cells=tuple(cells))


def _first_number(value: str | None, *, default: int) -> int:
    match = _NUMBER.search(value or "")
    return int(match[0][:4]) if match else default

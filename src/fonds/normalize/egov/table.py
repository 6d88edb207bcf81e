"""Tables of the Japanese law schema, read as rows; spans are named as in HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

# Beyond any real table; a larger span would only be there to exhaust the memory.
_WIDEST: Final = 100
_TALLEST: Final = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """A table's rows in the file's order; None in a row is covered by a span."""

    head: tuple[Any | None, ...]
    """The first row, if it is a row of heads; empty when it is not."""
    body: tuple[tuple[Any | None, ...], ...]
    columns: int
    spanned: bool
    """Whether a cell reaches over others, which a pipe table cannot say."""


def read_rows(table: Any) -> Rows:
    """The rows of a `Table`; every cell of it is in them once."""
    hanging: dict[int, int] = {}
    rows = list(table.iterchildren("*"))
    placed = [_place(row, hanging) for row in rows]
    headed = bool(rows) and rows[0].tag == "TableHeaderRow"
    return Rows(
        head=placed[0] if headed else (),
        body=tuple(placed[1:] if headed else placed),
        columns=max([1, *map(len, placed)]),
        spanned=any(cell is None for row in placed for cell in row),
    )


def loose_text(table: Any) -> str:
    """Text beside the cells, where no row could hold it."""
    frames = [table, *table.iterchildren("TableHeaderRow", "TableRow")]
    pieces = [(frame.text, *(child.tail for child in frame)) for frame in frames]
    return " ".join(text.strip() for texts in pieces for text in texts if text and text.strip())


def _place(row: Any, hanging: dict[int, int]) -> tuple[Any | None, ...]:
    if row.tag not in {"TableRow", "TableHeaderRow"}:
        return (row,)
    cells: list[Any | None] = []
    for cell in row.iterchildren("*"):
        _skip(cells, hanging)
        across = min(_number(cell.get("colspan")), _WIDEST)
        down = min(_number(cell.get("rowspan")), _TALLEST)
        if down > 1:
            hanging.update(dict.fromkeys(range(len(cells), len(cells) + across), down - 1))
        cells.extend([cell, *[None] * (across - 1)])
    _skip(cells, hanging)
    return tuple(cells)


def _skip(cells: list[Any | None], hanging: dict[int, int]) -> None:
    while left := hanging.get(len(cells), 0):
        hanging[len(cells)] = left - 1
        cells.append(None)


def _number(value: str | None) -> int:
    value = (value or "").strip()[:4]
    return max(int(value), 1) if value.isascii() and value.isdigit() else 1

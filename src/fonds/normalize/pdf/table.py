"""Tables of a PDF page, kept only where every word of their place is in exactly one cell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_WORDS: Final = re.compile(r"[^\W_]+")
_SLACK: Final = 1.5
# Of a table without rules the reader often finds only two rows: a slice, no table.
_MIN_ROWS: Final = 3
_MIN_COLUMNS: Final = 2

Box = tuple[float, float, float, float, str]


@dataclass(frozen=True, slots=True)
class Table:
    """A grid of cells and its place on the page."""

    x0: float
    y0: float
    x1: float
    y1: float
    rows: tuple[tuple[str, ...], ...]

    def holds(self, x0: float, y0: float, x1: float, y1: float) -> bool:
        """Whether the middle of a run lies within."""
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        return (
            self.x0 - _SLACK <= x <= self.x1 + _SLACK and self.y0 - _SLACK <= y <= self.y1 + _SLACK
        )


def sound_tables(
    found: Iterable[Mapping[str, Any]], boxes: Sequence[Box], origin: tuple[float, float]
) -> list[Table]:
    """Those of the tables found that hold all the text of their place, each word once."""
    tables: list[Table] = []
    for table in found:
        candidate = _table(table, *origin)
        if candidate is not None and _sound(candidate, boxes):
            tables.append(candidate)
    return tables


def _table(found: Mapping[str, Any], left: float, bottom: float) -> Table | None:
    x, y, width, height = found["bbox"]
    x, y = x - left, y - bottom
    rows = [tuple(" ".join(c["text"].split()) for c in row["cells"]) for row in found["rows"]]
    rows = [row for row in rows if any(row)]
    columns = max((len(row) for row in rows), default=0)
    used = [any(column < len(row) and row[column] for row in rows) for column in range(columns)]
    if len(rows) < _MIN_ROWS or sum(used) < _MIN_COLUMNS:
        return None
    grid = tuple(
        tuple(row[i] if i < len(row) else "" for i in range(columns) if used[i]) for row in rows
    )
    return Table(x, y, x + width, y + height, grid)


def _sound(table: Table, boxes: Sequence[Box]) -> bool:
    cells = _letters(cell for row in table.rows for cell in row)
    inside = _letters(box[4] for box in boxes if table.holds(*box[:4]))
    if cells != inside or not cells:
        return False
    spilling = any(
        table.holds(*box[:4]) and (box[0] < table.x0 - 9 or box[2] > table.x1 + 9) for box in boxes
    )
    filled = sum(bool(cell) for row in table.rows for cell in row)
    return not spilling and 2 * filled >= sum(map(len, table.rows))


def _letters(texts: Iterable[str]) -> Counter[str]:
    return Counter("".join("".join(_WORDS.findall(text)) for text in texts))

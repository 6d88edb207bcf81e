"""A line of text, with what tells headings, columns and tables from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

NOTE_OPEN: Final = "\ue000"
NOTE_CLOSE: Final = "\ue001"
"""Around the number of a footnote in a line's text; no reader hands these characters on."""

GridRow = tuple[tuple[str, ...], ...]
"""Cells, each the texts of its lines."""

Grid = tuple[GridRow, ...]


class Piece(NamedTuple):
    """A part of a line that stands apart from the others."""

    x0: float
    x1: float
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a column, with what tells headings from text."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool
    column: int = 0
    """Counts the columns and cells of a page; a new one begins above or beside the last."""
    cells: bool = False
    """Words stand far apart, as in a row of a table."""
    pieces: tuple[Piece, ...] = ()
    """The parts of a line that may be cells; empty where it is one part."""
    table: Grid | None = None


@dataclass(slots=True)
class Block:
    """Lines that belong together; each with the page it stands on."""

    lines: list[tuple[int, Line]] = field(default_factory=list)
    level: int = 0
    """Of a heading; zero is text."""
    section: str | None = None
    note: str | None = None
    """The number of a footnote that begins here."""

    @property
    def text(self) -> str:
        """All its lines, as they are."""
        return " ".join(line.text for _, line in self.lines)

    @property
    def last(self) -> Line:
        """The line a next one would follow."""
        return self.lines[-1][1]

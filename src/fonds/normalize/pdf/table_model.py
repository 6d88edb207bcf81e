"""A table of a PDF: rows and columns, cells that span several of them, and its header."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

_NEAR: Final = 6.0

Texts = tuple[str, ...]
"""The lines of a cell."""


class TableCell(NamedTuple):
    """A cell, by the first row and column it covers; both are counted from zero."""

    row: int
    column: int
    texts: Texts
    rows: int = 1
    columns: int = 1


@dataclass(frozen=True, slots=True)
class PdfTable:
    """Cells of a table, from its header down."""

    cells: tuple[TableCell, ...]
    header_rows: int = 1
    lefts: tuple[float, ...] = ()
    """The left edges of its columns, and the right one of the last."""
    pages: tuple[tuple[int, int], ...] = ()
    """Rows that begin another page, and how many pages it is from the first."""
    caption: str | None = None
    notes: tuple[str, ...] = ()
    """Remarks below it."""

    @property
    def row_count(self) -> int:
        """How many rows it has."""
        return max((cell.row + cell.rows for cell in self.cells), default=0)

    @property
    def column_count(self) -> int:
        """How many columns it has."""
        return max((cell.column + cell.columns for cell in self.cells), default=0)

    @property
    def letters(self) -> int:
        """The number of characters in it."""
        return sum(len(text) for cell in self.cells for text in cell.texts)

    def joined(self, table: PdfTable) -> PdfTable:
        """This table and the one that continues it on the next page."""
        first = self.row_count
        cells = (cell._replace(row=cell.row + first) for cell in table.cells)
        page = self.pages[-1][1] + 1 if self.pages else 1
        return replace(self, cells=(*self.cells, *cells), pages=(*self.pages, (first, page)))

    def is_continued_by(self, table: PdfTable) -> bool:
        """True if the columns of a table on the next page are those of this one."""
        if not self.lefts or len(self.lefts) != len(table.lefts):
            return False
        same_columns = self.column_count == table.column_count
        pairs = zip(self.lefts, table.lefts, strict=True)
        return same_columns and all(abs(one - other) < _NEAR for one, other in pairs)

    def repeated(self) -> list[list[Texts]]:
        """Its rows; a cell that spans several rows or columns is in each of them.

        One that spans all columns says something of the whole row, and is in the first.
        """
        width = self.column_count
        rows: list[list[Texts]] = [[()] * width for _ in range(self.row_count)]
        for cell in self.cells:
            end = cell.column + (cell.columns if cell.columns < width else 1)
            for row in rows[cell.row : cell.row + cell.rows]:
                for column in range(cell.column, end):
                    row[column] = cell.texts
        return rows


def without_blank_rows(cells: Iterable[TableCell]) -> tuple[TableCell, ...]:
    """The cells that have text, without the rows and columns in which none begins."""
    inked = [cell for cell in cells if cell.texts]
    rows = sorted({cell.row for cell in inked})
    columns = sorted({cell.column for cell in inked})
    return tuple(sorted(_moved(cell, rows, columns) for cell in inked))


def _moved(cell: TableCell, rows: Sequence[int], columns: Sequence[int]) -> TableCell:
    """The cell in a table that has only these rows and columns."""
    row, column = bisect_left(rows, cell.row), bisect_left(columns, cell.column)
    end, end_column = cell.row + cell.rows, cell.column + cell.columns
    return TableCell(
        row,
        column,
        cell.texts,
        bisect_left(rows, end) - row,
        bisect_left(columns, end_column) - column,
    )

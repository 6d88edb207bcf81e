"""Tables among the lines of a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fonds.normalize.pdf.aligned_tables import aligned_tables
from fonds.normalize.pdf.layout import lines_of
from fonds.normalize.pdf.page import PdfBlock, PdfLine, PdfPage, TextRun
from fonds.normalize.pdf.ruled_tables import PageTable, ruled_table

_FIRST_MARK: Final = 0xE400
_MARK: Final = re.compile("([\ue400-\ue7ff])")
_MAX_TABLES: Final = 1_000


def with_tables(
    page: PdfPage, lines: Sequence[PdfLine], stripped: Sequence[PdfLine]
) -> list[PdfLine]:
    """The lines of a page without its running heads, those of each table as one."""
    remaining = set(map(id, stripped))
    heads = [line for line in lines if id(line) not in remaining]
    runs = [run for row in page.rows for run in row if not _is_in(run, heads)]
    tables = tables_of(page, runs)
    if not tables:
        return list(stripped)
    positions = {(line.text, line.x0, line.y) for line in heads}
    marked = [
        part
        for line in lines_of(replace(page, rows=_rows_with_marks(page.rows, tables)))
        for part in _divided(line, tables)
    ]
    return [line for line in marked if (line.text, line.x0, line.y) not in positions]


def with_joined_tables(blocks: Sequence[PdfBlock]) -> list[PdfBlock]:
    """The blocks; a table at the end of a page and one at the start of the next may be one."""
    joined: list[PdfBlock] = []
    last_page = -1
    for block in blocks:
        page, line = block.lines[0]
        table = joined[-1].last.table if joined else None
        if table and line.table and page == last_page + 1 and table.is_continued_by(line.table):
            first_page, first = joined[-1].lines[0]
            joined[-1].lines[0] = (first_page, replace(first, table=table.joined(line.table)))
        else:
            joined.append(block)
        last_page = block.lines[-1][0]
    return joined


def tables_of(page: PdfPage, runs: Sequence[TextRun]) -> list[PageTable]:
    """All tables of a page, in no order: those between rules, and those without."""
    tables = [table for grid in page.grids if (table := ruled_table(grid, runs))]
    taken = {id(run) for table in tables for run in table.runs}
    left = {id(run) for run in runs} - taken
    others = [[run for run in row if id(run) in left] for row in page.rows]
    return (tables + aligned_tables(others, page.rules, tables))[:_MAX_TABLES]


def _is_in(run: TextRun, lines: Sequence[PdfLine]) -> bool:
    return any(
        abs(run.y0 - line.y) < run.size
        and run.x0 >= line.x0 - 1
        and run.x1 <= line.x1 + 1
        and run.text.strip() in line.text
        for line in lines
    )


def _rows_with_marks(
    rows: Sequence[Sequence[TextRun]], tables: Sequence[PageTable]
) -> list[list[TextRun]]:
    """Rows with a mark for each table, where its first run is drawn, in place of its runs."""
    numbers = {id(run): at for at, table in enumerate(tables) for run in table.runs}
    marked: set[int] = set()
    rows_with_marks: list[list[TextRun]] = []
    for row in rows:
        others: list[TextRun] = []
        for run in row:
            at = numbers.get(id(run))
            if at is None:
                others.append(run)
            elif at not in marked:
                marked.add(at)
                if others:
                    rows_with_marks.append(others)
                    others = []
                rows_with_marks.append([_mark(at, tables[at])])
        if others:
            rows_with_marks.append(others)
    return rows_with_marks


def _mark(at: int, table: PageTable) -> TextRun:
    x0, _, x1, y1 = table.box
    size = max(min(run.size for run in table.runs), 1.0)
    return TextRun(x0, y1 - size, x1, y1, size, bold=False, text=chr(_FIRST_MARK + at))


def _divided(line: PdfLine, tables: Sequence[PageTable]) -> list[PdfLine]:
    """A line, or what is around the mark of a table in it, and the table."""
    if not _MARK.search(line.text):
        return [line]
    parts = []
    for text in filter(None, map(str.strip, _MARK.split(line.text))):
        at = ord(text) - _FIRST_MARK if _MARK.fullmatch(text) else -1
        # A font may use these characters for letters of its own.
        if 0 <= at < len(tables):
            table = tables[at]
            size = max(run.size for run in table.runs)
            parts.append(replace(line, text="", size=size, bold=False, parts=(), table=table.table))
        else:
            parts.append(replace(line, text=text, parts=()))
    return parts

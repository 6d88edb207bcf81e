"""Captions and headers of the tables of a section, for passages that begin inside one.

A pipe table of Markdown has one header row; a publisher's header of several rows goes on in the
rows below the delimiter, up to the first row of numbers. The caption is the paragraph above.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from operator import attrgetter
from typing import Final, NamedTuple

from fonds.chunk.boundaries import MarkdownBlock, is_table, sentences
from fonds.chunk.headings import Span, text_only

MAX_CAPTION_LENGTH: Final = 200
MAX_HEADER_LENGTH: Final = 400
_MAX_HEADER_ROWS: Final = 3
"""Below the delimiter; where no row of numbers follows so many, they are ordinary rows."""

_CELL_END: Final = re.compile(r"(?<!\\)\|")
_YEAR: Final = re.compile(r"\D*(?:19|20)\d\d\D*")
_DIGIT: Final = re.compile(r"\d")
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_INTRODUCING: Final = (":", "—", "：")


class Table(NamedTuple):
    """A table, its introduction, and where its rows begin."""

    start: int
    rows_start: int
    end: int
    caption: str
    header: tuple[str, ...]

    def lead_ins(self, position: int) -> tuple[str, ...]:
        """Caption and header, as far as they come before a position inside."""
        caption = (self.caption,) if self.caption else ()
        return caption if position < self.rows_start else (*caption, *self.header)


class Tables:
    """The tables of one section, in order."""

    def __init__(self, text: str, section: list[MarkdownBlock]) -> None:
        self._tables: list[Table] = []
        caption: Span | None = None
        for block in section:
            if not block.rows:
                if _COMMENT.sub("", text[block.start : block.end]).strip():
                    caption = (block.start, block.end)
                continue
            if is_table(text, block.start, block.end):
                self._tables.append(_table(text, block, caption))
            caption = None

    def lead_ins(self, position: int) -> tuple[str, ...]:
        """The caption and the header of the table around a position; none outside of tables."""
        index = bisect_right(self._tables, position, key=attrgetter("start"))
        table = self._tables[index - 1] if index else None
        return table.lead_ins(position) if table and position < table.end else ()


def _table(text: str, block: MarkdownBlock, caption: Span | None) -> Table:
    lines = _lines(text, block.start, block.end)
    (header_start, header_end), _, *rows = lines
    header = [cells_of(text[header_start:header_end])]
    below = [cells_of(text[start:end]) for start, end in rows[: _MAX_HEADER_ROWS + 1]]
    header_rows = next((number for number, row in enumerate(below) if _has_numbers(row)), 0)
    if not any(header[0]) and not header_rows:
        header_rows = min(1, len(below))  # a file that marks no header begins with it all the same
    header += below[:header_rows]
    return Table(
        start=block.start,
        rows_start=rows[header_rows][0] if header_rows < len(rows) else block.end,
        end=block.end,
        caption=_caption(text, *caption) if caption else "",
        header=tuple(filter(None, map(_joined, header))),
    )


def _lines(text: str, start: int, end: int) -> list[Span]:
    lines: list[Span] = []
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        lines.append((start, stop))
        start = stop + 1
    return lines


def cells_of(row: str) -> list[str]:
    """The texts of the cells of a row, without marks."""
    inner = _COMMENT.sub(" ", row).strip().removeprefix("|")
    cells = [" ".join(text_only(cell).split()) for cell in _CELL_END.split(inner)]
    return cells[:-1] if len(cells) > 1 and not cells[-1] else cells


def _has_numbers(cells: list[str]) -> bool:
    """True if most cells behind the first are numbers, and not years."""
    filled = [cell for cell in cells[1:] if cell]
    numbers = [cell for cell in filled if _DIGIT.search(cell) and not _YEAR.fullmatch(cell)]
    return 2 * len(numbers) > len(filled)


def row_text(row: str) -> str:
    """`Year | 2015 | 2014`; a cell that repeats the one before it, as merged ones do, once."""
    return _joined(cells_of(row))


def _joined(cells: list[str]) -> str:
    distinct = [cell for cell, before in zip(cells, ["", *cells], strict=False) if cell != before]
    row = " | ".join(distinct) if any(distinct) else ""
    if len(row) <= MAX_HEADER_LENGTH:
        return row
    return f"{row[:MAX_HEADER_LENGTH].rpartition(' ')[0] or row[:MAX_HEADER_LENGTH]}…"


def _caption(text: str, start: int, end: int) -> str:
    """A short paragraph, or the last sentence of a longer one that announces the table."""
    whole = " ".join(text_only(_COMMENT.sub(" ", text[start:end])).split())
    if len(whole) <= MAX_CAPTION_LENGTH:
        return whole
    *before, last = sentences(text, start, end)
    announcing = " ".join(text_only(_COMMENT.sub(" ", text[slice(*last)])).split())
    is_short = before and len(announcing) <= MAX_CAPTION_LENGTH
    return announcing if is_short and announcing.endswith(_INTRODUCING) else ""

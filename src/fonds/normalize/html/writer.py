"""Writing what HTML allows and Markdown's blocks do not: breaks, cells, marks across blocks."""

from __future__ import annotations

import re
from typing import Final

from fonds.normalize.markdown import MarkdownWriter

_TICKS: Final = re.compile("`+")
_DEEPEST: Final = 12
"""Deeper lists and quotations are written at this depth: every line repeats its prefixes."""


class Mark:
    """Inline markup around text: written before its first text, closed at every block's end."""

    __slots__ = ("closing", "opening", "written")

    def __init__(self, opening: str, closing: str) -> None:
        self.opening, self.closing, self.written = opening, closing, False


class HtmlWriter(MarkdownWriter):
    """A writer for text that comes as a browser would lay it out."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[Mark] = []
        self.in_cell = False
        self.empty = True
        """Nothing is written yet in this block or cell."""
        self.heading = self.in_link = False
        self._breaks = 0
        self._depth = 0

    def put(self, text: str | None) -> None:
        """Running text, with the breaks and marks that wait before it."""
        if not text:
            return
        if self._breaks or self.marks:
            if text.isspace():
                self.space()
                return
            self._flush()
        elif self.empty and text.isspace():
            return
        self.empty = False
        self.text(text)

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
        self._close_marks()
        if self.in_cell:
            self._breaks = 1
            return
        self._breaks = 0
        self.empty = True
        self.begin()

    def fenced(self, lines: list[str]) -> None:
        """Lines whose breaks and columns matter, kept as they are."""
        longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
        fence = "`" * max(3, longest + 1)
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

    def open_mark(self, opening: str, closing: str) -> Mark:
        """Let the text to come stand between these."""
        mark = Mark(opening, closing)
        self.marks.append(mark)
        return mark

    def close_mark(self, mark: Mark) -> None:
        """End a mark, if any text came."""
        if mark.written:
            self.close(mark.closing)
        self.marks.remove(mark)

    def open_indent(self, prefix: str, first: str | None = None) -> str | None:
        """Put a prefix before the blocks to come; gives what `close_indent` wants."""
        self.block()
        if self.in_cell:
            return None
        self._depth += 1
        if self._depth > _DEEPEST:
            return None
        waiting = self._first_prefix
        former = self.indent(prefix, first)
        if waiting is not None:
            # An item that begins with a list: both labels stand on one line.
            self._first_prefix = waiting + (prefix if first is None else first)
        return former

    def close_indent(self, former: str | None) -> None:
        """Go back to the former prefix."""
        self.block()
        if self.in_cell:
            return
        self._depth -= 1
        if former is not None:
            self.outdent(former)

    def open_cell(self) -> None:
        """Begin a cell: text is one line, and pipes are escaped."""
        self.cell()
        self.markup(" ")
        self.in_cell = self.in_table = self.empty = True
        self._breaks = 0

    def close_cell(self) -> None:
        """End a cell."""
        self._close_marks()
        self._breaks = 0
        self.markup(" |")
        self.in_cell = self.in_table = False

    def _flush(self) -> None:
        if self._breaks:
            self._break_line()
        waiting = [mark for mark in self.marks if not mark.written]
        if waiting:
            self.emphasis("".join(mark.opening for mark in waiting))
            for mark in waiting:
                mark.written = True

    def _break_line(self) -> None:
        breaks, self._breaks = self._breaks, 0
        if self.empty:
            return
        if self.heading:
            self.space()
        elif self.in_cell:
            self.markup("<br>")
            self.cell()
        elif breaks > 1:
            self.block()
        else:
            self.markup("\\")
            self.line()

    def _close_marks(self) -> None:
        for mark in reversed(self.marks):
            if mark.written:
                self.close(mark.closing)
                mark.written = False

"""Markdown as German law needs it: lines within a paragraph, and numbers of the law's own."""

from __future__ import annotations

import re
from typing import Final

from fonds.normalize.billres.writer import BillWriter
from fonds.normalize.markdown import escape, escape_start

# A renderer would take these for a list, which they are; all others are only text to it.
_LIST_LABEL: Final = re.compile(r"\d{1,9}[.)]|-")


class NormWriter(BillWriter):
    """A writer that breaks lines when text follows, and begins items with their own labels."""

    def __init__(self) -> None:
        super().__init__()
        self._breaks = self._in_heading = False

    def begin(self, *, level: int = 0, section: str | None = None) -> None:
        """Start a paragraph, or a heading of that level."""
        super().begin(level=level, section=section)
        self._in_heading = level > 0

    def end(self) -> None:
        """Finish the block; a line break at its end is none."""
        super().end()
        self._breaks = self._in_heading = False

    def break_line(self) -> None:
        """Let the next text stand on a line of its own, where there are lines."""
        if self.is_open and not self.in_table and not self._in_heading:
            self._breaks = True
        else:
            self.space()

    def run(self, text: str | None) -> None:
        """Running text, in the open block or one of its own."""
        if text and not text.isspace():
            self.take_break()
        super().run(text)

    def take_break(self) -> None:
        """Begin the line that `break_line` announced, if it did."""
        if self._breaks:
            self._breaks = False
            self.line()

    def begin_item(self, label: str) -> str:
        """Start an item of a list; gives the former prefix, for `outdent`."""
        if _LIST_LABEL.fullmatch(label):
            opening, inner = label, " " * (len(label) + 1)
        else:
            opening, inner = escape_start(escape(label)), ""
        former = self.indent(inner, first="")
        self.begin()
        self.markup(f"{opening} ")
        self.run_in()
        return former

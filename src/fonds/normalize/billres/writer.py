"""Markdown as bills need it: revisions, quotations of several paragraphs, nested markers."""

from __future__ import annotations

from typing import Literal

from fonds.normalize.markdown import MarkdownWriter


class BillWriter(MarkdownWriter):
    """A writer that opens blocks, revisions and quotation marks when their first text comes."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = False
        """Whether a block has begun that a run-in text may continue."""
        self.revision: Literal["ins", "del"] | None = None
        """What the text to come is: inserted, struck, or neither; change it between blocks."""
        self._revision_open = False
        self._in_list = False
        self._marks: list[tuple[str, str]] = []
        self._opened = 0
        self._quotations: list[bool] = []

    @property
    def quoted(self) -> bool:
        """Whether the text to come is inside a quoted block."""
        return bool(self._quotations)

    def begin(self, *, level: int = 0, section: str | None = None) -> None:
        """Start a paragraph, or a heading of that level."""
        super().begin(level=level, section=section)
        self.is_open = True

    def end(self) -> None:
        """Finish the block, and close in it whatever goes on in the next one."""
        self.end_marks()
        super().end()
        self.is_open = self._in_list = False

    def end_marks(self) -> None:
        """Close all markers and the revision; none may reach over blocks or cells."""
        for _, closing in reversed(self._marks[: self._opened]):
            self.close(closing)
        self._opened = 0
        if self._revision_open:
            self.markup(f"</{self.revision}>")
            self._revision_open = False

    def run(self, text: str | None) -> None:
        """Running text, in the open block or one of its own."""
        if not text:
            return
        if text.isspace():
            self.space()
            return
        if not (self.is_open or self.in_table):
            self.begin()
        if self.revision and not self._revision_open:
            self.markup(f"<{self.revision}>")
            self._revision_open = True
        if self._opened < len(self._marks):
            self.emphasis("".join(opening for opening, _ in self._marks[self._opened :]))
            self._opened = len(self._marks)
        if self._quotations and not self._quotations[-1] and not self.in_table:
            self.text("“" * self._quotations.count(False))
            self._quotations = [True] * len(self._quotations)
        self.text(text)

    def item(self) -> None:
        """Start an item of a list without numbers."""
        if self._in_list:
            self.line()
        else:
            self.begin()
            self._in_list = True
        self.markup("- ")

    def mark(self, opening: str, closing: str) -> None:
        """Let the text to come stand between these markers, in each block of it."""
        self._marks.append((opening, closing))

    def unmark(self) -> None:
        """End what `mark` began last; without text in between there is no trace of it."""
        _, closing = self._marks.pop()
        if self._opened > len(self._marks):
            self._opened = len(self._marks)
            self.close(closing)

    def open_quotation(self) -> None:
        """The next text begins a quotation."""
        self._quotations.append(False)

    def close_quotation(self) -> None:
        """The quotation ends behind the last text, if there was any."""
        if self._quotations.pop():
            self.no_space()
            self.run("”")

"""Walking the XML of publishers: text and elements in order, each element by a handler."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Mapping
from typing import Any, ClassVar, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.model import BaseNormalizer, NormalizedBody
from fonds.normalize.markdown import MarkdownWriter
from fonds.normalize.tables import Grid, write_table

Handler = Callable[[Any, Any], None]
"""A method of a walker that writes one element."""

MAX_HEADING_LEVEL: Final = 6
_MAX_TAG_LENGTH: Final = 80


def one_line(element: Any) -> str:
    """The text of an element, its white space collapsed; empty if there is no such element."""
    return "" if element is None else " ".join("".join(element.itertext()).split())


class XmlWalker:
    """Writes an element and all below it as Markdown; every word of it, in order."""

    INLINES: ClassVar[Mapping[str, Handler]] = {}
    """Elements that are part of a line."""
    BLOCKS: ClassVar[Mapping[str, Handler]] = {}
    """Elements on lines of their own, or in a line if they are in `INLINES` and their parent is."""
    MAX_DEPTH: ClassVar[int] = 100
    """Deeper than any real file, and far from Python's own limit of recursion."""

    def __init__(self, out: MarkdownWriter) -> None:
        self._out = out
        self._depth = 0
        self._in_line = False
        """In a cell of a table, or whatever else has to be in one line."""
        self._emphasized = False
        self._in_contents = False
        self._unknown: Counter[str] = Counter()

    def finish(self, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with these warnings and those of the walk."""
        unknown = [
            f"unknown element <{tag}> ({count}×); its text is kept"
            for tag, count in sorted(self._unknown.items())
        ]
        return self._out.finish((*warnings, *unknown, *self._more_warnings()))

    def _more_warnings(self) -> list[str]:
        return []

    # Order ----------------------------------------------------------------------------------

    def flow(self, element: Any, skip: Container[Any] = ()) -> None:
        """Write text and children in order; text behind a block is a paragraph of its own."""
        if text := element.text:
            self._write_text(text)
        for child in element:
            is_block = False
            if not isinstance(child.tag, str):
                self._node(child)
            elif child not in skip:
                is_block = self._child(child, element)
            if tail := child.tail:
                if is_block and not tail.isspace():
                    self._end()
                self._write_text(tail)

    def _write_text(self, text: str) -> None:
        if text.isspace():
            self._out.space()
        else:
            self._words(text)

    def _words(self, text: str) -> None:
        self._out.text(text)

    def _node(self, node: Any) -> None:
        """Write a processing instruction or an entity."""

    def _name(self, element: Any) -> str:
        """The name by which an element's handler is found."""
        return str(element.tag)

    def _child(self, child: Any, parent: Any) -> bool:
        """Write an element; true if it was a block."""
        self._descend()
        name = self._name(child)
        inline, block = self.INLINES.get(name), self.BLOCKS.get(name)
        if inline is None and block is None:
            self._add_unknown(child)
        is_block = False
        if inline is not None and block is None:
            self._inline(child, inline)
        elif self._in_line:
            self._out.space()
            self._inline(child, inline or XmlWalker.flow)
            self._out.space()
        elif (inline is not None or block is None) and self._is_running(parent):
            self._inline(child, inline or XmlWalker.flow)
        else:
            is_block = True
            self._block(child, block or XmlWalker.paragraph)
        self._depth -= 1
        return is_block

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > self.MAX_DEPTH:
            raise MalformedError(f"elements are nested more than {self.MAX_DEPTH} deep")

    def _add_unknown(self, element: Any) -> None:
        self._unknown[element.tag[:_MAX_TAG_LENGTH]] += 1

    def _is_running(self, parent: Any) -> bool:
        """True if an element that may be either is part of a line within this parent."""
        return self._name(parent) in self.INLINES

    def _inline(self, element: Any, handler: Handler) -> None:
        handler(self, element)

    def _block(self, element: Any, handler: Handler) -> None:
        handler(self, element)

    # Blocks ---------------------------------------------------------------------------------

    def _begin(self, *, level: int = 0, section: str | None = None) -> None:
        self._out.begin(level=level, section=section)

    def _end(self) -> None:
        self._out.end()

    def paragraph(self, element: Any) -> None:
        """Write a block of its own."""
        self._begin()
        self.flow(element)
        self._end()

    def strong(self, element: Any) -> None:
        """Write a block in bold."""
        self._begin()
        self._emphasize(element, "**")
        self._end()

    def contents(self, element: Any) -> None:
        """Write a table of contents; its headings are not headings of the text."""
        previous, self._in_contents = self._in_contents, True
        self.paragraph(element)
        self._in_contents = previous

    def skip(self, element: Any) -> None:
        """Leave out an element that is not text of the document."""

    def _table(
        self,
        grid: Grid,
        *,
        source: Any = None,
        page: Callable[[Any], None] | None = None,
        fills: bool = True,
    ) -> None:
        """Write a grid, if there is anything in it."""
        if not (grid.head or grid.rows):
            return
        self._begin()
        previous, self._in_line = self._in_line, True
        write_table(self._out, grid, self._cell, source=source, page=page, fills=fills)
        self._in_line = previous

    def _cell(self, element: Any) -> None:
        self.flow(element)

    # Inline ---------------------------------------------------------------------------------

    def spaced(self, element: Any) -> None:
        """Write an element that only its markup separates from the words around it."""
        self._out.space()
        self.flow(element)
        self._out.space()

    def italic(self, element: Any) -> None:
        """Write an element in italics."""
        self._emphasize(element, "*")

    def bold(self, element: Any) -> None:
        """Write an element in bold."""
        self._emphasize(element, "**")

    def _emphasize(self, element: Any, marker: str) -> None:
        takes = self._out.takes_emphasis(one_line(element), self._text_after(element))
        if self._emphasized or not takes:
            self.flow(element)
            return
        self._emphasized = True
        self._out.mark(marker, marker)
        self.flow(element)
        self._out.unmark()
        self._emphasized = False

    def _text_after(self, element: Any) -> str:
        return element.tail or ""

    def _tagged(self, element: Any, name: str) -> None:
        self._out.mark(f"<{name}>", f"</{name}>")
        self.flow(element)
        self._out.unmark()


class XmlNormalizer(BaseNormalizer, ABC):
    """A normalizer of one format of XML."""

    accepts_format = "xml"

    def to_markdown(self, data: bytes, source_hint: str | None = None) -> NormalizedBody:
        """The text of a file, or of the part of it that the hint names where a format has parts."""
        text = self._convert(data, source_hint)
        if not text.markdown:
            raise WrongContentError("the file contains no text")
        return text

    @abstractmethod
    def _convert(self, data: bytes, hint: str | None) -> NormalizedBody:
        """The text, which may be empty."""

"""What stands within a line of the D.C. Council's XML: text, bits of HTML, figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final

from fonds.errors import MalformedError
from fonds.normalize.markdown import MarkdownWriter
from fonds.normalize.xhtml_table import local_name

_DEEPEST: Final = 100
_EM_SPACE: Final = "\u2003"


def local(element: Any) -> str:
    """An element's name as it is looked up: without namespace, in lower case."""
    return local_name(element).lower()


def words_of(element: Any) -> str:
    """The text of an element on one line; empty if there is no such element."""
    return "" if element is None else " ".join("".join(element.itertext()).split())


class LineWalker(ABC):
    """Writes running text and the elements in it; blocks are left to a subclass."""

    def __init__(self) -> None:
        self._out = MarkdownWriter()
        self._depth = 0
        self._indent = 0
        self._quotations = 0
        self._is_open = False
        self._labelled = False
        """The open block holds a number only, and goes on with whatever text comes next."""
        self._in_line = False
        """Blocks are forced into the line: in a heading, a cell or emphasis."""
        self._emphasized = False

    @abstractmethod
    def _block(self, child: Any, parent: Any) -> None:
        """Write an element that does not stand within a line, or is unknown."""

    def _begin(self, *, indent: int | None = None) -> None:
        """Start a paragraph, unless a number waits for its text."""
        if self._labelled:
            return
        em_spaces = self._indent if indent is None else indent
        self._out.outdent("> " * self._quotations + _EM_SPACE * em_spaces)
        self._out.begin()
        self._is_open = True

    def _end(self) -> None:
        if not self._labelled:
            self._out.end()
            self._is_open = False

    def _close(self) -> None:
        self._labelled = False
        self._end()

    def _speak(self) -> None:
        """Be where text can be written: behind a number, in the open block or in one begun."""
        if self._labelled:
            self._labelled = False
            self._out.space()
        elif not self._is_open:
            self._begin()

    def _run(self, text: str | None) -> None:
        if not text:
            return
        if text.isspace():
            self._out.space()
            return
        self._speak()
        self._out.text(text)

    def flow(self, element: Any, skip: tuple[Any, ...] = ()) -> None:
        """Text and children in order; a block child interrupts the paragraph around it."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise MalformedError(f"elements are nested more than {_DEEPEST} deep")
        self._run(element.text)
        for child in element:
            if child not in skip and isinstance(child.tag, str):
                inline = self._INLINES.get(local(child))
                inline(self, child) if inline else self._block(child, element)
            self._run(child.tail)
        self._depth -= 1

    def _one_line(self, element: Any) -> None:
        former, self._in_line = self._in_line, True
        self.flow(element)
        self._in_line = former

    # Inline -------------------------------------------------------------------------------

    def _italic(self, element: Any) -> None:
        self._emphasize(element, "*")

    def _bold(self, element: Any) -> None:
        self._emphasize(element, "**")

    def _span(self, element: Any) -> None:
        if "italic" in element.get("style", ""):
            self._italic(element)
        else:
            self.flow(element)

    def _emphasize(self, element: Any, marker: str) -> None:
        words = words_of(element)
        if words:
            self._speak()
        if self._emphasized or not self._out.takes_emphasis(words, _after(element)):
            self._one_line(element)
            return
        self._emphasized = True
        self._out.emphasis(marker)
        self._one_line(element)
        self._out.close(marker)
        self._emphasized = False

    def _raised(self, element: Any) -> None:
        if not words_of(element):
            return
        self._speak()
        self._out.markup(f"<{local(element)}>")
        self._out.no_space()
        self._one_line(element)
        self._out.markup(f"</{local(element)}>")

    def _line_break(self, element: Any) -> None:
        if self._in_line or self._labelled:
            self._out.space()
        else:
            self._end()
        self.flow(element)

    def _image(self, element: Any) -> None:
        source = element.get("src", "").removeprefix("./")
        said = ": ".join(filter(None, (source, " ".join(element.get("alt", "").split()))))
        self._speak()
        self._out.space()
        self._out.artifact("graphic", source)
        self._out.text(f"[Graphic {said or 'without a name'}]")
        self._out.space()
        self.flow(element)

    _INLINES: ClassVar[dict[str, Callable[[LineWalker, Any], None]]] = {
        **dict.fromkeys(("cite", "code-cite", "a", "u", "todo"), flow),
        **dict.fromkeys(("i", "em"), _italic),
        **dict.fromkeys(("b", "strong"), _bold),
        **dict.fromkeys(("sup", "sub"), _raised),
        "span": _span,
        "br": _line_break,
        "img": _image,
    }


def _after(element: Any) -> str:
    """The character behind the last word of an element; empty if nothing follows."""
    inside = "".join(element.itertext())
    return (inside[len(inside.rstrip()) :] + (element.tail or ""))[:1]

"""What stands within a line of a bill: quotations, emphasis, revisions, footnotes, figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal

from fonds.errors import MalformedError
from fonds.normalize.billres.vocabulary import DEEPEST, FLOWING
from fonds.normalize.billres.writer import BillWriter

_QUOTES: Final = (("“", "”"), ("‘", "’"))


class LineWalker(ABC):
    """Writes running text and the elements in it; blocks are left to a subclass."""

    def __init__(self, root: Any) -> None:
        self._out = BillWriter()
        self._depth = 0
        self._emphasized = False
        self._quoting = 0
        self._note_ids = {note.get("id") for note in root.iter("footnote")}
        self._labels: dict[Any, str] = {}
        self._notes: list[tuple[Any, str, Literal["ins", "del"] | None]] = []
        self._writing_notes = False

    @abstractmethod
    def _is_block(self, tag: str) -> bool:
        """Whether text behind such an element is a paragraph of its own."""

    @abstractmethod
    def _child(self, child: Any, parent: Any) -> None:
        """Write one element, whatever it is."""

    def _begin(self, *, level: int = 0, section: str | None = None) -> None:
        self._out.end()
        self._write_notes()
        self._out.begin(level=level, section=section)

    def _begin_if_closed(self) -> None:
        if not (self._out.is_open or self._out.in_table):
            self._begin()

    def flow(self, element: Any, skip: tuple[Any, ...] = ()) -> None:
        """Write text and children in order; a block child interrupts the paragraph around it."""
        self._out.run(element.text)
        for child in element.iterchildren("*"):
            if child not in skip:
                self._child(child, element)
            tail = child.tail
            if tail and not tail.isspace() and self._is_block(child.tag):
                self._out.end()
            self._out.run(tail)

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise MalformedError(f"elements are nested more than {DEEPEST} deep")

    # Footnotes ----------------------------------------------------------------------------

    def _footnote(self, element: Any) -> None:
        label = self._label(element.get("id") or element)
        self._begin_if_closed()
        self._out.markup(f"[^{label}]")
        self._notes.append((element, label, self._out.revision))

    def _footnote_reference(self, element: Any) -> None:
        idref = element.get("idref")
        if idref in self._note_ids:
            self._begin_if_closed()
            self._out.markup(f"[^{self._label(idref)}]")
        else:
            self._raised(element)

    def _label(self, note: Any) -> str:
        return self._labels.setdefault(note, str(len(self._labels) + 1))

    def _write_notes(self) -> None:
        if self._writing_notes:
            return
        self._writing_notes = True
        while self._notes:
            element, label, revision = self._notes.pop(0)
            former = self._out.indent("    ", first=f"[^{label}]: ")
            former_revision, self._out.revision = self._out.revision, revision
            self._out.begin()
            self.flow(element)
            self._out.end()
            self._out.revision = former_revision
            self._out.outdent(former)
        self._writing_notes = False

    # Inline -------------------------------------------------------------------------------

    def _inline(self, element: Any) -> None:
        self._deeper()
        self._INLINES.get(element.tag, LineWalker.flow)(self, element)
        self._depth -= 1

    def _tagged(self, element: Any, name: str) -> None:
        self._out.mark(f"<{name}>", f"</{name}>")
        self.flow(element)
        self._out.unmark()

    def _raised(self, element: Any) -> None:
        self._tagged(element, "sub" if element.tag == "subscript" else "sup")

    def _phrase(self, element: Any) -> None:
        name = "ins" if element.tag == "added-phrase" else "del"
        if name == self._out.revision:
            self.flow(element)
        else:
            self._tagged(element, name)

    def _italic(self, element: Any) -> None:
        self._emphasize(element, "*")

    def _bold(self, element: Any) -> None:
        self._emphasize(element, "**")

    def _emphasize(self, element: Any, marker: str) -> None:
        takes = self._out.takes_emphasis(words_of(element), element.tail or "")
        if self._emphasized or not takes:
            self.flow(element)
            return
        self._emphasized = True
        self._out.mark(marker, marker)
        self.flow(element)
        self._out.unmark()
        self._emphasized = False

    def _quote(self, element: Any) -> None:
        opening, closing = _QUOTES[self._quoting % 2]
        self._quoting += 1
        self._out.run(opening)
        self.flow(element)
        self._out.no_space()
        self._out.run(closing)
        self._quoting -= 1

    def _fraction(self, element: Any) -> None:
        # 12<fraction>1/2</fraction> is twelve and a half.
        self._out.space()
        self.flow(element)

    def _spaced(self, element: Any) -> None:
        self._deeper()
        self._out.space()
        self.flow(element)
        self._out.space()
        self._depth -= 1

    def _line_break(self, _element: Any) -> None:
        self._out.space()

    def _omission(self, _element: Any) -> None:
        # Printed as asterisks; bare ones would be emphasis or a horizontal rule.
        self._out.space()
        self._out.run("* * * * *")
        self._out.space()

    def figure(self, element: Any) -> None:
        """Write a place mark for what only an image shows; its name or data goes beside it."""
        kind = "formula" if element.getparent().tag == "formula" else "graphic"
        name = element.get("file") or element.get("graphic-desc") or ""
        data = element.find("image-data")
        self._begin_if_closed()
        self._out.space()
        self._out.artifact(kind, name or words_of(data))
        self._out.run(f"[{kind.capitalize()}{name and f' {name}'}]")
        self.flow(element, (data,))

    _INLINES: ClassVar[dict[str, Callable[[LineWalker, Any], None]]] = {
        **dict.fromkeys(FLOWING, flow),
        "quote": _quote,
        "term": _quote,
        "italic": _italic,
        "bold": _bold,
        "superscript": _raised,
        "subscript": _raised,
        "fraction": _fraction,
        "added-phrase": _phrase,
        "deleted-phrase": _phrase,
        "footnote": _footnote,
        "footnote-ref": _footnote_reference,
        "formula": flow,
        "linebreak": _line_break,
        "omitted-text": _omission,
        "toc-enum": _spaced,
        "level-header": _spaced,
        "target": _spaced,
        "page-num": _spaced,
    }


def words_of(element: Any) -> str:
    """The text of an element on one line; empty if there is no such element."""
    return "" if element is None else " ".join("".join(element.itertext()).split())

"""Walking the text of a norm: paragraphs, lists, tables, footnotes; every word of it, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar, Final

from fonds.errors import MalformedError
from fonds.normalize.cals import Rows, has_loose_text, read_rows, write_rows
from fonds.normalize.gii.writer import NormWriter

_DEEPEST: Final = 100
_PICTURES: Final = {"IMG": "Abbildung", "FILE": "Datei"}


class TextWalker:
    """Writes what stands in `text` and `fussnoten`."""

    def __init__(self, root: Any) -> None:
        self._out = NormWriter()
        self._root = root
        self._depth = 0
        self._emphasized = False
        self._in_contents = False
        self._level = 1
        """That of the norm's own heading."""
        self._notes = {note.get("ID"): note for note in root.iter("Footnote")}
        self._labels: dict[str, str] = {}
        self._warned: Counter[str] = Counter()

    def _flow(self, element: Any) -> None:
        """Write text and children in order; a block child interrupts the paragraph around it."""
        self._out.run(element.text)
        for child in element.iterchildren("*"):
            self._child(child)
            if self._is_block(child) and child.tail and not child.tail.isspace():
                self._out.end()
            self._out.run(child.tail)

    def _child(self, child: Any) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise MalformedError(f"elements are nested more than {_DEEPEST} deep")
        if child.tag in self._INLINES:
            self._INLINES[child.tag](self, child)
        elif self._out.in_table:
            self._spaced(child)
        elif child.tag in self._BLOCKS:
            self._BLOCKS[child.tag](self, child)
        else:
            self._warned[f"unknown element <{child.tag[:80]}>; its text is kept"] += 1
            self._flow(child)
        self._depth -= 1

    def _is_block(self, element: Any) -> bool:
        return element.tag in self._BLOCKS and not self._out.in_table

    # Blocks ---------------------------------------------------------------------------------

    def _group(self, element: Any) -> None:
        self._flow(element)
        self._out.end()

    def _paragraph(self, element: Any) -> None:
        self._out.begin()
        self._flow(element)
        self._out.end()

    def _strong(self, element: Any) -> None:
        self._out.begin()
        self._emphasize(element, "**")
        self._out.end()

    def _title(self, element: Any) -> None:
        """A heading within an annex; in a table of contents it would only repeat the act's own."""
        if self._in_contents:
            self._strong(element)
            return
        below = 2 if element.tag == "Subtitle" else 1
        self._out.begin(level=min(self._level + below, 6))
        self._flow(element)
        self._out.end()

    def _contents(self, element: Any) -> None:
        former, self._in_contents = self._in_contents, True
        self._group(element)
        self._in_contents = former

    def _preformatted(self, element: Any) -> None:
        self._out.end()
        self._lines(element.text)
        for child in element.iterchildren("*"):
            self._child(child)
            self._lines(child.tail)
        self._out.end()

    def _lines(self, text: str | None) -> None:
        for number, line in enumerate((text or "").split("\n")):
            if number:
                self._out.break_line()
            self._out.run(line)

    # Lists ----------------------------------------------------------------------------------

    def _list(self, element: Any) -> None:
        self._out.end()
        label = None
        for child in element.iterchildren("*"):
            if child.tag == "DT":
                if label is not None:
                    self._item(label, None)
                label = child
            elif child.tag == "DD":
                self._item(label, child)
                label = None
            else:
                self._child(child)
        if label is not None:
            self._item(label, None)
        self._out.end()

    def _item(self, label: Any, content: Any) -> None:
        words = words_of(label)
        former = self._out.begin_item(words) if words else None
        if label is not None:
            for reference in label.iter("FnR"):
                self._reference(reference)
        if content is not None:
            self._flow(content)
        self._out.end()
        if former is not None:
            self._out.outdent(former)

    # Tables ---------------------------------------------------------------------------------

    def _table(self, element: Any) -> None:
        self._out.end()
        for child in element.iterchildren("*"):
            if child.tag == "tgroup" and not has_loose_text(child):
                self._rows(read_rows(child), child)
            elif child.tag == "Title":
                self._strong(child)
            else:
                self._child(child)
            self._out.run(child.tail)
        self._out.end()

    def _rows(self, rows: Rows, tgroup: Any) -> None:
        if rows.head or rows.body:
            self._out.begin()
            write_rows(self._out, rows, tgroup, self._flow)

    def _skip(self, element: Any) -> None:
        """Leave out what has no text."""

    # Footnotes ------------------------------------------------------------------------------

    def _reference(self, element: Any) -> None:
        target = element.get("ID") or ""
        if target not in self._notes:
            self._warned["reference to a footnote that is not there"] += 1
            return
        self._open()
        self._out.markup(f"[^{self._label(target)}]")

    def _label(self, target: str) -> str:
        return self._labels.setdefault(target, str(len(self._labels) + 1))

    def _footnote(self, element: Any) -> None:
        self._out.end()
        target = element.get("ID") or ""
        if target in self._labels:
            former = self._out.indent("    ", first=f"[^{self._labels[target]}]: ")
        else:
            former = self._out.begin_item(
                f"{element.get('FnZ') or '*'}{element.get('Postfix') or ')'}"
            )
        self._flow(element)
        self._out.outdent(former)

    # Inline ---------------------------------------------------------------------------------

    def _open(self) -> None:
        if not (self._out.is_open or self._out.in_table):
            self._out.begin()
        self._out.take_break()

    def _spaced(self, element: Any) -> None:
        self._out.space()
        self._flow(element)
        self._out.space()

    def _break(self, _element: Any) -> None:
        self._out.break_line()

    def _space(self, _element: Any) -> None:
        self._out.space()

    def _raised(self, element: Any) -> None:
        name = element.tag.lower()
        self._out.mark(f"<{name}>", f"</{name}>")
        self._flow(element)
        self._out.unmark()

    def _italic(self, element: Any) -> None:
        self._emphasize(element, "*")

    def _bold(self, element: Any) -> None:
        self._emphasize(element, "**")

    def _emphasize(self, element: Any, marker: str) -> None:
        takes = self._out.takes_emphasis(words_of(element), element.tail or "")
        if self._emphasized or not takes:
            self._flow(element)
            return
        self._emphasized = True
        self._out.mark(marker, marker)
        self._flow(element)
        self._out.unmark()
        self._emphasized = False

    def _quotation(self, element: Any) -> None:
        self._out.run("„" if element.tag == "QuoteL" else "“")

    def _picture(self, element: Any) -> None:
        name = element.get("SRC") or ""
        described = element.get("alt") or name
        self._open()
        self._out.space()
        self._out.artifact("graphic", name)
        self._out.run(f"[{_PICTURES[element.tag]}{described and f': {described}'}]")
        self._flow(element)

    _INLINES: ClassVar[dict[str, Callable[[TextWalker, Any], None]]] = {
        **dict.fromkeys(("F", "NB", "U", "small", "noindex", "Citation", "Revision"), _flow),
        **dict.fromkeys(("I", "SP"), _italic),
        **dict.fromkeys(("SUP", "SUB"), _raised),
        **dict.fromkeys(("BR", "ABWFORMAT"), _break),
        **dict.fromkeys(("QuoteL", "QuoteR"), _quotation),
        **dict.fromkeys(_PICTURES, _picture),
        "B": _bold,
        "Split": _space,
        "FnR": _reference,
        "colspec": _skip,
    }
    _BLOCKS: ClassVar[dict[str, Callable[[TextWalker, Any], None]]] = {
        **dict.fromkeys(("P", "LA", "kommentar", "DT", "DD"), _paragraph),
        **dict.fromkeys(("Title", "Subtitle"), _title),
        **dict.fromkeys(("Content", "text", "textdaten", "Footnotes"), _group),
        **dict.fromkeys(("tgroup", "thead", "tbody", "tfoot", "row"), _group),
        "entry": _paragraph,
        "Ident": _strong,
        "TOC": _contents,
        "pre": _preformatted,
        "DL": _list,
        "table": _table,
        "Footnote": _footnote,
    }


def words_of(element: Any) -> str:
    """The text of an element on one line; empty if there is no such element."""
    return "" if element is None else " ".join("".join(element.itertext()).split())

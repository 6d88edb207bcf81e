"""German federal law in the XML of gesetze-im-internet.de as Markdown.

A file is a flat list of norms under `dokumente`; a norm alone is read as well.

Headings are only in the metadata of norms. Paragraphs have lines, and items their own numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from fonds.errors import WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.markdown import MarkdownWriter, escape, escape_start
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls
from fonds.normalize.tables import is_cals_grid, read_cals
from fonds.normalize.walker import (
    MAX_HEADING_LEVEL,
    Handler,
    XmlNormalizer,
    XmlWalker,
    one_line,
)

# A renderer would take these for a list, which they are; all others are only text to it.
_LIST_LABEL: Final = re.compile(r"\d{1,9}[.)]|-")


class NormWriter(MarkdownWriter):
    """A writer that breaks lines when text follows, and begins items with their own labels."""

    def __init__(self) -> None:
        super().__init__()
        self._breaks = self._in_heading = False

    def begin(self, *, level: int = 0, section: str | None = None) -> None:
        """Start a paragraph, or a heading of that level."""
        super().begin(level=level, section=section)
        self._in_heading = level > 0

    def end(self) -> None:
        """Finish the block; a line break at its end is dropped."""
        super().end()
        self._breaks = self._in_heading = False

    def break_line(self) -> None:
        """Begin a new line before the next text, where there are lines."""
        if self.is_open and not self.in_table and not self._in_heading:
            self._breaks = True
        else:
            self.space()

    def text(self, text: str | None) -> None:
        """Running text, on a line of its own behind a break."""
        if text and not text.isspace():
            self.take_break()
        super().text(text)

    def take_break(self) -> None:
        """Begin the line that `break_line` announced, if it did."""
        if self._breaks:
            self._breaks = False
            self.line()

    def begin_item(self, label: str) -> str:
        """Start an item of a list; returns the previous prefix, for `outdent`."""
        if _LIST_LABEL.fullmatch(label):
            opening, inner = label, " " * (len(label) + 1)
        else:
            opening, inner = escape_start(escape(label)), ""
        outer = self.indent(inner, first="")
        self.begin()
        self.markup(f"{opening} ")
        self.run_in()
        return outer


_PICTURES: Final = {"IMG": "Abbildung", "FILE": "Datei"}


class TextWalker(XmlWalker):
    """Writes the content of `text` and `fussnoten`."""

    _out: NormWriter

    def __init__(self, root: Any) -> None:
        super().__init__(NormWriter())
        self._root = root
        self._level = 1
        """The level of the norm's own heading."""
        self._notes = {note.get("ID"): note for note in root.iter("Footnote")}
        self._labels: dict[str, str] = {}
        self._lost_references = 0

    def _is_running(self, parent: Any) -> bool:  # noqa: ARG002 — any element may be in a line
        return True

    # Blocks ---------------------------------------------------------------------------------

    def _group(self, element: Any) -> None:
        self.flow(element)
        self._out.end()

    def _title(self, element: Any) -> None:
        """A heading within an annex; in a table of contents it would only repeat the act's own."""
        if self._in_contents:
            self.strong(element)
            return
        below = 2 if element.tag == "Subtitle" else 1
        self._out.begin(level=min(self._level + below, 6))
        self.flow(element)
        self._out.end()

    def contents(self, element: Any) -> None:
        """Write a table of contents."""
        previous, self._in_contents = self._in_contents, True
        self._group(element)
        self._in_contents = previous

    def _preformatted(self, element: Any) -> None:
        self._out.end()
        self._lines(element.text)
        for child in element.iterchildren("*"):
            self._child(child, element)
            self._lines(child.tail)
        self._out.end()

    def _lines(self, text: str | None) -> None:
        for number, line in enumerate((text or "").split("\n")):
            if number:
                self._out.break_line()
            self._out.text(line)

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
                self._child(child, element)
        if label is not None:
            self._item(label, None)
        self._out.end()

    def _item(self, label: Any, content: Any) -> None:
        words = one_line(label)
        outer = self._out.begin_item(words) if words else None
        if label is not None:
            for reference in label.iter("FnR"):
                self._reference(reference)
        if content is not None:
            self.flow(content)
        self._out.end()
        if outer is not None:
            self._out.outdent(outer)

    # Tables ---------------------------------------------------------------------------------

    def _tables(self, element: Any) -> None:
        self._out.end()
        for child in element.iterchildren("*"):
            if child.tag == "tgroup" and is_cals_grid(child):
                self._table(read_cals(child), source=child, fills=False)
            elif child.tag == "Title":
                self.strong(child)
            else:
                self._child(child, element)
            self._out.text(child.tail)
        self._out.end()

    # Footnotes ------------------------------------------------------------------------------

    def _reference(self, element: Any) -> None:
        target = element.get("ID") or ""
        if target not in self._notes:
            self._lost_references += 1
            return
        self._open()
        self._out.markup(f"[^{self._label(target)}]")

    def _label(self, target: str) -> str:
        return self._labels.setdefault(target, str(len(self._labels) + 1))

    def _footnote(self, element: Any) -> None:
        self._out.end()
        target = element.get("ID") or ""
        if target in self._labels:
            outer = self._out.indent("    ", first=f"[^{self._labels[target]}]: ")
        else:
            outer = self._out.begin_item(
                f"{element.get('FnZ') or '*'}{element.get('Postfix') or ')'}"
            )
        self.flow(element)
        self._out.outdent(outer)

    # Inline ---------------------------------------------------------------------------------

    def _open(self) -> None:
        if not (self._out.is_open or self._in_line):
            self._out.begin()
        self._out.take_break()

    def _break(self, _element: Any) -> None:
        self._out.break_line()

    def _space(self, _element: Any) -> None:
        self._out.space()

    def _raised(self, element: Any) -> None:
        self._tagged(element, element.tag.lower())

    def _quotation(self, element: Any) -> None:
        self._out.text("„" if element.tag == "QuoteL" else "“")

    def _picture(self, element: Any) -> None:
        name = element.get("SRC") or ""
        described = element.get("alt") or name
        self._open()
        self._out.space()
        self._out.artifact("graphic", name)
        self._out.text(f"[{_PICTURES[element.tag]}{described and f': {described}'}]")
        self.flow(element)

    INLINES: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(
            ("F", "NB", "U", "small", "noindex", "Citation", "Revision"), XmlWalker.flow
        ),
        **dict.fromkeys(("I", "SP"), XmlWalker.italic),
        **dict.fromkeys(("SUP", "SUB"), _raised),
        **dict.fromkeys(("BR", "ABWFORMAT"), _break),
        **dict.fromkeys(("QuoteL", "QuoteR"), _quotation),
        **dict.fromkeys(_PICTURES, _picture),
        "B": XmlWalker.bold,
        "Split": _space,
        "FnR": _reference,
        "colspec": XmlWalker.skip,
    }
    BLOCKS: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(("P", "LA", "kommentar", "DT", "DD"), XmlWalker.paragraph),
        **dict.fromkeys(("Title", "Subtitle"), _title),
        **dict.fromkeys(("Content", "text", "textdaten", "Footnotes"), _group),
        **dict.fromkeys(("tgroup", "thead", "tbody", "tfoot", "row"), _group),
        "entry": XmlWalker.paragraph,
        "Ident": XmlWalker.strong,
        "TOC": contents,
        "pre": _preformatted,
        "DL": _list,
        "table": _tables,
        "Footnote": _footnote,
    }


# The publisher's types of a note on the state of the text; a new version is a state, too.
_STATES: Final = {"Neuf": "Stand"}
_NO_TITLES: Final = frozenset({"", "-"})


class NormWalker(TextWalker):
    """Writes one norm, or all norms of an act under the headings of their divisions."""

    def walk(self, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with the given warnings and those met on the way."""
        norms = self._root.iterchildren("norm") if self._root.tag == "dokumente" else [self._root]
        division = 1
        for norm in norms:
            key = norm.findtext("metadaten/gliederungseinheit/gliederungskennzahl")
            division = 1 + len(key) // 3 if key else division
            self._level = 1 if norm is self._root else min(division + 1, MAX_HEADING_LEVEL)
            self._norm(norm, self._level if norm is self._root else division)
        lost = self._lost_references
        missing = (f"reference to a footnote that is not there ({lost}×)",) if lost else ()
        unknown = (
            f"unknown element <{tag}>; its text is kept ({count}×)"
            for tag, count in sorted(self._unknown.items())
        )
        return self._out.finish((*warnings, *missing, *unknown))

    def _norm(self, norm: Any, division: int) -> None:
        metadata = norm.find("metadaten")
        if metadata is not None:
            self._headings(metadata, min(division, MAX_HEADING_LEVEL))
        outer = self._in_contents
        self._in_contents = one_line(norm.find("metadaten/enbez")).startswith("Inhalts")
        for text in norm.iterchildren("textdaten"):
            for part in text.iterchildren("*"):
                self._notes_of(part) if part.tag == "fussnoten" else self._child(part, text)
        self._in_contents = outer
        self._out.end()

    def _headings(self, metadata: Any, division: int) -> None:
        unit = metadata.find("gliederungseinheit")
        if unit is not None:
            number, title = unit.find("gliederungsbez"), unit.find("gliederungstitel")
            self._heading(division, number, title)
        name, title = metadata.find("enbez"), metadata.find("titel")
        if name is not None or (title is not None and unit is None):
            self._heading(self._level, name, title)
        if metadata.find("langue") is not None:
            self._act(metadata)

    def _heading(self, level: int, number: Any, title: Any) -> None:
        label = one_line(number)
        self._out.begin(level=level, section=label or None)
        self._out.text(label)
        if one_line(title) not in _NO_TITLES:
            self._out.space()
            self.flow(title)
        self._out.end()

    def _act(self, metadata: Any) -> None:
        """Write what the publisher prints above an act, in the order of the file."""
        names = [one_line(metadata.find(name)) for name in ("jurabk", "amtabk")]
        self._line(" – ".join(dict.fromkeys(name for name in names if name)))
        if issued := one_line(metadata.find("ausfertigung-datum")):
            self._line(f"Ausfertigungsdatum: {issued}")
        for source in metadata.iterchildren("fundstelle"):
            self._line(
                f"Fundstelle: {' '.join(one_line(part) for part in source.iterchildren('*'))}"
            )
        self._line(one_line(metadata.find("kurzue")))
        self._out.begin(level=1)
        self.flow(metadata.find("langue"))
        self._out.end()
        for state in metadata.iterchildren("standangabe"):
            kind = one_line(state.find("standtyp"))
            self._line(f"{_STATES.get(kind, kind)}: {one_line(state.find('standkommentar'))}")

    def _line(self, text: str) -> None:
        self._out.begin()
        self._out.text(text)
        self._out.end()

    def _notes_of(self, element: Any) -> None:
        """Remarks of the documentation office, which the publisher prints under this word."""
        if one_line(element):
            self._out.begin(level=min(self._level + 1, MAX_HEADING_LEVEL))
            self._out.text("Fußnote")
            self._out.end()
        self._group(element)


_ROOTS: Final = frozenset({"dokumente", "norm"})


class Gii(XmlNormalizer):
    """The normalizer `gii_v1` of one norm, or a whole act."""

    name = "gii_v1"
    version = "1.1.0"

    def _convert(self, data: bytes, _hint: str | None) -> NormalizedBody:
        root, warnings = _read(data)
        return NormWalker(root).walk(warnings)


def _read(data: bytes) -> tuple[Any, tuple[str, ...]]:
    data, warnings = without_nuls(data)
    refuse_unsafe(data, outside_entities=True)
    root = parse_xml(data, remove_pis=True)
    if root.tag not in _ROOTS:
        raise WrongContentError(f"the root element is <{str(root.tag)[:80]}>, not a German norm")
    return root, warnings

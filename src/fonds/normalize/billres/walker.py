"""Markdown from the elements of the bill DTD, with a handler for each kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal

from fonds.model import NormalizedBody
from fonds.normalize.billres.vocabulary import (
    APPROPRIATIONS,
    CONTAINERS,
    FLOWING,
    GROUPS,
    LEVELS,
    METADATA,
    PASSAGES,
    RUNNING,
)
from fonds.normalize.markdown import MarkdownWriter
from fonds.normalize.tables import is_cals_grid, read_cals
from fonds.normalize.walker import MAX_HEADING_LEVEL, Handler, XmlWalker, one_line

_SECTION_WORD: Final = re.compile(r"(?:sec(?:tion\b|tions\b|s?\.)|§)", re.IGNORECASE)
_REVISION: Final = re.compile(r"</?(?:ins|del)>")
_CAPTIONS: Final = frozenset({"ttitle", "tdesc", "title", "subtitle"})
_RUN_IN: Final = LEVELS | {"whereas"}
_BEFORE_TEXT: Final = frozenset({"enum", "header", "pl-cite"})
_REVISIONS: Final[dict[str, Literal["ins", "del"]]] = {
    "added": "ins",
    "deleted": "del",
    # Without `changed`, how the print shows it: struck through, or the committee's italic.
    "strikethrough": "del",
    "italic": "ins",
}
_QUOTES: Final = (("“", "”"), ("‘", "’"))


class BillWriter(MarkdownWriter):
    """A writer that opens blocks, revisions and quotation marks when their first text comes."""

    def __init__(self) -> None:
        super().__init__()
        self.revision: Literal["ins", "del"] | None = None
        """Revision of the text to come: inserted, struck, or none; change it between blocks."""
        self._revision_open = False
        self._in_list = False
        self._quotations: list[bool] = []

    @property
    def quoted(self) -> bool:
        """Whether the text to come is inside a quoted block."""
        return bool(self._quotations)

    def end(self) -> None:
        """Finish the block."""
        self.end_marks()
        super().end()
        self._in_list = False

    def end_marks(self) -> None:
        """Close all marks and the revision; none may reach over blocks or cells."""
        super().end_marks()
        if self._revision_open:
            self.markup(f"</{self.revision}>")
            self._revision_open = False

    def text(self, text: str | None) -> None:
        """Running text, behind the revision and the quotation marks that it begins."""
        if text and not text.isspace():
            if self.revision and not self._revision_open:
                self.markup(f"<{self.revision}>")
                self._revision_open = True
            if self._quotations and not self._quotations[-1] and not self.in_table:
                super().text("“" * self._quotations.count(False))
                self._quotations = [True] * len(self._quotations)
        super().text(text)

    def item(self) -> None:
        """Start an item of a list without numbers."""
        if self._in_list:
            self.line()
        else:
            self.begin()
            self._in_list = True
        self.markup("- ")

    def open_quotation(self) -> None:
        """The next text begins a quotation."""
        self._quotations.append(False)

    def close_quotation(self) -> None:
        """The quotation ends behind the last text, if there was any."""
        if self._quotations.pop():
            self.no_space()
            self.text("”")


class BillWalker(XmlWalker):
    """Writes one document; every word of it, in order."""

    _out: BillWriter

    def __init__(self, root: Any) -> None:
        super().__init__(BillWriter())
        self._root = root
        self._nesting = 0
        self._titled = False
        self._quoting = 0
        self._note_ids = {note.get("id") for note in root.iter("footnote")}
        self._labels: dict[Any, str] = {}
        self._notes: list[tuple[Any, str, Literal["ins", "del"] | None]] = []
        self._in_notes = False

    def walk(self, warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with these warnings and those of the walk."""
        self.flow(self._root)
        self._out.end()
        self._write_notes()
        text = self.finish(warnings)
        headings = (
            replace(heading, text=_REVISION.sub("", heading.text)) for heading in text.headings
        )
        return replace(text, headings=tuple(headings))

    # Blocks -------------------------------------------------------------------------------

    def _begin(self, *, level: int = 0, section: str | None = None) -> None:
        self._out.end()
        self._write_notes()
        self._out.begin(level=level, section=section)

    def _block(self, element: Any, handler: Handler) -> None:
        revision = _revision(element)
        if revision is None or revision == self._out.revision:
            handler(self, element)
            return
        self._out.end()
        previous, self._out.revision = self._out.revision, revision
        handler(self, element)
        self._out.end()
        self._out.revision = previous

    def _is_running(self, parent: Any) -> bool:
        """True in running text; an unknown element is as the one around it."""
        for element in (parent, *parent.iterancestors()):
            if element.tag in RUNNING or element.tag in self.INLINES or _has_own_text(element):
                return True
            if element.tag in self.BLOCKS:
                return False
        return False

    # Structure ----------------------------------------------------------------------------

    def _number(self, element: Any) -> None:
        if self._titled:
            self.strong(element)
            return
        self._titled = True
        self._begin(level=1)
        self.flow(element)
        self._out.end()

    def _section(self, element: Any) -> None:
        enum, header = element.find("enum"), element.find("header")
        number = one_line(enum)
        prefix = "" if not number or _SECTION_WORD.match(number) else self._section_sign(element)
        self._heading(prefix, enum, header, prefix + number if number else None)
        self.flow(element, (enum, header))

    def _section_sign(self, element: Any) -> str:
        quoted = next(element.iterancestors("quoted-block"), None) if self._out.quoted else None
        return "§ " if quoted is not None and quoted.get("style") == "USC" else "Sec. "

    def _container(self, element: Any) -> None:
        enum, header = element.find("enum"), element.find("header")
        number, word = one_line(enum), CONTAINERS[element.tag]
        prefix = "" if not number or number.lower().startswith(word.lower()) else f"{word} "
        self._heading(prefix, enum, header, prefix + number if number else None, dash="—")
        self._nesting += 1
        self.flow(element, (enum, header))
        self._nesting -= 1

    def _heading(
        self, prefix: str, enum: Any, header: Any, label: str | None, dash: str = " "
    ) -> None:
        title = one_line(header)
        self._out.end()
        if not (label or title):
            return
        quoted = self._out.quoted
        level = 0 if quoted else min(2 + self._nesting, MAX_HEADING_LEVEL)
        self._begin(level=level, section=label.rstrip(".—– ") if label else None)
        if quoted:
            self._out.mark("**", "**")
        if label:
            self._out.text(prefix)
            self.flow(enum)
            self._out.no_space()
        if label and title:
            self._out.text(dash if dash == " " or not label.endswith(dash) else "")
        if title:
            self.flow(header)
        if quoted:
            self._out.unmark()
        self._out.end()

    def _appropriation(self, element: Any) -> None:
        header = element.find("header")
        self._heading("", None, header, None)
        self.flow(element, (header,))

    def _level(self, element: Any) -> None:
        previous = element.getprevious()
        runs_in = element.get("display-inline") == "yes-display-inline" and (
            element.getparent().tag in LEVELS
            if previous is None
            else previous.tag == "text" or previous.tag in _BEFORE_TEXT
        )
        if not (runs_in and self._out.is_open):
            self._begin()
        elif previous is not None and previous.tag == "enum":
            self._out.no_space()
        else:
            self._out.space()
        self.flow(element)

    def _enum(self, element: Any) -> None:
        self.flow(element)
        self._out.space()

    def _header(self, element: Any) -> None:
        parent = element.getparent()
        if parent.tag not in LEVELS:
            self.strong(element)
        elif one_line(element):
            # Markdown cannot say small capitals; the dash is how the print sets a run-in heading.
            self._out.space()
            self._emphasize(element, "**")
            self._out.no_space()
            stop = "" if one_line(element)[-1] in ".:?!—" else "."
            self._out.text(stop if element.getnext() is None else f"{stop}—")

    def _text(self, element: Any) -> None:
        previous = element.getprevious()
        follows = previous is None or previous.tag in _BEFORE_TEXT
        runs_in = follows and element.getparent().tag in _RUN_IN and self._out.is_open
        if not runs_in or element.get("display-inline") == "no-display-inline":
            self._begin()
        after_header = previous is not None and previous.tag == "header"
        if not after_header:
            self._out.space()
        self.flow(element)

    def _continuation(self, element: Any) -> None:
        # The block stays open for the closing mark of a quotation.
        self._begin()
        self.flow(element)

    def _quoted_block(self, element: Any) -> None:
        outer = self._out.indent("> ")
        after = element.find("after-quoted-block")
        self._out.open_quotation()
        self.flow(element, (after,))
        self._out.close_quotation()
        if after is not None:
            self._after_quoted_block(after)
        self._out.outdent(outer)

    def _after_quoted_block(self, element: Any) -> None:
        # The punctuation of the sentence that quotes, behind the closing quotation mark.
        self._out.no_space()
        self.flow(element)

    # Lists --------------------------------------------------------------------------------

    def _entry(self, element: Any) -> None:
        if not one_line(element):
            return
        self._out.item()
        self.flow(element)
        self._out.end_marks()

    def _quoted_entries(self, element: Any) -> None:
        self._out.open_quotation()
        self.flow(element)
        self._out.close_quotation()

    # Tables -------------------------------------------------------------------------------

    def _tables(self, element: Any) -> None:
        self._out.end()
        self._out.text(element.text)
        for child in element.iterchildren("*"):
            if child.tag == "tgroup" and is_cals_grid(child):
                self._table(read_cals(child), source=child, fills=False)
            elif child.tag in _CAPTIONS:
                self.strong(child)
            else:
                self._child(child, element)
            self._out.text(child.tail)

    def _begin_if_closed(self) -> None:
        if not (self._out.is_open or self._in_line):
            self._begin()

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
        if self._in_notes:
            return
        self._in_notes = True
        while self._notes:
            element, label, revision = self._notes.pop(0)
            outer = self._out.indent("    ", first=f"[^{label}]: ")
            outer_revision, self._out.revision = self._out.revision, revision
            self._out.begin()
            self.flow(element)
            self._out.end()
            self._out.revision = outer_revision
            self._out.outdent(outer)
        self._in_notes = False

    # Inline --------------------------------------------------------------------------------

    def _raised(self, element: Any) -> None:
        self._tagged(element, "sub" if element.tag == "subscript" else "sup")

    def _phrase(self, element: Any) -> None:
        name = "ins" if element.tag == "added-phrase" else "del"
        if name == self._out.revision:
            self.flow(element)
        else:
            self._tagged(element, name)

    def _quote(self, element: Any) -> None:
        opening, closing = _QUOTES[self._quoting % 2]
        self._quoting += 1
        self._out.text(opening)
        self.flow(element)
        self._out.no_space()
        self._out.text(closing)
        self._quoting -= 1

    def _fraction(self, element: Any) -> None:
        # 12<fraction>1/2</fraction> is twelve and a half.
        self._out.space()
        self.flow(element)

    def _line_break(self, _element: Any) -> None:
        self._out.space()

    def _omission(self, _element: Any) -> None:
        # Printed as asterisks; bare ones would be emphasis or a horizontal rule.
        self._out.space()
        self._out.text("* * * * *")
        self._out.space()

    def _graphic(self, element: Any) -> None:
        """Write a place mark for what only an image shows; its name or data goes beside it."""
        kind = "formula" if element.getparent().tag == "formula" else "graphic"
        name = element.get("file") or element.get("graphic-desc") or ""
        data = element.find("image-data")
        self._begin_if_closed()
        self._out.space()
        self._out.artifact(kind, name or one_line(data))
        self._out.text(f"[{kind.capitalize()}{name and f' {name}'}]")
        self.flow(element, (data,))

    INLINES: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(FLOWING, XmlWalker.flow),
        "quote": _quote,
        "term": _quote,
        "italic": XmlWalker.italic,
        "bold": XmlWalker.bold,
        "superscript": _raised,
        "subscript": _raised,
        "fraction": _fraction,
        "added-phrase": _phrase,
        "deleted-phrase": _phrase,
        "footnote": _footnote,
        "footnote-ref": _footnote_reference,
        "formula": XmlWalker.flow,
        "linebreak": _line_break,
        "omitted-text": _omission,
        "toc-enum": XmlWalker.spaced,
        "level-header": XmlWalker.spaced,
        "target": XmlWalker.spaced,
        "page-num": XmlWalker.spaced,
    }
    BLOCKS: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(PASSAGES, XmlWalker.paragraph),
        **dict.fromkeys(GROUPS, XmlWalker.flow),
        **dict.fromkeys((*METADATA, "colspec", "image-data"), XmlWalker.skip),
        **dict.fromkeys(LEVELS, _level),
        **dict.fromkeys(CONTAINERS, _container),
        **dict.fromkeys(APPROPRIATIONS, _appropriation),
        "section": _section,
        "legis-num": _number,
        "legis-type": XmlWalker.strong,
        "official-title": XmlWalker.paragraph,
        "action-desc": XmlWalker.paragraph,
        "enum": _enum,
        "header": _header,
        "committee-report-header": XmlWalker.strong,
        "subheader": XmlWalker.strong,
        "text": _text,
        "continuation-text": _continuation,
        "quoted-block-continuation-text": _continuation,
        "quoted-block": _quoted_block,
        "after-quoted-block": _after_quoted_block,
        "whereas": XmlWalker.paragraph,
        "para": XmlWalker.paragraph,
        "legis-comment": XmlWalker.paragraph,
        "toc": XmlWalker.flow,
        "list": XmlWalker.flow,
        "toc-entry": _entry,
        "multi-column-toc-entry": _entry,
        "list-item": _entry,
        "toc-quoted-entry": _quoted_entries,
        "multi-column-toc-quoted-entry": _quoted_entries,
        "instructive-para": XmlWalker.paragraph,
        "graphic": _graphic,
        "table": _tables,
    }


def _has_own_text(element: Any) -> bool:
    texts = (element.text, *(child.tail for child in element))
    return any(text and not text.isspace() for text in texts)


def _revision(element: Any) -> Literal["ins", "del"] | None:
    """How an element is revised; one that says nothing, or `not-changed`, is as its parent."""
    changed = element.get("changed")
    if changed is None:
        changed = element.get("reported-display-style")
    return None if changed is None else _REVISIONS.get(changed)

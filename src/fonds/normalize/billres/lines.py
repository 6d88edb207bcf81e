"""What stands within a line of a bill: quotations, emphasis, revisions, footnotes, figures.

With the vocabulary of the House and Senate bill DTD, and the Markdown that bills need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal

from fonds.errors import MalformedError
from fonds.normalize.markdown import MarkdownWriter

# Twice what the largest act needs (18), and well within Python's own limit.
DEEPEST: Final = 100
DEEPEST_HEADING: Final = 6

METADATA: Final = frozenset({"metadata", "meta-house", "meta-senate"})

CONTAINERS: Final = {
    "division": "Division",
    "subdivision": "Subdivision",
    "title": "Title",
    "subtitle": "Subtitle",
    "chapter": "Chapter",
    "subchapter": "Subchapter",
    "part": "Part",
    "subpart": "Subpart",
    "rule": "Rule",
    "constitution-article": "Article",
}
"""What holds sections, and the word the print sets before its number."""

APPROPRIATIONS: Final = frozenset(
    {"appropriations-major", "appropriations-intermediate", "appropriations-small"}
)
LEVELS: Final = frozenset(
    """
    subsection paragraph subparagraph clause subclause item subitem
    rules-clause rules-paragraph rules-subparagraph rules-subdivision rules-item rules-subitem
    committee-appointment-paragraph committee-report-segment committee-report-para
    amendment-instruction instruction-paragraph instruction-subparagraph
    """.split()  # noqa: SIM905 — a list of words reads better than a page of quotation marks
)
"""What has a number, perhaps a heading that runs into its text, and levels below."""

RUNNING: Final = frozenset(
    """
    text continuation-text quoted-block-continuation-text header subheader enum enum-in-header
    whereas para list-item toc-entry official-title action-desc after-quoted-block entry
    committee-report-header instructive-para level-header footnote legis-comment
    """.split()  # noqa: SIM905 — a list of words reads better than a page of quotation marks
)
"""What holds running text, so that a stranger in it stands within a line."""

FLOWING: Final = frozenset(
    """
    internal-xref external-xref act-name definition header-in-text enum-in-header committee-name
    debate-time sponsor cosponsor nonsponsor short-title editorial proviso effective-date
    inline-comment cato-ref nobreak pagebreak marker
    """.split()  # noqa: SIM905 — a list of words reads better than a page of quotation marks
)
"""What stands within a line and is set like the text around it, or is empty."""

GROUPS: Final = frozenset(
    """
    pre-form form amendment-form conference-report-form engrossed-amendment-form action
    legis-body resolution-body amendment-body engrossed-amendment-body amendment amendment-block
    amendment-list preamble preamble-amends title-amends attestation attestation-group conferees
    legislators endorsement non-statutory-material tgroup thead tbody tfoot row
    """.split()  # noqa: SIM905 — a list of words reads better than a page of quotation marks
)
"""What only holds other blocks."""

PASSAGES: Final = frozenset(
    """
    distribution-code calendar congress session enrolled-dateline associated-doc current-chamber
    action-date action-instruction amend-num purpose report-num report-title
    official-title-amendment author-note running-header suspension-floor-action
    suspension-instructions legis-counsel reintroduction-code signature-line first-page-header
    first-page-date first-page-desc attestation-date attestor proxy role
    consideration-paragraph legislator impeachment-resolution-signature rules-clause-header
    graphic-caption ttitle tdesc entry pl-cite
    """.split()  # noqa: SIM905 — a list of words reads better than a page of quotation marks
)
"""What is one paragraph."""


class BillWriter(MarkdownWriter):
    """A writer that opens blocks, revisions and quotation marks when their first text comes."""

    def __init__(self) -> None:
        super().__init__()
        self.revision: Literal["ins", "del"] | None = None
        """What the text to come is: inserted, struck, or neither; change it between blocks."""
        self._revision_open = False
        self._in_list = False
        self._quotations: list[bool] = []

    @property
    def quoted(self) -> bool:
        """Whether the text to come is inside a quoted block."""
        return bool(self._quotations)

    def end(self) -> None:
        """Finish the block."""
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


_QUOTES: Final = (("“", "”"), ("‘", "’"))


class BillLineWalker(ABC):
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
        self._out.text(element.text)
        for child in element.iterchildren("*"):
            if child not in skip:
                self._child(child, element)
            tail = child.tail
            if tail and not tail.isspace() and self._is_block(child.tag):
                self._out.end()
            self._out.text(tail)

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
        self._INLINES.get(element.tag, BillLineWalker.flow)(self, element)
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
        self._out.text(opening)
        self.flow(element)
        self._out.no_space()
        self._out.text(closing)
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
        self._out.text("* * * * *")
        self._out.space()

    def figure(self, element: Any) -> None:
        """Write a place mark for what only an image shows; its name or data goes beside it."""
        kind = "formula" if element.getparent().tag == "formula" else "graphic"
        name = element.get("file") or element.get("graphic-desc") or ""
        data = element.find("image-data")
        self._begin_if_closed()
        self._out.space()
        self._out.artifact(kind, name or words_of(data))
        self._out.text(f"[{kind.capitalize()}{name and f' {name}'}]")
        self.flow(element, (data,))

    _INLINES: ClassVar[dict[str, Callable[[BillLineWalker, Any], None]]] = {
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

"""Japanese law in the XML of e-Gov (schema version 3) as Markdown.

A reading set beside a word (`<Ruby>瑕疵<Rt>かし</Rt></Ruby>`) follows it in brackets: 瑕疵（かし）.
Items and their subdivisions stand on lines of their own, an em space further in at each level.

The elements of the Japanese law schema (version 3), by how they are written.

From the elements of the Japanese law schema to Markdown, one handler for each kind.

Tables of the Japanese law schema, read as rows; spans are named as in HTML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fonds.errors import MalformedError, WrongContentError
from fonds.model import BodyFormat, NormalizedBody
from fonds.normalize.markdown import MarkdownWriter
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls
from fonds.normalize.tables import (
    Grid,
    GridRow,
    arrange_cells,
    html_span,
    texts_between_cells,
    write_table,
)

DEEPEST: Final = 100
"""Elements are never nested so deep; a file that does it means harm."""

CONTAINERS: Final = ("Part", "Subpart", "Chapter", "Section", "Subsection", "Division")
"""`Subpart` is not in the schema; translators of laws with one more level add it."""

APPENDICES: Final = (
    "AppdxTable",
    "AppdxNote",
    "AppdxStyle",
    "AppdxFormat",
    "AppdxFig",
    "Appdx",
    "SupplProvisionAppdxTable",
    "SupplProvisionAppdxStyle",
    "SupplProvisionAppdx",
)

HEADED: Final = frozenset({"LawBody", "Article", "SupplProvision", *CONTAINERS, *APPENDICES})
"""Each is a level of headings."""

HEADS: Final = (
    "LawTitle",
    "SupplProvisionLabel",
    *(f"{name}Title" for name in CONTAINERS),
    *(f"{name}Title" for name in APPENDICES),
    "ArithFormulaNum",
    "RelatedArticleNum",
    # In a file the caption precedes the number, in print it stands above it, in a citation behind.
    "ArticleTitle",
    "ArticleCaption",
)
"""What a heading is made of, in the order in which it is written."""

CONTENTS: Final = frozenset(
    {*(f"TOC{name}" for name in CONTAINERS), "TOCArticle", "TOCSupplProvision"}
)

_SUBITEMS: Final = tuple(f"Subitem{level}" for level in range(1, 11))
_LISTS: Final = ("List", "Sublist1", "Sublist2", "Sublist3")

INDENTED: Final = frozenset({"Item", "Class", *_SUBITEMS, *_LISTS})
"""Each stands one step to the right of what is around it."""

LABELS: Final = frozenset(
    {
        "ParagraphNum",
        "ItemTitle",
        "ClassTitle",
        "RemarksLabel",
        *(f"{name}Title" for name in _SUBITEMS),
    }
)
"""The next sentence continues the line."""

SENTENCES: Final = frozenset(
    {
        "ParagraphSentence",
        "ItemSentence",
        "ClassSentence",
        "AmendProvisionSentence",
        *(f"{name}Sentence" for name in (*_SUBITEMS, *_LISTS)),
    }
)
"""One paragraph each, of sentences, of columns, or a table."""

ANY: Final = frozenset({"Note", "Style", "Format", "QuoteStruct", "ArithFormula"})
"""Text and any other element."""

LINES: Final = frozenset(
    {
        "LawNum",
        "EnactStatement",
        "TOCLabel",
        "TOCPreambleLabel",
        "TOCAppdxTableLabel",
        "ArticleRange",
        "ParagraphCaption",
        "SupplNote",
        "TableStructTitle",
        "FigStructTitle",
        "NoteStructTitle",
        "StyleStructTitle",
        "FormatStructTitle",
    }
)
"""A paragraph each."""

INLINE: Final = frozenset({"Sentence", "Column", "Line", "Ruby", "Rt", "Sup", "Sub", "Fig"})

_ROWS: Final = ("TableRow", "TableHeaderRow")
TABLE: Final = frozenset({"Table", "TableHeaderRow", "TableRow", "TableHeaderColumn"})

GROUPS: Final = frozenset(
    {
        "Law",
        "LawBody",
        "TOC",
        "Preamble",
        "MainProvision",
        "Paragraph",
        "AmendProvision",
        "NewProvision",
        "TableStruct",
        "FigStruct",
        "NoteStruct",
        "StyleStruct",
        "FormatStruct",
        "Remarks",
        "TableColumn",
    }
)

MIXED: Final = (
    frozenset({"Sentence", "Line", "Ruby", "Rt", "Sup", "Sub", "TableHeaderColumn", *HEADS})
    | LABELS
    | LINES
    | ANY
)
"""White space in them may mean a space; between other elements it is the file's layout."""

KNOWN: Final = (
    HEADED | CONTENTS | INDENTED | LABELS | SENTENCES | ANY | LINES | INLINE | TABLE | GROUPS
).union(HEADS)


def read_table(table: Any) -> Grid:
    """The grid of a `Table`; spans are named as in HTML."""
    rows = list(table.iterchildren("*"))
    arranged, has_spans = arrange_cells(
        (row.iterchildren("*") if row.tag in _ROWS else [row] for row in rows),
        html_span,
    )
    cells = [
        [tuple(part for own in cell for part in _blocks_of(own)) for cell in row]
        for row in arranged
    ]
    head = cells.pop(0) if rows and rows[0].tag == "TableHeaderRow" else []
    return Grid(head=head, rows=list(map(GridRow, cells)), has_spans=has_spans)


_DEEPEST_HEADING: Final = 6
_STEP: Final = "\u2003"
"""One step to the right: an em space, which renderers keep and no list begins with."""
_RUNNING: Final = INLINE | ANY


class EgovWalker:
    """Writes one element and all below it; every word of it, in order."""

    def __init__(self) -> None:
        self._out = MarkdownWriter()
        self._depth = 0
        self._headings = 0
        self._flat = False
        """In a cell of a table, where everything must stand on one line."""
        self._quoted = False
        self._unknown: Counter[str] = Counter()

    def walk(self, elements: Iterable[Any], warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with the given warnings and those met on the way."""
        for element in elements:
            self._block(element)
        unknown = [
            f"unknown element <{tag}> ({count}×); its text is kept"
            for tag, count in sorted(self._unknown.items())
        ]
        return self._out.finish((*warnings, *unknown))

    # Blocks -------------------------------------------------------------------------------

    def _block(self, element: Any) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise MalformedError(f"elements are nested more than {DEEPEST} deep")
        if element.tag not in KNOWN:
            self._unknown[element.tag] += 1
        default = EgovWalker._flow if _is_in_text(element) else EgovWalker._paragraph
        self._HANDLERS.get(element.tag, default)(self, element)
        self._depth -= 1

    def _begin(self) -> None:
        if self._flat:
            self._out.space()
        else:
            self._out.begin()

    def _end(self) -> None:
        if self._flat:
            self._out.space()
        else:
            self._out.end()

    def _paragraph(self, element: Any) -> None:
        self._begin()
        self._flow(element)
        self._end()

    def _group(self, element: Any) -> None:
        self._end()
        self._flow(element)
        self._end()

    def _label(self, element: Any) -> None:
        self._begin()
        self._flow(element)
        if self._flat:
            self._out.space()
        else:
            self._out.run_in()

    def _within(self, prefix: str, element: Any) -> None:
        if self._flat:
            self._group(element)
            return
        former = self._out.indent(prefix)
        self._flow(element)
        self._out.outdent(former)

    def _indented(self, element: Any) -> None:
        self._within(_STEP, element)

    def _quotation(self, element: Any) -> None:
        """New wording of another law: its headings are none of this text."""
        former, self._quoted = self._quoted, True
        self._within("> ", element)
        self._quoted = former

    def _anything(self, element: Any) -> None:
        """Part of the sentence around it, unless it holds blocks of its own."""
        if not all(child.tag in _RUNNING for child in element.iterdescendants("*")):
            self._quotation(element) if element.tag == "QuoteStruct" else self._group(element)
        elif _is_in_text(element):
            self._flow(element)
        else:
            self._paragraph(element)

    def _flow(self, element: Any) -> None:
        """Text and children in order; a block child interrupts the paragraph around it."""
        mixed = element.tag in MIXED
        self._run(element.text, mixed=mixed)
        for child in element:
            if isinstance(child.tag, str):
                self._block(child)
            self._run(child.tail, mixed=mixed)

    def _run(self, text: str | None, *, mixed: bool) -> None:
        if text and (mixed or not text.isspace()):
            self._out.text(text)

    # Headings -----------------------------------------------------------------------------

    def _headed(self, element: Any) -> None:
        self._end()
        heads = _heads(element)
        self._headings += 1
        if heads and not (self._flat or self._quoted):
            level = min(self._headings, _DEEPEST_HEADING)
            self._out.begin(level=level, section=_plain(heads[0]))
        self._write_heads(heads)
        self._rest(element, heads)
        self._headings -= 1

    def _write_heads(self, heads: list[Any]) -> None:
        for position, head in enumerate(heads):
            if position and not _plain(head).startswith("（"):
                self._out.space()
            self._flow(head)
        if heads:
            self._end()

    def _contents_line(self, element: Any) -> None:
        self._begin()
        heads = [*_heads(element), *element.iterchildren("ArticleRange")]
        self._write_heads(heads)
        former = "" if self._flat else self._out.indent(_STEP)
        self._rest(element, heads)
        if not self._flat:
            self._out.outdent(former)

    def _rest(self, element: Any, heads: list[Any]) -> None:
        self._run(element.text, mixed=False)
        for child in element:
            if isinstance(child.tag, str) and child not in heads:
                self._block(child)
            self._run(child.tail, mixed=False)
        self._end()

    # Inline -------------------------------------------------------------------------------

    def _sentence(self, element: Any) -> None:
        self._flow(element)
        # Japanese sentences follow each other without a space, translated ones do not.
        if _plain(element)[-1:].isascii():
            self._out.space()

    def _column(self, element: Any) -> None:
        self._out.space()
        self._flow(element)
        self._out.space()

    def _reading(self, element: Any) -> None:
        # The word stays whole for search, and its reading is a word of its own.
        if reading := _plain(element):
            self._out.text(f"（{reading}）")

    def _raised(self, element: Any) -> None:
        tag = element.tag.lower()
        self._out.mark(f"<{tag}>", f"</{tag}>")
        self._flow(element)
        self._out.unmark()

    def _figure(self, element: Any) -> None:
        name = element.get("src", "")
        self._out.artifact("figure", name)
        self._out.text(f"[図 {name}]")
        self._flow(element)

    # Tables -------------------------------------------------------------------------------

    def _table(self, element: Any) -> None:
        if self._flat:
            self._group(element)
            return
        self._end()
        frames = [element, *element.iterchildren(*_ROWS)]
        self._out.text(" ".join(texts_between_cells(frames)))
        self._out.begin()
        self._flat = True
        write_table(self._out, read_table(element), self._block, source=element)
        self._flat = False

    _HANDLERS: ClassVar[dict[str, Callable[[EgovWalker, Any], None]]] = {
        **dict.fromkeys(GROUPS, _group),
        **dict.fromkeys(HEADED, _headed),
        **dict.fromkeys(CONTENTS, _contents_line),
        **dict.fromkeys(INDENTED, _indented),
        **dict.fromkeys(LABELS, _label),
        **dict.fromkeys(ANY, _anything),
        "NewProvision": _quotation,
        "Sentence": _sentence,
        "Column": _column,
        "Line": _flow,
        "Ruby": _flow,
        "Rt": _reading,
        "Sup": _raised,
        "Sub": _raised,
        "Fig": _figure,
        "Table": _table,
        "TableRow": _group,
        "TableHeaderRow": _group,
        "TableHeaderColumn": _group,
    }


def _heads(element: Any) -> list[Any]:
    return sorted(element.iterchildren(*HEADS), key=lambda head: HEADS.index(head.tag))


def _blocks_of(cell: Any) -> list[Any]:
    """What stands in a cell: its blocks, or the cell itself where it is mere text."""
    own = [cell.text, *(child.tail for child in cell)]
    if cell.tag != "TableColumn" or any(text and text.strip() for text in own):
        return [cell] if _plain(cell) else []
    return [block for block in cell.iterchildren("*") if _plain(block) or _shows(block)]


def _shows(block: Any) -> bool:
    return next(block.iter("Fig"), None) is not None


def _is_in_text(element: Any) -> bool:
    parent = element.getparent()
    return parent is not None and parent.tag in MIXED


def _plain(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


_PROLOGUE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[?!]")
_BOM: Final = b"\xef\xbb\xbf"
_SEVERAL: Final = "Fragment"


@dataclass(frozen=True, slots=True)
class Egov:
    """The normalizer `egov_v1`."""

    name: str = "egov_v1"
    version: str = "1.0.0"
    accepts_format: BodyFormat = "xml"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

    def to_markdown(
        self,
        data: bytes,
        source_hint: str | None = None,  # noqa: ARG002 — the protocol's; a file says what it is
    ) -> NormalizedBody:
        """A law, an article, or any run of the schema's elements as Markdown."""
        data, warnings = without_nuls(data)
        refuse_unsafe(data)
        elements = _elements(data)
        body = EgovWalker().walk(elements, warnings)
        if not body.markdown:
            raise WrongContentError(f"<{elements[0].tag}> holds no text")
        return body


def _elements(data: bytes) -> list[Any]:
    """What is to be written: the law of a whole file, or the elements of a piece of one."""
    if _PROLOGUE.match(data):
        root = parse_xml(data)
        found = [root]
    else:
        several = f"<{_SEVERAL}>".encode() + data.removeprefix(_BOM) + f"</{_SEVERAL}>".encode()
        root = parse_xml(several)
        found = list(root.iterchildren("*"))
    if found and found[0].tag not in KNOWN:
        # The answer of the API wraps the law.
        found = list(found[0].iter("Law"))[:1] or found
    if not any(element.tag in KNOWN for one in found for element in one.iter("*")):
        raise WrongContentError("no element of the Japanese law schema is in it")
    return found

"""Japanese law in the XML of e-Gov (schema version 3) as Markdown.

A reading set beside a word (`<Ruby>瑕疵<Rt>かし</Rt></Ruby>`) follows it in brackets: 瑕疵（かし）.
Items and their subdivisions are on lines of their own, indented by an em space at each level.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import Any, ClassVar, Final

from fonds.errors import WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.markdown import MarkdownWriter
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe, without_nuls
from fonds.normalize.tables import (
    Grid,
    GridRow,
    arrange_cells,
    html_span,
    texts_between_cells,
)
from fonds.normalize.walker import (
    MAX_HEADING_LEVEL,
    Handler,
    XmlNormalizer,
    XmlWalker,
    one_line,
)

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
"""Elements that are each a level of headings."""

HEADS: Final = (
    "LawTitle",
    "SupplProvisionLabel",
    *(f"{name}Title" for name in CONTAINERS),
    *(f"{name}Title" for name in APPENDICES),
    "ArithFormulaNum",
    "RelatedArticleNum",
    "ArticleTitle",
    "ArticleCaption",
)
"""The parts of a heading. A caption precedes the number in the file, as it is above it in print."""

CONTENTS: Final = frozenset(
    {*(f"TOC{name}" for name in CONTAINERS), "TOCArticle", "TOCSupplProvision"}
)

_SUBITEMS: Final = tuple(f"Subitem{level}" for level in range(1, 11))
_LISTS: Final = ("List", "Sublist1", "Sublist2", "Sublist3")

INDENTED: Final = frozenset({"Item", "Class", *_SUBITEMS, *_LISTS})
"""Elements that are indented by one step."""

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

ELEMENTS: Final = (
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


_STEP: Final = "\u2003"
"""One step to the right: an em space, which renderers keep and no list begins with."""
_RUNNING: Final = INLINE | ANY


class EgovWalker(XmlWalker):
    """Writes one element and all below it; every word of it, in order."""

    def __init__(self) -> None:
        super().__init__(MarkdownWriter())
        self._headings = 0
        self._quoted = False

    def walk(self, elements: Iterable[Any], warnings: tuple[str, ...]) -> NormalizedBody:
        """The Markdown, with these warnings and those of the walk."""
        for element in elements:
            self._cell(element)
        return self.finish(warnings)

    def _cell(self, element: Any) -> None:
        self._child(element, element.getparent())

    def _is_running(self, parent: Any) -> bool:
        return parent is not None and parent.tag in MIXED

    def flow(self, element: Any, skip: Container[Any] = ()) -> None:
        """Text and children in order; white space between blocks is the layout of the file."""
        is_mixed = element.tag in MIXED
        self._run_mixed(element.text, is_mixed=is_mixed)
        for child in element:
            if isinstance(child.tag, str) and child not in skip:
                self._child(child, element)
            self._run_mixed(child.tail, is_mixed=is_mixed)

    def _run_mixed(self, text: str | None, *, is_mixed: bool) -> None:
        if text and (is_mixed or not text.isspace()):
            self._out.text(text)

    # Blocks -------------------------------------------------------------------------------

    def _line(self, element: Any) -> None:
        if self._is_running(element.getparent()):
            self.flow(element)
        elif self._in_line:
            self.spaced(element)
        else:
            self.paragraph(element)

    def _group(self, element: Any) -> None:
        self._end()
        self.flow(element)
        self._end()

    def _label(self, element: Any) -> None:
        self._begin()
        self.flow(element)
        self._out.run_in()

    def _within(self, prefix: str, element: Any) -> None:
        outer = self._out.indent(prefix)
        self.flow(element)
        self._out.outdent(outer)

    def _indented(self, element: Any) -> None:
        self._within(_STEP, element)

    def _quotation(self, element: Any) -> None:
        """Write new wording of another law: its headings are not headings of this text."""
        outer, self._quoted = self._quoted, True
        self._within("> ", element)
        self._quoted = outer

    def _anything(self, element: Any) -> None:
        """Part of the sentence around it, unless it holds blocks of its own."""
        if not all(child.tag in _RUNNING for child in element.iterdescendants("*")):
            if self._in_line:
                self.spaced(element)
            elif element.tag == "QuoteStruct":
                self._quotation(element)
            else:
                self._group(element)
        else:
            self._line(element)

    # Headings -----------------------------------------------------------------------------

    def _headed(self, element: Any) -> None:
        self._end()
        heads = _heads(element)
        self._headings += 1
        if heads and not self._quoted:
            level = min(self._headings, MAX_HEADING_LEVEL)
            label = min(heads, key=lambda head: HEADS.index(head.tag))
            self._begin(level=level, section=one_line(label))
        self._write_heads(heads)
        self.flow(element, heads)
        self._end()
        self._headings -= 1

    def _write_heads(self, heads: list[Any]) -> None:
        for position, head in enumerate(heads):
            in_brackets = one_line(head).startswith("（") or (
                position and one_line(heads[position - 1]).endswith("）")
            )
            if position and not in_brackets:
                self._out.space()
            self.flow(head)
        if heads:
            self._end()

    def _contents_line(self, element: Any) -> None:
        self._begin()
        heads = [*_heads(element), *element.iterchildren("ArticleRange")]
        self._write_heads(heads)
        outer = self._out.indent(_STEP)
        self.flow(element, heads)
        self._out.outdent(outer)

    # Inline -------------------------------------------------------------------------------

    def _sentence(self, element: Any) -> None:
        self.flow(element)
        # Japanese sentences follow each other without a space, translated ones do not.
        if one_line(element)[-1:].isascii():
            self._out.space()

    def _reading(self, element: Any) -> None:
        # The word stays whole for search, and its reading is a word of its own.
        if reading := one_line(element):
            self._out.text(f"（{reading}）")

    def _raised(self, element: Any) -> None:
        self._tagged(element, element.tag.lower())

    def _graphic(self, element: Any) -> None:
        name = element.get("src", "")
        self._out.artifact("figure", name)
        self._out.text(f"[図 {name}]")
        self.flow(element)

    # Tables -------------------------------------------------------------------------------

    def _tables(self, element: Any) -> None:
        self._end()
        frames = [element, *element.iterchildren(*_ROWS)]
        self._out.text(" ".join(texts_between_cells(frames)))
        self._table(read_table(element), source=element)

    INLINES: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(ANY, _anything),
        "Sentence": _sentence,
        "Column": XmlWalker.spaced,
        "Line": flow,
        "Ruby": flow,
        "Rt": _reading,
        "Sup": _raised,
        "Sub": _raised,
        "Fig": _graphic,
    }
    BLOCKS: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys((*SENTENCES, *LINES, *HEADS), _line),
        **dict.fromkeys(GROUPS, _group),
        **dict.fromkeys(HEADED, _headed),
        **dict.fromkeys(CONTENTS, _contents_line),
        **dict.fromkeys(INDENTED, _indented),
        **dict.fromkeys(LABELS, _label),
        **dict.fromkeys(("TableRow", "TableHeaderRow", "TableHeaderColumn"), _group),
        "NewProvision": _quotation,
        "Table": _tables,
    }


def _heads(element: Any) -> list[Any]:
    return list(element.iterchildren(*HEADS))


def _blocks_of(cell: Any) -> list[Any]:
    """The blocks in a cell, or the cell itself if it contains only text."""
    own = [cell.text, *(child.tail for child in cell)]
    if cell.tag != "TableColumn" or any(text and text.strip() for text in own):
        return [cell] if one_line(cell) else []
    return [block for block in cell.iterchildren("*") if one_line(block) or _has_picture(block)]


def _has_picture(block: Any) -> bool:
    return next(block.iter("Fig"), None) is not None


_PROLOGUE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[?!]")
_BOM: Final = b"\xef\xbb\xbf"
_SEVERAL: Final = "Fragment"


class Egov(XmlNormalizer):
    """The normalizer `egov_v1` of a law, an article, or any run of the schema's elements."""

    name = "egov_v1"
    version = "1.1.0"

    def _convert(self, data: bytes, _hint: str | None) -> NormalizedBody:
        data, warnings = without_nuls(data)
        refuse_unsafe(data)
        return EgovWalker().walk(_elements(data), warnings)


def _elements(data: bytes) -> list[Any]:
    """The law in a whole file, or the elements of a part of one."""
    if _PROLOGUE.match(data):
        root = parse_xml(data)
        elements = [root]
    else:
        several = f"<{_SEVERAL}>".encode() + data.removeprefix(_BOM) + f"</{_SEVERAL}>".encode()
        root = parse_xml(several)
        elements = list(root.iterchildren("*"))
    if elements and elements[0].tag not in ELEMENTS:
        # The answer of the API wraps the law.
        elements = list(elements[0].iter("Law"))[:1] or elements
    if not any(element.tag in ELEMENTS for one in elements for element in one.iter("*")):
        raise WrongContentError("no element of the Japanese law schema is in it")
    return elements

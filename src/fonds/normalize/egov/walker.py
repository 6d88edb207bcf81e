"""From the elements of the Japanese law schema to Markdown, one handler for each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

from lxml import etree

from fonds.errors import MalformedError
from fonds.model import NormalizedBody
from fonds.normalize.egov import vocabulary as words
from fonds.normalize.egov.table import Rows, loose_text, read_rows
from fonds.normalize.markdown import MarkdownWriter

_DEEPEST_HEADING: Final = 6
_STEP: Final = "\u2003"
"""One step to the right: an em space, which renderers keep and no list begins with."""
_RUNNING: Final = words.INLINE | words.ANY


class Walker:
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
        if self._depth > words.DEEPEST:
            raise MalformedError(f"elements are nested more than {words.DEEPEST} deep")
        if element.tag not in words.KNOWN:
            self._unknown[element.tag] += 1
        default = Walker._flow if _is_in_text(element) else Walker._paragraph
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
        mixed = element.tag in words.MIXED
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
        self._out.emphasis(f"<{tag}>")
        self._flow(element)
        self._out.close(f"</{tag}>")

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
        self._out.text(loose_text(element))
        self._out.begin()
        rows = read_rows(element)
        if rows.spanned:
            source = etree.tostring(element, encoding="unicode", with_tail=False)
            self._out.artifact("table", source)
        self._out.in_table = self._flat = True
        self._draw(rows)
        self._out.in_table = self._flat = False
        self._out.end()

    def _draw(self, rows: Rows) -> None:
        self._out.row(_pieces(rows.head), rows.columns, self._block)
        self._out.line()
        self._out.markup("|" + " --- |" * rows.columns)
        for row in rows.body:
            self._out.line()
            self._out.row(_pieces(row), rows.columns, self._block)

    _HANDLERS: ClassVar[dict[str, Callable[[Walker, Any], None]]] = {
        **dict.fromkeys(words.GROUPS, _group),
        **dict.fromkeys(words.HEADED, _headed),
        **dict.fromkeys(words.CONTENTS, _contents_line),
        **dict.fromkeys(words.INDENTED, _indented),
        **dict.fromkeys(words.LABELS, _label),
        **dict.fromkeys(words.ANY, _anything),
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
    return sorted(element.iterchildren(*words.HEADS), key=lambda head: words.HEADS.index(head.tag))


def _pieces(row: tuple[Any | None, ...]) -> list[list[Any]]:
    return [_blocks_of(cell) for cell in row]


def _blocks_of(cell: Any | None) -> list[Any]:
    """What stands in a cell: its blocks, or the cell itself where it is mere text."""
    if cell is None:
        return []
    own = [cell.text, *(child.tail for child in cell)]
    if cell.tag != "TableColumn" or any(text and text.strip() for text in own):
        return [cell] if _plain(cell) else []
    return [block for block in cell.iterchildren("*") if _plain(block) or _shows(block)]


def _shows(block: Any) -> bool:
    return next(block.iter("Fig"), None) is not None


def _is_in_text(element: Any) -> bool:
    parent = element.getparent()
    return parent is not None and parent.tag in words.MIXED


def _plain(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())

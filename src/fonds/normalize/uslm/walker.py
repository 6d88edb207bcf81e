"""From the elements of United States Legislative Markup to Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from typing import Any, ClassVar, Final

from lxml import etree

from fonds.normalize import markdown as marks
from fonds.normalize.tables import local_name, read_xhtml
from fonds.normalize.uslm import vocabulary as words
from fonds.normalize.uslm.flow import FOOTNOTES, Flow, Handler

_MAX_CONTAINER_LEVEL: Final = 4
_MAX_SECTION_LEVEL: Final = 5
_MAX_HEADING_LEVEL: Final = 6
_NO_LABEL: Final = "[]()“”‘’\"'.,:;—–-* "
_MARKS_OF_CHANGE: Final = {
    "added": (marks.INS, marks.INS_END),
    "deleted": (marks.DEL, marks.DEL_END),
}
_ROWS: Final = frozenset({"tocItem", "header", "referenceItem", "headingItem"})


class UslmWalker(Flow):
    """Writes one element and all below it: levels, quotations and tables."""

    def _container(self, element: Any) -> None:
        self._titled(element, min(self._outer + 1, _MAX_CONTAINER_LEVEL))

    def _section(self, element: Any) -> None:
        self._titled(element, min(self._outer + 1, _MAX_SECTION_LEVEL))

    def _generic_level(self, element: Any) -> None:
        # `level` is a group of sections in one title and an item of a list in another.
        if self._levels:
            self._level(element)
        else:
            self._container(element)

    def _titled(self, element: Any, level: int) -> None:
        self._end()
        outer = self._outer, self._crossed, self._levels, self._out.indent
        self._crossed, self._levels, self._out.indent = False, 0, 0
        if (label := _header(element)) is not None:
            self._outer = level
            self._out.level = marks.STRONG if self._quoted else level
            self._out.section = label or None
        self._inside(element)
        self._outer, self._crossed, self._levels, self._out.indent = outer

    def _level(self, element: Any) -> None:
        self._end()
        self._out.indent = self._levels
        self._levels += 1
        self._inside(element)
        self._levels -= 1
        self._out.indent = max(self._levels - 1, 0)

    def _number(self, element: Any) -> None:
        self._flow(element)
        if self._parts and self._parts[-1][-1:] != "—":
            self._put(" ")
        self._label_end = len(self._parts)

    def _heading(self, element: Any) -> None:
        if self._out.level:
            self._flow(element)
            self._put(" ")
            return
        start = len(self._parts)
        outer, self._emphasized = self._emphasized, True
        self._flow(element)
        self._emphasized = outer
        self._out.strong(start)
        self._label_end = len(self._parts)

    def _subheading(self, element: Any) -> None:
        self._end()
        self._out.level = marks.STRONG
        self._flow(element)
        self._end()

    def _title(self, element: Any) -> None:
        parent = element.getparent()
        if parent is not None and local_name(parent) == "preface":
            self._document_title(element)
        else:
            self._container(element)

    def _document_title(self, element: Any) -> None:
        self._end()
        self._out.level = marks.STRONG if self._quoted else 1
        self._flow(element)
        self._end()

    def _property(self, element: Any) -> None:
        if element.get("role") == "compShortTitle":
            self._document_title(element)
        else:
            self._block(element)

    def _note(self, element: Any) -> None:
        if element.get("type") in FOOTNOTES:
            self._footnote(element)
            return
        self._end()
        outer = self._levels, self._out.indent
        self._levels = self._out.indent = 0
        if _header(element) is not None:
            cross = element.get("role") == "crossHeading"
            self._crossed = self._crossed or cross
            below = 2 if self._crossed and not cross else 1
            level = min(self._outer + below, _MAX_HEADING_LEVEL)
            self._out.level = marks.STRONG if self._quoted else level
        self._flow(element)
        self._end()
        self._levels, self._out.indent = outer

    # Quotations -----------------------------------------------------------------------------

    def _quotation(self, element: Any) -> None:
        if not any(local_name(child) in words.BLOCK_LEVEL for child in element):
            self._flow(element)
            return
        self._end()
        outer, quoted, levels = self._out.enter("> "), self._quoted, self._levels
        self._quoted, self._levels = True, 0
        self._inside(element)
        self._quoted, self._levels = quoted, levels
        self._out.leave(outer, quotation=True)

    def _inline(self, element: Any) -> None:
        role = element.get("role")
        if role is None and (set_as := words.GRID.get(element.get("class"))):
            self.HANDLERS[set_as](self, element)
            return
        if role == "after-quoted-block" and self._out.is_blank():
            self._out.glue("".join(element.itertext()))
            return
        # Six inches and a half are set as 6½ but written as `6<inline>1/2</inline>`.
        if role == "fraction" and self._parts and self._parts[-1][-1:].isdigit():
            self._put(" ")
        self._flow(element)

    # Tables ---------------------------------------------------------------------------------

    def _table(self, element: Any) -> None:
        if self._out.flat is not None:
            self._flow(element)
            return
        self._end()
        grid = read_xhtml(element)
        for caption in grid.captions:
            self._put(self._one_line(caption, " "))
            self._out.level = marks.STRONG
            self._end()
        if grid.has_spans:
            self._out.artifact("table", _source(element))
        rows = [row.cells for row in grid.rows]
        if grid.head:
            rows.insert(0, grid.head)
        cells = [[self._cell(cell[0]) if cell else "" for cell in row] for row in rows]
        self._write_rows(cells, headed=bool(grid.head))

    def _contents(self, element: Any) -> None:
        if self._out.flat is not None:
            self._flow(element)
            return
        self._end()
        rows = list(_contents_rows(element))
        headed = bool(rows) and rows[0][0].getparent().get("role") == "tocColumnHeader"
        cells = [[self._cell(cell) for cell in row] for row in rows]
        start, end = _MARKS_OF_CHANGE.get(element.get("changed"), ("", ""))
        cells = [
            [f"{start}{cell.strip()}{end}" if cell.strip() else "" for cell in row] for row in cells
        ]
        self._write_rows(cells, headed=headed)

    def _write_rows(self, rows: list[list[str]], *, headed: bool) -> None:
        rows = [row for row in rows if any(row)]
        if rows:
            self._out.table(rows, headed=headed)
        self._end()

    def _cell(self, cell: Any) -> str:
        if not len(cell) and self._handler(cell.tag) is self.HANDLERS["td"]:
            text = cell.text or ""
            return "" if text.isspace() else text
        return self._one_line(cell, marks.BREAK)

    HANDLERS: ClassVar[dict[str, Handler]] = {
        **Flow.HANDLERS,
        **dict.fromkeys(words.CONTAINERS, _container),
        **dict.fromkeys(words.SECTIONS, _section),
        **dict.fromkeys(words.LEVELS, _level),
        **dict.fromkeys(words.TITLES, _document_title),
        "title": _title,
        "level": _generic_level,
        "num": _number,
        "heading": _heading,
        "subheading": _subheading,
        "property": _property,
        "note": _note,
        "quotedContent": _quotation,
        "inline": _inline,
        "table": _table,
        "toc": _contents,
    }
    """By the local name of the element."""


def _source(element: Any) -> str:
    """An element as XML, with the namespaces it uses and not all that its file declares."""
    alone = deepcopy(element)
    alone.tail = None
    etree.cleanup_namespaces(alone)
    return str(etree.tostring(alone, encoding="unicode"))


def _header(element: Any) -> str | None:
    """The label of a level, empty if it has only a heading; None if it begins with neither."""
    label = None
    for child in islice(element, 3):
        name = local_name(child)
        if name == "num":
            text = "".join(_label_text(child)) if len(child) else child.text or ""
            return " ".join(text.split()).strip(_NO_LABEL)
        if name == "heading":
            label = ""
    return label


def _label_text(number: Any) -> Iterator[str]:
    """The text of a number without the footnotes in it."""
    yield number.text or ""
    for child in number:
        if local_name(child) not in {"note", "footnote"} and child.get("class") != "footnoteRef":
            yield "".join(child.itertext())
        yield child.tail or ""


def _contents_rows(contents: Any) -> Iterator[list[Any]]:
    waiting = list(reversed(contents))
    while waiting:
        element = waiting.pop()
        name = local_name(element)
        if name in _ROWS:
            yield list(element) or [element]
        elif name in {"layout", "groupItem"}:
            waiting.extend(reversed(element))
        elif name:
            yield [element]

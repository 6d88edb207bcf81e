"""The vocabulary of the Code of Federal Regulations: eCFR's divisions and the annual edition's.

The tables eCFR writes in the manner of HTML, read as a grid.

Tables of the Code of Federal Regulations as lines of Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any, Final

from lxml import etree

from fonds.errors import MalformedError
from fonds.normalize import fr as fr_vocabulary
from fonds.normalize.gpotable import GpoGrid
from fonds.normalize.markdown import MarkdownWriter

DIVISIONS: Final = {
    **{f"DIV{number}": number for number in range(1, 10)},
    "TITLE": 1,
    "SUBTITLE": 2,
    "CHAPTER": 3,
    "SUBCHAP": 4,
    "PART": 5,
    "SUBPART": 6,
    "SUBJGRP": 7,
    "SECTION": 8,
    "APPENDIX": 9,
}
"""How deep each division stands: 1 title, 5 part, 8 section, 9 appendix (to any of them)."""
SECTION: Final = 8
APPENDIX: Final = 9

METADATA: Final = frozenset({"FDSYS", "HEADER"})
CONTENTS: Final = frozenset({"CONTENTS", "CFRTOC", "TOC"})
LEAD_IN: Final = fr_vocabulary.LEAD_IN | {"EFFDNOTP", "SECAUTH", "PARAUTH", "APPRO"}

INLINE: Final = (fr_vocabulary.INLINE - {"LI"}) | frozenset(
    {"I", "B", "U", "EM", "STRONG", "SUP", "SUB", "INS", "DEL", "AC", "BR", "IMG", "GID", "MID"}
)
# A paragraph of their own between paragraphs, part of the sentence within one.
FLEXIBLE: Final = frozenset({"XREF", "EXT-XREF", "MATH", "GPH", "SPAN", "A", "LI"})
TEXT: Final = fr_vocabulary.TEXT | frozenset(
    {"HEAD", "HED", "HED1", "HD1", "HD2", "HD3", "PSPACE", "TD", "TH", "CAPTION", "CITA"}
    | {"FP-1", "FP-2", "FP-DASH", "FP1", "FP1-2", "FP2", "FP2-2", "FRP", "APPRO", "SECAUTH"}
)
KNOWN: Final = (
    fr_vocabulary.KNOWN
    | DIVISIONS.keys()
    | METADATA
    | CONTENTS
    | LEAD_IN
    | INLINE
    | FLEXIBLE
    | TEXT
    | frozenset(
        """
        ALPHLIST AMDDATE APP BMTR BODY BTITLE CFRDOC CFRGRANULE CFRTITLE CHAPTI CONTAINS
        DIV DLPSTEXTCLASS ECFR ECFRBRWS EXPLA FINDAIDS FMTR LRH PARTS PG PTHD REVISED REVTXT
        RRH SCOL2 SCOL3 SUBCHAPTI TABLE TBODY TEXT TFOOT THEAD TITLEHD TITLENUM TITLEPG TOCHD TR
        UL VOLUME
        """.split()  # noqa: SIM905 — forty quoted names read worse
    )
)

FRAGMENTS: Final = (
    KNOWN
    - {f"DIV{number}" for number in range(1, 10)}
    - {"BODY", "CFRDOC", "CFRGRANULE", "DLPSTEXTCLASS", "ECFR", "FDSYS", "HEADER"}
    - {"CORRECT", "CORRECTS", "FEDREG", "NEWPART", "NOTICE", "NOTICES", "PRESDOCS", "PRESDOCU"}
    - {"PRORULE", "PRORULES", "RULE", "RULES"}
)
"""What a passage cut out of a file may begin with, but no file of the CFR or the Register does."""

# 7462 and 0714 are italics within bold headings.
EMPHASIS: Final = {**fr_vocabulary.EMPHASIS, "7462": "*", "0714": "*"}

_LIKE_HTML: Final = frozenset(
    {"A", "B", "BR", "CAPTION", "DEL", "DIV", "EM", "I", "IMG", "INS", "LI", "MATH", "P", "SPAN"}
    | {"STRONG", "SUB", "SUP", "TABLE", "TBODY", "TD", "TFOOT", "TH", "THEAD", "TR", "U", "UL"}
)
_DEEPEST: Final = fr_vocabulary.DEEPEST_HEADING
_LONGEST_LABEL: Final = 100
_SIGN: Final = re.compile(r"(§+|Secs?\.|Sections?\b)\s*")
_NUMBER: Final = re.compile(r"\d\S*(?:\s*(?:[-–—]|through\b|to\b)\s*\d\S*)?")
_STRUCTURE: Final = re.compile(
    r"(?:(?:sub)?(?:title|chapter|part)|appendix|supplement)\s(?:(?!--| - )[^—–\[:])+",
    re.IGNORECASE,
)


def known(tag: str) -> str:
    """The tag as the vocabulary spells it: eCFR writes `img` and `TABLE` in one file."""
    if tag in KNOWN:
        return tag
    shouted = tag.rpartition("}")[2].upper()
    return shouted if shouted in _LIKE_HTML else tag


def is_picture(element: Any) -> bool:
    """Whether an element only names a picture, as of an equation."""
    return known(element.tag) in {"MID", "IMG"}


def outermost(root: Any) -> int:
    """The kind of division a file is of: 1 for a whole title, 5 for a part."""
    if root.tag == "CFRDOC":
        return DIVISIONS["TITLE"]
    for element in root.iter(*DIVISIONS):
        if next(element.iterancestors(*METADATA), None) is None:
            return DIVISIONS[element.tag]
    return APPENDIX


def heading_level(division: int, top: int, around: int) -> int:
    """1 for the outermost division, and always the same for the same kind below it.

    Nine kinds share six levels: of a whole title, subtitle, chapter and subchapter are all 2.
    """
    if division == top:
        return 1
    if division == APPENDIX:
        return min(around + 1, _DEEPEST)
    return min(max(2, division - max(top, 3) + 1), _DEEPEST)


def section_label(head: str, number: str | None) -> str | None:
    """`§ 60.112b` or `§§ 1.1-1.3`: the sign as printed, the number as `N` states it, if it does."""
    stated = _stated(number)
    sign = _SIGN.match(head)
    if stated and (sign is None or head.startswith(stated, sign.end())):
        if sign is None:
            return f"§ {stated}" if stated[0].isdigit() else stated
        return f"{sign[1]} {stated}"
    printed = _NUMBER.match(head, sign.end()) if sign else None
    if sign is None or printed is None:
        return stated or None
    return f"{sign[1]} {printed[0].rstrip('.,;:')}"


def structure_label(head: str) -> str | None:
    """`PART 60`, `Appendix A to Part 60`; None where a heading only names its subject."""
    match = _STRUCTURE.match(head)
    return match[0].strip()[:_LONGEST_LABEL] if match else None


def heading_source(element: Any) -> str:
    """`HED` for what names its surroundings, `HD1` and so on for what divides them further."""
    return str(element.get("SOURCE") or ("HED" if element.tag == "HD" else element.tag))


def one_line(element: Any) -> str:
    """All text of an element, its white space collapsed."""
    return " ".join("".join(element.itertext()).split())


def tag_before(element: Any) -> str:
    """The tag of the element before, page marks aside; empty for the first one."""
    for previous in element.itersiblings(preceding=True):
        if previous.tag != "PRTPAGE":
            return str(previous.tag)
    return ""


def _stated(number: str | None) -> str:
    # The API escapes some attributes twice.
    stated = " ".join(unescape(unescape(number or "")).split()).lstrip("§ ")
    return stated if len(stated) <= _LONGEST_LABEL else ""


_WIDEST: Final = 1000
_SPAN: Final = re.compile(r"\s*0*([1-9][0-9]{0,3})\s*", re.ASCII)
_GROUPS: Final = frozenset({"THEAD", "TBODY", "TFOOT"})
_CONTAINERS: Final = _GROUPS | {"TR", "BOXHD", "ROW"}


@dataclass(slots=True)
class HtmlGrid:
    """A table as rows of cells; None is covered by a cell to the left or above."""

    captions: list[Any] = field(default_factory=list)
    rows: list[list[Any | None]] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)
    has_head: bool = False
    """Whether the first row is one of column heads."""
    has_spans: bool = False

    @property
    def columns(self) -> int:
        """The width of the widest row."""
        return max([1, *map(len, self.rows)])


def read_html_table(table: Any) -> HtmlGrid:
    """The grid of a `TABLE` element; every element of it that holds text is in it once."""
    grid = HtmlGrid()
    hanging: dict[int, int] = {}
    for row in _rows(table, grid):
        cells = list(row.iterchildren("*"))
        if not cells:
            continue
        if not grid.rows:
            grid.has_head = _is_head(row, cells)
        grid.rows.append(_placed(cells, hanging))
        grid.has_spans = grid.has_spans or None in grid.rows[-1] or bool(hanging)
    return grid


def stray_text(table: Any) -> str:
    """Text that stands between a table's cells, where none belongs."""
    pieces = []
    containers = [table]
    for container in containers:
        pieces.append(container.text)
        for child in container.iterchildren("*"):
            pieces.append(child.tail)
            if known(child.tag) in _CONTAINERS:
                containers.append(child)
    return " ".join(piece for piece in pieces if piece and not piece.isspace())


def _rows(table: Any, grid: HtmlGrid) -> Iterator[Any]:
    for child in table.iterchildren("*"):
        tag = known(child.tag)
        if tag in _GROUPS:
            yield from child.iterchildren("*")
        elif tag == "TR":
            yield child
        elif tag == "CAPTION":
            grid.captions.append(child)
        else:
            grid.notes.append(child)


def _is_head(row: Any, cells: list[Any]) -> bool:
    return known(row.getparent().tag) == "THEAD" or all(known(cell.tag) == "TH" for cell in cells)


def _placed(cells: list[Any], hanging: dict[int, int]) -> list[Any | None]:
    """The row, with room left for cells of former rows that reach down into it."""
    row: list[Any | None] = []
    begun: dict[int, int] = {}
    for cell in cells:
        while len(row) in hanging:
            row.append(None)
        width, height = _span(cell, "colspan"), _span(cell, "rowspan")
        if len(row) + width > _WIDEST:
            raise MalformedError(f"a table row has more than {_WIDEST} columns")
        if height > 1:
            begun.update(dict.fromkeys(range(len(row), len(row) + width), height - 1))
        row.extend([cell, *[None] * (width - 1)])
    for column in list(hanging):
        hanging[column] -= 1
        if not hanging[column]:
            del hanging[column]
    hanging.update(begun)
    return row


def _span(cell: Any, name: str) -> int:
    match = _SPAN.fullmatch(cell.get(name) or cell.get(name.upper()) or "")
    return int(match[1]) if match else 1


# Short rows are padded for the eye's sake, but not in a table made to exhaust the memory.
_ROOMIEST: Final = 200_000
_MOST_HEADS: Final = 300

_Cells = Sequence[tuple[Any, ...]]
_Row = tuple[tuple[Any, ...], _Cells]


class GridWriter:
    """Draws a grid; the cells' text is written by `flow`, page marks between rows by `page`."""

    def __init__(
        self, out: MarkdownWriter, flow: Callable[[Any], None], page: Callable[[Any], None]
    ) -> None:
        self._out = out
        self._flow = flow
        self._page = page

    def draw_gpo(self, table: Any, grid: GpoGrid) -> None:
        """A typesetter's table; heads below heads are joined by a slash."""
        spans = any(len(path) > 1 for path in grid.heads)
        spans = spans or any(None in row.cells for row in grid.rows)
        rows = ((row.pages, _paths(row.cells)) for row in grid.rows)
        self._draw(grid.heads, rows, (len(grid.rows), grid.columns), table if spans else None)

    def draw_html(self, table: Any, grid: HtmlGrid, *, keep: bool) -> None:
        """A table like HTML's; lower rows of its head stay rows, which keeps their order.

        With `keep`, one that has spans is also kept as it was.
        """
        heads = _paths(grid.rows[0]) if grid.has_head else []
        rows = (((), _paths(row)) for row in grid.rows[1 if grid.has_head else 0 :])
        spanning = table if keep and grid.has_spans else None
        self._draw(heads, rows, (len(grid.rows), grid.columns), spanning)

    def _draw(
        self, heads: _Cells, rows: Iterator[_Row], size: tuple[int, int], spanning: Any
    ) -> None:
        height, columns = size
        self._out.begin()
        if spanning is not None:
            content = etree.tostring(spanning, encoding="unicode", with_tail=False)
            self._out.artifact("table", content)
        self._out.in_table = True
        self._out.row(heads, columns, self._flow)
        self._out.line()
        self._out.markup("|" + " --- |" * columns)
        width = columns if height * columns <= _ROOMIEST else 0
        for pages, cells in rows:
            for page in pages:
                self._page(page)
            self._out.line()
            self._out.row(cells, width, self._flow)
        self._out.in_table = False
        self._out.end()


def refuse_endless_heads(table: Any) -> None:
    """Each head may stand under all before it: thousands would take hours to join."""
    if sum(map(len, table.findall("BOXHD"))) > _MOST_HEADS:
        raise MalformedError(f"a table has more than {_MOST_HEADS} column heads")


def _paths(cells: Sequence[Any | None]) -> list[tuple[Any, ...]]:
    return [() if cell is None else (cell,) for cell in cells]

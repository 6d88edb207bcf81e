"""The elements of CFR XML: divisions, headings, and tables like HTML's."""

from __future__ import annotations

import re
from html import unescape
from typing import Any, Final

from fonds.errors import MalformedError
from fonds.normalize import fr as fr_vocabulary
from fonds.normalize.tables import Grid, GridRow, arrange_cells, html_span, texts_between_cells
from fonds.normalize.walker import MAX_HEADING_LEVEL

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
"""The depth of each division: 1 title, 5 part, 8 section, 9 appendix (to any of them)."""
_CHAPTER: Final = 3
_PART: Final = 5
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
ELEMENTS: Final = (
    fr_vocabulary.ELEMENTS
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
    ELEMENTS
    - {f"DIV{number}" for number in range(1, 10)}
    - {"BODY", "CFRDOC", "CFRGRANULE", "DLPSTEXTCLASS", "ECFR", "FDSYS", "HEADER"}
    - {"CORRECT", "CORRECTS", "FEDREG", "NEWPART", "NOTICE", "NOTICES", "PRESDOCS", "PRESDOCU"}
    - {"PRORULE", "PRORULES", "RULE", "RULES"}
)
"""Elements with which a part cut out of a file may begin, but no file of the CFR or Register."""

# 7462 and 0714 are italics within bold headings.
EMPHASIS: Final = {**fr_vocabulary.EMPHASIS, "7462": "*", "0714": "*"}

_LIKE_HTML: Final = frozenset(
    {"A", "B", "BR", "CAPTION", "DEL", "DIV", "EM", "I", "IMG", "INS", "LI", "MATH", "P", "SPAN"}
    | {"STRONG", "SUB", "SUP", "TABLE", "TBODY", "TD", "TFOOT", "TH", "THEAD", "TR", "U", "UL"}
)
_MAX_LABEL_LENGTH: Final = 100
_SIGN: Final = re.compile(r"(§+|Secs?\.|Sections?\b)\s*")
_NUMBER: Final = re.compile(r"\d\S*(?:\s*(?:[-–—]|through\b|to\b)\s*\d\S*)?")
_STRUCTURE: Final = re.compile(
    r"(?:(?:sub)?(?:title|chapter|part)|appendix|supplement)\s(?:(?!--| - )[^—–\[:])+",
    re.IGNORECASE,
)


def canonical_tag(tag: str) -> str:
    """The tag as the vocabulary spells it: eCFR writes `img` and `TABLE` in one file."""
    if tag in ELEMENTS:
        return tag
    shouted = tag.rpartition("}")[2].upper()
    return shouted if shouted in _LIKE_HTML else tag


def is_picture(element: Any) -> bool:
    """Whether an element only names a picture, as of an equation."""
    return canonical_tag(element.tag) in {"MID", "IMG"}


def outermost(root: Any) -> int:
    """The kind of division a file is of: 1 for a whole title, 5 for a part."""
    if root.tag == "CFRDOC":
        return DIVISIONS["TITLE"]
    for element in root.iter(*DIVISIONS):
        if next(element.iterancestors(*METADATA), None) is None:
            return DIVISIONS[element.tag]
    return APPENDIX


def division_levels(root: Any) -> dict[int, int]:
    """The level of each kind of division of a file, from 1 for the outermost.

    Only six levels are there for eight kinds. Chapters and subchapters never share one; subparts,
    subject groups and sections of a title that has many kinds share the last.
    """
    top = outermost(root)
    if top >= _CHAPTER:
        steps = {kind: kind - top for kind in range(top, APPENDIX)}
    else:
        tags = {DIVISIONS[element.tag] for element in root.iter(*DIVISIONS)}
        above_parts = sorted(kind for kind in tags if top < kind < _PART)
        part_step = max(len(above_parts), 1) + 1
        steps = {kind: step for step, kind in enumerate((top, *above_parts))}
        steps |= {kind: kind - _PART + part_step for kind in range(_PART, APPENDIX)}
    return {kind: min(step + 1, MAX_HEADING_LEVEL) for kind, step in steps.items()}


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
    return match[0].strip()[:_MAX_LABEL_LENGTH] if match else None


def heading_source(element: Any) -> str:
    """`HED` for what names its surroundings, `HD1` and so on for what divides them further."""
    return str(element.get("SOURCE") or ("HED" if element.tag == "HD" else element.tag))


def tag_before(element: Any) -> str:
    """The tag of the element before, page marks aside; empty for the first one."""
    for previous in element.itersiblings(preceding=True):
        if previous.tag != "PRTPAGE":
            return str(previous.tag)
    return ""


def _stated(number: str | None) -> str:
    # The API escapes some attributes twice.
    stated = " ".join(unescape(unescape(number or "")).split()).lstrip("§ ")
    return stated if len(stated) <= _MAX_LABEL_LENGTH else ""


_GROUPS: Final = frozenset({"THEAD", "TBODY", "TFOOT"})
_CONTAINERS: Final = _GROUPS | {"TR", "BOXHD", "ROW"}


def read_html_table(table: Any) -> Grid:
    """The grid of a `TABLE` element; every element of it that holds text is in it once."""
    grid = Grid()
    rows: list[Any] = []
    for child in table.iterchildren("*"):
        tag = canonical_tag(child.tag)
        if tag in _GROUPS:
            rows.extend(child.iterchildren("*"))
        elif tag == "TR":
            rows.append(child)
        elif tag == "CAPTION":
            grid.captions.append(child)
        else:
            grid.notes.append(child)
    rows = [row for row in rows if len(row)]
    arranged, grid.has_spans = arrange_cells((row.iterchildren("*") for row in rows), html_span)
    if rows and _is_head(rows[0]):
        # Lower rows of the head stay rows, which keeps their order.
        grid.head = arranged.pop(0)
    grid.rows.extend(map(GridRow, arranged))
    return grid


def stray_text(table: Any) -> str:
    """Text between the cells of a table."""
    frames = [table]
    for frame in frames:
        frames.extend(
            child for child in frame.iterchildren("*") if canonical_tag(child.tag) in _CONTAINERS
        )
    return " ".join(texts_between_cells(frames))


def _is_head(row: Any) -> bool:
    is_group = canonical_tag(row.getparent().tag) == "THEAD"
    return is_group or all(canonical_tag(cell.tag) == "TH" for cell in row.iterchildren("*"))


_MAX_HEADS: Final = 300


def refuse_endless_heads(table: Any) -> None:
    """Raise for a table with too many heads: each may repeat all before it, which takes hours."""
    if sum(map(len, table.findall("BOXHD"))) > _MAX_HEADS:
        raise MalformedError(f"a table has more than {_MAX_HEADS} column heads")

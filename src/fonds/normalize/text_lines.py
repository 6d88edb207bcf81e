"""Lines of typeset plain text: which ones were only wrapped, and which ones are headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Final

# Outermost first, as drafters of laws and of the Code of Federal Regulations order them.
_RANKS: Final = (
    "DIVISION",
    "TITLE",
    "SUBTITLE",
    "CHAPTER",
    "SUBCHAPTER",
    "PART",
    "SUBPART",
    "SEC",
)
_LABELLED: Final = re.compile(
    r"(?P<quoted>``|“)?(?:(?P<level>DIVISION|(?:SUB)?(?:TITLE|CHAPTER|PART))"
    r"\s+(?:[IVXLC]+|\d+[A-Z]?|[A-Z]{1,2})(?:\.?\s*$|\.?\s*(?:--|—|:))"
    r"|SEC(?:\.|TION)\s+\d)",
    re.IGNORECASE,
)
_OUTERMOST: Final = 2
_MAX_LEVEL: Final = 6


def is_labelled(heading: str) -> bool:
    """Whether the heading names its own level: `Subtitle B--Lamps`, `SEC. 4. FEES.`."""
    return _LABELLED.match(heading) is not None


def levels_of(headings: Sequence[str]) -> list[int]:
    """A level for each heading of a text, in order.

    Headings that name their level are nested in each other; one within quotation marks belongs to
    the section that quotes it. All others may begin anything, so no heading is above them.
    """
    ranks = [_rank(heading) for heading in headings]
    # A heading in front of the first label is the title of what follows.
    first = _OUTERMOST + (bool(ranks) and ranks[0] is None)
    level_of = _levels(filter(None, ranks), first)
    levels: list[int] = []
    own = _OUTERMOST
    for heading, rank in zip(headings, ranks, strict=True):
        if rank is None and is_labelled(heading):
            levels.append(min(own + 1, _MAX_LEVEL))
            continue
        own = level_of[rank] if rank else _OUTERMOST
        levels.append(own)
    return levels


def _levels(ranks: Iterable[str], first: int) -> dict[str, int]:
    present = sorted(set(ranks), key=_RANKS.index)
    return {rank: min(first + depth, _MAX_LEVEL) for depth, rank in enumerate(present)}


def _rank(heading: str) -> str | None:
    """The level a heading names; None for one that names none or is quoted."""
    match = _LABELLED.match(heading)
    if match is None or match["quoted"]:
        return None
    return (match["level"] or "SEC").upper()


PAGE_OPEN: Final = "\ue010"
PAGE_CLOSE: Final = "\ue011"
"""Around a page's number, where a page begins; private characters, since one is one column."""

_PAGE_LINE: Final = re.compile(rf"\s*{PAGE_OPEN}([^{PAGE_CLOSE}]*){PAGE_CLOSE}\s*")
_RULE: Final = re.compile(r"\s*(?:[_=*-]{4,}|(?:[_=*-]{2,}\s+)+[_=*-]{2,}|_+)\s*")
_RULE_SIGNS: Final = frozenset("_=*-")
_LEADERS: Final = re.compile(r"\.{4,}|(?:\. ){4,}|\.{3,}\s{2,}\S")
_GAP: Final = re.compile(r"\S {3,}(?=\S)")
_ITEM: Final = re.compile(
    r"[“`'\"]{0,2}(?:\([0-9A-Za-z]{1,5}\)|(?:\d{1,3}[.)]|[a-z][.)]|[•·-]|--)\s|sec(?:tion|\.) \d)",
    re.IGNORECASE,
)
_ITEM_MAY_FOLLOW: Final = re.compile(r"(?:[.;:!?”]|''|--|—|\band|\bor)$")
_SENTENCE_END: Final = re.compile(r"[.!?:;](?:''|[”\"')\]])*$")
_SECTION_HEADING: Final = re.compile(r"\s*(?:``|“)?(?:SEC\.|SECTION)\s+\d+[A-Za-z0-9-]*\.\s+\S.*")

_PICTURES: Final = ("[GRAPHIC", "[TIFF")

_CENTRED_INDENT: Final = 10
_SLACK: Final = 10
_MAX_LOWER_RATIO: Final = 0.15
_MAX_HEADING_LENGTH: Final = 250
_MAX_HEADING_LINES: Final = 5
_UNWRAPPED: Final = 160
_NARROWEST: Final = 40


class BlockKind(Enum):
    """The kind of a block of lines."""

    PROSE = "prose"
    HEADING = "heading"
    TABLE = "table"
    RULE = "rule"


@dataclass(slots=True)
class TextLine:
    """One line, without the white space before it."""

    text: str
    indent: int
    pages: list[str] = field(default_factory=list)
    """Pages that begin with this line."""

    @property
    def end(self) -> int:
        """The column behind its last character."""
        return self.indent + len(self.text)

    @property
    def whole(self) -> str:
        """The line with its indentation."""
        return " " * self.indent + self.text


@dataclass(frozen=True, slots=True)
class TextLayout:
    """How a text was typeset."""

    width: int
    """The column at which lines were wrapped."""
    openings: frozenset[int]
    """Indentations that open a paragraph, since the lines behind them begin further left."""


@dataclass(slots=True)
class TextBlock:
    """Lines without an empty one between them, or with only a new page between them."""

    lines: list[TextLine]
    kind: BlockKind = BlockKind.PROSE


@dataclass(slots=True)
class Paragraph:
    """Lines that are one paragraph; `breaks` says before which of them the line end matters."""

    lines: list[TextLine]
    breaks: set[int] = field(default_factory=set)


def blocks_of(text: str) -> tuple[list[TextBlock], TextLayout]:
    """The blocks of a text, each with its kind, and how it was typeset."""
    lines = [line.expandtabs().rstrip() for line in text.splitlines()]
    width = _width(lines)
    blocks: list[TextBlock] = []
    current: list[TextLine] = []
    pages: list[str] = []
    for line in lines:
        match = _PAGE_LINE.fullmatch(line) if PAGE_OPEN in line else None
        if match:
            pages.append(match[1])
        if match or not line:
            _close(current, blocks, width)
            current = []
            continue
        stripped = line.lstrip()
        current.append(TextLine(stripped, len(line) - len(stripped), pages))
        pages = []
    _close(current, blocks, width)
    if pages and blocks:
        blocks[-1].lines[-1].pages.extend(pages)
    return _merged(blocks), TextLayout(width, _openings(blocks, width))


def _width(lines: Iterable[str]) -> int:
    lengths = sorted(len(line) for line in lines if line and not _in_columns(line))
    return max(_NARROWEST, lengths[len(lengths) * 9 // 10]) if lengths else _NARROWEST


def _in_columns(line: str) -> bool:
    # Most lines have neither of these; looking for them is ten times cheaper than the patterns.
    if "   " not in line and ".." not in line and ". . " not in line:
        return False
    return bool(_LEADERS.search(line) or _GAP.search(line))


def _openings(blocks: list[TextBlock], width: int) -> frozenset[int]:
    """An indentation opens paragraphs if full lines at it are mostly followed further left."""
    votes: dict[int, int] = {}
    for block in blocks:
        if block.kind is not BlockKind.PROSE:
            continue
        for line, after in pairwise(block.lines):
            if after.indent <= line.indent and not _fits(line, after, width):
                vote = 1 if after.indent < line.indent else -1
                votes[line.indent] = votes.get(line.indent, 0) + vote
    return frozenset(indent for indent, votes_for in votes.items() if votes_for > 0)


def _fits(line: TextLine, after: TextLine, width: int) -> bool:
    """Whether the next word would have had room, so that the line ends there on purpose."""
    if line.text.endswith("-") and line.text[-2:-1].isalpha():
        return False
    return line.end + 1 + len(after.text.split(" ", 1)[0]) + _SLACK <= width


def _close(lines: list[TextLine], blocks: list[TextBlock], width: int) -> None:
    if lines:
        blocks.extend(TextBlock(group, _kind(group, width)) for group in _separated(lines))


def _separated(lines: list[TextLine]) -> Iterator[list[TextLine]]:
    """Separate rules and headings of sections, even without an empty line around them."""
    if len(lines) == 1:
        yield lines
        return
    group: list[TextLine] = []
    tabular = _is_table(lines)
    alone = False
    for line in lines:
        continued = alone and _is_unfinished_heading(group) and _is_capital(line.text)
        was_alone, alone = alone, not tabular and (_is_rule(line) or _is_section_heading(line))
        if group and not continued and (was_alone or alone):
            yield group
            group = []
        group.append(line)
        alone = alone or continued
    if group:
        yield group


def _kind(lines: list[TextLine], width: int) -> BlockKind:
    if all(_is_rule(line) for line in lines):
        return BlockKind.RULE
    if _is_table(lines):
        return BlockKind.TABLE
    return BlockKind.HEADING if _is_heading(lines, width) else BlockKind.PROSE


def _is_rule(line: TextLine) -> bool:
    return line.text[0] in _RULE_SIGNS and _RULE.fullmatch(line.text) is not None


def _is_table(lines: list[TextLine]) -> bool:
    tabular = sum(_is_tabular(line) for line in lines)
    # One line with leaders is a table of contents; one with a gap is a signature or a sum.
    return tabular * 2 >= len(lines) if tabular else False


def _is_tabular(line: TextLine) -> bool:
    if not _in_columns(line.text):
        return False
    if _LEADERS.search(line.text):
        return True
    gaps = len(_GAP.findall(line.text))
    return gaps > 1 or (gaps == 1 and any(character.isdigit() for character in line.text))


def _is_section_heading(line: TextLine) -> bool:
    return (
        "SEC" in line.text[:8]
        and _SECTION_HEADING.fullmatch(line.text) is not None
        and _is_capital(line.text)
    )


def _is_unfinished_heading(group: list[TextLine]) -> bool:
    return _is_section_heading(group[0]) and not group[-1].text.endswith((".", ".''", ".”"))


def _is_heading(lines: list[TextLine], width: int) -> bool:
    if _is_section_heading(lines[0]) and all(_is_capital(line.text) for line in lines):
        return True
    text = " ".join(line.text for line in lines)
    return (
        len(lines) <= _MAX_HEADING_LINES
        and len(text) <= _MAX_HEADING_LENGTH
        and text[-1] not in ",;:"
        and all(_is_centred(line, width) for line in lines)
        and (_is_capital(text) or is_labelled(text))
    )


def _is_capital(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    lower = sum(character.islower() for character in letters)
    return len(letters) > 1 and lower <= len(letters) * _MAX_LOWER_RATIO


def _is_centred(line: TextLine, width: int) -> bool:
    right = max(width - line.end, 0)
    return line.indent >= _CENTRED_INDENT or (
        line.indent > 4 and abs(line.indent - right) <= 4  # noqa: PLR2004 — columns off centre
    )


def _merged(blocks: list[TextBlock]) -> list[TextBlock]:
    """Join what a page break cut, and tables with the rules and empty lines inside them."""
    merged: list[TextBlock] = []
    for block in blocks:
        last = merged[-1] if merged else None
        if last and _is_cut(last, block):
            last.lines.extend(block.lines)
        elif last and last.kind is BlockKind.TABLE and _continues_table(block):
            last.lines.append(TextLine("", 0))
            last.lines.extend(block.lines)
        else:
            merged.append(block)
    return merged


def _is_cut(block: TextBlock, after: TextBlock) -> bool:
    """Whether only a new page is between two blocks of prose, and no picture or remark."""
    if not block.kind is after.kind is BlockKind.PROSE or not after.lines[0].pages:
        return False
    return not any(map(_is_bracketed, (block.lines[-1].text, after.lines[0].text)))


def _continues_table(block: TextBlock) -> bool:
    return block.kind is BlockKind.TABLE and not block.lines[0].pages


def paragraphs_of(block: TextBlock, layout: TextLayout) -> list[Paragraph]:
    """The paragraphs of a block of prose."""
    if len(block.lines) == 1:
        return [Paragraph(block.lines)]
    paragraphs: list[Paragraph] = []
    layout = TextLayout(_local_width(block.lines, layout.width), layout.openings)
    for index, line in enumerate(block.lines):
        after = block.lines[index + 1] if index + 1 < len(block.lines) else None
        joint = _joint(paragraphs[-1], line, after, layout) if paragraphs else Joint.SEPARATE
        if joint is Joint.SEPARATE:
            paragraphs.append(Paragraph([line]))
            continue
        if joint is Joint.BROKEN:
            paragraphs[-1].breaks.add(len(paragraphs[-1].lines))
        paragraphs[-1].lines.append(line)
    return paragraphs


class Joint(Enum):
    """How a line follows the one before it."""

    WRAPPED = "the same sentence, wrapped"
    BROKEN = "the same paragraph, on a line of its own"
    SEPARATE = "another paragraph"


def _joint(
    paragraph: Paragraph, line: TextLine, after: TextLine | None, layout: TextLayout
) -> Joint:
    last = paragraph.lines[-1]
    if _is_bracketed(line.text) or _is_bracketed(last.text):
        return Joint.BROKEN
    if last.end > _UNWRAPPED or (line.indent in layout.openings and line.indent >= last.indent):
        return Joint.SEPARATE
    if line.pages:
        return _over_page(paragraph, last, line)
    fits = _fits(last, line, layout.width)
    if min(last.indent, line.indent) >= _CENTRED_INDENT and fits:
        return Joint.BROKEN
    if line.indent > last.indent:
        hanging = len(paragraph.lines) == 1 and after is not None and after.indent == line.indent
        return Joint.WRAPPED if hanging and not fits else Joint.SEPARATE
    return _level(paragraph, last, line, fits=fits)


def _is_bracketed(text: str) -> bool:
    # `[GRAPHIC] [TIFF OMITTED]` is followed by the name of the picture.
    return text.startswith("[") and (text.endswith("]") or text.startswith(_PICTURES))


def _level(paragraph: Paragraph, last: TextLine, line: TextLine, *, fits: bool) -> Joint:
    first = len(paragraph.lines) == 1
    if line.indent < last.indent:
        return Joint.WRAPPED if first and not fits else Joint.SEPARATE
    if _ITEM.match(line.text) and _ITEM_MAY_FOLLOW.search(last.text):
        return Joint.SEPARATE
    return Joint.BROKEN if fits else Joint.WRAPPED


def _over_page(paragraph: Paragraph, last: TextLine, line: TextLine) -> Joint:
    """A page break cuts lines short, so that only indentation and punctuation tell."""
    if line.indent > last.indent:
        return Joint.SEPARATE
    indented = paragraph.lines[0].indent > last.indent or line.indent < last.indent
    ended = _SENTENCE_END.search(last.text) and not line.text[:1].islower()
    return Joint.WRAPPED if indented or not ended else Joint.SEPARATE


def _local_width(lines: list[TextLine], width: int) -> int:
    """A narrower column, if most lines of the block reach its edge."""
    ends = [line.end for line in lines]
    widest = max(ends)
    reaching = sum(end > widest - _SLACK for end in ends)
    return min(width, widest) if len(ends) > 3 and reaching * 5 >= len(ends) * 3 else width  # noqa: PLR2004 — three lines show no column

"""Headings, told by size, by boldness and by the publisher's own labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from fonds.normalize.pdf.line import Block, Grid, Line

SECTION: Final = re.compile(
    r"(§§?\s*\d[\w.\-–]*"
    r"|(?:sec(?:tion|\.)|art(?:icle|ikel|\.)|part|chapter|teil|kapitel|appendix|annex|schedule)"
    r"\s+(?:\d[\w.\-–]*|[IVXLC]+\b|[A-Z]\b)"
    r"|\d{1,3}(?:\.\d{1,3})+(?!\d))",
    re.IGNORECASE,
)
_ENUMERATED: Final = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[IVXLC]{1,6})[.)]\s")
_BULLETS: Final = ("•", "●", "▪", "◦", "‣", "- ", "– ")
_OPENING: Final = ("§", "“", "„", "«", '"', "‘", "¿", "¡", "[", "【", "「")
_MUCH: Final = 0.25
_LARGER: Final = 1.12
_HEADING_LINES: Final = 4
_HEADING_LENGTH: Final = 200
_SENTENCE: Final = 80
_SHORTEST: Final = 4
_LEVELS: Final = 4
_MANY_PIECES: Final = 3
_MANY_TITLES: Final = 4


def body_size(pages: Iterable[Sequence[Line]]) -> float:
    """The size most of the text is set in; zero where sizes are unknown."""
    sizes: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            sizes[round(line.size * 2) / 2] += len(line.text) + _letters_of(line.table or ())
    return max(sizes, key=lambda size: (sizes[size], size), default=0.0)


def mark_headings(blocks: Sequence[Block], body: float) -> None:
    """Give headings their level and label; levels go by size, then capitals, then bold."""
    short = [
        block
        for block, before, after in zip(blocks, [None, *blocks], [*blocks[1:], None], strict=False)
        if _short(block) and not (_beside(block, before) or _beside(block, after))
    ]
    larger = sorted(_heading_sizes(blocks, short, body), reverse=True)
    levels = {size: min(rank, _LEVELS) for rank, size in enumerate(larger, 1)}
    bold = [] if _mostly_bold(blocks) else _bold_titles(blocks, short, body)
    capitals = any(_capitals(block) for block in bold if _size(block) not in levels)
    titles = set(map(id, bold))
    for block in short:
        label = SECTION.match(block.lines[0][1].text)
        if _size(block) in levels:
            block.level = levels[_size(block)]
        elif id(block) in titles or (block.last.bold and block.text.startswith("§")):
            block.level = min(len(larger), _LEVELS) + 1 + (capitals and not _capitals(block))
        if block.level and label:
            block.section = " ".join(label[1].rstrip(".-–").split())


def _bold_titles(blocks: Sequence[Block], short: Sequence[Block], body: float) -> list[Block]:
    """Bold lines with text below them; where one follows the other, the text itself is bold."""
    candidates = {id(block) for block in short if _titled(block, body)}
    titles: list[Block] = []
    for bold, group in groupby(blocks, key=lambda block: block.last.bold):
        found = [block for block in group if bold and id(block) in candidates]
        if len(found) <= _MANY_TITLES:
            titles += found
        else:
            titles += [block for block in found if SECTION.match(block.text)]
    return titles


def _size(block: Block) -> float:
    return round(block.last.size * 2) / 2


def _mostly_bold(blocks: Iterable[Block]) -> bool:
    bold = everything = 0
    for block in blocks:
        letters = len(block.text) + _letters_of(block.last.table or ())
        everything += letters
        bold += letters if block.last.bold else 0
    return 2 * bold > everything


def _letters_of(table: Grid) -> int:
    return sum(len(text) for row in table for cell in row for text in cell)


def _capitals(block: Block) -> bool:
    return block.text.isupper()


def _beside(block: Block, other: Block | None) -> bool:
    """Whether its neighbour stands at its side: both are cells, or a label and its value."""
    if other is None or other.lines[0][0] != block.lines[0][0] or other.last.table:
        return False
    # The text of a section often begins on the line of its heading.
    if block.text.startswith("§"):
        return False
    line, slack = block.lines[0][1], 0.6 * block.last.size
    top, bottom = other.lines[0][1].y, other.last.y
    if not bottom - slack < line.y < top + slack:
        return False
    return all(one.x0 >= line.x1 or one.x1 <= line.x0 for _, one in other.lines)


def _heading_sizes(blocks: Iterable[Block], short: Iterable[Block], body: float) -> set[float]:
    """Sizes above the body's; one that much of the text is set in is another body's."""
    letters: Counter[float] = Counter()
    for block in blocks:
        letters[_size(block)] += len(block.text)
    return {
        size
        for size in map(_size, short)
        if body and size > _LARGER * body and letters[size] < _MUCH * letters.total()
    }


def _short(block: Block) -> bool:
    text = block.text
    if block.last.table or len(block.lines) > _HEADING_LINES or len(text) > _HEADING_LENGTH:
        return False
    if not (text[:1].isalnum() or text.startswith(_OPENING) or _ENUMERATED.match(text)):
        return False
    if text[:1].islower() or text.endswith((",", ";", ":")) or text.startswith(_BULLETS):
        return False
    if text.endswith(".") and len(text) > _SENTENCE and not SECTION.match(text):
        return False
    letters = sum(map(str.isalpha, text))
    return letters > 1 and 3 * letters >= len(text) and len(block.last.pieces) < _MANY_PIECES


def _titled(block: Block, body: float) -> bool:
    """Whether a bold line is a title, no emphasized sentence or row of a table."""
    if not block.last.bold or block.last.size < 0.95 * body or block.last.cells:
        return False
    if SECTION.match(block.text):
        return True
    word = block.text.isupper() or sum(map(str.isalpha, block.text)) >= _SHORTEST
    return word and not block.text.endswith(".")

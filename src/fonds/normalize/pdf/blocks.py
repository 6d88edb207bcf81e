"""From lines to paragraphs and notes.

Headings are recognized by size, by boldness and by the publisher's own labels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import Final

from fonds.normalize.pdf.forms import FILLED
from fonds.normalize.pdf.page import NOTE_CLOSE, NOTE_OPEN, PdfBlock, PdfLine
from fonds.normalize.pdf.table_model import PdfTable

SECTION: Final = re.compile(
    r"(§§?\s*\d[\w.\-–]*"
    r"|(?:sec(?:tion|\.)|art(?:icle|ikel|\.)|part|chapter|teil|kapitel|appendix|annex|schedule)"
    r"\s+(?:\d[\w.\-–]*|[IVXLC]+\b|[A-Z]\b)"
    r"|\d{1,3}(?:\.\d{1,3})+(?!\d))",
    re.IGNORECASE,
)
_ENUMERATED: Final = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[IVXLC]{1,6})[.)]\s")
_CLAUSE: Final = re.compile(r"(?:\d{1,3}\.?)+|\(?(?:\d{1,3}|[A-Z]|[IVXLC]{1,6})[.)]")
_BULLETS: Final = ("•", "●", "▪", "◦", "‣", "- ", "– ")
_OPENING: Final = ("§", "“", "„", "«", '"', "‘", "¿", "¡", "[", "【", "「")
_MUCH: Final = 0.25
_LARGER: Final = 1.12
_HEADING_LINES: Final = 4
_HEADING_LENGTH: Final = 200
_SENTENCE: Final = 80
_SENTENCE_WORDS: Final = 7
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|shall|must|may|can|does|did|do)\b"
)
_WH_WORD: Final = re.compile(
    r"(?:what|who|whom|when|where|which|how|why|if)\b|.*\?$", re.IGNORECASE
)
_LOWER_CASE: Final = re.compile(r"(?:\b[a-z][\w'’-]*,?\s+){7}")
_UNFINISHED: Final = re.compile(r"[a-z].*\s(?:and|or|of|the|an?|to|in|for|with|by|that|which)$")
_LONG_CAPITALS: Final = 120
_MIN_LETTERS: Final = 4
_LEVELS: Final = 4
_MAX_LEVEL: Final = 6
_NUMBER: Final = re.compile(r"\d{1,3}(?:\.\d{1,3})+\.?")
_MANY_PARTS: Final = 3
_MANY_TITLES: Final = 4


def prevailing_size(pages: Iterable[Sequence[PdfLine]]) -> float:
    """The size most of the text is set in; zero where sizes are unknown."""
    sizes: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            sizes[round(line.size * 2) / 2] += len(line.text) + _letters_of(line.table)
    return max(sizes, key=lambda size: (sizes[size], size), default=0.0)


def mark_headings(blocks: Sequence[PdfBlock], text_size: float) -> None:
    """Give headings their level and label; levels go by size, then capitals, then bold."""
    short = [
        block
        for block, before, after in zip(blocks, [None, *blocks], [*blocks[1:], None], strict=False)
        if _short(block) and not (_is_neighbor(block, before) or _is_neighbor(block, after))
    ]
    larger = sorted(_heading_sizes(blocks, short, text_size), reverse=True)
    levels = {size: min(rank, _LEVELS) for rank, size in enumerate(larger, 1)}
    bold = [] if _mostly_bold(blocks) else _bold_titles(blocks, short, text_size)
    capitals = any(_capitals(block) for block in bold if _size(block) not in levels)
    titles = set(map(id, bold))
    for block in short:
        label = SECTION.match(block.lines[0][1].text)
        if _size(block) in levels:
            block.level = levels[_size(block)]
        elif id(block) in titles or (block.last.bold and block.text.startswith("§")):
            base = min(len(larger), _LEVELS) + 1 + (capitals and not _capitals(block))
            block.level = min(base + _depth(label), _MAX_LEVEL)
        if block.level and label:
            block.section = " ".join(label[1].rstrip(".-–").split())


def _depth(label: re.Match[str] | None) -> int:
    """How far a clause is below the first one of its number: 1 for `2.1`, 2 for `2.1.3`."""
    number = _NUMBER.fullmatch(label[1]) if label else None
    return number[0].rstrip(".").count(".") if number else 0


def _bold_titles(
    blocks: Sequence[PdfBlock], short: Sequence[PdfBlock], text_size: float
) -> list[PdfBlock]:
    """Bold lines with text below them; where one follows the other, the text itself is bold."""
    candidates = {id(block) for block in short if _titled(block, text_size)}
    titles: list[PdfBlock] = []
    for bold, group in groupby(blocks, key=lambda block: block.last.bold):
        bold_titles = [block for block in group if bold and id(block) in candidates]
        if len(bold_titles) <= _MANY_TITLES:
            titles += bold_titles
        else:
            titles += [block for block in bold_titles if SECTION.match(block.text)]
    return titles


def _size(block: PdfBlock) -> float:
    return round(block.last.size * 2) / 2


def _mostly_bold(blocks: Iterable[PdfBlock]) -> bool:
    bold = everything = 0
    for block in blocks:
        letters = len(block.text) + _letters_of(block.last.table)
        everything += letters
        bold += letters if block.last.bold else 0
    return 2 * bold > everything


def _letters_of(table: PdfTable | None) -> int:
    return table.letters if table else 0


def _capitals(block: PdfBlock) -> bool:
    return block.text.isupper()


def _is_neighbor(block: PdfBlock, other: PdfBlock | None) -> bool:
    """Whether another block is at its side: both are cells, or a label and its value."""
    if other is None or other.lines[0][0] != block.lines[0][0] or other.last.table:
        return False
    # The text of a section often begins on the line of its heading.
    if block.text.startswith("§") or _is_run_in(block):
        return False
    line, slack = block.lines[0][1], 0.6 * block.last.size
    top, bottom = other.lines[0][1].y, other.last.y
    if not bottom - slack < line.y < top + slack:
        return False
    return all(one.x0 >= line.x1 or one.x1 <= line.x0 for _, one in other.lines)


def _is_run_in(block: PdfBlock) -> bool:
    """True for the bold title of a clause, which its text follows on the line."""
    label = SECTION.match(block.text)
    return (
        block.last.bold
        and label is not None
        and _NUMBER.fullmatch(label[1]) is not None
        and block.text.endswith((".", ":", "–", "—"))
    )


def _heading_sizes(
    blocks: Iterable[PdfBlock], short: Iterable[PdfBlock], text_size: float
) -> set[float]:
    """Sizes above the body's; one that much of the text is set in is another body's."""
    letters: Counter[float] = Counter()
    for block in blocks:
        letters[_size(block)] += len(block.text)
    return {
        size
        for size in map(_size, short)
        if text_size and size > _LARGER * text_size and letters[size] < _MUCH * letters.total()
    }


def _short(block: PdfBlock) -> bool:
    text = block.text
    if block.last.table or len(block.lines) > _HEADING_LINES or len(text) > _HEADING_LENGTH:
        return False
    if not (text[:1].isalnum() or text.startswith(_OPENING) or _ENUMERATED.match(text)):
        return False
    if text[:1].islower() or text.endswith((",", ";", ":")) or text.startswith(_BULLETS):
        return False
    if text.endswith(".") and len(text) > _SENTENCE and not SECTION.match(text):
        return False
    if block.last.turned or _is_sentence(text):
        return False
    letters = sum(map(str.isalpha, text))
    return letters > 1 and 3 * letters >= len(text) and len(block.last.parts) < _MANY_PARTS


def _is_sentence(text: str) -> bool:
    """True for words in the form of a sentence, though they may lack its stop."""
    if _UNFINISHED.search(text):
        return True
    if SECTION.match(text) or text.startswith(_OPENING) or not _VERB.search(text):
        return False
    words = _WORD_START.findall(text)
    capitals = sum(word[0].isupper() for word in words)
    return len(words) >= _SENTENCE_WORDS and 2 * capitals < len(words) and not _WH_WORD.match(text)


def _titled(block: PdfBlock, text_size: float) -> bool:
    """Whether a bold line is a title, no emphasized sentence or row of a table."""
    if not block.last.bold or block.last.size < 0.95 * text_size or _has_cells(block.last):
        return False
    if SECTION.match(block.text):
        return True
    if _LOWER_CASE.search(block.text) or (
        block.text.isupper() and len(block.text) > _LONG_CAPITALS
    ):
        return False
    word = block.text.isupper() or sum(map(str.isalpha, block.text)) >= _MIN_LETTERS
    return word and not block.text.endswith(".")


def _has_cells(line: PdfLine) -> bool:
    """True for a row of a table, but not for a title that is set apart from its number."""
    return line.cells and not (
        len(line.parts) == len(("number", "title")) and _CLAUSE.fullmatch(line.parts[0].text)
    )


_LABEL: Final = re.compile(r"(?:\([0-9A-Za-z]{1,5}\)|\d{1,3}[.)]|[a-zA-Z][.)]|[•●▪◦‣–—-])\s|§")
_NOTE_START: Final = re.compile(
    rf"(?:{NOTE_OPEN})?\s*(\d{{1,3}}|[*†‡])(?:{NOTE_CLOSE})?\s*[.)]?\s*\S"
)
_REFERENCE: Final = re.compile(f"{NOTE_OPEN}(.+?){NOTE_CLOSE}")
_HYPHEN: Final = re.compile(r"([^\W\d_]+)[-‐]$")
# Of `12-month`, `1396r-8(k)`, `2013–2014`: no letters are parted by these hyphens.
_NUMBER_END: Final = re.compile(r"\d[-‐]$")
_CODE_END: Final = re.compile(r"\w[-‐–]$")
_WORD_START: Final = re.compile(r"[^\W\d_]+")
_COMPOUND: Final = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_SENTENCE_END: Final = (".", ":", ";", "!", "?", "”", '"', "。", "؟")
# "Ein- und Ausfuhr", "two- or three-year": the hyphen replaces a word that is still to come.
_SUSPENDED: Final = frozenset(
    {"and", "or", "to", "und", "oder", "bzw", "bis", "et", "ou", "y", "o"}
)
_SMALLER: Final = 0.93


def blocks_of(pages: Sequence[list[PdfLine]]) -> list[PdfBlock]:
    """The whole document's blocks; a paragraph may run over columns and pages."""
    text_size = prevailing_size(pages)
    blocks: list[PdfBlock] = []
    for index, lines in enumerate(pages):
        leading = _leading(lines)
        right = _right_edges(lines)
        for line in lines:
            last = blocks[-1] if blocks else None
            if last is None or not _continues(last, line, index, leading, right):
                blocks.append(last := PdfBlock())
            last.lines.append((index, line))
    mark_headings(blocks, text_size)
    _mark_notes(blocks, text_size)
    return _rejoined(blocks)


def _leading(lines: Sequence[PdfLine]) -> float:
    """The distance of most lines from the next."""
    gaps = Counter(
        round(a.y - b.y)
        for a, b in pairwise(lines)
        if a.column == b.column and 0 < a.y - b.y < 60  # noqa: PLR2004 — farther is not leading
    )
    return float(max(gaps, key=lambda gap: (gaps[gap], -gap), default=0))


def _right_edges(lines: Sequence[PdfLine]) -> dict[int, float]:
    edges: dict[int, float] = {}
    for line in lines:
        edges[line.column] = max(edges.get(line.column, 0.0), line.x1)
    return edges


def _continues(
    block: PdfBlock, line: PdfLine, page: int, leading: float, right: dict[int, float]
) -> bool:
    last = block.last
    if line.table or last.table or line.cells or last.cells or not _same_type(last, line):
        return False
    if block.lines[-1][0] != page or line.column != last.column:
        return _runs_on(last, line)
    if FILLED.search(last.text) and not line.text[:1].islower():
        return False
    gap = last.y - line.y
    # Titles are set in type larger than the page's leading was made for.
    nearest = 1.45 * leading if leading > line.size else 1.7 * line.size
    if not -1 <= gap <= max(nearest, 1.3 * line.size) + 0.5:
        return False
    return not _begins(block, line, right[line.column])


def _begins(block: PdfBlock, line: PdfLine, right: float) -> bool:
    """Whether a line begins a paragraph, though it follows the last one closely."""
    last = block.last
    if is_number_broken(last.text, line.text):
        return False
    short = last.x1 < right - 0.12 * (right - last.x0)
    ended = last.text.endswith(_SENTENCE_END)
    if _LABEL.match(line.text) and (short or ended or last.bold):
        return True
    left = min(earlier.x0 for _, earlier in block.lines)
    # Titles are centred: their last line begins farther right.
    indented = line.size > 0 and not line.bold and line.x0 - left > 0.9 * line.size
    if indented and len(block.lines) > 1 and abs(last.x0 - left) < 1:
        return True
    return short and ended


def _same_type(last: PdfLine, line: PdfLine) -> bool:
    # What a scanner recognized is of a slightly other size in every line.
    return last.bold == line.bold and abs(last.size - line.size) <= 0.11 * max(last.size, line.size)


def _runs_on(last: PdfLine, line: PdfLine) -> bool:
    """A sentence broken by the end of a column or page."""
    if is_number_broken(last.text, line.text):
        return True
    return not last.text.endswith(_SENTENCE_END) and line.text[:1].islower() and not last.bold


# Notes ------------------------------------------------------------------------------------


def _mark_notes(blocks: Sequence[PdfBlock], text_size: float) -> None:
    """Small print that begins with the number of a raised reference is a footnote."""
    references = {
        (page, number)
        for block in blocks
        for page, line in block.lines
        for number in map(str.strip, _REFERENCE.findall(line.text))
    }
    taken: set[tuple[int, str]] = set()
    for block in blocks:
        page, first = block.lines[0]
        match = _NOTE_START.match(first.text)
        if match is None or not 0 < first.size < _SMALLER * text_size or (page, match[1]) in taken:
            continue
        if (page, match[1]) in references or (page - 1, match[1]) in references:
            block.note, block.level = match[1], 0
            taken.add((page, match[1]))


def note_names(blocks: Iterable[PdfBlock]) -> dict[tuple[int, str], str]:
    """A name for each footnote, by its page and number; numbers may start again on any page."""
    names: dict[tuple[int, str], str] = {}
    times: Counter[str] = Counter()
    for block in blocks:
        if block.note:
            times[block.note] += 1
            again = f"-{times[block.note]}" if times[block.note] > 1 else ""
            names[block.lines[0][0], block.note] = block.note + again
    return names


def _rejoined(blocks: list[PdfBlock]) -> list[PdfBlock]:
    """Paragraphs that footnotes or floats at a page's end cut in two, as one again."""
    joined: list[PdfBlock] = []
    for block in blocks:
        page, line = block.lines[0]
        earlier = _interrupted(joined, page) if not (block.level or block.note) else None
        if (
            earlier
            and not line.cells
            and _same_type(earlier.last, line)
            and _runs_on(earlier.last, line)
        ):
            earlier.lines.extend(block.lines)
        else:
            joined.append(block)
    return joined


def _interrupted(blocks: Sequence[PdfBlock], page: int) -> PdfBlock | None:
    """The paragraph before the notes at the end of the page before."""
    at = len(blocks) - 1
    while at >= 0 and blocks[at].note:
        at -= 1
    if at in (-1, len(blocks) - 1) or blocks[at].level or blocks[at].last.cells:
        return None
    return blocks[at] if blocks[at].lines[-1][0] == page - 1 else None


# Words over line ends ---------------------------------------------------------------------


def is_number_broken(before: str, after: str) -> bool:
    """True if a line ends at the hyphen of a number or code that continues in the next."""
    if after[:1].isdecimal() and _CODE_END.search(before):
        return True
    start = _WORD_START.match(after)
    return (
        _NUMBER_END.search(before) is not None
        and start is not None
        and start[0].lower() not in _SUSPENDED
    )


class Joiner:
    """Puts the lines of a block together; the document's own words decide about hyphens."""

    def __init__(self, pages: Iterable[Sequence[PdfLine]]) -> None:
        self._words: set[str] = set()
        self._compounds: set[str] = set()
        for lines in pages:
            for line in lines:
                text = line.text.lower()
                self._words.update(_WORD_START.findall(text))
                if "-" in text:
                    self._compounds.update(_COMPOUND.findall(text))

    def joined(self, before: str, after: str) -> tuple[str, str]:
        """The end of a line as it continues, and the separator between it and the next."""
        if is_number_broken(before, after):
            return before, ""
        match = _HYPHEN.search(before)
        start = _WORD_START.match(after)
        if not before or match is None or start is None:
            return before, self._between(before, after)
        first, second = match[1].lower(), start[0].lower()
        if second in _SUSPENDED:
            return before, " "
        if not after[0].islower() or self._compound(first, second):
            return before, ""
        return before[:-1], ""

    def _compound(self, first: str, second: str) -> bool:
        return first + second not in self._words and f"{first}-{second}" in self._compounds

    @staticmethod
    def _between(before: str, after: str) -> str:
        # Chinese and Japanese know no space between words.
        if before and after and _ideographic(before[-1]) and _ideographic(after[0]):
            return ""
        return " "


def _ideographic(character: str) -> bool:
    return "\u3000" <= character <= "\u9fff" or "\uff00" <= character <= "\uffef"

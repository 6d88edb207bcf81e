"""Positions at which a Markdown section may be cut, from coarse to fine."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Final, NamedTuple

from fonds.chunk.headings import HeadingOutline, Span

_BLANK_LINES: Final = re.compile(r"\n\s*\n\s*")
_DELIMITER_ROW: Final = re.compile(
    r"^ {0,3}\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?)?[ \t]*$", re.MULTILINE
)
_ITEM: Final = re.compile(r"\n(?=[ \t]*(?:\||(?:[-*+•]|\d{1,9}[.)])[ \t]))")
# Begins with one set of characters, for which the regex engine skips through prose. Chinese and
# Japanese put no space after the mark. The look behind keeps the dot leaders of a table of contents
# from being tried once for each dot.
_SENTENCE_END: Final = re.compile(
    r"[.!?…。！？｡](?:"
    r"(?<=[。！？｡])[。！？｡]*+[」』）】”’]*+"
    r"|(?<=[.!?…])(?<![.!?…]{2})[.!?…]*+[\"'”’)\]*_]*+\s++)"
)
_WORD: Final = re.compile(r"\S+")

# Initials (`U.S`, `J`), short numbers (`1`) and what legal texts shorten.
_CONTINUES: Final = re.compile(
    r"(?:[^\W\d_]\.)*[^\W\d_]|\d{1,2}"
    r"|al|app|approx|art|ch|cir|cl|co|cong|corp|dept?|dist|div|dr|ed|et|ex|exec|fed|fig|ft|gen|gov"
    r"|hon|inc|jr|ltd|misc|mrs?|ms|nat|nos?|paras?|pp|pts?|pub|rec|regs?|rep|res|rev|secs?|sen"
    r"|sess|sr|st|stat|subch|subpt|supp|tit|vol|vs",
    re.IGNORECASE,
)
_OPENING: Final = "([{\"'“‘*_"
_MAX_ABBREVIATION_LENGTH: Final = 12
_JOINERS: Final = frozenset("\u200d\ufe0e\ufe0f")


class MarkdownBlock(NamedTuple):
    """A paragraph, list, table or fenced block."""

    start: int
    end: int
    rows: bool
    """Whether its lines are rows (of a table, of code) that stay whole."""


def blocks(outline: HeadingOutline, start: int, end: int) -> Iterator[MarkdownBlock]:
    """The blocks of a section; together they hold all of it that is not white space."""
    fences = outline.fences
    for index in range(bisect_right(fences, start, key=itemgetter(1)), len(fences)):
        fence_start, fence_end = fences[index]
        if fence_start >= end:
            break
        yield from _paragraphs(outline.lines, start, fence_start)
        yield from (
            MarkdownBlock(*span, rows=True) for span in trim(outline.lines, fence_start, fence_end)
        )
        start = fence_end
    yield from _paragraphs(outline.lines, start, end)


def _paragraphs(text: str, start: int, end: int) -> Iterator[MarkdownBlock]:
    for first, last in _between_blank_lines(text, start, end):
        table = _table_start(text, first, last)
        if table == last:
            yield MarkdownBlock(first, last, False)
        else:
            yield from (MarkdownBlock(*span, rows=False) for span in trim(text, first, table))
            yield from (MarkdownBlock(*span, rows=True) for span in trim(text, table, last))


def _between_blank_lines(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _BLANK_LINES.finditer(text, start, end):
        yield from trim(text, start, match.start())
        start = match.end()
    yield from trim(text, start, end)


def _table_start(text: str, start: int, end: int) -> int:
    if text.find("|", start, end) < 0:
        return end
    delimiter = _DELIMITER_ROW.search(text, start, end)
    if delimiter is None:
        return end
    return max(start, text.rfind("\n", start, max(start, delimiter.start() - 1)) + 1)


def is_table(text: str, start: int, end: int) -> bool:
    """True if a block begins with a header row and the row of dashes below it."""
    second = text.find("\n", start, end) + 1
    return second > 0 and _DELIMITER_ROW.match(text, second, end) is not None


def is_delimiter_row(line: str) -> bool:
    """True if a line is the row of dashes below a header."""
    return _DELIMITER_ROW.match(line) is not None


def items(text: str, start: int, end: int) -> list[Span]:
    """List items and table rows, each with the lines that continue it."""
    if text.find("\n", start, end) < 0:
        return trim(text, start, end)
    return _between(text, start, end, (match.end() for match in _ITEM.finditer(text, start, end)))


def sentences(text: str, start: int, end: int) -> list[Span]:
    """Sentences; an abbreviation or a number's point does not end one."""
    matches = _SENTENCE_END.finditer(text, start, end)
    return _between(
        text, start, end, (mark.end() for mark in matches if _ends_sentence(text, mark))
    )


def _ends_sentence(text: str, mark: re.Match[str]) -> bool:
    point, following = mark.span()
    if text[point] != "." or following >= len(text):
        return True
    if text[following].islower() or point == 0 or text[point - 1].isspace():
        return False
    before = text[max(0, point - _MAX_ABBREVIATION_LENGTH) : point].split()
    return _CONTINUES.fullmatch(before[-1].lstrip(_OPENING)) is None


def lines(text: str, start: int, end: int) -> list[Span]:
    """Lines that are not blank."""
    cuts = []
    position = text.find("\n", start, end)
    while position >= 0:
        cuts.append(position + 1)
        position = text.find("\n", position + 1, end)
    return _between(text, start, end, cuts)


def words(text: str, start: int, end: int) -> list[Span]:
    """Whatever white space keeps apart."""
    return [match.span() for match in _WORD.finditer(text, start, end)]


def characters(text: str, start: int, end: int, size: int) -> list[Span]:
    """Pieces of at most `size` characters; accents and joined emoji stay together if they can."""
    spans = []
    while end - start > size:
        cut = _before_cluster(text, start, start + size)
        spans.append((start, cut))
        start = cut
    return [*spans, (start, end)]


def _before_cluster(text: str, start: int, cut: int) -> int:
    for candidate in range(cut, start, -1):
        if not _extends(text[candidate]) and text[candidate - 1] != "\u200d":
            return candidate
    return cut


def _extends(character: str) -> bool:
    # Skin tones are the only characters outside the mark categories that change what precedes.
    return (
        character in _JOINERS
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or unicodedata.category(character).startswith("M")
    )


Split = Callable[[str, int, int], list[Span]]
Ladder = tuple[Split, ...]

# A soft line break inside prose means nothing, so sentences come before lines; a row of a table
# or a line of code is cut only if it is too long by itself, and then without regard to sentences.
PROSE: Final[Ladder] = (items, sentences, lines, words)
ROWS: Final[Ladder] = (lines, words)


def trim(text: str, start: int, end: int) -> list[Span]:
    """The span without white space at its ends, or nothing if it is blank."""
    if start >= end:
        return []
    if not text[start].isspace() and not text[end - 1].isspace():
        return [(start, end)]
    stripped = text[start:end].lstrip()
    if not stripped:
        return []
    start = end - len(stripped)
    return [(start, start + len(stripped.rstrip()))]


def _between(text: str, start: int, end: int, cuts: Iterable[int]) -> list[Span]:
    spans: list[Span] = []
    for cut in cuts:
        spans += trim(text, start, cut)
        start = cut
    return spans + trim(text, start, end)

"""Finding quoted words in a text, and the most similar part of a text; pure functions.

Both sides are normalized first: no markup, no soft hyphens, one kind of dash and of quotation
mark, spaces only between words. Words that a quoter left out (`…`), altered (`[t]he`) or added
(`[sic]`) are read as such. Letter case and every other character count.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from html import unescape
from itertools import pairwise
from typing import Final, NamedTuple

from fonds.results import QuoteChange
from fonds.stores.fulltext import visible_text

MAX_REPLACED: Final = 80
"""The limit of characters of a document that words in brackets may replace."""
MAX_TRIES: Final = 200_000
"""The limit of positions that a search for altered words tries."""
MAX_PARTS: Final = 1_000
"""The limit of omissions, or brackets, that are read as such; others count as text."""
MAX_COMPARISONS: Final = 50_000_000
"""The limit of characters that a search compares; only contrived texts come near it."""

_DASHES: Final = "-\u2010-\u2015\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d"
_QUOTES: Final = (
    "'\"`\u00b4\u2018-\u201f\u2032-\u2036\u00ab\u00bb\u2039\u203a\u300c-\u300f\uff02\uff07"
)
_INVISIBLE: Final = "\u00ad\u200b-\u200f\u2060\ufeff"
_SIGNS: Final = r"A-Za-z0-9.,;:()%$/=+?!@{}^§#"

_TOKEN: Final = re.compile(
    # Most of a text, in runs as long as possible.
    rf"(?P<run>[{_SIGNS}]+(?:(?<=[A-Za-z0-9])[ ](?=[A-Za-z0-9])[{_SIGNS}]+)*+)"
    r"|(?P<space>\s+)"
    rf"|(?P<dash>[{_DASHES}]+)"
    rf"|(?P<quote>[{_QUOTES}]+)"
    r"|(?P<escaped>\\[!-/:-@\[-`{-~])"
    r"|(?P<markup><!--[^>]{0,400}+(?<=--)>|</?[A-Za-z][^<>]{0,200}+>|\[\^[^\]\s]{1,40}+\]"
    rf"|\]\([^()\s]{{0,2000}}+\)|[\[\]*_~|\\{_INVISIBLE}]+?)"
    r"|(?P<entity>&#?\w{1,31};)"
    r"|(?P<other>.)",
    re.DOTALL,
)
# Markup at the beginning of a line, and separator lines of tables.
_LINE_SIGNS: Final = re.compile(
    r"^[ \t]*+(?:(?:>|\#{1,6}(?=\s|\Z)|[-+](?=[ \t]))[ \t]*+)++|^[|: \t-]{3,}+$", re.MULTILINE
)
_LEFT_OUT: Final = re.compile(
    r"\[?(?:\u2026\.?|\.(?:\s{0,3}\.){2,}|\*(?:\s{0,3}\*){2,})\]?"
    r"|[\[(](?:internal\s)?(?:citations?|footnotes?|quotation\smarks?)\somitted[\])]",
    re.IGNORECASE,
)
_ADDED: Final = re.compile(
    r"\[sic[.!]?\]|[\[(](?:emphasis|italics|alterations?)\s(?:added|mine|in\soriginal|omitted)[\])]",
    re.IGNORECASE,
)
_BRACKETS: Final = re.compile(r"\[(?!\^)(?P<inside>[^\[\]]{0,200})\](?!\()")
_NOTHING: Final = frozenset("*_~|\\[]")
_ENDING: Final = " .,;:'"
_FREE: Final = "\ue000"
"""A mark after a letter whose case was altered."""


class ComparableText(NamedTuple):
    """A normalized text, and the origin of each of its parts."""

    text: str
    starts: list[int]
    """The starts of the parts in `text`, and its length."""
    origins: list[tuple[int, int]]
    """The spans of the same parts in the original."""

    def origin(self, position: int) -> tuple[int, int]:
        """The span in the original of a character of `text`."""
        index = bisect_right(self.starts, position) - 1
        start, end = self.origins[index]
        if end - start != self.starts[index + 1] - self.starts[index]:
            return start, end
        within = start + position - self.starts[index]
        return within, within + 1

    def position(self, origin: int) -> int:
        """The first character of `text` at or after an offset of the original."""
        index = bisect_right(self.origins, (origin, 0))
        if index and self.origins[index - 1][1] > origin:
            start, _ = self.origins[index - 1]
            return min(self.starts[index - 1] + origin - start, self.starts[index])
        return self.starts[index]


class TextSpan(NamedTuple):
    """A part of the original text."""

    start: int
    end: int


class QuotedPart(NamedTuple):
    """Consecutive words of a quotation."""

    text: str
    free: tuple[int, ...] = ()
    """The indexes of letters whose case was altered."""
    reach: int | None = None
    """The maximal distance to the previous part; None is anywhere after it."""
    opens: bool = True
    """Whether it must begin at a word boundary."""
    closes: bool = True
    """Whether it must end at one."""


def normalize(text: str) -> ComparableText:
    """Normalize a Markdown text for comparison."""
    text = _LINE_SIGNS.sub(_blank, text)
    parts: list[str] = []
    starts = [0]
    origins: list[tuple[int, int]] = []
    last, gap = "", -1
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "markup":
            continue
        if kind == "space":
            gap = token.start() if gap < 0 else gap
            continue
        part = token[0] if kind == "run" else _normalized(kind, token[0])
        if not part or (part == last and kind in {"dash", "quote"}):
            continue
        if gap >= 0 and _is_word(last) and _is_word(part[0]):
            parts.append(" ")
            starts.append(starts[-1] + 1)
            origins.append((gap, token.start()))
        parts.append(part)
        starts.append(starts[-1] + len(part))
        origins.append(token.span())
        last, gap = part[-1], -1
    return ComparableText("".join(parts), starts, origins)


def find_quote(text: ComparableText, quote: str, within: TextSpan | None = None) -> TextSpan | None:
    """The span of quoted words in a text, or in a part of it; None if they are not there."""
    low, high = (0, len(text.text)) if within is None else map(text.position, within)
    for parts in readings_of(quote):
        if (match := _find(text.text, parts, low, high)) is not None:
            start, end = match
            return TextSpan(text.origin(start)[0], text.origin(end - 1)[1])
    return None


def readings_of(quote: str) -> list[list[QuotedPart]]:
    """The readings of a quotation: words in brackets belong to the text, or replace others."""
    if quote.count("[") > MAX_PARTS:
        quote = quote.replace("[", "").replace("]", "")
    fragments = _LEFT_OUT.split(_ADDED.sub(" ", quote), MAX_PARTS)
    readings = [[_literal(fragment) for fragment in fragments]]
    if not any(part.text for part in readings[0]):
        return []
    if _ADDED.search(quote):
        # Publishers write `[sic]` too.
        unchanged = _LEFT_OUT.split(quote, MAX_PARTS)
        readings.append([_literal(fragment) for fragment in unchanged])
    if _BRACKETS.search(quote):
        readings.append([part for fragment in fragments for part in _altered(fragment)])
    with_words = ([part for part in parts if part.text] for parts in readings)
    return [[*parts[:-1], _without_ending(parts[-1])] for parts in with_words if parts]


# Normalization ----------------------------------------------------------------------------


def _blank(signs: re.Match[str]) -> str:
    return " " * len(signs[0])


def _normalized(kind: str | None, token: str) -> str:
    if kind == "dash":
        return "-"
    if kind == "quote":
        return "'"
    if kind == "escaped":
        return "" if token[1] in _NOTHING else normalize(token[1]).text
    if kind == "entity" and (character := unescape(token)) != token:
        return normalize(character).text
    return token if kind == "entity" else _character(token)


@lru_cache(maxsize=8192)
def _character(character: str) -> str:
    # Ligatures and full-width forms are typography; a superscript 2 is not.
    is_type = "\ufb00" <= character <= "\ufb4f" or "\uff00" <= character <= "\uffef"
    return unicodedata.normalize("NFKD" if is_type else "NFD", character)


def _is_word(character: str) -> bool:
    """Whether a space next to it counts: Chinese and Japanese are written without."""
    if character.isascii():
        return character.isalnum()
    return character == _FREE or (character.isalnum() and not "\u2e80" <= character <= "\uffef")


# What was quoted --------------------------------------------------------------------------


def _literal(fragment: str) -> QuotedPart:
    """The words of a fragment; a single letter in brackets may have either case."""
    unbracketed = _BRACKETS.sub(_unbracketed, fragment.replace(_FREE, ""))
    text, free = "", []
    for part in normalize(unbracketed).text.strip(" '").split(_FREE):
        free.append(len(text) - 1)
        text += part
    return QuotedPart(text, tuple(index for index in free[1:] if index >= 0))


def _unbracketed(bracket: re.Match[str]) -> str:
    inside = bracket["inside"]
    return f"{inside}{_FREE}" if len(inside) == 1 and inside.isalpha() else inside


def _altered(fragment: str) -> Iterator[QuotedPart]:
    """The words around brackets, each near the previous ones; `[t]he` is one word."""
    gaps = [gap.span() for gap in _BRACKETS.finditer(fragment) if not _is_recased(fragment, gap)]
    edges = [(0, 0), *gaps, (len(fragment), len(fragment))]
    is_first = True
    for (_, start), (end, _) in pairwise(edges):
        part = _literal(fragment[start:end])
        if part.text:
            yield part._replace(
                reach=None if is_first else MAX_REPLACED,
                opens=start == 0 or fragment[start].isspace(),
                closes=end == len(fragment) or fragment[end - 1].isspace(),
            )
            is_first = False


def _is_recased(fragment: str, bracket: re.Match[str]) -> bool:
    follows = fragment[bracket.end() : bracket.end() + 1]
    return len(bracket["inside"]) == 1 and follows.isalpha()


def _without_ending(part: QuotedPart) -> QuotedPart:
    """American printers set the quoter's full stop or comma inside the quotation marks."""
    text = part.text.rstrip(_ENDING)
    if not text:
        return part
    return part._replace(text=text, free=tuple(index for index in part.free if index < len(text)))


# Search -----------------------------------------------------------------------------------


def _find(text: str, parts: list[QuotedPart], low: int, high: int) -> tuple[int, int] | None:
    for _ in range(MAX_TRIES):
        matches: list[tuple[int, int]] = []
        for part in parts:
            begin = matches[-1][1] if matches else low
            reach = None if not matches or part.reach is None else begin + part.reach
            limit = high if reach is None else min(high, reach + len(part.text))
            start = _search(text, part, begin, limit)
            if start is None:
                break
            matches.append((start, start + len(part.text)))
        else:
            return _first_start(text, parts, matches), matches[-1][1]
        if not matches or reach is None:
            return None  # a part that does not occur after here does not occur later either
        low = matches[0][0] + 1
    return None


def _first_start(text: str, parts: list[QuotedPart], matches: list[tuple[int, int]]) -> int:
    """The last possible start of the first part, so that the match is as short as possible."""
    start = matches[0][0]
    if len(parts) == 1 or parts[1].reach is not None:
        return start
    while (later := _search(text, parts[0], start + 1, matches[1][0])) is not None:
        start = later
    return start


def _search(text: str, part: QuotedPart, low: int, high: int) -> int | None:
    """The first occurrence of a part that begins and ends at word boundaries where it must."""
    anchor, offset = _anchor(part)
    size = len(part.text)
    if high - low < size:
        return None
    last = high - size + offset + len(anchor)
    hit = text.find(anchor, low + offset, last)
    for _ in range(max(1, MAX_COMPARISONS // size)):
        if hit < 0:
            return None
        start = hit - offset
        if _is_bounded(text, part, start) and _agrees(text[start : start + size], part):
            return start
        hit = text.find(anchor, hit + 1, last)
    return None


def _anchor(part: QuotedPart) -> tuple[str, int]:
    """The longest substring without an altered letter, and its start."""
    edges = [-1, *part.free, len(part.text)]
    begin, end = max(pairwise(edges), key=lambda pair: pair[1] - pair[0])
    return part.text[begin + 1 : end], begin + 1


def _agrees(text: str, part: QuotedPart) -> bool:
    if not part.free:
        return text == part.text
    edges = [-1, *part.free, len(part.text)]
    fixed = ((begin + 1, end) for begin, end in pairwise(edges))
    return all(text[begin:end] == part.text[begin:end] for begin, end in fixed) and all(
        text[index].lower() == part.text[index].lower() for index in part.free
    )


def _is_bounded(text: str, part: QuotedPart, start: int) -> bool:
    end = start + len(part.text)
    cuts_start = part.opens and start > 0 and _is_word(text[start - 1]) and _is_word(text[start])
    cuts_end = part.closes and end < len(text) and _is_word(text[end - 1]) and _is_word(text[end])
    return not cuts_start and not cuts_end


MAX_WORDS: Final = 400
"""The limit of words of a quotation that are compared."""
MIN_SIMILARITY: Final = 0.6
"""The least similarity that is not a coincidence."""

_RUN_LENGTH: Final = 3
_MAX_OCCURRENCES: Final = 4
"""The limit of occurrences of the same words in the quotation that are used."""
_SLACK: Final = 8
_WORD: Final = re.compile("[\u2e80-\uffef]|[^\\W_\u2e80-\uffef]+|[^\\w\\s]")
_MARKUP: Final = re.compile(
    r"^[ \t]*(?:[>#]+[ \t]*)+|(?<!\\)\*+|\\(?=[!-/:-@\[-`{-~])", re.MULTILINE
)


class SimilarStretch(NamedTuple):
    """A part of a text that is similar to the quotation, and the differences."""

    span: TextSpan
    similarity: float
    redline: list[QuoteChange]


class _WordPositions(NamedTuple):
    keys: list[str]
    spans: list[tuple[int, int]]
    """In the normalized text."""


def nearest(text: str, comparable: ComparableText, quote: str) -> SimilarStretch | None:
    """The most similar part of a text, if it is similar enough."""
    comparable_quote = normalize(quote)
    quoted = _words(comparable_quote.text, MAX_WORDS)
    words = _words(comparable.text)
    start = _likely_start(quoted.keys, words.keys)
    if start is None:
        return None
    low, high = max(0, start - _SLACK), start + len(quoted.keys) + _SLACK
    window = words.keys[low:high]
    matcher = SequenceMatcher(None, quoted.keys, window, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    first, last = _trimmed(blocks, len(quoted.keys), len(window))
    matcher.set_seq2(window[first:last])
    if matcher.ratio() < MIN_SIMILARITY:
        return None
    spans = words.spans[low + first : low + last]
    changes = _redline(matcher, (quote, comparable_quote, quoted.spans), (text, comparable, spans))
    span = TextSpan(comparable.origin(spans[0][0])[0], comparable.origin(spans[-1][1] - 1)[1])
    return SimilarStretch(span, round(matcher.ratio(), 3), list(changes))


def _words(text: str, limit: int | None = None) -> _WordPositions:
    """The words and punctuation marks of a text."""
    words = _WordPositions([], [])
    for match in _WORD.finditer(text):
        words.keys.append(match[0])
        words.spans.append(match.span())
        if limit is not None and len(words.keys) == limit:
            break
    return words


def _likely_start(quoted: list[str], words: list[str]) -> int | None:
    """The word of the text at which the quotation would begin, by runs of common words."""
    for together in range(min(_RUN_LENGTH, len(quoted)), 0, -1):
        positions: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for index, run in enumerate(_runs(quoted, together)):
            if len(positions[run]) < _MAX_OCCURRENCES:
                positions[run].append(index)
        votes: Counter[int] = Counter()
        for index, run in enumerate(_runs(words, together)):
            for quoted_at in positions.get(run, ()):
                # Insertions and omissions shift what follows: neighbours vote together.
                votes[(index - quoted_at) // _SLACK] += 1
        if votes:
            best, _ = max(votes.items(), key=lambda vote: (vote[1], -vote[0]))
            return max(0, best * _SLACK)
    return None


def _runs(words: list[str], together: int) -> Iterator[tuple[str, ...]]:
    lowered = [word.lower() for word in words]
    return zip(*(lowered[shift:] for shift in range(together)), strict=False)


def _trimmed(blocks: Sequence[tuple[int, int, int]], quoted: int, window: int) -> tuple[int, int]:
    """The part of the window that corresponds to the quotation."""
    if not blocks:
        return 0, window
    (first_quoted, first, _), (last_quoted, last, size) = blocks[0], blocks[-1]
    before, behind = first_quoted, quoted - last_quoted - size
    return max(0, first - before), min(window, last + size + behind)


def _redline(
    matcher: SequenceMatcher[str],
    quoted: tuple[str, ComparableText, list[tuple[int, int]]],
    in_text: tuple[str, ComparableText, list[tuple[int, int]]],
) -> Iterator[QuoteChange]:
    for op, first, last, begin, end in matcher.get_opcodes():
        if op == "equal":
            yield QuoteChange(op="keep", text=_slice(in_text, begin, end))
            continue
        if last > first:
            yield QuoteChange(op="delete", text=_slice(quoted, first, last))
        if end > begin:
            yield QuoteChange(op="insert", text=_slice(in_text, begin, end))


def _slice(side: tuple[str, ComparableText, list[tuple[int, int]]], first: int, last: int) -> str:
    text, comparable, spans = side
    start = comparable.origin(spans[first][0])[0]
    end = comparable.origin(spans[last - 1][1] - 1)[1]
    return " ".join(_MARKUP.sub("", visible_text(text[start:end])).split())

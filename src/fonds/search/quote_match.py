"""Finding quoted words in a text, whatever a publisher, a printer and a quoter made of them; pure.

Both sides are brought to one form first: no markup, no soft hyphens, one kind of dash and of
quotation mark, spaces only between words. Words that a quoter left out (`…`), altered (`[t]he`)
or added (`[sic]`) are read as such. Letter case and every other sign count.

The stretch of a text that comes nearest to words which do not stand in it; pure and bounded.
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

BRACKETED: Final = 80
"""Characters of a document that words in brackets may stand for."""
MOST_TRIES: Final = 200_000
"""Places looked at before a search for altered words gives up."""
MOST_PARTS: Final = 1_000
"""Omissions, or brackets, that are read as such; what follows counts as it is written."""
EFFORT: Final = 50_000_000
"""Characters compared before any search gives up; only made-up texts come near it."""

_DASHES: Final = "-\u2010-\u2015\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d"
_QUOTES: Final = (
    "'\"`\u00b4\u2018-\u201f\u2032-\u2036\u00ab\u00bb\u2039\u203a\u300c-\u300f\uff02\uff07"
)
_UNSEEN: Final = "\u00ad\u200b-\u200f\u2060\ufeff"
_SIGNS: Final = r"A-Za-z0-9.,;:()%$/=+?!@{}^§#"

_TOKEN: Final = re.compile(
    # Most of a text, in runs as long as possible.
    rf"(?P<plain>[{_SIGNS}]+(?:(?<=[A-Za-z0-9])[ ](?=[A-Za-z0-9])[{_SIGNS}]+)*+)"
    r"|(?P<space>\s+)"
    rf"|(?P<dash>[{_DASHES}]+)"
    rf"|(?P<quote>[{_QUOTES}]+)"
    r"|(?P<escaped>\\[!-/:-@\[-`{-~])"
    r"|(?P<gone><!--[^>]{0,400}+(?<=--)>|</?[A-Za-z][^<>]{0,200}+>|\[\^[^\]\s]{1,40}+\]"
    rf"|\]\([^()\s]{{0,2000}}+\)|[\[\]*_~|\\{_UNSEEN}]+?)"
    r"|(?P<entity>&#?\w{1,31};)"
    r"|(?P<other>.)",
    re.DOTALL,
)
# What opens a line before its first word, and lines that only rule a table.
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
"""Stands behind a letter whose case was altered."""


class Folded(NamedTuple):
    """A text in the form it is compared in, and where each stretch of it comes from."""

    text: str
    places: list[int]
    """Where stretches begin in `text`, and its length."""
    origins: list[tuple[int, int]]
    """The same stretches in the original."""

    def origin(self, place: int) -> tuple[int, int]:
        """Where a character of `text` stands in the original."""
        index = bisect_right(self.places, place) - 1
        start, end = self.origins[index]
        if end - start != self.places[index + 1] - self.places[index]:
            return start, end
        within = start + place - self.places[index]
        return within, within + 1

    def place(self, origin: int) -> int:
        """The first character of `text` that stands at or behind a place of the original."""
        index = bisect_right(self.origins, (origin, 0))
        if index and self.origins[index - 1][1] > origin:
            start, _ = self.origins[index - 1]
            return min(self.places[index - 1] + origin - start, self.places[index])
        return self.places[index]


class TextSpan(NamedTuple):
    """A stretch of the original text."""

    start: int
    end: int


class QuotedPart(NamedTuple):
    """Words that stand together."""

    text: str
    free: tuple[int, ...] = ()
    """Letters whose case was altered."""
    reach: int | None = None
    """How far behind the part before it may begin; None is anywhere behind it."""
    opens: bool = True
    """Whether it must begin with a word."""
    closes: bool = True
    """Whether it must end with one."""


def fold(text: str) -> Folded:
    """A Markdown text in the form it is compared in."""
    text = _LINE_SIGNS.sub(_blank, text)
    pieces: list[str] = []
    places = [0]
    origins: list[tuple[int, int]] = []
    last, gap = "", -1
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "gone":
            continue
        if kind == "space":
            gap = token.start() if gap < 0 else gap
            continue
        piece = token[0] if kind == "plain" else _folded(kind, token[0])
        if not piece or (piece == last and kind in {"dash", "quote"}):
            continue
        if gap >= 0 and _is_word(last) and _is_word(piece[0]):
            pieces.append(" ")
            places.append(places[-1] + 1)
            origins.append((gap, token.start()))
        pieces.append(piece)
        places.append(places[-1] + len(piece))
        origins.append(token.span())
        last, gap = piece[-1], -1
    return Folded("".join(pieces), places, origins)


def find_quote(text: Folded, quote: str, within: TextSpan | None = None) -> TextSpan | None:
    """Where quoted words stand in a text, or in a stretch of it; None where they do not."""
    low, high = (0, len(text.text)) if within is None else map(text.place, within)
    for parts in readings_of(quote):
        if (found := _find(text.text, parts, low, high)) is not None:
            start, end = found
            return TextSpan(text.origin(start)[0], text.origin(end - 1)[1])
    return None


def readings_of(quote: str) -> list[list[QuotedPart]]:
    """What a quotation may mean: words in brackets are the text's own, or stand for others."""
    if quote.count("[") > MOST_PARTS:
        quote = quote.replace("[", "").replace("]", "")
    kept = _LEFT_OUT.split(_ADDED.sub(" ", quote), MOST_PARTS)
    readings = [[_literal(piece) for piece in kept]]
    if not any(part.text for part in readings[0]):
        return []
    if _ADDED.search(quote):
        # Publishers write `[sic]` too.
        readings.append([_literal(piece) for piece in _LEFT_OUT.split(quote, MOST_PARTS)])
    if _BRACKETS.search(quote):
        readings.append([part for piece in kept for part in _altered(piece)])
    worded = ([part for part in parts if part.text] for parts in readings)
    return [[*parts[:-1], _without_ending(parts[-1])] for parts in worded if parts]


# One form ---------------------------------------------------------------------------------


def _blank(signs: re.Match[str]) -> str:
    return " " * len(signs[0])


def _folded(kind: str | None, written: str) -> str:
    if kind == "dash":
        return "-"
    if kind == "quote":
        return "'"
    if kind == "escaped":
        return "" if written[1] in _NOTHING else fold(written[1]).text
    if kind == "entity" and (meant := unescape(written)) != written:
        return fold(meant).text
    return written if kind == "entity" else _character(written)


@lru_cache(maxsize=8192)
def _character(written: str) -> str:
    # Ligatures and full-width forms are a matter of type; a superscript 2 is not.
    is_type = "\ufb00" <= written <= "\ufb4f" or "\uff00" <= written <= "\uffef"
    return unicodedata.normalize("NFKD" if is_type else "NFD", written)


def _is_word(character: str) -> bool:
    """Whether a space beside it counts: Chinese and Japanese are written without."""
    if character.isascii():
        return character.isalnum()
    return character == _FREE or (character.isalnum() and not "\u2e80" <= character <= "\uffef")


# What was quoted --------------------------------------------------------------------------


def _literal(piece: str) -> QuotedPart:
    """The words of a piece; a single letter in brackets is free in its case."""
    folded = fold(_BRACKETS.sub(_unbracketed, piece.replace(_FREE, ""))).text.strip(" '")
    text, free = "", []
    for stretch in folded.split(_FREE):
        free.append(len(text) - 1)
        text += stretch
    return QuotedPart(text, tuple(place for place in free[1:] if place >= 0))


def _unbracketed(bracket: re.Match[str]) -> str:
    inside = bracket["inside"]
    return f"{inside}{_FREE}" if len(inside) == 1 and inside.isalpha() else inside


def _altered(piece: str) -> Iterator[QuotedPart]:
    """The words around brackets, each near the one before; `[t]he` is still one word."""
    gaps = [gap.span() for gap in _BRACKETS.finditer(piece) if not _is_recased(piece, gap)]
    edges = [(0, 0), *gaps, (len(piece), len(piece))]
    is_first = True
    for (_, start), (end, _) in pairwise(edges):
        part = _literal(piece[start:end])
        if part.text:
            yield part._replace(
                reach=None if is_first else BRACKETED,
                opens=start == 0 or piece[start].isspace(),
                closes=end == len(piece) or piece[end - 1].isspace(),
            )
            is_first = False


def _is_recased(piece: str, bracket: re.Match[str]) -> bool:
    follows = piece[bracket.end() : bracket.end() + 1]
    return len(bracket["inside"]) == 1 and follows.isalpha()


def _without_ending(part: QuotedPart) -> QuotedPart:
    """American printers set the quoter's full stop or comma inside the quotation marks."""
    kept = part.text.rstrip(_ENDING)
    if not kept:
        return part
    return part._replace(text=kept, free=tuple(place for place in part.free if place < len(kept)))


# Where it stands --------------------------------------------------------------------------


def _find(text: str, parts: list[QuotedPart], low: int, high: int) -> tuple[int, int] | None:
    for _ in range(MOST_TRIES):
        found: list[tuple[int, int]] = []
        for part in parts:
            begin = found[-1][1] if found else low
            reach = None if not found or part.reach is None else begin + part.reach
            limit = high if reach is None else min(high, reach + len(part.text))
            start = _search(text, part, begin, limit)
            if start is None:
                break
            found.append((start, start + len(part.text)))
        else:
            return _first_start(text, parts, found), found[-1][1]
        if not found or reach is None:
            return None  # what is nowhere behind this place is nowhere behind a later one
        low = found[0][0] + 1
    return None


def _first_start(text: str, parts: list[QuotedPart], found: list[tuple[int, int]]) -> int:
    """The latest place for the first part, so that no more is taken in than was meant."""
    start = found[0][0]
    if len(parts) == 1 or parts[1].reach is not None:
        return start
    while (later := _search(text, parts[0], start + 1, found[1][0])) is not None:
        start = later
    return start


def _search(text: str, part: QuotedPart, low: int, high: int) -> int | None:
    """The first place of a part that begins and ends with words where it must."""
    anchor, offset = _anchor(part)
    size = len(part.text)
    if high - low < size:
        return None
    last = high - size + offset + len(anchor)
    hit = text.find(anchor, low + offset, last)
    for _ in range(max(1, EFFORT // size)):
        if hit < 0:
            return None
        start = hit - offset
        if _is_bounded(text, part, start) and _agrees(text[start : start + size], part):
            return start
        hit = text.find(anchor, hit + 1, last)
    return None


def _anchor(part: QuotedPart) -> tuple[str, int]:
    """The longest stretch without an altered letter, and where it begins."""
    edges = [-1, *part.free, len(part.text)]
    begin, end = max(pairwise(edges), key=lambda pair: pair[1] - pair[0])
    return part.text[begin + 1 : end], begin + 1


def _agrees(found: str, part: QuotedPart) -> bool:
    if not part.free:
        return found == part.text
    edges = [-1, *part.free, len(part.text)]
    kept = ((begin + 1, end) for begin, end in pairwise(edges))
    return all(found[begin:end] == part.text[begin:end] for begin, end in kept) and all(
        found[place].lower() == part.text[place].lower() for place in part.free
    )


def _is_bounded(text: str, part: QuotedPart, start: int) -> bool:
    end = start + len(part.text)
    cuts_start = part.opens and start > 0 and _is_word(text[start - 1]) and _is_word(text[start])
    cuts_end = part.closes and end < len(text) and _is_word(text[end - 1]) and _is_word(text[end])
    return not cuts_start and not cuts_end


MOST_WORDS: Final = 400
"""Of a quotation that are compared; its beginning says where to look."""
NEAR: Final = 0.6
"""Less is no likeness but chance."""

_TOGETHER: Final = 3
_OFTEN: Final = 4
"""Places of the quotation at which the same words are looked for."""
_SLACK: Final = 8
_WORD: Final = re.compile("[\u2e80-\uffef]|[^\\W_\u2e80-\uffef]+|[^\\w\\s]")
_MARKUP: Final = re.compile(
    r"^[ \t]*(?:[>#]+[ \t]*)+|(?<!\\)\*+|\\(?=[!-/:-@\[-`{-~])", re.MULTILINE
)


class SimilarStretch(NamedTuple):
    """A stretch like the quotation, and how to come from the one to the other."""

    span: TextSpan
    similarity: float
    redline: list[QuoteChange]


class _WordPositions(NamedTuple):
    keys: list[str]
    spans: list[tuple[int, int]]
    """In the folded text."""


def nearest(text: str, folded: Folded, quote: str) -> SimilarStretch | None:
    """The most similar stretch, if it is near enough to be what was meant."""
    quoted_fold = fold(quote)
    quoted = _words(quoted_fold.text, MOST_WORDS)
    words = _words(folded.text)
    start = _likeliest(quoted.keys, words.keys)
    if start is None:
        return None
    low, high = max(0, start - _SLACK), start + len(quoted.keys) + _SLACK
    window = words.keys[low:high]
    matcher = SequenceMatcher(None, quoted.keys, window, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    first, last = _trimmed(blocks, len(quoted.keys), len(window))
    matcher.set_seq2(window[first:last])
    if matcher.ratio() < NEAR:
        return None
    spans = words.spans[low + first : low + last]
    changes = _redline(matcher, (quote, quoted_fold, quoted.spans), (text, folded, spans))
    span = TextSpan(folded.origin(spans[0][0])[0], folded.origin(spans[-1][1] - 1)[1])
    return SimilarStretch(span, round(matcher.ratio(), 3), list(changes))


def _words(folded: str, most: int | None = None) -> _WordPositions:
    """Words and signs, each for itself."""
    words = _WordPositions([], [])
    for match in _WORD.finditer(folded):
        words.keys.append(match[0])
        words.spans.append(match.span())
        if most is not None and len(words.keys) == most:
            break
    return words


def _likeliest(quoted: list[str], words: list[str]) -> int | None:
    """Where in the text the quotation would begin, by the runs of words that both have."""
    for together in range(min(_TOGETHER, len(quoted)), 0, -1):
        places: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place, run in enumerate(_runs(quoted, together)):
            if len(places[run]) < _OFTEN:
                places[run].append(place)
        votes: Counter[int] = Counter()
        for place, run in enumerate(_runs(words, together)):
            for quoted_at in places.get(run, ()):
                # Words put in or left out shift what follows: neighbours vote together.
                votes[(place - quoted_at) // _SLACK] += 1
        if votes:
            best, _ = max(votes.items(), key=lambda vote: (vote[1], -vote[0]))
            return max(0, best * _SLACK)
    return None


def _runs(words: list[str], together: int) -> Iterator[tuple[str, ...]]:
    lowered = [word.lower() for word in words]
    return zip(*(lowered[shift:] for shift in range(together)), strict=False)


def _trimmed(blocks: Sequence[tuple[int, int, int]], quoted: int, window: int) -> tuple[int, int]:
    """The part of the window that answers to the quotation: as much before and behind as it has."""
    if not blocks:
        return 0, window
    (quoted_at, match_at, _), (last_quoted, last_found, size) = blocks[0], blocks[-1]
    before, behind = quoted_at, quoted - last_quoted - size
    return max(0, match_at - before), min(window, last_found + size + behind)


def _redline(
    matcher: SequenceMatcher[str],
    quoted: tuple[str, Folded, list[tuple[int, int]]],
    found: tuple[str, Folded, list[tuple[int, int]]],
) -> Iterator[QuoteChange]:
    for op, first, last, begin, end in matcher.get_opcodes():
        if op == "equal":
            yield QuoteChange(op="keep", text=_slice(found, begin, end))
            continue
        if last > first:
            yield QuoteChange(op="delete", text=_slice(quoted, first, last))
        if end > begin:
            yield QuoteChange(op="insert", text=_slice(found, begin, end))


def _slice(side: tuple[str, Folded, list[tuple[int, int]]], first: int, last: int) -> str:
    text, folded, spans = side
    start = folded.origin(spans[first][0])[0]
    end = folded.origin(spans[last - 1][1] - 1)[1]
    return " ".join(_MARKUP.sub("", visible_text(text[start:end])).split())

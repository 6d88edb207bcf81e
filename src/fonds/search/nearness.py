"""The stretch of a text that comes nearest to words which do not stand in it; pure and bounded."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from fonds.results import Change
from fonds.search.quotation import Folded, Span, fold
from fonds.stores.fulltext import as_seen

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


class Near(NamedTuple):
    """A stretch like the quotation, and how to come from the one to the other."""

    span: Span
    similarity: float
    redline: list[Change]


class _Words(NamedTuple):
    keys: list[str]
    spans: list[tuple[int, int]]
    """In the folded text."""


def nearest(text: str, folded: Folded, quote: str) -> Near | None:
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
    span = Span(folded.origin(spans[0][0])[0], folded.origin(spans[-1][1] - 1)[1])
    return Near(span, round(matcher.ratio(), 3), list(changes))


def _words(folded: str, most: int | None = None) -> _Words:
    """Words and signs, each for itself."""
    words = _Words([], [])
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
    (quoted_at, found_at, _), (last_quoted, last_found, size) = blocks[0], blocks[-1]
    before, behind = quoted_at, quoted - last_quoted - size
    return max(0, found_at - before), min(window, last_found + size + behind)


def _redline(
    matcher: SequenceMatcher[str],
    quoted: tuple[str, Folded, list[tuple[int, int]]],
    found: tuple[str, Folded, list[tuple[int, int]]],
) -> Iterator[Change]:
    for op, first, last, begin, end in matcher.get_opcodes():
        if op == "equal":
            yield Change(op="keep", text=_slice(found, begin, end))
            continue
        if last > first:
            yield Change(op="delete", text=_slice(quoted, first, last))
        if end > begin:
            yield Change(op="insert", text=_slice(found, begin, end))


def _slice(side: tuple[str, Folded, list[tuple[int, int]]], first: int, last: int) -> str:
    text, folded, spans = side
    start = folded.origin(spans[first][0])[0]
    end = folded.origin(spans[last - 1][1] - 1)[1]
    return " ".join(_MARKUP.sub("", as_seen(text[start:end])).split())

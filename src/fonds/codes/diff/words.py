"""The words of a Markdown text and the separators between them.

The alignment of two sequences in long runs of equal items, with bounded work.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

# Markers that open a line (headings, quotations) come from the normalizer: an edition that nests
# its notes one level deeper has changed no word.
_LINE_SIGNS: Final = r"^[ \t]*(?:(?:>|\#{1,6}(?=\s|\Z))[ \t]*)+"
# Japanese and Chinese set no spaces, so that each character counts as a word.
_IDEOGRAPHS: Final = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORDS: Final = rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]+"
_WORD: Final = re.compile(_WORDS)
_TOKEN: Final = re.compile(rf"(?P<signs>{_LINE_SIGNS})|{_WORDS}", re.MULTILINE)
# With the empty lines after it, also those of a quotation.
_PARAGRAPH: Final = re.compile(r"[^\n]*\n(?:[> \t]*\n)*|[^\n]+")
_SOFT_HYPHEN: Final = "\u00ad"

SIGNS: Final = re.compile(_LINE_SIGNS, re.MULTILINE)
"""Markers that may precede the first word of a line."""


class WordSpan(NamedTuple):
    """A range of a text."""

    start: int
    stop: int


class TextWords(NamedTuple):
    """The words of a range."""

    keys: list[str]
    """The words as they are compared, without soft hyphens."""
    spans: list[WordSpan]
    """The range of each word."""


def normalized_words(text: str) -> str:
    """The words joined by spaces; equal for two texts without a difference worth displaying."""
    words = " ".join(_WORD.findall(SIGNS.sub("", text)))
    return " ".join(words.replace(_SOFT_HYPHEN, "").split()) if _SOFT_HYPHEN in words else words


def normalized_fragment(text: str, *, opens_line: bool) -> str:
    """The words of a text that may begin within a line, where `>` and `#` are words."""
    return normalized_words(text) if opens_line else normalized_words(f". {text}")[2:]


def ends_at_line_start(text: str, *, opens_line: bool) -> bool:
    """Whether there is no word between the last line break and the end of the text."""
    _, broken, last = text.rpartition("\n")
    is_blank = not last.strip(" \t") or SIGNS.fullmatch(last) is not None
    return is_blank and (opens_line or bool(broken))


def words_of(text: str, within: WordSpan) -> TextWords:
    """The words of a range that begins with a line or a word."""
    words = TextWords([], [])
    # Search past the end of the range: a sign directly before a word is part of that word.
    for match in takewhile(lambda m: m.start() < within.stop, _TOKEN.finditer(text, within.start)):
        key = "" if match.lastgroup else match[0].replace(_SOFT_HYPHEN, "")
        if key:
            words.keys.append(key)
            words.spans.append(WordSpan(*match.span()))
    return words


def paragraphs_of(text: str) -> list[WordSpan]:
    """The lines of a text, each with the empty lines after it."""
    return [WordSpan(*match.span()) for match in _PARAGRAPH.finditer(text)]


def separators_of(text: str) -> tuple[str, str]:
    """The text before the first word and after the last; the whole text twice without words."""
    first = next((token for token in _TOKEN.finditer(text) if not token.lastgroup), None)
    if first is None:
        return text, text
    end = len(text.rstrip())
    while signs := SIGNS.fullmatch(text, text.rfind("\n", 0, end) + 1, end):
        end = len(text[: signs.start()].rstrip())
    return text[: first.start()], text[end:]


def end_of_first(text: str, count: int) -> int:
    """The end of the first `count` words."""
    end = 0
    for number, token in enumerate(_TOKEN.finditer(text)):
        if number == count:
            break
        end = token.end()
    return end


def start_of_last(text: str, count: int) -> int:
    """The start of the last `count` words, or of fewer if they are very long."""
    last = list(_TOKEN.finditer(text, max(0, len(text) - 200 * count)))[-count:]
    return last[0].start() if last else len(text)


_MAX_EDITS: Final = 300
"""Length of the longest edit script that is searched for."""
_EXACT_SEARCH_SIZE: Final = 600
"""Items on both sides together up to which the shortest edit script is tried first."""


class EqualRun(NamedTuple):
    """`size` equal items from position `a` and position `b`."""

    a: int
    b: int
    size: int


class _Range(NamedTuple):
    """The part of two sequences that is still to be aligned."""

    a: int
    a_end: int
    b: int
    b_end: int

    @property
    def size(self) -> int:
        return self.a_end - self.a + self.b_end - self.b


class EqualRunSearch:
    """A search for equal runs of two sequences, with at most `max_steps` steps."""

    def __init__(self, max_steps: int) -> None:
        self._steps_left = max_steps

    def blocks(self, a: Sequence[str], b: Sequence[str]) -> list[EqualRun]:
        """Equal runs in order, as few and as long as possible."""
        runs: list[EqualRun] = []
        waiting = [_Range(0, len(a), 0, len(b))]
        while waiting:
            inner, ends = _trimmed(a, b, waiting.pop())
            runs += ends
            if inner.a == inner.a_end or inner.b == inner.b_end or self._steps_left < 0:
                continue
            exact = self._edit_search(a, b, inner) if inner.size <= _EXACT_SEARCH_SIZE else None
            if exact is None and (anchors := self._anchors(a, b, inner)):
                waiting += _split(inner, anchors)
            elif exact is None and inner.size > _EXACT_SEARCH_SIZE:
                exact = self._edit_search(a, b, inner)
            runs += exact or ()
        return _joined(sorted(runs))

    def _anchors(self, a: Sequence[str], b: Sequence[str], within: _Range) -> list[EqualRun]:
        """The longest ascending sequence of items that occur once on each side."""
        self._steps_left -= within.size
        positions_in_b = _unique(b, within.b, within.b_end)
        pairs = [
            (position, positions_in_b[item])
            for item, position in _unique(a, within.a, within.a_end).items()
            if item in positions_in_b
        ]
        return [EqualRun(x, y, 1) for x, y in _ascending_sequence(sorted(pairs))]

    def _edit_search(
        self, a: Sequence[str], b: Sequence[str], within: _Range
    ) -> list[EqualRun] | None:
        """The shortest edit script by Myers' greedy search; None if it has too many edits."""
        width, height = within.a_end - within.a, within.b_end - within.b
        reached = {1: 0}
        """The last position on each diagonal."""
        rounds: list[dict[int, int]] = []
        for edits in range(min(_MAX_EDITS, width + height) + 1):
            self._steps_left -= edits + 1
            rounds.append(dict(reached))
            for k in range(-edits, edits + 1, 2):
                start = x = _entered(reached, k, edits)
                while x < width and x - k < height and a[within.a + x] == b[within.b + x - k]:
                    x += 1
                self._steps_left -= x - start
                reached[k] = x
                if k == width - height and x >= width:
                    return list(_traced_back(rounds, within, width, height))
            if self._steps_left < 0:
                break
        return None


def _trimmed(a: Sequence[str], b: Sequence[str], within: _Range) -> tuple[_Range, list[EqualRun]]:
    """The range without the equal items at both ends, and the runs of these."""
    i, i_end, j, j_end = within
    while i < i_end and j < j_end and a[i] == b[j]:
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and a[i_end - 1] == b[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
    ends = EqualRun(within.a, within.b, i - within.a), EqualRun(i_end, j_end, within.a_end - i_end)
    return _Range(i, i_end, j, j_end), [block for block in ends if block.size]


def _split(within: _Range, anchors: list[EqualRun]) -> Iterator[_Range]:
    """The ranges from one anchor to the next, each beginning with its anchor."""
    i, j = within.a, within.b
    for x, y, _ in anchors:
        yield _Range(i, x, j, y)
        i, j = x, y
    yield _Range(i, within.a_end, j, within.b_end)


def _unique(items: Sequence[str], start: int, stop: int) -> dict[str, int]:
    """The positions of the items that occur once in a range."""
    counts = Counter(items[start:stop])
    return {items[at]: at for at in range(start, stop) if counts[items[at]] == 1}


def _ascending_sequence(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest sequence of pairs that ascends on both sides; the input ascends on the first."""
    ends: list[int] = []
    """The lowest second position that a sequence of each length can end with."""
    last: list[int] = []
    links: list[int] = []
    for number, (_, position) in enumerate(pairs):
        length = bisect_left(ends, position)
        links.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [position]
        last[length : length + 1] = [number]
    sequence = []
    number = last[-1] if last else -1
    while number >= 0:
        sequence.append(pairs[number])
        number = links[number]
    return sequence[::-1]


def _is_insertion(reached: dict[int, int], k: int, edits: int) -> bool:
    """Whether a diagonal is entered by an insertion, from the one above it."""
    return k == -edits or (k != edits and reached[k - 1] < reached[k + 1])


def _entered(reached: dict[int, int], k: int, edits: int) -> int:
    return reached[k + 1] if _is_insertion(reached, k, edits) else reached[k - 1] + 1


def _traced_back(
    rounds: list[dict[int, int]], within: _Range, x: int, y: int
) -> Iterator[EqualRun]:
    for edits in range(len(rounds) - 1, -1, -1):
        reached, k = rounds[edits], x - y
        start = _entered(reached, k, edits)
        if x > start:
            yield EqualRun(within.a + start, within.b + start - k, x - start)
        x, y = start, start - k
        x, y = (x, y - 1) if _is_insertion(reached, k, edits) else (x - 1, y)


def _joined(blocks: list[EqualRun]) -> list[EqualRun]:
    """Blocks, with adjacent ones merged."""
    joined: list[EqualRun] = []
    for block in blocks:
        last = joined[-1] if joined else EqualRun(-1, -1, 0)
        if (last.a + last.size, last.b + last.size) == (block.a, block.b):
            joined[-1] = EqualRun(last.a, last.b, last.size + block.size)
        else:
            joined.append(block)
    return joined

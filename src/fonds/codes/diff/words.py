"""The words of a Markdown text, and what only stands between them.

The alignment of two sequences: long runs of equal items, found with bounded work.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

# Signs that open a line (headings, quotations) are the normalizer's, not the legislator's: an
# edition that nests its notes one level deeper has changed no word.
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
"""What a line may open with before its first word."""


class WordSpan(NamedTuple):
    """A stretch of a text."""

    start: int
    stop: int


class TextWords(NamedTuple):
    """The words of a stretch."""

    keys: list[str]
    """As they are compared: a soft hyphen makes no difference."""
    spans: list[WordSpan]
    """Where they stand."""


def essence(text: str) -> str:
    """The words alone: equal for two texts that differ in nothing worth showing."""
    words = " ".join(_WORD.findall(SIGNS.sub("", text)))
    return " ".join(words.replace(_SOFT_HYPHEN, "").split()) if _SOFT_HYPHEN in words else words


def fragment_essence(text: str, *, opens_line: bool) -> str:
    """The essence of a text that may begin within a line, where `>` and `#` are words."""
    return essence(text) if opens_line else essence(f". {text}")[2:]


def ends_at_line_start(text: str, *, opens_line: bool) -> bool:
    """Whether no word stands between the last line break and the end of the text."""
    _, broken, last = text.rpartition("\n")
    is_blank = not last.strip(" \t") or SIGNS.fullmatch(last) is not None
    return is_blank and (opens_line or bool(broken))


def words_of(text: str, within: WordSpan) -> TextWords:
    """The words of a stretch that begins with a line or a word."""
    found = TextWords([], [])
    # Not up to its end: a sign before a word that stands right behind it is one no longer.
    for match in takewhile(lambda m: m.start() < within.stop, _TOKEN.finditer(text, within.start)):
        key = "" if match.lastgroup else match[0].replace(_SOFT_HYPHEN, "")
        if key:
            found.keys.append(key)
            found.spans.append(WordSpan(*match.span()))
    return found


def paragraphs_of(text: str) -> list[WordSpan]:
    """The lines of a text, each with the empty ones after it."""
    return [WordSpan(*match.span()) for match in _PARAGRAPH.finditer(text)]


def separators_of(text: str) -> tuple[str, str]:
    """What stands before the first word and after the last; all of it where there is none."""
    first = next((token for token in _TOKEN.finditer(text) if not token.lastgroup), None)
    if first is None:
        return text, text
    end = len(text.rstrip())
    while signs := SIGNS.fullmatch(text, text.rfind("\n", 0, end) + 1, end):
        end = len(text[: signs.start()].rstrip())
    return text[: first.start()], text[end:]


def end_of_first(text: str, count: int) -> int:
    """Where so many first words end."""
    end = 0
    for number, token in enumerate(_TOKEN.finditer(text)):
        if number == count:
            break
        end = token.end()
    return end


def start_of_last(text: str, count: int) -> int:
    """Where so many last words begin; fewer if they are very long."""
    last = list(_TOKEN.finditer(text, max(0, len(text) - 200 * count)))[-count:]
    return last[0].start() if last else len(text)


_MOST_EDITS: Final = 300
"""Longest script of single steps looked for in one place."""
_SMALL: Final = 600
"""Items on both sides together up to which the shortest script is looked for first."""


class EqualRun(NamedTuple):
    """So many equal items, from these positions on."""

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
    """Finds equal runs of two sequences until its effort is spent."""

    def __init__(self, effort: int) -> None:
        self._effort = effort

    def blocks(self, a: Sequence[str], b: Sequence[str]) -> list[EqualRun]:
        """Equal runs in order, as few and as long as can be found."""
        found: list[EqualRun] = []
        waiting = [_Range(0, len(a), 0, len(b))]
        while waiting:
            inner, ends = _trimmed(a, b, waiting.pop())
            found += ends
            if inner.a == inner.a_end or inner.b == inner.b_end or self._effort < 0:
                continue
            exact = self._shortest(a, b, inner) if inner.size <= _SMALL else None
            if exact is None and (anchors := self._anchors(a, b, inner)):
                waiting += _split(inner, anchors)
            elif exact is None and inner.size > _SMALL:
                exact = self._shortest(a, b, inner)
            found += exact or ()
        return _joined(sorted(found))

    def _anchors(self, a: Sequence[str], b: Sequence[str], within: _Range) -> list[EqualRun]:
        """The longest ascending row of items that stand once on each side."""
        self._effort -= within.size
        places = _unique(b, within.b, within.b_end)
        pairs = [
            (position, places[item])
            for item, position in _unique(a, within.a, within.a_end).items()
            if item in places
        ]
        return [EqualRun(x, y, 1) for x, y in _longest_ascent(sorted(pairs))]

    def _shortest(
        self, a: Sequence[str], b: Sequence[str], within: _Range
    ) -> list[EqualRun] | None:
        """By Myers' greedy search; None if it takes too many edits."""
        width, height = within.a_end - within.a, within.b_end - within.b
        reached = {1: 0}
        """How far each diagonal was followed."""
        rounds: list[dict[int, int]] = []
        for edits in range(min(_MOST_EDITS, width + height) + 1):
            self._effort -= edits + 1
            rounds.append(dict(reached))
            for k in range(-edits, edits + 1, 2):
                start = x = _entered(reached, k, edits)
                while x < width and x - k < height and a[within.a + x] == b[within.b + x - k]:
                    x += 1
                self._effort -= x - start
                reached[k] = x
                if k == width - height and x >= width:
                    return list(_traced_back(rounds, within, width, height))
            if self._effort < 0:
                break
        return None


def _trimmed(a: Sequence[str], b: Sequence[str], within: _Range) -> tuple[_Range, list[EqualRun]]:
    """What is left between the equal items at both ends, and these."""
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
    """Where those items stand that stand there once."""
    counts = Counter(items[start:stop])
    return {items[at]: at for at in range(start, stop) if counts[items[at]] == 1}


def _longest_ascent(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest row of pairs that ascends on both sides; they ascend on the first already."""
    ends: list[int] = []
    """The lowest second position a row of each length can end with."""
    last: list[int] = []
    links: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        links.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    row = []
    number = last[-1] if last else -1
    while number >= 0:
        row.append(pairs[number])
        number = links[number]
    return row[::-1]


def _is_insertion(reached: dict[int, int], k: int, edits: int) -> bool:
    """Whether a diagonal is best entered by an insertion, from the one above it."""
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
    """Blocks that follow each other directly, as one."""
    joined: list[EqualRun] = []
    for block in blocks:
        last = joined[-1] if joined else EqualRun(-1, -1, 0)
        if (last.a + last.size, last.b + last.size) == (block.a, block.b):
            joined[-1] = EqualRun(last.a, last.b, last.size + block.size)
        else:
            joined.append(block)
    return joined

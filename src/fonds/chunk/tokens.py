"""Counting tokens of the cl100k_base vocabulary: exact, offline, loaded on first use."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from itertools import accumulate, repeat
from operator import add
from typing import Any, Final

_COMPILED: Final = "bpe_openai._bindings"
_MOST_WORDS: Final = 200_000
_LONGEST_WORD: Final = 40
_STRETCH: Final = 1 << 16
# Whatever white space stands before it, the vocabulary's splitter begins a piece here.
_SPACE_BEFORE_WORD: Final = re.compile(r" (?=\S)")


def count(text: str) -> int:
    """The number of tokens of a text, special tokens read as ordinary words."""
    by_words = _count_words(text)
    return _count_whole(text) if by_words is None else by_words


def count_within(text: str, limit: int) -> int | None:
    """The number of tokens of a text, or None as soon as it is known to be above the limit."""
    by_words = _count_words(text) if len(text) <= limit * _LONGEST_WORD else None
    if by_words is not None:
        return by_words if by_words <= limit else None
    try:
        found: int | None = _tokenizer().count_till_limit(text, limit)
    except UnicodeEncodeError:
        found = _tokenizer().count_till_limit(_encodable(text), limit)
    return found


class Tally:
    """Exact numbers of tokens of any spans of a text, after one pass over it."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text = text
        self._begins = array("Q")
        self._sums = array("Q", [0])
        """Tokens of the words before each one; the first is never part of a difference."""
        while start < end:
            start = self._read(start, end)

    def count(self, start: int, end: int) -> int:
        """The number of tokens of a span inside the text, with no white space at its ends."""
        first = bisect_right(self._begins, start)
        last = bisect_left(self._begins, end, first) - 1
        if last < first:
            return _count_whole(self._text[start:end])
        head = _count_whole(self._text[start : self._begins[first] - 1])
        tail = _words()[self._text[self._begins[last] : end]]
        return head + self._sums[last] - self._sums[first] + tail

    def _read(self, start: int, end: int) -> int:
        # Strings weigh ten times as much as the numbers kept of them, so a text is taken in
        # stretch by stretch.
        if end - start > _STRETCH:
            cut = _SPACE_BEFORE_WORD.search(self._text, start + _STRETCH, end)
            end = cut.start() if cut else end
        words = _roomy_words()
        parts = self._text[start:end].split(" ")
        try:
            counts = list(map(words.__getitem__, parts))
        except _RunOfSpaceError:
            parts = _SPACE_BEFORE_WORD.split(self._text[start:end])
            counts = list(map(words.__getitem__, parts))
        lengths = map(add, map(len, parts), repeat(1))
        begins = list(accumulate(lengths, initial=start))
        self._begins.fromlist(begins[:-1])
        counts[0] += self._sums[-1]
        self._sums.fromlist(list(accumulate(counts)))
        return end + 1


def _count_whole(text: str) -> int:
    try:
        return int(_tokenizer().count(text))
    except UnicodeEncodeError:
        return int(_tokenizer().count(_encodable(text)))


def _count_words(text: str) -> int | None:
    """The sum over the text's words, which are few and known: three times as fast.

    The vocabulary's splitter takes a space together with the word after it, and never looks back
    across it, so words can be counted one by one. Only where white space or the end follows a
    space does it take the whole run as one piece; such a text is counted as a whole.
    """
    words = text.split(" ")
    first = words.pop(0)
    try:
        return _count_whole(first) + sum(map(_roomy_words().__getitem__, words))
    except _RunOfSpaceError:
        return None


class _RunOfSpaceError(Exception):
    """White space follows a space."""


class _Words(dict[str, int]):
    """Tokens of a word with a space before it, counted when first met."""

    def __missing__(self, word: str) -> int:
        if not word or word[0].isspace():
            raise _RunOfSpaceError
        found = _count_whole(f" {word}")
        if len(word) <= _LONGEST_WORD:
            self[word] = found
        return found


def _roomy_words() -> _Words:
    words = _words()
    if len(words) > _MOST_WORDS:
        words.clear()
    return words


@cache
def _words() -> _Words:
    return _Words()


@cache
def _tokenizer() -> Any:
    # Only the compiled module of the package is loaded: its Python front cannot count, and
    # importing it reads three vocabularies (0.8 s) through a deprecated call.
    package = find_spec("bpe_openai")
    places = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec(_COMPILED, places)
    if spec is None or spec.loader is None:
        raise ImportError(f"{_COMPILED} is missing; install fonds again with its dependencies.")
    compiled = module_from_spec(spec)
    spec.loader.exec_module(compiled)
    return compiled.tokenizer_for_encoding("cl100k_base")


def _encodable(text: str) -> str:
    # Damaged feeds hold lone surrogates, which have no UTF-8 form.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

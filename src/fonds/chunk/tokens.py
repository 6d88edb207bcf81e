"""Counting tokens of the cl100k_base vocabulary: exact, offline, loaded on first use."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from itertools import accumulate
from typing import Any, Final

_COMPILED: Final = "bpe_openai._bindings"
_CACHE_SIZE: Final = 40_000
_MAX_WORD_LENGTH: Final = 40
_VOCABULARY: Final = 17 << 20
_STRETCH: Final = 1 << 16
# A space in the midst of white space. Begins with it, so that the regex engine skips to spaces.
_ENTANGLED: Final = re.compile(r" (?<=\s )(?!\S)")
# One number says of a word how far it reaches and, in its low bits, how many tokens it has, so
# that one running sum gives both where each word begins and the tokens before it.
_POSITION: Final = 32
_TOKENS: Final = (1 << _POSITION) - 1
# Whatever white space precedes it, the vocabulary's splitter begins a token here.
_SPACE_BEFORE_WORD: Final = re.compile(r" (?=\S)")


def count(text: str) -> int:
    """The number of tokens of a text, special tokens read as ordinary words."""
    by_words = count_words(text)
    return _count_whole(text) if by_words is None else by_words


def count_words(text: str) -> int | None:
    """The same, summed over words met before: three times as fast, but None where spaces run.

    The vocabulary's splitter takes a space together with the word after it, and never looks back
    across it, so words can be counted one by one. Only where white space or the end follows a
    space does it take the whole run as one piece.
    """
    words = text.split(" ")
    first = words.pop(0)
    try:
        return _count_first(first) + sum(map(_roomy(_words()).__getitem__, words))
    except _RunOfSpaceError:
        return None


class TokenCounter:
    """Exact numbers of tokens of any spans of a text, after one pass over it."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text = text
        self._weights = _roomy(_weights())
        self._sums = self._read(start, end)
        """The start of each word and the tokens before it; those of the first are never read."""

    def count(self, start: int, end: int) -> int:
        """The number of tokens of a span inside the text, with no white space at its ends."""
        sums = self._sums
        first = bisect_right(sums, start << _POSITION | _TOKENS)
        last = bisect_left(sums, end << _POSITION, first) - 1
        if last < first:
            return _count_whole(self._text[start:end])
        before, after = sums[first], sums[last]
        head = _count_first(self._text[start : (before >> _POSITION) - 1])
        tail = self._weights[self._text[after >> _POSITION : end]]
        return head + (after - before + tail & _TOKENS)

    def count_within(self, start: int, end: int, limit: int) -> int | None:
        """The number of tokens of such a span, or None if it is above the limit."""
        if end - start > limit * _MAX_WORD_LENGTH and self._text.find(" ", start, end) < 0:
            return _count_whole_within(self._text[start:end], limit)
        tokens = self.count(start, end)
        return tokens if tokens <= limit else None

    def _read(self, start: int, end: int) -> Sequence[int]:
        if end - start <= _STRETCH:
            return self._running_sums(start, end, start << _POSITION)
        # Strings and numbers weigh ten times as much as an array of them, so a long text is taken
        # in stretch by stretch.
        sums = array("Q", [start << _POSITION])
        while start < end:
            cut = _SPACE_BEFORE_WORD.search(self._text, start + _STRETCH, end)
            stop = cut.start() if cut else end
            sums.fromlist(self._running_sums(start, stop, sums.pop()))
            start = stop + 1
        return sums

    def _running_sums(self, start: int, end: int, initial: int) -> list[int]:
        text = self._text[start:end]
        words = _SPACE_BEFORE_WORD.split(text) if _ENTANGLED.search(text) else text.split(" ")
        return list(accumulate(map(self._weights.__getitem__, words), initial=initial))


def _count_whole(text: str) -> int:
    try:
        return int(_tokenizer().count(text))
    except UnicodeEncodeError:
        return int(_tokenizer().count(_encodable(text)))


_count_short: Final = lru_cache(maxsize=8192)(_count_whole)


def _count_whole_within(text: str, limit: int) -> int | None:
    try:
        count: int | None = _tokenizer().count_till_limit(text, limit)
    except UnicodeEncodeError:
        count = _tokenizer().count_till_limit(_encodable(text), limit)
    return count


def _count_first(word: str) -> int:
    return _count_short(word) if len(word) <= _MAX_WORD_LENGTH else _count_whole(word)


class _RunOfSpaceError(Exception):
    """White space follows a space."""


class _WordTokens(dict[str, int]):
    """Tokens of a word with a space before it, counted when first met."""

    def __missing__(self, word: str) -> int:
        if not word or word[0].isspace():
            raise _RunOfSpaceError
        count = _count_whole(f" {word}")
        if len(word) <= _MAX_WORD_LENGTH:
            self[word] = count
        return count


class _Weights(dict[str, int]):
    """Reach and tokens of a word with a space before it, counted when first met."""

    def __missing__(self, word: str) -> int:
        weight = (len(word) + 1 << _POSITION) + _count_whole(f" {word}")
        if len(word) <= _MAX_WORD_LENGTH:
            self[word] = weight
        return weight


def _roomy(words: dict[str, int]) -> dict[str, int]:
    if len(words) > _CACHE_SIZE:
        words.clear()
    return words


@cache
def _words() -> _WordTokens:
    return _WordTokens()


@cache
def _weights() -> _Weights:
    return _Weights()


@cache
def _tokenizer() -> Any:
    # Only the compiled module of the package is loaded: its Python front cannot count, and
    # importing it reads three vocabularies (0.8 s) through a deprecated call.
    package = find_spec("bpe_openai")
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec(_COMPILED, folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{_COMPILED} is missing; install fonds again with its dependencies.")
    compiled = module_from_spec(spec)
    spec.loader.exec_module(compiled)
    return compiled.tokenizer_for_encoding("cl100k_base")


def memory_to_load() -> int:
    """Bytes of anonymous memory that the vocabulary takes, if it is not loaded yet."""
    return 0 if _tokenizer.cache_info().currsize else _VOCABULARY


def _encodable(text: str) -> str:
    # Damaged feeds hold lone surrogates, which have no UTF-8 form.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

"""Counting tokens of the cl100k_base vocabulary: exact, offline, loaded on first use."""

from __future__ import annotations

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, Final

_COMPILED: Final = "bpe_openai._bindings"
_MOST_WORDS: Final = 200_000
_LONGEST_WORD: Final = 40


def count(text: str) -> int:
    """The number of tokens of a text, special tokens read as ordinary words."""
    by_words = _count_words(text)
    if by_words is not None:
        return by_words
    try:
        return int(_tokenizer().count(text))
    except UnicodeEncodeError:
        return int(_tokenizer().count(_encodable(text)))


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


def _count_words(text: str) -> int | None:
    """The sum over the text's words, which are few and known: three times as fast.

    The vocabulary's splitter takes a space together with the word after it, and never looks back
    across it, so words can be counted one by one. Only where white space or the end follows a
    space does it take the whole run as one piece; such a text is counted as a whole.
    """
    if not text.isascii():
        return None
    words = _words()
    if len(words) > _MOST_WORDS:
        words.clear()
    first, *rest = text.split(" ")
    try:
        return int(_tokenizer().count(first)) + sum(map(words.__getitem__, rest))
    except _RunOfSpaceError:
        return None


class _RunOfSpaceError(Exception):
    """White space follows a space."""


class _Words(dict[str, int]):
    """Tokens of a word with a space before it, counted when first met."""

    def __missing__(self, word: str) -> int:
        if not word or word[0].isspace():
            raise _RunOfSpaceError
        found = int(_tokenizer().count(f" {word}"))
        if len(word) <= _LONGEST_WORD:
            self[word] = found
        return found


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

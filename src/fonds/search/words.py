"""Words as they are compared: cut like the index cuts them, and brought to their stem."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final

import snowballstemmer

from fonds.search.query import STOP_WORDS
from fonds.stores.fulltext import with_bigrams

_PLAIN_WORD: Final = re.compile(r"[^\W_]+")
_PREFIXES: Final = (3, 2)
"""Letters that no rule about endings touches; a stem may be as short as two."""


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, in lower case; pairs of CJK characters."""
    return _PLAIN_WORD.findall(with_bigrams(text.lower()))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The part that inflections share, by Porter's rules; accents count for nothing."""
    if not word.isascii():
        word = "".join(filter(_is_no_accent, unicodedata.normalize("NFKD", word)))
    stemmed: str = _stemmer().stemWord(word) if word.isascii() and word.isalpha() else word
    return stemmed


def _is_no_accent(character: str) -> bool:
    return not unicodedata.combining(character)


@cache
def _stemmer() -> Any:
    return snowballstemmer.stemmer("porter")


class Stems(dict[str, int]):
    """For each word the number of the stem it has, or -1; filled as words come by."""

    def __init__(self, stems: list[str]) -> None:
        super().__init__()
        self._numbers = {stem: number for number, stem in enumerate(stems)}
        self._prefixes = {stem[: _PREFIXES[0]] for stem in stems}

    def __missing__(self, word: str) -> int:
        # Stemming costs far more than a look-up, and few words of a passage begin like any of
        # those asked for.
        may_be = any(word[:length] in self._prefixes for length in _PREFIXES) or not word.isascii()
        number = self[word] = self._numbers.get(stem(word), -1) if may_be else -1
        return number


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """What a question is made of."""

    single: tuple[str, ...]
    """Its words without stop words; all of them if none would be left."""
    pairs: tuple[tuple[str, str], ...]
    """Those that stand side by side with no stop word between them."""


def words_asked(text: str) -> Words:
    """Take a question apart."""
    words = words_of(text)
    telling = [word for word in words if word not in STOP_WORDS]
    pairs = [pair for pair in pairwise(words) if STOP_WORDS.isdisjoint(pair)]
    return Words(single=tuple(dict.fromkeys(telling or words)), pairs=tuple(dict.fromkeys(pairs)))

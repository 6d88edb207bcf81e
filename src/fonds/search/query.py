"""Queries: their words, phrases, exclusions and fields; and stems.

Words are split like the index splits them, and compared by their stems.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final

import snowballstemmer

from fonds.stores.fulltext import with_bigrams

# Words that appear in nearly every passage, and do not distinguish any.
STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can did do does for from had has have how i in into is it its "
        "may must not of on or shall should such that the their there these they this to under "
        "was were what when where which who will with would",
    )
)

FIELDS: Final = ("source", "kind", "org", "title", "since", "until", "edition", "under")
"""The names before a colon; any other `word:` is an ordinary word."""

MAX_LENGTH: Final = 10_000
"""The limit of a query in characters; the rest is ignored."""
MAX_TERMS: Final = 64
"""The limit of the words of a query: a longer one is a pasted text, and is cut."""
MAX_WORD_LENGTH: Final = 128
"""In characters: text without spaces is one word here, but thousands of pairs in the index."""

_PART: Final = re.compile(
    rf'(?P<minus>(?<!\S)-(?=[^\W_]|"))?'
    rf'(?:(?<!\S)(?P<field>{"|".join(FIELDS)}):(?="[^"]|[^\s"]))?'
    r'(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)|")',
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W_]+(?:[-.'’][^\W_]+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """A parsed query."""

    text: str = ""
    """The text for an embedding model: the query without fields and exclusions."""
    terms: tuple[str, ...] = ()
    """The words for ranking; any of them is enough. Stop words only if there are no others."""
    phrases: tuple[str, ...] = ()
    """Phrases in quotation marks, all of which a passage must contain."""
    excluded: tuple[str, ...] = ()
    """Words and phrases after a minus sign, none of which a passage may contain."""
    fields: tuple[tuple[str, str], ...] = ()
    """`field:value` pairs, in order."""

    @property
    def search_terms(self) -> tuple[str, ...]:
        """The phrases and words by which passages match."""
        return (*self.phrases, *self.terms)

    def values(self, field: str) -> tuple[str, ...]:
        """The values of one field."""
        return tuple(value for name, value in self.fields if name == field)


def read_query(typed: str) -> Query:
    """Parse a query; every text is valid, and may result in an empty query."""
    # Databases refuse unpaired surrogates and NUL.
    clean = typed[:MAX_LENGTH].encode("utf-8", "replace").decode().replace("\0", " ")
    texts: list[str] = []
    phrases: list[str] = []
    words: list[str] = []
    excluded: list[str] = []
    fields: list[tuple[str, str]] = []
    for part in _PART.finditer(clean):
        value = (part["word"] or part["phrase"] or "").strip()
        if not value:
            continue
        if part["minus"]:
            excluded.append(_phrase(value))
        elif part["field"]:
            fields.append((part["field"].lower(), value))
            if part["field"].lower() == "title":
                texts.append(value)
                words += _words(value)
        else:
            texts.append(value)
            if part["phrase"]:
                phrases.append(_phrase(value))
            else:
                words += _words(value)
    significant = [word for word in words if word.lower() not in STOP_WORDS]
    terms = significant or ([] if any(phrases) else words)
    return Query(
        text=" ".join(texts),
        terms=_few(terms),
        phrases=_few(phrases),
        excluded=_few(excluded),
        fields=tuple(fields[:MAX_TERMS]),
    )


def _few(terms: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term for term in terms if term))[:MAX_TERMS]


def _phrase(text: str) -> str:
    return " ".join(_words(text)[:MAX_TERMS])


def _words(text: str) -> list[str]:
    return [word[:MAX_WORD_LENGTH] for word in _WORD.findall(text)]


_LETTERS_OR_DIGITS: Final = re.compile(r"[^\W_]+")
_PREFIXES: Final = (3, 2)
"""The lengths of prefixes that stemming does not change; a stem may have two letters."""


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, in lower case; pairs of CJK characters."""
    return _LETTERS_OR_DIGITS.findall(with_bigrams(text.lower()))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of a word by Porter's rules, without accents."""
    if not word.isascii():
        word = "".join(filter(_is_base_character, unicodedata.normalize("NFKD", word)))
    stemmed: str = _stemmer().stemWord(word) if word.isascii() and word.isalpha() else word
    return stemmed


def _is_base_character(character: str) -> bool:
    return not unicodedata.combining(character)


@cache
def _stemmer() -> Any:
    return snowballstemmer.stemmer("porter")


class Stems(dict[str, int]):
    """The number of the stem of each word, or -1; filled on access."""

    def __init__(self, stems: list[str]) -> None:
        super().__init__()
        self._numbers = {stem: number for number, stem in enumerate(stems)}
        self._prefixes = {stem[: _PREFIXES[0]] for stem in stems}

    def __missing__(self, word: str) -> int:
        # Stemming is far slower than a lookup, and few words of a passage share a prefix with
        # the query.
        may_match = (
            any(word[:length] in self._prefixes for length in _PREFIXES) or not word.isascii()
        )
        number = self[word] = self._numbers.get(stem(word), -1) if may_match else -1
        return number


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryWords:
    """The words of a query for ranking."""

    single: tuple[str, ...]
    """Its words without stop words; all words if there are no others."""
    pairs: tuple[tuple[str, str], ...]
    """Neighbouring words without a stop word between them."""


def query_words(text: str) -> QueryWords:
    """Split a query into words."""
    words = words_of(text)
    significant = [word for word in words if word not in STOP_WORDS]
    pairs = [pair for pair in pairwise(words) if STOP_WORDS.isdisjoint(pair)]
    return QueryWords(
        single=tuple(dict.fromkeys(significant or words)), pairs=tuple(dict.fromkeys(pairs))
    )

"""What somebody typed: words to look for, phrases that must be there, and what to leave out.

Words as they are compared: cut like the index cuts them, and brought to their stem.

The part of a passage that shows why it was found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final

import snowballstemmer

from fonds.stores.fulltext import is_cjk, visible_text, with_bigrams

# Words that stand in nearly every passage and say nothing about any of them.
STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can did do does for from had has have how i in into is it its "
        "may must not of on or shall should such that the their there these they this to under "
        "was were what when where which who will with would",
    )
)

FIELDS: Final = ("source", "kind", "org", "title", "since", "until", "edition", "under")
"""What may stand before a colon; any other `word:` is a word like others."""

LONGEST: Final = 10_000
"""In characters; what is beyond says nothing that the beginning does not."""
MOST_TERMS: Final = 64
"""A longer query is cut: it is a pasted text, and its beginning says what it is about."""
LONGEST_WORD: Final = 128
"""In characters. Text without spaces is one word here, and thousands of pairs in the index."""

_PART: Final = re.compile(
    rf'(?P<minus>(?<!\S)-(?=[^\W_]|"))?'
    rf'(?:(?<!\S)(?P<field>{"|".join(FIELDS)}):(?="[^"]|[^\s"]))?'
    r'(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)|")',
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W_]+(?:[-.'’][^\W_]+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """A question in its parts."""

    text: str = ""
    """What a model is asked: the words as they were typed, without fields and exclusions."""
    terms: tuple[str, ...] = ()
    """Words that rank; any of them is enough. Stop words only when there is nothing else."""
    phrases: tuple[str, ...] = ()
    """Words in quotation marks: a passage without them is none."""
    excluded: tuple[str, ...] = ()
    """Words and phrases behind a minus sign: a passage with one of them is none."""
    fields: tuple[tuple[str, str], ...] = ()
    """`field:value` pairs, in order."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """All that a passage may be found by."""
        return (*self.phrases, *self.terms)

    def values(self, field: str) -> tuple[str, ...]:
        """The values given for one field."""
        return tuple(value for name, value in self.fields if name == field)


def read_query(typed: str) -> Query:
    """Take apart what was typed; whatever it is, it has a meaning, if only an empty one."""
    # Half characters and NUL are none, and no database takes them.
    clean = typed[:LONGEST].encode("utf-8", "replace").decode().replace("\0", " ")
    asked: list[str] = []
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
                asked.append(value)
                words += _words(value)
        else:
            asked.append(value)
            if part["phrase"]:
                phrases.append(_phrase(value))
            else:
                words += _words(value)
    telling = [word for word in words if word.lower() not in STOP_WORDS]
    terms = telling or ([] if any(phrases) else words)
    return Query(
        text=" ".join(asked),
        terms=_few(terms),
        phrases=_few(phrases),
        excluded=_few(excluded),
        fields=tuple(fields[:MOST_TERMS]),
    )


def _few(terms: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term for term in terms if term))[:MOST_TERMS]


def _phrase(text: str) -> str:
    return " ".join(_words(text)[:MOST_TERMS])


def _words(text: str) -> list[str]:
    return [word[:LONGEST_WORD] for word in _WORD.findall(text)]


_LETTERS_OR_DIGITS: Final = re.compile(r"[^\W_]+")
_PREFIXES: Final = (3, 2)
"""Letters that no rule about endings touches; a stem may be as short as two."""


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, in lower case; pairs of CJK characters."""
    return _LETTERS_OR_DIGITS.findall(with_bigrams(text.lower()))


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
class QueryWords:
    """What a question is made of."""

    single: tuple[str, ...]
    """Its words without stop words; all of them if none would be left."""
    pairs: tuple[tuple[str, str], ...]
    """Those that stand side by side with no stop word between them."""


def words_asked(text: str) -> QueryWords:
    """Take a question apart."""
    words = words_of(text)
    telling = [word for word in words if word not in STOP_WORDS]
    pairs = [pair for pair in pairwise(words) if STOP_WORDS.isdisjoint(pair)]
    return QueryWords(
        single=tuple(dict.fromkeys(telling or words)), pairs=tuple(dict.fromkeys(pairs))
    )


LENGTH: Final = 320

_SPACE: Final = re.compile(r"\s+")
_SHORTEST_STEM: Final = 4
_ENDING: Final = 3
"""How many letters an inflection may change at most."""


def snippet_of(text: str, terms: Sequence[str]) -> str:
    """At most about `LENGTH` characters around the densest stretch of the terms."""
    flat = _SPACE.sub(" ", visible_text(text)).strip()
    if len(flat) <= LENGTH:
        return flat
    start = _densest(flat, terms)
    start = flat.rfind(" ", 0, start) + 1 if start else 0
    end = min(len(flat), start + LENGTH)
    end = end if end == len(flat) else max(flat.rfind(" ", start, end), start + 1)
    return f"{'… ' if start else ''}{flat[start:end]}{' …' if end < len(flat) else ''}"


def highlights(snippet: str, terms: Sequence[str]) -> list[tuple[int, int]]:
    """Where the words that were asked for stand in a snippet, in any inflection; in order."""
    spans: list[tuple[int, int]] = []
    for match in _found(snippet, terms):
        start, end = match.span()
        if spans and spans[-1][1] == start:
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def _found(text: str, terms: Sequence[str]) -> Iterator[re.Match[str]]:
    words = " ".join(map(with_bigrams, terms)).split()
    stems = sorted(set(map(_stem, words)), key=len, reverse=True)
    return re.finditer("|".join(stems), text, re.IGNORECASE) if stems else iter(())


def _stem(word: str) -> str:
    if is_cjk(word[0]):
        return re.escape(word)
    stem = word[: max(_SHORTEST_STEM, len(word) - _ENDING)]
    return rf"(?<![^\W_]){re.escape(stem)}[^\W_]*"


def _densest(text: str, terms: Sequence[str]) -> int:
    spots = [match.start() for match in _found(text, terms)]
    best, most, first = 0, 0, 0
    for last, spot in enumerate(spots):
        while spot - spots[first] > LENGTH // 2:
            first += 1
        if last - first + 1 > most:
            best, most = spots[first], last - first + 1
    return max(0, best - LENGTH // 5)

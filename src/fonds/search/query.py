"""What somebody typed, as terms to look for."""

from __future__ import annotations

import re
from typing import Final

# Words that stand in nearly every passage and say nothing about any of them.
STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can did do does for from had has have how i in into is it its "
        "may must not of on or shall should such that the their there these they this to under "
        "was were what when where which who will with would",
    )
)

MOST_TERMS: Final = 64
"""A longer query is cut: it is a pasted text, and its beginning says what it is about."""
LONGEST_WORD: Final = 128
"""In characters. Text without spaces is one word here, and thousands of pairs in the index."""

_PHRASE: Final = re.compile(r'"([^"]+)"')
_WORD: Final = re.compile(r"[^\W_]+(?:[-.'’][^\W_]+)*")


def query_terms(query: str) -> list[str]:
    """Quoted phrases and single words; stop words only when there is nothing else."""
    phrases = [" ".join(_words(phrase)[:MOST_TERMS]) for phrase in _PHRASE.findall(query)]
    words = _words(_PHRASE.sub(" ", query))
    telling = [word for word in words if word.lower() not in STOP_WORDS]
    terms = [term for term in (*phrases, *telling) if term] or words
    return list(dict.fromkeys(terms))[:MOST_TERMS]


def _words(text: str) -> list[str]:
    return [word[:LONGEST_WORD] for word in _WORD.findall(text)]

"""The part of a passage that shows why it was found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from fonds.stores.fulltext import as_seen, is_cjk, with_bigrams

LENGTH: Final = 320

_SPACE: Final = re.compile(r"\s+")
_SHORTEST_STEM: Final = 4
_ENDING: Final = 3
"""How many letters an inflection may change at most."""


def snippet_of(text: str, terms: Sequence[str]) -> str:
    """At most about `LENGTH` characters around the densest stretch of the terms."""
    flat = _SPACE.sub(" ", as_seen(text)).strip()
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

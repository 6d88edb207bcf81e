"""Snippets: the sentence or the table row of a passage that holds most words of a query."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from fonds.chunk.boundaries import is_delimiter_row, sentences
from fonds.chunk.tables import row_text
from fonds.stores.fulltext import is_cjk, visible_text, with_bigrams

SNIPPET_LENGTH: Final = 320
"""In characters, without the marks of what is left out."""
_MAX_CONTEXT_LENGTH: Final = SNIPPET_LENGTH // 2
_MIN_STEM_LENGTH: Final = 4
_MAX_ENDING: Final = 3
"""The number of letters that an inflection may change."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence or a row, on one line."""

    text: str
    context: str = ""
    """The header of a row."""


def snippet_of(text: str, terms: Sequence[str], lead_ins: Sequence[str] = ()) -> str:
    """About `SNIPPET_LENGTH` characters around the sentence or row with the most terms.

    A row has the header of its table before it; that of a table which began in an earlier passage
    is in the lead-ins.
    """
    units = list(_units(visible_text(text), " — ".join(lead_ins)))
    flat = " ".join(unit.text for unit in units)
    if not flat:
        return ""
    if len(flat) <= SNIPPET_LENGTH:
        return _with_context(units[0].context, flat)
    best = _best_unit(units, terms)
    starts = list(accumulate((len(unit.text) + 1 for unit in units), initial=0))
    return _window(flat, starts, best, units[best], terms)


def _units(text: str, context: str) -> Iterator[_Unit]:
    paragraph: list[str] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if "|" in line and is_delimiter_row(line):
            continue
        if "|" in line and is_delimiter_row(following):
            yield from _sentences(paragraph)
            paragraph = []
            context = row_text(line)
            yield _Unit(" ".join(line.split()))
        elif line.lstrip().startswith("|"):
            yield from _sentences(paragraph)
            paragraph = []
            yield _Unit(" ".join(line.split()), context)
        elif line.strip():
            paragraph.append(line)
        else:
            yield from _sentences(paragraph)
            paragraph = []
    yield from _sentences(paragraph)


def _sentences(paragraph: Sequence[str]) -> Iterator[_Unit]:
    text = " ".join(" ".join(paragraph).split())
    yield from (_Unit(text[start:end]) for start, end in sentences(text, 0, len(text)))


def _best_unit(units: Sequence[_Unit], terms: Sequence[str]) -> int:
    """The unit with the most different words of the query; the rarer a word here, the more."""
    texts = [f"{unit.context} {unit.text}" for unit in units]
    stems = [{match.lastindex for match in _matches(text, terms)} for text in texts]
    counts = Counter(stem for each in stems for stem in each)
    scores = [sum(1 / counts[stem] ** 0.5 for stem in each) for each in stems]
    return max(range(len(units)), key=lambda number: (scores[number], -number))


def _window(flat: str, starts: Sequence[int], best: int, unit: _Unit, terms: Sequence[str]) -> str:
    context = _shortened(unit.context)
    length = SNIPPET_LENGTH - (len(context) + 3 if context else 0)
    start = starts[best]
    if len(unit.text) > length:
        start += _densest(unit.text, terms)
        start = max(flat.rfind(" ", 0, start) + 1, starts[best]) if start > starts[best] else start
    elif not context:
        room = length - len(unit.text)
        start = next(each for each in starts if each >= start - room // 3)
        # At its end, the window begins further up.
        earliest = max(0, len(flat) - length)
        start = min(start, next(each for each in starts if each >= earliest))
    end = min(len(flat), start + length)
    end = end if end == len(flat) else max(flat.rfind(" ", start, end), start + 1)
    window = f"{flat[start:end]}{' …' if end < len(flat) else ''}"
    if context:
        return f"{context} — {window}"
    return f"{'… ' if start else ''}{window}"


def _with_context(context: str, text: str) -> str:
    shortened = _shortened(context)
    return f"{shortened} — {text}" if shortened else text


def _shortened(context: str) -> str:
    if len(context) <= _MAX_CONTEXT_LENGTH:
        return context
    cut = context[:_MAX_CONTEXT_LENGTH]
    return f"{cut.rpartition(' ')[0] or cut}…"


def highlights(snippet: str, terms: Sequence[str]) -> list[tuple[int, int]]:
    """The spans of the terms in a snippet, in any inflection, in order."""
    spans: list[tuple[int, int]] = []
    for match in _matches(snippet, terms):
        start, end = match.span()
        if spans and spans[-1][1] == start:
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def _matches(text: str, terms: Sequence[str]) -> Iterator[re.Match[str]]:
    words = " ".join(map(with_bigrams, terms)).split()
    stems = sorted(set(map(_stem, words)), key=len, reverse=True)
    any_stem = "|".join(f"({stem})" for stem in stems)
    return re.finditer(any_stem, text, re.IGNORECASE) if stems else iter(())


def _stem(word: str) -> str:
    if is_cjk(word[0]):
        return re.escape(word)
    stem = word[: max(_MIN_STEM_LENGTH, len(word) - _MAX_ENDING)]
    return rf"(?<![^\W_]){re.escape(stem)}[^\W_]*"


def _densest(text: str, terms: Sequence[str]) -> int:
    positions = [match.start() for match in _matches(text, terms)]
    best, best_count, first = 0, 0, 0
    for last, position in enumerate(positions):
        while position - positions[first] > SNIPPET_LENGTH // 2:
            first += 1
        if last - first + 1 > best_count:
            best, best_count = positions[first], last - first + 1
    return max(0, best - SNIPPET_LENGTH // 5)

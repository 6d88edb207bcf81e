"""The part of a passage that shows why it was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from fonds.stores.fulltext import as_seen

LENGTH: Final = 320

_SPACE: Final = re.compile(r"\s+")


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


def _densest(text: str, terms: Sequence[str]) -> int:
    stems = [re.escape(term[: max(4, len(term) - 3)]) for term in terms]
    if not stems:
        return 0
    spots = [match.start() for match in re.finditer("|".join(stems), text, re.IGNORECASE)]
    best, most, first = 0, 0, 0
    for last, spot in enumerate(spots):
        while spot - spots[first] > LENGTH // 2:
            first += 1
        if last - first + 1 > most:
            best, most = spots[first], last - first + 1
    return max(0, best - LENGTH // 5)

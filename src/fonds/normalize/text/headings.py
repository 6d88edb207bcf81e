"""How deep the headings of typeset text stand, as far as their own words say it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

# Outermost first, as drafters of laws and of the Code of Federal Regulations order them.
_RANKS: Final = (
    "DIVISION",
    "TITLE",
    "SUBTITLE",
    "CHAPTER",
    "SUBCHAPTER",
    "PART",
    "SUBPART",
    "SEC",
)
_LABELLED: Final = re.compile(
    r"(?P<quoted>``|“)?(?:(?P<level>DIVISION|(?:SUB)?(?:TITLE|CHAPTER|PART))"
    r"\s+(?:[IVXLC]+|\d+[A-Z]?|[A-Z]{1,2})(?:\.?\s*$|\.?\s*(?:--|—|:))"
    r"|SEC(?:\.|TION)\s+\d)",
    re.IGNORECASE,
)
_OUTERMOST: Final = 2
_DEEPEST: Final = 6


def is_labelled(heading: str) -> bool:
    """Whether the heading names its own level: `Subtitle B--Lamps`, `SEC. 4. FEES.`."""
    return _LABELLED.match(heading) is not None


def levels_of(headings: Sequence[str]) -> list[int]:
    """A level for each heading of a text, in order.

    Headings that name their level stand below each other; one within quotation marks belongs to
    the section that quotes it. All others may begin anything, so nothing stands above them.
    """
    ranks = [_rank(heading) for heading in headings]
    # A heading in front of the first label is the title of what follows.
    first = _OUTERMOST + (bool(ranks) and ranks[0] is None)
    level_of = _levels(filter(None, ranks), first)
    levels: list[int] = []
    own = _OUTERMOST
    for heading, rank in zip(headings, ranks, strict=True):
        if rank is None and is_labelled(heading):
            levels.append(min(own + 1, _DEEPEST))
            continue
        own = level_of[rank] if rank else _OUTERMOST
        levels.append(own)
    return levels


def _levels(ranks: Iterable[str], first: int) -> dict[str, int]:
    present = sorted(set(ranks), key=_RANKS.index)
    return {rank: min(first + depth, _DEEPEST) for depth, rank in enumerate(present)}


def _rank(heading: str) -> str | None:
    """The level a heading names; None for one that names none or is quoted."""
    match = _LABELLED.match(heading)
    if match is None or match["quoted"]:
        return None
    return (match["level"] or "SEC").upper()

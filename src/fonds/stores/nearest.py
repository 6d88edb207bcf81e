"""How an index that knows no filters answers a question that has some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final, Protocol

from fonds.stores.vectors import Near

ENOUGH: Final = 0.75
"""Part of the rows looked at that must be eligible; nearly every search lets nearly all pass."""
SPARSE: Final = 0.1
"""Where fewer pass, it is quicker to begin with those that do."""


class Rows(Protocol):
    """What an index can tell about one question."""

    def best(self, count: int) -> Sequence[int]:
        """The best rows, eligible or not, as well as the index knows."""
        ...

    def weigh(self, rows: Sequence[int]) -> Mapping[int, float]:
        """The exact cosine of each row that is eligible."""
        ...

    def among_eligible(self, count: int) -> Mapping[int, float]:
        """The exact cosines of the best rows, found among the eligible ones alone.

        Never fewer than `count` if there are so many.
        """
        ...


def nearest(rows: Rows, limit: int, spare: int) -> list[Near]:
    """The best eligible rows, best first; never fewer than `limit` if there are so many.

    `spare` is how many more are compared in full, as the index knows only about how near they are.
    """
    wanted = limit + spare
    seen = rows.best(wanted)
    found = dict(rows.weigh(seen))
    share = len(found) / wanted
    if share >= SPARSE and len(found) < max(limit, ENOUGH * wanted) and len(seen) == wanted:
        found |= rows.weigh(_others(rows.best(ceil(wanted / share)), seen))
    if share < SPARSE or len(found) < limit:
        found = dict(rows.among_eligible(wanted))
    best = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [Near(row=row, similarity=cosine) for row, cosine in best[:limit]]


def _others(rows: Sequence[int], seen: Sequence[int]) -> list[int]:
    known = set(seen)
    return [row for row in rows if row not in known]

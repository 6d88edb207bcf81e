"""How values are spread, counted by the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import ColumnElement, case, func


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """Of values that are not negative: how many there are, their sum, and how many are small."""

    count: int
    sum: float
    buckets: tuple[tuple[int, int], ...]
    """Bounds, and how many values are not above them; `count` has those above the last, too."""

    @property
    def mean(self) -> float:
        """0 where there is no value."""
        return self.sum / self.count if self.count else 0.0

    @classmethod
    def read(cls, values: Iterator[Any], bounds: Sequence[int], *, unit: int = 1) -> Self:
        """Take what `spread` asked for from the values of a row; sums are of so many to one."""
        count, total = next(values), next(values)
        return cls(
            count=count,
            sum=int(total or 0) / unit,  # PostgreSQL sums to decimals
            buckets=tuple((bound, next(values)) for bound in bounds),
        )


def spread(
    value: ColumnElement[int], bounds: Sequence[int], *, unit: int = 1
) -> list[ColumnElement[Any]]:
    """The columns that tell how a whole number is spread, as long as it is not NULL."""
    within = (func.count(case((value <= bound * unit, 1))) for bound in bounds)
    return [func.count(value), func.sum(value), *within]

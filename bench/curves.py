"""How something grows: what it took at some sizes, and the power that fits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import linear_regression
from typing import Any, NamedTuple, Self

from bench.figures import Figure, within


class Point(NamedTuple):
    """What something took at one size."""

    what: str
    size: int
    seconds: float
    mib: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """What one thing took at some sizes."""

    what: str
    sizes: Sequence[int]
    seconds: Sequence[float]
    mib: Sequence[float]

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Self:
        """From the JSON it was written as."""
        numbers = {name: tuple(row[name]) for name in ("sizes", "seconds", "mib")}
        return cls(what=row["what"], **numbers)

    @property
    def time_exponent(self) -> float:
        """With which power of the size time grows."""
        return exponent(self.sizes, self.seconds)

    @property
    def memory_exponent(self) -> float:
        """With which power of the size memory grows."""
        return exponent(self.sizes, self.mib)

    def as_json(self) -> dict[str, Any]:
        """With its exponents, for readers who do not compute."""
        time, memory = round(self.time_exponent, 3), round(self.memory_exponent, 3)
        return {**asdict(self), "time_exponent": time, "memory_exponent": memory}

    def figures(self, most_time: float | None, most_memory: float) -> Iterator[Figure]:
        """Both exponents, beside what is allowed or beside growing as the size does."""
        what = f"exponent of the time to {self.what}"
        if most_time is not None:
            yield within(what, self.time_exponent, most_time)
        else:
            yield Figure(
                what=what,
                ours=self.time_exponent,
                theirs=1.0,
                unit="",
                peer="growing linearly",
                better="less",
            )
        yield within(f"exponent of the memory to {self.what}", self.memory_exponent, most_memory)


def curves(points: Sequence[Point]) -> list[Curve]:
    """One for each thing, in the order in which they were measured first."""
    found = []
    for what in dict.fromkeys(point.what for point in points):
        mine = (point[1:] for point in points if point.what == what)
        sizes, seconds, mib = zip(*mine, strict=True)
        found.append(Curve(what=what, sizes=sizes, seconds=seconds, mib=mib))
    return found


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of the line through the logarithms, by least squares."""
    return linear_regression(list(map(math.log, sizes)), list(map(math.log, values))).slope


def in_a_word(power: float) -> str:
    """How something grows that grows with this power."""
    if power <= 0.1:
        return "hardly"
    if power < 0.9:
        return "sub-linearly"
    return "linearly" if power <= 1.1 else "super-linearly"

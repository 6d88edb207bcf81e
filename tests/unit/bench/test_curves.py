"""Exponents are fitted to logarithms."""

from __future__ import annotations

import pytest
from bench.curves import Curve, Point, curves, exponent, in_a_word

SIZES = (100, 1000, 10_000)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_power_of_a_power_law_is_found(power: float) -> None:
    assert exponent(SIZES, [3 * size**power for size in SIZES]) == pytest.approx(power)


def test_what_is_needed_however_little_there_is_lowers_an_exponent() -> None:
    assert 0.4 < exponent(SIZES, [1000 + size for size in SIZES]) < 0.6


@pytest.mark.parametrize(
    ("power", "word"),
    [(0.0, "hardly"), (0.5, "sub-linearly"), (1.05, "linearly"), (1.2, "super-linearly")],
)
def test_growth_has_a_word(power: float, word: str) -> None:
    assert in_a_word(power) == word


def test_steps_become_curves() -> None:
    ingest = [Point("ingest", 1, 0.5, 90.0), Point("ingest", 10, 5.0, 91.0)]
    first, second = curves([ingest[0], Point("search", 1, 0.1, 80.0), ingest[1]])
    assert first == Curve(what="ingest", sizes=(1, 10), seconds=(0.5, 5.0), mib=(90.0, 91.0))
    assert second.what == "search"


def test_what_grows_faster_than_it_may_misses_its_bar() -> None:
    curve = Curve(what="ingest", sizes=SIZES, seconds=(1, 20, 400), mib=(90, 90, 90))
    time, memory = curve.figures(1.1, 0.1)
    assert time.holds is False
    assert memory.holds

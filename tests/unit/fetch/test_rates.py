from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from fonds.fetch.rates import Bucket, Pace, Rates
from fonds.settings import Settings


class ManualClock:
    """Time passes only by sleeping."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.seconds += seconds


def take(rates: Rates, *turns: tuple[str, str], pace: Pace) -> None:
    async def run() -> None:
        for source, url in turns:
            await rates.take(source, url, pace)

    asyncio.run(run())


def test_a_burst_goes_through_and_the_rest_keeps_the_pace() -> None:
    clock = ManualClock()
    rates = Rates(Settings(), clock, clock.sleep)
    turns = [("fr", "https://a.gov/")] * 5
    take(rates, *turns, pace=Pace(per_second=4, burst=3))
    assert clock.slept == [0.25, 0.25]


def test_waiting_callers_are_served_in_turn() -> None:
    bucket = Bucket(Pace(per_second=2, burst=1), ManualClock())
    assert [bucket.reserve() for _ in range(4)] == [0.0, 0.5, 1.0, 1.5]


def test_a_rest_earns_no_more_than_the_burst() -> None:
    clock = ManualClock()
    bucket = Bucket(Pace(per_second=1, burst=2), clock)
    clock.seconds = 100.0
    assert [bucket.reserve() for _ in range(3)] == [0.0, 0.0, 1.0]


def test_one_host_is_shared_by_its_sources() -> None:
    clock = ManualClock()
    rates = Rates(Settings(), clock, clock.sleep)
    turns = [("bills", "https://a.gov/1"), ("laws", "https://A.gov/2")]
    take(rates, *turns, pace=Pace(per_second=10))
    assert clock.slept == [0.1]


def test_the_strictest_pace_rules_a_shared_host() -> None:
    clock = ManualClock()
    rates = Rates(Settings(), clock, clock.sleep)
    take(rates, ("slow", "https://a.gov/"), pace=Pace(per_second=1))
    take(rates, ("fast", "https://a.gov/"), pace=Pace(per_second=100, burst=50))
    assert clock.slept == [1.0]


def test_one_source_is_paced_over_all_its_hosts() -> None:
    clock = ManualClock()
    rates = Rates(Settings(), clock, clock.sleep)
    take(rates, ("fr", "https://a.gov/"), ("fr", "https://b.gov/"), pace=Pace(per_second=10))
    assert clock.slept == [0.1]


def test_strangers_do_not_wait_for_each_other() -> None:
    clock = ManualClock()
    rates = Rates(Settings(), clock, clock.sleep)
    take(rates, ("fr", "https://a.gov/"), ("crs", "https://b.gov/"), pace=Pace(per_second=1))
    assert clock.slept == []


@pytest.mark.parametrize(("factor", "slept"), [(0.5, [2.0]), (4.0, [0.25]), (0.0, [])])
def test_the_factor_scales_every_pace_and_zero_switches_it_off(
    factor: float, slept: list[float]
) -> None:
    clock = ManualClock()
    rates = Rates(Settings(rate_factor=factor), clock, clock.sleep)
    take(rates, *[("fr", "https://a.gov/")] * 2, pace=Pace(per_second=1))
    assert clock.slept == slept


@pytest.mark.parametrize(
    ("base", "slept"),
    [("http://127.0.0.1:8000/a", []), ("http://localhost", []), ("https://mirror.org", [1.0])],
)
def test_a_mapped_host_on_this_machine_needs_no_politeness(base: str, slept: list[float]) -> None:
    clock = ManualClock()
    rates = Rates(Settings(hosts={"a.gov": base}), clock, clock.sleep)
    take(rates, *[("fr", "https://a.gov/")] * 2, pace=Pace(per_second=1))
    assert clock.slept == slept


def test_all_sources_wait_for_a_host_that_asked_for_it() -> None:
    clock = ManualClock()
    rates = Rates(Settings(), clock, clock.sleep)
    take(rates, ("fr", "https://a.gov/"), pace=Pace(per_second=100))
    rates.pause("https://a.gov/x", 30.0)
    take(rates, ("crs", "https://a.gov/"), pace=Pace(per_second=100))
    take(rates, ("gao", "https://b.gov/"), pace=Pace(per_second=100))
    assert clock.slept == [30.0]


@pytest.mark.parametrize(("per_second", "burst"), [(0.0, 1), (-1.0, 1), (1.0, 0)])
def test_a_pace_must_move(per_second: float, burst: int) -> None:
    with pytest.raises(ValueError, match="pace"):
        Pace(per_second=per_second, burst=burst)

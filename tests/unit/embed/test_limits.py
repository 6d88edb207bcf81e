from __future__ import annotations

import math
import random

import pytest

from fonds.embed.client import EndpointRate, RateLimits, read_rate
from fonds.errors import SettingsError
from fonds.testing import ManualClock


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("500/1000000", EndpointRate(requests=500, tokens=1_000_000)),
        (" 500 / 1_000_000 ", EndpointRate(requests=500, tokens=1_000_000)),
        ("500", EndpointRate(requests=500, tokens=math.inf)),
        ("/90000", EndpointRate(requests=math.inf, tokens=90_000)),
        ("", None),
        ("  ", None),
    ],
)
def test_limits_are_read_as_requests_and_tokens_a_minute(
    text: str, rate: EndpointRate | None
) -> None:
    assert read_rate(text) == rate


@pytest.mark.parametrize("text", ["many", "0/5", "5/0", "-1/5", "1/2/3", "nan/1", "5 per minute"])
def test_a_limit_that_makes_no_sense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingsError, match="500/1000000"):
        read_rate(text)


def sent_in_any_minute(limits: RateLimits, clock: ManualClock, sizes: list[int]) -> tuple[int, int]:
    """Requests and tokens in the fullest minute, if everybody waits as told."""
    sent: list[tuple[float, int]] = []
    for size in sizes:
        clock.move(seconds=limits.reserve(size))
        sent.append((clock.monotonic(), size))
    minutes = [[size for at, size in sent if begin <= at < begin + 59.999] for begin, _ in sent]
    return max(map(len, minutes)), max(map(sum, minutes))


def test_no_minute_has_more_requests_than_allowed() -> None:
    clock = ManualClock()
    limits = RateLimits(EndpointRate(requests=30, tokens=math.inf), clock)
    requests, _ = sent_in_any_minute(limits, clock, [10_000] * 100)
    assert requests == 30


def test_no_minute_has_more_tokens_than_allowed_and_those_of_its_first_request() -> None:
    clock = ManualClock()
    limits = RateLimits(EndpointRate(requests=math.inf, tokens=50_000), clock)
    chance = random.Random(1)
    _, tokens = sent_in_any_minute(limits, clock, [chance.randint(10, 900) for _ in range(600)])
    assert 49_000 < tokens <= 50_900
    assert clock.elapsed == pytest.approx(600 * 455 / 50_000 * 60, rel=0.1)


def test_both_limits_hold_at_once() -> None:
    clock = ManualClock()
    limits = RateLimits(EndpointRate(requests=20, tokens=6000), clock)
    many_small, _ = sent_in_any_minute(limits, clock, [1] * 60)
    _, few_large = sent_in_any_minute(limits, clock, [200] * 100)
    assert many_small == 20
    assert few_large <= 20 * 200
    _, very_large = sent_in_any_minute(limits, clock, [600] * 40)
    assert very_large <= 6600


def test_without_limits_nobody_waits() -> None:
    limits = RateLimits(None, ManualClock())
    assert [limits.reserve(1_000_000) for _ in range(3)] == [0.0, 0.0, 0.0]


def test_everybody_is_held_back_and_a_shorter_hold_does_not_shorten_a_longer() -> None:
    clock = ManualClock()
    limits = RateLimits(None, clock)
    limits.pause(20)
    limits.pause(5)
    assert limits.reserve(1) == 20.0
    clock.move(seconds=15)
    assert limits.pause_left() == 5.0
    clock.move(seconds=15)
    assert limits.pause_left() == limits.reserve(1) == 0.0

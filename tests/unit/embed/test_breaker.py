from __future__ import annotations

import pytest

from fonds.embed.client import Breaker
from fonds.errors import BreakerOpenError
from fonds.testing import ManualClock


def opened(clock: ManualClock) -> Breaker:
    breaker = Breaker(clock, failures=3, pause=30)
    for _ in range(3):
        breaker.check()
        breaker.failed("503 Overloaded")
    return breaker


def test_it_opens_after_failures_in_a_row_and_says_why() -> None:
    breaker = opened(ManualClock())
    with pytest.raises(BreakerOpenError, match=r"3 times in a row.*503 Overloaded") as caught:
        breaker.check()
    assert caught.value.retry_after == 30.0


def test_an_answer_in_between_starts_the_count_anew() -> None:
    breaker = Breaker(ManualClock(), failures=3)
    for _ in range(4):
        breaker.failed("500")
        breaker.failed("500")
        breaker.succeeded()
    breaker.check()


def test_after_the_pause_one_request_may_try_and_closes_it_by_an_answer() -> None:
    clock = ManualClock()
    breaker = opened(clock)
    clock.move(seconds=29)
    with pytest.raises(BreakerOpenError):
        breaker.check()
    clock.move(seconds=2)
    breaker.check()
    with pytest.raises(BreakerOpenError):
        breaker.check()
    breaker.succeeded()
    breaker.check()
    breaker.check()


def test_a_trial_that_fails_opens_it_for_another_pause() -> None:
    clock = ManualClock()
    breaker = opened(clock)
    clock.move(seconds=31)
    breaker.check()
    breaker.failed("still down")
    with pytest.raises(BreakerOpenError, match="still down"):
        breaker.check()
    clock.move(seconds=31)
    breaker.check()

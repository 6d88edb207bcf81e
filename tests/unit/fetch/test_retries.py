from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from fonds.errors import NotFoundError, RateLimitedError, UpstreamDownError
from fonds.fetch.answers import retry_after
from fonds.fetch.retries import Backoff
from fonds.settings import Settings

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def backoff(*, first: float = 1.0, longest: float = 60.0) -> Backoff:
    return Backoff(Settings(retry_wait=first, retry_wait_max=longest), random.Random(7))


def test_waits_double_with_jitter_up_to_the_longest() -> None:
    wait = backoff(first=1.0, longest=6.0)
    waits = [wait(UpstreamDownError("down")) for _ in range(5)]
    for low, found in zip((1, 2, 4), waits, strict=False):
        assert low <= found <= low + 1
    assert waits[0] != 1
    assert waits[3:] == [6.0, 6.0]


def test_a_hundred_failures_do_not_overflow() -> None:
    wait = backoff()
    assert [wait(UpstreamDownError("down")) for _ in range(2000)][-1] == 60.0


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.0), (12.5, 12.5), (3600.0, 60.0)])
def test_the_upstreams_wish_counts_up_to_the_longest_wait(asked: float, waited: float) -> None:
    assert backoff()(RateLimitedError("slow down", retry_after=asked)) == waited


def test_what_cannot_pass_is_not_retried() -> None:
    assert backoff()(NotFoundError("gone")) is False
    assert backoff()(ValueError("a mistake of ours")) is False


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 120 ", 120.0),
        ("9" * 400, 999_999_999.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 13:00:30 +0100", 30.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("Mon, 99 Foo 2026 00:00:00 GMT", None),
        ("٣", None),
    ],
)
def test_retry_after_is_read_in_both_forms(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOON) == seconds

"""Whoever asks too often waits; everybody else does not notice."""

from __future__ import annotations

import pytest
from tests.unit.web.visiting import Visit

from fonds.api import dependencies
from fonds.api.dependencies import RateLimiter
from fonds.testing import ManualClock


def test_so_many_at_once_and_then_one_after_the_other(clock: ManualClock) -> None:
    limit = RateLimiter(burst=3, per_second=0.5, clock=clock)
    assert [limit.acquire("a") for _ in range(4)] == [0, 0, 0, 2.0]
    clock.move(seconds=1)
    assert limit.acquire("a") == 1.0
    clock.move(seconds=1)
    assert limit.acquire("a") == 0
    assert limit.acquire("a") > 0


def test_asking_in_vain_costs_nothing(clock: ManualClock) -> None:
    limit = RateLimiter(burst=1, per_second=1, clock=clock)
    limit.acquire("a")
    assert [limit.acquire("a") for _ in range(5)] == [1.0] * 5


def test_who_was_away_may_ask_as_often_as_at_first_and_not_more(clock: ManualClock) -> None:
    limit = RateLimiter(burst=2, per_second=1, clock=clock)
    limit.acquire("a")
    clock.move(hours=1)
    assert [limit.acquire("a") for _ in range(3)] == [0, 0, 1.0]


def test_clients_do_not_wait_for_each_other(clock: ManualClock) -> None:
    limit = RateLimiter(burst=1, per_second=1, clock=clock)
    assert [limit.acquire(client) for client in "abab"] == [0, 0, 1.0, 1.0]


def test_no_more_clients_are_remembered_than_fit(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "MAX_CLIENTS", 2)
    limit = RateLimiter(burst=1, per_second=1, clock=clock)
    for client in "aba":
        limit.acquire(client)
    limit.acquire("c")  # b has not asked for longest
    assert limit.acquire("a") > 0
    assert len(limit._buckets) == 2
    assert limit.acquire("b") == 0


def test_searches_are_counted_where_others_search_too(elsewhere: Visit) -> None:
    answers = [elsewhere.get("/?q=water") for _ in range(31)]
    assert [each.status_code for each in answers] == [200] * 30 + [429]
    assert answers[-1].headers["retry-after"] == "1"
    assert "try again in 1 seconds" in answers[-1].text
    assert elsewhere.get("/").status_code == 200


def test_searches_of_programs_are_counted_as_well(elsewhere: Visit) -> None:
    asked = [elsewhere.get("/api/search?q=water").status_code for _ in range(31)]
    assert asked == [200] * 30 + [429]


def test_whoever_sits_at_the_machine_searches_as_often_as_wanted(here: Visit) -> None:
    assert {here.get("/?q=water").status_code for _ in range(31)} == {200}

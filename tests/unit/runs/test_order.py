"""Sources are run after those they depend on, independent ones side by side."""

from __future__ import annotations

import asyncio

import pytest

from fonds.runs.concurrency import in_order

GRAPH = {"bills": {"legislators", "committees"}, "committees": {"legislators"}, "gao": set[str]()}


def test_each_comes_after_those_it_depends_on() -> None:
    finished: list[str] = []

    async def act(name: str) -> str:
        await asyncio.sleep(0)
        assert GRAPH.get(name, set()) <= set(finished)
        finished.append(name)
        return name.upper()

    results = asyncio.run(in_order(GRAPH, act, concurrency=4))
    assert results == {name: name.upper() for name in finished}
    assert sorted(finished) == ["bills", "committees", "gao", "legislators"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_independent_ones_go_side_by_side_but_no_more_than_allowed(at_once: int) -> None:
    going: set[str] = set()
    most = 0

    async def act(name: str) -> None:
        nonlocal most
        going.add(name)
        most = max(most, len(going))
        for _ in range(3):
            await asyncio.sleep(0)
        going.remove(name)

    asyncio.run(in_order({name: set() for name in "abcdef"}, act, concurrency=at_once))
    assert most == at_once


def test_what_is_under_way_is_ended_before_a_cancellation_is_passed_on() -> None:
    ended: list[str] = []

    async def act(name: str) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    async def main() -> None:
        work = asyncio.ensure_future(in_order({"a": set(), "b": set()}, act, concurrency=2))
        await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert sorted(ended) == ["a", "b"]

    asyncio.run(main())

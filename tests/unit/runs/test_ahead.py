from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from fonds.runs.concurrency import work_ahead


async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


async def flat(results: AsyncIterator[list[int]], into: list[int] | None = None) -> list[int]:
    taken = [] if into is None else into
    async for ready in results:
        taken += ready
    return taken


def others() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


def test_results_come_in_the_order_of_the_items_whatever_finishes_first() -> None:
    async def main() -> None:
        gates = [asyncio.Event() for _ in range(4)]

        async def act(number: int) -> int:
            if number < 3:
                await gates[number + 1].wait()
            gates[number].set()
            return number

        assert await flat(work_ahead(numbers(4), act, window=4)) == [0, 1, 2, 3]

    asyncio.run(main())


def test_all_that_is_ready_comes_at_once() -> None:
    async def main() -> None:
        last = asyncio.Event()

        async def act(number: int) -> int:
            if number == 4:
                last.set()
            await last.wait()
            return number

        assert [ready async for ready in work_ahead(numbers(5), act, window=5)] == [[0, 1, 2, 3, 4]]

    asyncio.run(main())


def test_no_more_than_the_window_is_begun_and_not_taken() -> None:
    async def main() -> None:
        begun = 0
        taken = 0
        most = 0

        async def act(number: int) -> int:
            nonlocal begun, most
            begun += 1
            most = max(most, begun - taken)
            await asyncio.sleep(0)
            return number

        async for ready in work_ahead(numbers(20), act, window=3):
            for _ in range(10):
                await asyncio.sleep(0)
            taken += len(ready)
        assert (begun, taken) == (20, 20)
        # What is handed out makes room while its consumer still looks at it.
        assert 3 <= most <= 6

    asyncio.run(main())


def test_nothing_is_begun_beyond_the_window_while_the_first_item_lasts() -> None:
    async def main() -> None:
        begun: list[int] = []
        go_on = asyncio.Event()

        async def act(number: int) -> int:
            begun.append(number)
            await go_on.wait()
            return number

        working = asyncio.create_task(flat(work_ahead(numbers(10), act, window=3)))
        for _ in range(50):
            await asyncio.sleep(0)
        assert begun == [0, 1, 2]
        go_on.set()
        assert await working == list(range(10))

    asyncio.run(main())


def test_no_items_give_no_results() -> None:
    async def act(number: int) -> int:
        return number

    assert asyncio.run(flat(work_ahead(numbers(0), act, window=2))) == []


def test_exception_of_an_item_reaches_the_consumer_after_what_came_before_it() -> None:
    async def main() -> None:
        async def act(number: int) -> int:
            if number == 2:
                raise ValueError("item 2")
            return number

        taken: list[int] = []
        with pytest.raises(ValueError, match="item 2"):
            await flat(work_ahead(numbers(5), act, window=1), taken)
        assert taken == [0, 1]
        assert not others()

    asyncio.run(main())


def test_exception_of_the_producer_reaches_the_consumer_after_all_it_gave() -> None:
    async def breaking() -> AsyncIterator[int]:
        yield 0
        yield 1
        raise ValueError("no more")

    async def main() -> None:
        async def act(number: int) -> int:
            return number

        taken: list[int] = []
        with pytest.raises(ValueError, match="no more"):
            await flat(work_ahead(breaking(), act, window=4), taken)
        assert taken == [0, 1]
        assert not others()

    asyncio.run(main())


def test_cancelling_the_consumer_cancels_what_was_begun_and_leaves_no_task() -> None:
    async def main() -> None:
        cleaned: list[int] = []

        async def act(number: int) -> int:
            try:
                await asyncio.Event().wait()
            finally:
                # A connection is given back, which takes a moment.
                await asyncio.sleep(0)
                cleaned.append(number)
            return number

        working = asyncio.create_task(flat(work_ahead(numbers(9), act, window=3)))
        for _ in range(20):
            await asyncio.sleep(0)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert cleaned == [0, 1, 2]
        assert not others()

    asyncio.run(main())


def test_consumer_that_stops_early_leaves_no_task() -> None:
    async def main() -> None:
        async def act(number: int) -> int:
            if number:
                await asyncio.Event().wait()
            return number

        async with aclosing(work_ahead(numbers(9), act, window=4)) as results:  # type: ignore[type-var]
            assert await anext(results) == [0]
        assert not others()

    asyncio.run(main())

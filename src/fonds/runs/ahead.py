"""Working ahead: up to so many items at once, results in the order of the items."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def work_ahead(
    items: AsyncIterator[Item], act: Callable[[Item], Awaitable[Result]], *, window: int
) -> AsyncIterator[list[Result]]:
    """Act on items concurrently, at most `window` begun and not yet taken.

    Results come in lists of whatever is ready, so that a slow consumer catches up in few steps.
    """
    begun: deque[asyncio.Future[Result]] = deque()
    room = asyncio.Semaphore(window)
    arrived = asyncio.Event()

    async def produce() -> None:
        try:
            async for item in items:
                await room.acquire()
                begun.append(asyncio.ensure_future(act(item)))
                arrived.set()
        finally:
            arrived.set()

    producer = asyncio.create_task(produce())
    try:
        while begun or not producer.done():
            if not begun:
                arrived.clear()
                await arrived.wait()
                continue
            await asyncio.wait([begun[0]])
            ready = [begun.popleft().result() for _ in _leading_done(begun)]
            for _ in ready:
                room.release()
            yield ready
        await producer
    finally:
        # Nothing is left running behind the back of whoever stops here.
        producer.cancel()
        for future in begun:
            future.cancel()
        await asyncio.gather(producer, *begun, return_exceptions=True)


def _leading_done(begun: deque[asyncio.Future[Result]]) -> list[asyncio.Future[Result]]:
    leading = []
    for future in begun:
        if not future.done():
            break
        leading.append(future)
    return leading


async def each(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Things at hand, where a stream is wanted."""
    for item in items:
        yield item

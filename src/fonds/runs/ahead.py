"""Working ahead: up to so many items at once, results in the order of the items."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def work_ahead(
    items: AsyncIterator[Item], act: Callable[[Item], Awaitable[Result]], *, window: int
) -> AsyncIterator[Result]:
    """Act on items concurrently, at most `window` begun and not yet taken."""
    queue: asyncio.Queue[asyncio.Future[Result] | None] = asyncio.Queue(window)

    async def produce() -> None:
        try:
            async for item in items:
                await queue.put(asyncio.ensure_future(act(item)))
        finally:
            await queue.put(None)

    producer = asyncio.create_task(produce())
    try:
        while (result := await queue.get()) is not None:
            yield await result
        await producer
    finally:
        producer.cancel()
        while not queue.empty():
            if (begun := queue.get_nowait()) is not None:
                begun.cancel()

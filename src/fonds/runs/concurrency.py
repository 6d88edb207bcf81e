"""Working ahead: up to so many items at once, results in the order of the items.

Working through things that depend on each other: as early as each may, a few side by side.

The one thread in which codes are cut, normalized and written.

One, because the memory that the C libraries under us use is kept by each thread anew.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from graphlib import TopologicalSorter
from typing import Final, ParamSpec, TypeVar

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


async def as_stream(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Items as an asynchronous iterator."""
    for item in items:
        yield item


T = TypeVar("T")


async def in_order(
    graph: Mapping[str, set[str]], act: Callable[[str], Awaitable[T]], *, concurrency: int
) -> dict[str, T]:
    """Act on every name after those it depends on; gives what came of each.

    Whatever ends this, a failure or a cancellation, first ends everything still under way.
    """
    order = TopologicalSorter(graph)
    order.prepare()
    waiting: deque[str] = deque()
    running: dict[asyncio.Future[T], str] = {}
    results: dict[str, T] = {}
    try:
        while order.is_active():
            waiting += sorted(order.get_ready())
            while waiting and len(running) < concurrency:
                name = waiting.popleft()
                running[asyncio.ensure_future(act(name))] = name
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                name = running.pop(task)
                results[name] = task.result()
                order.done(name)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return results


P = ParamSpec("P")


async def finish_in_thread(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do something in a thread; also a caller that is cancelled waits for its end.

    What it works with may be closed after that.
    """
    acting = asyncio.ensure_future(asyncio.to_thread(act, *args, **kwargs))
    try:
        return await asyncio.shield(acting)
    finally:
        await asyncio.wait([acting])


_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="codes")


async def in_thread(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do something that blocks without holding up what is being fetched; it pays as we do."""
    call = partial(copy_context().run, partial(act, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_THREAD, call)

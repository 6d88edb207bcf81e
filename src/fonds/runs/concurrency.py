"""Concurrency of runs: working ahead in order, tasks that depend on others, the thread of codes."""

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
    """Act on items concurrently, at most `window` started and not yet yielded.

    Results come in lists of whatever is ready, so that a slow consumer catches up in few steps.
    """
    futures: deque[asyncio.Future[Result]] = deque()
    room = asyncio.Semaphore(window)
    arrived = asyncio.Event()

    async def produce() -> None:
        try:
            async for item in items:
                await room.acquire()
                futures.append(asyncio.ensure_future(act(item)))
                arrived.set()
        finally:
            arrived.set()

    producer = asyncio.create_task(produce())
    try:
        while futures or not producer.done():
            if not futures:
                arrived.clear()
                await arrived.wait()
                continue
            await asyncio.wait([futures[0]])
            ready = [futures.popleft().result() for _ in _leading_done(futures)]
            for _ in ready:
                room.release()
            yield ready
        await producer
    finally:
        # The consumer may stop here: nothing is left running.
        producer.cancel()
        for future in futures:
            future.cancel()
        await asyncio.gather(producer, *futures, return_exceptions=True)


def _leading_done(futures: deque[asyncio.Future[Result]]) -> list[asyncio.Future[Result]]:
    leading = []
    for future in futures:
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
    """Act on every name after those it depends on, and return the results.

    A failure or a cancellation first cancels everything that is running.
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

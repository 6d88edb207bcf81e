"""Working through things that depend on each other: as early as each may, a few side by side."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from graphlib import TopologicalSorter
from typing import TypeVar

T = TypeVar("T")


async def in_order(
    graph: Mapping[str, set[str]], act: Callable[[str], Awaitable[T]], *, at_once: int
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
            while waiting and len(running) < at_once:
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

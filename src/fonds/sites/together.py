"""What comes in singly and is worked on together: one way to a thread for all that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST: Final = 32
"""Items that are worked on at once, so that none waits long for the others."""


class Together(Generic[Item, Result]):
    """Has one thread at a time work on all that is waiting.

    The way to a thread and back takes as long as storing a small file, and threads that write at
    the same time take turns anyway. So what arrives meanwhile waits, and shares the next way.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Sequence[Result | Exception]]) -> None:
        self._work = work
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._task: asyncio.Task[None] | None = None

    async def do(self, item: Item) -> Result:
        """What came of an item, or the error that it ended with."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._task is None:
            self._task = asyncio.create_task(self._go_on())
        return await future

    async def finish(self) -> None:
        """Return when nothing waits any more, not even what nobody asks for any longer."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _go_on(self) -> None:
        try:
            while self._waiting:
                some, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                outcomes = await self._outcomes([item for item, _ in some])
                for (_, future), outcome in zip(some, outcomes, strict=True):
                    _tell(future, outcome)
        finally:
            self._task = None

    async def _outcomes(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        try:
            return await asyncio.to_thread(self._work, items)
        except Exception as error:  # noqa: BLE001 — whoever waits is told
            return [error] * len(items)


def _tell(future: asyncio.Future[Result], outcome: Result | Exception) -> None:
    if future.done():  # whoever waited has gone
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)

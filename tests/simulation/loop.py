"""An event loop without a network: its time is the scheduler's, and its order the seed's."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from math import inf
from typing import Any, Final, TypeVar

from tests.simulation.scheduler import KilledError, Scheduler, Signal
from tests.simulation.threads import SeededPool

T = TypeVar("T")

MOST_WAITS: Final = 100
"""So often may a task wait for something on its way out."""


class SeededLoop(asyncio.BaseEventLoop):
    """Runs any callback that is ready, whichever the seed picks; what it calls takes no time."""

    _ready: Any
    _scheduled: list[Any]

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._woken = Signal(scheduler)
        self._pool = SeededPool(scheduler, thread_name_prefix="to_thread")
        self._made = 0
        self.set_exception_handler(lambda _loop, _context: None)

    def time(self) -> float:
        """Seconds of the simulation."""
        return self._scheduler.now

    def create_task(
        self, coro: Any, *, name: object = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """As the original; names tell the order in which tasks were made."""
        self._made += 1
        return super().create_task(coro, name=f"{self._made:06} {name or ''}", context=context)

    def run_in_executor(  # type: ignore[override]  # the original promises no more than a future
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """As the original, in strands."""
        return asyncio.wrap_future((executor or self._pool).submit(func, *args), loop=self)

    def _write_to_self(self) -> None:
        self._woken.tell()

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None:
        return

    def _run_once(self) -> None:
        self._take_due()
        if not self._ready:
            self._woken.wait(self._scheduled[0].when() if self._scheduled else inf)
            self._take_due()
        if self._ready:
            place = int(self._scheduler.rng.random() * len(self._ready))
            handle = self._ready[place]
            del self._ready[place]
            if not handle.cancelled():
                handle._run()

    def _take_due(self) -> None:
        while self._scheduled:
            first = self._scheduled[0]
            if not first.cancelled() and first.when() > self._scheduler.now:
                return
            heapq.heappop(self._scheduled)
            first._scheduled = False
            if not first.cancelled():
                self._ready.append(first)

    def unwind(self) -> None:
        """Let the tasks of a process that is dead, or done, come to their ends.

        The kernel takes back what a dead process held, such as the lock of its source. Here it is
        a task's way out that does so, and none may be left on it.
        """
        for _ in range(MOST_WAITS):
            tasks = sorted(asyncio.all_tasks(self), key=asyncio.Task.get_name)
            if not tasks:
                return
            for task in tasks:
                task.cancel()
            self._run_ready()
        raise RuntimeError(f"these do not end: {tasks}")

    def _run_ready(self) -> None:
        while self._ready:
            handle = self._ready.popleft()
            try:
                if not handle.cancelled():
                    handle._run()
            except KilledError:
                continue


def run_seeded(scheduler: Scheduler, main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, in whatever strand calls it."""
    loop = SeededLoop(scheduler)
    try:
        return loop.run_until_complete(main)
    finally:
        asyncio._set_running_loop(loop)
        try:
            loop.unwind()
        finally:  # the real thread carries other strands, too
            asyncio._set_running_loop(None)
            loop.close()

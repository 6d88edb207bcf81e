"""Being told to stop: work in this thread is asked to, and a coroutine is cancelled."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def stoppable() -> Iterator[Event]:
    """An event that SIGTERM and Ctrl-C set; a second Ctrl-C does not wait for batches in flight."""
    stop = Event()

    def ask(number: int, _frame: Any) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; SIGTERM and Ctrl-C cancel, and what is loaded stays loaded."""

    async def guarded() -> T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        return await task

    return asyncio.run(guarded())

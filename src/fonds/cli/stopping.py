"""Being told to stop while work goes on in this thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any


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

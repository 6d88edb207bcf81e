"""Trying a blob store by writing, reading and deleting a small blob."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Event, Lock, Thread
from typing import Final, TypeVar
from uuid import uuid4

from fonds.stores.blobs import Blobs

DEADLINE_SECONDS: Final = 15.0
"""Limit for a store or a cluster, which may accept a connection and never answer."""
INTERVAL_SECONDS: Final = 30.0

T = TypeVar("T")


def within_deadline(act: Callable[[], T], seconds: float) -> T:
    """The result of a function that may never return; TimeoutError after the deadline."""
    outcome: Future[T] = Future()

    def call() -> None:
        try:
            outcome.set_result(act())
        except BaseException as error:  # noqa: BLE001 — raised again by the caller
            outcome.set_exception(error)

    # A daemon, so that the process can end while it hangs.
    Thread(target=call, name="fonds-deadline", daemon=True).start()
    return outcome.result(timeout=seconds)


def problem_of_store(blobs: Blobs, folder: str, seconds: float) -> str | None:
    """The problem of a store that does not write, read and delete a blob within a deadline, if any.

    An error of the store is raised.
    """
    key = f"{folder}/{uuid4()}"
    steps: list[str] = []

    def exchange() -> bool:
        steps.append("written")
        blobs.create(key, b"fonds")
        steps.append("read")
        same = blobs.get(key) == b"fonds"
        steps.append("deleted")
        blobs.delete(key)
        return same

    try:
        same = within_deadline(exchange, seconds)
    except TimeoutError:
        return f"no file could be {steps[-1]} within {seconds:.0f} seconds"
    return None if same else "a file was read with other bytes"


class StoreMonitor:
    """Tries a store in the background, every half minute, and has the last result."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._lock = Lock()
        self._is_over = Event()
        self._has_result = Event()
        self._thread: Thread | None = None
        self._result = ("", 0.0)

    def start(self) -> None:
        """Start, unless it is running."""
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._watch, name="fonds-store", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """End after the attempt that is under way."""
        self._is_over.set()

    def result(self, seconds: float) -> str:
        """The last result and its age; the first one is waited for, some seconds at most."""
        self.start()
        if not self._has_result.wait(seconds):
            return "no response yet"
        outcome, at = self._result
        return f"{outcome}, {time.monotonic() - at:.0f} s ago"

    def _watch(self) -> None:
        while not self._is_over.is_set():
            try:
                problem = problem_of_store(self._blobs, "health", DEADLINE_SECONDS)
            except Exception as error:  # noqa: BLE001 — any error is the result
                problem = type(error).__name__
            self._result = (problem or "ok", time.monotonic())
            self._has_result.set()
            self._is_over.wait(INTERVAL_SECONDS)

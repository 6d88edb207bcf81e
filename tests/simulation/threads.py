"""What the product takes from `threading` and `concurrent.futures`, made of strands."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from math import inf
from typing import Any, Final, ParamSpec, TypeVar
from unittest.mock import patch

from tests.simulation.scheduler import KilledError, Scheduler, Signal, Strand

P = ParamSpec("P")
T = TypeVar("T")


class SeededEvent:
    """As `threading.Event`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._signal = Signal(scheduler)
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._signal.tell()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        until = inf if timeout is None else self._scheduler.now + timeout
        while not self._is_set and self._scheduler.now < until:
            self._signal.wait(until)
        return self._is_set


class SeededLock:
    """As `threading.Lock`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._signal = Signal(scheduler)
        self._is_held = False

    def __enter__(self) -> None:
        while self._is_held:
            self._signal.wait()
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._is_held = False
        self._signal.tell()


class SeededThread:
    """As `threading.Thread`."""

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        target: Callable[..., object],
        args: tuple[Any, ...] = (),
        name: str = "thread",
        daemon: bool = False,
    ) -> None:
        self.name = name
        self.daemon = daemon
        self._scheduler = scheduler
        self._work = partial(target, *args)
        self._strand: Strand | None = None

    def start(self) -> None:
        self._strand = self._scheduler.current.process.spawn(self.name, self._work)

    def join(self) -> None:
        assert self._strand is not None
        self._strand.join()


class Promise(Future[T]):
    """A future that a strand can wait for."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._signal = Signal(scheduler)
        self.add_done_callback(lambda _: self._signal.tell())

    def result(self, timeout: float | None = None) -> T:
        assert timeout is None
        while not self.done():
            self._signal.wait()
        return super().result()


class SeededPool(Executor):
    """As `concurrent.futures.ThreadPoolExecutor`."""

    def __init__(
        self, scheduler: Scheduler, max_workers: int = 32, thread_name_prefix: str = "pool"
    ) -> None:
        self._scheduler = scheduler
        self._most = max_workers
        self._name = thread_name_prefix
        self._process = scheduler.current.process
        self._waiting: deque[tuple[Promise[Any], Callable[[], Any]]] = deque()
        self._strands: list[Strand] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Promise[T]:
        promise: Promise[T] = Promise(self._scheduler)
        self._process.require_alive()
        self._waiting.append((promise, partial(fn, *args, **kwargs)))
        self._strands = [strand for strand in self._strands if not strand.has_ended]
        if len(self._strands) < self._most:
            self._strands.append(self._process.spawn(self._name, self._work))
        return promise

    def _work(self) -> None:
        while self._waiting:
            promise, act = self._waiting.popleft()
            if not promise.set_running_or_notify_cancel():
                continue
            try:
                result = act()
            except KilledError:
                raise
            except BaseException as error:  # noqa: BLE001 — it is for whoever waits
                promise.set_exception(error)
            else:
                promise.set_result(result)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 — as the original
        if cancel_futures:
            while self._waiting:
                self._waiting.popleft()[0].cancel()
        if wait:
            for strand in self._strands:
                strand.join()


_PATCHED: Final[Mapping[str, Mapping[str, Callable[..., object]]]] = {
    "fonds.runs.active_run": {"ThreadPoolExecutor": SeededPool},
    "fonds.shards.compiler": {"ThreadPoolExecutor": SeededPool, "Event": SeededEvent},
    "fonds.shards.inbox": {"ThreadPoolExecutor": SeededPool},
    "fonds.shards.lookup": {"ThreadPoolExecutor": SeededPool},
    "fonds.shards.manifest": {"ThreadPoolExecutor": SeededPool},
    "fonds.shards.verify": {"ThreadPoolExecutor": SeededPool},
    "fonds.uploads.worker": {
        "ThreadPoolExecutor": SeededPool,
        "Thread": SeededThread,
        "Event": SeededEvent,
        "Lock": SeededLock,
    },
}
"""Where the product makes threads, or waits for them."""


@contextmanager
def seeded_threads(scheduler: Scheduler) -> Iterator[None]:
    """Let the product's threads be strands, and its identities those of the seed."""
    real = os.urandom

    def drawn(size: int, /) -> bytes:
        return scheduler.rng.randbytes(size) if scheduler.has_baton() else real(size)

    with ExitStack() as undo:
        undo.enter_context(patch.object(os, "urandom", drawn))
        for module, names in _PATCHED.items():
            for name, made in names.items():
                given = partial(made, scheduler)
                undo.enter_context(patch.object(import_module(module), name, given))
        yield

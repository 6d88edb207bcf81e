"""A pool of worker processes on this machine that survives crashing items."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from fonds.engine.base import MEMORY_MIB, SECONDS, ItemResult, require_importable
from fonds.engine.worker import READY
from fonds.errors import (
    EngineError,
    FondsError,
    ItemFailedError,
    ItemMemoryError,
    ItemTimeoutError,
    WorkerDiedError,
)

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

_MIB: Final = 1 << 20
_POLL_SECONDS: Final = 0.05
_STARTUP_SECONDS: Final = 60.0
_NEAR_LIMIT: Final = 0.8
# Native libraries would take all processors in every worker.
_ONE_THREAD: Final = dict.fromkeys(("OMP_THREAD_LIMIT", "OMP_NUM_THREADS"), "1")


@dataclass(kw_only=True)
class LocalEngine:
    """Worker processes with limits of time and memory for each item."""

    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    """The number of items that run at a time; no more are read ahead."""
    memory_mib: int = MEMORY_MIB
    """For each item, in addition to what an idle worker needs."""
    seconds: float = SECONDS
    """For each item."""
    preload: Sequence[str] = ()
    """Modules that a worker imports. Each item then runs in a forked copy of the worker, for
    libraries that leak memory or state."""
    should_recycle: str = ""
    """`module:function`, which is called after each item and tells if the copy is to be replaced;
    empty: after every item."""
    _idle: list[_Worker] = field(default_factory=list, init=False, repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers."""
        while self._idle:
            self._idle.pop().kill()

    def run(
        self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT]
    ) -> Iterator[ItemResult[ItemT, ResultT]]:
        """The results of all items, as they finish."""
        require_importable(function)
        tasks = enumerate(items)
        busy: dict[Connection, _Worker] = {}
        try:
            yield from self._refill(function, tasks, busy)
            while busy:
                for worker in _finished(busy):
                    yield self._result_of(worker, busy)
                yield from self._refill(function, tasks, busy)
        finally:
            for worker in busy.values():
                worker.kill()

    def _refill(
        self,
        function: Callable[[Any], Any],
        tasks: Iterator[tuple[int, Any]],
        busy: dict[Connection, _Worker],
    ) -> Iterator[ItemResult[Any, Any]]:
        """Send an item to every free worker; an item that cannot be sent yields its error."""
        while len(busy) < self.workers and (task := next(tasks, None)):
            index, item = task
            try:
                packed = pickle.dumps((function, item))
                worker = self._send(packed)
            except FondsError as error:
                yield ItemResult(index=index, item=item, error=error)
            except Exception as error:  # noqa: BLE001 — pickling runs the item's own code
                failed = ItemFailedError(f"this item cannot be sent to a worker: {error}")
                yield ItemResult(index=index, item=item, error=failed)
            else:
                worker.index, worker.item = index, item
                worker.deadline = time.monotonic() + self.seconds
                busy[worker.channel] = worker

    def _send(self, packed: bytes) -> _Worker:
        """Send a task to an idle worker, or to a new one if those have died."""
        with contextlib.suppress(IndexError):  # no worker is idle, or another thread was faster
            worker = self._idle.pop()
            while not worker.send(packed):
                worker = self._idle.pop()
            return worker
        worker = _Worker(self.memory_mib, self.seconds, self.should_recycle, self.preload)
        if not worker.send(packed):
            raise WorkerDiedError("a worker ended before it took its first item")
        return worker

    def _result_of(self, worker: _Worker, busy: dict[Connection, _Worker]) -> ItemResult[Any, Any]:
        del busy[worker.channel]
        result, error = worker.outcome()
        if isinstance(error, (ItemTimeoutError, ItemMemoryError, WorkerDiedError)):
            worker.kill()
        else:
            self._idle.append(worker)
        return ItemResult(index=worker.index, item=worker.item, result=result, error=error)


def _finished(busy: dict[Connection, _Worker]) -> list[_Worker]:
    """The workers that have sent a result or exceeded a limit, after a short wait."""
    ready = set(wait(list(busy), timeout=_POLL_SECONDS))
    return [w for channel, w in busy.items() if channel in ready or w.is_over_limit()]


class _Worker:
    """A process with its channel, and a pipe that ends the process when it is closed."""

    def __init__(
        self, memory_mib: int, seconds: float, should_recycle: str = "", modules: Sequence[str] = ()
    ) -> None:
        self.channel, child_channel = Pipe()
        watched, self._lifeline = Pipe(duplex=False)
        self._memory_mib, self._seconds = memory_mib, seconds
        self.index, self.item, self.deadline = 0, None, 0.0
        self._idle_memory = self._resident = 0
        self._error: EngineError | None = None
        arguments = [str(memory_mib), str(seconds), should_recycle, *modules]
        self._process = _start(child_channel, watched, arguments)
        child_channel.close()
        watched.close()
        self._await_ready()

    def send(self, packed: bytes) -> bool:
        """Send a task; False if the process has died."""
        self._error = None
        try:
            self.channel.send_bytes(packed)
        except OSError:
            self.kill()
            return False
        return True

    def is_over_limit(self) -> bool:
        """Whether the item has exceeded its time or memory."""
        self._resident = _resident(self._process.pid) or self._resident
        if self._resident - self._idle_memory > self._memory_mib * _MIB:
            self._error = ItemMemoryError(
                f"this item needed more than {self._memory_mib} MiB of memory"
            )
        elif time.monotonic() > self.deadline:
            self._error = ItemTimeoutError(f"this item took longer than {self._seconds:g} s")
        return self._error is not None

    def outcome(self) -> tuple[Any, FondsError | None]:
        """The result, or the error."""
        if self._error is not None:
            return None, self._error
        try:
            result, error = pickle.loads(self.channel.recv_bytes())  # noqa: S301 — our own worker's
        except (EOFError, OSError):
            return None, self._death()
        except Exception as error:  # noqa: BLE001 — unpickling runs the result's own code
            return None, ItemFailedError(f"the result cannot be read: {error}")
        return result, error

    def kill(self) -> None:
        """Kill the process and all that it started, and wait for its end."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.channel.close()
        self._lifeline.close()

    def _await_ready(self) -> None:
        try:
            ready = self.channel.poll(_STARTUP_SECONDS) and self.channel.recv_bytes() == READY
        except (EOFError, OSError):
            ready = False
        if not ready:
            self.kill()
            raise WorkerDiedError("a worker process could not be started")
        self._idle_memory = _resident(self._process.pid)

    def _death(self) -> EngineError:
        code = self._process.wait()
        if code < 0 and self._resident - self._idle_memory > _NEAR_LIMIT * self._memory_mib * _MIB:
            return ItemMemoryError(f"this item needed more than {self._memory_mib} MiB of memory")
        if code == -signal.SIGXCPU:
            return ItemTimeoutError(f"this item took longer than {self._seconds:g} s")
        reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return WorkerDiedError(f"the worker ended while it had this item ({reason})")


def _start(
    channel: Connection, lifeline: Connection, arguments: Sequence[str]
) -> subprocess.Popen[bytes]:
    descriptors = (channel.fileno(), lifeline.fileno())
    return subprocess.Popen(  # noqa: S603 — this interpreter, our own module
        [sys.executable, "-m", "fonds.engine.worker", *map(str, descriptors), *arguments],
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


def _resident(pid: int) -> int:
    """Resident memory in bytes of a worker, or of its copy; zero if unknown."""
    with contextlib.suppress(OSError, IndexError):
        copies = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        statm = Path(f"/proc/{copies[0] if copies else pid}/statm").read_text()
        return int(statm.split()[1]) * resource.getpagesize()
    return 0

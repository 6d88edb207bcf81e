"""A pool of worker processes on this machine that survives crashing items.

Items are sent as pickles, which this process writes. What comes back depends on what is worked on:

- Workers that read files of others are *isolated*. A hostile file may take such a process over, so
  it has an environment without secrets, writes no files, and returns JSON, which cannot run
  code in this process. Functions return plain data (`None`, booleans, numbers, strings, lists, and
  dictionaries with string keys), of which the caller makes typed values.
- Workers on our own data (vectors, shards, invocations, parts of a crawl) need the settings and
  credentials of the library anyway, and return our own types: these are pickled.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from secrets import token_bytes
from threading import Event, Semaphore
from typing import Any, Final, Self, TypeVar

from fonds.engine.base import MEMORY_MIB, SECONDS, ItemResult, require_importable
from fonds.engine.channel import MAX_RESULT_MIB, Channel
from fonds.engine.outcomes import AS_JSON, AS_PICKLE
from fonds.engine.worker import ISOLATED, READY, TASK_ID_SIZE
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
_HARMLESS_VARIABLES: Final = (
    *("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
)
"""All that Python needs of the environment; the rest may be secret."""


@dataclass(kw_only=True)
class LocalEngine:
    """Worker processes with limits of time and memory for each item."""

    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    """The number of items that run at a time, for all threads together; no more are read ahead."""
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
    is_isolated: bool = False
    """The items are files of others, which may be hostile; results are then plain data."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment of workers, in addition."""
    _idle: list[_Worker] = field(default_factory=list, init=False, repr=False)
    _busy: set[_Worker] = field(default_factory=set, init=False, repr=False)
    _slots: Semaphore = field(init=False, repr=False)
    _closed: Event = field(default_factory=Event, init=False, repr=False)

    def __post_init__(self) -> None:
        self._slots = Semaphore(self.workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all workers; items that other threads wait for fail."""
        self._closed.set()
        for worker in list(self._busy):
            worker.end()
        while self._idle:
            self._idle.pop().kill()

    def run(
        self,
        function: Callable[[ItemT], ResultT],
        items: Iterable[ItemT],
        *,
        stop: Event | None = None,
    ) -> Iterator[ItemResult[ItemT, ResultT]]:
        """The results of all items, as they finish; `stop` kills the workers that have one."""
        require_importable(function)
        stopped = (self._closed, stop or self._closed)
        tasks = enumerate(items)
        busy: dict[int, _Worker] = {}
        try:
            yield from self._refill(function, tasks, busy, stopped)
            while busy:
                for worker in _finished(busy):
                    yield self._result_of(worker, busy)
                _require_going(stopped)
                yield from self._refill(function, tasks, busy, stopped)
        finally:
            for worker in busy.values():
                self._release(worker, is_reusable=False)

    def _refill(
        self,
        function: Callable[[Any], Any],
        tasks: Iterator[tuple[int, Any]],
        busy: dict[int, _Worker],
        stopped: Sequence[Event],
    ) -> Iterator[ItemResult[Any, Any]]:
        """Send an item to every free worker; an item that cannot be sent yields its error."""
        while self._take_slot(is_waiting=not busy, stopped=stopped):
            worker = None
            try:
                if (task := next(tasks, None)) is None:
                    return
                worker, error = self._sent(function, *task, stopped)
            finally:
                if worker is None:
                    self._slots.release()
            if worker is not None:
                busy[worker.channel.fileno()] = worker
                self._busy.add(worker)
            else:
                yield ItemResult(index=task[0], item=task[1], error=error)

    def _take_slot(self, *, is_waiting: bool, stopped: Sequence[Event]) -> bool:
        """Take one of the slots that all threads share; False if there is none and no waiting."""
        while not self._slots.acquire(timeout=_POLL_SECONDS if is_waiting else 0):
            if not is_waiting:
                return False
            _require_going(stopped)
        return True

    def _release(self, worker: _Worker, *, is_reusable: bool) -> None:
        self._busy.discard(worker)
        if is_reusable and not self._closed.is_set():
            self._idle.append(worker)
        else:
            worker.kill()
        self._slots.release()

    def _sent(
        self, function: Callable[[Any], Any], index: int, item: Any, stopped: Sequence[Event]
    ) -> tuple[_Worker | None, FondsError | None]:
        """The worker that has the item by now, or the error."""
        try:
            packed = pickle.dumps((function, item))
            worker = self._send(packed, stopped)
        except FondsError as error:
            return None, error
        except Exception as error:  # noqa: BLE001 — pickling runs the item's own code
            return None, ItemFailedError(f"this item cannot be sent to a worker: {error}")
        worker.index, worker.item = index, item
        return worker, None

    def _send(self, packed: bytes, stopped: Sequence[Event]) -> _Worker:
        """Send a task to an idle worker, or to a new one if those have died."""
        with contextlib.suppress(IndexError):  # no worker is idle, or another thread was faster
            worker = self._idle.pop()
            while not worker.send(packed):
                worker = self._idle.pop()
            return worker
        _require_going(stopped)
        worker = _Worker(self, stopped)
        if not worker.send(packed):
            raise WorkerDiedError("a worker ended before it took its first item")
        return worker

    def _result_of(self, worker: _Worker, busy: dict[int, _Worker]) -> ItemResult[Any, Any]:
        del busy[worker.channel.fileno()]
        result, error = worker.outcome()
        is_lost = isinstance(error, (ItemTimeoutError, ItemMemoryError, WorkerDiedError))
        self._release(worker, is_reusable=not is_lost)
        return ItemResult(index=worker.index, item=worker.item, result=result, error=error)


def _finished(busy: dict[int, _Worker]) -> list[_Worker]:
    """The workers that have sent a result or exceeded a limit, after a short wait."""
    ready = set(wait(list(busy), timeout=_POLL_SECONDS))
    return [w for number, w in busy.items() if number in ready or w.is_over_limit()]


def _require_going(stopped: Sequence[Event]) -> None:
    if any(event.is_set() for event in stopped):
        raise WorkerDiedError("the work was stopped")


class _Worker:
    """A process with its channel, and a second one that ends the process when it is closed."""

    def __init__(self, engine: LocalEngine, stopped: Sequence[Event] = ()) -> None:
        self.channel, child_channel = Channel.pair()
        self._lifeline, watched = Channel.pair()
        self._memory_mib, self._seconds = engine.memory_mib, engine.seconds
        self._format = AS_JSON if engine.is_isolated else AS_PICKLE
        self.index, self.item = 0, None
        self._task_id = b""
        self._deadline = 0.0
        self._idle_memory = self._resident = 0
        self._error: FondsError | None = None
        self._process = _start(child_channel, watched, engine)
        child_channel.close()
        watched.close()
        self._await_ready(stopped)

    def send(self, packed: bytes) -> bool:
        """Send a task; False if the process has died, or does not take it."""
        self._error = None
        self._deadline = time.monotonic() + self._seconds
        with contextlib.suppress(OSError):
            if not wait([self.channel.fileno()], timeout=0):  # nothing was sent unasked
                self._task_id = token_bytes(TASK_ID_SIZE)
                self.channel.send(self._task_id, packed, deadline=self._deadline)
                return True
        self.kill()
        return False

    def is_over_limit(self) -> bool:
        """Whether the item has exceeded its time or memory."""
        self._resident = _resident(self._process.pid) or self._resident
        if self._resident - self._idle_memory > self._memory_mib * _MIB:
            self._error = ItemMemoryError(
                f"this item needed more than {self._memory_mib} MiB of memory"
            )
        elif time.monotonic() > self._deadline:
            self._error = ItemTimeoutError(f"this item took longer than {self._seconds:g} s")
        return self._error is not None

    def outcome(self) -> tuple[Any, FondsError | None]:
        """The result, or the error."""
        if self._error is not None:
            return None, self._error
        try:
            outcome = self._own_outcome()
        except TimeoutError:
            return None, ItemTimeoutError(f"this item took longer than {self._seconds:g} s")
        except ItemMemoryError as error:
            return None, error
        except (EOFError, OSError):
            return None, self._death()
        return self._format.unpack(outcome)

    def _own_outcome(self) -> bytearray:
        """The outcome of this item; one that an earlier item may have forged has another id."""
        while True:
            outcome = self.channel.receive(deadline=self._deadline, max_mib=MAX_RESULT_MIB)
            if outcome[:TASK_ID_SIZE] == self._task_id:
                del outcome[:TASK_ID_SIZE]
                return outcome

    def end(self) -> None:
        """Kill the process and all that it started."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the process and all that it started, and wait for its end."""
        self.end()
        self._process.wait()
        self.channel.close()
        self._lifeline.close()

    def _await_ready(self, stopped: Sequence[Event]) -> None:
        deadline = time.monotonic() + _STARTUP_SECONDS
        is_ready = False
        with contextlib.suppress(EOFError, OSError):
            while not is_ready and time.monotonic() < deadline:
                if any(event.is_set() for event in stopped):
                    break
                if wait([self.channel.fileno()], timeout=_POLL_SECONDS):
                    is_ready = self.channel.receive(deadline=deadline) == READY
        if not is_ready:
            self.kill()
            raise WorkerDiedError("a worker process could not be started")
        self._idle_memory = _resident(self._process.pid)

    def _death(self) -> EngineError:
        code = self._process.wait()
        if code < 0 and self._resident - self._idle_memory > _NEAR_LIMIT * self._memory_mib * _MIB:
            return ItemMemoryError(f"this item needed more than {self._memory_mib} MiB of memory")
        if code == -signal.SIGXCPU:
            return ItemTimeoutError(f"this item took longer than {self._seconds:g} s")
        return WorkerDiedError(_end(code))


_CRASHES: Final = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}
)


def _end(code: int) -> str:
    if -code in _CRASHES:
        return "this item seems to be damaged: the process that read it crashed"
    reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"the worker ended while it had this item ({reason})"


def _start(channel: Channel, lifeline: Channel, engine: LocalEngine) -> subprocess.Popen[bytes]:
    descriptors = (channel.fileno(), lifeline.fileno())
    limits = (str(engine.memory_mib), str(engine.seconds), ISOLATED * engine.is_isolated)
    arguments = [*map(str, descriptors), *limits, engine.should_recycle, *engine.preload]
    variables: Mapping[str, str] = os.environ
    if engine.is_isolated:
        variables = {name: variables[name] for name in _HARMLESS_VARIABLES if name in variables}
    return subprocess.Popen(  # noqa: S603 — this interpreter, our own module
        [sys.executable, "-m", "fonds.engine.worker", *arguments],
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={
            **variables,
            **_ONE_THREAD,
            **engine.variables,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        start_new_session=True,
    )


def _resident(pid: int) -> int:
    """Resident memory in bytes of a worker, or of its copy; zero if unknown."""
    with contextlib.suppress(OSError, IndexError):
        copies = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        statm = Path(f"/proc/{copies[0] if copies else pid}/statm").read_text()
        return int(statm.split()[1]) * resource.getpagesize()
    return 0

"""The processes that read files of others: uploads, downloaded pages, archived bytes, long texts.

All such reading passes here, since any file may be hostile: it may never end, need all memory,
crash native code, or take over the process that reads it. How to use the pool:

    result = await readers.read(function, item)         # from a coroutine
    result = readers.read_now(function, item)           # from a thread
    for outcome in readers.run(function, items): ...    # many items, as an engine runs them

- `function` is one of a module, by its name. It takes one item, which can be pickled, and returns
  plain data: `None`, booleans, numbers, strings, lists, and dictionaries with string keys. The
  caller makes typed values of the result, and trusts nothing in it.
- It raises errors of `fonds.errors`, which are raised again here by name and message. Too much time
  or memory, or the end of the process, is an `EngineError`.
- A reading ends at once when it is cancelled or the pool is closed: its process is killed.
- No more than `workers` processes read at a time, for all callers together; others wait.
- With a `key`, equal readings at the same time are one, and the result is cached for a while. The
  key has the hash of the bytes that are read. Whether a user may see them is decided before: the
  pool knows no users.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any, Final, NamedTuple, Self

from fonds.engine.base import MEMORY_MIB, SECONDS, ItemResult
from fonds.engine.local import LocalEngine
from fonds.errors import FondsError, WorkerDiedError

MAX_CACHED_BYTES: Final = 16 << 20
"""The size of all results that are cached; one of a quarter of it or more is not."""
MAX_CACHED_RESULTS: Final = 2000
"""The number of results that are cached."""
CACHED_SECONDS: Final = 600.0
"""How long a result, or the error of a file that cannot be read, is cached."""


class ReadingKey(NamedTuple):
    """The input and the function of a reading, by which its result is cached."""

    content: str
    """The hash of the bytes that are read."""
    recipe: str
    """The function, the versions of all that works on the bytes, and a hash of its other input."""

    @classmethod
    def of(cls, content: bytes, *recipe: str | bytes) -> Self:
        """The key for bytes, and for all else that decides the result."""
        digest = hashlib.sha256()
        for part in recipe:
            data = part.encode() if isinstance(part, str) else part
            digest.update(b"%d:" % len(data) + data)
        return cls(hashlib.sha256(content).hexdigest(), digest.hexdigest())


class ReaderPool:
    """Reader processes with limits of time and memory, shared by all threads of this process."""

    def __init__(
        self,
        *,
        workers: int,
        memory_mib: int = MEMORY_MIB,
        seconds: float = SECONDS,
        preload: Sequence[str] = (),
        should_recycle: str = "",
    ) -> None:
        self._engine = LocalEngine(
            workers=workers,
            memory_mib=memory_mib,
            seconds=seconds,
            preload=preload,
            should_recycle=should_recycle,
            is_isolated=True,
        )
        # A pool that is not closed, as of a context that is dropped, leaves no process either.
        weakref.finalize(self, self._engine.close)
        # A coroutine that waits takes no thread of those that others need.
        self._threads = ThreadPoolExecutor(workers, "fonds-readers")
        self._results = _Results()
        self._pending: dict[ReadingKey, Future[_CachedOutcome]] = {}
        self._lock = Lock()

    @property
    def workers(self) -> int:
        """The number of processes that read at a time."""
        return self._engine.workers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all processes; what still waits for one fails."""
        self._engine.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def run(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[ItemResult[Any, Any]]:
        """The results of all items, as they finish."""
        return self._engine.run(function, items)

    async def read(
        self, function: Callable[[Any], Any], item: Any, *, key: ReadingKey | None = None
    ) -> Any:
        """The result for one item, awaited."""
        stop = Event()
        loop = asyncio.get_running_loop()
        reading = loop.run_in_executor(self._threads, self._read, function, item, key, stop)
        try:
            return await reading
        finally:
            stop.set()

    def read_now(
        self, function: Callable[[Any], Any], item: Any, *, key: ReadingKey | None = None
    ) -> Any:
        """The result for one item; the thread waits for it."""
        return self._read(function, item, key, None)

    def forget(self, content: str) -> None:
        """Drop all results that were read from the bytes with this SHA-256."""
        with self._lock:
            self._results.forget(content)

    def _read(
        self,
        function: Callable[[Any], Any],
        item: Any,
        key: ReadingKey | None,
        stop: Event | None,
    ) -> Any:
        if key is None:
            return self._read_alone(function, item, stop)
        with self._lock:
            if (cached := self._results.get(key)) is not None:
                return cached.unwrap()
            other = self._pending.get(key)
            future = self._pending.setdefault(key, Future())
        if other is not None:
            return other.result().unwrap()
        try:
            # Other readings may wait for this one, so it is not stopped.
            cached = _CachedOutcome(packed=json.dumps(self._read_alone(function, item, None)))
        except FondsError as error:
            cached = _CachedOutcome(error=error)
        except BaseException as error:
            with self._lock:
                del self._pending[key]
            future.set_exception(error)  # for readings that wait for this one
            raise
        with self._lock:
            del self._pending[key]
            self._results.add(key, cached)
        future.set_result(cached)
        return cached.unwrap()

    def _read_alone(self, function: Callable[[Any], Any], item: Any, stop: Event | None) -> Any:
        (outcome,) = self._engine.run(function, [item], stop=stop)
        return outcome.unwrap()


@dataclass(frozen=True, kw_only=True, slots=True)
class _CachedOutcome:
    """A result as JSON, which its users cannot change, or an error."""

    packed: str = "null"
    error: FondsError | None = None
    at: float = field(default_factory=time.monotonic)

    @property
    def is_current(self) -> bool:
        return time.monotonic() - self.at < CACHED_SECONDS

    def unwrap(self) -> Any:
        if self.error is not None:
            raise copy(self.error)
        return json.loads(self.packed)


class _Results:
    """The latest results, of a limited size in all."""

    def __init__(self) -> None:
        self._cached: OrderedDict[ReadingKey, _CachedOutcome] = OrderedDict()
        self._size = 0

    def get(self, key: ReadingKey) -> _CachedOutcome | None:
        cached = self._cached.get(key)
        if cached is None or not cached.is_current:
            return None
        self._cached.move_to_end(key)
        return cached

    def add(self, key: ReadingKey, cached: _CachedOutcome) -> None:
        # A process that was killed says nothing about the bytes that it read.
        is_lasting = not isinstance(cached.error, WorkerDiedError)
        if is_lasting and len(cached.packed) < MAX_CACHED_BYTES // 4:
            self._remove(key)
            self._cached[key] = cached
            self._size += len(cached.packed)
        while self._size > MAX_CACHED_BYTES or len(self._cached) > MAX_CACHED_RESULTS:
            self._remove(next(iter(self._cached)))

    def forget(self, content: str) -> None:
        for key in [key for key in self._cached if key.content == content]:
            self._remove(key)

    def _remove(self, key: ReadingKey) -> None:
        removed = self._cached.pop(key, None)
        self._size -= len(removed.packed) if removed else 0

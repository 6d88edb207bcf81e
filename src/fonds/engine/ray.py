"""An engine on a Ray cluster: items run on its nodes, under the same limits as on this machine.

All engines of a process share its connection to the cluster.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple, Self, TypeVar

from fonds.engine.base import MEMORY_MIB, SECONDS, ItemResult, require_importable
from fonds.engine.local import LocalEngine
from fonds.errors import FondsError, ItemFailedError, SettingsError, WorkerDiedError

THIS_MACHINE: Final = "auto"
"""The cluster that was started on this machine, or that it joined."""
_CONNECT_SECONDS: Final = 5.0

_lock: Final = threading.Lock()
_joined: Final[list[str]] = []
"""The address, as often as there are engines."""


def join(address: str) -> Any:
    """The module `ray`, connected to a cluster."""
    with _lock:
        if _joined and address != _joined[0]:
            raise SettingsError(f"this process already works with the cluster at {_joined[0]}")
        ray = _imported()
        if not _joined:
            _connect(ray, address)
        _joined.append(address)
        return ray


def leave() -> None:
    """Close the connection, if no other engine uses it."""
    with _lock:
        _joined.pop()
        if not _joined:
            _imported().shutdown()


def _imported() -> Any:
    # Ray reads this when it is imported, and would report usage to its makers.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray  # noqa: PLC0415 — an extra, and slow to load
    except ImportError as error:
        raise SettingsError("a Ray cluster needs: pip install 'fonds[ray]'") from error
    return ray


def _connect(ray: Any, address: str) -> None:
    if address != THIS_MACHINE:
        _require_reachable(address)
    # Ray reports lost nodes on standard output, whatever its log level is; results go there.
    vars(ray._private.worker)["print_to_stdstream"] = _discard  # noqa: SLF001 — no setting does
    with _own_signals():
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError as error:
            raise SettingsError(
                "this machine belongs to no Ray cluster: run `ray start --head`, or"
                " `ray start --address=HOST:PORT` to join one; or set FONDS_ENGINE=local"
            ) from error


def _require_reachable(address: str) -> None:
    """Raise if nothing accepts connections there; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"no Ray cluster answers at {address}: {error}; set FONDS_ENGINE to ray:HOST:PORT as"
            " `ray start --head` names them"
        ) from error


def _discard(*_: object, **__: object) -> None:
    return


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our handler of SIGTERM: Ray's would end the process before it has cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class ItemLimits(NamedTuple):
    """The limits of an item: fields of a `LocalEngine`."""

    memory_mib: int
    seconds: float
    preload: tuple[str, ...]
    should_recycle: str
    is_isolated: bool
    variables: tuple[tuple[str, str], ...]


def run_item(limits: ItemLimits, task: bytes) -> tuple[Any, FondsError | None]:
    """Run a pickled function and item on this node; the result, pickled unless it is plain data."""
    function = run_unpickled if limits.is_isolated else run_pickled
    (outcome,) = _engine(limits).run(function, [task])
    return outcome.result, outcome.error


def run_unpickled(task: bytes) -> Any:
    """Run a pickled function and item, which are only unpickled in this process."""
    function, item = pickle.loads(task)  # noqa: S301 — packed by the engine's owner
    return function(item)


def run_pickled(task: bytes) -> bytes:
    """As `run_unpickled`; the result is pickled, so that only the engine's owner unpickles it."""
    return pickle.dumps(run_unpickled(task))


@cache
def _engine(limits: ItemLimits) -> LocalEngine:
    """The engine of this node for these limits; it is cached for the next item."""
    return LocalEngine(workers=1, **{**limits._asdict(), "variables": dict(limits.variables)})


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

TRIES: Final = 4
"""Nodes that may be lost with an item before it is given up."""
_ITEMS_PER_PROCESSOR: Final = 2
"""One runs while the next is on its way."""
_RECOUNT_SECONDS: Final = 1.0
"""How long the number of processors is cached."""
_WAIT_SECONDS: Final = 1.0
_CLOSED: Final = WorkerDiedError("the engine was closed before this item was done")


@dataclass(kw_only=True)
class RayEngine:
    """The processors of a cluster, whose nodes may come and go.

    An item whose node is lost is sent to another. Nothing is reserved between items, so that
    several engines share a cluster fairly.
    """

    address: str = THIS_MACHINE
    """Of the cluster; this machine must belong to it."""
    memory_mib: int = MEMORY_MIB
    """For each item, in addition to what an idle worker needs."""
    seconds: float = SECONDS
    """For each item, from its start on a node."""
    preload: Sequence[str] = ()
    """As in `LocalEngine`; so are `should_recycle` and `is_isolated`."""
    should_recycle: str = ""
    is_isolated: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    _counted: tuple[float, int] = field(default=(0.0, 0), init=False, repr=False)
    _is_open: bool = field(default=False, init=False, repr=False)
    _sent: set[Any] = field(default_factory=set, init=False, repr=False)
    """Tasks whose results have not been read."""
    _threads_connected: int = field(default=0, init=False, repr=False)
    """The number of threads that use the connection."""
    _change: threading.Condition = field(
        default_factory=threading.Condition, init=False, repr=False
    )

    def __post_init__(self) -> None:
        limits = ItemLimits(
            self.memory_mib,
            self.seconds,
            tuple(self.preload),
            self.should_recycle,
            self.is_isolated,
            tuple(self.variables.items()),
        )
        ray = join(self.address)
        self._is_open = True
        self._ray = ray
        self._run_item = ray.remote(num_cpus=1, max_retries=TRIES - 1)(run_item)
        self._limits = ray.put(limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect from the cluster, if this is the last engine of the process.

        Items that other threads wait for are cancelled.
        """
        with self._change:
            was_open, self._is_open = self._is_open, False
            self._change.wait_for(lambda: not self._threads_connected)
        if was_open:
            self._cancel(list(self._sent))
            del self._limits
            leave()

    @property
    def workers(self) -> int:
        """The number of processors of the cluster, as of a second ago."""
        then, count = self._counted
        now = time.monotonic()
        if not count or now - then > _RECOUNT_SECONDS:
            count = max(1, int(self._ray.cluster_resources().get("CPU", 0)))
            self._counted = now, count
        return count

    def run(
        self, function: Callable[[ItemT], ResultT], items: Iterable[ItemT]
    ) -> Iterator[ItemResult[ItemT, ResultT]]:
        """The results of all items, as they finish."""
        require_importable(function)
        tasks = enumerate(items)
        sent: dict[Any, tuple[int, Any]] = {}
        try:
            yield from self._refill(function, tasks, sent)
            while sent:
                for reference in self._done(sent):
                    yield self._result_of(reference, *sent.pop(reference))
                yield from self._refill(function, tasks, sent)
        finally:
            with self._open() as is_open:
                self._cancel(list(sent) if is_open else [])

    @contextmanager
    def _open(self) -> Iterator[bool]:
        """Whether the engine is open; if so, it stays open for the length of the block.

        Without a connection, Ray would start a cluster of its own.
        """
        with self._change:
            is_open = self._is_open
            self._threads_connected += is_open
        try:
            yield is_open
        finally:
            with self._change:
                self._threads_connected -= is_open
                self._change.notify_all()

    def _done(self, sent: dict[Any, tuple[int, Any]]) -> list[Any]:
        """The tasks that are done after a short wait; none if the engine was closed."""
        done: list[Any] = []
        with self._open() as is_open:
            if is_open:
                done, _ = self._ray.wait(list(sent), timeout=_WAIT_SECONDS)
        if not self._is_open:
            sent.clear()
            return []
        return done

    def _cancel(self, references: Iterable[Any]) -> None:
        for reference in references:
            self._ray.cancel(reference, force=True)
            self._sent.discard(reference)

    def _refill(
        self,
        function: Callable[[Any], Any],
        tasks: Iterator[tuple[int, Any]],
        sent: dict[Any, tuple[int, Any]],
    ) -> Iterator[ItemResult[Any, Any]]:
        """Send as many items as the cluster can soon run; unsendable ones yield their errors."""
        while self._has_room(sent) and (task := next(tasks, None)):
            index, item = task
            try:
                packed = pickle.dumps((function, item))
            except Exception as error:  # noqa: BLE001 — pickling runs the item's own code
                failed = ItemFailedError(f"this item cannot be sent to a worker: {error}")
                yield ItemResult(index=index, item=item, error=failed)
                continue
            with self._open() as is_open:
                if is_open:
                    reference = self._run_item.remote(self._limits, packed)
                    self._sent.add(reference)
                    sent[reference] = task

    def _has_room(self, sent: dict[Any, tuple[int, Any]]) -> bool:
        with self._open() as is_open:
            return is_open and len(sent) < _ITEMS_PER_PROCESSOR * self.workers

    def _result_of(self, reference: Any, index: int, item: Any) -> ItemResult[Any, Any]:
        result: Any
        try:
            with self._open() as is_open:
                result, error = self._ray.get(reference) if is_open else (None, _CLOSED)
        except self._ray.exceptions.RayError as lost:
            return ItemResult(index=index, item=item, error=_death(lost))
        finally:
            self._sent.discard(reference)
        if error is not None or self.is_isolated:
            return ItemResult(index=index, item=item, result=result, error=error)
        try:
            return ItemResult(index=index, item=item, result=pickle.loads(result))  # noqa: S301 — our own node's
        except Exception as unread:  # noqa: BLE001 — unpickling runs the result's own code
            failed = ItemFailedError(f"the result cannot be read: {unread}")
            return ItemResult(index=index, item=item, error=failed)


def _death(lost: Exception) -> FondsError:
    reason = (str(lost).strip().splitlines() or [""])[0]
    return WorkerDiedError(
        f"{TRIES} nodes were lost with this item ({type(lost).__name__}: {reason})"
    )

"""The compiler, which moves records from the inbox into their shards.

Any number of compilers may run concurrently, and may be killed at any time. For each shard: lock,
read, announce, write, remove from the inbox, unlock. A record leaves the inbox only when a shard
with it, or with a newer one, is written. Every write is conditional on the version it replaces, so
that a slow, paused or dead process cannot undo anything; locks only save work.

On an engine, each shard is compiled by a process that opens the index itself.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from threading import Event
from typing import Final
from uuid import uuid4

import structlog

from fonds.engine.base import Engine
from fonds.engine.opening import LOCAL, open_engine
from fonds.errors import (
    BlobChangedError,
    BlobExistsError,
    EngineError,
    SettingsError,
    ShardError,
    StoreError,
)
from fonds.seams import Clock, Seams
from fonds.shards.inbox import CONCURRENCY, InboxRecord, forget, read_item, waiting
from fonds.shards.index import Index, list_shards, open_index, version_of
from fonds.shards.manifest import (
    ManifestEntry,
    entry_of,
    is_announced,
    merge,
    publish,
    read_entry,
    write_entry,
    write_shard,
)
from fonds.stores.blobs import BlobVersion, open_blobs

LIFETIME: Final = timedelta(seconds=55)
"""Of a lock. If a shard takes longer, two workers compile it, and the store accepts the first."""


@dataclass(frozen=True, slots=True)
class ShardLock:
    """A lock that this process has."""

    key: str
    etag: str


@dataclass(slots=True)
class Locks:
    """The locks of one worker on the shards of one index."""

    index: Index
    clock: Clock
    worker: str
    lifetime: timedelta = LIFETIME
    _zero: datetime | None = field(default=None, init=False)
    """The store's time at zero of our monotonic clock; our system clock may be changed."""

    def take(self, shard: str) -> ShardLock | None:
        """The lock of a shard; None while another worker has it."""
        key, blobs = self.index.layout.lock(shard), self.index.blobs
        content = self._content()
        try:
            return ShardLock(key, blobs.create(key, content))
        except BlobExistsError:
            other = version_of(blobs, key)
        if other is None:
            return None  # just released; the next round takes the shard
        if other.data == content:
            return ShardLock(key, other.etag)  # our own, whose response was lost
        if not self._is_stale(other.modified):
            return None
        try:
            return ShardLock(key, blobs.replace(key, content, etag=other.etag))
        except BlobChangedError:
            return None

    def release(self, lock: ShardLock) -> None:
        """Release a lock, unless another worker took it over."""
        blobs = self.index.blobs
        if blobs.can_remove_versions():
            with suppress(BlobChangedError):
                blobs.remove(lock.key, etag=lock.etag)
        elif (now := version_of(blobs, lock.key)) and now.etag == lock.etag:
            blobs.delete(lock.key)

    def sweep(self) -> None:
        """Remove the locks of dead owners, also of shards without records in the inbox."""
        for lock in list_shards(self.index).locks:
            if self._is_stale(lock.modified):
                self.release(ShardLock(lock.key, lock.etag))

    def _content(self) -> bytes:
        now = self.clock.now()
        content = {
            "worker": self.worker,
            "token": str(uuid4()),
            "created": now.isoformat(),
            "expires": (now + self.lifetime).isoformat(),
        }
        return json.dumps(content).encode()

    def _is_stale(self, modified: datetime) -> bool:
        """True if a lock has expired by the store's clock, as clocks of machines differ."""
        if self._zero is None:
            self._zero = self._measure()
        return modified + self.lifetime < self._zero + self._elapsed()

    def _measure(self) -> datetime:
        blobs, key = self.index.blobs, f"{self.index.layout.shards}clock-{uuid4()}.lock"
        blobs.create(key, b"what time is it?")
        probe, elapsed = version_of(blobs, key), self._elapsed()
        blobs.delete(key)
        return (probe.modified if probe else self.clock.now()) - elapsed

    def _elapsed(self) -> timedelta:
        return timedelta(seconds=self.clock.monotonic())


PAGE: Final = 100_000
"""Records listed before they are compiled: many for each shard, and few enough for memory."""

_log: Final = structlog.get_logger(__name__)


@dataclass(slots=True)
class Compiled:
    """The result of one round of a compiler."""

    records: int = 0
    """Removed from the inbox."""
    shards: int = 0
    """Written."""
    busy: int = 0
    """Shards that another compiler locked or changed; their records wait for the next round."""
    failed: int = 0
    """Shards that the store could not read or write; their records wait as well."""
    damaged: list[str] = field(default_factory=list)
    """Keys of unreadable blobs, or of ones that differ from the manifest; they are not changed."""

    def add(self, other: Compiled) -> None:
        """Add the counts of another result."""
        self.records += other.records
        self.shards += other.shards
        self.busy += other.busy
        self.failed += other.failed
        self.damaged += other.damaged


Watch = Callable[[Compiled], None]
"""Called with the totals of a round after each shard."""
RemoteCompile = Callable[[Iterable[tuple[str, Sequence[str]]]], Iterator[Compiled]]
"""Compiles shards, each with the paths of its records, on an engine."""


class Compiler:
    """Compiles an index, several shards at a time."""

    def __init__(
        self,
        index: Index,
        *,
        seams: Seams,
        workers: int = 1,
        page: int = PAGE,
        lifetime: timedelta = LIFETIME,
        remote: RemoteCompile | None = None,
    ) -> None:
        self._index = index
        self._remote = remote
        self._seams = seams
        self._workers = workers
        self._page = page
        worker = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._locks = Locks(index, seams.clock, worker, lifetime)

    def run(self, *, stop: Event | None = None, watch: Watch | None = None) -> Compiled:
        """Compile all records in the inbox, except for shards that others have locked."""
        total = Compiled()
        stop = stop or Event()
        for compiled in self._on_engine(stop) if self._remote else self._in_threads(stop):
            total.add(compiled)
            if watch is not None:
                watch(total)
        if total.shards or total.records or self._is_behind():
            self._publish(total)
        with suppress(StoreError):  # the next round retries
            self._locks.sweep()
        return total

    def compile(self, shard: str, paths: Sequence[str]) -> Compiled:
        """Compile one shard from these items of the inbox, without publishing."""
        with ThreadPoolExecutor(CONCURRENCY, "fonds-items") as readers:
            return self._attempt(_Compilation(self._index, readers), {shard: paths}, Event(), shard)

    def _in_threads(self, stop: Event) -> Iterator[Compiled]:
        with (
            ThreadPoolExecutor(self._workers, "fonds-compiler") as workers,
            ThreadPoolExecutor(CONCURRENCY, "fonds-items") as readers,
        ):
            compilation = _Compilation(self._index, readers)
            for groups in self._pages():
                attempt = partial(self._attempt, compilation, groups, stop)
                yield from workers.map(attempt, self._shuffled(groups))

    def _on_engine(self, stop: Event) -> Iterator[Compiled]:
        assert self._remote is not None
        for groups in self._pages():
            order = ((shard, groups[shard]) for shard in self._shuffled(groups))
            yield from self._remote(takewhile(lambda _: not stop.is_set(), order))

    def _shuffled(self, groups: Iterable[str]) -> list[str]:
        order = sorted(groups)
        self._seams.rng.shuffle(order)  # so that concurrent compilers rarely collide
        return order

    def _is_behind(self) -> bool:
        """True if a compiler died after writing shards and before publishing them."""
        try:
            entries = list_shards(self._index).entries.values()
            published = self._index.blobs.head(self._index.layout.descriptor)
        except StoreError:
            return False  # the next round retries
        newest = max((info.modified for info in entries), default=None)
        return newest is not None and (published is None or newest > published.modified)

    def _publish(self, total: Compiled) -> None:
        try:
            publish(self._index)
        except ShardError as error:
            _log.error("manifest_damaged", index=self._index.name, error=str(error))
            total.damaged.append(self._index.layout.descriptor)

    def _pages(self) -> Iterator[Mapping[str, Sequence[str]]]:
        """The paths of records in the inbox, by shard, in pages."""
        items = waiting(self._index)
        while page := list(islice(items, self._page)):
            groups: dict[str, list[str]] = defaultdict(list)
            for key, path in page:
                groups[self._index.layout.shard_of(key)].append(path)
            yield groups

    def _attempt(
        self,
        compilation: _Compilation,
        groups: Mapping[str, Sequence[str]],
        stop: Event,
        shard: str,
    ) -> Compiled:
        """Compile a shard unless another compiler does; errors become part of the result."""
        if stop.is_set():
            return Compiled()
        try:
            lock = self._locks.take(shard)
            if lock is None:
                return Compiled(busy=1)
            try:
                return compilation.compile(shard, groups[shard])
            finally:
                with suppress(StoreError):  # the lock expires
                    self._locks.release(lock)
        except (BlobChangedError, BlobExistsError):
            return Compiled(busy=1)
        except ShardError as error:
            _log.error("shard_damaged", index=self._index.name, shard=shard, error=str(error))
            return Compiled(damaged=[self._index.layout.shard(shard)])
        except StoreError as error:
            _log.warning("shard_failed", index=self._index.name, shard=shard, error=str(error))
            return Compiled(failed=1)


@dataclass(frozen=True, slots=True)
class _Compilation:
    """The compilation of shards whose lock this process has."""

    index: Index
    readers: ThreadPoolExecutor

    def compile(self, shard: str, paths: Sequence[str]) -> Compiled:
        # In this order, as items that another compiler removes meanwhile are in the shard.
        items, damaged = self._read_items(paths)
        entry, before = self._read_shard(shard)
        data = before.data if before else b""
        after = merge(data, (item.line for item in items), len(self.index.schema.fields))
        if after != data:
            write_shard(self.index, shard, after, before=before, after=entry)
        elif entry is None and before is not None:  # a compiler died before it wrote the entry
            write_entry(self.index, shard, ManifestEntry(entry_of(data), None), after=None)
        list(self.readers.map(partial(forget, self.index), items))
        return Compiled(records=len(items), shards=int(after != data), damaged=damaged)

    def _read_shard(self, shard: str) -> tuple[ManifestEntry | None, BlobVersion | None]:
        entry = read_entry(self.index, shard)
        current = version_of(self.index.blobs, self.index.layout.shard(shard))
        if entry is not None and entry.moved:
            raise BlobChangedError(f"shard {shard} was divided since the index was opened")
        if not is_announced(entry, current.data if current else None):
            if read_entry(self.index, shard) != entry:
                raise BlobChangedError(f"shard {shard} is being written by another")
            raise ShardError("it differs from the manifest; see `fonds index verify`")
        return entry, current

    def _read_items(self, paths: Sequence[str]) -> tuple[list[InboxRecord], list[str]]:
        items, damaged = [], []
        for path, read in zip(paths, self.readers.map(self._read_item, paths), strict=True):
            if isinstance(read, ShardError):
                _log.error("record_damaged", path=path, error=str(read))
                damaged.append(path)
            elif read is not None:
                items.append(read)
        return items, damaged

    def _read_item(self, path: str) -> InboxRecord | ShardError | None:
        try:
            return read_item(self.index, path)
        except ShardError as error:
            return error


SECONDS: Final = 600.0
"""The limit for a shard; its lock expires earlier."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardOrder:
    """A shard to be compiled by a process of an engine."""

    root: str
    """The address of the store."""
    index: str
    digits: int
    """The digits of the shard's name, which change when the index is divided."""
    shard: str
    paths: Sequence[str]
    """The paths of its records in the inbox."""


def compile_shard(order: ShardOrder) -> Compiled:
    """Compile a shard in a process of an engine, unless another compiler does."""
    if "://" not in order.root and not Path(order.root).is_dir():
        raise SettingsError(
            f"{order.root} does not exist on every machine of the cluster: put the index into an"
            " object store, or set FONDS_ENGINE=local"
        )
    index = open_index(open_blobs(order.root, seams=Seams()), order.index)
    if index.layout.digits != order.digits:
        return Compiled(busy=1)
    return Compiler(index, seams=Seams()).compile(order.shard, order.paths)


@contextmanager
def compiling_on(address: str, root: str) -> Iterator[Callable[[Index], RemoteCompile | None]]:
    """The remote compilation of indexes below `root`; None on the local engine."""
    if address == LOCAL:  # threads are enough, as a shard mostly waits for the store
        yield lambda _: None
        return
    with open_engine(address, seconds=SECONDS) as engine:
        yield partial(on_engine, engine, root)


def on_engine(engine: Engine, root: str, index: Index) -> RemoteCompile:
    """Compile shards of an index on an engine; records of a lost process stay in the inbox."""
    absolute = root if "://" in root else str(Path(root).absolute())
    name, digits = index.name, index.layout.digits

    def compiled(shards: Iterable[tuple[str, Sequence[str]]]) -> Iterator[Compiled]:
        orders = (
            ShardOrder(root=absolute, index=name, digits=digits, shard=shard, paths=paths)
            for shard, paths in shards
        )
        for outcome in engine.run(compile_shard, orders):
            if isinstance(outcome.error, EngineError):
                _log.warning("shard_failed", index=name, shard=outcome.item.shard)
                yield Compiled(failed=1)
            else:
                yield outcome.unwrap()

    return compiled

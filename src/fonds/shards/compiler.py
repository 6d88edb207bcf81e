"""The compiler: takes records out of the inbox into their shards.

Any number may work at once, and be killed anywhere.
Of each shard: lock, read, announce, write, remove from the inbox, unlock. A record leaves the
inbox only when a shard that holds it, or a newer one, is written; every write names the version it
replaces, so whoever is slow, paused or dead can undo nothing.

Who compiles a shard. A lock saves work; what keeps records safe are the conditional writes.

Shards compiled on an engine: each by a process that opens the index itself.
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
from fonds.shards.inbox import AT_ONCE, InboxRecord, forget, read_item, waiting
from fonds.shards.index import Index, list_shards, open_index, version_of
from fonds.shards.manifest import (
    Noted,
    entry_of,
    is_announced,
    merge,
    publish,
    read_entry,
    write_entry,
    write_shard,
)
from fonds.stores.blobs import BlobVersion, open_blobs

LIFETIME: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ShardLock:
    """A lock that we hold."""

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
    """What the store's clock said when our seconds began; ours may be set meanwhile."""

    def take(self, shard: str) -> ShardLock | None:
        """The lock of a shard; None while another worker has it."""
        key, blobs = self.index.layout.lock(shard), self.index.blobs
        content = self._content()
        try:
            return ShardLock(key, blobs.create(key, content))
        except BlobExistsError:
            other = version_of(blobs, key)
        if other is None:
            return None  # released a moment ago: the next round finds the shard free
        if other.data == content:
            return ShardLock(key, other.etag)  # it is ours: the answer to our request was lost
        if not self._is_stale(other.modified):
            return None
        try:
            return ShardLock(key, blobs.replace(key, content, etag=other.etag))
        except BlobChangedError:
            return None

    def release(self, held: ShardLock) -> None:
        """Give a lock back, unless another worker took it over."""
        blobs = self.index.blobs
        if blobs.can_remove_versions():
            with suppress(BlobChangedError):
                blobs.remove(held.key, etag=held.etag)
        elif (now := version_of(blobs, held.key)) and now.etag == held.etag:
            blobs.delete(held.key)

    def sweep(self) -> None:
        """Remove locks whose owners died, also of shards for which nothing waits any more."""
        for lock in list_shards(self.index).locks:
            if self._is_stale(lock.modified):
                self.release(ShardLock(lock.key, lock.etag))

    def _content(self) -> bytes:
        now = self.clock.now()
        told = {
            "worker": self.worker,
            "token": str(uuid4()),
            "created": now.isoformat(),
            "expires": (now + self.lifetime).isoformat(),
        }
        return json.dumps(told).encode()

    def _is_stale(self, written: datetime) -> bool:
        """By the store's clock alone: machines disagree about the time."""
        if self._zero is None:
            self._zero = self._measure()
        return written + self.lifetime < self._zero + self._elapsed()

    def _measure(self) -> datetime:
        blobs, key = self.index.blobs, f"{self.index.layout.shards}clock-{uuid4()}.lock"
        blobs.create(key, b"what time is it?")
        written, elapsed = version_of(blobs, key), self._elapsed()
        blobs.delete(key)
        return (written.modified if written else self.clock.now()) - elapsed

    def _elapsed(self) -> timedelta:
        return timedelta(seconds=self.clock.monotonic())


PAGE: Final = 100_000
"""Records listed before they are compiled: their names fit in memory, and each shard gets many."""

_log: Final = structlog.get_logger(__name__)


@dataclass(slots=True)
class Compiled:
    """What one round of a compiler did."""

    records: int = 0
    """Taken out of the inbox."""
    shards: int = 0
    """Written anew."""
    busy: int = 0
    """Shards that another had, or changed meanwhile; their records wait for the next round."""
    failed: int = 0
    """Shards that the store did not let us read or write; likewise."""
    damaged: list[str] = field(default_factory=list)
    """What cannot be read, or is not what the manifest says, and was left alone."""

    def add(self, other: Compiled) -> None:
        """Count what was done elsewhere too."""
        self.records += other.records
        self.shards += other.shards
        self.busy += other.busy
        self.failed += other.failed
        self.damaged += other.damaged


Watch = Callable[[Compiled], None]
"""Told how far a round has come, after each shard."""
Elsewhere = Callable[[Iterable[tuple[str, Sequence[str]]]], Iterator[Compiled]]
"""Compiles shards, each with the paths of its records, on other machines."""


class Compiler:
    """Compiles an index, some shards at a time."""

    def __init__(
        self,
        index: Index,
        *,
        seams: Seams,
        workers: int = 1,
        page: int = PAGE,
        lifetime: timedelta = LIFETIME,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._index = index
        self._elsewhere = elsewhere
        self._seams = seams
        self._workers = workers
        self._page = page
        worker = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._locks = Locks(index, seams.clock, worker, lifetime)

    def run(self, *, stop: Event | None = None, watch: Watch | None = None) -> Compiled:
        """One round: everything that waits in the inbox, as far as others leave it to us."""
        total = Compiled()
        stop = stop or Event()
        for compiled in self._on_others(stop) if self._elsewhere else self._here(stop):
            total.add(compiled)
            if watch is not None:
                watch(total)
        if total.shards or total.records or self._is_behind():
            self._publish(total)
        with suppress(StoreError):  # then the next round does it
            self._locks.sweep()
        return total

    def compile(self, shard: str, paths: Sequence[str]) -> Compiled:
        """One shard, for whoever looked into the inbox; nothing is published."""
        with ThreadPoolExecutor(AT_ONCE, "fonds-items") as readers:
            return self._attempt(_Turn(self._index, readers), {shard: paths}, Event(), shard)

    def _here(self, stop: Event) -> Iterator[Compiled]:
        with (
            ThreadPoolExecutor(self._workers, "fonds-compiler") as workers,
            ThreadPoolExecutor(AT_ONCE, "fonds-items") as readers,
        ):
            turn = _Turn(self._index, readers)
            for groups in self._pages():
                attempt = partial(self._attempt, turn, groups, stop)
                yield from workers.map(attempt, self._shuffled(groups))

    def _on_others(self, stop: Event) -> Iterator[Compiled]:
        assert self._elsewhere is not None
        for groups in self._pages():
            order = ((shard, groups[shard]) for shard in self._shuffled(groups))
            yield from self._elsewhere(takewhile(lambda _: not stop.is_set(), order))

    def _shuffled(self, groups: Iterable[str]) -> list[str]:
        order = sorted(groups)
        self._seams.chance.shuffle(order)  # so that several compilers seldom meet
        return order

    def _is_behind(self) -> bool:
        """Whether somebody wrote shards and died before the data package told of them."""
        try:
            entries = list_shards(self._index).entries.values()
            published = self._index.blobs.head(self._index.layout.descriptor)
        except StoreError:
            return False  # then the next round sees it
        newest = max((info.modified for info in entries), default=None)
        return newest is not None and (published is None or newest > published.modified)

    def _publish(self, total: Compiled) -> None:
        try:
            publish(self._index)
        except ShardError as error:
            _log.error("manifest_damaged", index=self._index.name, error=str(error))
            total.damaged.append(self._index.layout.descriptor)

    def _pages(self) -> Iterator[Mapping[str, Sequence[str]]]:
        """What waits, by shard, so much at a time."""
        items = waiting(self._index)
        while page := list(islice(items, self._page)):
            groups: dict[str, list[str]] = defaultdict(list)
            for key, path in page:
                groups[self._index.layout.shard_of(key)].append(path)
            yield groups

    def _attempt(
        self, turn: _Turn, groups: Mapping[str, Sequence[str]], stop: Event, shard: str
    ) -> Compiled:
        """Compile a shard if nobody else does; what goes wrong with it concerns it alone."""
        if stop.is_set():
            return Compiled()
        try:
            held = self._locks.take(shard)
            if held is None:
                return Compiled(busy=1)
            try:
                return turn.compile(shard, groups[shard])
            finally:
                with suppress(StoreError):  # then it runs out by itself
                    self._locks.release(held)
        except (BlobChangedError, BlobExistsError):
            return Compiled(busy=1)
        except ShardError as error:
            _log.error("shard_damaged", index=self._index.name, shard=shard, error=str(error))
            return Compiled(damaged=[self._index.layout.shard(shard)])
        except StoreError as error:
            _log.warning("shard_failed", index=self._index.name, shard=shard, error=str(error))
            return Compiled(failed=1)


@dataclass(frozen=True, slots=True)
class _Turn:
    """The compilation of a shard by whoever has its lock."""

    index: Index
    readers: ThreadPoolExecutor

    def compile(self, shard: str, paths: Sequence[str]) -> Compiled:
        # In this order: items that another compiles and removes meanwhile are in the shard.
        items, damaged = self._read_items(paths)
        entry, before = self._read_shard(shard)
        data = before.data if before else b""
        after = merge(data, (item.line for item in items), len(self.index.schema.fields))
        if after != data:
            write_shard(self.index, shard, after, before=before, after=entry)
        elif entry is None and before is not None:  # whoever made it died before he could tell
            write_entry(self.index, shard, Noted(entry_of(data), None), after=None)
        list(self.readers.map(partial(forget, self.index), items))
        return Compiled(records=len(items), shards=int(after != data), damaged=damaged)

    def _read_shard(self, shard: str) -> tuple[Noted | None, BlobVersion | None]:
        entry = read_entry(self.index, shard)
        held = version_of(self.index.blobs, self.index.layout.shard(shard))
        if entry is not None and entry.moved:
            raise BlobChangedError(f"shard {shard} was divided since the index was opened")
        if not is_announced(entry, held.data if held else None):
            if read_entry(self.index, shard) != entry:
                raise BlobChangedError(f"shard {shard} is being written by another")
            raise ShardError("it is not what the manifest says; see `fonds index verify`")
        return entry, held

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
"""For a shard; its lock runs out before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardOrder:
    """A shard to be compiled, as a process gets it."""

    root: str
    """The address of the store."""
    index: str
    digits: int
    """By which the shard was named; an index that was divided meanwhile has others."""
    shard: str
    paths: Sequence[str]
    """Of the records that wait for it."""


def compile_shard(order: ShardOrder) -> Compiled:
    """Compile a shard in a process of an engine, unless another does."""
    if "://" not in order.root and not Path(order.root).is_dir():
        raise SettingsError(
            f"{order.root} is not on every machine of the cluster: an index that several compile"
            " must be on an object store, or FONDS_ENGINE=local"
        )
    index = open_index(open_blobs(order.root, seams=Seams()), order.index)
    if index.layout.digits != order.digits:
        return Compiled(busy=1)
    return Compiler(index, seams=Seams()).compile(order.shard, order.paths)


@contextmanager
def compiling_on(address: str, root: str) -> Iterator[Callable[[Index], Elsewhere | None]]:
    """How shards of an index below `root` are compiled: here, unless there is a cluster."""
    if address == LOCAL:  # threads do, for a shard is mostly waited for
        yield lambda _: None
        return
    with open_engine(address, seconds=SECONDS) as engine:
        yield partial(on_engine, engine, root)


def on_engine(engine: Engine, root: str, index: Index) -> Elsewhere:
    """Compiles shards of an index on an engine; what is lost with a process waits as before."""
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

"""Who compiles a shard. A lock saves work; what keeps records safe are the conditional writes."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from fonds.errors import BlobChangedError, BlobExistsError
from fonds.seams import Clock
from fonds.shards.index import Index, version_of
from fonds.shards.listing import list_shards

LIFETIME: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Held:
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

    def take(self, shard: str) -> Held | None:
        """The lock of a shard; None while another worker has it."""
        key, blobs = self.index.layout.lock(shard), self.index.blobs
        content = self._content()
        try:
            return Held(key, blobs.create(key, content))
        except BlobExistsError:
            other = version_of(blobs, key)
        if other is None:
            return None  # released a moment ago: the next round finds the shard free
        if other.data == content:
            return Held(key, other.etag)  # it is ours: the answer to our request was lost
        if not self._is_stale(other.modified):
            return None
        try:
            return Held(key, blobs.replace(key, content, etag=other.etag))
        except BlobChangedError:
            return None

    def release(self, held: Held) -> None:
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
                self.release(Held(lock.key, lock.etag))

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

"""Divides an index into more and smaller shards, while it is read and written.

The records of each shard are copied into smaller ones, its entry records that, and it is emptied.
Readers of an empty shard follow its entry; compilers skip it until they open the index again. The
data package has the new names of shards when the last one is done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fonds.errors import BlobChangedError, BlobExistsError, ShardError, StoreError, UsageError
from fonds.shards import usv
from fonds.shards.compiler import Locks
from fonds.shards.index import Index, ShardEntry, version_of
from fonds.shards.layout import IndexLayout
from fonds.shards.manifest import (
    ManifestEntry,
    entry_of,
    is_announced,
    lines_of,
    merge,
    publish,
    read_entry,
    write_entry,
    write_shard,
)

_TRIES: Final = 20
_NOTHING: Final = ShardEntry(0, 0, entry_of(b"").sha256)

Watch = Callable[[int], None]
"""Called with the number of shards that are divided."""


def divide(index: Index, digits: int, locks: Locks, *, watch: Watch | None = None) -> Index:
    """Divide an index, or continue a division that was interrupted; returns the new index."""
    if digits <= index.layout.digits:
        raise UsageError(
            f"the names of the shards of {index.name} have {index.layout.digits} digits already; "
            "choose more"
        )
    divided = replace(index, layout=IndexLayout(index.name, digits))
    for number, shard in enumerate(index.layout.shard_ids(), 1):
        _divide_shard(index, divided, shard, locks)
        if watch is not None:
            watch(number)
    publish(divided)
    return divided


def _divide_shard(index: Index, divided: Index, shard: str, locks: Locks) -> None:
    lock = locks.take(shard)
    if lock is None:
        raise StoreError(f"shard {shard} is being compiled; stop all compilers and try again")
    try:
        for _ in range(_TRIES):
            try:
                _move(index, divided, shard)
            except (BlobChangedError, BlobExistsError):
                continue
            return
        raise StoreError(f"shard {shard} changes too often; stop all compilers and try again")
    finally:
        locks.release(lock)


def _move(index: Index, divided: Index, shard: str) -> None:
    entry = read_entry(index, shard)
    before = version_of(index.blobs, index.layout.shard(shard))
    is_moved = entry is not None and bool(entry.moved)
    if not is_moved and not is_announced(entry, before.data if before else None):
        raise ShardError(
            f"shard {shard} differs from the manifest, and was not moved; see `fonds index verify`"
        )
    _copy(index, divided, before.data if before else b"")
    if not is_moved:
        write_entry(index, shard, ManifestEntry(_NOTHING, None, divided.layout.digits), after=entry)
    if before is None:
        index.blobs.create(index.layout.shard(shard), b"")  # for readers of the older division
    elif before.data:
        # A compiler that was paused before its write fails, as its version does not exist any
        # more; if it wrote before that, this write fails and the copy is repeated.
        index.blobs.replace(index.layout.shard(shard), b"", etag=before.etag)


def _copy(index: Index, divided: Index, data: bytes) -> None:
    groups: dict[str, list[bytes]] = defaultdict(list)
    for line in lines_of(data, len(index.schema.fields)):
        (key,) = usv.decode(line.partition(b"\x1f")[0])
        groups[divided.layout.shard_of(str(key))].append(line)
    for shard, lines in groups.items():
        _merge_into(divided, shard, lines)


def _merge_into(index: Index, shard: str, lines: list[bytes]) -> None:
    entry = read_entry(index, shard)
    before = version_of(index.blobs, index.layout.shard(shard))
    data = before.data if before else b""
    merged = merge(data, lines, len(index.schema.fields))
    if merged != data:
        write_shard(index, shard, merged, before=before, after=entry)
    elif entry is None and before is not None:  # a division was interrupted before the entry
        write_entry(index, shard, ManifestEntry(entry_of(data), None), after=None)

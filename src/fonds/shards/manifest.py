"""What each shard holds, written before the shard is changed, so that a cut one is found out.

An entry names the bytes that are about to be written and those that were there before: whenever
a compiler dies, the shard is one of the two. What another announced, and had not written when the
entry was made, it may write yet, as long as nobody else does: the entry names that, too. Only a
shard that was just made may lack its entry.

Merging records into the bytes of a shard; no store is asked.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from fonds.errors import BlobChangedError, BlobExistsError, ShardError
from fonds.shards.index import Index, ShardEntry, describe, version_of
from fonds.shards.schema import rank
from fonds.stores.blobs import BlobVersion

AT_ONCE: Final = 32
_TRIES: Final = 100


@dataclass(frozen=True, slots=True)
class Noted:
    """An entry, and what was there before it."""

    entry: ShardEntry
    was: str | None
    """SHA-256 of the bytes that it replaces."""
    moved: int | None = None
    """Digits of the shards that hold its records now."""
    etag: str | None = None
    others: tuple[str, ...] = ()
    """SHA-256 of what was announced before it, and may still be written in its stead."""


def read_entry(index: Index, shard: str) -> Noted | None:
    """The entry of a shard, if there is one."""
    held = version_of(index.blobs, index.layout.entry(shard))
    return None if held is None else _noted(held, index.layout.entry(shard))


def _noted(held: BlobVersion, key: str) -> Noted:
    try:
        told = json.loads(held.data)
        entry = ShardEntry(told["records"], told["bytes"], told["sha256"])
        others = tuple(told.get("others", ()))
        return Noted(entry, told["was"], told.get("moved"), held.etag, others)
    except (ValueError, TypeError, KeyError):
        raise ShardError(f"{key} is not an entry of a manifest") from None


def entry_of(data: bytes) -> ShardEntry:
    """What a manifest says of these bytes."""
    return ShardEntry(data.count(b"\n"), len(data), hashlib.sha256(data).hexdigest())


def is_announced(noted: Noted | None, data: bytes | None) -> bool:
    """Whether these bytes, or none, are what an entry says of a shard; without one, all are."""
    if noted is None or data is None:
        return noted is None
    announced = {noted.entry.sha256, noted.was, *noted.others}
    return hashlib.sha256(data).hexdigest() in announced


def write_entry(index: Index, shard: str, noted: Noted, *, after: Noted | None) -> None:
    """Announce what a shard will be; BlobChangedError if another has done so meanwhile."""
    key, entry = index.layout.entry(shard), noted.entry
    told = {"records": entry.records, "bytes": entry.bytes, "sha256": entry.sha256}
    told |= {"was": noted.was} | ({"moved": noted.moved} if noted.moved else {})
    told |= {"others": list(noted.others)} if noted.others else {}
    data = json.dumps(told).encode()
    if after is None or after.etag is None:
        try:
            index.blobs.create(key, data)
        except BlobExistsError:
            raise BlobChangedError(f"{key} was written by another") from None
    else:
        index.blobs.replace(key, data, etag=after.etag)


def write_shard(
    index: Index, shard: str, data: bytes, *, before: BlobVersion | None, after: Noted | None
) -> None:
    """Announce what a shard will be, and write it in place of the version that was read.

    A new shard is announced when it is there, so that an entry without a shard is always a loss.
    BlobChangedError or BlobExistsError if another has done so meanwhile.
    """
    key, entry = index.layout.shard(shard), entry_of(data)
    if before is None:
        index.blobs.create(key, data)
        write_entry(index, shard, Noted(entry, None), after=after)
    else:
        was = entry_of(before.data).sha256
        write_entry(index, shard, Noted(entry, was, others=_unwritten(after, was)), after=after)
        index.blobs.replace(key, data, etag=before.etag)


def _unwritten(noted: Noted | None, sha256: str) -> tuple[str, ...]:
    """What was announced up to an entry and did not come, while the shard is what it is."""
    if noted is None or noted.entry.sha256 == sha256:
        return ()
    announced = dict.fromkeys((noted.entry.sha256, *noted.others))
    return tuple(each for each in announced if each != sha256)


def read_entries(index: Index, shards: Iterable[str] | None = None) -> dict[str, Noted]:
    """The entries of shards that have one; of all of them, unless some are named."""
    wanted = list(index.layout.shard_ids()) if shards is None else list(shards)
    with ThreadPoolExecutor(AT_ONCE, "fonds-manifest") as pool:
        found = pool.map(lambda shard: read_entry(index, shard), wanted)
        return {shard: noted for shard, noted in zip(wanted, found, strict=True) if noted}


def publish(index: Index) -> None:
    """Bring the data package up to date with the entries."""
    key = index.layout.descriptor
    for _ in range(_TRIES):
        held = version_of(index.blobs, key)
        entries = {shard: noted.entry for shard, noted in read_entries(index).items()}
        data = describe(index.layout, index.schema, entries)
        try:
            if held is None:
                index.blobs.create(key, data)
            elif held.data != data:
                index.blobs.replace(key, data, etag=held.etag)
        except (BlobExistsError, BlobChangedError):
            continue
        return


_FIELD = b"\x1f"


def lines_of(data: bytes, fields: int) -> list[bytes]:
    """The records of a shard, without their newlines; ShardError if it is cut or bent."""
    if data and not data.endswith(b"\n"):
        raise ShardError("the shard ends inside a record")
    lines = data.split(b"\n")
    lines.pop()
    if data.count(_FIELD) != len(lines) * (fields - 1):
        raise ShardError("a record of the shard has too many or too few fields")
    return lines


def merge(data: bytes, new: Iterable[bytes], fields: int) -> bytes:
    """The shard with these records in it: of each key the newest, in the order of their bytes."""
    lines = lines_of(data, fields)
    fresh: dict[bytes, bytes] = {}
    for line in new:
        key = key_of(line)
        if key not in fresh or rank(fresh[key]) < rank(line):
            fresh[key] = line
    added = []
    for key, line in fresh.items():
        place = bisect_left(lines, key)
        if place == len(lines) or not lines[place].startswith(key):
            added.append(line)
        elif rank(lines[place]) < rank(line):
            lines[place] = line
    # Two runs that are in order already: sorting them is one pass.
    lines += sorted(added)
    lines.sort()
    return b"".join(line + b"\n" for line in lines)


def key_of(line: bytes) -> bytes:
    """What the record of a key, and of no other, begins with."""
    return line[: line.index(_FIELD) + 1]


def find(data: bytes, key: bytes) -> bytes | None:
    """The record that begins with a key; ShardError if the shard is cut."""
    if data and not data.endswith(b"\n"):
        raise ShardError("the shard ends inside a record")
    start = 0 if data.startswith(key) else data.find(b"\n" + key) + 1
    if not start and not data.startswith(key):
        return None
    return data[start : data.index(b"\n", start)]

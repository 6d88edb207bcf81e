"""The manifest of an index, with one entry for each shard, and the merging of records.

An entry is written before its shard, so that a truncated shard is detected. It has the hashes of
the bytes to be written and of those that they replace: whenever a compiler dies, the shard is one
of the two. Another compiler may still write what it announced before the entry was made, so the
entry has those hashes, too. Only a new shard may be without an entry.
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

CONCURRENCY: Final = 32
_TRIES: Final = 100


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """The announced contents of a shard, and those that they replace."""

    contents: ShardEntry
    was: str | None
    """SHA-256 of the replaced bytes."""
    moved: int | None = None
    """Digits of the names of the shards that its records were moved to."""
    etag: str | None = None
    others: tuple[str, ...] = ()
    """SHA-256 of contents that were announced before, and may still be written instead."""


def read_entry(index: Index, shard: str) -> ManifestEntry | None:
    """The entry of a shard, if there is one."""
    version = version_of(index.blobs, index.layout.entry(shard))
    return None if version is None else _parsed(version, index.layout.entry(shard))


def _parsed(version: BlobVersion, key: str) -> ManifestEntry:
    try:
        fields = json.loads(version.data)
        contents = ShardEntry(fields["records"], fields["bytes"], fields["sha256"])
        others = tuple(fields.get("others", ()))
        return ManifestEntry(contents, fields["was"], fields.get("moved"), version.etag, others)
    except (ValueError, TypeError, KeyError):
        raise ShardError(f"{key} is not an entry of a manifest") from None


def entry_of(data: bytes) -> ShardEntry:
    """The contents of these bytes for a manifest."""
    return ShardEntry(data.count(b"\n"), len(data), hashlib.sha256(data).hexdigest())


def is_announced(entry: ManifestEntry | None, data: bytes | None) -> bool:
    """True if an entry announces these bytes, or if there is no entry."""
    if entry is None or data is None:
        return entry is None
    announced = {entry.contents.sha256, entry.was, *entry.others}
    return hashlib.sha256(data).hexdigest() in announced


def write_entry(
    index: Index, shard: str, entry: ManifestEntry, *, after: ManifestEntry | None
) -> None:
    """Announce the contents of a shard; BlobChangedError if another compiler did so meanwhile."""
    key, contents = index.layout.entry(shard), entry.contents
    fields = {"records": contents.records, "bytes": contents.bytes, "sha256": contents.sha256}
    fields |= {"was": entry.was} | ({"moved": entry.moved} if entry.moved else {})
    fields |= {"others": list(entry.others)} if entry.others else {}
    data = json.dumps(fields).encode()
    if after is None or after.etag is None:
        try:
            index.blobs.create(key, data)
        except BlobExistsError:
            raise BlobChangedError(f"{key} was written by another compiler") from None
    else:
        index.blobs.replace(key, data, etag=after.etag)


def write_shard(
    index: Index,
    shard: str,
    data: bytes,
    *,
    before: BlobVersion | None,
    after: ManifestEntry | None,
) -> None:
    """Announce the contents of a shard, and replace the version that was read.

    The entry of a new shard is written after it, so that an entry without a shard is always a
    loss. BlobChangedError or BlobExistsError if another compiler wrote the shard meanwhile.
    """
    key, contents = index.layout.shard(shard), entry_of(data)
    if before is None:
        index.blobs.create(key, data)
        write_entry(index, shard, ManifestEntry(contents, None), after=after)
    else:
        was = entry_of(before.data).sha256
        entry = ManifestEntry(contents, was, others=_unwritten(after, was))
        write_entry(index, shard, entry, after=after)
        index.blobs.replace(key, data, etag=before.etag)


def _unwritten(entry: ManifestEntry | None, sha256: str) -> tuple[str, ...]:
    """The hashes that were announced up to an entry and are not those of the shard."""
    if entry is None or entry.contents.sha256 == sha256:
        return ()
    announced = dict.fromkeys((entry.contents.sha256, *entry.others))
    return tuple(each for each in announced if each != sha256)


def read_entries(index: Index, shards: Iterable[str] | None = None) -> dict[str, ManifestEntry]:
    """The entries of all shards, or of some, by their names."""
    names = list(index.layout.shard_ids()) if shards is None else list(shards)
    with ThreadPoolExecutor(CONCURRENCY, "fonds-manifest") as pool:
        entries = pool.map(lambda shard: read_entry(index, shard), names)
        return {shard: entry for shard, entry in zip(names, entries, strict=True) if entry}


def publish(index: Index) -> None:
    """Update the data package from the entries."""
    key = index.layout.descriptor
    for _ in range(_TRIES):
        current = version_of(index.blobs, key)
        entries = {shard: entry.contents for shard, entry in read_entries(index).items()}
        data = describe(index.layout, index.schema, entries)
        try:
            if current is None:
                index.blobs.create(key, data)
            elif current.data != data:
                index.blobs.replace(key, data, etag=current.etag)
        except (BlobExistsError, BlobChangedError):
            continue
        return


_FIELD = b"\x1f"


def lines_of(data: bytes, fields: int) -> list[bytes]:
    """The records of a shard, without their newlines; ShardError if it is damaged."""
    if data and not data.endswith(b"\n"):
        raise ShardError("the shard ends inside a record")
    lines = data.split(b"\n")
    lines.pop()
    if data.count(_FIELD) != len(lines) * (fields - 1):
        raise ShardError("a record of the shard has too many or too few fields")
    return lines


def merge(data: bytes, new: Iterable[bytes], fields: int) -> bytes:
    """A shard with more records: the newest of each key, in the order of their bytes."""
    lines = lines_of(data, fields)
    newest: dict[bytes, bytes] = {}
    for line in new:
        key = key_of(line)
        if key not in newest or rank(newest[key]) < rank(line):
            newest[key] = line
    added = []
    for key, line in newest.items():
        index = bisect_left(lines, key)
        if index == len(lines) or not lines[index].startswith(key):
            added.append(line)
        elif rank(lines[index]) < rank(line):
            lines[index] = line
    # Sorting two sorted runs is a single pass.
    lines += sorted(added)
    lines.sort()
    return b"".join(line + b"\n" for line in lines)


def key_of(line: bytes) -> bytes:
    """The prefix of a record that identifies its key."""
    return line[: line.index(_FIELD) + 1]


def find(data: bytes, key: bytes) -> bytes | None:
    """The record that begins with a key; ShardError if the shard is truncated."""
    if data and not data.endswith(b"\n"):
        raise ShardError("the shard ends inside a record")
    start = 0 if data.startswith(key) else data.find(b"\n" + key) + 1
    if not start and not data.startswith(key):
        return None
    return data[start : data.index(b"\n", start)]

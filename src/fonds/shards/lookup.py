"""Looks up records in inbox and shard, of which the newer one counts, and caches shards.

Cached shards are read again only if their etag has changed.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from fonds.errors import BlobMissingError
from fonds.shards import usv
from fonds.shards.inbox import CONCURRENCY, read_item
from fonds.shards.index import Index, version_of
from fonds.shards.layout import IndexLayout
from fonds.shards.manifest import find, read_entry
from fonds.shards.schema import Value, check_key, rank
from fonds.stores.blobs import BlobInfo, Blobs


class ShardCache:
    """Blobs in a folder, each in a file with its etag; processes may share the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, blobs: Blobs, key: str) -> bytes | None:
        """The current blob, or None if there is none."""
        path = self._path(key)
        etag, data = _cached(path)
        try:
            current = blobs.read(key, unless=etag)
        except BlobMissingError:
            path.unlink(missing_ok=True)
            return None
        if current is None:
            return data
        _keep(path, current.etag, current.data)
        return current.data

    def fetch(self, blobs: Blobs, info: BlobInfo) -> Path | None:
        """A file with the listed blob, or a newer one, after one line; None if it was deleted."""
        path = self._path(info.key)
        if _etag_of(path) != info.etag:
            current = version_of(blobs, info.key)
            if current is None:
                return None
            _keep(path, current.etag, current.data)
        return path

    def _path(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()


def _cached(path: Path) -> tuple[str | None, bytes]:
    try:
        with path.open("rb") as file:
            heading, data = file.readline(), file.read()
    except FileNotFoundError:
        return None, b""
    return _etag(heading[:-1], len(data)), data


def _etag_of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            heading = file.readline()
            return _etag(heading[:-1], path.stat().st_size - len(heading))
    except FileNotFoundError:
        return None


def _etag(heading: bytes, size: int) -> str | None:
    """The etag in the first line of a file; None if it is truncated, as after a power failure."""
    etag, _, stated = heading.decode(errors="replace").rpartition(" ")
    return etag if stated == str(size) else None


def _keep(path: Path, etag: str, data: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{uuid4().hex}")
    temporary.write_bytes(f"{etag} {len(data)}\n".encode() + data)
    temporary.replace(path)


class Lookup:
    """Looks up records of one index with two reads each; shards may be cached in a folder."""

    def __init__(self, index: Index, *, cache: Path | None = None) -> None:
        self._index = index
        self._cache = None if cache is None else ShardCache(cache)

    def find(self, key: str) -> dict[str, Value] | None:
        """The newest record of a key, or None."""
        # In this order, as a record that is compiled between the two reads is in the shard.
        waits = self._waiting(key)
        line = _newer(waits, self._in_shard(self._index.layout.shard_of(key), [key]).get(key))
        return None if line is None else self._index.schema.decode(line)

    def find_many(self, keys: Iterable[str]) -> Iterator[tuple[str, dict[str, Value]]]:
        """The newest record of each key that has one; each shard is read once."""
        groups: dict[str, list[str]] = defaultdict(list)
        for key in dict.fromkeys(keys):
            groups[self._index.layout.shard_of(check_key(key))].append(key)
        with ThreadPoolExecutor(CONCURRENCY, "fonds-lookup") as pool:
            for shard, keys_of_shard in sorted(groups.items()):
                waits = list(pool.map(self._waiting, keys_of_shard))
                compiled = self._in_shard(shard, keys_of_shard)
                for key, item in zip(keys_of_shard, waits, strict=True):
                    if (line := _newer(item, compiled.get(key))) is not None:
                        yield key, self._index.schema.decode(line)

    def _waiting(self, key: str) -> bytes | None:
        item = read_item(self._index, self._index.layout.item(key))
        return None if item is None else item.line

    def _in_shard(
        self, shard: str, keys: Iterable[str], layout: IndexLayout | None = None
    ) -> dict[str, bytes]:
        layout = layout or self._index.layout
        data = self._read(layout.shard(shard))
        if data is None:
            return {}
        if not data:
            return self._in_divided(shard, keys, layout)
        lines = ((key, find(data, usv.encode([key, ""])[:-1])) for key in keys)
        return {key: line for key, line in lines if line is not None}

    def _in_divided(self, shard: str, keys: Iterable[str], layout: IndexLayout) -> dict[str, bytes]:
        """Records in the smaller shards that this one was divided into, if it was."""
        entry = read_entry(replace(self._index, layout=layout), shard)
        if entry is None or entry.moved is None:
            return {}
        smaller = IndexLayout(layout.name, entry.moved)
        shards = (self._in_shard(smaller.shard_of(key), [key], smaller) for key in keys)
        return {key: line for lines in shards for key, line in lines.items()}

    def _read(self, key: str) -> bytes | None:
        if self._cache is not None:
            return self._cache.read(self._index.blobs, key)
        try:
            return self._index.blobs.get(key)
        except BlobMissingError:
            return None


def _newer(one: bytes | None, other: bytes | None) -> bytes | None:
    lines = [line for line in (one, other) if line is not None]
    return max(lines, key=rank, default=None)

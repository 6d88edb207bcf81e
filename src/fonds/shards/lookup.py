"""Looking records up: the inbox first, then the shard; the newer one is the answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from fonds.errors import BlobMissingError
from fonds.shards import usv
from fonds.shards.cache import ShardCache
from fonds.shards.inbox import AT_ONCE, read_item
from fonds.shards.index import Index
from fonds.shards.layout import Layout
from fonds.shards.manifest import read_entry
from fonds.shards.merge import find
from fonds.shards.schema import Value, check_key, rank


class Lookup:
    """Answers for one index, from two small reads each; shards may be kept in a folder."""

    def __init__(self, index: Index, *, cache: Path | None = None) -> None:
        self._index = index
        self._cache = None if cache is None else ShardCache(cache)

    def find(self, key: str) -> dict[str, Value] | None:
        """The newest record of a key, or None."""
        # In this order: a record that is compiled between the two reads is in the shard.
        waits = self._waiting(key)
        line = _newer(waits, self._in_shard(self._index.layout.shard_of(key), [key]).get(key))
        return None if line is None else self._index.schema.decode(line)

    def find_many(self, keys: Iterable[str]) -> Iterator[tuple[str, dict[str, Value]]]:
        """The newest record of each key that has one; each shard is read once."""
        groups: dict[str, list[str]] = defaultdict(list)
        for key in dict.fromkeys(keys):
            groups[self._index.layout.shard_of(check_key(key))].append(key)
        with ThreadPoolExecutor(AT_ONCE, "fonds-lookup") as pool:
            for shard, wanted in sorted(groups.items()):
                waits = list(pool.map(self._waiting, wanted))
                held = self._in_shard(shard, wanted)
                for key, item in zip(wanted, waits, strict=True):
                    if (line := _newer(item, held.get(key))) is not None:
                        yield key, self._index.schema.decode(line)

    def _waiting(self, key: str) -> bytes | None:
        item = read_item(self._index, self._index.layout.item(key))
        return None if item is None else item.line

    def _in_shard(
        self, shard: str, keys: Iterable[str], layout: Layout | None = None
    ) -> dict[str, bytes]:
        layout = layout or self._index.layout
        data = self._read(layout.shard(shard))
        if data is None:
            return {}
        if not data:
            return self._in_divided(shard, keys, layout)
        found = ((key, find(data, usv.encode([key, ""])[:-1])) for key in keys)
        return {key: line for key, line in found if line is not None}

    def _in_divided(self, shard: str, keys: Iterable[str], layout: Layout) -> dict[str, bytes]:
        """In the smaller shards that this one was divided into, if it was."""
        noted = read_entry(replace(self._index, layout=layout), shard)
        if noted is None or noted.moved is None:
            return {}
        smaller = Layout(layout.name, noted.moved)
        found = (self._in_shard(smaller.shard_of(key), [key], smaller) for key in keys)
        return {key: line for held in found for key, line in held.items()}

    def _read(self, key: str) -> bytes | None:
        if self._cache is not None:
            return self._cache.read(self._index.blobs, key)
        try:
            return self._index.blobs.get(key)
        except BlobMissingError:
            return None


def _newer(one: bytes | None, other: bytes | None) -> bytes | None:
    held = [line for line in (one, other) if line is not None]
    return max(held, key=rank, default=None)

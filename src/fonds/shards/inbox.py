"""The inbox: the newest record of each key, from any number of writers, until it is compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

from fonds.errors import (
    BlobChangedError,
    BlobExistsError,
    RecordError,
    ShardError,
    StoreError,
)
from fonds.shards.index import Index, version_of
from fonds.shards.schema import Record, rank

AT_ONCE: Final = 32
"""Requests under way while many records are written or read."""
_TRIES: Final = 100
"""Lost races after which a writer gives up; each one was won by somebody else."""


@dataclass(frozen=True, slots=True)
class Item:
    """A record in the inbox, as it was when it was read."""

    path: str
    etag: str
    line: bytes
    """Without its newline."""


def put(index: Index, record: Record) -> bool:
    """Note a record; False if a newer one of its key waits in the inbox already.

    Shards are not looked at: a record that is older than theirs is dropped when it is compiled,
    and no look-up prefers it.
    """
    data = index.schema.encode(record)
    path = index.layout.item(str(record[index.schema.key.name]))
    for _ in range(_TRIES):
        try:
            index.blobs.create(path, data)
        except BlobExistsError:
            outcome = _supersede(index, path, data)
            if outcome is not None:
                return outcome
        else:
            return True
    raise StoreError(f"{path} changes all the time: nothing was written")


def put_many(index: Index, records: Iterable[Record], *, at_once: int = AT_ONCE) -> int:
    """Note records, many at once but never many in memory; how many were taken."""
    taken = 0
    with ThreadPoolExecutor(at_once, "fonds-inbox") as pool:
        for done in _bounded(pool, index, records, 2 * at_once):
            taken += done.result()
    return taken


def _bounded(
    pool: ThreadPoolExecutor, index: Index, records: Iterable[Record], most: int
) -> Iterator[Future[bool]]:
    pending: set[Future[bool]] = set()
    for record in records:
        if len(pending) >= most:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from done
        pending.add(pool.submit(put, index, record))
    yield from pending


def _supersede(index: Index, path: str, data: bytes) -> bool | None:
    """Put a record in place of an older one; None if the race was lost."""
    held = version_of(index.blobs, path)
    if held is None:
        return None
    # An item without a byte was compiled in a store that cannot delete one version only.
    if held.data:
        _check_record(index, path, held.data)
        if rank(held.data) >= rank(data):
            return held.data == data  # what we wrote ourselves, when the answer was lost
    try:
        index.blobs.replace(path, data, etag=held.etag)
    except BlobChangedError:
        return None
    return True


def waiting(index: Index) -> Iterator[tuple[str, str]]:
    """Keys that have a record in the inbox, each with the path of it, page by page."""
    for info in index.blobs.list(index.layout.inbox):
        if info.size and (key := index.layout.key_of(info.key)) is not None:
            yield key, info.key


def read_item(index: Index, path: str) -> Item | None:
    """The record at a path, if one is there still; ShardError if it is none of this index."""
    held = version_of(index.blobs, path)
    if held is None or not held.data:
        return None
    _check_record(index, path, held.data)
    return Item(path, held.etag, held.data[:-1])


def _check_record(index: Index, path: str, data: bytes) -> None:
    if data.find(b"\n") != len(data) - 1:
        raise ShardError(f"{path} does not hold one record")
    try:
        key = index.schema.decode(data[:-1])[index.schema.key.name]
        is_its_own = index.layout.item(str(key)) == path
    except (ShardError, RecordError) as error:
        raise ShardError(f"{path}: {error}") from None
    if not is_its_own:
        raise ShardError(f"{path} holds the record of another key")


def forget(index: Index, item: Item) -> None:
    """Take a record that is compiled out of the inbox, unless another one stands there by now."""
    try:
        if index.blobs.can_remove_versions():
            index.blobs.remove(item.path, etag=item.etag)
        else:
            index.blobs.replace(item.path, b"", etag=item.etag)
    except BlobChangedError:
        return

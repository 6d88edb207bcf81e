"""Dividing an index into smaller shards, while others read, write and compile it, and kill us."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import indexes
from tests.support.indexes import DIGITS, Opener, opener

from fonds.errors import StoreError, UsageError
from fonds.seams import Seams
from fonds.shards.compiler import Compiler, Locks
from fonds.shards.divide import divide
from fonds.shards.inbox import put, put_many
from fonds.shards.index import Index, open_index
from fonds.shards.lookup import Lookup
from fonds.shards.manifest import merge
from fonds.shards.schema import Value
from fonds.shards.verify import verify
from fonds.stores.blobs import open_blobs

KEYS = [f"host{number}.gov" for number in range(60)]


@pytest.fixture(params=["folder", "marking", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    return opener(request.param, tmp_path, request)


@pytest.fixture
def index(store: Opener) -> Index:
    """Sixteen shards with all keys in them."""
    made = indexes.make_index(store(Seams()))
    put_many(made, [record(key) for key in KEYS])
    assert Compiler(made, seams=Seams()).run().records == len(KEYS)
    return made


def record(key: str, number: int = 1) -> dict[str, Value]:
    return indexes.record(key, number)


def locks(index: Index) -> Locks:
    return Locks(index, Seams().clock, "divider")


def versions(index: Index) -> dict[str, Value]:
    return {key: found["scraper_version"] for key, found in Lookup(index).find_many(KEYS)}


def test_divided_index_has_the_same_records_in_smaller_shards(index: Index) -> None:
    divided = divide(index, DIGITS + 1, locks(index))
    assert versions(divided) == dict.fromkeys(KEYS, 1)
    assert open_index(index.blobs, index.name) == divided
    assert verify(divided).problems == []
    assert verify(divided).records == len(KEYS)
    left = [info for info in index.blobs.list(index.layout.shards) if info.key.endswith("/0.usv")]
    assert all(info.size == 0 for info in left)


def test_reader_that_opened_the_index_before_goes_on_finding(index: Index) -> None:
    reader = Lookup(index)
    divide(index, DIGITS + 1, locks(index))
    assert reader.find(KEYS[0]) is not None
    assert versions(index) == dict.fromkeys(KEYS, 1)


def test_reader_that_opened_the_index_before_finds_what_is_compiled_later(store: Opener) -> None:
    empty = indexes.make_index(store(Seams()))
    divided = divide(empty, DIGITS + 1, locks(empty))
    put_many(divided, [record(key) for key in KEYS])
    assert Compiler(divided, seams=Seams()).run().records == len(KEYS)
    assert versions(empty) == dict.fromkeys(KEYS, 1)


def test_compiler_that_opened_the_index_before_writes_nothing_and_loses_nothing(
    index: Index,
) -> None:
    divided = divide(index, DIGITS + 1, locks(index))
    assert put(index, record(KEYS[0], 2))
    late = Compiler(index, seams=Seams()).run()
    assert (late.records, late.busy) == (0, 1)
    assert Compiler(divided, seams=Seams()).run().records == 1
    assert versions(index) == dict.fromkeys(KEYS, 1) | {KEYS[0]: 2}


@pytest.mark.parametrize("step", range(1, 40))
def test_division_that_is_killed_anywhere_is_read_meanwhile_and_continued(
    tmp_path: Path, step: int
) -> None:
    index = indexes.make_index(open_blobs(str(tmp_path), seams=Seams()))
    put_many(index, [record(key) for key in KEYS[:8]])
    Compiler(index, seams=Seams()).run()
    fragile = open_blobs(str(tmp_path), seams=Seams(durable=Stopping(step)))
    broken = open_index(fragile, index.name)
    with pytest.raises(StoppedError):
        divide(broken, DIGITS + 1, locks(broken))
    assert len(versions(index)) == 8
    put(index, record(KEYS[1], 2))
    Compiler(index, seams=Seams()).run()
    for lock in [info.key for info in index.blobs.list() if info.key.endswith(".lock")]:
        index.blobs.delete(lock)
    divided = divide(index, DIGITS + 1, locks(index))
    Compiler(divided, seams=Seams()).run()
    assert versions(divided) == dict.fromkeys(KEYS[:8], 1) | {KEYS[1]: 2}
    assert verify(divided).problems == []


class StoppedError(Exception):
    """The process is gone."""


class Stopping:
    """Ends everything at the Nth durable operation, and at each one after it."""

    def __init__(self, step: int) -> None:
        self._left = step

    def __call__(self, operation: str, subject: str) -> None:
        self._left -= 1
        if self._left <= 0:
            raise StoppedError(operation, subject)


def test_record_that_a_paused_compiler_writes_during_the_division_is_moved_too(
    index: Index,
) -> None:
    """It had announced its shard, lost its lock by age, and writes when the copy is made."""
    key = KEYS[0]
    shard = index.layout.shard_of(key)
    put(index, record(key, 2))

    class Interfering:
        def __getattr__(self, name: str) -> object:
            return getattr(index.blobs, name)

        def remove(self, path: str, *, etag: str) -> None:
            self._interfere(path)
            index.blobs.remove(path, etag=etag)

        def replace(self, path: str, data: bytes, *, etag: str) -> str:
            if not data:
                self._interfere(path)
            return index.blobs.replace(path, data, etag=etag)

        def _interfere(self, path: str) -> None:
            held = index.blobs.read(path)
            if path == index.layout.shard(shard) and held and b"\x1f2\x1f" not in held.data:
                index.blobs.replace(path, newer(held.data), etag=held.etag)

    def newer(data: bytes) -> bytes:
        line = index.schema.encode(record(key, 2)).removesuffix(b"\n")
        return merge(data, [line], len(index.schema.fields))

    slow = Index(blobs=Interfering(), layout=index.layout, schema=index.schema)  # type: ignore[arg-type]
    divided = divide(slow, DIGITS + 1, locks(slow))
    index.blobs.delete(index.layout.item(key))
    again = Index(blobs=index.blobs, layout=divided.layout, schema=index.schema)
    assert Lookup(again).find(key) == record(key, 2)


def test_shorter_names_and_a_shard_in_use_are_refused(index: Index) -> None:
    with pytest.raises(UsageError, match="already"):
        divide(index, DIGITS, locks(index))
    held = Locks(index, Seams().clock, "compiler").take("0")
    assert held is not None
    with pytest.raises(StoreError, match="being compiled"):
        divide(index, DIGITS + 1, locks(index))

"""Noting records and looking them up, in every store."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.indexes import (
    KINDS,
    compile_all,
    held,
    keys_below,
    keys_of,
    lines,
    make_index,
    opener,
    record,
    watched,
)
from tests.support.upstreams.failing_store import FailingStore, Fault

from fonds.errors import RecordError, ShardError, StoreError
from fonds.seams import Seams
from fonds.shards.inbox import put, put_many, read_item, waiting
from fonds.shards.index import Index, version_of
from fonds.shards.lookup import Lookup
from fonds.shards.schema import Record, Value
from fonds.stores.blobs import open_blobs

UNSAFE = [
    *("Upper.Example", "a b/c?d=é#1", "..", "shards", "~2f", ".tmp", "\0\n"),
    *("x" * 256, "é" * 128, "x" * 200 + ".tmp", "x" * 199 + "~"),
]


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    return make_index(opener(request.param, tmp_path, request)(Seams()))


def _find(index: Index, key: str) -> Record | None:
    return Lookup(index).find(key)


def _waits(index: Index, key: str) -> bytes | None:
    item = read_item(index, index.layout.item(key))
    return item.line + b"\n" if item else None


# Noting -------------------------------------------------------------------------------------


def test_a_record_is_found_as_soon_as_it_is_noted(index: Index) -> None:
    noted = record("a.example", 1, "A & Söhne\x1f\n")
    assert put(index, noted)
    assert _find(index, "a.example") == noted
    assert index.blobs.get("indexes/domains/a.example.usv") == lines(noted)


def test_a_newer_record_takes_the_place_of_an_older_one(index: Index) -> None:
    assert put(index, record("a.example", 1))
    assert put(index, record("a.example", 2))
    assert _find(index, "a.example") == record("a.example", 2)


def test_an_older_record_is_not_taken(index: Index) -> None:
    assert put(index, record("a.example", 2))
    assert not put(index, record("a.example", 1, "zzz"))
    assert _waits(index, "a.example") == lines(record("a.example", 2))


@pytest.mark.parametrize("is_lower_first", [True, False])
def test_a_tie_has_one_winner_whoever_came_first(index: Index, *, is_lower_first: bool) -> None:
    tied = [record("a.example", 1, "lower"), record("a.example", 1, "upper")]
    order = tied if is_lower_first else tied[::-1]
    assert [put(index, each) for each in order] == [True, is_lower_first]
    assert _find(index, "a.example") == tied[1]


def test_the_same_again_is_taken_and_written_once(index: Index) -> None:
    assert put(index, record("a.example", 1))
    again, store = watched(index)
    assert put(again, record("a.example", 1))
    assert [name for name, _, did in store.asked if did] == ["read"]


def test_of_many_writers_the_newest_prevails(index: Index) -> None:
    barrier = threading.Barrier(6)

    def work(number: int) -> list[tuple[int, bool]]:
        barrier.wait()
        order = random.Random(number).sample(range(12), 4)
        return [(when, put(index, record("a.example", when, str(number)))) for when in order]

    with ThreadPoolExecutor(6) as pool:
        done = [each for pairs in pool.map(work, range(6)) for each in pairs]
    newest = max(when for when, _ in done)
    found = _find(index, "a.example")
    assert found is not None
    assert found["scraper_version"] == newest
    assert (newest, True) in done
    assert keys_below(index, ".usv") == ["a.example.usv"]


def test_many_records_are_noted_at_once(index: Index) -> None:
    put(index, record("3.example", 9))
    records = [record(f"{number}.example", 1) for number in range(20)]
    assert put_many(index, iter(records), concurrency=4) == 19
    assert sorted(key for key, _ in waiting(index)) == sorted(
        f"{number}.example" for number in range(20)
    )


def test_a_record_that_does_not_fit_stops_many(index: Index) -> None:
    records: list[Record] = [record("a.example", 1), {"domain": "b.example", "updated_at": "then"}]
    with pytest.raises(RecordError, match="updated_at"):
        put_many(index, records)


def test_any_text_is_a_key(index: Index) -> None:
    for number in (1, 2):
        assert put_many(index, [record(key, number) for key in UNSAFE]) == len(UNSAFE)
    assert sorted(key for key, _ in waiting(index)) == sorted(UNSAFE)
    assert compile_all(index).records == len(UNSAFE)
    assert list(waiting(index)) == []
    assert put(index, record(UNSAFE[0], 3))
    found = dict(Lookup(index).find_many(UNSAFE))
    assert found == {key: record(key, 3 if key == UNSAFE[0] else 2) for key in UNSAFE}


def test_an_item_that_is_no_record_is_not_mistaken_for_a_newer_one(index: Index) -> None:
    path = index.layout.item("a.example")
    index.blobs.create(path, b"zzz is greater than any time\n")
    with pytest.raises(ShardError, match=r"a\.example"):
        put(index, record("a.example", 1))
    with pytest.raises(ShardError, match=r"a\.example"):
        _find(index, "a.example")


@pytest.fixture(params=["s3", "azure"])
def behind(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"{request.param}_address")
    return found


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.BUSY_AFTERWARDS, Fault.LOST, Fault.SILENT])
def test_a_record_whose_answer_was_lost_is_noted_or_refused(behind: str, fault: Fault) -> None:
    make_index(open_blobs(behind, seams=Seams()))
    faults = [fault, None] * 2

    with FailingStore(behind, timeout="300ms") as way:
        index = make_index(open_blobs(way.address, seams=Seams()))
        way.choose = lambda request: faults.pop(0) if request.method == "PUT" and faults else None
        for number in (1, 2):
            try:
                assert put(index, record("a.example", number))
            except StoreError:
                assert put(index, record("a.example", number))
            assert _waits(index, "a.example") == lines(record("a.example", number))


# Looking up ---------------------------------------------------------------------------------


def test_what_was_never_noted_is_not_found(index: Index) -> None:
    assert _find(index, "a.example") is None
    assert list(Lookup(index).find_many(["a.example", "b.example"])) == []
    put(index, record("a.example", 1))
    compile_all(index)
    one, other = keys_of(index, index.layout.shard_of("a.example"), 2)
    assert _find(index, one) is None
    assert _find(index, other[1:]) is None


@pytest.mark.parametrize(("compiled", "waits"), [(1, 2), (2, 1), (1, None), (None, 1), (1, 1)])
def test_the_newest_is_found_wherever_it_stands(
    index: Index, compiled: int | None, waits: int | None
) -> None:
    if compiled:
        put(index, record("a.example", compiled, "shard"))
        compile_all(index)
    if waits:
        assert put(index, record("a.example", waits, "inbox"))
    where = "inbox" if (waits or 0) > (compiled or 0) else "shard"
    newest = record("a.example", max(compiled or 0, waits or 0), where)
    assert _find(index, "a.example") == newest
    assert dict(Lookup(index).find_many(["a.example"])) == {"a.example": newest}
    compile_all(index)
    assert _find(index, "a.example") == newest
    assert held(index, index.layout.shard_of("a.example")) == lines(newest)


def test_one_key_costs_two_reads(index: Index) -> None:
    put(index, record("a.example", 1))
    compile_all(index)
    again, store = watched(index)
    for when in (None, 2):
        if when:
            put(index, record("a.example", when))
        store.asked.clear()
        assert Lookup(again).find("a.example")
        shard = index.layout.shard(index.layout.shard_of("a.example"))
        assert store.reads == [index.layout.item("a.example"), shard]


def test_one_key_costs_two_requests_of_a_server(behind: str) -> None:
    with FailingStore(behind) as way:
        index = make_index(open_blobs(way.address, seams=Seams()))
        put(index, record("a.example", 1))
        compile_all(index)
        put(index, record("a.example", 2))
        way.requests.clear()
        assert _find(index, "a.example") == record("a.example", 2)
        assert [request.method for request in way.requests] == ["GET", "GET"]


def test_many_keys_read_each_shard_once(index: Index) -> None:
    keys = [key for shard in "37c" for key in keys_of(index, shard, 4)]
    put_many(index, [record(key, 1) for key in keys])
    compile_all(index)
    put(index, record(keys[5], 2))
    again, store = watched(index)
    found = dict(Lookup(again).find_many([*keys, *keys, "none.example"]))
    assert found == {key: record(key, 2 if key == keys[5] else 1) for key in keys}
    read = [key for key in store.reads if key.startswith(index.layout.shards)]
    of_three = [index.layout.shard(shard) for shard in "37c"]
    assert sorted(key for key in read if key in of_three) == of_three
    items = [key for key in store.reads if not key.startswith(index.layout.shards)]
    assert sorted(items) == sorted(map(index.layout.item, [*keys, "none.example"]))


def test_a_kept_shard_is_sent_again_only_when_it_changed(index: Index, tmp_path: Path) -> None:
    put(index, record("a.example", 1))
    compile_all(index)
    again, store = watched(index)
    lookup = Lookup(again, cache=tmp_path / "cache")
    shard = index.layout.shard(index.layout.shard_of("a.example"))

    def sent() -> list[bool]:
        store.asked.clear()
        assert lookup.find("a.example") == expected
        return [did for _, key, did in store.asked if key == shard]

    expected: dict[str, Value] = record("a.example", 1)
    assert (sent(), sent()) == ([True], [False])
    put(index, record("a.example", 2))
    compile_all(index)
    expected = record("a.example", 2)
    assert (sent(), sent()) == ([True], [False])
    lookup = Lookup(again, cache=tmp_path / "cache")
    assert sent() == [False]


def test_a_kept_shard_that_is_gone_is_not_believed(index: Index, tmp_path: Path) -> None:
    put(index, record("a.example", 1))
    compile_all(index)
    lookup = Lookup(index, cache=tmp_path / "cache")
    assert lookup.find("a.example")
    index.blobs.delete(index.layout.shard(index.layout.shard_of("a.example")))
    assert lookup.find("a.example") is None


def test_a_shard_that_is_cut_inside_a_record_is_refused(index: Index) -> None:
    put_many(index, [record(key, 1) for key in keys_of(index, "3", 3)])
    compile_all(index)
    path = index.layout.shard("3")
    version = version_of(index.blobs, path)
    assert version is not None
    index.blobs.put(path, version.data[:-5])
    with pytest.raises(ShardError, match="inside a record"):
        _find(index, keys_of(index, "3", 1)[0])


def test_a_record_that_is_compiled_while_it_is_looked_up_is_found(index: Index) -> None:
    path = index.layout.item("a.example")

    def compile_before(name: str, key: str) -> None:
        # The record leaves the inbox just before we look there.
        if (name, key) == ("read", path):
            assert compile_all(index).records == 1

    put(index, record("a.example", 1))
    again, _ = watched(index, compile_before)
    assert Lookup(again).find("a.example") == record("a.example", 1)
    assert held(index, index.layout.shard_of("a.example")) == lines(record("a.example", 1))

"""Compiling the inbox into shards, in every store, beside others who do the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.indexes import (
    AT_ONCE,
    KINDS,
    Opener,
    all_shards,
    check_manifest,
    compile_all,
    held,
    keys_below,
    keys_of,
    lines,
    make_index,
    opener,
    record,
)
from tests.support.upstreams.failing_store import FailingStore, Fault

from fonds.errors import StoreError
from fonds.seams import Seams
from fonds.shards.compiler import Compiled, Compiler
from fonds.shards.inbox import put, put_many, waiting
from fonds.shards.index import Index
from fonds.shards.lookup import Lookup
from fonds.shards.schema import Value
from fonds.stores.blobs import open_blobs
from fonds.testing import Saboteur


@pytest.fixture(params=KINDS)
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    return opener(request.param, tmp_path, request)


@pytest.fixture
def index(reopen: Opener) -> Index:
    return make_index(reopen(Seams()))


def test_compiled_records_leave_the_inbox_for_their_shards(index: Index) -> None:
    three, seven = keys_of(index, "3", 2), keys_of(index, "7", 1)
    put_many(index, [record(key, 1) for key in (*three, *seven)])
    assert compile_all(index) == Compiled(records=3, shards=2)
    assert list(waiting(index)) == []
    assert all_shards(index) == {
        "3": lines(*(record(key, 1) for key in sorted(three))),
        "7": lines(record(seven[0], 1)),
    }
    check_manifest(index)
    assert keys_below(index, ".lock") == []


def test_a_second_round_writes_nothing(reopen: Opener, index: Index) -> None:
    put_many(index, [record(f"{number}.example", 1) for number in range(5)])
    compile_all(index)
    saboteur = Saboteur()
    again = make_index(reopen(Seams()))
    assert compile_all(replace(again, blobs=reopen(Seams(durable=saboteur)))) == Compiled()
    assert saboteur.operations == []


def test_a_round_without_records_ends_what_a_dead_compiler_began(tmp_path: Path) -> None:
    blobs = partial(open_blobs, str(tmp_path / "blobs"))
    index = make_index(blobs(seams=Seams()))
    put(index, record(keys_of(index, "3", 1)[0], 1))

    def die(_operation: str, subject: str) -> None:
        if subject == index.layout.descriptor:
            raise OSError("killed")

    with pytest.raises(StoreError):
        compile_all(replace(index, blobs=blobs(seams=Seams(durable=die))))
    assert list(waiting(index)) == []
    assert compile_all(index) == Compiled()
    check_manifest(index)


def test_of_each_key_the_newest_is_kept(index: Index) -> None:
    one, two, three, four = keys_of(index, "3", 4)
    put_many(index, [record(one, 5), record(two, 5), record(three, 5, "m")])
    compile_all(index)
    later = [record(one, 6), record(two, 4), record(three, 5, "a"), record(four, 1)]
    assert put_many(index, later) == 4
    assert compile_all(index) == Compiled(records=4, shards=1)
    expected = {one: later[0], two: record(two, 5), three: record(three, 5, "m"), four: later[3]}
    assert held(index, "3") == lines(*(expected[key] for key in sorted(expected)))
    assert list(waiting(index)) == []
    check_manifest(index)


@pytest.mark.parametrize("seed", range(2))
def test_any_order_gives_the_same_bytes(index: Index, seed: int) -> None:
    chance = random.Random(seed)
    keys = [*keys_of(index, "3", 3), "Ü.example", "a\x1fb\nc"]
    records = [record(key, when, text) for key in keys for when in (1, 2) for text in "ab"]
    chance.shuffle(records)
    cuts = [0, *sorted(chance.sample(range(1, len(records)), 3)), len(records)]
    for start, end in pairwise(cuts):
        put_many(index, records[start:end])
        compile_all(index)
    expected: dict[str, list[dict[str, Value]]] = {}
    for key in sorted(keys, key=lambda key: lines(record(key, 2, "b"))):
        expected.setdefault(index.layout.shard_of(key), []).append(record(key, 2, "b"))
    assert all_shards(index) == {shard: lines(*each) for shard, each in expected.items()}
    check_manifest(index)


def test_the_inbox_is_worked_off_in_pages_and_by_several(index: Index) -> None:
    records = [record(f"{number}.example", 1) for number in range(15)]
    put_many(index, records)
    assert compile_all(index, page=4, workers=3).records == 15
    assert list(waiting(index)) == []
    found = dict(Lookup(index).find_many(f"{number}.example" for number in range(15)))
    assert sorted(found.values(), key=str) == sorted(records, key=str)
    check_manifest(index)


def test_files_of_others_are_left_alone(index: Index) -> None:
    others = ["README.txt", "Upper.usv", "notes/x.usv", "~zz.usv", "shards/notes.txt"]
    for name in others:
        index.blobs.create(f"{index.layout.inbox}{name}", b"x\x1fy\n")
    put(index, record("a.example", 1))
    assert compile_all(index) == Compiled(records=1, shards=1)
    assert set(others) <= set(keys_below(index))


# Damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        lines(record("a.example", 1))[:-1],
        lines(record("a.example", 1), record("a.example", 2)),
        lines(record("b.example", 1)),
        b"a.example\x1fname\x1f1\n",
        b"a.example\x1f\xff\x1f1\x1f2026-03-04T05:06:08.000000Z\n",
        b"a.example\x1fname\x1fone\x1f2026-03-04T05:06:08.000000Z\n",
        b"\n",
        b"\x1fname\x1f1\x1f2026-03-04T05:06:08.000000Z\n",
        b"a" * 300 + b"\x1fname\x1f1\x1f2026-03-04T05:06:08.000000Z\n",
    ],
    ids=["cut", "two", "other-key", "few", "no-text", "no-number", "nothing", "no-key", "long-key"],
)
def test_an_item_that_is_no_record_is_reported_and_left_alone(tmp_path: Path, data: bytes) -> None:
    index = make_index(open_blobs(str(tmp_path), seams=Seams()))
    path = index.layout.item("a.example")
    index.blobs.create(path, data)
    neighbour = keys_of(index, index.layout.shard_of("a.example"), 1)[0]
    put(index, record(neighbour, 1))
    assert compile_all(index) == Compiled(records=1, shards=1, damaged=[path])
    assert index.blobs.get(path) == data
    assert Lookup(index).find(neighbour) == record(neighbour, 1)


def _cut_inside(index: Index) -> None:
    index.blobs.put(index.layout.shard("3"), held(index, "3")[:-4])


def _cut_between(index: Index) -> None:
    index.blobs.put(index.layout.shard("3"), held(index, "3").partition(b"\n")[0] + b"\n")


def _empty(index: Index) -> None:
    index.blobs.put(index.layout.shard("3"), b"")


def _break_entry(index: Index) -> None:
    index.blobs.put(index.layout.entry("3"), b'{"records": 2}')


def _lose(index: Index) -> None:
    index.blobs.delete(index.layout.shard("3"))


@pytest.mark.parametrize(
    "damage",
    [_cut_inside, _cut_between, _empty, _break_entry, _lose],
    ids=lambda each: each.__name__,
)
def test_a_shard_that_is_not_what_it_was_is_reported_and_left_alone(
    tmp_path: Path, damage: Callable[[Index], None]
) -> None:
    index = make_index(open_blobs(str(tmp_path), seams=Seams()))
    three, seven = keys_of(index, "3", 3), keys_of(index, "7", 1)
    put_many(index, [record(key, 1) for key in three[:2]])
    compile_all(index)
    damage(index)
    before = held(index, "3")
    put_many(index, [record(three[2], 1), record(seven[0], 1)])
    compiled = compile_all(index)
    # Without one of its entries, the data package is not written anew.
    unread = [index.layout.descriptor] if damage is _break_entry else []
    assert compiled.damaged == [index.layout.shard("3"), *unread]
    assert (compiled.records, compiled.shards) == (1, 1)
    assert held(index, "3") == before
    assert [key for key, _ in waiting(index)] == [three[2]]
    assert keys_below(index, ".lock") == []


# Bad moments of a server --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["s3", "azure"])
@pytest.mark.parametrize("fault", [Fault.BUSY_AFTERWARDS, Fault.LOST])
@pytest.mark.parametrize("ending", [".lock", "3.json", "3.usv", "example.usv"])
def test_whatever_answer_is_lost_the_next_round_finishes(
    request: pytest.FixtureRequest, kind: str, fault: Fault, ending: str
) -> None:
    address = request.getfixturevalue(f"{kind}_address")
    index = make_index(open_blobs(address, seams=Seams()))
    one, two = keys_of(index, "3", 2)
    put_many(index, [record(one, 1), record(two, 1)])
    faults = [fault]

    with FailingStore(address) as way:
        failing = make_index(open_blobs(way.address, seams=Seams()))
        assert failing.blobs.can_remove_versions()
        way.choose = lambda request: (
            faults.pop()
            if faults and request.method in {"PUT", "DELETE"} and request.key.endswith(ending)
            else None
        )
        compiled = compile_all(failing)
    assert not faults
    assert compiled.damaged == []
    Compiler(index, seams=Seams(), lifetime=AT_ONCE).run()
    assert held(index, "3") == lines(*(record(key, 1) for key in sorted([one, two])))
    assert list(waiting(index)) == []
    assert keys_below(index, ".lock") == []
    check_manifest(index)

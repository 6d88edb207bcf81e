"""Compilers side by side, and writers beside them: nobody undoes what another did."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.indexes import (
    AT_ONCE,
    KINDS,
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
    watched,
)

from fonds.seams import Seams
from fonds.shards.compiler import Compiled, Locks
from fonds.shards.inbox import put, put_many, read_item, waiting
from fonds.shards.index import Index
from fonds.shards.lookup import Lookup
from fonds.testing import ManualClock


def long(kind: str) -> Any:
    """A store for which a test takes too long to be run each time."""
    return pytest.param(kind, marks=pytest.mark.long)


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    return make_index(opener(request.param, tmp_path, request)(Seams()))


def test_a_record_that_changes_while_it_is_compiled_survives(index: Index) -> None:
    path = index.layout.item("a.example")
    newest = record("a.example", 2, "while it was compiled")
    changed: list[str] = []

    def change(name: str, key: str) -> None:
        # The compiler has read the item, written the shard, and is about to remove the item.
        if key == path and name in {"remove", "replace"}:
            changed.append(name)
            assert put(index, newest)

    put(index, record("a.example", 1))
    compiling, _ = watched(index, change)
    assert compile_all(compiling) == Compiled(records=1, shards=1)
    assert len(changed) == 1
    assert [key for key, _ in waiting(index)] == ["a.example"]
    assert Lookup(index).find("a.example") == newest
    assert held(index, index.layout.shard_of("a.example")) == lines(record("a.example", 1))
    assert compile_all(index) == Compiled(records=1, shards=1)
    assert Lookup(index).find("a.example") == newest
    assert list(waiting(index)) == []


def test_a_shard_that_another_has_is_left_to_it(index: Index) -> None:
    put_many(index, [record(keys_of(index, shard, 1)[0], 1) for shard in "37"])
    locks = Locks(index, ManualClock(), "another")
    taken = locks.take("3")
    assert taken is not None
    assert compile_all(index) == Compiled(records=1, shards=1, busy=1)
    locks.release(taken)
    assert compile_all(index) == Compiled(records=1, shards=1)


def test_compilers_side_by_side_lose_nothing(index: Index) -> None:
    records = [record(key, 1) for shard in "37c" for key in keys_of(index, shard, 5)]
    put_many(index, records)
    barrier = threading.Barrier(4)

    def work(_: int) -> Compiled:
        barrier.wait()
        return compile_all(index, lifetime=AT_ONCE)

    with ThreadPoolExecutor(4) as pool:
        rounds = list(pool.map(work, range(4)))
    assert [each.damaged for each in rounds] == [[]] * 4
    compile_all(index, lifetime=AT_ONCE)
    assert list(waiting(index)) == []
    assert b"".join(all_shards(index).values()).count(b"\n") == 15
    assert len(dict(Lookup(index).find_many(str(each["domain"]) for each in records))) == 15
    check_manifest(index)


def _paused_before(index: Index, path: str) -> tuple[Index, threading.Event, threading.Event]:
    """The index of a compiler that stops before it writes an object, until it is let go."""
    reached, resumed = threading.Event(), threading.Event()

    def pause(name: str, key: str) -> None:
        if key == path and name in {"create", "replace"}:
            reached.set()
            assert resumed.wait(30)

    return watched(index, pause)[0], reached, resumed


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("place", ["entry", "shard"])
def test_a_compiler_that_was_paused_undoes_nothing(
    index: Index, pool: ThreadPoolExecutor, place: str, *, is_new: bool
) -> None:
    one, two, three = keys_of(index, "3", 3)
    if not is_new:
        put(index, record(three, 1))
        compile_all(index)
    path = index.layout.shard("3") if place == "shard" else index.layout.entry("3")
    slow, reached, resumed = _paused_before(index, path)
    put(index, record(one, 1, "read by both"))
    paused = pool.submit(compile_all, slow)
    assert reached.wait(30)
    put(index, record(one, 2, "read by the second"))
    put(index, record(two, 1))
    assert compile_all(index, lifetime=AT_ONCE) == Compiled(records=2, shards=1)
    after = held(index, "3")
    resumed.set()
    assert paused.result() == Compiled(busy=1)
    assert held(index, "3") == after
    assert compile_all(index) == Compiled()
    assert keys_below(index, ".lock") == []
    check_manifest(index)


@pytest.mark.parametrize("is_new", [True, False])
def test_two_announcements_of_which_the_first_is_kept_do_no_damage(
    index: Index, pool: ThreadPoolExecutor, *, is_new: bool
) -> None:
    one, two, three = keys_of(index, "3", 3)
    if not is_new:
        put(index, record(three, 1))
        compile_all(index)
    path = index.layout.shard("3")
    first, first_reached, first_resumed = _paused_before(index, path)
    second, second_reached, second_resumed = _paused_before(index, path)
    put(index, record(one, 1))
    earlier = pool.submit(compile_all, first)
    assert first_reached.wait(30)
    put(index, record(two, 1))
    later = pool.submit(compile_all, second, lifetime=AT_ONCE)
    assert second_reached.wait(30)
    first_resumed.set()
    assert earlier.result() == Compiled(records=1, shards=1)
    second_resumed.set()
    assert later.result() == Compiled(busy=1)
    assert compile_all(index, lifetime=AT_ONCE) == Compiled(records=1, shards=1)
    found = dict(Lookup(index).find_many([one, two]))
    assert found == {one: record(one, 1), two: record(two, 1)}
    check_manifest(index)


@dataclass
class Meanwhile:
    """Notes a record and compiles it at one step of another compiler's work on a shard."""

    index: Index
    step: int
    steps: Iterator[int] = field(default_factory=lambda: count(1))
    reached: str = ""

    def __call__(self, name: str, key: str) -> None:
        is_ours = "/shards/3." in key or key.endswith("example.usv")
        if is_ours and next(self.steps) == self.step:
            self.reached = f"{name} {key}"
            assert put(self.index, record(keys_of(self.index, "3", 1)[0], 2))
            assert compile_all(self.index, lifetime=AT_ONCE).damaged == []


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("kind", ["folder", "memory", long("s3"), long("azure")])
def test_another_may_compile_between_any_two_steps(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, *, is_new: bool
) -> None:
    blobs = opener(kind, tmp_path, request)(Seams())
    for step in count(1):
        index = make_index(blobs, f"step{step}")
        one, two, three = keys_of(index, "3", 3)
        if not is_new:
            put(index, record(three, 1))
            compile_all(index)
        put_many(index, [record(one, 1), record(two, 1)])
        meanwhile = Meanwhile(index, step)
        assert compile_all(watched(index, meanwhile)[0]).damaged == []
        for _ in range(2):
            compile_all(index, lifetime=AT_ONCE)
        expected = {one: record(one, 2 if meanwhile.reached else 1), two: record(two, 1)}
        assert dict(Lookup(index).find_many([one, two])) == expected, meanwhile.reached
        assert list(waiting(index)) == []
        assert keys_below(index, ".lock") == []
        check_manifest(index)
        if not meanwhile.reached:
            break
    assert step > 8


def test_items_that_leave_while_they_are_read_are_not_missed(
    index: Index, pool: ThreadPoolExecutor
) -> None:
    one, two, three = keys_of(index, "3", 3)
    put(index, record(three, 1))
    compile_all(index)
    put_many(index, [record(one, 1), record(two, 1)])
    announced, landing, removing, ending = (threading.Event() for _ in range(4))

    def first(name: str, key: str) -> None:
        if key == index.layout.shard("3") and name == "replace":
            announced.set()
            assert landing.wait(30)
        if key == index.layout.item(two) and name in {"remove", "replace"}:
            while read_item(index, index.layout.item(one)):
                time.sleep(0.01)
            removing.set()
            assert ending.wait(30)

    def second(name: str, key: str) -> None:
        if key.endswith("example.usv") and name == "read":
            landing.set()
            assert removing.wait(30)

    rival = pool.submit(compile_all, watched(index, first)[0])
    assert announced.wait(30)
    compile_all(watched(index, second)[0], lifetime=AT_ONCE)
    ending.set()
    assert rival.result() == Compiled(records=2, shards=1)
    compile_all(index, lifetime=AT_ONCE)
    assert list(waiting(index)) == []
    assert held(index, "3") == lines(*(record(key, 1) for key in sorted([one, two, three])))
    check_manifest(index)

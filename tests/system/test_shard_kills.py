"""SIGKILL while an index is compiled: what was acknowledged is found, once; nothing older wins."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count, product
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.indexes import AT_ONCE, check_manifest, keys_of, make_index, record
from tests.support.kills.shards import (
    compile_on,
    compile_once,
    write,
)
from tests.support.upstreams.failing_store import FailingStore, Fault, Request

from fonds.seams import Seams
from fonds.selftest.child import ForkServer
from fonds.shards.compiler import Compiled, Compiler
from fonds.shards.inbox import put, waiting
from fonds.shards.index import DOMAINS, Index
from fonds.shards.lookup import Lookup
from fonds.shards.manifest import entry_of, key_of, read_entries
from fonds.shards.schema import rank
from fonds.stores.blobs import open_blobs

KINDS: Final = ("folder", "s3", "azure")
NAME: Final = "set"
SHARD: Final = "7"
WRITERS: Final = 8
COMPILERS: Final = 4
LIFETIME: Final = 0.02
"""Seconds; so short that locks of compilers that live are taken over, too."""
FAULTS: Final = (Fault.BUSY, Fault.BUSY_AFTERWARDS, Fault.LOST, Fault.CUT, Fault.SILENT)


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "blobs")
    found: str = request.getfixturevalue(f"{request.param}_address")
    return found


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer("tests.support.kills.shards") as fork_server:
        yield fork_server


# What must hold -----------------------------------------------------------------------------


Newest = Mapping[str, bytes]
"""The record that is to be found under each key."""


def _newest(lines: list[bytes]) -> dict[str, bytes]:
    newest: dict[str, bytes] = {}
    for line in sorted(lines, key=rank):
        newest[str(DOMAINS.decode(line)["domain"])] = line
    return newest


def _check_found(index: Index, newest: Newest) -> None:
    found = dict(Lookup(index).find_many([*newest, "never.noted"]))
    assert {key: DOMAINS.encode(held)[:-1] for key, held in found.items()} == newest


def _compile_calmly(index: Index) -> Compiled:
    """A round of a compiler that waits for no lock, and meets nobody."""
    # What a process asked for just before its end, the server may do just after it.
    for _ in range(5):
        compiled = Compiler(index, seams=Seams(), lifetime=AT_ONCE).run()
        assert compiled.damaged == []
        if not compiled.busy:
            break
    assert (compiled.busy, compiled.failed) == (0, 0)
    return compiled


def _check_compiled(index: Index, newest: Newest) -> None:
    """Everything stands in its shard, once, and nothing else is left."""
    layout = index.layout
    assert list(waiting(index)) == []
    keys = [info.key for info in index.blobs.list(layout.shards)]
    assert [key for key in keys if not key.endswith((".usv", ".json"))] == []
    shards = {
        shard: index.blobs.get(layout.shard(shard))
        for shard in layout.shard_ids()
        if layout.shard(shard) in keys
    }
    lines = [line for data in shards.values() for line in data.split(b"\n")[:-1]]
    assert sorted(lines) == sorted(newest.values())
    assert len({key_of(line) for line in lines}) == len(lines)
    held = {shard: entry_of(data) for shard, data in shards.items()}
    noted = read_entries(index, [each for each in layout.shard_ids() if layout.entry(each) in keys])
    assert {shard: each.contents for shard, each in noted.items()} == held


# Killed at every step -----------------------------------------------------------------------


def _check_published(index: Index) -> None:
    """A compiler that died just before it wrote the data package left that to the next one."""
    assert put(index, record("last.example", 1))
    assert _compile_calmly(index) == Compiled(records=1, shards=1)
    check_manifest(index)


def _cases() -> Iterator[Any]:
    for kind, has_shard, has_lock in product(KINDS, (True, False), (True, False)):
        # The most steps are those of a shard that is there, and locked by somebody who died.
        is_quick = has_shard == has_lock if kind == "folder" else has_shard and has_lock
        marks = [] if is_quick else [pytest.mark.long]
        yield pytest.param(kind, has_shard, has_lock, marks=marks)


@pytest.mark.parametrize(("address", "has_shard", "has_lock"), list(_cases()), indirect=["address"])
def test_killed_at_any_step_of_a_compaction_the_next_compiler_finishes(
    address: str, fork_server: ForkServer, *, has_shard: bool, has_lock: bool
) -> None:
    for step in count(1):
        name = f"step{step}"
        index = make_index(open_blobs(address, seams=Seams()), name)
        one, two, three = keys_of(index, SHARD, 3)
        lines = []
        if has_shard:
            old = [record(one, 1, "old"), record(two, 5, "newer than what waits")]
            assert [put(index, each) for each in old] == [True, True]
            _compile_calmly(index)
            lines += [DOMAINS.encode(each)[:-1] for each in old]
        for noted in (record(one, 2, "new"), record(two, 4, "old"), record(three, 3, "first")):
            assert put(index, noted)
            lines.append(DOMAINS.encode(noted)[:-1])
        if has_lock:
            index.blobs.create(index.layout.lock(SHARD), b"somebody who died")
        child = fork_server.start(
            compile_once, address=address, name=name, lifetime=0, kill_at=step
        )
        code = fork_server.wait(child)
        newest = _newest(lines)
        _check_found(index, newest)
        _compile_calmly(index)
        _check_found(index, newest)
        _check_compiled(index, newest)
        if code == 0:
            break
        assert code == -signal.SIGKILL
    _check_published(index)
    assert step > 6


# Killed at random ---------------------------------------------------------------------------


@dataclass
class Turmoil:
    """Writers that go on, and compilers that are killed, paused and replaced, on a bad line."""

    address: str
    fork_server: ForkServer
    journals: Path
    chance: random.Random
    records: int
    keys: int
    kills: int
    paused: int | None = None
    writers: list[int] = field(default_factory=list)
    compilers: list[int] = field(default_factory=list)

    def run(self) -> list[bytes]:
        """Everything that was acknowledged."""
        try:
            self._begin()
            while self._are_writing() or self.kills > 0:
                time.sleep(self.chance.uniform(0.02, 0.2))
                self._strike()
        finally:
            for pid in [*self.compilers, *self.writers]:
                self.fork_server.kill(pid)
        return [line for journal in self.journals.iterdir() for line in _lines(journal)]

    def _begin(self) -> None:
        keys = [f"host-{number}.example" for number in range(self.keys)]
        for number in range(WRITERS):
            told = {"journal": str(self.journals / str(number)), "keys": keys}
            self.writers.append(
                self.fork_server.start(
                    write,
                    address=self.address,
                    name=NAME,
                    records=self.records,
                    seed=self.chance.randrange(2**32),
                    **told,
                )
            )
        self.compilers += [self._compiler() for _ in range(COMPILERS)]

    def _compiler(self) -> int:
        return self.fork_server.start(
            compile_on, address=self.address, name=NAME, lifetime=LIFETIME
        )

    def _are_writing(self) -> bool:
        for pid in [*self.writers]:
            if (code := self.fork_server.poll(pid)) is not None:
                self.writers.remove(pid)
                assert code == 0
        return bool(self.writers)

    def _strike(self) -> None:
        """Kill a compiler, or let one sleep until the next strike, longer than its lock lives."""
        if self.paused is not None:
            os.kill(self.paused, signal.SIGCONT)
            self.paused = None
        victim = self.chance.choice(self.compilers)
        if self.chance.random() < 0.3:
            os.kill(victim, signal.SIGSTOP)
            self.paused = victim
            return
        self.compilers.remove(victim)
        self.fork_server.kill(victim)
        self.kills -= 1
        self.compilers.append(self._compiler())


def _lines(journal: Path) -> list[bytes]:
    return journal.read_bytes().split(b"\n")[:-1]


def _set_test(
    address: str,
    fork_server: ForkServer,
    tmp_path: Path,
    *,
    seed: int,
    records: int,
    keys: int,
    kills: int,
) -> None:
    chance = random.Random(seed)
    journals = tmp_path / "journals"
    journals.mkdir()
    index = make_index(open_blobs(address, seams=Seams()), NAME)

    def choose(_: Request) -> Fault | None:
        return chance.choice(FAULTS) if chance.random() < 0.03 else None

    with ExitStack() as stack:
        way = address
        if "://" in address:
            way = stack.enter_context(FailingStore(address, choose, timeout="500ms")).address
        turmoil = Turmoil(
            address=way,
            fork_server=fork_server,
            journals=journals,
            chance=random.Random(seed + 1),
            records=records,
            keys=keys,
            kills=kills,
        )
        acknowledged = turmoil.run()
    assert len(acknowledged) == WRITERS * records
    newest = _newest(acknowledged)
    _check_found(index, newest)
    _compile_calmly(index)
    _check_found(index, newest)
    _check_compiled(index, newest)
    assert _compile_calmly(index) == Compiled()
    _check_published(index)


def test_what_eight_writers_note_survives_compilers_that_are_killed(
    address: str, fork_server: ForkServer, tmp_path: Path
) -> None:
    _set_test(address, fork_server, tmp_path, seed=8, records=6, keys=10, kills=4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(80, 84))
def test_what_eight_writers_note_survives_compilers_that_are_killed_often(
    address: str, fork_server: ForkServer, tmp_path: Path, seed: int
) -> None:
    _set_test(address, fork_server, tmp_path, seed=seed, records=150, keys=120, kills=60)

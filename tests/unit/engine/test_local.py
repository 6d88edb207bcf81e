from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import wait

import pytest
from tests.unit.engine import chores

from fonds.engine.local import LocalEngine, _Worker
from fonds.errors import (
    ItemMemoryError,
)

FRESH = ("tests.unit.engine.chores",)


@pytest.fixture(params=[(), FRESH], ids=["workers", "copies"])
def engine(request: pytest.FixtureRequest) -> Iterator[LocalEngine]:
    with LocalEngine(workers=2, memory_mib=512, seconds=60, preload=request.param) as engine:
        yield engine


def test_no_items_start_no_worker(engine: LocalEngine) -> None:
    assert list(engine.run(chores.double, [])) == []
    assert engine._idle == []


def test_workers_serve_a_second_run(engine: LocalEngine) -> None:
    first = [o.result for o in engine.run(chores.double, [1])]
    kept = list(engine._idle)
    second = [o.result for o in engine.run(chores.double, [2])]
    assert (first, second) == ([2], [4])
    assert engine._idle == kept


def test_an_idle_worker_killed_from_outside_is_replaced(engine: LocalEngine) -> None:
    assert [o.result for o in engine.run(chores.double, [1])] == [2]
    (worker,) = engine._idle
    os.killpg(worker._process.pid, signal.SIGKILL)
    worker._process.wait()
    assert wait([worker.channel.fileno()], 60)  # its copies have ended, too
    assert [o.unwrap() for o in engine.run(chores.double, [2, 3])] in ([4, 6], [6, 4])


def test_memory_above_the_limit_is_seen_from_outside() -> None:
    with LocalEngine(workers=1, memory_mib=128, seconds=60) as engine:
        # The inner limit is of address space; without it only the resident memory is left to see.
        engine._idle.append(worker_without_inner_limit())
        (outcome,) = engine.run(chores.misbehave, ["hoard slowly"])
    assert isinstance(outcome.error, ItemMemoryError)


def worker_without_inner_limit() -> _Worker:
    worker = _Worker(LocalEngine(memory_mib=4096, seconds=60))
    worker._memory_mib = 128
    return worker

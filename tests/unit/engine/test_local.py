from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.engine import chores

from fonds.engine.base import Engine
from fonds.engine.local import LocalEngine, _Worker
from fonds.errors import (
    EngineError,
    FondsError,
    ItemFailedError,
    ItemMemoryError,
    ItemTimeoutError,
    MalformedError,
    WorkerDiedError,
)

FRESH = ("tests.unit.engine.chores",)


@pytest.fixture(params=[(), FRESH], ids=["workers", "copies"])
def engine(request: pytest.FixtureRequest) -> Iterator[LocalEngine]:
    with LocalEngine(workers=2, memory_mib=512, seconds=60, fresh=request.param) as engine:
        yield engine


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_local_engine_is_an_engine(engine: LocalEngine) -> None:
    assert isinstance(engine, Engine)


def test_every_item_has_one_outcome(engine: LocalEngine) -> None:
    outcomes = list(engine.run(chores.double, range(20)))
    assert sorted((o.index, o.item, o.unwrap()) for o in outcomes) == [
        (n, n, 2 * n) for n in range(20)
    ]


def test_no_items_start_no_worker(engine: LocalEngine) -> None:
    assert list(engine.run(chores.double, [])) == []
    assert engine._idle == []


def test_workers_serve_a_second_run(engine: LocalEngine) -> None:
    first = [o.result for o in engine.run(chores.double, [1])]
    kept = list(engine._idle)
    second = [o.result for o in engine.run(chores.double, [2])]
    assert (first, second) == ([2], [4])
    assert engine._idle == kept


def test_the_input_is_read_no_further_than_the_workers(engine: LocalEngine) -> None:
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for number in range(50):
            drawn.append(number)
            yield number

    outcomes = engine.run(chores.double, items())
    for finished in range(1, 11):
        next(outcomes)
        assert len(drawn) <= finished + 2 + 1
    outcomes.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("hoard", ItemMemoryError),
        ("die", WorkerDiedError),
        ("leave", WorkerDiedError),
        ("raise", ItemFailedError),
        ("complain", MalformedError),
        ("unsendable", ItemFailedError),
    ],
)
def test_a_bad_item_has_a_named_error_and_the_others_their_results(
    engine: LocalEngine, how: str, error: type[FondsError]
) -> None:
    outcomes = {o.index: o for o in engine.run(chores.misbehave, ["a", how, "b", how, "c"])}
    assert [outcomes[n].result for n in (0, 2, 4)] == ["a", "b", "c"]
    assert [type(outcomes[n].error) for n in (1, 3)] == [error, error]


@pytest.mark.parametrize("how", ["hang", "spin"])
def test_an_item_past_its_time_is_given_up_and_its_worker_replaced(how: str) -> None:
    with LocalEngine(workers=1, memory_mib=512, seconds=2) as engine:
        outcomes = list(engine.run(chores.misbehave, [how, "after"]))
    assert isinstance(outcomes[0].error, ItemTimeoutError)
    assert outcomes[1].result == "after"


def test_an_unwrapped_error_is_raised(engine: LocalEngine) -> None:
    (outcome,) = engine.run(chores.misbehave, ["complain"])
    with pytest.raises(MalformedError, match="the chore is malformed"):
        outcome.unwrap()


def test_an_item_that_cannot_be_sent_is_an_outcome(engine: LocalEngine) -> None:
    outcomes = list(engine.run(chores.unchanged, [chores.Unpicklable(), "after"]))
    assert isinstance(outcomes[0].error, ItemFailedError)
    assert "this item stays here" in str(outcomes[0].error)
    assert outcomes[1].result == "after"


def test_a_function_of_a_script_is_refused(engine: LocalEngine) -> None:
    def function(item: int) -> int:
        return item

    function.__module__ = "__main__"
    with pytest.raises(EngineError, match="put it into a module"):
        next(engine.run(function, [1]))


def test_workers_allow_native_libraries_one_thread(engine: LocalEngine) -> None:
    (outcome,) = engine.run(chores.threads_allowed, [None])
    assert outcome.result == "1"


def test_an_idle_worker_killed_from_outside_is_replaced(engine: LocalEngine) -> None:
    assert [o.result for o in engine.run(chores.double, [1])] == [2]
    (worker,) = engine._idle
    os.killpg(worker._process.pid, signal.SIGKILL)
    worker._process.wait()
    assert worker.channel.poll(60)  # its copies are gone too: nobody holds the other end
    assert [o.unwrap() for o in engine.run(chores.double, [2, 3])] in ([4, 6], [6, 4])


def test_memory_above_the_limit_is_seen_from_outside() -> None:
    with LocalEngine(workers=1, memory_mib=128, seconds=60) as engine:
        # The inner limit is of address space; without it only the resident memory is left to see.
        engine._idle.append(worker_without_inner_limit())
        (outcome,) = engine.run(chores.misbehave, ["hoard slowly"])
    assert isinstance(outcome.error, ItemMemoryError)


def worker_without_inner_limit() -> _Worker:
    worker = _Worker(4096, 60)
    worker._memory_mib = 128
    return worker


def test_an_abandoned_run_leaves_no_process(engine: LocalEngine, tmp_path: Path) -> None:
    def items() -> Iterator[str]:
        yield str(tmp_path)
        yield "no folder, so this one fails at once"

    run = engine.run(chores.write_process_id_and_hang, items())
    next(run)
    pids = _appeared(tmp_path, 2)
    run.close()  # type: ignore[attr-defined]
    _gone(pids)


def test_no_process_outlives_a_killed_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"from tests.unit.engine import chores; chores.parent({str(tmp_path)!r})",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    pids = _appeared(tmp_path, 4)
    parent.kill()
    parent.wait()
    _gone(pids)


def _appeared(folder: Path, count: int) -> list[int]:
    while len(pids := [int(path.name) for path in folder.iterdir()]) < count:
        time.sleep(0.02)
    return pids


def _gone(pids: list[int]) -> None:
    """Returns once they are; a process left behind hangs the test, and the run's limit ends it."""
    for _ in range(3000):
        if not any(map(alive, pids)):
            return
        time.sleep(0.02)
    pytest.fail(f"still running: {[pid for pid in pids if alive(pid)]}")


def test_a_copy_has_forgotten_what_the_item_before_it_left() -> None:
    with LocalEngine(workers=1, fresh=FRESH) as engine:
        seen = [o.unwrap() for o in engine.run(chores.count_calls, range(3))]
        pids = {o.unwrap() for o in engine.run(chores.own_pid, range(3))}
    assert seen == [1, 1, 1]
    assert len(pids) == 3


def test_a_copy_serves_until_it_says_that_it_is_worn() -> None:
    worn = "tests.unit.engine.chores:has_two_calls"
    with LocalEngine(workers=1, fresh=FRESH, worn=worn) as engine:
        assert [o.unwrap() for o in engine.run(chores.count_calls, range(5))] == [1, 2, 1, 2, 1]


def test_a_worker_remembers_without_copies() -> None:
    with LocalEngine(workers=1) as engine:
        assert [o.unwrap() for o in engine.run(chores.count_calls, range(3))] == [1, 2, 3]


def test_memory_and_time_of_a_copy_are_limited() -> None:
    with LocalEngine(workers=1, memory_mib=64, seconds=2, fresh=FRESH) as engine:
        outcomes = list(engine.run(chores.misbehave, ["hoard slowly", "spin", "after"]))
    assert [type(o.error) for o in outcomes[:2]] == [ItemMemoryError, ItemTimeoutError]
    assert outcomes[2].result == "after"

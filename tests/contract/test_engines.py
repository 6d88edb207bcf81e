"""What every engine promises, here and on a cluster."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.ray_cluster import environment, is_alive
from tests.unit.engine import chores

from fonds.engine.base import Engine
from fonds.engine.opening import open_engine
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


@pytest.fixture(scope="module", params=["local", "ray"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    address = "local" if request.param == "local" else request.getfixturevalue("ray_cluster")
    with open_engine(address):  # so that all others find their connection there
        yield address


@pytest.fixture(scope="module", params=[(), FRESH], ids=["workers", "copies"])
def engine(request: pytest.FixtureRequest, address: str) -> Iterator[Engine]:
    with open_engine(
        address, workers=2, memory_mib=512, seconds=60, preload=request.param
    ) as engine:
        yield engine


def test_it_is_an_engine_of_two_workers(engine: Engine) -> None:
    assert isinstance(engine, Engine)
    assert engine.workers == 2


def test_every_item_has_one_outcome(engine: Engine) -> None:
    outcomes = list(engine.run(chores.double, range(20)))
    assert sorted((o.index, o.item, o.unwrap()) for o in outcomes) == [
        (n, n, 2 * n) for n in range(20)
    ]


def test_no_items_have_no_outcome(engine: Engine) -> None:
    assert list(engine.run(chores.double, [])) == []


def test_the_input_is_read_little_further_than_the_workers(engine: Engine) -> None:
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for number in range(50):
            drawn.append(number)
            yield number

    outcomes = engine.run(chores.double, items())
    for finished in range(1, 11):
        next(outcomes)
        assert len(drawn) <= finished + 2 * engine.workers + 1
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
    engine: Engine, how: str, error: type[FondsError]
) -> None:
    outcomes = {o.index: o for o in engine.run(chores.misbehave, ["a", how, "b", how, "c"])}
    assert [outcomes[n].result for n in (0, 2, 4)] == ["a", "b", "c"]
    assert [type(outcomes[n].error) for n in (1, 3)] == [error, error]


def test_an_unwrapped_error_is_raised(engine: Engine) -> None:
    (outcome,) = engine.run(chores.misbehave, ["complain"])
    with pytest.raises(MalformedError, match="the chore is malformed"):
        outcome.unwrap()


def test_an_item_that_cannot_be_sent_is_an_outcome(engine: Engine) -> None:
    outcomes = list(engine.run(chores.unchanged, [chores.Unpicklable(), "after"]))
    assert isinstance(outcomes[0].error, ItemFailedError)
    assert "this item stays here" in str(outcomes[0].error)
    assert outcomes[1].result == "after"


def test_a_result_that_cannot_be_read_is_an_outcome(engine: Engine) -> None:
    (outcome,) = engine.run(chores.unreadable, [None])
    assert isinstance(outcome.error, ItemFailedError)
    assert "the result cannot be read" in str(outcome.error)


def test_a_function_of_a_script_is_refused(engine: Engine) -> None:
    def function(item: int) -> int:
        return item

    function.__module__ = "__main__"
    with pytest.raises(EngineError, match="put it into a module"):
        next(engine.run(function, [1]))


def test_workers_allow_native_libraries_one_thread(engine: Engine) -> None:
    (outcome,) = engine.run(chores.threads_allowed, [None])
    assert outcome.result == "1"


def test_several_threads_run_items_at_once(engine: Engine) -> None:
    def doubled(number: int) -> object:
        (outcome,) = engine.run(chores.double, [number])
        return outcome.unwrap()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(doubled, range(12))) == [2 * number for number in range(12)]


@pytest.mark.parametrize("how", ["hang", "spin"])
def test_an_item_past_its_time_is_given_up_and_its_worker_replaced(address: str, how: str) -> None:
    with open_engine(address, workers=1, memory_mib=512, seconds=2) as engine:
        outcomes = {o.index: o for o in engine.run(chores.misbehave, [how, "after"])}
        (again,) = engine.run(chores.misbehave, ["again"])
    assert isinstance(outcomes[0].error, ItemTimeoutError)
    assert (outcomes[1].result, again.result) == ("after", "again")


def test_memory_and_time_of_a_copy_are_limited(address: str) -> None:
    items = ["hoard slowly", "spin", "after"]
    with open_engine(address, workers=1, memory_mib=64, seconds=2, preload=FRESH) as engine:
        outcomes = {o.index: o for o in engine.run(chores.misbehave, items)}
    assert [type(outcomes[n].error) for n in (0, 1)] == [ItemMemoryError, ItemTimeoutError]
    assert outcomes[2].result == "after"


def test_a_copy_has_forgotten_what_the_item_before_it_left(address: str) -> None:
    with open_engine(address, workers=1, preload=FRESH) as engine:
        assert [o.unwrap() for o in engine.run(chores.count_calls, range(5))] == [1] * 5


def test_a_copy_serves_until_it_says_that_it_is_worn(address: str) -> None:
    worn = "tests.unit.engine.chores:has_two_calls"
    with open_engine(address, workers=1, preload=FRESH, should_recycle=worn) as engine:
        assert {o.unwrap() for o in engine.run(chores.count_calls, range(6))} == {1, 2}


def test_a_worker_remembers_without_copies(address: str) -> None:
    with open_engine(address, workers=1, seconds=77) as engine:
        seen = [o.unwrap() for o in engine.run(chores.count_calls, range(6))]
    assert 3 <= max(seen) <= 6


def test_an_abandoned_run_leaves_no_process(engine: Engine, tmp_path: Path) -> None:
    def items() -> Iterator[str]:
        yield str(tmp_path)
        yield "no folder, so this one fails at once"

    run = engine.run(chores.write_process_id_and_hang, items())
    next(run)
    pids = _appeared(tmp_path, 2)
    run.close()  # type: ignore[attr-defined]
    _gone(pids)


def test_no_process_outlives_a_killed_parent_and_another_parent_finds_workers(
    address: str, tmp_path: Path
) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"from tests.unit.engine import chores; chores.parent({address!r}, {str(tmp_path)!r})",
        ],
        env=environment(),
    )
    pids = _appeared(tmp_path, 4)
    parent.kill()
    parent.wait()
    _gone(pids)
    with open_engine(address, workers=2) as engine:
        assert sorted(o.unwrap() for o in engine.run(chores.double, [1, 2])) == [2, 4]


def _appeared(folder: Path, count: int) -> list[int]:
    while len(pids := [int(path.name) for path in folder.iterdir()]) < count:
        time.sleep(0.02)
    return pids


def _gone(pids: list[int]) -> None:
    for _ in range(3000):
        if not any(map(is_alive, pids)):
            return
        time.sleep(0.02)
    pytest.fail(f"still running: {[pid for pid in pids if is_alive(pid)]}")

"""What goes on beside a simulation, in its process or in others, is nothing to it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
import structlog

from tests.simulation.loop import run_seeded
from tests.simulation.scheduler import KilledError, Process, Scheduler
from tests.simulation.seeds import run_seed
from tests.simulation.threads import seeded_threads
from tests.support import servers

SEEDS = range(8)
_BESIDE = f"""
from tests.simulation.seeds import run_seed
for seed in range({SEEDS.start}, {SEEDS.stop}):
    print(run_seed("runner", seed).trace_hash)
"""


def test_worlds_of_two_workers_lock_nothing_from_each_other() -> None:
    alone = [run_seed("runner", seed).trace_hash for seed in SEEDS]
    # As xdist's workers do, it inherits the folder of this run.
    other = subprocess.Popen(
        [sys.executable, "-c", _BESIDE], cwd=servers.ROOT, stdout=subprocess.PIPE, text=True
    )
    beside = []
    while other.poll() is None:
        beside.append([run_seed("runner", seed).trace_hash for seed in SEEDS])
    told, _ = other.communicate()
    assert told.split() == alone
    assert beside
    assert all(each == alone for each in beside)


def _in_process(work: Callable[[Scheduler], object]) -> None:
    scheduler = Scheduler(Random("isolation"))
    try:
        process = Process(scheduler, "killed")
        process.spawn("main", lambda: work(scheduler)).join()
        assert scheduler.failure is None
    finally:
        scheduler.close()


@pytest.mark.parametrize("waits", [0, 1, 10])
def test_a_killed_process_holds_no_lock_however_often_it_waits_on_its_way_out(
    waits: int, tmp_path: Path
) -> None:
    path = tmp_path / "lock"

    async def hold() -> None:
        with path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                await asyncio.Event().wait()
            finally:
                await _linger(waits)

    async def main(process: Process) -> None:
        holding = asyncio.ensure_future(hold())
        await asyncio.sleep(1)
        process.kill()
        assert not holding.done()
        raise KilledError

    _in_process(lambda scheduler: run_seeded(scheduler, main(scheduler.current.process)))
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def _linger(waits: int) -> None:
    for _ in range(waits):
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            continue


def test_a_task_that_never_ends_is_told_of() -> None:
    told = []

    async def main() -> None:
        asyncio.ensure_future(_linger(sys.maxsize))  # noqa: RUF006 — the loop is to find it
        await asyncio.sleep(1)

    def work(scheduler: Scheduler) -> None:
        with pytest.raises(RuntimeError, match="these do not end") as raised:
            run_seeded(scheduler, main())
        told.append(raised)

    _in_process(work)
    assert told
    assert run_seed("runner", 0).error is None  # on the same threads


def test_threads_beside_the_simulation_draw_nothing_of_its_chance() -> None:
    scheduler = Scheduler(Random("isolation"))
    with seeded_threads(scheduler), ThreadPoolExecutor(1) as beside:
        before = scheduler.rng.getstate()
        assert beside.submit(uuid4).result() != beside.submit(uuid4).result()
        assert len(beside.submit(os.urandom, 4).result()) == 4
        assert scheduler.rng.getstate() == before
        assert uuid4() is not None
        assert scheduler.rng.getstate() != before


def test_what_others_log_is_not_in_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = run_seed("shards", 3).trace_hash
    init = Scheduler.__init__
    with ThreadPoolExecutor(1) as beside:

        def disturbed(self: Scheduler, chance: Random) -> None:
            init(self, chance)
            note = self.note

            def noting(what: str) -> None:
                if "from elsewhere" not in what:
                    beside.submit(structlog.get_logger().info, "from elsewhere").result()
                note(what)

            monkeypatch.setattr(self, "note", noting)

        monkeypatch.setattr(Scheduler, "__init__", disturbed)
        assert run_seed("shards", 3).trace_hash == quiet

"""A seed is the same world each time it is run, in any process; and a failing one says so."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation import shards
from tests.simulation.scheduler import ViolationError
from tests.simulation.seeds import SUBJECTS, run_seed
from tests.support import servers

SEED = 7


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_seed_twice_is_the_same_world(subject: str) -> None:
    first = run_seed(subject, SEED)
    run_seed(subject, SEED + 1)
    again = run_seed(subject, SEED)
    assert (again.trace_hash, again.lines) == (first.trace_hash, first.lines)
    assert first.steps > 50


def test_two_seeds_are_two_worlds() -> None:
    assert run_seed("shards", 1).trace_hash != run_seed("shards", 2).trace_hash


def test_a_seed_is_the_same_world_in_processes_that_hash_otherwise() -> None:
    ours = os.environ.get("PYTHONHASHSEED")
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--replay", str(SEED)],
        env={**os.environ, "PYTHONHASHSEED": "2" if ours == "1" else "1"},
        cwd=servers.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("trace ")]
    assert told == [f"trace {run_seed(subject, SEED).trace_hash}" for subject in SUBJECTS]


def test_a_failing_seed_tells_what_happened_and_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_world: object) -> None:
        raise ViolationError("the sky has fallen")

    monkeypatch.setattr(shards._Shards, "come_to_rest", fail)
    told = str(run_seed("shards", SEED))
    assert "calm\n\nViolationError: the sky has fallen\n" in told
    assert told.endswith("  python -m tests.simulation --replay 7 --only shards")

"""SIGKILL at any moment: the next run loses nothing, doubles nothing."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support import servers
from tests.support.upstreams.federal_register import SyntheticUpstream, serve_synthetic

from fonds.library import open_library
from fonds.selftest.state import rows_of

DOCUMENTS = 150


@pytest.fixture(scope="module")
def upstream() -> Iterator[SyntheticUpstream]:
    with serve_synthetic(DOCUMENTS, words=120, per_day=20) as upstream:
        yield upstream


class Undisturbed(NamedTuple):
    """What an undisturbed run leaves behind, and what it took."""

    state: dict[str, object]
    operations: int
    """Durable ones."""
    seconds: float


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, upstream: SyntheticUpstream
) -> Undisturbed:
    home = tmp_path_factory.mktemp("undisturbed")
    begun = time.monotonic()
    done = _child(home, upstream)
    out, _ = done.communicate(timeout=120)
    seconds = time.monotonic() - begun
    assert done.returncode == 0
    return Undisturbed(_state(home), int(out), seconds)


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.smoke), 1, 2, 3])
def test_killed_at_durable_operations_the_library_ends_the_same(
    tmp_path: Path,
    upstream: SyntheticUpstream,
    undisturbed: Undisturbed,
    seed: int,
) -> None:
    _kill_and_finish(tmp_path, upstream, random.Random(seed), 7, undisturbed.operations)
    assert _state(tmp_path) == undisturbed.state


def test_killed_at_random_times_the_library_ends_the_same(
    tmp_path: Path, upstream: SyntheticUpstream, undisturbed: Undisturbed
) -> None:
    chance = random.Random(99)
    # One that ends before it is killed was faster than the undisturbed one: then another is.
    homes = (tmp_path / str(number) for number in count())
    home = next(home for home in homes if _killed_at_random(home, upstream, chance, undisturbed))
    _finish(home, upstream)
    assert _state(home) == undisturbed.state


def _killed_at_random(
    home: Path, upstream: SyntheticUpstream, chance: random.Random, undisturbed: Undisturbed
) -> int:
    """Kill up to six times before the work is done, and say how often."""
    for kills in range(6):
        child = _child(home, upstream)
        time.sleep(chance.uniform(0.0, undisturbed.seconds))
        child.kill()
        child.communicate()
        if child.returncode == 0:
            return kills
    return 6


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 116))
def test_killed_very_often_the_library_ends_the_same(
    tmp_path: Path,
    upstream: SyntheticUpstream,
    undisturbed: Undisturbed,
    seed: int,
) -> None:
    _kill_and_finish(tmp_path, upstream, random.Random(seed), 15, undisturbed.operations)
    assert _state(tmp_path) == undisturbed.state


def _kill_and_finish(
    home: Path, upstream: SyntheticUpstream, chance: random.Random, kills: int, operations: int
) -> None:
    """Kill so many times before the work can be done, then let it be done."""
    for _ in range(kills):
        child = _child(home, upstream, kill_at=chance.randint(1, operations // (kills + 1)))
        child.communicate(timeout=120)
        assert child.returncode == -signal.SIGKILL
    _finish(home, upstream)


def _finish(home: Path, upstream: SyntheticUpstream) -> None:
    last = _child(home, upstream)
    last.communicate(timeout=120)
    assert last.returncode == 0


def _child(
    home: Path, upstream: SyntheticUpstream, kill_at: int | None = None
) -> subprocess.Popen[str]:
    python = str(servers.forked_python())
    command = [python, "-m", "tests.support.kills.ingest", str(home), json.dumps(upstream.hosts)]
    return subprocess.Popen(
        [*command, *([str(kill_at)] if kill_at else [])],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def _state(home: Path) -> dict[str, object]:
    """Rows, archived files and what a search finds; dead runs are no part of it."""
    with open_library(home) as library:
        found = [hit.model_dump() for hit in library.search("adjusted requirements", limit=50)]
        blobs = sorted((info.key, info.size) for info in library.blobs.list())
        return {**rows_of(library), "search": found, "blobs": blobs}

"""SIGKILL at any moment: the next run loses nothing, doubles nothing."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import servers
from tests.synthetic import SyntheticUpstream, serve_synthetic

from fonds.library import open_library
from fonds.selftest.state import rows_of

DOCUMENTS = 150


@pytest.fixture(scope="module")
def upstream() -> Iterator[SyntheticUpstream]:
    with serve_synthetic(DOCUMENTS, words=120, per_day=20) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, upstream: SyntheticUpstream
) -> tuple[dict[str, object], int]:
    """What an undisturbed run leaves behind, and how many durable operations it took."""
    home = tmp_path_factory.mktemp("undisturbed")
    done = _child(home, upstream)
    out, _ = done.communicate(timeout=120)
    assert done.returncode == 0
    return _state(home), int(out)


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_durable_operations_the_library_ends_the_same(
    tmp_path: Path,
    upstream: SyntheticUpstream,
    undisturbed: tuple[dict[str, object], int],
    seed: int,
) -> None:
    expected, operations = undisturbed
    _kill_and_finish(tmp_path, upstream, random.Random(seed), 7, operations)
    assert _state(tmp_path) == expected


def test_killed_at_random_times_the_library_ends_the_same(
    tmp_path: Path, upstream: SyntheticUpstream, undisturbed: tuple[dict[str, object], int]
) -> None:
    expected, _ = undisturbed
    chance = random.Random(99)
    kills = 0
    for _ in range(30):
        child = _child(tmp_path, upstream)
        time.sleep(chance.uniform(0.5, 2.5))
        if child.poll() is None:
            child.kill()
            kills += 1
        child.communicate()
        if kills >= 6 or child.returncode == 0:
            break
    assert kills
    _finish(tmp_path, upstream)
    assert _state(tmp_path) == expected


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 116))
def test_killed_very_often_the_library_ends_the_same(
    tmp_path: Path,
    upstream: SyntheticUpstream,
    undisturbed: tuple[dict[str, object], int],
    seed: int,
) -> None:
    expected, operations = undisturbed
    _kill_and_finish(tmp_path, upstream, random.Random(seed), 15, operations)
    assert _state(tmp_path) == expected


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
    command = [python, "-m", "tests.killable", str(home), json.dumps(upstream.hosts)]
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

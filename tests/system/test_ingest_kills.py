"""`fonds ingest` killed at any moment: repeated, it gives the library that it gives undisturbed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support import servers

from fonds.library import open_library
from fonds.selftest.state import rows_of

BILLS: Final = Path(__file__).parents[1] / "sources/bills/files"
COPIES: Final = 60
KILLS: Final = int(os.environ.get("FONDS_KILLS", "6"))
"""Of each kind of archive."""


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """What an ingest leaves that nobody kills, and what it took."""

    state: dict[str, Any]
    operations: int
    """Durable ones."""
    seconds: float


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of bills, each with its status and one text."""
    folder = tmp_path_factory.mktemp("bills") / "118"
    folder.mkdir()
    for name in ("BILLSTATUS-118hr77.xml", "BILLS-118hr77ih.xml"):
        content = (BILLS / name).read_text()
        for number in range(100, 100 + COPIES):
            copy = content.replace("<number>77</number>", f"<number>{number}</number>")
            copy = copy.replace("H. R. 77", f"H. R. {number}").replace("118hr77", f"118hr{number}")
            (folder / name.replace("hr77", f"hr{number}")).write_text(copy)
    return folder


@pytest.fixture(scope="module")
def undisturbed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    home = tmp_path_factory.mktemp("undisturbed")
    begun = time.monotonic()
    child = _child(home, folder)
    out, _ = child.communicate(timeout=120)
    assert child.returncode == 0
    state = _state(home)
    assert len(state["documents"]) == 2 * COPIES
    return Undisturbed(state=state, operations=int(out), seconds=time.monotonic() - begun)


def as_it_is(folder: Path, _target: Path) -> Path:
    return folder


def zipped(folder: Path, target: Path) -> Path:
    return Path(shutil.make_archive(str(target / "bills"), "zip", folder))


def tarred(folder: Path, target: Path) -> Path:
    return Path(shutil.make_archive(str(target / "bills"), "gztar", folder))


@pytest.mark.long
@pytest.mark.parametrize("pack", [as_it_is, zipped, tarred])
def test_killed_often_the_library_ends_the_same(
    tmp_path: Path,
    folder: Path,
    undisturbed: Undisturbed,
    pack: Callable[[Path, Path], Path],
) -> None:
    path, chance = pack(folder, tmp_path), random.Random(7)
    kills = 0
    for number in count():
        home = tmp_path / f"library-{number}"
        # One that ends before it is killed is complete; then another library is begun.
        while kills < KILLS and _is_killed(home, path, undisturbed, chance):
            kills += 1
        child = _child(home, path)
        child.communicate(timeout=120)
        assert child.returncode == 0
        assert _state(home) == undisturbed.state
        if kills >= KILLS:
            return


def _is_killed(home: Path, path: Path, undisturbed: Undisturbed, chance: random.Random) -> bool:
    """Kill an ingest at a durable operation, or at any time; False if it ended before."""
    if chance.random() < 0.5:
        child = _child(home, path, kill_at=chance.randint(1, undisturbed.operations))
    else:
        child = _child(home, path)
        time.sleep(chance.uniform(0.0, undisturbed.seconds))
        child.kill()
    child.communicate(timeout=120)
    assert child.returncode in {0, -signal.SIGKILL}
    return child.returncode != 0


def _child(home: Path, path: Path, kill_at: int | None = None) -> subprocess.Popen[str]:
    python = str(servers.forked_python())
    command = [python, "-m", "tests.support.kills.files", str(home), "bills", str(path)]
    return subprocess.Popen(
        [*command, *([str(kill_at)] if kill_at else [])],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def _state(home: Path) -> dict[str, Any]:
    """Rows, archived files and what a search finds; dead runs are no part of it."""
    with open_library(home) as library:
        found = [hit.model_dump() for hit in library.search("bridges", limit=50)]
        blobs = sorted((info.key, info.size) for info in library.blobs.list())
        return {**rows_of(library), "search": found, "blobs": blobs}

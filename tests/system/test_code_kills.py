"""SIGKILL at any moment of an ingest in invocations: the next run makes the library whole."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.code_commands import contents, ingest, start
from tests.support.polling import wait_until
from tests.support.upstreams.codes import (
    FolderServer,
    dc_section,
    write_dc_code,
    write_usc_title,
)

from fonds.codes.run import CodeRequest
from fonds.library import open_library
from fonds.runs.state import RunStatus

BUDGETED, UNLIMITED = "budgeted", "unlimited"
TITLES = 2


@dataclass(frozen=True, kw_only=True)
class Code:
    """A code, and a budget in which it takes several invocations."""

    name: str
    version: str
    given: str
    subrequests: int

    def command(self, how: str) -> list[str]:
        """An ingest as a process."""
        options = ["--from", self.given, "--version", self.version]
        budget = [f"--budget={self.subrequests},128"] if how == BUDGETED else []
        return ["code", "ingest", self.name, *options, *budget]

    def finish(self, home: Path) -> None:
        """Ingest to the end, in this process."""
        request = CodeRequest(version=self.version, given=self.given)
        with open_library(home, allow_private=True, rate_factor=0) as library:
            report = asyncio.run(library.ingest_code(self.name, request))
        assert report.run.status is RunStatus.SUCCESS
        assert len(report.units) == TITLES


@dataclass(frozen=True)
class Ingested:
    """A code, and what is left by an ingest that nobody disturbs."""

    code: Code
    contents: dict[str, list[Any]]
    steps: int


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with its tables and nothing in them."""
    home = tmp_path_factory.mktemp("empty")
    with open_library(home):
        return home


@pytest.fixture(scope="module")
def codes(empty: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ingested]]:
    """Titles in one file each, and titles that are a page a section, on loopback."""
    folder = tmp_path_factory.mktemp("codes")
    titles, pages = folder / "titles", folder / "pages"
    titles.mkdir()
    for title in range(91, 91 + TITLES):
        write_usc_title(titles / f"usc{title}.xml", sections=270, words=12, title=title)
    write_dc_code(pages, {str(title): 70 for title in range(1, 1 + TITLES)}, words=12)
    with FolderServer(pages) as upstream:
        usc = Code(name="usc", version="2024", given=str(titles), subrequests=140)
        dc = Code(name="dc", version="2016", given=upstream.address, subrequests=180)
        found = {}
        for code in (usc, dc):
            home = Path(shutil.copytree(empty, folder / f"home-{code.name}"))
            code.finish(home)
            found[code.name] = Ingested(code, contents(home), steps_done(home))
        yield found


# Killing ----------------------------------------------------------------------------------


def kill_in_the_midst(home: Path, known: Ingested, how: str, chance: random.Random) -> bool:
    """Kill an ingest, or its invocation's process; False if it was faster."""
    steps, delay = chance.randrange(known.steps), chance.uniform(0, 0.2)
    lock = home / "locks" / f"ingest-{known.code.name}.lock"
    lock.unlink(missing_ok=True)
    with start(home, *known.code.command(how)) as process:
        wait_until(lambda: process.poll() is not None or lock.exists())
        wait_until(lambda: process.poll() is not None or steps_done(home) >= steps)
        time.sleep(delay)
        _kill_one_of(process, chance)
        process.communicate(timeout=60)
    return process.returncode != 0


def steps_done(home: Path) -> int:
    """How far an ingest has come: blobs, and portions of nodes."""
    blobs = sum(1 for path in (home / "blobs").rglob("*") if path.is_file())
    with closing(sqlite3.connect(f"file:{home / 'fonds.db'}?mode=ro", uri=True)) as database:
        [nodes] = database.execute("SELECT count(*) FROM nodes").fetchone()
    return int(blobs + nodes // 50)


def _kill_one_of(process: subprocess.Popen[str], chance: random.Random) -> None:
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(process.pid)
        chance.choice([parent, *parent.children(recursive=True)]).kill()


def assert_made_whole(home: Path, known: Ingested) -> None:
    known.code.finish(home)
    assert contents(home) == known.contents


def kill_once_and_finish(empty: Path, folder: Path, known: Ingested, how: str, seed: int) -> None:
    chance = random.Random(seed)
    for attempt in count():
        home = Path(shutil.copytree(empty, folder / str(attempt)))
        if kill_in_the_midst(home, known, how, chance):
            break
        assert contents(home) == known.contents
    assert_made_whole(home, known)


@pytest.mark.parametrize(
    "case",
    [("dc", UNLIMITED, 1), ("usc", UNLIMITED, 10), ("usc", BUDGETED, 7), ("dc", BUDGETED, 16)],
)
def test_killed_at_a_random_moment_the_code_ends_the_same(
    empty: Path, tmp_path: Path, codes: dict[str, Ingested], case: tuple[str, str, int]
) -> None:
    name, how, seed = case
    kill_once_and_finish(empty, tmp_path, codes[name], how, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 150))
def test_killed_at_fifty_random_moments_the_code_ends_the_same(
    empty: Path, tmp_path: Path, codes: dict[str, Ingested], seed: int
) -> None:
    name, how = ["usc", "dc"][seed % 2], [UNLIMITED, BUDGETED][seed // 2 % 2]
    kill_once_and_finish(empty, tmp_path, codes[name], how, seed)


@pytest.mark.long
@pytest.mark.parametrize("how", [UNLIMITED, BUDGETED])
@pytest.mark.parametrize("name", ["usc", "dc"])
def test_killed_time_and_again_the_code_ends_the_same(
    empty: Path, tmp_path: Path, codes: dict[str, Ingested], name: str, how: str
) -> None:
    home = Path(shutil.copytree(empty, tmp_path / "home"))
    chance = random.Random(7)
    kills = [kill_in_the_midst(home, codes[name], how, chance) for _ in range(6)]
    assert any(kills)
    assert_made_whole(home, codes[name])


# Processes of their own -------------------------------------------------------------------


@contextmanager
def hanging(
    empty: Path, folder: Path, titles: int
) -> Iterator[tuple[Path, str, subprocess.Popen[str], psutil.Process]]:
    """An ingest whose invocation, in a process of its own, waits for a page that never comes."""
    home = Path(shutil.copytree(empty, folder / "home"))
    stuck = dc_section("1-105")
    write_dc_code(folder / "site", {str(title): 8 for title in range(1, titles + 1)}, words=12)
    with FolderServer(folder / "site") as upstream:
        upstream.damage(stuck, "hangs")
        command = ["code", "ingest", "dc", "--from", upstream.address, "--version", "2016"]
        with start(home, *command, "--budget", "worker", "--json") as parent:
            wait_until(lambda: upstream.seen("/hangs") or parent.poll() is not None)
            *_, child = psutil.Process(parent.pid).children(recursive=True)
            upstream.mend(stuck)
            yield home, upstream.address, parent, child


def test_unit_whose_process_is_killed_fails_alone_and_the_next_run_completes_it(
    empty: Path, tmp_path: Path
) -> None:
    with hanging(empty, tmp_path, titles=2) as (home, address, parent, child):
        child.kill()
        out, _ = parent.communicate(timeout=60)
        killed, other = json.loads(out)["units"]
        mended = ingest(home, "dc", address, "--version", "2016")
    assert parent.returncode == 3
    assert killed["error"].startswith(
        "WorkerDiedError: the worker ended while it had this item (SIGKILL)"
    )
    assert (other["error"], other["inserted"]) == (None, 10)
    assert [(unit["error"], unit["inserted"]) for unit in mended.values()] == [
        (None, 8),  # the two nodes above its sections were there
        (None, 0),
    ]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGKILL, -signal.SIGKILL),
        pytest.param(signal.SIGTERM, 130, marks=pytest.mark.long),
    ],
)
def test_no_process_outlives_an_ingest_that_is_stopped(
    empty: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with hanging(empty, tmp_path, titles=1) as (_, _, parent, child):
        parent.send_signal(number)
        parent.communicate(timeout=60)
        assert parent.returncode == code
        child.wait(60)

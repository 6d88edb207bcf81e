"""Three workers and two nodes of a cluster, PostgreSQL and S3, one of each killed all the time.

In the end the library is the one that a single undisturbed process makes in a folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.support import servers
from tests.support.libraries.demo import FONDS
from tests.support.ray_cluster import RayCluster, own_cluster

from fonds.demo.bundle import FEEDS, FIRST_DAY, LAST_DAY
from fonds.library import Library, open_library
from fonds.runs import commands
from fonds.runs.commands import Kind, QueueName
from fonds.runs.queue_status import TABLES
from fonds.runs.state import RunRequest, RunStatus
from fonds.selftest.state import INDEXES, blobs_of, rows_of

TIMES = int(os.environ.get("FONDS_SCALE_OUT", "5"))
"""How many times the documents of the bundled upstream; the promise is made for 100."""
COPIES = 4 * TIMES
"""Only notices and reports have copies; so many of these make the whole as many times as large."""
WORKERS = 3
KILLED_AFTER = 5.0
"""Seconds for which all must have been at work before the next are killed."""
PATIENCE = 3600.0
LONG = 300
"""Characters of a row that are kept as they are; of the others, a hash."""
RANGE = {"since": FIRST_DAY.isoformat(), "until": LAST_DAY.isoformat()}


@pytest.fixture(scope="module")
def hosts() -> Iterator[str]:
    """The upstream, in a process of its own."""
    command = [sys.executable, "-m", "tests.support.upstreams.copies", "--times", str(COPIES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip().removeprefix("FONDS_HOSTS=")
        finally:
            process.terminate()


@pytest.mark.long
def test_a_disturbed_cluster_makes_the_library_of_one_undisturbed_process(
    tmp_path: Path, hosts: str, postgres_database: str, s3_address: str
) -> None:
    settings = {"hosts": hosts, "allow_private": "1", "rate_factor": "0", "retry_wait": "0.05"}
    begun = time.monotonic()
    expected = undisturbed(tmp_path / "folder", settings)
    alone = time.monotonic() - begun
    shared = {**settings, "database": postgres_database, "blobs": s3_address}
    begun = time.monotonic()
    with own_cluster("scale") as cluster, opened(tmp_path / "operator", shared) as library:
        with disturbed(tmp_path, {**shared, "engine": cluster.address}, cluster) as chaos:
            fill(library, chaos)
            lost = (chaos.workers, chaos.nodes)
        taken = time.monotonic() - begun
        assert differences(state(library), expected) == {}
    held, passages = len(expected["documents"]), len(expected["document_chunk_buffer"])
    times = f"{alone:.0f} s by one process, {taken:.0f} s by three"
    told = "{:,} documents, {:,} passages: {}, {} workers and {} nodes lost"
    sys.stderr.write(f"\n{told.format(held, passages, times, *lost)}\n")
    assert min(lost) >= 2


# One process ------------------------------------------------------------------------------


def undisturbed(home: Path, settings: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """What one process leaves in a folder."""
    with opened(home, settings) as library:
        request = RunRequest(mode="backfill", since=FIRST_DAY, until=LAST_DAY)
        for report in asyncio.run(library.ingest_all(FEEDS, request)):
            assert report.status is RunStatus.SUCCESS, f"{report.source}: {report.error_summary}"
        library.normalize_queued()
        library.extract_citations()
        library.embed()
        return state(library)


@contextmanager
def opened(home: Path, settings: Mapping[str, str]) -> Iterator[Library]:
    home.mkdir()
    if "database" not in settings:
        servers.sqlite_database(home / "fonds.db")
    lines = (f'{name} = "{value}"\n' for name, value in settings.items())
    (home / "fonds.toml").write_text("".join(lines))
    with open_library(home) as library:
        yield library


def state(library: Library) -> Mapping[str, Sequence[str]]:
    """All rows, and all archived files with their hashes; of indexes, what stands in them."""
    rows = {table: sorted(map(_row, lines)) for table, lines in rows_of(library).items()}
    indexed = sorted(info.key for info in library.blobs.list(INDEXES))
    return {**rows, "blobs": sorted(blobs_of(library)), "indexed": indexed}


def _row(line: str) -> str:
    """A row as both databases have it: SQLite makes whole numbers of whole amounts."""
    row = json.dumps(json.loads(line, parse_float=_number), sort_keys=True)
    return row if len(row) < LONG else f"{row[:LONG]}… {sha256(row.encode()).hexdigest()}"


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def differences(
    held: Mapping[str, Sequence[str]], expected: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """By table: how many rows are too many and how many missing, and the first of each."""
    found = {}
    for name in expected.keys() | held.keys():
        ours, theirs = set(held.get(name, ())), set(expected.get(name, ()))
        if held.get(name) != expected.get(name):
            extra, missing = sorted(ours - theirs), sorted(theirs - ours)
            found[name] = (len(extra), len(missing), extra[:1], missing[:1])
    return found


# Many, dying ------------------------------------------------------------------------------


@dataclass
class Chaos:
    """Workers that are killed, and replaced, while others work on; and nodes likewise."""

    folder: Path
    environment: dict[str, str]
    cluster: RayCluster
    chance: random.Random = field(default_factory=lambda: random.Random(10))
    running: dict[Path, subprocess.Popen[bytes]] = field(default_factory=dict)
    """By the log of each."""
    workers: int = 0
    """How many were lost."""
    _strikes: int = 0
    _due: float = 0.0

    @property
    def nodes(self) -> int:
        """How many were lost and replaced: all but the last two."""
        return self.cluster.started - 2

    def start(self) -> None:
        """One more worker, with a home of its own: it shares nothing but the servers."""
        home = self.folder / f"worker-{self.workers + len(self.running)}"
        log = home.with_suffix(".log")
        command = [str(FONDS), "--home", str(home), "worker"]
        with log.open("ab") as output:
            self.running[log] = subprocess.Popen(
                command, env=self.environment, stdout=output, stderr=output
            )

    def strike(self) -> None:
        """Kill one worker and one node, and replace both, when all have worked for a while."""
        at_work = [log for log in self.running if b"working" in log.read_bytes()]
        if len(at_work) < WORKERS or self.nodes < self._strikes:
            self._due = time.monotonic() + KILLED_AFTER
        elif time.monotonic() > self._due:
            self._strikes += 1
            _kill(self.running.pop(self.chance.choice(at_work)))
            self.workers += 1
            self.start()
            self.cluster.replace_node()

    def restart(self) -> None:
        """Start workers again that ended by themselves, as whatever keeps services does."""
        for log, process in list(self.running.items()):
            if process.poll() is not None:
                del self.running[log]
                self.workers += 1
                self.start()


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@contextmanager
def disturbed(folder: Path, settings: Mapping[str, str], cluster: RayCluster) -> Iterator[Chaos]:
    inherited = {name: v for name, v in os.environ.items() if not name.startswith("FONDS_")}
    ours = {f"FONDS_{name.upper()}": value for name, value in settings.items()}
    chaos = Chaos(folder, {**inherited, **ours}, cluster)
    try:
        for _ in range(WORKERS):
            chaos.start()
        yield chaos
    finally:
        for process in chaos.running.values():
            _kill(process)


def fill(library: Library, chaos: Chaos) -> None:
    """Ask for all that a bootstrap does, each source after those it depends on."""
    graph = library.sources.dependency_graph(FEEDS)
    deadline = time.monotonic() + PATIENCE
    done: set[str] = set()
    while done != set(graph) or waiting(library):
        assert time.monotonic() < deadline, "the workers come to no end"
        done |= filled(library)
        # Asking again for what is open changes nothing.
        for name in set(graph) - done:
            if graph[name] <= done:
                ask(library, "backfill", name, RANGE)
        for queue in waiting(library):
            # What was lost with five workers by chance is given up until somebody asks again.
            ask(library, "drain", None, {"queue": queue, "given_up": True})
        chaos.strike()
        chaos.restart()
        time.sleep(0.2)


def ask(library: Library, kind: Kind, source: str | None, args: Mapping[str, Any]) -> None:
    now = library.seams.clock.now()
    with library.database.write() as connection:
        commands.submit(
            connection,
            kind,
            source,
            args,
            registry=library.sources,
            requested_by="test",
            now=now,
        )


def filled(library: Library) -> set[str]:
    """Sources whose command was done, and had no error."""
    with library.database.read() as connection:
        asked = commands.listing(connection, limit=1000)
    done = (one for one in asked if one.outcome is not None and one.outcome.startswith("success"))
    return {one.source for one in done if one.source is not None}


def waiting(library: Library) -> list[QueueName]:
    """Queues with something in them."""
    with library.database.read() as connection:
        return [
            name
            for name, table in TABLES.items()
            if connection.scalar(select(func.count()).select_from(table))
        ]

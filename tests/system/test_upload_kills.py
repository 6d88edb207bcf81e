"""SIGKILL while uploads are worked on: nothing lost, nothing doubled, hardly anything repeated."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import func, insert, select
from tests.support import servers
from tests.support.kills.uploads import ASKED, SETTINGS, work
from tests.support.libraries.uploads import send
from tests.support.polling import wait_until
from tests.unit.normalize.written_pdf import lines, written

from fonds.library import Library, open_library
from fonds.seams import Seams
from fonds.selftest.state import rows_of
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    upload_errors,
    upload_events,
    upload_jobs,
    users,
)
from fonds.testing import ManualClock, Saboteur
from fonds.uploads.states import ENDED, JobStatus
from fonds.uploads.worker import MAX_TAKEOVERS

USER: Final = UUID(int=7, version=4)
TABLES: Final = ("documents", "document_aliases", "document_chunk_buffer", "document_vector_buffer")
PATIENCE: Final = 120


def _files() -> Iterator[tuple[str, bytes]]:
    for number in range(9):
        parts = [
            f"## Part {part} of policy {number}\n\n" + f"Policy {number}.{part} covers water. " * 9
            for part in range(4)
        ]
        text = f"# Policy {number}\n\n" + "\n\n".join(parts) + "\n"
        yield f"policy-{number}.{'txt' if number % 3 == 2 else 'md'}", text.encode()
    for number in range(5):
        notice = f"# Notice {number}\n\nNotice {number} covers water and takes one step.\n"
        yield f"notice-{number}.md", notice.encode()
    said = [f"Line {number} of a policy that is a small PDF" for number in range(20)]
    yield "policy.pdf", written(lines(72, 720, *said))


FILES: Final = tuple(_files())


@dataclass(frozen=True)
class Place:
    """A library with files that wait for a worker."""

    home: Path
    database: str

    @property
    def asked(self) -> list[int]:
        """For how many texts the model was asked each time."""
        return [int(line) for line in (self.home / ASKED).read_text().split()]

    def child(self, *options: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "tests.support.kills.uploads",
            str(self.home),
            self.database,
        ]
        return subprocess.Popen([*command, *options], cwd=servers.ROOT)

    def finish(self, hours: int) -> None:
        """A worker that nobody disturbs, when all leases have ended."""
        last = self.child("--hours", str(hours))
        assert last.wait(PATIENCE) == 0

    def read(self, look: Callable[[Library], Any]) -> Any:
        with open_library(self.home, database=self.database, **SETTINGS) as library:
            return look(library)

    def statuses(self) -> Counter[str]:
        return Counter(self.read(_statuses))


def _statuses(library: Library) -> list[str]:
    with library.database.read() as connection:
        return list(connection.scalars(select(upload_jobs.c.status)))


def _fill(place: Place) -> Place:
    """Announced at a fixed moment, which citations tell."""
    seams = Seams(clock=ManualClock())
    with open_library(place.home, seams=seams, database=place.database, **SETTINGS) as library:
        row = {"id": USER, "name": "somebody", "created_at": seams.clock.now()}
        with library.database.write() as connection:
            connection.execute(insert(users).values(row))
        for name, data in FILES:
            send(library, USER, data, name)
    return place


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        database = request.getfixturevalue("postgres_database")
        return _fill(Place(home=tmp_path, database=database))
    return _fill(_on_sqlite(tmp_path))


def _on_sqlite(home: Path) -> Place:
    shutil.copyfile(servers.sqlite_template(), home / "fonds.db")
    return Place(home=home, database=f"sqlite:///{home / 'fonds.db'}")


def _state(library: Library) -> dict[str, Any]:
    """Documents, passages, vectors and jobs, and what is found."""
    dump = rows_of(library)
    job, event = upload_jobs.c, upload_events.c
    with library.database.read() as connection:
        columns = (job.document_id, job.status, job.progress, job.last_error)
        ends = connection.execute(select(*columns)).all()
        moves = connection.execute(select(event.job_id, event.to_status)).all()
        errors = connection.scalar(select(func.count()).select_from(upload_errors))
    hits = library.search("policy covers water", owner=USER, limit=500)
    return {
        **{table: dump[table] for table in TABLES},
        "jobs": sorted(
            (str(uid), status, last_error, sorted((progress or {}).items()))
            for uid, status, progress, last_error in ends
        ),
        "moves": Counter(Counter(row.to_status for row in moves).values()),
        "errors": errors,
        "found": sorted(hit.id for hit in hits),
        "blobs": sorted((info.key, info.size) for info in library.blobs.list()),
    }


@dataclass(frozen=True)
class Undisturbed:
    state: dict[str, Any]
    operations: int
    asked: list[int]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    place = _fill(_on_sqlite(tmp_path_factory.mktemp("undisturbed")))
    saboteur = Saboteur()
    work(place.home, Seams(durable=saboteur), database=place.database)
    assert place.statuses() == {JobStatus.COMPLETE: len(FILES)}
    operations = len(saboteur.operations)
    return Undisturbed(state=place.read(_state), operations=operations, asked=place.asked)


def _same(place: Place, undisturbed: Undisturbed) -> None:
    state = place.read(_state)
    for part, expected in undisturbed.state.items():
        assert state[part] == expected, part


def _check_repeated(place: Place, undisturbed: Undisturbed, kills: int) -> None:
    """At most one micro-batch is asked for again for each kill."""
    repeated = sum(place.asked) - sum(undisturbed.asked)
    assert 0 <= repeated <= kills * max(undisturbed.asked)


# Killed -------------------------------------------------------------------------------------


def _kill_and_finish(place: Place, chance: random.Random, kills: int, operations: int) -> None:
    for hour in range(kills):
        # Each comes when the lease of the one before has ended.
        at = chance.randint(2, operations // (kills + 1))
        child = place.child("--hours", str(hour), "--kill-at", str(at))
        assert child.wait(PATIENCE) == -signal.SIGKILL
    place.finish(kills)


def test_killed_at_durable_operations_uploads_end_the_same(
    place: Place, undisturbed: Undisturbed
) -> None:
    kills = 3
    _kill_and_finish(place, random.Random(6), kills, undisturbed.operations)
    _same(place, undisturbed)
    _check_repeated(place, undisturbed, kills)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 104))
def test_killed_very_often_uploads_end_the_same(
    place: Place, undisturbed: Undisturbed, seed: int
) -> None:
    # One more death at one stage, and a job counts as what workers die of.
    kills = MAX_TAKEOVERS
    _kill_and_finish(place, random.Random(seed), kills, undisturbed.operations)
    _same(place, undisturbed)
    _check_repeated(place, undisturbed, kills)


def _kill_at_random(place: Place, chance: random.Random, kills: int) -> None:
    """Two workers side by side, each replaced as soon as it is killed."""
    running = [place.child("--run", "--pace", "0.02") for _ in range(2)]
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.2, 2.0))
            victim = running.pop(0)
            victim.kill()
            assert victim.wait(PATIENCE) == -signal.SIGKILL
            running.append(place.child("--run", "--pace", "0.02"))
    finally:
        for each in running:
            each.kill()
            each.wait(PATIENCE)
    place.finish(1)


def test_killed_at_random_times_uploads_end_the_same(
    place: Place, undisturbed: Undisturbed
) -> None:
    _kill_at_random(place, random.Random(7), 2)
    _same(place, undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200, 204))
def test_killed_at_many_random_times_uploads_end_the_same(
    place: Place, undisturbed: Undisturbed, seed: int
) -> None:
    _kill_at_random(place, random.Random(seed), 8)
    _same(place, undisturbed)


# Asked to end -------------------------------------------------------------------------------


def _half_done(library: Library) -> list[str]:
    """Jobs that are held by somebody, or have more or less than where they stand tells."""
    chunk, vector, job = document_chunk_buffer.c, document_vector_buffer.c, upload_jobs.c
    with library.database.read() as connection:
        cut = Counter(connection.scalars(select(chunk.document_id)))
        embedded = Counter(connection.scalars(select(vector.document_id)))
        jobs = connection.execute(
            select(job.document_id, job.status, job.progress, job.lease_owner)
        )
        found = []
        for row in jobs:
            progress = row.progress or {}
            expected = (progress.get("chunks_total", 0), progress.get("embeds_done", 0))
            if row.lease_owner or (cut[row.document_id], embedded[row.document_id]) != expected:
                found.append(repr(row))
    return found


def test_worker_that_is_asked_to_end_leaves_nothing_half_done(
    place: Place, undisturbed: Undisturbed
) -> None:
    worker = place.child("--run", "--pace", "0.2")
    wait_until(lambda: place.statuses()[JobStatus.COMPLETE] > 0)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE) == 0
    assert not set(place.statuses()) & (ENDED - {JobStatus.COMPLETE})
    assert place.statuses()[JobStatus.COMPLETE] < len(FILES)
    assert place.read(_half_done) == []
    place.finish(0)
    _same(place, undisturbed)
    _check_repeated(place, undisturbed, 0)


def test_the_command_works_on_uploads_until_it_is_asked_to_end(
    tmp_path: Path, undisturbed: Undisturbed
) -> None:
    place = _fill(_on_sqlite(tmp_path))
    told = {f"FONDS_{name.upper()}": str(value) for name, value in SETTINGS.items()}
    fonds = Path(sys.executable).with_name("fonds")
    worker = subprocess.Popen([fonds, "--home", tmp_path, "worker"], env=os.environ | told)
    wait_until(lambda: place.statuses() == {JobStatus.COMPLETE: len(FILES)})
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE) == 0
    _same(place, undisturbed)

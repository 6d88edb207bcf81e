from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.libraries.notes import NoteOffice, ingest, note_library, rows
from tests.support.upstreams.misbehaving import MisbehavingServer, Request, Response

from fonds.errors import LeaseLostError, SourceBusyError
from fonds.library import Library, open_library
from fonds.runs.locks import LEASE, LeaseLock, lock_source
from fonds.runs.state import RunRequest, RunStatus
from fonds.seams import Seams
from fonds.testing import FakeSource, ManualClock

HOLD = """
import sys
from pathlib import Path
from fonds.library import open_library
from fonds.runs.locks import lock_source

home = Path(sys.argv[1])
with open_library(home) as library:
    with lock_source(library.database, home, "fake", library.seams.clock):
        print("held", flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        yield NoteOffice(server, 3)


@pytest.fixture
def shared(
    tmp_path: Path, office: NoteOffice, postgres_database: str, clock: ManualClock
) -> Iterator[Library]:
    seams = Seams(clock=clock)
    with note_library(tmp_path, office.server, seams=seams, database=postgres_database) as library:
        yield library


def test_file_claim_is_free_again_when_its_process_is_killed(tmp_path: Path) -> None:
    with open_library(tmp_path) as library:

        def claim() -> None:
            with lock_source(library.database, tmp_path, "fake", library.seams.clock):
                pass

        command = [sys.executable, "-c", HOLD, str(tmp_path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(SourceBusyError, match="another process"):
                claim()
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            claim()


def test_file_claims_of_two_sources_do_not_meet(tmp_path: Path) -> None:
    with open_library(tmp_path) as library, ExitStack() as stack:
        for source in ("fake", "other"):
            clock = library.seams.clock
            stack.enter_context(lock_source(library.database, tmp_path, source, clock))
        with pytest.raises(SourceBusyError):
            stack.enter_context(lock_source(library.database, tmp_path, "fake", clock))


def test_lease_is_taken_over_only_after_it_has_expired(shared: Library, clock: ManualClock) -> None:
    first = LeaseLock(shared.database, "ingest-fake", clock)
    second = LeaseLock(shared.database, "ingest-fake", clock)
    first.acquire()
    with pytest.raises(SourceBusyError):
        second.acquire()
    clock.move(seconds=LEASE.total_seconds() - 1)
    first.renew()
    clock.move(seconds=LEASE.total_seconds() - 1)
    with pytest.raises(SourceBusyError):
        second.acquire()
    clock.move(seconds=2)
    second.acquire()
    with pytest.raises(LeaseLostError, match="took over"):
        first.renew()
    first.release()
    second.renew()


def test_expired_lease_that_nobody_took_is_still_ours(shared: Library, clock: ManualClock) -> None:
    lease = LeaseLock(shared.database, "ingest-fake", clock)
    lease.acquire()
    clock.move(seconds=LEASE.total_seconds() * 3)
    lease.renew()
    with pytest.raises(SourceBusyError):
        LeaseLock(shared.database, "ingest-fake", clock).acquire()


def test_released_lease_is_free_at_once(shared: Library, clock: ManualClock) -> None:
    home = shared.settings.home
    for _ in range(2):
        with lock_source(shared.database, home, "fake", clock):
            assert len(rows(shared, "SELECT 1 FROM ingestion_leases")) == 1
    assert rows(shared, "SELECT 1 FROM ingestion_leases") == []


def test_run_that_lost_its_lease_writes_nothing_more(
    shared: Library, office: NoteOffice, clock: ManualClock
) -> None:
    usurper = LeaseLock(shared.database, "ingest-fake", clock)

    def slow(request: Request) -> Response:
        """While the first run waits for its list, another process takes over."""
        if request.count == 1:
            clock.move(seconds=LEASE.total_seconds() + 1)
            usurper.acquire()
        return Response(b'{"notes": [{"number": 1, "title": "Note 1"}]}')

    office.server.route("/list.json", slow)
    with pytest.raises(LeaseLostError, match="nothing was written"):
        ingest(shared)
    assert rows(shared, "SELECT 1 FROM documents") == []
    (run,) = rows(shared, "SELECT status, error_summary FROM ingestion_runs")
    assert run["status"] == "failed"
    assert "LeaseLostError" in run["error_summary"]
    usurper.renew()
    usurper.release()
    report = asyncio.run(shared.ingest(FakeSource(), RunRequest()))
    assert report.status is RunStatus.SUCCESS

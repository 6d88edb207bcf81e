"""Doctor and prune on a library that was really filled, on every database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.libraries.notes import NoteOffice, ingest, note_library, rows
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.library import Library
from fonds.maintenance.doctor import examine
from fonds.maintenance.findings import Health, MaintenanceTarget
from fonds.maintenance.prune import Prunable, prune
from fonds.seams import Seams
from fonds.selftest.state import rows_of
from fonds.testing import FakeSource, ManualClock


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        yield NoteOffice(server, 6)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(moment=datetime.now(UTC).replace(microsecond=0))


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, office: NoteOffice, clock: ManualClock
) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    seams = Seams(clock=clock)
    with note_library(tmp_path, office.server, seams=seams, database=address) as library:
        yield library


def pruned(library: Library, *, apply: bool) -> dict[str, Prunable]:
    clock = library.seams.clock
    patient = MaintenanceTarget(
        settings=library.settings,
        seams=library.seams,
        database=library.database,
        blobs=library.blobs,
        began=(clock.now(), clock.monotonic()),
    )
    return {heap.name: heap for heap in prune(patient, older_than=timedelta(days=30), apply=apply)}


def test_doctor_finds_nothing_that_fails(library: Library) -> None:
    ingest(library)
    findings = list(examine(library.settings, seams=Seams()))
    failed = [finding for finding in findings if finding.status is Health.FAIL]
    assert failed == []
    assert len(findings) >= 20


def test_pruned_library_reads_verifies_and_runs_as_before(
    library: Library, office: NoteOffice, clock: ManualClock
) -> None:
    source = FakeSource()
    ingest(library, source)
    office.change(3, text="# Matter\n\nOther words.")
    office.break_note(5, b"{not json")
    ingest(library, source, recheck=True)
    library.blobs.create("corpus/fake/notes/nobody-knows.json", b"{}")
    clock.move(days=40)
    before = {info.key for info in library.blobs.list()}
    dump = rows_of(library)
    said = pruned(library, apply=False)
    done = pruned(library, apply=True)
    assert {name: heap.count for name, heap in said.items()} == {
        name: heap.count for name, heap in done.items()
    }
    gone = before - {info.key for info in library.blobs.list()}
    assert "corpus/fake/notes/nobody-knows.json" in gone
    kept = rows(
        library,
        "SELECT archive_key AS key FROM document_versions"
        " UNION SELECT body_archive_key FROM document_versions"
        " UNION SELECT blob_key FROM fetched_files",
    )
    assert gone.isdisjoint(row["key"] for row in kept)
    assert rows_of(library) == dump
    for number in range(1, 7):
        steps = {step.name: step.outcome for step in library.verify(f"fake:{number}").steps}
        assert steps["raw"] == "match"
        assert library.raw(library.document(f"fake:{number}"))
    assert ingest(library, source).counts.skipped == 5


def test_tasks_and_lines_go_in_pieces(
    library: Library, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fonds.maintenance.prune.BATCH_ROWS", 2)
    ingest(library)
    clock.move(days=40)
    assert pruned(library, apply=True)["tasks"].count == 6
    assert rows(library, "SELECT 1 FROM ingestion_tasks") == []
    assert rows(library, "SELECT 1 FROM ingestion_logs") == []


def test_temporary_files_of_today_stay(library: Library) -> None:
    today = library.settings.home / "tmp" / "fetch-1"
    today.parent.mkdir(exist_ok=True)
    today.touch()
    os.utime(today)
    assert pruned(library, apply=True)["temporary files"].count == 0
    assert today.exists()

"""What two libraries are compared by, and what must hold of one at any moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import delete, text
from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.library import Library
from fonds.selftest.state import MAX_LINES, differences, problems, rows_of, state_of
from fonds.stores.tables import document_chunk_buffer, ingestion_runs


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with MisbehavingServer() as server:
        NoteOffice(server, 4)
        with note_library(tmp_path, server, embedder="hashing:32") as library:
            ingest(library)
            yield library


def found(library: Library, *, is_done: bool = False) -> list[str]:
    return list(problems(library, is_done=is_done))


def test_what_differs_is_told_with_its_place() -> None:
    expected = {"documents": ["a", "b", "b"], "blobs": ["x"]}
    assert list(differences(expected, expected)) == []
    assert list(differences(expected, {"documents": ["b", "c"], "blobs": ["x"]})) == [
        "documents: missing: a",
        "documents: missing: b",
        "documents: extra: c",
    ]


def test_of_many_differences_some_are_told_and_the_rest_counted() -> None:
    lines = [str(number) for number in range(10)]
    assert list(differences({"blobs": lines}, {}))[MAX_LINES:] == [
        f"blobs: missing: {10 - MAX_LINES} more"
    ]


def test_a_second_run_makes_no_difference(library: Library) -> None:
    library.embed()
    before = state_of(library)
    assert len(before["documents"]) == 4
    ingest(library, recheck=True)
    assert list(differences(before, state_of(library))) == []


def test_a_row_that_is_lost_is_a_difference(library: Library) -> None:
    before = rows_of(library)
    with library.database.write() as connection:
        connection.execute(delete(document_chunk_buffer))
    assert len(list(differences(before, rows_of(library)))) == MAX_LINES + 1


def test_a_sound_library_is_legal(library: Library) -> None:
    assert found(library, is_done=True) == []


def test_a_document_without_passages_is_not_legal(library: Library) -> None:
    with library.database.write() as connection:
        connection.execute(delete(document_chunk_buffer))
        connection.execute(text("DELETE FROM chunk_index"))
    assert "fake:1 has no passages" in found(library)


def test_a_file_that_is_lost_or_altered_is_not_legal(library: Library) -> None:
    lost, altered = (library.document(f"fake:{number}")["raw_path"] for number in (2, 3))
    library.blobs.delete(lost)
    library.blobs.put(altered, b"{}")
    assert found(library) == [
        f"{lost} is referenced but missing",
        f"{altered} differs from the fetched file",
    ]


def test_a_run_may_seem_to_go_on_only_if_nobody_said_that_all_is_done(library: Library) -> None:
    with library.database.write() as connection:
        row = {"source": "fake", "mode": "manual", "status": "running", "config": {}}
        now = library.seams.clock.now()
        connection.execute(ingestion_runs.insert().values(id=uuid4(), started_at=now, **row))
    assert found(library) == []
    assert found(library, is_done=True) == ["1 runs of fake have the status running, but none is"]

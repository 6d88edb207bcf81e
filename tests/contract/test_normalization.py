"""Texts made apart from loading, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text, update
from tests.support.libraries.notes import NoteOffice, ingest, note_library, rows
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.library import Library
from fonds.stores.leases import MAX_ATTEMPTS
from fonds.stores.tables import documents
from fonds.testing import FakeSource


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        yield NoteOffice(server, 4)


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, office: NoteOffice
) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    with note_library(tmp_path, office.server, database=address) as library:
        yield library


QUEUED = FakeSource(queued=True)


def test_document_is_findable_at_once_and_its_words_after_the_queue_is_drained(
    library: Library,
) -> None:
    ingest(library, QUEUED)
    assert library.document("fake:2")["body_text"] is None
    assert [hit.id for hit in library.search('"Note 2"')] == ["fake:2"]
    assert library.search('"text of note 2"') == []
    drained = library.normalize_queued(workers=1)
    assert (drained.done, drained.failed, drained.waiting) == (4, 0, 0)
    assert [hit.id for hit in library.search('"text of note 2"')] == ["fake:2"]
    assert library.document("fake:2")["body_normalizer_version"].startswith("text_v1@")


def test_run_after_draining_changes_nothing(library: Library) -> None:
    ingest(library, QUEUED)
    library.normalize_queued(workers=1)
    before = library.document("fake:2")
    report = ingest(library, QUEUED, recheck=True)
    assert (report.counts.skipped, report.counts.updated) == (4, 0)
    assert library.document("fake:2") == before


def test_changed_bytes_wait_again(library: Library, office: NoteOffice) -> None:
    ingest(library, QUEUED)
    library.normalize_queued(workers=1)
    office.change(2, title="Another", text="Nothing but trout.")
    ingest(library, QUEUED)
    assert library.document("fake:2")["body_text"] is None
    library.normalize_queued(workers=1)
    assert [hit.id for hit in library.search("trout")] == ["fake:2"]


def test_body_that_cannot_be_normalized_is_tried_once_a_drain_and_given_up(
    library: Library,
) -> None:
    ingest(library, QUEUED)
    library.blobs.delete("corpus/fake/notes/2.json")
    for _ in range(MAX_ATTEMPTS):
        assert library.normalize_queued(workers=1).failed == 1
    drained = library.normalize_queued(workers=1)
    assert (drained.failed, drained.given_up) == (0, 1)
    (row,) = rows(library, "SELECT * FROM ingestion_normalization_queue")
    assert "corpus/fake/notes/2.json" in row["last_error"]


def test_stale_texts_are_made_anew_without_asking_the_publisher(
    library: Library, office: NoteOffice
) -> None:
    ingest(library, QUEUED)
    library.normalize_queued(workers=1)
    _age(library)
    with library.database.write() as connection:
        connection.execute(text("DELETE FROM ingestion_embedding_queue"))
    office.server.requests.clear()
    result = library.renormalize(normalizer="text_v1")
    assert (result.checked, result.changed, result.failed) == (4, 0, 0)
    assert office.server.requests == []
    assert "@0.0.1" not in library.document("fake:1")["body_normalizer_version"]
    assert rows(library, "SELECT 1 FROM ingestion_embedding_queue") == []
    assert library.renormalize().checked == 0


def test_only_texts_with_other_words_are_queued_for_vectors(library: Library) -> None:
    ingest(library, QUEUED)
    library.normalize_queued(workers=1)
    _age(library)
    with library.database.write() as connection:
        connection.execute(text("DELETE FROM ingestion_embedding_queue"))
        other = {"body_text": "other words", "body_text_sha256": "0" * 64}
        connection.execute(update(documents).where(documents.c.id == "fake:3").values(other))
    assert library.renormalize().changed == 1
    (row,) = rows(library, "SELECT record_id FROM ingestion_embedding_queue")
    assert row["record_id"] == "fake:3"


def _age(library: Library) -> None:
    with library.database.write() as connection:
        connection.execute(update(documents).values(body_normalizer_version="text_v1@0.0.1"))

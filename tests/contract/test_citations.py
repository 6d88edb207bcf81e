"""Citations between documents, on every database."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, text, update
from tests.support.libraries.notes import NoteOffice, ingest, note_library, rows
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.library import Library
from fonds.model import ParsedRecord
from fonds.runs.citations import Extracted
from fonds.seams import Seams
from fonds.stores.citations import link, resolve
from fonds.stores.leases import LEASE, MAX_ATTEMPTS, claim
from fonds.stores.tables import document_aliases, documents, ingestion_citation_queue
from fonds.testing import FakeSource, ManualClock

CITING = """# Findings

Under 42 U.S.C. 1983(a) and Pub. L. 117-58, and again under 42 USC 1983.

## Remedies

See H.R. 5 and 89 Fed. Reg. 12345.
"""


class NamedNotes(FakeSource):
    """Notes whose title is another name of theirs."""

    def parse(self, raw: Any) -> Iterator[Any]:
        for record in super().parse(raw):
            assert isinstance(record, ParsedRecord)
            assert record.document is not None
            names = (*record.document.aliases, record.document.title)
            yield replace(record, document=replace(record.document, aliases=names))


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        office = NoteOffice(server, 4)
        office.change(1, text=CITING)
        yield office


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, office: NoteOffice, clock: ManualClock
) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    seams = Seams(clock=clock)
    with note_library(tmp_path, office.server, seams=seams, database=address) as library:
        yield library


NAMED = NamedNotes()


def load(library: Library, **request: Any) -> Extracted:
    ingest(library, NAMED, **request)
    return library.extract_citations()


def edges(library: Library) -> list[dict[str, Any]]:
    return rows(library, "SELECT * FROM citation_edges ORDER BY from_document_id, start")


def links(library: Library) -> dict[str, str | None]:
    return {edge["target"]: edge["to_document_id"] for edge in edges(library)}


def waiting(library: Library) -> list[str]:
    found = rows(library, "SELECT record_id FROM ingestion_citation_queue ORDER BY record_id")
    return [row["record_id"] for row in found]


def test_citations_are_stored_with_exact_places_and_the_passage_they_stand_in(
    library: Library,
) -> None:
    result = load(library)
    assert (result.done, result.citations, result.failed, result.waiting) == (4, 5, 0, 0)
    found = edges(library)
    assert [edge["target"] for edge in found] == [
        "42 USC 1983",
        "PL 117-58",
        "42 USC 1983",
        "119 HR 5",
        "89 FR 12345",
    ]
    body = library.document("fake:1")["body_text"]
    assert all(body[edge["start"] : edge["end"]] == edge["raw"] for edge in found)
    assert found[0]["pinpoint"] == "(a)"
    with library.database.read() as connection:
        query = text("SELECT locator FROM citation_edges WHERE target = '119 HR 5'")
        assert "Remedies" in str(connection.scalar(query))


def test_second_drain_changes_nothing(library: Library) -> None:
    load(library)
    before = edges(library)
    again = library.extract_citations()
    assert (again.done, again.linked) == (0, 0)
    load(library, recheck=True)
    assert edges(library) == before


def test_document_that_arrives_later_is_linked_by_its_name(
    library: Library, office: NoteOffice
) -> None:
    load(library)
    assert links(library)["89 FR 12345"] is None
    office.change(3, title="89 Fed. Reg. 12345")
    assert load(library).linked == 1
    assert links(library)["89 FR 12345"] == "fake:3"
    assert library.document("89 FR 12345")["id"] == "fake:3"


def test_document_that_loses_its_name_loses_its_citations(
    library: Library, office: NoteOffice
) -> None:
    office.change(3, title="Public Law 117-58")
    load(library)
    assert links(library)["PL 117-58"] == "fake:3"
    office.change(3, title="Something else")
    load(library)
    assert links(library)["PL 117-58"] is None


def test_name_that_two_documents_share_names_neither(library: Library, office: NoteOffice) -> None:
    office.change(2, title="42 U.S.C. 1983")
    load(library)
    assert links(library)["42 USC 1983"] == "fake:2"
    office.change(3, title="42 U.S.C. § 1983")
    load(library)
    assert links(library)["42 USC 1983"] is None


def test_newest_edition_is_meant_and_a_withdrawn_document_only_if_there_is_no_other(
    library: Library,
) -> None:
    load(library)
    with library.database.write() as connection:
        names: list[dict[str, Any]] = [
            {"alias": "42 USC 1983", "document_id": "fake:2", "edition": "2024"},
            {"alias": "42 USC 1983", "document_id": "fake:3", "edition": "2026"},
            {"alias": "PL 117-58", "document_id": "fake:4", "edition": None},
        ]
        connection.execute(insert(document_aliases), names)
        connection.execute(
            update(documents).where(documents.c.id == "fake:4").values(gone_at=ManualClock().moment)
        )
        assert resolve(connection, {"42 USC 1983", "PL 117-58"}) == {
            "42 USC 1983": "fake:3",
            "PL 117-58": "fake:4",
        }
        assert link(connection, ["fake:3"]) == 2


def test_changed_text_replaces_its_citations(library: Library, office: NoteOffice) -> None:
    load(library)
    office.change(1, text="Only 29 CFR 1910.134 is left.")
    load(library, recheck=True)
    assert list(links(library)) == ["29 CFR 1910.134"]


def test_queued_text_is_read_once_it_is_made(library: Library) -> None:
    source = FakeSource(queued=True)
    ingest(library, source)
    assert library.extract_citations().citations == 0
    library.normalize_queued(workers=1)
    assert waiting(library) == ["fake:1", "fake:2", "fake:3", "fake:4"]
    library.extract_citations()
    # The bytes of a note are its JSON, in which a line break is written as `\n`.
    assert "PL 117-58" in links(library)


def test_only_so_many_documents_are_read_as_asked_for(library: Library) -> None:
    ingest(library, NAMED)
    assert library.extract_citations(limit=3).waiting == 1
    assert library.extract_citations(limit=3).done == 1


def test_document_that_changes_while_it_is_read_waits_anew(
    library: Library, office: NoteOffice, clock: ManualClock
) -> None:
    ingest(library, NAMED)
    with library.database.write() as connection:
        claim(connection, ingestion_citation_queue, "another", clock.now(), 10)
    assert library.extract_citations().done == 0
    clock.move(seconds=1)
    office.change(1, text="42 U.S.C. 1983")
    ingest(library, NAMED, recheck=True)
    assert library.extract_citations().done == 1
    clock.move(seconds=LEASE.total_seconds() + 1)
    assert library.extract_citations().done == 3


def test_text_that_cannot_be_read_is_tried_once_a_drain_and_given_up(
    library: Library, clock: ManualClock
) -> None:
    ingest(library, NAMED)
    with library.database.write() as connection:
        connection.execute(text("UPDATE document_chunk_buffer SET meta = '{}'"))
    for _ in range(MAX_ATTEMPTS):
        clock.move(seconds=timedelta(minutes=1).total_seconds())
        assert library.extract_citations().failed == 4
    result = library.extract_citations()
    assert (result.failed, result.given_up) == (0, 4)
    assert (
        "KeyError"
        in rows(library, "SELECT last_error FROM ingestion_citation_queue")[0]["last_error"]
    )


KILLED = """
import sys
from fonds.library import open_library
from fonds.seams import Seams
from fonds.testing import ManualClock, Saboteur

seams = Seams(clock=ManualClock(), durable=Saboteur(kill_at=int(sys.argv[2])))
with open_library(sys.argv[1], seams=seams) as library:
    library.extract_citations()
"""


@pytest.mark.parametrize("commit", [1, 2])
def test_killed_at_any_commit_the_next_drain_loses_and_doubles_nothing(
    tmp_path: Path, office: NoteOffice, clock: ManualClock, commit: int
) -> None:
    seams = Seams(clock=clock)
    with note_library(tmp_path / "calm", office.server, seams=seams) as library:
        load(library)
        expected = edges(library)
    home = tmp_path / "killed"
    with note_library(home, office.server, seams=seams) as library:
        ingest(library, NAMED)
    child = subprocess.run([sys.executable, "-c", KILLED, home, str(commit)], check=False)
    assert child.returncode == -signal.SIGKILL
    clock.move(seconds=LEASE.total_seconds() + 1)
    with note_library(home, office.server, seams=seams) as library:
        library.extract_citations()
        assert edges(library) == expected
        assert waiting(library) == []

"""Texts and passages proven from the archived bytes, on every database; each link tampered with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import delete, select, update
from tests.support.libraries.documents import hold
from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.upstreams.misbehaving import MisbehavingServer
from tests.unit.codes.trees import SHAPES, flat, pages_of, publish
from tests.unit.codes.trees import ingest as ingest_code

from fonds import ids
from fonds.errors import UnknownDocumentError, UnknownSourceError
from fonds.library import Library
from fonds.model import ParsedRecord, Raw
from fonds.results import Verification
from fonds.runs.verify import sample, verify
from fonds.sources.base import Source
from fonds.stores.tables import document_chunk_buffer, documents
from fonds.testing import FakeSource

NOTE = "corpus/fake/notes/2.json"
LONG = "\n\n".join(f"Paragraph {number} speaks of harbours. " * 12 for number in range(30))
QUEUED = FakeSource(queued=True)


class Untitled(FakeSource):
    """Notes that say nothing but their title."""

    def parse(self, raw: Raw) -> Iterator[Any]:
        for record in super().parse(raw):
            assert isinstance(record, ParsedRecord)
            assert record.document is not None
            yield replace(record, document=replace(record.document, body=None, summary="In short."))


class Joined(Untitled):
    """A source that now reads something else from its file."""

    def parse(self, raw: Raw) -> Iterator[Any]:
        for record in super().parse(raw):
            yield replace(record, document=replace(record.document, summary="Joined."))


class Empty(Untitled):
    """A source that needs another file."""

    def parse(self, raw: Raw) -> Iterator[Any]:
        del raw
        return iter(())


@pytest.fixture
def office() -> Iterator[NoteOffice]:
    with MisbehavingServer() as server:
        yield NoteOffice(server, 3)


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, office: NoteOffice
) -> Iterator[Library]:
    address = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    with note_library(tmp_path, office.server, database=address) as library:
        yield library


def prove(library: Library, name: str, source: Source | None = None) -> Verification:
    return verify(library.context, name, find_source=lambda _name: source or FakeSource())


def outcomes(checked: Verification) -> dict[str, str]:
    return {step.name: step.outcome for step in checked.steps}


def set_document(library: Library, document_id: str, **values: Any) -> None:
    table = documents
    with library.database.write() as connection:
        connection.execute(update(table).where(table.c.id == document_id).values(values))


def set_passage(library: Library, document_id: str, ordinal: int, **values: Any) -> None:
    table = document_chunk_buffer
    with library.database.write() as connection:
        uid = connection.scalar(select(documents.c.uid).where(documents.c.id == document_id))
        chosen = (table.c.document_id == uid) & (table.c.chunk_ord == ordinal)
        connection.execute(update(table).where(chosen).values(values))


def passages(library: Library, document_id: str) -> list[Any]:
    table = document_chunk_buffer
    with library.database.read() as connection:
        uid = connection.scalar(select(documents.c.uid).where(documents.c.id == document_id))
        query = select(table).where(table.c.document_id == uid).order_by(table.c.chunk_ord)
        return list(connection.execute(query))


# What matches -----------------------------------------------------------------------------


def test_untouched_document_and_each_passage_of_it_match(
    library: Library, office: NoteOffice
) -> None:
    office.change(2, text=LONG)
    ingest(library, QUEUED)
    library.normalize_queued(workers=1)
    whole = prove(library, "fake:2")
    assert (whole.verdict, whole.reason, whole.passage) == ("match", None, None)
    assert outcomes(whole) == {"raw": "match", "text": "match", "passages": "match"}
    assert whole.fetched_from == "https://notes.example/notes/2.json"
    assert (whole.raw_path, len(whole.raw_sha256)) == (NOTE, 64)
    assert whole.normalizer is not None
    assert whole.normalizer.startswith("text_v1@")
    assert whole.chunker == "headings@1.1.0:512/64"
    held = passages(library, "fake:2")
    assert len(held) > 2
    for row in held:
        for name in (f"fake:2#{row.chunk_ord}", f"Note 2#{row.chunk_ord}", str(row.chunk_id)):
            one = prove(library, name)
            assert (one.verdict, one.id, one.passage) == ("match", "fake:2", row.chunk_ord)
            assert one.chunk_id == row.chunk_id
    assert prove(library, "Note 2").id == "fake:2"


def test_text_that_only_its_source_makes_is_read_again_by_it(library: Library) -> None:
    ingest(library)
    checked = prove(library, "fake:2")
    assert checked.normalizer == "fake_v1@1.0.0"
    assert outcomes(checked) == {"raw": "match", "record": "match", "passages": "match"}
    assert checked.verdict == "match"


def test_document_without_a_text_is_read_again_by_its_source(library: Library) -> None:
    ingest(library, Untitled())
    checked = prove(library, "fake:2#0", Untitled())
    assert outcomes(checked) == {"raw": "match", "record": "match", "passages": "match"}


def test_section_in_a_pack_is_proven_by_its_own_bytes(library: Library, tmp_path: Path) -> None:
    site = publish(tmp_path / "site", pages_of([flat(3)], SHAPES[0]))
    ingest_code(library, site)
    with library.database.read() as connection:
        query = select(documents.c.id, documents.c.body_raw_path)
        rows = connection.execute(query.where(documents.c.source == "fakecode")).all()
    assert len(rows) == 3
    for row in rows:
        assert prove(library, row.id).verdict == "match"
    pack, _, place = rows[1].body_raw_path.partition("#")
    data = bytearray(library.blobs.get(pack))
    data[int(place.partition("+")[0])] ^= 1
    library.blobs.put(pack, bytes(data))
    broken = prove(library, rows[1].id)
    assert (broken.verdict, outcomes(broken)["body"]) == ("differs", "differs")
    assert broken.reason is not None
    assert rows[1].body_raw_path in broken.reason
    assert [prove(library, row.id).verdict for row in rows] == ["match", "differs", "match"]


def test_passages_are_cut_as_they_were_whatever_the_settings_are_now(library: Library) -> None:
    hold(library, "held:1", LONG)
    context = library.context
    other = replace(context, settings=replace(context.settings, chunk_tokens=64, chunk_overlap=0))
    assert verify(other, "held:1").verdict == "match"


# Every link -------------------------------------------------------------------------------

Tamper = Callable[[Library, str], None]


def flip_a_byte(library: Library, document_id: str) -> None:
    key = f"corpus/held/{document_id}"
    data = bytearray(library.blobs.get(key))
    data[40] ^= 1
    library.blobs.put(key, bytes(data))


def lose_the_file(library: Library, document_id: str) -> None:
    library.blobs.delete(f"corpus/held/{document_id}")


def edit_the_text(library: Library, document_id: str) -> None:
    text = library.document(document_id)["body_text"]
    edited = text.replace("Paragraph 7", "Paragraph 8", 1)
    set_document(library, document_id, body_text=edited)


def edit_text_and_hash(library: Library, document_id: str) -> None:
    edit_the_text(library, document_id)
    text = library.document(document_id)["body_text"]
    set_document(library, document_id, body_text_sha256=ids.text_sha256(text))


def edit_the_hash(library: Library, document_id: str) -> None:
    set_document(library, document_id, body_text_sha256="0" * 64)


def age_text_and_normalizer(library: Library, document_id: str) -> None:
    edit_text_and_hash(library, document_id)
    set_document(library, document_id, body_normalizer_version="text_v1@0.0.1")


def edit_a_passage(library: Library, document_id: str) -> None:
    held = passages(library, document_id)[1]
    set_passage(library, document_id, 1, text=held.text.replace("harbours", "harbors", 1))


def edit_the_hash_of_a_passage(library: Library, document_id: str) -> None:
    set_passage(library, document_id, 1, chunk_sha="0" * 64)


def move_a_passage(library: Library, document_id: str) -> None:
    meta = passages(library, document_id)[1].meta
    set_passage(library, document_id, 1, meta={**meta, "start": meta["start"] + 1})


def misplace_a_passage(library: Library, document_id: str) -> None:
    meta = passages(library, document_id)[1].meta
    elsewhere = {**meta, "locator": {"heading_path": ["Elsewhere"]}}
    set_passage(library, document_id, 1, meta=elsewhere)


def lose_the_last_passage(library: Library, document_id: str) -> None:
    last = passages(library, document_id)[-1]
    table = document_chunk_buffer
    with library.database.write() as connection:
        connection.execute(delete(table).where(table.c.id == last.id))


TAMPERINGS: dict[Tamper, tuple[str, str]] = {
    flip_a_byte: ("raw", "has the sha256"),
    lose_the_file: ("raw", "cannot be read"),
    edit_the_text: ("text", "was changed after it was derived: at character"),
    edit_text_and_hash: ("text", "at character"),
    edit_the_hash: ("text", "the hash that is recorded is not the text's"),
    age_text_and_normalizer: ("text", "`fonds renormalize` updates it: at character"),
    edit_a_passage: ("passages", "passage 1 has other words: at character"),
    edit_the_hash_of_a_passage: ("passages", "passage 1 is recorded with a hash"),
    move_a_passage: ("passages", "passage 1 is recorded with the start"),
    misplace_a_passage: ("passages", "passage 1 is recorded with the locator"),
    lose_the_last_passage: ("passages", "passages are stored, and the text gives"),
}


def test_link_that_was_tampered_with_is_named(library: Library) -> None:
    for tamper, (step, says) in TAMPERINGS.items():
        document_id = f"held:{tamper.__name__}"
        hold(library, document_id, LONG)
        assert prove(library, document_id).verdict == "match"
        tamper(library, document_id)
        checked = prove(library, document_id)
        assert checked.verdict == "differs"
        assert checked.reason is not None
        assert checked.reason.startswith(f"{step}: ")
        assert says in checked.reason


def test_what_differs_is_shown_with_its_words(library: Library) -> None:
    hold(library, "held:1", LONG)
    edit_the_text(library, "held:1")
    reason = prove(library, "held:1").reason
    assert reason is not None
    assert "stored “8 speaks of harbours." in reason
    assert "derived “7 speaks of harbours." in reason


def test_passage_beside_the_one_that_was_edited_still_matches(library: Library) -> None:
    hold(library, "held:1", LONG)
    edit_a_passage(library, "held:1")
    assert prove(library, "held:1#1").verdict == "differs"
    assert prove(library, "held:1#0").verdict == "match"


def test_same_text_by_another_version_of_the_normalizer_matches(library: Library) -> None:
    hold(library, "held:1", LONG)
    set_document(library, "held:1", body_normalizer_version="text_v1@0.0.1")
    same = prove(library, "held:1")
    assert same.verdict == "match"
    assert "gives the same text as text_v1@0.0.1 did" in same.steps[1].says


def test_record_that_was_edited_differs(library: Library) -> None:
    ingest(library, Untitled())
    set_document(library, "fake:2", summary="At length.")
    checked = prove(library, "fake:2", Untitled())
    assert checked.verdict == "differs"
    assert checked.reason is not None
    assert checked.reason.startswith("record: the stored record was changed: another summary")


# What cannot be proven --------------------------------------------------------------------


def test_record_that_the_file_alone_does_not_give_is_unproven(library: Library) -> None:
    ingest(library, Untitled())

    for source, says in ((Joined(), "joined from several"), (Empty(), "alone does not describe")):
        checked = prove(library, "fake:2", source)
        assert checked.verdict == "unproven"
        assert says in str(checked.reason)


def test_source_that_is_not_registered_leaves_its_records_unproven(library: Library) -> None:
    ingest(library, Untitled())

    def unknown(name: str) -> Source:
        raise UnknownSourceError(f"there is no source {name}")

    checked = verify(library.context, "fake:2", find_source=unknown)
    assert (checked.verdict, outcomes(checked)) == (
        "unproven",
        {"raw": "match", "record": "unproven"},
    )


def test_text_that_waits_to_be_made_is_unproven(library: Library) -> None:
    ingest(library, QUEUED)
    checked = prove(library, "fake:2")
    assert checked.verdict == "unproven"
    assert "fonds normalize --drain" in str(checked.reason)


def test_what_is_not_held_cannot_be_proven(library: Library) -> None:
    ingest(library)
    owned = ids.upload_id(uuid4())
    hold(library, owned, "Words.", owner=uuid4())
    for name in ("fake:99", "fake:2#99", "", "#1", str(uuid4()), "\0", owned, f"{owned}#0"):
        with pytest.raises(UnknownDocumentError):
            prove(library, name)


def test_sample_is_of_the_source_and_of_the_size_asked_for(library: Library) -> None:
    ingest(library)
    hold(library, "held:1", "Words.")
    context = library.context
    assert len(set(sample(context, "fake", 2))) == 2
    assert sorted(sample(context, "fake", 20)) == ["fake:1", "fake:2", "fake:3"]
    assert sample(context, "held", 20) == ["held:1"]
    assert sample(context, "nobody", 20) == []

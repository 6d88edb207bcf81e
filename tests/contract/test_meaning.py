"""What search by meaning promises, on every database; the model is the deterministic one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import update
from tests.support import servers
from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.errors import ModelMissingError
from fonds.library import Library
from fonds.search.retrieve import Mode
from fonds.stores import fulltext
from fonds.stores.tables import documents, embedding_generations
from fonds.testing import note

KINDS = ("trout", "herring", "eel", "pike", "carp")
NOTES = {
    number: note(number, f"# Matter {number}\n\nThe {kind} of river {number} swims upstream.")
    for number, kind in enumerate(KINDS * 20, start=1)
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Library]:
    home: Path = tmp_path_factory.mktemp("library")
    with ExitStack() as stack:
        address = ""
        if request.param == "postgres":
            server = request.getfixturevalue("postgres_url")
            address = stack.enter_context(servers.postgres_database(server))
        office = NoteOffice(stack.enter_context(MisbehavingServer()), 0)
        office.notes |= NOTES
        office.publish()
        opened = stack.enter_context(
            note_library(home, office.server, database=address, embedder="hashing")
        )
        ingest(opened)
        report = opened.embed()
        assert (report.failed, report.waiting, report.embedded) == (0, 0, len(NOTES))
        with opened.database.write() as connection:
            owned = update(documents).where(documents.c.id == "fake:1").values(owner=uuid4())
            connection.execute(owned)
        yield opened


def found(library: Library, query: str, **options: object) -> list[str]:
    return [hit.id for hit in library.search(query, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["semantic", "hybrid", None])
def test_passage_nearest_in_meaning_comes_first(library: Library, mode: Mode | None) -> None:
    assert found(library, "The pike of river 4 swims upstream.", mode=mode)[0] == "fake:4"


def test_meaning_finds_what_no_word_leads_to(library: Library) -> None:
    # The deterministic model sees equal words alone, so that any question is near to something.
    assert found(library, "xyzzy", mode="lexical") == []
    assert len(found(library, "xyzzy", mode="semantic", limit=5)) == 5


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_filters_come_before_what_is_cut(library: Library, mode: Mode) -> None:
    """The one document that passes is found, however far it is from the question."""
    question = "The trout of river 6 swims upstream."
    assert found(library, question, mode=mode, under="fake:95", limit=1) == ["fake:95"]
    assert found(library, f"{question} -trout -herring -eel -pike", mode=mode, limit=100) == [
        f"fake:{number}" for number in _order(library, question, mode)
    ]


def _order(library: Library, question: str, mode: Mode) -> list[int]:
    every = found(library, question, mode=mode, limit=1000)
    numbers = [int(name.removeprefix("fake:")) for name in every]
    return [number for number in numbers if number % len(KINDS) == 0]


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_upload_of_somebody_is_found_by_no_meaning(library: Library, mode: Mode) -> None:
    assert "fake:1" not in found(library, "The trout of river 1", mode=mode, limit=100)


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_phrase_must_stand_there_whatever_is_near(library: Library, mode: Mode) -> None:
    assert found(library, '"river 44"', mode=mode) == ["fake:44"]


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_pages_follow_each_other(library: Library, mode: Mode) -> None:
    whole = found(library, "trout swims", mode=mode, limit=30)
    pages = [
        found(library, "trout swims", mode=mode, limit=7, offset=offset)
        for offset in range(0, 28, 7)
    ]
    assert [hit for page in pages for hit in page] == whole[:28]


def test_every_document_is_reached_by_turning_pages(library: Library) -> None:
    everything = {f"fake:{number}" for number in NOTES} - {"fake:1"}
    assert set(found(library, "swims", mode="hybrid", limit=1000)) == everything
    assert set(found(library, "swims", mode="semantic", limit=1000)) == everything


@pytest.mark.parametrize("query", ["", "  ", "💰", "\0", "\ud800", "x" * 100_000, '"" OR 1=1'])
def test_hostile_questions_have_an_answer(library: Library, query: str) -> None:
    assert isinstance(library.search(query), list)


def test_frequent_words_are_counted_about(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fulltext, "COUNTED", 10)
    with library.database.read() as connection:
        found = library.database.fulltext.frequencies(connection, ["swims", "44", "xyzzy"])
    assert found["swims"] == pytest.approx(len(NOTES), rel=0.3)
    assert (found["44"], found["xyzzy"]) == (1, 0)


def test_model_that_is_gone_leaves_words_and_is_named_when_insisted_on(library: Library) -> None:
    table = embedding_generations
    with library.database.write() as connection:
        connection.execute(update(table).values(embedder="onnx:/nowhere"))
    try:
        assert found(library, "river 4 pike")[0] == "fake:4"
        with pytest.raises(ModelMissingError, match="/nowhere"):
            library.search("pike", mode="hybrid")
    finally:
        with library.database.write() as connection:
            connection.execute(update(table).values(embedder="hashing"))

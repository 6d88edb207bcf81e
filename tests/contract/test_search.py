"""What search promises, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import update
from tests.support import servers
from tests.support.libraries.notes import NoteOffice, ingest, note_library
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.errors import UnknownDocumentError, UsageError
from fonds.library import Library
from fonds.results import RetrievalResult
from fonds.search.filters import Filters
from fonds.search.retrieve import Mode
from fonds.stores.tables import documents
from fonds.testing import note

OWNER = uuid4()
LONG = "\n\n".join(f"## Part {part}\n\nThe lamprey returns in part {part}." for part in range(1, 9))
NOTES = {
    1: note(1, "# Matter\n\nThe regulation of trout fisheries.", published="2026-01-05"),
    2: note(2, "# Matter\n\nTrout are regulated in the river.", published="2026-02-05"),
    3: note(3, "# Matter\n\nFisheries of herring, not of other fish.", title="Herring rules"),
    4: note(4, "# 報告\n\n令和6年の政治資金収支報告書を公表します。", title="収支報告書"),
    5: note(5, f"# Eels\n\n{LONG}", title="Lampreys and eels"),
    6: note(6, "# Matter\n\nA sturgeon that was withdrawn."),
    7: note(7, "# Matter\n\nA sturgeon that belongs to somebody."),
    8: note(8, "# Matter\n\nOnly one passage speaks of a lamprey.", title="Other fish"),
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
        opened = stack.enter_context(note_library(home, office.server, database=address))
        ingest(opened)
        office.withdraw(6)
        ingest(opened)
        with opened.database.write() as connection:
            owned = update(documents).where(documents.c.id == "fake:7").values(owner=OWNER)
            connection.execute(owned)
        yield opened


def found(library: Library, query: str, **filters: object) -> list[str]:
    return [hit.id for hit in library.search(query, **filters)]  # type: ignore[arg-type]


def test_result_carries_passage_citation_and_place(library: Library) -> None:
    (hit,) = library.search("herring")
    assert isinstance(hit, RetrievalResult)
    assert "herring" in hit.snippet
    assert hit.citation.title == "Herring rules"
    assert hit.citation.organization == "The Note Office"
    assert hit.citation.url == "https://notes.example/3"
    assert hit.citation.published_at == date(2026, 3, 4)
    assert hit.citation.citation_string == "Note No. 3 (2026)."
    assert hit.citation.locator is not None
    assert hit.citation.locator.heading_path == ["Matter"]


def test_words_are_found_in_any_inflection(library: Library) -> None:
    assert set(found(library, "regulations")) == {"fake:1", "fake:2"}
    assert set(found(library, "fishery")) == {"fake:1", "fake:3"}


def test_case_does_not_matter(library: Library) -> None:
    assert found(library, "HERRING") == found(library, "herring") == ["fake:3"]


def test_any_word_is_enough_and_more_words_rank_higher(library: Library) -> None:
    ids = found(library, "herring fisheries sturgeon")
    assert ids[0] == "fake:3"
    assert set(ids) == {"fake:1", "fake:3"}


def test_phrase_is_found_in_its_order_only(library: Library) -> None:
    assert found(library, '"trout fisheries"') == ["fake:1"]
    assert found(library, '"fisheries trout"') == []


def test_japanese_is_found_by_any_of_its_pairs(library: Library) -> None:
    assert found(library, "政治資金") == ["fake:4"]
    assert found(library, "政治資金収支報告書") == ["fake:4"]
    assert found(library, "資金政治") == []


def test_title_weighs_more_than_text(library: Library) -> None:
    assert found(library, "lampreys") == ["fake:5", "fake:8"]


def test_document_with_many_passages_is_one_result(library: Library) -> None:
    assert found(library, "lamprey returns").count("fake:5") == 1


def test_limit_counts_documents(library: Library) -> None:
    assert len(library.search("trout")) == 2
    assert len(library.search("trout", limit=1)) == 1


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_limit_out_of_reason_is_refused(library: Library, limit: int) -> None:
    with pytest.raises(UsageError, match="between 1 and 1000"):
        library.search("trout", limit=limit)


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({"since": "2026-02-05"}, ["fake:2"]),
        ({"until": "2026-02-04"}, ["fake:1"]),
        ({"since": "2026-01-05", "until": "2026-01-05"}, ["fake:1"]),
        ({"since": "2026-02-06", "until": "2026-03-01"}, []),
        ({"since": "2026-03-01", "until": "2026-01-01"}, []),
        ({"until": "9999-12-31"}, ["fake:1", "fake:2"]),
        ({"since": "0001-01-01"}, ["fake:1", "fake:2"]),
        ({"sources": ["fake"]}, ["fake:1", "fake:2"]),
        ({"sources": ["federal_register"]}, []),
        ({"sources": ["federal_register", "fake"]}, ["fake:1", "fake:2"]),
    ],
)
def test_filters_narrow_by_source_and_by_day(
    library: Library, filters: dict[str, object], ids: list[str]
) -> None:
    assert sorted(found(library, "trout", **filters)) == ids


def test_withdrawn_document_is_shown_only_when_asked_for(library: Library) -> None:
    assert found(library, "sturgeon withdrawn") == []
    hits = library.look("sturgeon", Filters(include_withdrawn=True)).results
    assert [hit.id for hit in hits] == ["fake:6"]


def test_upload_is_seen_by_its_owner_and_by_nobody_else(library: Library) -> None:
    assert found(library, "sturgeon somebody") == []
    with pytest.raises(UnknownDocumentError):
        library.document("fake:7")
    with pytest.raises(UnknownDocumentError):
        library.document("Note 7")
    mine = library.look("sturgeon", Filters(owner=OWNER)).results
    assert [hit.id for hit in mine] == ["fake:7"]
    assert library.look("sturgeon", Filters(owner=uuid4())).results == []


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "?!…",
        '"',
        '""',
        '"""',
        "\0",
        "💰",
        "_",
        "*",
        "()",
        "'",
        "%",
        "\\",
        "--",
        "\ud800",
    ],
)
def test_query_without_a_word_finds_nothing(library: Library, query: str) -> None:
    assert library.search(query) == []


@pytest.mark.parametrize(
    "query",
    [
        "trout AND OR NOT NEAR( *",
        'trout "unclosed',
        "trout\0",
        "^trout",
        "trout*",
        "trout -",
        "trout source: kind:",
        "trout; DROP TABLE documents; --",
        "' OR 1=1 trout",
        "trout & | ! <-> :* ()",
        "trout \\ % _ ? :name $1 {}",
        "trout \ud800",
        "trout 💰",
        "trout " + "word " * 10_000,
        "trout " + "x" * 100_000,
        "trout " + "政治" * 20_000,
        'trout "' + "word " * 10_000 + '"',
        "trout http://example.gov/a?b=c a.b@example.gov 1.2.3 -5e10 /etc/passwd",
        "trout &amp; <b>tag</b> ]]>",
    ],
)
def test_syntax_and_noise_beside_a_word_do_no_harm(library: Library, query: str) -> None:
    assert set(found(library, query)) >= {"fake:1", "fake:2"}


@pytest.mark.parametrize("query", ["the of and", "NOT", "AND OR", '"the of"', "x" * 5000, "a"])
def test_words_that_say_nothing_give_an_answer_of_some_kind(library: Library, query: str) -> None:
    assert all(isinstance(hit, RetrievalResult) for hit in library.search(query))


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("trout -fisheries", ["fake:2"]),
        ('trout -"the river"', ["fake:1"]),
        ('"trout fisheries" river', ["fake:1"]),
        ('trout "fisheries"', ["fake:1", "fake:3"]),
        ("trout kind:note", ["fake:1", "fake:2"]),
        ("trout kind:NOTE source:fake", ["fake:1", "fake:2"]),
        ("trout kind:rule", []),
        ("trout source:nowhere", []),
        ('trout org:"note office"', ["fake:1", "fake:2"]),
        ("trout org:treasury", []),
        ("trout since:2026-02-01", ["fake:2"]),
        ("trout until:2026-01-31", ["fake:1"]),
        ("title:herring", ["fake:3"]),
        ("fish title:other", ["fake:8"]),
        ("trout title:%", []),
        ("trout under:fake:1", ["fake:1"]),
        ("trout under:fake", []),
    ],
)
def test_phrases_exclusions_and_fields_narrow_what_is_found(
    library: Library, query: str, ids: list[str]
) -> None:
    assert sorted(found(library, query)) == ids


def test_options_narrow_as_fields_do(library: Library) -> None:
    assert found(library, "trout", kinds=["rule"]) == []
    assert found(library, "trout", organizations=["NOTE"]) == found(library, "trout")
    assert found(library, "trout", under="fake:2") == ["fake:2"]


def test_only_exclusions_are_refused_with_what_to_do(library: Library) -> None:
    with pytest.raises(UsageError, match="only excludes words"):
        library.search("-trout")


def test_day_that_is_none_is_refused(library: Library) -> None:
    with pytest.raises(UsageError, match="since: takes a day such as 2026-01-31"):
        library.search("trout since:yesterday")


def test_pages_follow_each_other_whatever_their_size(library: Library) -> None:
    question = "fish trout herring lamprey river eel"
    whole = found(library, question, limit=100)
    assert len(whole) > 3
    for size in (1, 2, 3):
        pages = [
            found(library, question, limit=size, offset=offset)
            for offset in range(0, len(whole) + size, size)
        ]
        assert [hit for page in pages for hit in page] == whole
        assert pages[-1] == []


def test_pages_beyond_what_is_ranked_are_refused(library: Library) -> None:
    with pytest.raises(UsageError, match="only the first 1000 results"):
        library.search("trout", limit=10, offset=991)


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_mode_that_needs_vectors_says_how_to_make_them(library: Library, mode: Mode) -> None:
    with pytest.raises(UsageError, match="fonds embed"):
        library.search("trout", mode=mode)


def test_place_of_a_result_names_its_passage(library: Library) -> None:
    (hit,) = library.search('"returns in part 8"')
    assert hit.citation.locator is not None
    assert hit.citation.locator.passage is not None
    assert hit.citation.locator.heading_path[-1] == "Part 8"


def test_same_question_has_the_same_answer(library: Library) -> None:
    question = "fish trout herring lamprey river"
    assert library.search(question) == library.search(question)


def test_document_shows_its_best_passages_and_counts_the_others(library: Library) -> None:
    (hit,) = library.search("lamprey eels returns", limit=1)
    assert hit.id == "fake:5"
    assert len(hit.passages) == 3
    assert hit.more_passages == 5
    assert hit.passages[0].snippet == hit.snippet
    assert len({passage.passage for passage in hit.passages}) == 3
    (four,) = library.search("lamprey eels returns", limit=1, per_document=4)
    assert len(four.passages) == 4
    assert four.passages[:3] == hit.passages
    (one,) = library.search("lamprey eels returns", limit=1, per_document=1)
    assert (one.passages, one.more_passages) == ([], 7)


def test_document_with_one_passage_has_no_others(library: Library) -> None:
    (hit,) = library.search("herring")
    assert (hit.passages, hit.more_passages) == ([], 0)
    assert hit.model_dump().keys() == {"id", "snippet", "citation"}


@pytest.mark.parametrize("per_document", [0, 51])
def test_number_of_passages_out_of_range_is_refused(library: Library, per_document: int) -> None:
    with pytest.raises(UsageError, match="per_document must be between 1 and 50"):
        library.search("lamprey", per_document=per_document)


def test_inside_a_document_each_result_is_a_passage(library: Library) -> None:
    hits = library.search("lamprey in part 7", document="fake:5", limit=4)
    assert [hit.id for hit in hits] == ["fake:5"] * 4
    places = [hit.citation.locator.passage for hit in hits if hit.citation.locator]
    assert len(set(places)) == 4
    assert "part 7" in hits[0].snippet
    following = library.search("lamprey in part 7", document="fake:5", limit=4, offset=4)
    assert not set(places) & {
        hit.citation.locator.passage for hit in following if hit.citation.locator
    }


def test_words_that_all_passages_of_a_document_share_tell_none_apart(library: Library) -> None:
    rare_in_library = library.search("lamprey returns 3", document="fake:5", limit=1)
    assert "part 3" in rare_in_library[0].snippet


def test_withdrawn_document_can_be_searched_inside(library: Library) -> None:
    assert found(library, "sturgeon", document="fake:6") == ["fake:6"]


def test_upload_of_somebody_else_is_not_found(library: Library) -> None:
    assert found(library, "sturgeon", document="fake:7", owner=OWNER) == ["fake:7"]
    for owner in (None, uuid4()):
        with pytest.raises(UnknownDocumentError):
            library.search("sturgeon", document="fake:7", owner=owner)
    with pytest.raises(UnknownDocumentError):
        library.search("sturgeon", document="fake:99")

"""Documents, passages, codes and coverage, as an agent is told of them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.unit.mcp.conftest import Ask, Refuse, call, text_of
from tests.unit.mcp.small import LONG, OLD_SECTION, OWNED, SECTION, SHARED_NAME, WITHDRAWN

from fonds.library import Library

TITLE = "usc/119-36/root/title-53"


def test_document_comes_with_its_citation_and_where_its_bytes_are_from(
    ask: Ask, library: Library
) -> None:
    row = library.document(LONG)
    answer = ask("get_document", document=LONG)
    head = answer["document"]
    assert (head["id"], head["source"], head["kind"]) == (LONG, "federal_register", "rule")
    assert head["citation"]["citation_string"] == row["citation_string"]
    assert head["citation"]["url"] == row["source_url"]
    assert head["raw_sha256"] == row["raw_sha256"]
    assert head["retrieved_at"].startswith(row["retrieved_at"].date().isoformat())
    assert (head["edition"], head["is_newest_edition"]) == (None, None)
    assert answer["text"] == row["body_text"]


def test_document_is_found_by_another_name(ask: Ask) -> None:
    assert ask("get_document", document="53 USC 103")["document"]["id"] == SECTION


def test_slices_put_together_are_the_whole_text(ask: Ask, library: Library) -> None:
    pieces: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = ask("get_document", document=LONG, offset=offset, length=3000)
        pieces.append(answer["text"])
        offset = answer["next_offset"]
    assert "".join(pieces) == library.document(LONG)["body_text"]
    assert max(map(len, pieces)) == 3000
    assert len(pieces) == 3


def test_slice_beyond_the_end_is_refused_with_the_length(refuse: Refuse, library: Library) -> None:
    error = refuse("get_document", document=LONG, offset=1_000_000)
    assert error["code"] == "bad_request"
    assert str(len(library.document(LONG)["body_text"])) in error["message"]


def test_section_says_which_edition_it_is_of(ask: Ask) -> None:
    newest = ask("get_document", document=SECTION)["document"]
    older = ask("get_document", document=OLD_SECTION)["document"]
    assert (newest["edition"], newest["is_newest_edition"]) == ("119-36", True)
    assert (older["edition"], older["is_newest_edition"]) == ("119-4", False)


def test_withdrawn_document_says_so(ask: Ask, library: Library) -> None:
    assert ask("get_document", document=WITHDRAWN)["document"]["withdrawn_at"]
    assert "Withdrawn" in text_of(call(library, "get_document", {"document": WITHDRAWN}))


def test_name_of_two_documents_is_ambiguous_and_names_both(refuse: Refuse) -> None:
    error = refuse("get_document", document=SHARED_NAME)
    assert error["code"] == "ambiguous"
    assert error["message"].count("sap:2026-01-05/") == 2


def test_passage_is_the_piece_of_the_text_that_it_says(ask: Ask, library: Library) -> None:
    answer = ask("get_passage", passage=f"{LONG}#1")
    (passage,) = answer["passages"]
    body = library.document(LONG)["body_text"]
    assert passage["id"] == answer["asked"] == f"{LONG}#1"
    assert passage["text"] == body[passage["start"] : passage["end"]]
    assert not passage["is_cut"]
    assert passage["citation"]["locator"]["heading_path"]
    assert answer["document"]["raw_sha256"] == library.document(LONG)["raw_sha256"]


def test_passage_is_found_by_its_uuid_too(ask: Ask) -> None:
    (named,) = ask("get_passage", passage=f"{LONG}#1")["passages"]
    (found,) = ask("get_passage", passage=named["chunk_id"])["passages"]
    assert found == named


def test_neighbours_stand_in_order_and_end_with_the_document(ask: Ask) -> None:
    answer = ask("get_passage", passage=f"{LONG}#1", around=1)
    assert [one["id"] for one in answer["passages"]] == [f"{LONG}#{n}" for n in range(3)]
    last = answer["total_passages"] - 1
    answer = ask("get_passage", passage=f"{LONG}#{last}", around=2)
    assert [one["id"] for one in answer["passages"]][-1] == f"{LONG}#{last}"
    assert len(answer["passages"]) == 3


@pytest.mark.parametrize(
    ("passage", "code"),
    [
        (f"{LONG}#9999", "not_found"),
        (f"{LONG}#99999999999999999999", "not_found"),
        ("fr:1900-1#0", "not_found"),
        (str(UUID(int=5)), "not_found"),
        (LONG, "bad_request"),
        (f"{LONG}#-1", "bad_request"),
        (f"{LONG}#١", "bad_request"),
        ("#", "bad_request"),
    ],
)
def test_passage_that_is_not_there_is_refused(passage: str, code: str, refuse: Refuse) -> None:
    assert refuse("get_passage", passage=passage)["code"] == code


def test_upload_is_shown_by_no_tool(ask: Ask, refuse: Refuse, library: Library) -> None:
    assert refuse("get_document", document=OWNED)["code"] == "not_found"
    assert refuse("get_passage", passage=f"{OWNED}#0")["code"] == "not_found"
    with library.database.read() as connection:
        uid, chunk = connection.exec_driver_sql(
            "SELECT d.uid, c.chunk_id FROM documents d JOIN document_chunk_buffer c "
            f"ON c.document_id = d.uid WHERE d.id = '{OWNED}'"
        ).first() or pytest.fail("the upload has no passage")
    assert uid != chunk
    assert refuse("get_passage", passage=str(UUID(str(chunk))))["code"] == "not_found"
    coverage = ask("list_sources")
    (register,) = [one for one in coverage["sources"] if one["source"] == "federal_register"]
    assert register["documents"] == 8


def test_codes_are_walked_from_the_top_to_a_text(ask: Ask) -> None:
    codes = ask("browse_code")
    assert codes["node"] is None
    assert [one["id"] for one in codes["children"]] == ["usc"]
    editions = ask("browse_code", path="usc")
    assert {(one["id"], one["status"]) for one in editions["children"]} == {
        ("usc/119-36", "newest"),
        ("usc/119-4", None),
    }
    titles = ask("browse_code", path="usc/119-36")
    assert [(one["id"], one["kind"]) for one in titles["children"]] == [(TITLE, "title")]
    assert ask("browse_code", path="usc/119-36/root") == titles
    chapters = ask("browse_code", path=TITLE)
    assert [one["is_leaf"] for one in chapters["children"]] == [True, False, False]
    assert chapters["above"] == ["usc", "usc/119-36"]
    leaf = ask("browse_code", path=SECTION)
    assert leaf["node"]["is_leaf"]
    assert leaf["children"] == []
    assert leaf["above"] == ["usc", "usc/119-36", TITLE, f"{TITLE}/chapter-1"]
    assert ask("get_document", document=leaf["node"]["id"])["document"]["id"] == SECTION


def test_sections_say_whether_they_are_in_force(ask: Ask) -> None:
    sections = ask("browse_code", path=f"{TITLE}/chapter-1")["children"]
    statuses = {one["id"].rpartition("/")[2]: one["status"] for one in sections}
    assert statuses["section-104-to-106"] == "repealed"
    assert statuses["section-103"] is None


def test_pages_of_a_chapter_are_the_whole_chapter(ask: Ask) -> None:
    whole = ask("browse_code", path=f"{TITLE}/chapter-2")
    shown: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None:
        page = ask("browse_code", path=f"{TITLE}/chapter-2", offset=offset, limit=2)
        shown += page["children"]
        offset = page["next_offset"]
    assert shown == whole["children"]
    assert whole["total_children"] == len(shown) > 2


@pytest.mark.parametrize(
    "path", ["cfr", "usc/1900", f"{TITLE}/chapter-99", "usc/119-36/root/../..", "'; DROP TABLE x--"]
)
def test_place_that_is_not_held_is_not_found(path: str, refuse: Refuse) -> None:
    assert refuse("browse_code", path=path)["code"] == "not_found"


def test_coverage_says_what_is_held_and_as_of_when(ask: Ask) -> None:
    coverage = ask("list_sources")
    sources = {one["source"]: one for one in coverage["sources"]}
    assert set(sources) == {"federal_register", "sap", "usc"}
    register = sources["federal_register"]
    assert (register["first_published"], register["last_published"]) == ("2026-01-12", "2026-01-13")
    assert register["kinds"]["rule"] == 2
    assert register["withdrawn"] == 1
    assert register["title"] == "Federal Register"
    assert [one["edition"] for one in sources["usc"]["editions"]] == ["119-4", "119-36"]
    assert "crs" in coverage["not_held"]
    assert coverage["documents"] == sum(one["documents"] for one in sources.values())
    assert coverage["vectors"] == {
        "model": None,
        "complete": False,
        "waiting": coverage["vectors"]["waiting"],
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("get_document", {"document": LONG}, ["Cite: ", "sha256", "Salary Threshold"]),
        ("get_passage", {"passage": f"{LONG}#1"}, [f"[{LONG}#1]", "Cite: "]),
        ("browse_code", {"path": SECTION}, [f"get_document {SECTION}"]),
        ("browse_code", {"path": TITLE}, ["- CHAPTER 1—ACCESS", f"[{TITLE}/chapter-1]"]),
        ("list_sources", {}, ["- usc", "editions 119-4, 119-36", "Nothing is embedded"]),
    ],
)
def test_text_says_the_same_to_people(
    tool: str, arguments: dict[str, str], shown: list[str], library: Library
) -> None:
    text = text_of(call(library, tool, arguments))
    assert [words for words in shown if words not in text] == []

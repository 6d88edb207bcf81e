"""Questions, citations and quotations, as an agent is answered."""

from __future__ import annotations

from tests.unit.mcp.conftest import Ask, Refuse, call, text_of
from tests.unit.mcp.small import LONG, OLD_SECTION, OWNED, SECTION, SHARED_NAME

from fonds.library import Library

WORDS = "The keeper shall answer a request within {} working days."


def ids(answer: dict[str, list[dict[str, str]]]) -> list[str]:
    return [one["id"] for one in answer["results"]]


def test_hit_carries_citation_place_and_provenance(ask: Ask, library: Library) -> None:
    first = ask("search", query="overtime salary threshold")["results"][0]
    row = library.document(LONG)
    assert first["id"] == LONG
    assert first["citation"]["citation_string"] == row["citation_string"]
    assert first["citation"]["url"] == row["source_url"]
    assert first["raw_sha256"] == row["raw_sha256"]
    assert first["retrieved_at"].startswith(row["retrieved_at"].date().isoformat())


def test_passage_of_a_hit_can_be_read(ask: Ask) -> None:
    first = ask("search", query="how soon must a request for a record be answered?")["results"][0]
    (passage,) = ask("get_passage", passage=first["passage"])["passages"]
    assert passage["citation"] == first["citation"]


def test_filters_narrow(ask: Ask) -> None:
    every = ids(ask("search", query="wildfire smoke"))
    rules = ids(ask("search", query="wildfire smoke", kinds=["proposed_rule"]))
    assert "fr:2026-00122" in rules
    assert set(rules) < set(every)
    later = ids(ask("search", query="wildfire smoke", since="2026-01-13", until="2026-01-13"))
    assert "fr:2026-00105" not in later
    assert "fr:2026-00122" in later
    assert ids(ask("search", query="wildfire smoke", sources=["usc"])) == []
    assert ids(ask("search", query="wildfire smoke", organizations=["no such body"])) == []


def test_editions_and_branches_are_searched_when_asked_for(ask: Ask) -> None:
    question = "answer a request within working days"
    assert ids(ask("search", query=question, sources=["usc"]))[0] == SECTION
    assert ids(ask("search", query=question, edition="119-4"))[0] == OLD_SECTION
    under = ids(ask("search", query=question, under="usc/119-4/root/title-53/chapter-1"))
    assert under[0] == OLD_SECTION
    assert all(one.startswith("usc/119-4/root/title-53/chapter-1/") for one in under)


def test_pages_follow_each_other_without_gap_or_repetition(ask: Ask) -> None:
    whole = ids(ask("search", query="records request agency", mode="lexical", limit=50))
    paged: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = ask("search", query="records request agency", mode="lexical", limit=3, offset=offset)
        paged += ids(page)
        offset = page["next_offset"]
    assert paged == whole
    assert len(whole) > 3


def test_nothing_found_says_where_to_look(ask: Ask) -> None:
    answer = ask("search", query="zyzzyva", mode="lexical")
    assert answer["results"] == []
    assert "list_sources" in answer["note"]


def test_upload_is_never_found(ask: Ask, refuse: Refuse) -> None:
    assert OWNED not in ids(ask("search", query="recall of infusion pumps", limit=50))
    assert not ask("resolve_citation", citation=OWNED)["found"]
    error = refuse("check_quote", cite=OWNED, text="infusion pumps")
    assert error["code"] in {"not_found", "bad_request"}


def test_citation_leads_to_its_document_and_passage(ask: Ask) -> None:
    answer = ask("resolve_citation", citation="53 U.S.C. § 103(a)")
    assert answer["found"]
    assert answer["document"]["id"] == SECTION
    assert answer["pinpoint"] == "(a)"
    assert [one["edition"] for one in answer["editions"]] == ["119-36", "119-4"]
    passage = f"{SECTION}#{answer['passage']}"
    assert "ten working days" in ask("get_passage", passage=passage)["passages"][0]["text"]


def test_citation_as_of_a_day_leads_to_the_edition_of_that_day(ask: Ask) -> None:
    answer = ask("resolve_citation", citation="53 U.S.C. § 103", as_of="2025-06-01")
    assert answer["document"]["id"] == OLD_SECTION


def test_citation_of_what_is_not_held_is_answered_so(ask: Ask) -> None:
    answer = ask("resolve_citation", citation="42 U.S.C. § 1396a")
    assert (answer["found"], answer["problem"]) == (False, "not_held")
    answer = ask("resolve_citation", citation="whatever somebody said")
    assert (answer["found"], answer["problem"]) == (False, "not_understood")
    answer = ask("resolve_citation", citation=SHARED_NAME)
    assert (answer["found"], answer["problem"]) == (False, "ambiguous")
    assert len(answer["candidates"]) == 2


def test_document_is_found_by_a_citation_with_a_pinpoint(ask: Ask) -> None:
    answer = ask("get_document", document="53 U.S.C. § 103(a)")
    assert answer["document"]["id"] == SECTION


def test_quotation_is_exact_changed_or_not_found(ask: Ask) -> None:
    exact = ask("check_quote", cite="53 USC 103", text=WORDS.format("ten"))
    assert exact["verdict"] == "exact"
    assert exact["document"]["id"] == SECTION
    changed = ask("check_quote", cite="53 USC 103", text=WORDS.format("thirty"))
    assert changed["verdict"] == "changed"
    assert changed["found_in"]["id"] == OLD_SECTION
    assert changed["changed_in"] == "119-36"
    missing = ask("check_quote", cite="53 USC 103", text=WORDS.format("forty"))
    assert missing["verdict"] == "not_found"
    assert "ten working days" in missing["closest"]["text"]


def test_quotation_from_one_of_two_documents_is_ambiguous(refuse: Refuse) -> None:
    error = refuse("check_quote", cite=SHARED_NAME, text="words that neither has")
    assert error["code"] == "ambiguous"
    assert error["message"].count("sap:2026-01-05/") == 2


def test_quotation_as_of_a_day_is_checked_in_the_edition_of_that_day(ask: Ask) -> None:
    then = ask("check_quote", cite="53 USC 103", text=WORDS.format("thirty"), as_of="2025-06-01")
    assert then["verdict"] == "exact"


def test_text_carries_citations_too(library: Library) -> None:
    found = text_of(call(library, "search", {"query": "overtime salary threshold"}))
    cited = library.document(LONG)["citation_string"]
    assert f"Cite: {cited}" in found
    assert f"Passage: {LONG}#" in found
    resolved = text_of(call(library, "resolve_citation", {"citation": "53 U.S.C. § 103(a)"}))
    assert f"Passage: {SECTION}#" in resolved
    assert "Editions: 119-36, 119-4." in resolved
    quote = {"cite": "53 USC 103", "text": WORDS.format("forty")}
    checked = text_of(call(library, "check_quote", quote))
    assert checked.startswith("Verdict: not_found\n")
    assert "Closest: " in checked

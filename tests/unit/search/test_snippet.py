from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.search.snippet import SNIPPET_LENGTH, highlights, snippet_of

FILLER = "Nothing of interest stands here, and more of it follows. " * 20


def test_short_passage_is_shown_whole_on_one_line() -> None:
    assert snippet_of("# Lead\n\n  in  drinking\twater ", ["lead"]) == "# Lead in drinking water"


def test_snippet_lies_around_the_words_that_were_asked_for() -> None:
    text = f"{FILLER}The salary threshold for overtime rises. {FILLER}"
    snippet = snippet_of(text, ["overtime", "salary"])
    assert "salary threshold for overtime" in snippet
    assert snippet.startswith("… ")
    assert snippet.endswith(" …")


def test_densest_stretch_is_preferred_to_the_first_word() -> None:
    text = f"One salary. {FILLER}Salary, overtime and threshold together. {FILLER}"
    assert "together" in snippet_of(text, ["salary", "overtime", "threshold"])


def test_inflected_word_is_found_by_its_stem() -> None:
    assert "regulated" in snippet_of(f"{FILLER}It is regulated. {FILLER}", ["regulation"])


def test_passage_without_the_words_is_shown_from_its_beginning() -> None:
    snippet = snippet_of(FILLER, ["absent"])
    assert snippet.startswith("Nothing of interest")
    assert snippet.endswith(" …")
    assert snippet_of(FILLER, []) == snippet


def test_words_are_not_cut_in_half() -> None:
    snippet = snippet_of(f"{FILLER}salary {FILLER}", ["salary"])
    assert set(snippet.strip("… ").split()) <= set(f"{FILLER} salary".split())


def test_term_that_looks_like_a_pattern_is_taken_literally() -> None:
    text = f"{FILLER}see (a+)+ there {FILLER}"
    assert "(a+)+" in snippet_of(text, ["(a+)+"])


def test_text_without_spaces_is_cut_all_the_same() -> None:
    snippet = snippet_of("報告" * 2000, ["報告"])
    assert 2 < len(snippet) <= SNIPPET_LENGTH + 4


@settings(max_examples=80)
@given(
    st.text(alphabet="ab \n報", max_size=900),
    st.lists(st.text(alphabet="ab報", min_size=1), max_size=3),
)
def test_snippet_is_a_stretch_of_the_passage_and_never_too_long(
    text: str, terms: list[str]
) -> None:
    snippet = snippet_of(text, terms)
    assert len(snippet) <= SNIPPET_LENGTH + 4
    assert snippet.removeprefix("… ").removesuffix(" …") in " ".join(text.split())
    assert bool(snippet) == bool(text.split())


@pytest.mark.parametrize(
    ("snippet", "terms", "marked"),
    [
        ("The regulation of regulated trout", ["regulation"], ["regulation", "regulated"]),
        ("deregulation", ["regulation"], []),
        ("Über die Prüfungen", ["prüfung"], ["Prüfungen"]),
        ("政治資金収支報告書", ["政治資金"], ["政治資金"]),
        ("lead in water", ["lead in water"], ["lead", "in", "water"]),
        ("nothing", [], []),
    ],
)
def test_highlights_are_whole_words_in_any_inflection(
    snippet: str, terms: list[str], marked: list[str]
) -> None:
    assert [snippet[start:end] for start, end in highlights(snippet, terms)] == marked


ROWS = [f"| Benefit number {n} of the plan | {n},100 dollars |" for n in range(40)]
TABLE = "\n".join(["| Benefit | Yearly limit |", "| --- | --- |", *ROWS])


def test_row_that_answers_is_shown_with_its_header() -> None:
    text = TABLE.replace("number 31 of the plan", "for an ambulance")
    snippet = snippet_of(text, ["ambulance", "limit"])
    assert snippet.startswith(
        "Benefit | Yearly limit — | Benefit for an ambulance | 31,100 dollars |"
    )
    assert len(snippet) <= SNIPPET_LENGTH + 4


def test_header_of_an_earlier_passage_is_taken_from_the_lead_ins() -> None:
    rows = "\n".join(ROWS).replace("number 31 of the plan", "for an ambulance")
    snippet = snippet_of(rows, ["ambulance"], ["Table 3", "Benefit | Yearly limit"])
    assert snippet.startswith("Table 3 — Benefit | Yearly limit — | Benefit for an ambulance |")
    short = snippet_of(ROWS[0], ["benefit"], ["Benefit | Yearly limit"])
    assert short == f"Benefit | Yearly limit — {ROWS[0]}"


def test_text_behind_a_table_has_no_header() -> None:
    text = f"{TABLE}\n\n{FILLER}The ambulance is paid. {FILLER}"
    assert snippet_of(text, ["ambulance"]).startswith("… ")
    assert "Yearly limit" not in snippet_of(text, ["ambulance"], ["Table 3"])


def test_sentence_with_different_words_is_preferred_to_one_that_repeats_a_word() -> None:
    text = (
        f"{FILLER}A limit, a limit and a limit. {FILLER}The limit for an ambulance is 5. {FILLER}"
    )
    assert "ambulance is 5." in snippet_of(text, ["limit", "ambulance"])


def test_last_sentence_is_shown_with_those_before_it() -> None:
    snippet = snippet_of(f"{FILLER}The ambulance is paid.", ["ambulance"])
    assert snippet.startswith("… Nothing of interest")
    assert snippet.endswith("The ambulance is paid.")


def test_long_header_leaves_room_for_the_row() -> None:
    text = "\n".join(ROWS)
    snippet = snippet_of(text, ["benefit"], ["word " * 100])
    assert len(snippet) <= SNIPPET_LENGTH + 4
    assert "| Benefit number" in snippet

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.citations.extract import canonical_form, extract
from fonds.citations.forms import congress_of

PIECES = st.sampled_from(
    [
        *("5", "42", "117-58", "552a", "60.112b", "1331-32", "12,345", "(a)(1)", "119th"),
        *("U.S.C.", "USC", "CFR", "C.F.R.", "Fed. Reg.", "FR", "Stat.", "U.S.", "F.3d", "S. Ct."),
        *("Pub. L.", "Public Law", "H.R.", "S.", "H. Con. Res.", "Executive Order", "GAO-25-1"),
        *("§", "§§", "section", "sections", "part", "parts", "of title", "United States Code"),
        *("Code of Federal Regulations", "Cong.", "R48481", "D.C. Code", "Conn. Gen. Stat."),
        *("and", ",", ";", "through", "-", "–", "*", "\n", "\u00a0", "(", ")", ".", "<!-- ", "§"),
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map(" ".join) | st.lists(PIECES, max_size=30).map("".join)


@settings(max_examples=150)
@given(TEXTS)
def test_spans_are_exact_ordered_and_apart(text: str) -> None:
    end = 0
    for found in extract(text):
        assert text[found.start : found.end] == found.raw
        assert end <= found.start < found.end
        end = found.end


@settings(max_examples=100)
@given(TEXTS)
def test_same_text_gives_the_same_citations(text: str) -> None:
    assert extract(text) == extract(text)


@settings(max_examples=100)
@given(TEXTS)
def test_form_of_a_citation_is_a_citation_of_the_same(text: str) -> None:
    # Reporters lose the periods that tell them from `3 BR 2 BA`, and `EO 42` may be anything.
    for found in extract(text, congress=119):
        if found.kind != "case" and not re.fullmatch(r"EO \d{1,3}", found.target):
            again = [each.target for each in extract(f"See {found.target}.")]
            assert again == [found.target]


@pytest.mark.parametrize(
    ("text", "pinpoint"),
    [
        ("42 U.S.C. 1396a(a)(10)(A)", "(a)(10)(A)"),
        ("5 U.S.C. 552 note", "note"),
        ("90 Stat. 2743, 2745", "2745"),
        ("410 U.S. 113, 153–54", "153–54"),
        ("H. Rept. 119-100, pt. 2", "pt. 2"),
        ("40 CFR part 60, subpart OOOOa", "subpart OOOOa"),
        ("26 U.S.C. 501 (c)(3)", "(c)(3)"),
        ("40 CFR 60.1(a)(2)–(4)", "(a)(2)–(4)"),
        ("29 C.F.R. pt. 1910, subpt. I", "subpt. I"),
        ("42 U.S.C. 1983", None),
    ],
)
def test_place_within_the_target_is_kept_beside_it(text: str, pinpoint: str | None) -> None:
    (found,) = extract(text)
    assert (found.raw, found.pinpoint) == (text, pinpoint)


def test_bill_takes_the_given_congress_unless_it_says_its_own() -> None:
    text = "H.R. 5 and S. 7, 118th Cong., and 117 H. Res. 9"
    assert [found.target for found in extract(text, congress=119)] == [
        "119 HR 5",
        "118 S 7",
        "117 HRES 9",
    ]
    assert extract("H.R. 5")[0].target == "HR 5"


def test_ends_of_a_range_are_cited_and_compound_numbers_are_not_cut() -> None:
    text = "5 U.S.C. 551-559, 42 U.S.C. 1320a-7b, 16 U.S.C. 1a-5, 28 U.S.C. §§ 1331-32"
    assert [found.target for found in extract(text)] == [
        "5 USC 551",
        "5 USC 559",
        "42 USC 1320a-7b",
        "16 USC 1a-5",
        "28 USC 1331",
        "28 USC 1332",
    ]


@pytest.mark.parametrize("odd", ["\u2009", "\u3000", "\u00a0", "\n", "\n> ", "\x85", "\u2003\n"])
def test_white_space_of_any_kind_may_stand_within(odd: str) -> None:
    citations = (
        *(
            "5 U.S.C. 552",
            "40 CFR 60.1",
            "Public Law 117-58",
            "section 552 of title 5",
            "H. Res. 5",
        ),
        *("D.C. Code 1-2", "section 501 of the Internal Revenue Code", "Executive Order 14192"),
    )
    text = "; see ".join(citation.replace(" ", odd) for citation in citations)
    assert [found.raw.replace(odd, " ") for found in extract(text)] == list(citations)


def test_list_may_reach_far_back_from_its_title() -> None:
    numbers = ", ".join(f"{number}(a)(1)" for number in range(101, 131))
    found = extract(f"Under section 5 and sections {numbers}, and section 200 of title 17 it ends.")
    assert [each.target for each in found] == [
        "17 USC 5",
        *(f"17 USC {number}" for number in range(101, 131)),
        "17 USC 200",
    ]


def test_page_marks_of_the_document_itself_are_no_citations() -> None:
    marked = "shall report<!-- 128 STAT. 1348 --> to Congress <!-- Page 2 GAO-06-282 Milk --> S. 5"
    assert [found.raw for found in extract(marked)] == ["S. 5"]


@pytest.mark.parametrize(
    ("piece", "found_in_each"),
    [
        *(("§ § §", 0), ("1", 0), ("12 ", 0), ("U.S.U.S.", 0), ("section 1-1-", 0), ("H.", 0)),
        *(("S. ", 0), ("5 *", 0), ("title 5 ", 0), ("section 5 and ", 0), ("(a)(b)", 0)),
        *(
            ("<!--", 0),
            ("<!-- 5 Stat. 5 -->", 0),
            ("Title 5, Part 5, ", 0),
            ("TITLE", 0),
            ("é€ ", 0),
        ),
        *(("5 U.S.C. 1, ", 1), ("42 U.S.C. 1(", 1)),
    ],
)
def test_megabyte_of_hostile_text_is_read_to_its_end(piece: str, found_in_each: int) -> None:
    # With a pattern that backtracks, some of these would not end within a day.
    repeats = 1_000_000 // len(piece)
    assert len(extract(piece * repeats)) == repeats * found_in_each


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("91 Fed. Reg. 12345 (Mar. 4, 2026).", "91 FR 12345"),
        ("H.R. 1234, 119th Cong. (2025).", "119 HR 1234"),
        ("H.R. 1 (119th)", "119 HR 1"),
        ("Pub. L. No. 119-21 (2026).", "PL 119-21"),
        ("H.R. Rep. No. 119-100 (2025).", "H Rept 119-100"),
        ("Executive Order 14192", "EO 14192"),
        ("42 USC 1396a", "42 USC 1396a"),
        ("H.R. 1234, 119th Cong. (as introduced in House, Mar. 4, 2025).", None),
        ("H. Rept. 119-100, Part 2", None),
        ("H.R. 1234", None),
        ("https://www.congress.gov/crs-product/R48481", None),
        ("Cong. Rsch. Serv., R48481, Wildfire Emergency Spending (Mar. 15, 2025).", None),
        ("Note on 42 U.S.C. 1983", None),
    ],
)
def test_form_of_a_name_that_is_one_whole_citation(name: str, form: str | None) -> None:
    assert canonical_form(name) == form


@pytest.mark.parametrize(
    ("day", "congress"),
    [
        ("2025-01-03", 119),
        ("2025-01-02", 118),
        ("2024-12-31T10:00:00Z", 118),
        ("2026-11-16", 119),
        ("1789-03-04", 1),
        ("1700-01-01", None),
        ("2025", None),
        (None, None),
    ],
)
def test_congress_that_sat_on_a_day(day: str | None, congress: int | None) -> None:
    assert congress_of(day) == congress

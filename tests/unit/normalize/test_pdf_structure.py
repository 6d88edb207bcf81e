from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.sources.golden import assert_golden
from tests.unit.normalize.written_pdf import LINE, Said, lines, text_field, written

from fonds.model import NormalizedBody
from fonds.normalize.pdf import PdfNormalizer
from fonds.normalize.pdf.losses import loss_warnings
from fonds.normalize.pdf.page import PdfLine, PdfPage
from fonds.normalize.pdf.running_heads import Stripped

FIXTURES = Path(__file__).parent / "fixtures" / "pdf"
PLAIN = PdfNormalizer(recognizer=None)
UPDATED = "This policy has been updated effective January 1, 2014"
LABELS = "/PageLabels << /Nums [0 << /S /r >> 1 << /S /D >>] >>"


Page = Sequence[Said | str]


def read(*pages: Page, extra: str = "") -> NormalizedBody:
    return PLAIN.to_markdown(written(*pages, extra=extra))


def policy_page(number: int) -> Page:
    """A page with a watermark, a foot of five lines, clauses, and a bold sentence."""
    return [
        Said(120, 500, "Sample Policy", size=72),
        "BT /F1 60 Tf 0.7 0.7 -0.7 0.7 150 150 Tm (DRAFT) Tj ET",
        Said(72, 20, "Harbour Insurance Company Limited, Harbour Street 1"),
        Said(72, 32, "Registered in England"),
        Said(72, 44, "UIN 77-1204"),
        Said(72, 56, f"Page {number} of 40 of the Policy Wording"),
        Said(72, 68, "Harbour Insurance"),
        *([Said(72, 740, "PART II - BENEFITS", bold=True)] if number else []),
        Said(72, 686, f"{number}.1.", bold=True),
        Said(120, 686, "In-patient Treatment", bold=True),
        *lines(
            72, 664, f"{LINE} in year {number}, as clause 8-", f"21{number} says, and under 1396r-"
        ),
        Said(72, 640, "8(k) of it."),
        Said(72, 620, UPDATED, bold=True),
        Said(72, 590, f"{number}.2. Hospital Cash.", bold=True),
        Said(182, 590, "We pay for each day."),
        *lines(72, 540, f"{LINE} across the mark {number}.", f"{LINE} below it {number}."),
    ]


def test_a_policy_with_marks_feet_and_clauses_reads_as_reviewed() -> None:
    cover: Page = [Said(72, 600, "Policy Wording", size=24), Said(72, 560, LINE)]
    body = read(cover, *(policy_page(number) for number in range(1, 6)), extra=LABELS)
    assert_golden(body.markdown, FIXTURES / "policy.md")
    assert [mark.page for mark in body.pages] == ["i", "1", "2", "3", "4", "5"]
    assert [mark.pdf_page for mark in body.pages] == [1, 2, 3, 4, 5, 6]
    assert {heading.text for heading in body.headings} >= {
        "1.1. In-patient Treatment",
        "5.2. Hospital Cash.",
    }
    assert [h.section for h in body.headings if h.section and h.section[0] == "3"] == ["3.1", "3.2"]
    assert Counter(left.reason for left in body.left_out) == {
        "watermark": 10,
        "running foot": 25,
        "running head": 4,
    }
    starts = {mark.pdf_page: mark.offset for mark in body.pages}
    assert all(left.offset == starts[left.pdf_page] for left in body.left_out)
    assert body.warnings == ()
    for text in ("Sample Policy", "DRAFT", UPDATED):
        assert text not in {heading.text for heading in body.headings}


@pytest.mark.parametrize(
    "text",
    [
        UPDATED,
        "Tests such as those of blood to find the cause of your symptoms or illness",
        "You may cancel the policy at any time and",
    ],
)
def test_a_bold_sentence_is_not_a_heading(text: str) -> None:
    page = [Said(72, 700, text, bold=True), *lines(72, 660, LINE, LINE)]
    assert read(page).headings == ()


@pytest.mark.parametrize(
    "text",
    [
        "What is covered",
        "2.1. Cover is what the Company will pay to you",
        "When You Will Be Insured",
    ],
)
def test_a_bold_title_with_a_verb_is_a_heading(text: str) -> None:
    page = [Said(72, 700, text, bold=True), *lines(72, 660, LINE, LINE)]
    assert [heading.text for heading in read(page).headings] == [text]


def test_clauses_are_nested_by_their_numbers() -> None:
    titles = ["1. Terms", "1.1. Benefits", "1.1.1 Limits", "2. Claims"]
    page = [
        each
        for at, title in enumerate(titles)
        for each in (
            Said(72, 700 - 60 * at, title, bold=True),
            *lines(72, 680 - 60 * at, f"{LINE} {at}."),
        )
    ]
    levels = [heading.level for heading in read(page).headings]
    assert levels == [1, 2, 3, 1]


def test_the_subject_of_a_sentence_set_in_bold_is_no_heading_of_its_own() -> None:
    page = [
        Said(72, 700, "2.1 Accident", bold=True),
        Said(136, 700, "means a sudden event."),
        Said(72, 600, LINE),
    ]
    body = read(page)
    assert "2.1 Accident means a sudden event." in body.markdown
    assert body.headings == ()


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("Call 888-737-", "0259 on any day.", "888-737-0259"),
        ("As section 1396r-", "8(k) has it.", "1396r-8(k)"),
        ("In the years 2013–", "2014 it rose.", "2013–2014"),
        ("Within a 12-", "month period it rose.", "12-month"),
        ("For terms of 10-", "and 20 years.", "10- and 20"),
    ],
)
def test_numbers_over_a_line_end_stay_whole(before: str, after: str, joined: str) -> None:
    assert joined in read([*lines(72, 700, before, after)]).markdown


def test_the_head_of_a_part_is_its_title_where_it_is_printed_first() -> None:
    def page(part: str, n: int) -> Page:
        return [Said(200, 740, part, bold=True), *lines(72, 650, f"{LINE} {n}.", LINE)]

    parts = ["PART I - DEFINITIONS"] * 4 + ["PART II - BENEFITS"] * 4
    body = read(*(page(part, n) for n, part in enumerate(parts)))
    assert [heading.text for heading in body.headings] == [
        "PART I - DEFINITIONS",
        "PART II - BENEFITS",
    ]


def test_a_mark_that_is_no_larger_than_the_text_stays() -> None:
    pages = [[Said(72, 400, "Not for resale"), *lines(72, 700, f"{LINE} {n}.")] for n in range(5)]
    assert read(*pages).markdown.count("Not for resale") == 5


def test_a_page_that_loses_letters_is_named_in_a_warning() -> None:
    def kept(text: str, *left_out: str) -> tuple[str, ...]:
        page = PdfPage(number=3, characters=Counter("The ﬁne is 1,000 yen. 甲は乙に払う。" * 9))
        line = PdfLine(text=text, x0=0, x1=9, y=9, size=9, bold=False)
        bare = Stripped(lines=[line], number=None, left_out=tuple((each, "") for each in left_out))
        return loss_warnings([page], [bare], [[line]])

    sentence = "The fine is 1,000 yen. 甲は乙に払う。"
    assert kept(sentence * 9) == ()
    assert kept(sentence * 8, sentence) == ()
    assert kept(sentence * 8) == ("page 3: 10.6% of its letters are not in the text",)


def test_a_value_that_no_viewer_shows_is_listed_as_left_out() -> None:
    hidden = text_field(110, 700, "swordfish", F="2")
    body = PLAIN.to_markdown(written([Said(72, 700, LINE)], annotations=[[hidden]]))
    assert [(each.text, each.reason) for each in body.left_out] == [("swordfish", "hidden field")]

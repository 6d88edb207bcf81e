from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

import pytest
from tests.unit.normalize.written_pdf import LINE, Said, lines, paragraph, written

from fonds.model import NormalizedBody
from fonds.normalize.pdf import PdfNormalizer

PLAIN = PdfNormalizer(recognizer=None)


def read(*pages: Iterable[Said | str], **how: Any) -> NormalizedBody:
    return PLAIN.to_markdown(written(*pages, **how))


# The order of words ------------------------------------------------------------------------


def test_columns_drawn_line_by_line_are_read_one_after_the_other() -> None:
    pairs = zip(paragraph(72, 700, "left"), paragraph(320, 700, "right"), strict=True)
    body = read(chain.from_iterable(pairs))
    words = re.findall(r"(?:left|right)\d", body.markdown)
    assert words == [f"left{n}" for n in range(8)] + [f"right{n}" for n in range(8)]


def test_a_page_drawn_from_the_bottom_is_read_from_the_top() -> None:
    body = read(reversed(paragraph(72, 700, "line")))
    assert re.findall(r"line\d", body.markdown) == [f"line{n}" for n in range(8)]


def test_boxes_keep_the_order_they_are_drawn_in() -> None:
    boxes = [
        *lines(72, 700, "First box, first line", "first box, second line"),
        *lines(320, 700, "Second box, first line", "second box, second line"),
        *lines(72, 640, "Third box, first line", "third box, second line"),
    ]
    body = read(boxes)
    assert re.findall(r"(?i)(first|second|third) box", body.markdown) == [
        *("First", "first"),
        *("Second", "second"),
        *("Third", "third"),
    ]


def test_words_drawn_one_by_one_are_one_line() -> None:
    x, drawn = 72.0, []
    for word in LINE.split():
        drawn.append(Said(x, 700, word))
        x += 6 * len(word) + 3
    assert read(drawn).markdown == f"{LINE}\n"


def test_a_page_shown_turned_is_read_as_it_is_shown() -> None:
    turned = [
        f"BT /F1 10 Tf 0 1 -1 0 {100 + 12 * n} 72 Tm (line {n} of a page that is turned) Tj ET"
        for n in range(3)
    ]
    body = read(turned, extra_page="/Rotate 90")
    texts = [f"line {n} of a page that is turned" for n in range(3)]
    assert body.markdown == f"{' '.join(texts)}\n"


def test_a_letter_the_font_does_not_name_keeps_its_place() -> None:
    body = read([Said(72, 700, f"{LINE}, at\x04auju")])
    assert "at\ufffdauju" in body.markdown


# Tables ------------------------------------------------------------------------------------


def test_cells_of_several_lines_drawn_one_after_the_other_are_a_table() -> None:
    page = [
        *lines(72, 700, "Vessel"),
        *lines(200, 700, "Fee and term"),
        *lines(72, 670, "Barge without", "an engine"),
        *lines(200, 670, "12 a year", "or 2 a month"),
        *lines(72, 630, "Tug"),
        *lines(200, 630, "30 a year"),
    ]
    assert read(page).markdown == (
        "| Vessel | Fee and term |\n| --- | --- |\n"
        "| Barge without an engine | 12 a year or 2 a month |\n| Tug | 30 a year |\n"
    )


def test_an_empty_cell_leaves_its_column_empty() -> None:
    page = [
        *(Said(72, 700, "Vessel"), Said(200, 700, "Fee"), Said(300, 700, "Term")),
        *(Said(72, 680, "Barge"), Said(300, 680, "1 year")),
        *(Said(72, 660, "Tug"), Said(200, 660, "30"), Said(300, 660, "2 years")),
    ]
    assert "| Barge | | 1 year |" in read(page).markdown


def test_labels_far_from_their_paragraphs_are_no_table() -> None:
    page = [
        part
        for n in range(4)
        for part in (Said(72, 700 - 14 * n, f"({n + 1})"), Said(110, 700 - 14 * n, f"{LINE}."))
    ]
    paragraphs = [f"({n + 1}) {LINE}." for n in range(4)]
    assert read(page).markdown == "\n\n".join(paragraphs) + "\n"


def test_lines_stretched_to_a_narrow_column_are_no_table() -> None:
    stretched = [("The", "harbour", "is"), ("one", "and", "the"), ("moorings", "of", "it")]
    places = [(72, 108, 160), (72, 112, 153.3), (72, 136, 162.2)]
    page = [
        Said(x, 700 - 12 * n, word)
        for n, (words, xs) in enumerate(zip(stretched, places, strict=True))
        for x, word in zip(xs, words, strict=True)
    ]
    assert "|" not in read(page).markdown


def test_a_table_of_contents_stays_lines() -> None:
    page = [
        part
        for n, title in enumerate(["Moorings", "Fees", "Appeals"])
        for part in (
            Said(72, 700 - 14 * n, f"{title} . . . . . . . ."),
            Said(400, 700 - 14 * n, f"{n + 1}"),
        )
    ]
    assert read(page).markdown.split("\n\n")[0] == "Moorings . . . . . . . . 1"


# Headings ----------------------------------------------------------------------------------


def test_bold_lines_that_follow_each_other_are_text() -> None:
    bold = [Said(72, 700 - 24 * n, f"Bold words number {n}", bold=True) for n in range(6)]
    plain = lines(72, 500, *[LINE] * 12)
    assert read([*bold, *plain]).headings == ()


def test_a_bold_label_beside_its_value_is_no_heading() -> None:
    page = [
        *(Said(72, 700, "Effective date", bold=True), Said(320, 700, "1 July 2026")),
        *lines(72, 660, *[LINE] * 6),
    ]
    assert read(page).headings == ()


def test_bold_capitals_stand_above_bold_titles() -> None:
    page = [
        Said(72, 700, "CLIENT RIGHTS", bold=True),
        Said(72, 670, "Right to apply", bold=True),
        *lines(72, 640, *[LINE] * 6),
    ]
    assert [(h.level, h.text) for h in read(page).headings] == [
        (1, "CLIENT RIGHTS"),
        (2, "Right to apply"),
    ]


@pytest.mark.parametrize("text", ["Name of the state:", "* 17 JUL *", "and so on", "Yes"])
def test_what_no_title_looks_like_is_no_heading(text: str) -> None:
    page = [Said(72, 700, text, bold=True), *lines(72, 660, *[LINE] * 6)]
    assert read(page).headings == ()


def test_a_lowered_number_is_no_footnote() -> None:
    page = [
        *(Said(72, 700, "The limit for CO"), Said(152, 697, "2", 6), Said(158, 700, "is low.")),
        *lines(72, 680, LINE, LINE),
        *(Said(72, 150, "2", 5), Said(77, 148, "Note of another number.", 7)),
    ]
    assert "[^2]" not in read(page).markdown


# What a page prints beside its text --------------------------------------------------------


def test_heads_and_feet_are_kept_beside_the_text_at_their_page() -> None:
    body = read(
        *(
            [
                Said(72, 760, "Manual of the Harbour Board"),
                *lines(72, 650, f"What page {number} says stands on no other one."),
                Said(300, 30, str(number)),
            ]
            for number in range(17, 22)
        )
    )
    head = "Manual of the Harbour Board"
    unseen = [f"<!-- {head} -->", *(f"<!-- {number} {head} -->" for number in range(17, 21))]
    for mark, comment in zip(body.pages, unseen, strict=True):
        assert body.markdown.startswith(comment, mark.offset)
    assert body.markdown.endswith("<!-- 21 -->\n")


def test_a_head_with_the_number_of_its_page_is_one_though_it_stands_once() -> None:
    heads = ["Preface 5", "6 The Harbour", "Moorings 7", "8 The Harbour", "12 Vessels"]
    numbers = [5, 6, 7, 8, 9]
    pages = [
        [Said(72, 760, head), *lines(72, 650, f"{LINE} {number}."), Said(300, 30, str(number))]
        for head, number in zip(heads, numbers, strict=True)
    ]
    markdown = read(*pages).markdown
    assert "<!-- Preface 5 -->" in markdown
    assert "Moorings 7 -->" in markdown
    assert "\n12 Vessels" in markdown


def test_marks_beyond_the_edges_of_the_page_are_no_text() -> None:
    page = [*lines(72, 650, f"{LINE}."), Said(72, 850, "4TH PASS PAGES")]
    body = read(page)
    assert body.markdown == f"{LINE}.\n\n<!-- 4TH PASS PAGES -->\n"

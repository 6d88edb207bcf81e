from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.sources.golden import assert_golden
from tests.unit.normalize.written_pdf import (
    LINE,
    PICTURE,
    Said,
    choice,
    lines,
    text_field,
    tick,
    written,
)

from fonds.errors import NoTextError
from fonds.model import NormalizedBody
from fonds.normalize.pdf import PdfNormalizer

FIXTURES = Path(__file__).parent / "fixtures" / "pdf"
PLAIN = PdfNormalizer(recognizer=None)
RADIO = "32768"

APPLICATION = [
    Said(72, 740, "Application for coverage", size=18),
    Said(72, 700, "Name:"),
    Said(320, 700, "Born:"),
    Said(90, 676, "Group Health Plan"),
    Said(290, 676, "Dental Plan"),
    Said(72, 652, "Do you smoke?"),
    Said(170, 652, "Yes"),
    Said(230, 652, "No"),
    Said(72, 628, "Country:"),
    Said(72, 600, "Riders:"),
    Said(72, 570, "Remarks"),
    Said(72, 480, "Signed at ____________ on ____________"),
    Said(72, 440, f"{LINE}."),
]
FIELDS = [
    text_field(110, 700, "Ada Foobar", width=180),
    text_field(350, 700, "1 May 1980", width=100),
    tick(76, 676, is_ticked=True),
    tick(276, 676, is_ticked=False),
    tick(188, 652, is_ticked=False, Ff=RADIO),
    tick(245, 652, is_ticked=True, Ff=RADIO),
    choice(120, 628, "(de)", {"fr": "France", "de": "Germany"}),
    choice(120, 600, "[(a) (c)]", {"a": "Flood", "b": "Fire", "c": "Theft"}, flags=2097152),
    "/Subtype /Widget /FT /Tx /Ff 4096 /T (r) /V (Twins.\\rBoth walk.) /Rect [72 510 400 565]",
    text_field(122, 480, "Oslo", width=60),
    text_field(205, 480, "3 May 2026", width=60),
    "/Subtype /FreeText /Contents (Typed on the page) /Rect [72 400 300 416]",
    "/Subtype /Link /Rect [72 700 100 710]",
]
COMMENTS = [
    "/Subtype /Text /T (Jane Doe) /Contents (Is this the new address?) /Rect [500 700 520 720]",
    "/Subtype /Stamp /Name /Approved /Rect [400 400 500 450]",
    "/Subtype /Highlight /Contents () /Rect [72 440 200 450]",
    "/Subtype /Highlight /T (Jane Doe) /Contents (Since when?) /Rect [72 440 200 450]",
]


def read(*pages: list[Said], annotations: list[list[str]], **how: Any) -> NormalizedBody:
    return PLAIN.to_markdown(written(*pages, annotations=annotations, **how))


def test_a_filled_form_with_comments_reads_as_reviewed() -> None:
    labels = "/PageLabels << /Nums [0 << /S /r >> 1 << /S /D /St 7 >>] >>"
    body = read(
        APPLICATION, [Said(72, 700, f"{LINE}.")], annotations=[FIELDS, COMMENTS], extra=labels
    )
    assert_golden(body.markdown, FIXTURES / "form.md")
    assert body.report is not None
    assert body.report.fields == 10
    assert [(mark.page, mark.pdf_page) for mark in body.pages] == [("i", 1), ("7", 2)] + [
        ("7", 2)
    ] * 3


@pytest.mark.parametrize(
    "field",
    [
        text_field(110, 700, "swordfish", Ff=str(1 << 13)),
        text_field(110, 700, "swordfish", F="2"),
        "/Subtype /Widget /FT /Tx /T (a) /V (swordfish) /F 32 /Rect [110 698 200 710]",
    ],
)
def test_what_no_viewer_shows_is_no_text(field: str) -> None:
    assert "swordfish" not in read([Said(72, 700, "Password:")], annotations=[[field]]).markdown


def test_the_value_of_a_field_on_all_pages_is_no_running_head() -> None:
    pages = [[Said(72, 760, "Claim no."), Said(72, 600, f"{LINE} {n}.")] for n in "abcdef"]
    fields = [[text_field(130, 760, "1396r-8")] for _ in pages]
    assert read(*pages, annotations=fields).markdown.count("Claim no. … 1396r-8") == 6


def test_values_on_a_turned_page_are_where_a_viewer_shows_them() -> None:
    turned = [
        f"BT /F1 10 Tf 0 1 -1 0 {x} 72 Tm ({text}) Tj ET"
        for x, text in ((100, "Name:"), (140, "Born:"))
    ]
    fields = [
        f"/Subtype /Widget /FT /Tx /T (f{x}) /V ({value}) /Rect [{x - 10} 110 {x + 2} 300]"
        for x, value in ((100, "Ada"), (140, "1980"))
    ]
    body = PLAIN.to_markdown(written(turned, annotations=[fields], extra_page="/Rotate 90"))
    assert re.findall(r"Name: … Ada|Born: … 1980", body.markdown) == ["Name: … Ada", "Born: … 1980"]


def test_a_picture_with_filled_fields_keeps_them() -> None:
    fields = [text_field(110, 700, "Ada Foobar"), tick(110, 650, is_ticked=True)]
    body = PLAIN.to_markdown(written([PICTURE], annotations=[fields]))
    assert "… Ada Foobar" in body.markdown
    assert "☒" in body.markdown
    with pytest.raises(NoTextError):
        PLAIN.to_markdown(written([PICTURE], annotations=[[text_field(110, 700, "")]]))


def test_a_damaged_annotation_is_left_out() -> None:
    broken = ["/Subtype /Widget /FT /Tx", "/Subtype /Widget", "/Subtype /Stamp", "/Rect [1 2]"]
    assert LINE in read([Said(72, 700, LINE)], annotations=[broken]).markdown


def test_the_mark_of_a_value_is_not_taken_for_a_heading() -> None:
    page = [Said(72, 700, "Name:", bold=True), *lines(72, 600, LINE, LINE)]
    body = read(page, annotations=[[text_field(110, 700, "Ada")]])
    assert "Name: … Ada" in body.markdown
    assert not body.headings

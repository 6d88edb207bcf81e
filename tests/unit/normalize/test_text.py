from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import LCSseq

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.registry import Normalizer, sniff
from fonds.normalize.text import TextNormalizer

WORD = re.compile(r"[^\W_]+")
RECORD = """\
[Congressional Record Volume 1, Number 2 (Monday, July 1, 2024)]
[House]
[Pages H10-H11]

                         A RESOLUTION ON RIVERS

  Mr. EXAMPLE of Ohio. Mr. Speaker, I ask unanimous consent that all of
the Members may have five legislative days within which to revise their
remarks on ``the rivers'' of this country.
  There was no objection to the request that the gentleman had made so.
  The SPEAKER pro tempore. The clerk will now report the resolution and
the Members will please take their seats while the clerk is reading and

[[Page H11]]

until the reading of the resolution is finished and the House resumes.
  The motion was agreed to.

                          ____________________
"""


def normalized(text: str) -> NormalizedBody:
    return TextNormalizer().to_markdown(text.encode())


def gpo(text: str) -> NormalizedBody:
    return normalized(f"<html>\n<title>T</title>\n<body><pre>\n{text}\n</pre></body></html>\n")


def test_it_is_a_normalizer_with_a_label() -> None:
    assert isinstance(TextNormalizer(), Normalizer)
    assert TextNormalizer().label == "text_v1@1.3.0"


def test_wrapped_paragraphs_are_whole_again() -> None:
    blocks = gpo(RECORD).markdown.split("\n\n")
    assert blocks[2:4] == [
        (
            "Mr. EXAMPLE of Ohio. Mr. Speaker, I ask unanimous consent that all of the Members may "
            "have five legislative days within which to revise their remarks on “the rivers” of "
            "this country."
        ),
        "There was no objection to the request that the gentleman had made so.",
    ]
    assert blocks[-1] == "The motion was agreed to.\n"


def test_a_page_break_does_not_break_the_sentence() -> None:
    body = gpo(RECORD)
    assert "is reading and<!-- Page H11 --> until the reading" in body.markdown
    assert [mark.page for mark in body.pages] == ["H10", "H11"]
    assert body.markdown[body.pages[1].offset :].startswith("<!-- Page H11 --> until the reading")


def test_a_centred_line_in_capitals_is_a_heading() -> None:
    body = gpo(RECORD)
    [heading] = body.headings
    assert heading.text == "A RESOLUTION ON RIVERS"
    assert body.markdown[heading.offset :].startswith("## A RESOLUTION ON RIVERS\n")


def test_lines_in_brackets_keep_their_lines() -> None:
    assert "(Monday, July 1, 2024)]\\\n[House]\\\n[Pages H10-H11]\n" in gpo(RECORD).markdown


def test_a_section_heading_of_two_lines_is_one_heading_with_its_label() -> None:
    body = gpo("     SEC. 12. PROMOTION OF RIVERS AND\n                   LAKES.\n\n  Text here.")
    [heading] = body.headings
    assert (heading.text, heading.section) == (
        "SEC. 12. PROMOTION OF RIVERS AND LAKES.",
        "SEC. 12",
    )


def headings(*lines: str) -> list[tuple[int, str]]:
    text = "\n\n  Words between them.\n\n".join(f"{line:^72}".rstrip() for line in lines)
    return [(heading.level, heading.text) for heading in gpo(text).headings]


def test_headings_that_name_their_level_stand_below_each_other() -> None:
    found = headings(
        "SECTION 1. SHORT TITLE.",
        "TITLE I--LAMPS",
        "Subtitle A--Oil Lamps",
        "SEC. 101. FEES.",
        "Subtitle B--Gas Lamps",
        "TITLE II--LANTERNS",
        "SEC. 201. LANTERNS OF THE CITY.",
    )
    assert [level for level, _ in found] == [4, 2, 3, 4, 3, 2, 4]


def test_a_heading_that_names_no_level_stands_above_what_follows() -> None:
    found = headings("TEXT OF AMENDMENTS", "PART A--LAMPS", "SEC. 5. FEES.", "ADJOURNMENT")
    assert [level for level, _ in found] == [2, 3, 4, 2]


def test_a_quoted_section_stands_within_the_one_that_quotes_it() -> None:
    found = headings("SEC. 5. AMENDMENT.", "``SEC. 12. FEES.", "``SEC. 13. FINES.", "SEC. 6. DATE.")
    assert [level for level, _ in found] == [2, 3, 3, 2]


def test_a_sentence_about_a_title_is_no_heading() -> None:
    assert headings("Title II of the act was read", "Part of the lamps were lit") == []


def test_a_table_with_leaders_keeps_its_lines() -> None:
    table = "Mr. One......................    Yea\nMs. Two......................    Nay"
    assert f"```\n{table}\n```" in gpo(f"  The vote was:\n\n{table}\n").markdown


def test_a_word_parted_by_a_hyphen_grows_together_only_on_evidence() -> None:
    text = (
        "The committee has asked the whole department to consider its depart-\n"
        "ment rules by a vote of two-thirds, which is a majority of the two-\n"
        "thirds who were there, as well as the re-\n"
        "ported others."
    )
    written = normalized(text).markdown
    assert "consider its department rules" in written
    assert "of the two-thirds who" in written
    assert "re-ported" in written


def test_typesetting_codes_become_markup() -> None:
    body = gpo("CO<INF>2</INF> and <bullet> one &lt;http://x.example&gt; &amp; all")
    assert body.markdown == "CO<sub>2</sub> and • one \\<http://x.example> & all\n"


def test_letters_that_are_spelled_out_become_letters() -> None:
    body = gpo("10 <greek-m>g, <greek-D>t, <greek-th> <plus-minus> <greek-s>")
    assert body.markdown == "10 μg, Δt, θ ± σ\n"
    assert body.warnings == ()


def test_a_code_of_more_than_one_meaning_stays_and_is_named_once() -> None:
    body = gpo("<greek-y> and <greek-y>, 5 <gr-thn-eq> 4, <$1,000 of <rivers>")
    assert body.markdown == (
        "\\<greek-y> and \\<greek-y>, 5 \\<gr-thn-eq> 4, <$1,000 of \\<rivers>\n"
    )
    assert body.warnings == ("typesetting codes left as they are: <greek-y>, <gr-thn-eq>",)


@pytest.mark.parametrize(
    "picture",
    ["[GRAPHIC(S) NOT AVAILABLE IN TIFF FORMAT]", "[GRAPHIC] [TIFF OMITTED] TR01JY24.001"],
)
def test_a_picture_and_a_page_keep_paragraphs_apart(picture: str) -> None:
    text = (
        "  The first paragraph of this text stands above the picture and is as\n"
        "wide as the others, so that it ends where it ends.\n"
        f"\n{picture}\n\n[[Page 2]]\n\n"
        "and the second one has begun on some page before; it goes on below the\n"
        "picture, to its end.\n"
    )
    assert gpo(text).markdown.split("\n\n")[1:] == [
        picture,
        "<!-- Page 2 -->",
        (
            "and the second one has begun on some page before; it goes on below the picture, to "
            "its end.\n"
        ),
    ]


def test_a_page_that_begins_with_a_heading_is_marked_once_and_above_it() -> None:
    body = gpo("Words.\n\n[[Page 3]]\n\n                   ON RIVERS\n\n  More words.\n")
    assert body.markdown == "Words.\n\n<!-- Page 3 -->\n\n## ON RIVERS\n\nMore words.\n"
    assert [heading.text for heading in body.headings] == ["ON RIVERS"]
    assert [mark.page for mark in body.pages] == ["3"]


TYPED = """\
<div style='white-space: pre; word-break: break-all;'>Order Code X1

Rivers &amp; Lakes

The rivers of this country carry more water than its lakes hold, and they do
so in each of the years for which there are figures.

    Not a river: 1 &lt; 2
</div>
"""


def test_a_whole_text_in_an_element_that_keeps_its_lines_is_text() -> None:
    assert sniff(TYPED.encode()) == "text_v1"
    assert normalized(TYPED).markdown.split("\n\n") == [
        "Order Code X1",
        "Rivers & Lakes",
        (
            "The rivers of this country carry more water than its lakes hold, and they do so in "
            "each of the years for which there are figures."
        ),
        "Not a river: 1 < 2\n",
    ]


@pytest.mark.parametrize(
    "page",
    [
        "<div style='white-space: pre-wrapped'><p>One</p><p>Two</p></div>",
        "<div style='white-space: pre'>One</div><p>Two</p>",
        "<div style='white-space: normal'>One</div>",
        "<p>One</p><div style='white-space: pre'>Two</div>",
    ],
)
def test_a_page_that_only_has_such_an_element_is_a_page(page: str) -> None:
    assert sniff(page.encode()) == "html_v1"


def test_a_code_never_closed_ends_with_its_paragraph() -> None:
    assert gpo("CO<INF>2 now\n\nnext").markdown == "CO<sub>2 now</sub>\n\nnext\n"


def test_end_marks_and_missing_text_are_reported() -> None:
    body = normalized("Words.\n\n[TEXT NOT AVAILABLE REFER TO PDF]\n\n          <all>\n\x1a")
    assert body.markdown == "Words.\n\n[TEXT NOT AVAILABLE REFER TO PDF]\n"
    assert body.warnings == (
        "1 end-of-file characters (0x1A) removed",
        "the end mark <all> is removed",
        "the publisher left out: [TEXT NOT AVAILABLE REFER TO PDF]",
    )


def test_text_that_was_never_wrapped_has_a_paragraph_on_each_line() -> None:
    long = "many words " * 30
    assert normalized(f"{long}\n{long}\n").markdown.count("\n\n") == 1


def test_short_lines_stay_lines() -> None:
    wide = "This line shows how wide the column of this text is, from edge to edge.\n" * 8
    assert (
        "12 River Road\\\nColumbus, Ohio\n"
        in normalized(f"{wide}\n12 River Road\nColumbus, Ohio\n").markdown
    )


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", MalformedError),
        (b"\n \n", MalformedError),
        (b"%PDF-1.4", WrongContentError),
        (b"----\n", WrongContentError),
        (b"<!DOCTYPE html><html><body><p>x</p></body></html>", WrongContentError),
    ],
)
def test_what_is_no_text_is_refused_by_name(data: bytes, error: type[ParseError]) -> None:
    with pytest.raises(error):
        TextNormalizer().to_markdown(data)


@settings(max_examples=60)
@given(st.text(alphabet=" \n\t-_.[]<>`'aBé1\ue001\ue010", max_size=200))
def test_any_text_keeps_its_letters_in_order(text: str) -> None:
    try:
        body = normalized(text)
    except ParseError:
        return
    assert [c for c in body.markdown if c in "Bé1"] == [c for c in text if c in "Bé1"]


def test_real_issues_keep_their_words(corpus: Callable[[str], Path]) -> None:
    files = sorted(corpus("federal/congressional_record").rglob("*PgS85*.htm"))[:12]
    assert files
    for file in files:
        data = file.read_bytes()
        body = TextNormalizer().to_markdown(data)
        printed = re.sub(r"\[\[Page \w+\]\]|<[^>]*>", "", data.decode().partition("<pre>")[2])
        words = WORD.findall(html.unescape(printed).lower())[:8000]
        written = WORD.findall(body.markdown.lower())[:9000]
        assert LCSseq.similarity(words, written) >= 0.999 * len(words), file.name
        assert body.pages
        assert all(body.markdown[heading.offset] == "#" for heading in body.headings)

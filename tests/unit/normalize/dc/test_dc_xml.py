"""Sections of the D.C. Code as Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.golden import assert_golden

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.dc import DcXml
from fonds.normalize.registry import Normalizer, get_normalizer, sniff

HERE = Path(__file__).parent
NAMESPACE = "https://code.dccouncil.us/schemas/dc-library"
DECLARATION = "<?xml version='1.0' encoding='utf-8'?>"


def normalized(inside: str) -> NormalizedBody:
    section = f'{DECLARATION}<section xmlns="{NAMESPACE}">{inside}</section>'
    return DcXml().to_markdown(section.encode())


def markdown(inside: str) -> str:
    return normalized(inside).markdown


def test_it_is_a_normalizer_with_a_label() -> None:
    assert isinstance(DcXml(), Normalizer)
    assert DcXml().label == "dc_xml_v1@1.0.1"
    assert isinstance(get_normalizer("dc_xml_v1"), DcXml)


def test_section_is_as_reviewed() -> None:
    data = (HERE / "section.xml").read_bytes()
    assert sniff(data) == "dc_xml_v1"
    body = DcXml().to_markdown(data)
    assert_golden(body.markdown, HERE / "section.md")
    assert body.warnings == ()
    assert [artifact.kind for artifact in body.artifacts] == ["table", "graphic"]
    assert body.artifacts[1].content == "5-101.02-1.jpeg"


def test_first_heading_is_number_and_title_with_the_number_as_its_label() -> None:
    [heading] = normalized("<num>28:9-101</num><heading>Short title.</heading>").headings
    assert (heading.level, heading.text) == (1, "§ 28:9-101. Short title.")
    assert heading.section == "§ 28:9-101"


@pytest.mark.parametrize(
    ("inside", "title"),
    [
        ("<num>5-1</num>", "§ 5-1"),
        ("<num>§ 5-1.</num><heading>Boats</heading>", "§ 5-1. Boats"),
        ("<prefix>Sec.</prefix><num>5.</num><heading>Boats.</heading>", "Sec. 5. Boats."),
        ("<num>5-1</num><heading>— Appendix to § 5.</heading>", "§ 5-1 — Appendix to § 5."),
        ("<num>5-1</num><reason>Repealed</reason><heading>B.</heading>", "§ 5-1. B. [Repealed]"),
        (
            "<num>5-1</num><reason>Expired</reason><heading>[Expired.]</heading>",
            "§ 5-1. [Expired.]",
        ),
        ("<num>5-1</num><reason>Omitted</reason>", "§ 5-1 [Omitted]"),
        ("<heading>Boats.</heading>", "Boats."),
    ],
)
def test_heading_says_why_a_section_is_not_in_force_and_says_it_once(
    inside: str, title: str
) -> None:
    assert markdown(inside) == f"# {title}\n"


def test_number_that_editors_gave_is_not_written() -> None:
    inside = (
        '<para><num undesignated="true">(a)</num><text>In this section:</text>'
        "<para><num>(1)</num><text>One.</text></para></para>"
    )
    assert markdown(inside) == "In this section:\n\n(1) One.\n"


def test_numbers_share_a_line_until_there_is_a_text() -> None:
    inside = (
        "<para><num>(a)</num><para><num>(1)</num><text>One.</text></para>"
        "<para><num>(2)</num><text>Two.</text></para></para>"
        "<para><num>I.</num><para><num>A.</num><text>Three.</text></para></para>"
    )
    assert markdown(inside) == "(a)(1) One.\n\n\u2003(2) Two.\n\nI. A. Three.\n"


def test_number_without_a_text_is_kept() -> None:
    inside = "<para><num>(1)</num></para><para><num>(2)</num><text>Two.</text></para>"
    assert markdown(inside) == "(1)\n\n(2) Two.\n"


def test_notes_of_one_type_in_a_row_have_one_heading() -> None:
    notes = "".join(
        f'<annotation type="{kind}">{text}</annotation>'
        for kind, text in [("History", "A"), ("History", "B"), ("Resolutions", "C"), ("", "D")]
    )
    assert markdown(f"<annotations>{notes}</annotations>") == (
        "## History\n\nA\n\nB\n\n## Resolutions\n\nC\n\n## Annotations\n\nD\n"
    )


def test_note_within_a_paragraph_is_no_heading() -> None:
    inside = '<para><num>(a)</num><annotation type="History">Added.</annotation></para>'
    assert markdown(f"{inside}<text>After.</text>") == "(a) History: Added.\n\nAfter.\n"


def test_passages_cut_out_of_an_index_need_no_declarations() -> None:
    passages = b'<text>One.</text>\n<!-- x -->\n<para codify:x="1"><num>(a)</num></para>'
    assert DcXml().to_markdown(passages).markdown == "One.\n\n(a)\n"
    section = b"<section><num>5-1</num><heading>Boats.</heading></section>"
    assert DcXml().to_markdown(section).markdown == "# § 5-1. Boats.\n"


def test_levels_within_a_section_are_headings_below_it() -> None:
    body = normalized(
        "<num>5-1</num><heading>Compact.</heading><container><prefix>Article</prefix><num>I</num>"
        "<heading>Boats</heading><para><num>1.</num><text>One.</text></para></container>"
    )
    assert body.markdown == "# § 5-1. Compact.\n\n## Article I. Boats\n\n1\\. One.\n"
    assert body.headings[1].section == "Article I"


def test_quoted_section_is_no_heading() -> None:
    inside = (
        "<num>5-1</num><heading>Act.</heading><text>It reads:</text>"
        "<include><section><num>9</num><heading>Oars.</heading><text>Two.</text></section></include>"
    )
    body = normalized(inside)
    assert body.markdown == "# § 5-1. Act.\n\nIt reads:\n\n> § 9. Oars.\n>\n> Two.\n"
    assert len(body.headings) == 1


def test_table_of_contents_is_no_heading() -> None:
    inside = (
        "<toc><container><prefix>Part</prefix><num>A</num><heading>Oars.</heading>"
        "<section><num>1</num><heading>Two.</heading></section></container></toc>"
    )
    body = normalized(f"<num>5-1</num>{inside}")
    assert body.markdown == "# § 5-1\n\nPart A. Oars.\n\n§ 1. Two.\n"
    assert len(body.headings) == 1


@pytest.mark.parametrize(
    ("inside", "written"),
    [
        ("<text>a <strong>b</strong>c</text>", "a **b**c\n"),
        ("<text>a<em>, b</em></text>", "a, b\n"),
        ("<text><em>a <strong>b</strong></em></text>", "*a b*\n"),
        ("<text><em>a<p>b</p></em></text>", "*a b*\n"),
        ("<text>x<sub>2</sub> <sup/>y</text>", "x<sub>2</sub> y\n"),
        ("<text>a<br/>b</text>", "a\n\nb\n"),
        ("<text><ul><li>a</li><li>b</li></ul></text>", "- a\n\n- b\n"),
        ("<text>a<blockquote>b</blockquote>c</text>", "a\n\n> b\n\nc\n"),
        ("<text><img/></text>", "[Graphic without a name]\n"),
        ("<text>1. a # b</text>", "1\\. a # b\n"),
        ("loose<text>a</text>words", "loose\n\na\n\nwords\n"),
    ],
)
def test_bits_of_html_in_a_text(inside: str, written: str) -> None:
    assert markdown(inside) == written


def test_words_beside_the_cells_of_a_table_follow_it() -> None:
    table = "<table>one<tr>two<td>a</td></tr><tbody><tr><td>b</td></tr>three</tbody></table>"
    written = markdown(f"<text>{table}</text>")
    assert written == "|  |\n| --- |\n| a |\n| b |\n\none\n\nthree\n\ntwo\n"


def test_a_heading_that_is_only_in_an_attribute_is_kept() -> None:
    value = 'xmlns:codify="https://code.dccouncil.us/schemas/codify" codify:value'
    assert markdown(f'<num>1-1</num><heading {value}="Lamps."/>') == "# § 1-1. Lamps.\n"
    assert markdown(f'<num>1-1</num><heading {value}="Lamps.">Oil.</heading>') == "# § 1-1. Oil.\n"
    assert "**Wicks.**" in markdown(f'<num>1-1</num><para><heading {value}="Wicks."/></para>')


def test_unknown_elements_are_counted_and_their_words_kept() -> None:
    body = normalized("<text>a <blink>b</blink></text><codify>c</codify>")
    assert body.markdown == "a b\n\nc\n"
    assert body.warnings == (
        "unknown element <blink> (1×); its text is kept",
        "unknown element <codify> (1×); its text is kept",
    )


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", MalformedError, "empty"),
        (b"<html><body>Not found</body></html>", WrongContentError, "an HTML page"),
        (b"404: Not Found", WrongContentError, "does not begin with a tag"),
        ((HERE / "section.xml").read_bytes()[:900], MalformedError, "not well-formed"),
        (f'{DECLARATION}<library xmlns="{NAMESPACE}"/>'.encode(), WrongContentError, "<library>"),
        (b"<rss><text>x</text></rss>", WrongContentError, "<rss>"),
        (b"<!-- x -->", WrongContentError, "<passages>"),
        (f"{DECLARATION}<section/>".encode(), WrongContentError, "contains no text"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><section>&b;</section>', MalformedError, "entities"),
        (b"<para>" * 200 + b"x" + b"</para>" * 200, MalformedError, "nested more than 100"),
    ],
)
def test_what_is_no_section_is_named(data: bytes, error: type[ParseError], cause: str) -> None:
    with pytest.raises(error, match=cause):
        DcXml().to_markdown(data)


def test_table_of_endless_spans_stays_small() -> None:
    row = "<tr><td colspan='1000000' rowspan='1000000'>x</td></tr>"
    written = markdown(f"<text><table>{row * 300}</table></text>")
    assert written.count("x") == 300
    assert len(written) < 300_000

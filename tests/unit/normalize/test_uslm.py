"""The Code, public laws and bills in United States Legislative Markup as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from rapidfuzz.distance import LCSseq
from tests.sources.golden import assert_golden

from fonds.errors import FondsError, MalformedError, WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.registry import Normalizer
from fonds.normalize.uslm import Uslm, read_uslm

FIXTURES = Path(__file__).parent / "fixtures" / "uslm"
HOUSE = "http://xml.house.gov/schemas/uslm/1.0"
GPO = "http://schemas.gpo.gov/xml/uslm"
WORD = re.compile(r"[^\W_]+")
LEVEL = re.compile(
    r"(?:sub)?(?:title|division|part|chapter|article)s?\b|rule\b|appendix\b|form\b", re.IGNORECASE
)


def section(inside: str) -> NormalizedBody:
    xml = f'<section xmlns="{HOUSE}" identifier="/us/usc/t99/s1">{inside}</section>'
    return Uslm().to_markdown(xml.encode())


def law(inside: str) -> NormalizedBody:
    xml = f'<pLaw xmlns="{GPO}"><main>{inside}</main></pLaw>'
    return Uslm().to_markdown(xml.encode())


def section_labels(root: Any) -> list[str]:
    """The numbers of all sections that are not quoted, read from the XML alone."""
    found = root.xpath(
        "//*[local-name()='section'][not(ancestor::*[local-name()='quotedContent'])]"
    )
    numbers = [number for each in found for number in each.iterchildren("{*}num")]
    return [_bare(" ".join("".join(number.itertext()).split())) for number in numbers]


def headed_sections(body: NormalizedBody) -> list[str]:
    """The labels of headings that are sections and not the levels above them."""
    labels = [heading.section for heading in body.headings if heading.section]
    return [_bare(label) for label in labels if not LEVEL.match(label)]


def fidelity(root: Any, body: NormalizedBody) -> float:
    """The share of the source's words that are found in order."""
    source = _words(list(_texts(root)))
    return float(LCSseq.similarity(source, _words([body.markdown])) / max(1, len(source)))


def _bare(label: str) -> str:
    return re.sub(r"^[^\w§]+|[^\w)]+$", "", label)


def _words(texts: list[str]) -> list[str]:
    return WORD.findall("\n".join(texts).lower())


def _texts(element: Any) -> Iterator[str]:
    if not isinstance(element.tag, str) or etree.QName(element).localname in {"meta", "amendMeta"}:
        return
    yield element.text or ""
    for child in element:
        yield from _texts(child)
        yield child.tail or ""


@pytest.mark.parametrize("name", ["title", "law"])
def test_a_whole_document_reads_as_reviewed(name: str) -> None:
    body = Uslm().to_markdown((FIXTURES / f"{name}.xml").read_bytes())
    assert_golden(body.markdown, FIXTURES / f"{name}.md")
    assert body.warnings == ()
    for heading in body.headings:
        line = body.markdown[heading.offset :].splitlines()[0]
        assert line.startswith("#" * heading.level + " ")


def test_it_is_a_normalizer() -> None:
    assert isinstance(Uslm(), Normalizer)
    assert Uslm().label == "uslm_v1@1.2.2"


@pytest.mark.parametrize("name", ["title", "law"])
def test_every_word_of_a_fixture_is_kept_in_order(name: str) -> None:
    data = (FIXTURES / f"{name}.xml").read_bytes()
    root, _ = read_uslm(data)
    assert fidelity(root, Uslm().to_markdown(data)) == 1.0


@pytest.mark.parametrize("name", ["title", "law"])
def test_sections_of_a_fixture_are_those_of_its_xml(name: str) -> None:
    data = (FIXTURES / f"{name}.xml").read_bytes()
    root, _ = read_uslm(data)
    expected = section_labels(root)
    assert len(expected) > 1
    assert headed_sections(Uslm().to_markdown(data)) == expected


def test_a_section_alone_is_a_heading_with_its_label() -> None:
    body = section(
        '<num value="1396a">§\u202f1396a.</num><heading> State plans</heading>'
        "<content>Text.</content>"
    )
    heading = body.headings[0]
    assert (heading.level, heading.section, heading.offset) == (1, "§ 1396a", 0)
    assert heading.text == "§ 1396a. State plans"
    assert body.markdown == "# § 1396a. State plans\n\nText.\n"


def test_a_repealed_range_keeps_its_brackets_in_the_text_only() -> None:
    body = section("<num>[§§ 202 to 204.</num><heading> Repealed. Act 1990]</heading>")
    assert body.headings[0].section == "§§ 202 to 204"
    assert body.markdown == "# [§§ 202 to 204. Repealed. Act 1990]\n"


def test_labels_stay_with_their_text_and_deeper_levels_are_indented() -> None:
    body = section(
        "<subsection><num>(a)</num><heading> Scope.—</heading><chapeau>Each—</chapeau>"
        "<paragraph><num>(1)</num><content> first; or</content></paragraph>"
        "<paragraph><num>(2)</num><content><p>second,</p><p>with more,</p></content></paragraph>"
        "<continuation>counts.</continuation></subsection>"
    )
    assert body.markdown.splitlines()[::2] == [
        "(a) **Scope.—** Each—",
        "\u2003(1) first; or",
        "\u2003(2) second,",
        "\u2003with more,",
        "counts.",
    ]


def test_quoted_sections_are_a_block_quote_and_no_headings() -> None:
    body = law(
        "<section><num>SEC. 2. </num><heading>CHANGE.</heading><content>Add the following:"
        "<quotedContent><section><num>“SEC. 9. </num><heading>NEW.</heading><content>“Words.”"
        '</content></section></quotedContent><inline role="after-quoted-block">.</inline>'
        "</content></section>"
    )
    assert [heading.section for heading in body.headings] == ["SEC. 2"]
    assert body.markdown.endswith("Add the following:\n\n> **“SEC. 9. NEW.**\n>\n> “Words.”.\n")


def test_text_after_a_block_quote_is_a_paragraph_of_its_own() -> None:
    body = law("<p>Say:<quotedContent><p>“One.”</p></quotedContent>; and then act.</p>")
    assert body.markdown == "Say:\n\n> “One.”\n\n; and then act.\n"


def test_a_quotation_within_a_sentence_stays_there() -> None:
    body = section(
        "<content>It says: <quotedContent>“This Act.”</quotedContent> So be it.</content>"
    )
    assert body.markdown == "It says: “This Act.” So be it.\n"


CALLED_NOTE = (
    '<ref class="footnoteRef" idref="f{0}">1</ref><note type="footnote" id="f{0}">'
    "<num>1</num> So in <i>original</i>.</note>"
)


def test_a_footnote_in_mid_sentence_stays_there_with_its_number() -> None:
    body = section(f"<content>of the {CALLED_NOTE.format(1)} law.</content>")
    assert body.markdown == "of the <sup>1</sup> *[1 So in original.]* law.\n"


def test_a_footnote_at_the_end_of_its_block_is_linked_and_follows_it() -> None:
    body = section(
        f"<content>the law{CALLED_NOTE.format(1)}.</content><p>and{CALLED_NOTE.format(2)}.</p>"
    )
    assert body.markdown == (
        "the law[^1].\n\n[^1]: So in *original*.\n\nand[^1-2].\n\n[^1-2]: So in *original*.\n"
    )


def test_a_footnote_before_text_that_runs_in_stays_there() -> None:
    body = section(
        f"<subsection><num>(a){CALLED_NOTE.format(1)}</num><heading>Scope{CALLED_NOTE.format(2)}"
        "</heading><content>All.</content></subsection>"
    )
    assert body.markdown == (
        "(a)<sup>1</sup> *[1 So in original.]* **Scope<sup>1</sup> [1 So in original.]** All.\n"
    )


def test_a_footnote_in_the_heading_of_a_section_follows_it() -> None:
    body = section(f"<num>§ 1.</num><heading>One {CALLED_NOTE.format(1)} law</heading>")
    assert body.markdown == "# § 1. One [^1] law\n\n[^1]: So in *original*.\n"
    assert body.headings[0].text == "§ 1. One law"


def test_a_footnote_in_a_cell_stays_there_and_is_called_by_its_number() -> None:
    body = law(
        '<table xmlns="http://www.w3.org/1999/xhtml"><thead><tr><th>Code '
        f'<ref xmlns="{GPO}" id="c" idref="f">b</ref></th></tr></thead><tfoot><tr><td>'
        f'<footnote xmlns="{GPO}" id="f"><content><ref idref="c">b</ref> NAICS.</content>'
        "</footnote></td></tr></tfoot><tbody><tr><td>22</td></tr></tbody></table>"
    )
    assert body.markdown == "| Code <sup>b</sup> |\n| --- |\n| *[b NAICS.]* |\n| 22 |\n"


def test_a_register_footnote_is_linked_by_the_references_of_call_and_note() -> None:
    body = law(
        '<p>the share <ref id="c" idref="f">50</ref> was</p>'
        '<footnote id="f"><content><p> <ref idref="c">50</ref> Of all.</p></content></footnote>'
        "<p>More.</p>"
    )
    assert body.markdown == "the share [^50] was\n\n[^50]: Of all.\n\nMore.\n"


def test_a_footnote_without_a_number_has_one_label_at_both_ends() -> None:
    body = law("<p>Text.</p><footnote><p>Note.</p></footnote><p>More.</p>")
    assert body.markdown == "Text.[^\\*]\n\n[^\\*]: Note.\n\nMore.\n"


def test_gpo_typography_is_read_from_the_class() -> None:
    body = law(
        '<p><inline class="-gpo-grid-0-3">See</inline> SO<inline class="-gpo-grid-5-2">2</inline>, '
        '6<inline role="fraction">1/2</inline>″</p>'
    )
    assert body.markdown == "*See* SO<sub>2</sub>, 6 1/2″\n"


def test_a_compilations_footnote_is_linked_from_the_raised_number_before_it() -> None:
    body = law(
        "<section><content>resources<sup>3</sup> of 10<sup>6</sup></content>"
        '<footnote id="x"><sup>3</sup><p>Probably geothermal.</p></footnote></section>'
    )
    assert body.markdown == ("resources[^3] of 10<sup>6</sup>\n\n[^3]: Probably geothermal.\n")


def test_a_footnote_nobody_refers_to_is_linked_from_where_it_stands() -> None:
    body = law(
        "<section><content>Text.</content><footnote><sup>1</sup><p>Note.</p></footnote></section>"
    )
    assert body.markdown == "Text.[^1]\n\n[^1]: Note.\n"


def test_inserted_and_deleted_text_is_distinguishable() -> None:
    body = law(
        "<section><content><deletedText>This</deletedText><addedText>That</addedText> applies."
        '</content><subsection changed="deleted"><num>(a)</num><content>Old.</content></subsection>'
        '<subsection changed="added"><num>(a)</num><content>New.</content></subsection></section>'
    )
    assert body.markdown == (
        "<del>This</del><ins>That</ins> applies.\n\n<del>(a) Old.</del>\n\n<ins>(a) New.</ins>\n"
    )


def test_inserted_contents_are_marked_cell_by_cell() -> None:
    item = "<referenceItem><designator>Sec. 1.</designator><label>One.</label></referenceItem>"
    body = law(f'<toc changed="added">{item}</toc>')
    assert body.markdown.endswith("| <ins>Sec. 1.</ins> | <ins>One.</ins> |\n")


def test_page_marks_point_into_the_sentence_and_their_names_are_not_seen() -> None:
    body = law("<content>the Committee on <page>128 STAT. 1197</page>Science shall</content>")
    assert body.markdown == "the Committee on <!-- 128 STAT. 1197 -->Science shall\n"
    assert [(mark.offset, mark.page) for mark in body.pages] == [(17, "128 STAT. 1197")]


def test_a_page_that_ends_before_a_heading_leaves_it_a_heading() -> None:
    body = law(
        "<p>Text.</p><page>1 STAT. 2</page>"
        "<title><num>TITLE I—</num><heading>LAMPS</heading><p>More.</p></title>"
    )
    (heading,) = body.headings
    assert body.markdown[heading.offset :].startswith("## <!-- 1 STAT. 2 -->TITLE I—LAMPS\n")
    assert heading.text == "TITLE I—LAMPS"


def test_a_page_before_all_text_marks_its_start() -> None:
    body = law("<page>1 STAT. 1</page><p>Text.</p>")
    assert [(mark.offset, mark.page) for mark in body.pages] == [(0, "1 STAT. 1")]


def test_sidenotes_stay_in_place_and_are_set_apart() -> None:
    body = law(
        "<subsection><num>(a)</num><sidenote><p>Deadline.</p><p>Reports.</p></sidenote>"
        "<heading>Duty.—</heading><content>Act.</content></subsection>"
    )
    assert body.markdown == "(a) *[Deadline. Reports.]* **Duty.—** Act.\n"


def test_a_table_keeps_cells_and_is_kept_whole_where_cells_span() -> None:
    body = section(
        '<table xmlns="http://www.w3.org/1999/xhtml"><thead><tr><th colspan="2"><p>Pay</p></th>'
        "</tr><tr><th>Grade</th><th>Rate</th></tr></thead><tbody><tr><td rowspan='2'>E|1</td>"
        "<td>1</td></tr><tr><td><p>2</p><p>more</p></td></tr></tbody></table>"
    )
    assert body.markdown == (
        "**Pay**\n\n| Grade | Rate |\n| --- | --- |\n| E\\|1 | 1 |\n|  | 2<br>more |\n"
    )
    assert [artifact.kind for artifact in body.artifacts] == ["table"]


def test_headings_of_notes_stand_below_their_section() -> None:
    body = section(
        "<num>§ 1.</num><heading>One</heading><notes>"
        '<note role="crossHeading"><heading><b>Editorial Notes</b></heading></note>'
        '<note topic="amendments"><heading>Amendments</heading><p>2020—Words.</p></note></notes>'
    )
    assert [(each.level, each.text) for each in body.headings] == [
        (1, "§ 1. One"),
        (2, "Editorial Notes"),
        (3, "Amendments"),
    ]


def test_text_that_markdown_would_read_is_escaped() -> None:
    body = section("<p>1. not a list</p><p># none</p><p>a * b &lt;i&gt;</p>")
    assert body.markdown == "1\\. not a list\n\n\\# none\n\na \\* b \\<i>\n"


def test_emphasis_is_dropped_where_markdown_could_not_read_it() -> None:
    body = section("<p><i>Provided</i>, re<i>.act</i>ed <b> bold </b>word</p>")
    assert body.markdown == "*Provided*, re.acted **bold** word\n"


def test_an_unknown_element_may_begin_a_sentence() -> None:
    body = section("<content><odd>The Secretary</odd> shall act.</content>")
    assert body.markdown == "The Secretary shall act.\n"
    body = section("<content><p><odd>The</odd> <odd>Secretary</odd></p></content>")
    assert body.markdown == "The Secretary\n"


def test_unknown_elements_keep_their_text_and_are_named_once() -> None:
    body = section("<p>a <odd>b</odd> <odd>c</odd></p>")
    assert body.markdown == "a b c\n"
    assert body.warnings == ("unknown element <odd> (2×); its text is kept",)


def test_nul_characters_are_removed_and_counted() -> None:
    body = Uslm().to_markdown(f'<section xmlns="{HOUSE}"><p>a\0b</p></section>'.encode())
    assert body.markdown == "ab\n"
    assert body.warnings == ("1 NUL characters removed",)


def test_one_section_of_a_title_can_be_asked_for() -> None:
    data = (FIXTURES / "title.xml").read_bytes()
    body = Uslm().to_markdown(data, "/us/usc/t99/s2")
    assert headed_sections(body) == ["§ 2"]
    with pytest.raises(WrongContentError, match="no section"):
        Uslm().to_markdown(data, "/us/usc/t99/s404")


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", MalformedError, "empty"),
        (b"<!DOCTYPE html><html/>", WrongContentError, "HTML"),
        (b"%PDF-1.7", WrongContentError, "tag"),
        (b"<bill/>", WrongContentError, "<bill>"),
        (f'<section xmlns="{HOUSE}"><p>cut'.encode(), MalformedError, "well-formed"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', MalformedError, "entities"),
        (b'<?xml version="1.0" encoding="utf-7"?><a/>', MalformedError, "encoding"),
        (f'<section xmlns="{HOUSE}">{"<p>" * 500}{"</p>" * 500}</section>'.encode(),
         MalformedError, "nested"),
    ],
)  # fmt: skip
def test_what_is_no_uslm_is_refused_by_cause(
    data: bytes, error: type[FondsError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        Uslm().to_markdown(data)


@pytest.mark.parametrize("name", ["p", "quotedContent", "footnote", "subsection", "table", "odd"])
def test_deep_nesting_is_refused_whatever_nests(name: str) -> None:
    nested = f"<{name}>" * 900 + "x" + f"</{name}>" * 900
    with pytest.raises(MalformedError, match="nested"):
        law(nested)


def test_groups_of_contents_may_nest_without_end() -> None:
    nested = "<groupItem>" * 900 + "<label>x</label>" + "</groupItem>" * 900
    assert law(f"<toc>{nested}</toc>").markdown == "|  |\n| --- |\n| x |\n"


@pytest.mark.parametrize(
    "element",
    [
        "<odd>a</odd>",
        "<odd/><name/>",
        "<page>1</page><p/>",
        "<footnote/>",
        "<sup>1</sup><footnote/>",
    ],
)
def test_a_long_run_of_small_elements_takes_no_more_than_its_length(element: str) -> None:
    body = law(f"<p>b{element * 20_000}</p>" + element * 20_000)
    assert body.markdown.startswith("b")


def test_absurd_spans_do_not_exhaust_the_memory() -> None:
    cell = '<td colspan="999999" rowspan="999999">x</td>'
    body = section(
        f'<table xmlns="http://www.w3.org/1999/xhtml"><tr>{cell}</tr><tr>{cell}</tr></table>'
    )
    assert len(body.markdown) < 5_000


@settings(max_examples=40)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    source = (FIXTURES / "law.xml").read_bytes()
    start = data.draw(st.integers(0, len(source)))
    length = data.draw(st.integers(0, 200))
    damaged = source[:start] + data.draw(st.binary(max_size=20)) + source[start + length :]
    try:
        body = Uslm().to_markdown(damaged)
    except FondsError:
        return
    assert all(body.markdown[each.offset] == "#" for each in body.headings)


# Real files ---------------------------------------------------------------------------------


def uslm_files(folder: Path) -> list[Path]:
    """Files in one of the two namespaces, small enough for a test."""
    files = [each for each in sorted(folder.rglob("*")) if each.suffix.lower() == ".xml"]
    return [
        each
        for each in files
        if each.stat().st_size < 400_000
        and re.search(rb"uslm(/1\.0)?\"", each.read_bytes()[:2_000])
    ]


@pytest.mark.parametrize(
    "archive",
    [
        "codes/usc-mono",
        "codes/usc-frag",
        "codes/uslm-samples",
        "federal/usc",
        "federal/public_laws",
        "federal/bills",
    ],
)
def test_real_files_keep_every_word_and_every_section(
    archive: str, corpus: Callable[[str], Path]
) -> None:
    files = uslm_files(corpus(archive))
    assert files
    for path in files[:: max(1, len(files) // 12)]:
        data = path.read_bytes()
        root, _ = read_uslm(data)
        body = Uslm().to_markdown(data)
        assert headed_sections(body) == section_labels(root), path
        assert fidelity(root, body) >= 0.999, path

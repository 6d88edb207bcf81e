from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from rapidfuzz.distance import LCSseq
from tests.sources.golden import assert_golden

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.ecfr import EcfrXml
from fonds.normalize.registry import Normalizer

FIXTURES = Path(__file__).parent / "fixtures" / "ecfr_xml"
WORD = re.compile(r"[^\W_]+")


def normalized(inside: str, root: str = "DIV8", attributes: str = "") -> NormalizedBody:
    return EcfrXml().to_markdown(f"<{root} {attributes}>{inside}</{root}>".encode())


def markdown(inside: str, root: str = "DIV8") -> str:
    return normalized(inside, root).markdown


def outline(body: NormalizedBody) -> list[tuple[int, str | None]]:
    return [(heading.level, heading.section) for heading in body.headings]


def test_it_is_a_normalizer_with_a_label() -> None:
    assert isinstance(EcfrXml(), Normalizer)
    assert EcfrXml().label == "ecfr_xml_v1@1.2.0"


@pytest.mark.parametrize("name", ["part", "granule"])
def test_a_part_reads_as_a_person_reviewed_it(name: str) -> None:
    body = EcfrXml().to_markdown((FIXTURES / f"{name}.xml").read_bytes())
    assert body.warnings == ()
    assert_golden(body.markdown, FIXTURES / f"{name}.md")
    for heading in body.headings:
        line = body.markdown[heading.offset :].split("\n", 1)[0]
        assert line.startswith("#" * heading.level + " ")


def test_an_accent_behind_a_line_break_is_put_on_its_letter() -> None:
    text = '<P>where <I>x\n<AC T="8"/></I> is the mean and y\n<AC T="b"/>, its rate</P>'
    assert markdown(text) == "where *x\u0305* is the mean and ẏ, its rate\n"


def test_a_part_from_the_api_has_its_outline_and_labels() -> None:
    body = EcfrXml().to_markdown((FIXTURES / "part.xml").read_bytes())
    assert outline(body) == [
        (1, "PART 902"),
        (2, "Subpart A"),
        (3, None),
        (4, "§ 902.1"),
        (4, "§§ 902.2-902.4"),
        (2, "Subpart B"),
        (4, "§ 902.112b"),
        (5, None),
        (2, "Appendix A to Part 902"),
        (3, "I"),
    ]


def test_an_annual_part_has_the_outline_of_the_api() -> None:
    body = EcfrXml().to_markdown((FIXTURES / "granule.xml").read_bytes())
    assert outline(body) == [
        (1, "PART 902"),
        (2, "Subpart A"),
        (3, None),
        (4, "§ 902.1"),
        (4, "§ 902.1"),
        (4, "§§ 902.2-902.4"),
        (2, "Subpart B"),
        (2, "Appendix A to Part 902"),
        (3, None),
    ]
    assert [mark.page for mark in body.pages] == ["17", "18", "19"]


def test_figures_and_spanning_tables_are_kept_beside_the_text() -> None:
    body = EcfrXml().to_markdown((FIXTURES / "part.xml").read_bytes())
    kinds = [artifact.kind for artifact in body.artifacts]
    assert kinds == ["table", "equation", "graphic"]
    table, equation, graphic = body.artifacts
    assert body.markdown[table.offset :].startswith("| Lamp |")
    assert 'colspan="2"' in table.content
    assert equation.content == "ER08JA15.001"
    assert graphic.content == "/graphics/er08ja15.002.gif"


def test_a_whole_title_fits_nine_kinds_of_division_into_six_levels() -> None:
    inner = (
        '<DIV8 N="1.1"><HEAD>§ 1.1 A.</HEAD></DIV8><DIV9><HEAD>Appendix A to Part 1</HEAD></DIV9>'
    )
    for number, head in (
        (7, "Group"),
        (6, "Subpart A—B"),
        (5, "PART 1—C"),
        (4, "SUBCHAPTER D"),
        (3, "CHAPTER I—E"),
        (2, "Subtitle F"),
        (1, "Title 1—G"),
    ):
        inner = f"<DIV{number}><HEAD>{head}</HEAD>{inner}</DIV{number}>"
    body = normalized(f"<AMDDATE>Jan. 8, 2015</AMDDATE>{inner}", "ECFR")
    assert [heading.level for heading in body.headings] == [1, 2, 3, 4, 5, 6, 6, 6, 6]
    assert body.markdown.startswith("Jan. 8, 2015\n\n# Title 1—G\n")


def test_chapters_and_subchapters_of_a_title_have_levels_of_their_own() -> None:
    part = '<DIV5><HEAD>PART 1—C</HEAD><DIV8 N="1.1"><HEAD>§ 1.1 A.</HEAD></DIV8></DIV5>'
    chapter = "<DIV1><HEAD>Title 1—G</HEAD><DIV3><HEAD>CHAPTER I—E</HEAD>{}</DIV3></DIV1>"
    with_subchapter = chapter.format(f"<DIV4><HEAD>SUBCHAPTER A—D</HEAD>{part}</DIV4>")
    body = normalized(with_subchapter, "ECFR")
    assert [heading.level for heading in body.headings] == [1, 2, 3, 4, 6]
    # Without subchapters, levels are as they were.
    body = normalized(chapter.format(part), "ECFR")
    assert [heading.level for heading in body.headings] == [1, 2, 3, 6]


def test_bulk_files_keep_their_contents_but_not_their_header() -> None:
    body = normalized(
        "<HEADER><FILEDESC><TITLESTMT><TITLE>Title 1: Meta</TITLE></TITLESTMT></FILEDESC></HEADER>"
        "<TEXT><BODY><ECFRBRWS><AMDDATE>Jan. 8, 2015(fm)</AMDDATE>"
        '<DIV1 N="1" NODE="1:1" TYPE="TITLE"><HEAD>Title 1—General--Volume 1</HEAD>'
        "<CFRTOC><PTHD>Part</PTHD><CHAPTI><SUBJECT>chapter i—Rules</SUBJECT><PG>1</PG></CHAPTI>"
        '</CFRTOC><DIV8 N="§ 1.1" NODE="1:1.0.1" TYPE="SECTION"><HEAD>§ 1.1   Words.</HEAD>'
        "<P>Text.</P></DIV8></DIV1></ECFRBRWS></BODY></TEXT>",
        "DLPSTEXTCLASS",
    )
    assert body.warnings == ()
    assert "Meta" not in body.markdown
    assert "chapter i—Rules" in body.markdown
    assert outline(body) == [(1, "Title 1"), (6, "§ 1.1")]


def test_an_annual_volume_keeps_its_front_matter() -> None:
    body = normalized(
        "<FMTR><TITLEPG><TITLENUM>Title 51</TITLENUM><REVISED>Revised Jan. 1</REVISED></TITLEPG>"
        "</FMTR>"
        "<TITLE><CFRTITLE><TITLEHD><HD SOURCE='HED'>Title 51—Lamps</HD></TITLEHD></CFRTITLE>"
        "<CHAPTER><TOC><TOCHD><HD SOURCE='HED'>CHAPTER I—OIL</HD></TOCHD></TOC>"
        "<PART><HD SOURCE='HED'>PART 1—WICKS</HD><SECTION><SECTNO>§ 1.1</SECTNO>"
        "<SUBJECT>Use.</SUBJECT><P>Trim.</P></SECTION></PART></CHAPTER></TITLE>",
        "CFRDOC",
    )
    assert body.warnings == ()
    assert body.markdown.startswith("Title 51\n\nRevised Jan. 1\n\n# Title 51—Lamps\n")
    assert outline(body) == [(1, "Title 51"), (3, "PART 1"), (6, "§ 1.1")]


@pytest.mark.parametrize(
    ("number", "head", "label"),
    [
        ("60.112b", "§ 60.112b Rules.", "§ 60.112b"),
        ("§ 60.112b", "§ 60.112b   Rules.", "§ 60.112b"),
        ("1.1-1.3", "§§ 1.1-1.3 [Reserved]", "§§ 1.1-1.3"),
        ("§§ 1.1-1.3", "§§ 1.1-1.3   [Reserved]", "§§ 1.1-1.3"),
        ("", "§§ 1.1 through 1.3 [Reserved]", "§§ 1.1 through 1.3"),
        ("", "§ 1.1. Rules", "§ 1.1"),
        ("19-8.1", "Sec. 19-8.1 Accounts.", "Sec. 19-8.1"),
        ("102-3.5", "What is this?", "§ 102-3.5"),
        ("Table 1", "Lamps by name", "Table 1"),
        ("A&amp;amp;B", "Lamps", "A&B"),
        ("", "Only a name", None),
        ("9" * 1_000_000, "§ 1.2 Rules.", "§ 1.2"),
    ],
)
def test_a_section_is_labelled_as_it_is_printed(number: str, head: str, label: str | None) -> None:
    body = normalized(f"<HEAD>{head}</HEAD><P>Text.</P>", attributes=f'N="{number}"')
    assert outline(body) == [(1, label)]


def test_a_section_without_a_head_is_called_by_its_number() -> None:
    body = normalized("<P>Text.</P>", attributes='N="1.5"')
    assert body.markdown == "# § 1.5\n\nText.\n"


def test_a_section_of_the_annual_edition_is_read_by_itself() -> None:
    section = "<SECTION><SECTNO>§ 1.1</SECTNO><SUBJECT>Use.</SUBJECT><P>Trim.</P></SECTION>"
    body = EcfrXml().to_markdown(section.encode())
    assert body.markdown == "# § 1.1 Use.\n\nTrim.\n"
    assert outline(body) == [(1, "§ 1.1")]


def test_elements_cut_out_of_a_part_are_read_side_by_side() -> None:
    data = (
        b"<AUTH><HED>Authority:</HED><PSPACE>5 U.S.C. 552.</PSPACE></AUTH>\n"
        b'<DIV width="100%"><TABLE><TR><TD>a</TD></TR></TABLE></DIV><EDNOTE><P>Note.</P></EDNOTE>'
    )
    table = "|  |\n| --- |\n| a |"
    expected = f"**Authority:** 5 U.S.C. 552.\n\n{table}\n\nNote.\n"
    assert EcfrXml().to_markdown(data).markdown == expected
    assert EcfrXml().to_markdown(b"\n" + data[data.index(b"<DIV") :]).markdown.startswith(table)


def test_a_footnote_named_twice_does_not_shift_those_of_later_sections() -> None:
    one = "<P>A<SU>1</SU><FTREF/> b<SU>1</SU><FTREF/>.</P><FTNT><P><SU>1</SU> N.</P></FTNT>"
    two = "<P>C<SU>1</SU><FTREF/>.</P><FTNT><P><SU>1</SU> M.</P></FTNT>"
    body = normalized(f"<DIV8>{one}</DIV8><DIV8>{two}</DIV8>", "DIV5")
    assert body.markdown == "A[^1] b[^1].\n\n[^1]: N.\n\nC[^1-2].\n\n[^1-2]: M.\n"
    assert body.warnings == ()


def test_a_note_at_the_end_of_the_part_is_found_from_its_sections() -> None:
    body = normalized(
        "<DIV8><P>A<SU>*</SU><FTREF/>.</P></DIV8><FTNT><P><SU>*</SU> N.</P></FTNT>", "DIV5"
    )
    assert body.markdown == "A[^*].\n\n[^*]: N.\n"


def test_two_notes_of_one_sign_in_a_section_go_with_their_references_in_order() -> None:
    pair = "<P>A<SU>1</SU><FTREF/>.</P><FTNT><P><SU>1</SU> N.</P></FTNT>"
    assert markdown(pair * 2) == "A[^1].\n\n[^1]: N.\n\nA[^1-2].\n\n[^1-2]: N.\n"


def test_a_broken_link_between_reference_and_note_is_a_warning() -> None:
    body = normalized("<P>A<SU>1</SU><FTREF/> m<SU>3</SU>.</P><FTNT><P><SU>2</SU> N.</P></FTNT>")
    assert body.markdown == "A[^1] m<sup>3</sup>.\n\n[^2]: N.\n"
    assert body.warnings == ("footnote 1: no note", "footnote 2: no reference")


@pytest.mark.parametrize("label", ["(a)", "(1)", "(ii)", "(A)(1)"])
def test_enumerations_keep_their_labels(label: str) -> None:
    assert markdown(f"<P>{label} Text.</P>") == f"{label} Text.\n"


def test_inserted_and_deleted_text_stays_distinguishable() -> None:
    assert markdown("<P>A <ins>b</ins> <DEL>c</DEL>.</P>") == "A <ins>b</ins> <del>c</del>.\n"


def test_a_table_without_heads_has_an_empty_head() -> None:
    table = "<table><tr><td>a</td><td><p>b</p><p>c</p></td></tr><tr><td>d</td></tr></table>"
    assert markdown(table) == "|  |  |\n| --- | --- |\n| a | b c |\n| d |  |\n"


def test_cells_that_reach_down_leave_room_in_the_rows_below() -> None:
    table = (
        "<TABLE><TR><TH>A</TH><TH>B</TH></TR><TR><TD rowspan='2'>1</TD><TD>2</TD></TR>"
        "<TR><TD>3</TD></TR><TR><TD>4</TD><TD>5</TD></TR></TABLE>"
    )
    lines = markdown(table).splitlines()
    assert lines[2:] == ["| 1 | 2 |", "|  | 3 |", "| 4 | 5 |"]


def test_text_between_the_cells_of_a_table_is_not_lost() -> None:
    html = "<TABLE>one<TR>two<TD>a</TD>three</TR>four</TABLE>"
    assert markdown(html).endswith("| a |\n\none four two three\n")
    gpo = "<GPOTABLE><ROW><ENT>a</ENT>lost</ROW></GPOTABLE>"
    assert markdown(gpo).endswith("| a |\n\nlost\n")


def test_a_table_in_a_cell_becomes_its_words() -> None:
    table = "<TABLE><TR><TD>a <TABLE><TR><TD>b</TD><TD>c</TD></TR></TABLE> d</TD></TR></TABLE>"
    assert "| a b c d |" in markdown(table)


def test_an_equation_in_mathml_keeps_its_letters_and_its_markup() -> None:
    body = normalized("<P>So <math><mi>E</mi><mo>=</mo><mi>m</mi></math>.</P>")
    assert body.markdown == "So E=m.\n"
    assert body.artifacts[0].kind == "equation"
    assert body.artifacts[0].content.startswith("<math><mi>E</mi>")


def test_an_embedded_picture_is_named_without_its_bytes() -> None:
    body = normalized('<P>See <img src="data:image/png;base64,AAAA"/>.</P>')
    assert body.markdown == "See [Graphic].\n"
    assert body.artifacts[0].content == "data:image/png;base64,AAAA"


def test_an_unknown_element_is_named_once_and_keeps_its_text() -> None:
    body = normalized("<P>A <odd>b</odd> c <odd>d</odd>.</P><ODD2>e</ODD2><title>f</title>")
    assert body.markdown == "A b c d.\n\ne\n\nf\n"
    assert body.warnings == (
        "unknown element <ODD2> (1×); its text is kept",
        "unknown element <odd> (2×); its text is kept",
        "unknown element <title> (1×); its text is kept",
    )


def test_entities_of_an_external_doctype_are_read_without_it() -> None:
    data = b'<!DOCTYPE ECFR SYSTEM "http://127.0.0.1:9/x.dtd"><ECFR><P>a&sect;b &amp; c</P></ECFR>'
    assert EcfrXml().to_markdown(data).markdown == "a§b & c\n"


def test_nul_characters_are_removed_and_counted() -> None:
    body = EcfrXml().to_markdown(b"<DIV8><P>a\0b\0</P></DIV8>")
    assert body.markdown == "ab\n"
    assert body.warnings == ("2 NUL characters removed",)


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", MalformedError, "empty"),
        (b" \n", MalformedError, "empty"),
        (b"<DIV8><P>cut", MalformedError, "not well-formed"),
        (b"<ECFR></ECFR>", WrongContentError, "no text"),
        (b"<!DOCTYPE html><html></html>", WrongContentError, "HTML page"),
        (b'<div class="x">oops</div>', WrongContentError, "HTML page"),
        (b"%PDF-1.7", WrongContentError, "does not begin with a tag"),
        (b"<RULE><P>a</P></RULE>", WrongContentError, "<RULE>"),
        (b'<uscDoc xmlns="http://x"/>', WrongContentError, "uscDoc"),
        (b'<?xml version="1.0" encoding="UTF-7"?><ECFR/>', MalformedError, "encoding"),
        (b'<!DOCTYPE E [<!ENTITY a "b">]><ECFR>&a;</ECFR>', MalformedError, "entities"),
        (b"<DIV8>" + b"<P>" * 50_000, MalformedError, "not well-formed"),
        (b"<DIV8>" + b"<E>" * 500 + b"a" + b"</E>" * 500 + b"</DIV8>", MalformedError, "nested"),
        (
            b"<DIV8><GPOTABLE><BOXHD>" + b"<CHED/>" * 301 + b"</BOXHD></GPOTABLE></DIV8>",
            MalformedError,
            "column heads",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_cause(
    data: bytes, error: type[ParseError], cause: str
) -> None:
    with pytest.raises(error, match=re.escape(cause)):
        EcfrXml().to_markdown(data)


@pytest.mark.parametrize("tag", ["DIV8", "EXTRACT", "CONTENTS", "TABLE", "REVTXT", "FTNT", "I"])
def test_deep_nesting_is_refused_before_python_gives_up(tag: str) -> None:
    data = f"<DIV5>{f'<{tag}>' * 200}a{f'</{tag}>' * 200}</DIV5>".encode()
    with pytest.raises(MalformedError, match="nested"):
        EcfrXml().to_markdown(data)


def test_a_wide_table_of_many_short_rows_is_not_padded() -> None:
    wide = "<TR>" + "<TD>w</TD>" * 900 + "</TR>"
    body = normalized(f"<TABLE>{wide}{'<TR><TD>s</TD></TR>' * 900}</TABLE>")
    assert body.markdown.endswith("\n| s |\n")
    assert len(body.markdown) < 50_000


def test_tables_within_tables_and_equations_within_equations_are_kept_once() -> None:
    row = '<TR><TD colspan="2">a</TD></TR>'
    body = normalized(f"<TABLE>{row}<TABLE>{row}<TABLE>{row}</TABLE></TABLE></TABLE>")
    assert [artifact.kind for artifact in body.artifacts] == ["table"]
    body = normalized("<P>x <MATH><mrow><MATH><mi>y</mi></MATH></mrow></MATH></P>")
    assert [artifact.kind for artifact in body.artifacts] == ["equation"]


@settings(max_examples=60)
@given(
    st.sampled_from(["part", "granule"]),
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=6), st.integers(0, 40)), max_size=4),
)
def test_damaged_files_are_read_or_refused(
    name: str, damages: list[tuple[float, bytes, int]]
) -> None:
    data = (FIXTURES / f"{name}.xml").read_bytes()
    for where, put, gone in damages:
        at = int(where * len(data))
        data = data[:at] + put + data[at + gone :]
    try:
        body = EcfrXml().to_markdown(data)
    except ParseError:
        return
    assert body.markdown.endswith("\n")


TAGS = ("DIV5", "DIV8", "HEAD", "P", "I", "SU", "FTREF", "FTNT", "TABLE", "TR", "TD", "HED", "AUTH")
ANNUAL = ("SECTION", "SECTNO", "SUBJECT", "RESERVED", "HD", "GPOTABLE", "ROW", "ENT", "img", "x")


@settings(max_examples=80)
@given(st.data())
def test_elements_in_any_order_keep_every_word(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    root = etree.Element("ECFR")
    places: list[Any] = [root]
    for index in range(count):
        parent = data.draw(st.sampled_from(places))
        child = etree.SubElement(parent, data.draw(st.sampled_from(TAGS + ANNUAL)))
        child.text, child.tail = f"t{index}a", f" t{index}b "
        places.append(child)
    body = EcfrXml().to_markdown(etree.tostring(root))
    printed = WORD.findall(re.sub(r"</?su[bp]>", "", body.markdown))
    for index in range(count):
        assert any(f"t{index}a" in word for word in printed)
        assert any(f"t{index}b" in word for word in printed)


# Real files -----------------------------------------------------------------------------------


def cfr_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("ecfr_api/*.xml"), *folder.glob("annual_cfr_part_xml/*.xml")])


def source_words(root: Any) -> list[str]:
    for metadata in root.findall("FDSYS"):
        root.remove(metadata)
    return WORD.findall(" ".join(root.itertext()).lower())


def numbers_in_source(root: Any) -> list[str]:
    return [
        section.get("N") or " ".join("".join(section.find("SECTNO").itertext()).split())
        for section in root.iter("DIV8", "SECTION")
    ]


def test_real_files_have_each_section_once_and_in_order(corpus: Callable[[str], Path]) -> None:
    files = cfr_files(corpus("federal/cfr"))
    assert len(files) > 30
    for path in files:
        data = path.read_bytes()
        body = EcfrXml().to_markdown(data)
        labels = [heading.section or "" for heading in body.headings]
        found = [label.lstrip("§ ") for label in labels if label.startswith("§")]
        expected = [number.lstrip("§ ") for number in numbers_in_source(etree.fromstring(data))]
        assert found == expected, path.name
        assert not [warning for warning in body.warnings if "unknown" in warning], path.name


def test_real_files_keep_their_words_in_order(corpus: Callable[[str], Path]) -> None:
    for path in cfr_files(corpus("federal/cfr"))[::3]:
        data = path.read_bytes()
        words = source_words(etree.fromstring(data))
        written = WORD.findall(EcfrXml().to_markdown(data).markdown.lower())
        for part, text in ((words[:8000], written[:10000]), (words[-8000:], written[-10000:])):
            assert LCSseq.similarity(part, text) >= 0.999 * len(part), path.name

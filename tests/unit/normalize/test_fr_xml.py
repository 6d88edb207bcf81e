from __future__ import annotations

import pytest

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.fr import FrXml
from fonds.normalize.registry import Normalizer

SPACED = '<P>Read <E T="03">this</E> and <E T="03">that</E> and <E T="03">more</E> now.</P>'


def normalized(inside: str, root: str = "RULE") -> NormalizedBody:
    return FrXml().to_markdown(f"<{root}>{inside}</{root}>".encode())


def markdown(inside: str, root: str = "RULE") -> str:
    return normalized(inside, root).markdown


def test_it_is_a_normalizer_with_a_label() -> None:
    assert isinstance(FrXml(), Normalizer)
    assert FrXml().label == "fr_xml_v1@1.1.0"


def test_a_page_break_in_a_sentence_leaves_no_trace_but_its_offset() -> None:
    body = normalized(SPACED + '<P>One <PRTPAGE P="7"/>sentence.</P>')
    assert body.markdown.endswith("One sentence.\n")
    [mark] = body.pages
    assert mark.page == "7"
    assert body.markdown[mark.offset :] == "sentence.\n"


def test_a_page_break_in_a_word_does_not_split_it() -> None:
    body = normalized(SPACED + '<P>A regu<PRTPAGE P="7"/>lation.</P>')
    assert body.markdown.endswith("A regulation.\n")
    assert body.markdown[body.pages[0].offset :] == "lation.\n"


def test_a_page_break_between_blocks_marks_the_next_one() -> None:
    body = normalized('<P>One.</P><PRTPAGE P="8"/><HD SOURCE="HD1">Two</HD>')
    assert body.markdown[body.pages[0].offset :] == "### Two\n"


def test_spaces_the_publisher_stripped_come_back() -> None:
    text = (
        '<P>In the<E T="04">Federal Register</E>notice (<E T="03">see,</E>74 FR 1)'
        '<PRTPAGE P="2"/>we say <E T="03">so</E>.</P>'
    )
    assert markdown(text) == ("In the **Federal Register** notice (*see,* 74 FR 1) we say *so*.\n")


@pytest.mark.parametrize(
    ("printed", "written"),
    [
        ("a * b", r"a \* b"),
        ("snake_case", "snake_case"),
        ("_open", r"\_open"),
        ("[text](address)", r"[text\](address)"),
        ("[Reserved]", "[Reserved]"),
        ("# first", r"\# first"),
        ("#1 choice", "#1 choice"),
        ("3. third", r"3\. third"),
        ("- dash", r"\- dash"),
        ("`quoted'", r"\`quoted'"),
        ("a &lt;b&gt; c &lt; d", r"a \<b> c < d"),
        ("&amp;nbsp;", r"\&nbsp;"),
        (r"C:\temp", r"C:\temp"),
        (r"a\*b", r"a\\\*b"),
        ("http://x.example/~y ~z~", r"http://x.example/~y \~z\~"),
    ],
)
def test_only_what_markdown_would_read_is_escaped(printed: str, written: str) -> None:
    assert markdown(f"<P>{printed}</P>") == f"{written}\n"


def test_emphasis_that_markdown_could_not_read_is_left_out() -> None:
    spaced = '<E T="03">a</E> b <E T="03">c</E> d '
    assert markdown(f'<P>{spaced}pre<E T="03">(x)</E>post</P>').endswith("*c* d pre(x)post\n")


@pytest.mark.parametrize(
    ("code", "written"),
    [("1", "é"), ("2", "è"), ("3", "ê"), ("4", "ë"), ("6", "ẽ"), ("9", "ȩ"), ("b", "ė")],
)
def test_an_accent_and_its_letter_are_one_character(code: str, written: str) -> None:
    assert markdown(f'{SPACED}<P>Re<AC T="{code}"/>s 1</P>').endswith(f"R{written}s 1\n")


def test_an_accent_reaches_its_letter_across_emphasis_and_lost_spaces() -> None:
    text = '<P>the mean<E T="03">x</E>\n<AC T="8"/>of Ame<AC T="1"/>rica<E T="03">is</E>one</P>'
    assert markdown(text) == "the mean *x\u0305*of América *is* one\n"


@pytest.mark.parametrize("accent", ['<AC T="0"/>', "<AC/>", '<AC T="acute"/>'])
def test_an_accent_nobody_can_name_leaves_the_word_as_it_is(accent: str) -> None:
    body = normalized(f"{SPACED}<P>{accent}Re{accent}s</P>")
    assert body.markdown.endswith("Res\n")
    assert body.warnings == ()


def test_the_place_of_signing_is_a_line_of_its_own() -> None:
    body = normalized(
        "<PSIG>wB</PSIG><PLACE>THE WHITE HOUSE,</PLACE><DATE>March 1.</DATE>", "PRESDOCU"
    )
    assert body.markdown == "wB\n\nTHE WHITE HOUSE,\n\nMarch 1.\n"
    assert body.warnings == ()


def test_footnotes_are_linked_and_repeated_numbers_stay_apart() -> None:
    note = "<P>Text.<SU>1</SU><FTREF/></P><FTNT><P><SU>1</SU> Note {}.</P></FTNT>"
    body = normalized(note.format("one") + note.format("two"))
    assert body.markdown == ("Text.[^1]\n\n[^1]: Note one.\n\nText.[^1-2]\n\n[^1-2]: Note two.\n")
    assert body.warnings == ()


def test_a_reference_without_a_note_is_a_warning() -> None:
    body = normalized("<P>Text.<SU>4</SU><FTREF/></P>")
    assert body.warnings == ("footnote 4: 1 references, 0 notes",)


def test_a_raised_number_without_a_reference_is_no_footnote() -> None:
    assert markdown("<P>10<SU>3</SU> m</P>") == "10<sup>3</sup> m\n"


def test_headings_carry_offsets_and_the_publishers_labels() -> None:
    body = normalized(
        "<PREAMB><SUBJECT>Title</SUBJECT></PREAMB><SUPLINF>"
        '<HD SOURCE="HD1">II. Costs</HD><HD SOURCE="HD2">B. To <E T="03">whom</E></HD>'
        "<SECTION><SECTNO>§ 60.112b</SECTNO><SUBJECT>Seals.</SUBJECT></SECTION></SUPLINF>"
    )
    found = [(heading.level, heading.text, heading.section) for heading in body.headings]
    assert found == [
        (1, "Title", None),
        (3, "II. Costs", "II"),
        (4, "B. To whom", "II.B"),
        (5, "§ 60.112b Seals.", "§ 60.112b"),
    ]
    for heading in body.headings:
        assert body.markdown[heading.offset :].startswith("#" * heading.level + " ")


def test_stars_are_no_horizontal_rule() -> None:
    assert markdown("<STARS/>") == "\\* \\* \\* \\* \\*\n"


def test_heads_of_two_levels_become_one_and_spans_become_blank_cells() -> None:
    table = (
        '<GPOTABLE COLS="3"><BOXHD><CHED H="1">Kind</CHED><CHED H="1">Sum</CHED>'
        '<CHED H="2">old</CHED><CHED H="2">new</CHED></BOXHD>'
        '<ROW><ENT I="01">a|b ........</ENT><ENT A="01">none</ENT></ROW>'
        "<ROW><ENT>c</ENT><ENT>1</ENT><ENT>2</ENT></ROW></GPOTABLE>"
    )
    assert markdown(table).splitlines() == [
        "| Kind | Sum / old | Sum / new |",
        "| --- | --- | --- |",
        "| a\\|b | none |  |",
        "| c | 1 | 2 |",
    ]


def test_a_table_that_claims_a_billion_columns_stays_small() -> None:
    table = '<GPOTABLE><ROW><ENT>a</ENT><ENT A="999999999">b</ENT><ENT>c</ENT></ROW></GPOTABLE>'
    assert len(markdown(table)) < 2000


def test_figures_and_equations_are_named_and_kept() -> None:
    body = normalized("<GPH><GID>ER04MR26.000</GID></GPH><MATH><MID>ER04MR26.001</MID></MATH>")
    assert body.markdown == "[Graphic ER04MR26.000]\n\n[Equation ER04MR26.001]\n"
    kept = [(item.kind, item.content, item.offset) for item in body.artifacts]
    assert kept == [("graphic", "ER04MR26.000", 0), ("equation", "ER04MR26.001", 24)]


def test_unknown_elements_keep_their_words_and_are_named() -> None:
    body = normalized("<P>One <ODD>two</ODD> three.</P><ODD>Four.</ODD>")
    assert body.markdown == "One two three.\n\nFour.\n"
    assert body.warnings == ("unknown element <ODD> (2×); its text is kept",)


def test_nul_characters_are_removed_and_counted() -> None:
    body = FrXml().to_markdown(b"<RULE><P>a\0b\0c</P></RULE>")
    assert body.markdown == "abc\n"
    assert body.warnings == ("2 NUL characters removed",)


def test_the_hint_picks_one_document_of_an_issue() -> None:
    issue = (
        "<FEDREG><NOTICES><NOTICE><P>One.</P><FRDOC>[FR Doc. 2026–00001 Filed]</FRDOC></NOTICE>"
        "<NOTICE><P>Two.</P><FRDOC>[FR Doc. 2026–00002 Filed]</FRDOC></NOTICE></NOTICES></FEDREG>"
    ).encode()
    assert FrXml().to_markdown(issue, "fr:2026-00002").markdown.startswith("Two.")
    with pytest.raises(WrongContentError, match="2026-00003"):
        FrXml().to_markdown(issue, "fr:2026-00003")


LAUGHS = b"""<!DOCTYPE RULE [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><RULE><P A="&c;">&c;</P></RULE>"""


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", MalformedError, "empty"),
        (b" \n", MalformedError, "empty"),
        (b"<RULE><P>cut off", MalformedError, "not well-formed"),
        (b"<RULE>&undefined;</RULE>", MalformedError, "not well-formed"),
        (LAUGHS, MalformedError, "entities"),
        (LAUGHS.decode().encode("utf-16"), WrongContentError, "not XML"),
        (b'<?xml version="1.0" encoding="utf-7"?><RULE/>', MalformedError, "encoding"),
        (b"<!DOCTYPE html><html></html>", WrongContentError, "HTML"),
        (b'\n<div class="title">404</div>', WrongContentError, "HTML"),
        (b'{"count": 0}', WrongContentError, "not XML"),
        (b"<frDoc/>", WrongContentError, "frDoc"),
        (b"<RULE>" + b"<P>" * 500 + b"</P>" * 500 + b"</RULE>", MalformedError, "nested"),
        (b"<RULE><P>" + b"<E>" * 500 + b"</E>" * 500 + b"</P></RULE>", MalformedError, "nested"),
        (b"<RULE>" + b"<P>" * 90_000, MalformedError, "not well-formed"),
    ],
)
def test_what_is_no_federal_register_xml_is_refused_by_name(
    data: bytes, error: type[ParseError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        FrXml().to_markdown(data)


def test_hostile_tables_are_not_written_out_in_full() -> None:
    rows = "<ROW><ENT>x</ENT></ROW>" * 500
    wide = '<CHED H="1">A</CHED>' * 500
    deep = "".join(f'<CHED H="{level}">A{level}</CHED>' for level in range(1, 400))
    for heads in (wide, deep + '<CHED H="900">B</CHED>' * 400):
        table = f"<GPOTABLE><BOXHD>{heads}</BOXHD>{rows}</GPOTABLE>"
        body = FrXml().to_markdown(f"<NOTICE>{table}</NOTICE>".encode())
        assert len(body.markdown) < 300_000
    assert "A399" in body.markdown

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from rapidfuzz.distance import LCSseq
from tests.sources.golden import assert_golden

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.billres import BillRes
from fonds.normalize.registry import Normalizer

FIXTURES = Path(__file__).parent / "fixtures" / "billres"
REPORTED = (FIXTURES / "reported.xml").read_bytes()
DOCTYPE = '<!DOCTYPE bill PUBLIC "-//US Congress//DTDs/bill.dtd//EN" "bill.dtd">'
WORD = re.compile(r"[^\W_]+")


def normalized(inside: str, prolog: str = DOCTYPE) -> NormalizedBody:
    return BillRes().to_markdown(f"{prolog}<bill><legis-body>{inside}</legis-body></bill>".encode())


def markdown(inside: str) -> str:
    return normalized(inside).markdown


def within(text: str) -> str:
    """The Markdown of a section's text without the section's heading."""
    return markdown(f"<section><text>{text}</text></section>").removesuffix("\n")


def sections(body: NormalizedBody) -> list[str]:
    return [
        heading.section.removeprefix("Sec. ")
        for heading in body.headings
        if heading.section and heading.section.startswith("Sec. ")
    ]


def source_words(root: etree._Element) -> list[str]:
    return [word for text in root.itertext() for word in WORD.findall(str(text).lower())]


def test_it_is_a_normalizer_with_a_label() -> None:
    assert isinstance(BillRes(), Normalizer)
    assert BillRes().label == "billres_v1@1.0.1"


def test_a_reported_bill_reads_as_reviewed() -> None:
    body = BillRes().to_markdown(REPORTED)
    assert_golden(body.markdown, FIXTURES / "reported.md")
    assert body.warnings == ()


def test_every_heading_stands_at_its_offset_with_the_publishers_label() -> None:
    body = BillRes().to_markdown(REPORTED)
    assert [(heading.level, heading.section) for heading in body.headings] == [
        (1, None),
        (2, "Sec. 1"),
        (2, "Sec. 1"),
        (2, "Sec. 1"),
        (2, "Title I"),
        (3, "Subtitle A"),
        (4, "Sec. 101"),
        (4, "Sec. 102"),
    ]
    for heading in body.headings:
        line = body.markdown[heading.offset :].partition("\n")[0]
        assert line.startswith("#" * heading.level + " ")
        assert re.sub(r"</?(ins|del)>", "", line.lstrip("# ")) == heading.text


def test_metadata_is_not_the_body() -> None:
    assert "publisher" not in BillRes().to_markdown(REPORTED).markdown
    assert "Lantern Safety Act" in BillRes().to_markdown(REPORTED).markdown
    assert "199 S 7 RS" not in BillRes().to_markdown(REPORTED).markdown


def test_a_quoted_section_is_a_quotation_and_no_section() -> None:
    body = normalized(
        "<section><enum>2.</enum><text>Add:</text><quoted-block><section><enum>9.</enum>"
        "<header>Glass</header><text>Be clear.</text></section>"
        "<after-quoted-block>; and</after-quoted-block></quoted-block></section>"
    )
    assert sections(body) == ["2"]
    assert body.markdown == ("## Sec. 2.\n\nAdd:\n\n> **“Sec. 9. Glass**\n>\n> Be clear.”; and\n")


def test_a_quotation_closes_behind_its_last_words() -> None:
    quoted = (
        "<section><quoted-block><paragraph><enum>(1)</enum><text>One,</text><continuation-text>"
        "so.</continuation-text></paragraph> <after-quoted-block>.</after-quoted-block>"
        "</quoted-block><text>Then.</text></section>"
    )
    assert markdown(quoted) == "> “(1) One,\n>\n> so.”.\n\nThen.\n"


def test_a_section_quoted_from_the_code_has_its_own_sign() -> None:
    quoted = (
        '<section><quoted-block style="USC"><section><enum>50.</enum><header>Fees</header>'
        "</section><after-quoted-block>.</after-quoted-block></quoted-block></section>"
    )
    assert "**“§ 50. Fees**" in markdown(quoted)


def test_quotation_in_quotation_keeps_both_pairs_of_marks() -> None:
    nested = (
        "<section><quoted-block><paragraph><enum>(1)</enum><text>Insert:</text>"
        "<quoted-block><subparagraph><enum>(A)</enum><text>Deep.</text></subparagraph>"
        "<after-quoted-block>;</after-quoted-block></quoted-block></paragraph>"
        "<after-quoted-block>.</after-quoted-block></quoted-block></section>"
    )
    assert markdown(nested) == "> “(1) Insert:\n>\n> > “(A) Deep.”;\n>\n> ”.\n"


@pytest.mark.parametrize(
    ("xml", "written"),
    [
        ("by striking <quote>2023</quote> and", "by striking “2023” and"),
        ("the term <term>wick</term> means", "the term “wick” means"),
        ("33 <fraction>1/3</fraction> percent", "33 1/3 percent"),
        ("12<fraction>1/2</fraction> percent", "12 1/2 percent"),
        ("(1 + C)<superscript>D</superscript>", "(1 + C)<sup>D</sup>"),
        ("<italic>Provided</italic>, That", "*Provided*, That"),
        ("<italic> </italic>nothing", "nothing"),
        ("pre<italic>(x)</italic>post", "pre(x)post"),
        ("see <internal-xref idref='A'>section 2</internal-xref>.", "see section 2."),
        ("one<pagebreak/> word<nobreak/>s", "one words"),
        ("a<omitted-text type='horizontal'/>b", r"a \* \* \* \* \* b"),
        ("one<linebreak/>two", "one two"),
        ("an <added-phrase>in</added-phrase> and", "an <ins>in</ins> and"),
        ("a <deleted-phrase> out </deleted-phrase>.", "a <del>out</del> ."),
        ("<added-phrase/>text", "text"),
        ("<added-phrase><italic>so</italic></added-phrase>", "<ins>*so*</ins>"),
        ("1. is no list", r"1\. is no list"),
    ],
)
def test_what_stands_in_a_line(xml: str, written: str) -> None:
    assert within(xml) == written


def test_enumerations_keep_their_labels_and_lead_in() -> None:
    text = (
        "<section><enum>3A.</enum><header>Rules</header>"
        "<subsection><enum>(a)</enum><header>Scope</header><text>All—</text>"
        "<paragraph><enum>(1)</enum><text>one;</text></paragraph>"
        "<paragraph><enum>(4)</enum><text>four.</text></paragraph></subsection>"
        "<subsection><enum>(c)</enum><header>Reserved</header></subsection></section>"
    )
    assert markdown(text) == (
        "## Sec. 3A. Rules\n\n(a) **Scope**.—All—\n\n(1) one;\n\n(4) four.\n\n(c) **Reserved**.\n"
    )


def test_a_level_that_runs_in_continues_the_line() -> None:
    text = (
        "<section><subsection><enum>(a)</enum> <paragraph display-inline='yes-display-inline'>"
        "<enum>(1)</enum><text>One.</text></paragraph></subsection></section>"
    )
    assert markdown(text) == "(a)(1) One.\n"


def test_text_after_a_break_in_the_line_is_a_paragraph_of_its_own() -> None:
    text = "<section><text>One.</text><text>Two.</text><continuation-text>Three</continuation-text>"
    assert markdown(f"{text}</section>") == "One.\n\nTwo.\n\nThree\n"


def test_struck_and_inserted_blocks_are_marked_block_by_block() -> None:
    text = (
        '<section changed="deleted"><enum>1.</enum><text>Old.</text><table><tgroup><tbody><row>'
        "<entry>x</entry><entry>y</entry></row></tbody></tgroup></table></section>"
        '<section reported-display-style="italic"><text>New.</text></section>'
        '<section changed="not-changed"><text>Same.</text></section>'
    )
    assert markdown(text) == (
        "## <del>Sec. 1.</del>\n\n<del>Old.</del>\n\n|  |  |\n| --- | --- |\n"
        "| <del>x</del> | <del>y</del> |\n\n<ins>New.</ins>\n\nSame.\n"
    )


def test_what_stands_in_struck_text_is_struck_whatever_it_says_itself() -> None:
    inner = '<section changed="not-changed"><text>Gone.</text></section>'
    body = BillRes().to_markdown(
        f'<bill><form/><legis-body changed="deleted">{inner}</legis-body></bill>'.encode()
    )
    assert body.markdown == "<del>Gone.</del>\n"


def test_footnotes_stay_linked() -> None:
    text = (
        "One<footnote id='F9'>A note.</footnote> two<footnote-ref idref='F9'>1</footnote-ref>"
        " three<footnote-ref idref='gone'>7</footnote-ref>."
    )
    assert within(text) == "One[^1] two[^1] three<sup>7</sup>.\n\n[^1]: A note."


def test_a_graphic_is_named_and_kept_beside_the_text() -> None:
    body = normalized(
        "<section><text>See:</text><graphic file='EH01.EPS'><graphic-caption>A lamp"
        "</graphic-caption><image-data>R0lGOD</image-data></graphic>"
        "<text>With <formula id='x'><graphic file='F2.EPS'><image-data/></graphic></formula>"
        " applied.</text></section>"
    )
    assert body.markdown == (
        "See: [Graphic EH01.EPS]\n\nA lamp\n\nWith [Formula F2.EPS] applied.\n"
    )
    assert [(one.kind, one.content) for one in body.artifacts] == [
        ("graphic", "EH01.EPS"),
        ("formula", "F2.EPS"),
    ]


def test_a_table_that_spans_is_kept_whole_beside_the_text() -> None:
    [table] = BillRes().to_markdown(REPORTED).artifacts
    assert table.kind == "table"
    assert 'namest="c2"' in table.content


def test_a_table_without_spans_needs_no_artifact() -> None:
    body = normalized(
        "<section><table><tgroup cols='2'><colspec colname='a'/><colspec colname='b'/>"
        "<tbody><row><entry colname='b'><bold>Sum</bold></entry></row></tbody></tgroup></table>"
        "</section>"
    )
    assert body.markdown == "|  |  |\n| --- | --- |\n|  | Sum |\n"
    assert body.artifacts == ()


def test_a_resolution_keeps_its_preamble_and_has_no_invented_sections() -> None:
    body = BillRes().to_markdown(
        b"<resolution><form><legis-num>H. RES. 5</legis-num></form><preamble><whereas><text>"
        b"Whereas lamps burn; and</text></whereas><whereas><text>Whereas they warm:</text>"
        b"</whereas></preamble><resolution-body><section section-type='undesignated-section'>"
        b"<text>That the House thanks them.</text></section></resolution-body></resolution>"
    )
    assert body.markdown == (
        "# H. RES. 5\n\nWhereas lamps burn; and\n\nWhereas they warm:\n\n"
        "That the House thanks them.\n"
    )


def test_an_amendment_keeps_instruction_and_inserted_sections() -> None:
    body = BillRes().to_markdown(
        b"<amendment-doc><engrossed-amendment-form><legis-num>H. R. 9</legis-num>"
        b"</engrossed-amendment-form><engrossed-amendment-body><section><text>Resolved, That"
        b"</text></section><amendment><amendment-instruction><enum>(1)</enum><text>Strike all."
        b"</text></amendment-instruction><amendment-block><section><enum>1.</enum><header>New"
        b"</header></section></amendment-block></amendment></engrossed-amendment-body>"
        b"</amendment-doc>"
    )
    assert body.markdown == ("# H. R. 9\n\nResolved, That\n\n(1) Strike all.\n\n## Sec. 1. New\n")


def test_an_appropriations_heading_is_a_heading_without_a_number() -> None:
    body = normalized(
        "<title><enum>II</enum><appropriations-small><header>Salaries</header>"
        "<text>For lamps, $5.</text></appropriations-small></title>"
    )
    assert body.markdown == "## Title II\n\n### Salaries\n\nFor lamps, $5.\n"
    assert [heading.section for heading in body.headings] == ["Title II", None]


def test_an_enum_that_names_itself_is_not_named_twice() -> None:
    body = normalized(
        "<title><enum>TITLE IV</enum><section><enum>Sec. 4.</enum><header>X</header></section>"
        "</title>"
    )
    assert body.markdown == "## TITLE IV\n\n### Sec. 4. X\n"


def test_headings_never_go_below_the_sixth_level() -> None:
    nested = "<section><enum>1.</enum></section>"
    for tag in ("part", "subchapter", "chapter", "subtitle", "title", "division"):
        nested = f"<{tag}><enum>A</enum>{nested}</{tag}>"
    assert [heading.level for heading in normalized(nested).headings] == [2, 3, 4, 5, 6, 6, 6]


def test_character_entities_decode_though_no_dtd_is_read() -> None:
    body = normalized("<section><text>a&mdash;b &sect; 5 &amp; &#167; &oacute;</text></section>")
    assert body.markdown == "a—b § 5 & § ó\n"
    assert body.warnings == ()


def test_an_unknown_entity_is_kept_and_named() -> None:
    body = normalized("<section><text>a &zork; b</text></section>")
    assert body.markdown == r"a \&zork; b" + "\n"
    assert body.warnings == ("unknown entity &zork; (1×); kept as it is",)


def test_an_unknown_element_does_not_tear_a_sentence() -> None:
    line = "The <odd>Secretary</odd> shall <odd><strange>act</strange></odd> at once."
    expected = "The Secretary shall act at once."
    assert within(line) == expected
    # Within elements that are unknown themselves, or that only group blocks.
    assert within(f"<other>{line}</other>") == expected
    assert markdown(f"<action>{line}</action>").strip() == expected
    assert markdown("<odd>One.</odd><odd>Two.</odd>") == "One.\n\nTwo.\n"


def test_an_unknown_element_keeps_its_text_and_is_named_once() -> None:
    body = normalized(
        "<section><text>a <odd>b</odd> c <odd>d</odd></text><strange>e</strange></section>"
    )
    assert body.markdown == "a b c d\n\ne\n"
    assert body.warnings == (
        "unknown element <odd> (2×); its text is kept",
        "unknown element <strange> (1×); its text is kept",
    )


def test_nul_characters_are_removed_and_counted() -> None:
    body = BillRes().to_markdown(REPORTED.replace(b"lanterns", b"lan\0terns\0"))
    assert "To make lanterns safe" in body.markdown
    assert body.warnings == ("2 NUL characters removed",)


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", MalformedError, "empty"),
        (b" \n\xef\xbb\xbf", MalformedError, "empty"),
        (REPORTED[:-400], MalformedError, "not well-formed"),
        (b"<bill><form>\xff</form></bill>", MalformedError, "not well-formed"),
        (b"<!DOCTYPE html><html/>", WrongContentError, "HTML"),
        (b"%PDF-1.7", WrongContentError, "does not begin with a tag"),
        (b"<billStatus/>", WrongContentError, "<billStatus>"),
        (b'<bill session="117"><state/></bill>', WrongContentError, "not the text of a bill"),
        (b"<bill><form> </form></bill>", WrongContentError, "contains no text"),
        (
            b'<bill xmlns="http://schemas.gpo.gov/xml/uslm"><meta/></bill>',
            WrongContentError,
            "USLM",
        ),
        (b'<?xml version="1.0" encoding="UTF-7"?><bill/>', MalformedError, "encoding"),
        (
            b'<!DOCTYPE bill [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><bill><form>&c;</form></bill>',
            MalformedError,
            "expand",
        ),
        (b"<!DOCTYPE bill [<!ENTITY % p SYSTEM 'x'>%p;]><bill/>", MalformedError, "expand"),
        (
            b"<bill><legis-body>" + b"<section>" * 5000 + b"</section>" * 5000 + b"</legis-body>",
            MalformedError,
            "not well-formed",
        ),
        (
            b"<bill><form>" + b"<italic>" * 300 + b"x" + b"</italic>" * 300 + b"</form></bill>",
            MalformedError,
            "nested",
        ),
    ],
)
def test_bad_input_is_refused_with_its_cause(
    data: bytes, error: type[ParseError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        BillRes().to_markdown(data)


def test_a_file_named_by_an_entity_is_never_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("treasure", encoding="utf-8")
    data = (
        f'<!DOCTYPE bill SYSTEM "{secret.as_uri()}" [<!ENTITY  pic SYSTEM "{secret.as_uri()}">]>'
        "<bill><form><legis-num>S. 1 &pic;</legis-num></form></bill>"
    )
    body = BillRes().to_markdown(data.encode())
    assert body.markdown == "# S. 1 \\&pic;\n"


def test_a_wide_table_with_hostile_spans_stays_small() -> None:
    specs = "".join(f"<colspec colname='c{index}'/>" for index in range(5000))
    row = "<row><entry namest='c0' nameend='c4999' morerows='9999'>x</entry></row>"
    body = normalized(
        f"<section><table><tgroup>{specs}<tbody>{row * 50}</tbody></tgroup></table></section>"
    )
    assert len(body.markdown) < 100_000
    assert body.markdown.count("x") == 50


@settings(max_examples=60)
@given(
    cut=st.integers(0, len(REPORTED)),
    length=st.integers(0, 40),
    put=st.sampled_from([b"", b"<", b">", b"&", b"\0", b"</text>", b"<table>", b"]]>", b"\xff"]),
)
def test_a_damaged_file_is_read_or_refused_but_never_crashes(
    cut: int, length: int, put: bytes
) -> None:
    damaged = REPORTED[:cut] + put + REPORTED[cut + length :]
    try:
        body = BillRes().to_markdown(damaged)
    except ParseError:
        return
    assert all(body.markdown[heading.offset] == "#" for heading in body.headings)


ELEMENTS = st.sampled_from(
    """
    section title subsection paragraph enum header text quoted-block after-quoted-block quote
    italic table tgroup tbody row entry toc toc-entry footnote graphic formula added-phrase
    deleted-phrase whereas legis-num odd
    """.split()  # noqa: SIM905 — thirty quoted names read worse
)
TREES = st.recursive(
    st.sampled_from([" word ", " two words ", " ", " (a) ", "&mdash;"]),
    lambda inner: st.builds(
        lambda tag, change, parts: f"<{tag}{change}>{''.join(parts)}</{tag}>",
        ELEMENTS,
        st.sampled_from(["", ' changed="deleted"', ' display-inline="yes-display-inline"']),
        st.lists(inner, max_size=4),
    ),
    max_leaves=25,
)


@settings(max_examples=80)
@given(tree=TREES)
def test_any_nesting_keeps_every_word(tree: str) -> None:
    body = normalized(f"start {tree}")
    root = etree.fromstring(f"{DOCTYPE}<x>{tree}</x>".replace("&mdash;", " "))
    expected = source_words(root)
    found = WORD.findall(body.markdown)
    for word in expected:
        found.remove(word)
    for block in body.markdown.split("\n\n"):
        assert block.count("<del>") == block.count("</del>")


def bill_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() == ".xml":
            yield path.name, path.read_bytes()
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as package:
                for name in package.namelist():
                    if "/xml/" in name:
                        yield name, package.read(name)


def own_sections(data: bytes) -> list[str]:
    """The numbers of sections, counted from the parser's events alone."""
    quoted, numbers, path = 0, [], []
    for event, element in etree.iterparse(io.BytesIO(data), events=("start", "end")):
        if event == "start":
            path.append(element.tag)
            quoted += element.tag == "quoted-block"
            continue
        path.pop()
        quoted -= element.tag == "quoted-block"
        if element.tag == "enum" and path[-1] == "section" and not quoted:
            numbers.append(" ".join("".join(element.itertext()).split()).rstrip("."))
    return [number for number in numbers if number]


def test_real_bills_keep_their_sections_and_words(corpus: Callable[[str], Path]) -> None:
    read = 0
    for name, data in bill_files(corpus("federal/bills")):
        try:
            body = BillRes().to_markdown(data)
        except WrongContentError:
            continue
        read += 1
        assert body.warnings == (), name
        assert sections(body) == own_sections(data), name
        root = etree.fromstring(data)
        for metadata in root.findall("metadata"):
            root.remove(metadata)
        words = source_words(root)[:20_000]
        found = WORD.findall(body.markdown.lower())[:20_500]
        assert LCSseq.similarity(words, found) / len(words) >= 0.999, name
    assert read >= 7

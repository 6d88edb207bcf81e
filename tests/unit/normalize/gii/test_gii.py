"""German norms as Markdown."""

from __future__ import annotations

import pytest

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.registry import get_normalizer, sniff


def normalized(data: str) -> NormalizedBody:
    return get_normalizer("gii_v1").to_markdown(data.encode())


def norm(content: str, notes: str = "", name: str = "§ 1", title: str = "") -> NormalizedBody:
    heading = f"<titel>{title}</titel>" if title else ""
    return normalized(
        f"<norm><metadaten><jurabk>XG</jurabk><enbez>{name}</enbez>{heading}</metadaten><textdaten>"
        f'<text format="XML"><Content>{content}</Content>{notes}</text></textdaten></norm>'
    )


def text(content: str, notes: str = "") -> str:
    """The Markdown below the heading."""
    body = norm(content, notes)
    assert not body.warnings
    return body.markdown.removeprefix("# § 1\n").strip("\n")


def test_bytes_are_recognised() -> None:
    assert sniff(b'<?xml version="1.0"?><dokumente><norm/></dokumente>') == "gii_v1"
    assert sniff(b'<norm doknr="BJNR1"><metadaten/></norm>') == "gii_v1"
    assert get_normalizer("gii_v1").label.startswith("gii_v1@")


def test_name_and_title_are_the_heading() -> None:
    body = norm("<P>Text.</P>", title="Kauf<BR/>und Tausch")
    assert body.markdown == "# § 1 Kauf und Tausch\n\nText.\n"
    assert [(heading.text, heading.section) for heading in body.headings] == [
        ("§ 1 Kauf und Tausch", "§ 1")
    ]


def test_lists_keep_the_numbers_of_the_law() -> None:
    inner = "<DL><DT>a)</DT><DD><LA>b</LA></DD></DL>"
    items = f"<DT>1a.</DT><DD><LA>eins</LA><LA>weiter</LA></DD><DT>2.</DT><DD><LA>{inner}</LA></DD>"
    assert text(f"<P>Wer <DL>{items}</DL> ist.</P>") == (
        "Wer\n\n1a. eins\n\nweiter\n\n2. \n\n   a) b\n\nist."
    )


def test_an_item_without_text_keeps_its_number() -> None:
    listed = text("<DL><DT>1.</DT><DD/><DT>2.</DT><DT>3.</DT><DD><LA>drei</LA></DD></DL>")
    assert [line.strip() for line in listed.split("\n") if line] == ["1.", "2.", "3. drei"]


def test_an_item_without_number_is_a_paragraph() -> None:
    assert text("<DL><DT/><DD><LA>eins</LA></DD></DL>") == "eins"


def test_dashes_are_bullets_and_other_signs_are_text() -> None:
    listed = "<DL><DT>-</DT><DD>eins</DD><DT>–</DT><DD>zwei</DD><DT>*</DT><DD>drei</DD></DL>"
    assert text(listed) == "- eins\n\n– zwei\n\n\\* drei"


def test_lines_break_only_between_words() -> None:
    assert text("<P><BR/>eins<BR/><BR/> zwei<BR/></P>") == "eins\nzwei"
    assert text("<P>eins<BR/>- zwei</P>") == "eins\n\\- zwei"


def test_preformatted_text_keeps_its_lines() -> None:
    kept = text('<P>Vor <pre xml:space="preserve">(+++ a\n   b<BR/>c +++)</pre>nach</P>')
    assert kept == "Vor\n\n(+++ a\nb\nc +++)\n\nnach"


def test_sentences_are_numbered_by_raised_digits() -> None:
    assert text('<P>(1) <SUP class="Rec">1</SUP>Eins. m<SUP>2</SUP>, H<SUB>2</SUB>O</P>') == (
        "(1) <sup>1</sup>Eins. m<sup>2</sup>, H<sub>2</sub>O"
    )


def test_emphasis_is_kept_where_markdown_can_say_it() -> None:
    assert text("<P><B>fett</B> <I>schief</I> <SP><B>gesperrt</B></SP> <NB>§ 2</NB></P>") == (
        "**fett** *schief* *gesperrt* § 2"
    )
    assert text("<P>halb<B>)</B></P>") == "halb)"


def test_quotation_marks_that_are_elements_are_written() -> None:
    assert text("<P><QuoteL/>Hafen<QuoteR/></P>") == "„Hafen“"


def test_footnotes_are_linked_by_their_ids() -> None:
    notes = '<Footnotes><Footnote ID="f9" FnZ="*" Postfix=")">Hinweis.</Footnote></Footnotes>'
    assert text('<P>Text<FnR ID="f9"/>.</P>', notes) == "Text[^1].\n\n[^1]: Hinweis."


def test_a_footnote_nothing_refers_to_prints_its_sign() -> None:
    notes = '<Footnotes><Footnote ID="f9" FnZ="1" Postfix=")">Hinweis.</Footnote></Footnotes>'
    assert text("<P>Text.</P>", notes) == "Text.\n\n1) Hinweis."


def test_a_reference_without_footnote_is_warned_of() -> None:
    body = norm('<P>Text<FnR ID="f9"/>.</P>')
    assert body.markdown.endswith("Text.\n")
    assert body.warnings == ("reference to a footnote that is not there (1×)",)


def test_a_number_with_a_footnote_keeps_it() -> None:
    notes = '<Footnotes><Footnote ID="f9">Hinweis.</Footnote></Footnotes>'
    listed = text('<DL><DT>1.<FnR ID="f9"/></DT><DD>eins</DD></DL>', notes)
    assert listed == "1. [^1]eins\n\n[^1]: Hinweis."


TABLE = (
    '<table><Title>Tafel</Title><tgroup cols="2"><colspec colname="a"/><colspec colname="b"/>'
    "<tbody>{rows}</tbody></tgroup></table>"
)


def test_tables_keep_rows_and_columns() -> None:
    rows = (
        '<row><entry colname="b">x|y</entry></row><row><entry>1<BR/>2</entry><entry><DL>'
        "<DT>a)</DT><DD><LA>drei</LA></DD></DL></entry></row>"
    )
    assert text(TABLE.format(rows=rows)) == (
        "**Tafel**\n\n|  |  |\n| --- | --- |\n|  | x\\|y |\n| 1 2 | a) drei |"
    )


def test_a_table_with_spans_is_also_kept_as_it_was() -> None:
    body = norm(TABLE.format(rows='<row><entry namest="a" nameend="b">breit</entry></row>'))
    assert [artifact.kind for artifact in body.artifacts] == ["table"]
    assert "| breit |  |" in body.markdown


def test_text_beside_the_cells_of_a_table_is_kept() -> None:
    assert "verirrt" in text(TABLE.format(rows="<row>verirrt<entry>eins</entry></row>"))


def test_a_picture_leaves_its_description() -> None:
    body = norm('<P>Formel: <IMG SRC="j1.jpg" alt="a durch b"/> <FILE SRC="b.pdf"/></P>')
    assert "Formel: [Abbildung: a durch b] [Datei: b.pdf]" in body.markdown
    assert [artifact.content for artifact in body.artifacts] == ["j1.jpg", "b.pdf"]


def test_titles_are_headings_but_not_in_a_table_of_contents() -> None:
    assert text("<Title>Eins</Title><Subtitle>Zwei</Subtitle>") == "## Eins\n\n### Zwei"
    assert text("<TOC><Ident>Buch 1</Ident><Title>Eins</Title></TOC>") == "**Buch 1**\n\n**Eins**"
    contents = norm("<Title>Eins</Title>", name="Inhaltsübersicht")
    assert contents.markdown == "# Inhaltsübersicht\n\n**Eins**\n"


def test_unknown_elements_keep_their_text_and_are_named() -> None:
    body = norm("<P>Ein <Neu>neues</Neu> Wort.</P>")
    assert "Ein neues Wort." in body.markdown
    assert body.warnings == ("unknown element <Neu>; its text is kept (1×)",)


def test_remarks_of_the_office_have_a_heading() -> None:
    body = normalized(
        "<norm><metadaten><enbez>§ 1</enbez></metadaten><textdaten><text/><fussnoten><Content>"
        "<P>§ 1: IdF<ABWFORMAT typ='D'/>mWv</P></Content></fussnoten></textdaten></norm>"
    )
    assert body.markdown == "# § 1\n\n## Fußnote\n\n§ 1: IdF\nmWv\n"


def test_a_whole_act_stands_under_the_headings_of_its_divisions() -> None:
    unit = "<gliederungskennzahl>{}</gliederungskennzahl><gliederungsbez>{}</gliederungsbez>"
    first = "<gliederungseinheit>" + unit.format("010", "Buch 1") + "</gliederungseinheit>"
    second = "<gliederungseinheit>" + unit.format("010010", "Titel 1") + "</gliederungseinheit>"
    parts = ("<langue>Gesetz</langue>", first, second, "<enbez>§ 1</enbez>")
    norms = "".join(f"<norm><metadaten>{part}</metadaten></norm>" for part in parts)
    assert normalized(f"<dokumente>{norms}</dokumente>").markdown == (
        "# Gesetz\n\n## Buch 1\n\n### Titel 1\n\n#### § 1\n"
    )


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        ("", MalformedError, "empty"),
        ("<html><body>Wartung</body></html>", WrongContentError, "HTML"),
        ("<items/>", WrongContentError, "<items>"),
        ("<norm><metadaten>", MalformedError, "not well-formed"),
        ("<norm/>", WrongContentError, "no text"),
        ('<!DOCTYPE norm [<!ENTITY a "b">]><norm>&a;</norm>', MalformedError, "entities"),
        (
            f"<norm><textdaten>{'<P>' * 200}{'</P>' * 200}</textdaten></norm>",
            MalformedError,
            "deep",
        ),
    ],
)
def test_what_is_no_norm_says_why(data: str, error: type[ParseError], cause: str) -> None:
    with pytest.raises(error, match=cause):
        normalized(data)


def test_the_names_of_an_act_are_in_the_order_of_the_file() -> None:
    act = (
        "<dokumente><norm><metadaten><jurabk>LampG</jurabk><amtabk>LampG</amtabk>"
        "<ausfertigung-datum>1989-12-15</ausfertigung-datum><kurzue>Lampengesetz</kurzue>"
        "<langue>Gesetz über Lampen</langue></metadaten></norm></dokumente>"
    )
    assert get_normalizer("gii_v1").to_markdown(act.encode()).markdown == (
        "LampG\n\nAusfertigungsdatum: 1989-12-15\n\nLampengesetz\n\n# Gesetz über Lampen\n"
    )

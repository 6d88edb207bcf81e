from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from rapidfuzz.distance import LCSseq

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.model import NormalizedBody
from fonds.normalize.encodings import decode
from fonds.normalize.html import Html, HtmlArticle
from fonds.normalize.html.walker import HtmlWalker
from fonds.normalize.markdown import visible_text
from fonds.normalize.registry import Normalizer

WORD = re.compile(r"[^\W_]+")
SILENT = ("script", "style", "head", "nav")


def normalized(page: str) -> NormalizedBody:
    return Html().to_markdown(page.encode())


def markdown(page: str) -> str:
    return normalized(page).markdown


def test_it_is_a_normalizer_with_a_label() -> None:
    assert isinstance(Html(), Normalizer)
    assert Html().label == "html_v1@1.3.0"


def test_scripts_styles_navigation_head_and_comments_leave_no_word() -> None:
    page = (
        "<html><head><title>T</title><style>s</style></head><body><nav>menu</nav>"
        "<!-- note --><script>var x;</script><p>Kept.</p><footer>Also kept.</footer></body></html>"
    )
    assert markdown(page) == "Kept.\n\nAlso kept.\n"


@pytest.mark.parametrize("control", ["&#14;", "&#x1F", "&#0;", "&#65535;", "&#xfffe;", "&#127;"])
def test_references_to_control_characters_leave_no_trace(control: str) -> None:
    assert markdown(f"<p>in {control}one &#160;word, and &#147;quoted&#148;</p>") == markdown(
        "<p>in one word, and &#147;quoted&#148;</p>"
    )


def test_a_control_character_behind_a_line_break_of_a_listing_leaves_no_trace() -> None:
    assert markdown("<pre>one<br>&#1;two</pre>") == markdown("<pre>one<br>two</pre>")


def test_a_navigation_element_never_closed_does_not_swallow_the_page() -> None:
    body = normalized("<nav><a href=/>Home</a><main><p>The law.</p></main>")
    assert "The law." in body.markdown
    assert body.warnings == ("a navigation element holds the page itself and is kept",)


def test_a_body_begun_inside_the_head_is_kept() -> None:
    assert "text" in markdown("<html><head><odd><p>text</p></odd></head><body>more</body></html>")


def test_headings_carry_offset_level_and_the_publishers_label() -> None:
    body = normalized("<p>Before.</p><h3>§ 60.112b <b>Standard</b></h3><h2>Chapter 5 Rules</h2>")
    first, second = body.headings
    assert (first.level, first.text, first.section) == (3, "§ 60.112b Standard", "§ 60.112b")
    assert body.markdown[first.offset :].startswith("### § 60.112b Standard\n")
    assert (second.level, second.section) == (2, "Chapter 5")


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<ol type=a><li>x<li>y</ol>", "- a. x\n\n- b. y\n"),
        ("<ol type=A start=27><li>x</ol>", "- AA. x\n"),
        ("<ol type=I start=4><li>x<li value=9>y</ol>", "- IV. x\n\n- IX. y\n"),
        ("<ol start=3><li>x<li>y</ol>", "3. x\n\n4. y\n"),
        ("<ol><li>x<li value=5>y</ol>", "1. x\n\n- 5\\. y\n"),
        ("<ol reversed><li>x<li>y</ol>", "2. x\n\n- 1\\. y\n"),
        ("<ol type=a><li>(a) own label</ol>", "- (a) own label\n"),
        ("<ol style='list-style: none'><li>x</ol>", "- x\n"),
        (
            "<ol type=a><li>x<ol type=i><li>y</ol><li><p>p<p>q</ol>",
            "- a. x\n\n  - i. y\n\n- b. p\n\n  q\n",
        ),
        ("<ul><li><ol type=A><li>x</ol></ul>", "- - A. x\n"),
    ],
)
def test_list_labels_stand_as_the_page_shows_them(page: str, expected: str) -> None:
    assert markdown(page) == expected


def test_spans_of_a_table_become_empty_cells_and_an_artifact() -> None:
    body = normalized(
        "<table><caption>Fees</caption><tr><th rowspan=2>Kind<th colspan=2>Year"
        "<tr><td>2025<td>2026<tr><td>A|B<td>1<br>2</table>"
    )
    assert body.markdown == (
        "Fees\n\n| Kind | Year |  |\n| --- | --- | --- |\n"
        "|  | 2025 | 2026 |\n| A\\|B | 1<br>2 |  |\n"
    )
    [artifact] = body.artifacts
    assert artifact.kind == "table"
    assert 'rowspan="2"' in artifact.content
    assert body.markdown[artifact.offset] == "|"


def test_a_table_with_head_and_body_is_one_table() -> None:
    page = (
        "<table><thead><tr><th>Kind<th>Fee</thead> <tbody><tr><td>Oil<td>5</tbody>"
        "<tfoot><tr><td>All<td>9</tfoot></table>"
    )
    assert markdown(page) == "| Kind | Fee |\n| --- | --- |\n| Oil | 5 |\n| All | 9 |\n"


def test_a_row_in_a_place_of_no_row_keeps_its_words() -> None:
    row = etree.fromstring("<table><tr><td>a</td><td><i><tr><td>b</td></tr></i></td></tr></table>")
    text = HtmlWalker(row).walk().markdown
    assert WORD.findall(text) == ["a", "b"]


@pytest.mark.parametrize(
    ("head", "hint"),
    [
        ("", "https://a.example/b/c.html"),
        ("<link rel='canonical' href='https://a.example/b/c.html'>", None),
        ("<link rel='canonical' href='https://a.example/b/c.html'>", "fr:2026-00101"),
        ("<base href='https://a.example/b/'>", "https://other.example/"),
        ("<base href='/b/'>", "https://a.example/x/y"),
    ],
)
def test_links_are_completed_where_the_address_is_known(head: str, hint: str | None) -> None:
    links = "<a href='d.html'>d</a> <a href='/e f(1)'>e</a> <a href='//g.example/'>g</a>"
    page = f"<html><head>{head}</head><body><p>{links} <a href='#h'>h</a></p></body></html>"
    assert Html().to_markdown(page.encode(), hint).markdown == (
        "[d](https://a.example/b/d.html) [e](https://a.example/e%20f%281%29) "
        "[g](https://g.example/) h\n"
    )


@pytest.mark.parametrize(
    "address", ["http://[bad", "javascript:x()", "data:text/html,x", "x\\y", "/" + "x" * 3000]
)
def test_links_that_lead_nowhere_are_text(address: str) -> None:
    page = f'<html><base href="http://[::1"><p><a href="{address}">text</a></p></html>'
    assert Html().to_markdown(page.encode(), "https://a.example/").markdown == "text\n"


def test_a_table_that_arranges_the_page_is_written_as_blocks() -> None:
    page = "<table><tr><td><h2>Left</h2><p>one</p><td><table><tr><td>two<td>3</table></table>"
    text = markdown(page)
    assert text.startswith("## Left\n\none\n\n")
    assert "| two | 3 |" in text


def test_footnotes_stay_linked_and_lose_only_their_repeated_sign() -> None:
    page = (
        "<p>One<sup><a href='#fn1'>1</a></sup> and two<a href='#fn2'><sup>[2]</sup></a>.</p>"
        "<ol><li id=fn1><p>First note.</p><p>Its rest.</p></ol>"
        "<p><a id=fn2 href='#back'>2</a> Second note.</p>"
    )
    assert markdown(page) == (
        "One[^1] and two[^2].\n\n[^1]: First note.\n\n    Its rest.\n\n[^2]: Second note.\n"
    )


REFERENCES = (
    "<p>One<sup><a name='ifn1' href='#fn1'>1</a></sup> and two<a href='#fn2'><sup>2</sup></a>.</p>"
)


@pytest.mark.parametrize(
    "notes",
    [
        pytest.param(
            "<table><tbody><tr><td><a name='fn1' href='#ifn1'>1.</a></td>"
            "<td><p>First note.</p><p>Its rest.</p></td></tr>"
            "<tr><td><p><a name='fn2'>2.</a></p></td><td>Second note.</td></tr></tbody></table>",
            id="the number in a cell of its own",
        ),
        pytest.param(
            "<table><tr><td><a name='fn1'></a>1.</td><td>First note.</td><td>Its rest.</td></tr>"
            "<tr><td><p><a name='fn2'></a>2</p></td><td>Second note.</td></tr></table>",
            id="the number beside its anchor",
        ),
        pytest.param(
            "<table><tr id=fn1><td>1.</td><td>First note.<p>Its rest.</p></td></tr>"
            "<tr id=fn2><td>[2]</td><td>Second note.</td></tr></table>",
            id="the anchor on the row",
        ),
        pytest.param(
            "<table><tr><td id=fn1>1.</td><td>First note.<p>Its rest.</p></td></tr>"
            "<tr><th>2</th><td id=fn2>Second note.</td></tr></table>",
            id="the anchor on a cell",
        ),
        pytest.param(
            "<table><tr><td><p><a name='fn1'>1.</a> First note.</p><p>Its rest.</p></td></tr>"
            "<tr><td><p><a name='fn2'>2.</a> Second note.</p></td></tr></table>",
            id="one cell",
        ),
        pytest.param(
            "<dl><dt><a name='fn1' href='#ifn1'>1.</a></dt><dd>First note.</dd><dd>Its rest.</dd>"
            "<dt>2</dt><dd id=fn2>Second note.</dd></dl>",
            id="terms and descriptions",
        ),
        pytest.param(
            "<ol><li><p><a id=fn1></a>First note.</p><p>Its rest.</p></li>"
            "<li><a id=fn2></a>Second note.</li></ol>",
            id="items",
        ),
        pytest.param(
            "<div id=ftn1><p><a name='fn1'>[1]</a> First note.</p><p>Its rest.</p></div>"
            "<div id=ftn2><p><a name='fn2'>[2]</a> Second note.</p></div>",
            id="divisions of a word processor",
        ),
        pytest.param(
            "<p><a name='fn1'>1.</a></p><div>First note.<p>Its rest.</p></div>"
            "<p><a name='fn2'>2.</a></p><p>Second note.</p>",
            id="the number on a line of its own",
        ),
        pytest.param(
            "<div><a name='fn1'></a><div>1. First note.<p>Its rest.</p></div>"
            "<a name='fn2'></a><p>2. Second note.</p></div>",
            id="anchors between paragraphs",
        ),
    ],
)
def test_a_footnote_is_defined_however_its_number_is_set(notes: str) -> None:
    assert markdown(f"{REFERENCES}{notes}<p>Colophon.</p>") == (
        "One[^1] and two[^2].\n\n[^1]: First note.\n\n    Its rest.\n\n"
        "[^2]: Second note.\n\nColophon.\n"
    )


@pytest.mark.parametrize(
    "notes",
    [
        "<p><a name='fn1'>1.</a></p><p><a name='fn2'>2.</a></p>",
        "<table><tr><td><a name='fn1'>1</a><td>x<td><a name='fn2'>2</a><td>y</table>",
        "<dl><dt id=fn1>1<dt id=fn2>2</dl>",
    ],
)
def test_a_number_whose_note_cannot_be_told_stays_a_number(notes: str) -> None:
    text = markdown(REFERENCES + notes)
    assert text.startswith("One<sup>1</sup> and two<sup>2</sup>.\n")
    assert WORD.findall(text)[-2:] != ["sup", "2"]


def test_a_reference_in_the_row_of_its_note_is_no_number_of_it() -> None:
    page = "<table><tr><td><a href='#note1'>1</a></td><td id=note1>A note.</td></tr></table>"
    assert markdown(page) == "[^1]\n\n[^1]: A note.\n"


def test_notes_numbered_anew_in_each_section_have_labels_of_their_own() -> None:
    references = "".join(f"<p>x<sup><a href='#n{place}'>1</a></sup></p>" for place in range(3))
    notes = "".join(f"<p id=n{place}>1. {place}</p>" for place in range(3))
    text = markdown(references + notes)
    assert text.endswith("[^1]: 0\n\n[^1-2]: 1\n\n[^1-3]: 2\n")


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>x <ins>new</ins> <del>old</del></p>", "x <ins>new</ins> <del>old</del>\n"),
        ("<div><del><div>a</div><div>b</div></del></div>", "<del>a</del>\n\n<del>b</del>\n"),
        ("<p>a<br>b<br><br>c</p>", "a\\\nb\n\nc\n"),
        (
            "<p>CO<sub>2</sub> <img alt='State seal' src=s.png></p>",
            "CO<sub>2</sub> ![State seal]()\n",
        ),
        (
            "<p><a href='https://a.example/x'>a <b>b</b></a> <a href='/y'>c</a></p>",
            "[a **b**](https://a.example/x) c\n",
        ),
        ("<dl><dt>Term<dd>Meaning<dd>Other</dl>", "Term\n\n: Meaning\n\n: Other\n"),
        ("<blockquote><p>q<ul><li>i</ul></blockquote>", "> q\n>\n> - i\n"),
        ("<pre>a\n   b ```\n</pre>", "````\na\n   b ```\n````\n"),
        ("<p><b>a,</b>b <code>x.y</code></p>", "a,b `x.y`\n"),
        ("<p>&#147;q&#148;&nbsp;&sect;&#160;5 &amp;lt;</p>", "“q” § 5 \\&lt;\n"),
        ("<select><option>One<option>Two</select>", "One Two\n"),
        ("<p>one<p>two<b>three</p><td>four", "one\n\ntwo**three**\n\nfour\n"),
    ],
)
def test_structure_survives(page: str, expected: str) -> None:
    assert markdown(page) == expected


def test_an_unknown_element_is_named_once_and_its_text_kept() -> None:
    body = normalized("<p><odd>a</odd> <odd>b</odd></p>")
    assert body.markdown == "a b\n"
    assert body.warnings == ("unknown elements, their text kept: <odd>",)


def test_deep_nesting_keeps_every_word() -> None:
    body = normalized("start " + "<div>" * 5000 + "deep" + "</div>" * 5000 + " end")
    assert body.markdown.split() == ["start", "deep", "end"]
    assert body.warnings == ("nested too deeply: only paragraphs and headings are kept",)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", MalformedError),
        (b" \n", MalformedError),
        (b"<!-- only -->", MalformedError),
        (b"%PDF-1.7 x", WrongContentError),
        (b"plain words", WrongContentError),
        (b"<script>app()</script>", WrongContentError),
        (b'<?xml version="1.0"?><!-- c --><RULE><P>x</P></RULE>', WrongContentError),
    ],
)
def test_what_is_no_page_is_refused_by_name(data: bytes, error: type[ParseError]) -> None:
    with pytest.raises(error):
        Html().to_markdown(data)


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "</p>",
                "<b>",
                "</i>",
                "<table>",
                "<tr>",
                "<td colspan=3>",
                "<ol>",
                "<li>",
                "<pre>",
                "</table>",
                "<h2>",
                "<del>",
                "<br>",
                "<a href='http://x.example'>",
                "</a>",
                "word ",
                "x",
                "<",
            ]
        ),
        max_size=40,
    )
)
def test_broken_pages_give_a_body_with_right_offsets_or_a_parse_error(parts: list[str]) -> None:
    try:
        body = normalized("".join(parts))
    except ParseError:
        return
    assert all(body.markdown[heading.offset] == "#" for heading in body.headings)


@pytest.mark.parametrize("folder", ["codes/la", "codes/hi", "codes/mt", "codes/ct"])
def test_real_pages_keep_their_words(corpus: Callable[[str], Path], folder: str) -> None:
    pages = sorted(corpus(folder).rglob("*.htm*"))[::12][:15]
    assert pages
    for page in pages:
        data = page.read_bytes()
        parser = etree.HTMLParser(encoding="utf-8")
        root: Any = etree.fromstring(decode(data).text.encode(), parser)
        etree.strip_elements(root, *SILENT, etree.Comment, with_tail=False)
        words = WORD.findall(" ".join(root.itertext()).lower())[:8000]
        written = WORD.findall(Html().to_markdown(data).markdown.lower())[:11000]
        assert LCSseq.similarity(words, written) >= 0.999 * len(words), page.name


def test_of_a_page_that_marks_its_article_only_that_is_taken() -> None:
    page = b"<body><p>Menu</p><main><p>Caf\xc3\xa9</p></main>tail<footer>Foot</footer></body>"
    assert HtmlArticle().to_markdown(page).markdown.strip() == "Café"


@pytest.mark.parametrize("inner", ["", "<main> </main>", "<main>1</main><main>2</main>"])
def test_without_one_marked_article_the_page_stays_whole(inner: str) -> None:
    page = f"<html><body><p>All</p>{inner}</body></html>".encode()
    assert HtmlArticle().to_markdown(page).markdown == Html().to_markdown(page).markdown


def test_a_listing_that_begins_with_many_blank_lines_takes_no_longer_than_its_size() -> None:
    begun = time.process_time()
    found = markdown("<pre>" + "\n" * 450_000 + "  kept\n\nas it is\n\n</pre>")
    assert time.process_time() - begun < 5  # 17 seconds where each line is removed by itself
    assert found == markdown("<pre>  kept\n\nas it is</pre>")
    assert "  kept\n\nas it is\n" in found


# Boilerplate ------------------------------------------------------------------------------------

LAW = "<p>" + "The Secretary shall publish a list of all lamps each year. " * 4 + "</p>"


def words_of(page: str) -> list[str]:
    return " ".join(map(str, etree.HTML(page).itertext())).split()


LINKS = "<a href='/a'>Home</a> <a href='/b'>Titles</a> <a href='/c'>Search the Code</a>"


@pytest.mark.parametrize(
    ("boilerplate", "reason"),
    [
        (f"<nav>{LINKS}</nav>", "navigation"),
        (f"<div role='navigation'>{LINKS}</div>", "navigation"),
        (f"<div id='main-menu'><ul><li>{LINKS}</li></ul></div>", "navigation"),
        (f"<ol class='breadcrumb'><li>{LINKS}</li><li>47:1 Lamps</li></ol>", "breadcrumbs"),
        ("<div><a href='/1'>Previous</a> <a href='/'>Vol 7</a> <a href='/2'>Next</a></div>", None),
        ("<p><a href='#top'>Back to top</a></p>", None),
        ("<footer><p>Disclaimer: only the printed code is official.</p></footer>", "page footer"),
    ],
)
def test_boilerplate_is_left_out_and_listed_with_its_place(
    boilerplate: str, reason: str | None
) -> None:
    body = normalized(f"<body><p>One.</p>{boilerplate}{LAW}</body>")
    assert body.markdown == normalized(f"<body><p>One.</p>{LAW}</body>").markdown
    [left_out] = body.left_out
    assert left_out.text.split() == words_of(boilerplate)
    assert left_out.reason == (reason or "links to other pages")
    assert body.markdown[: left_out.offset].strip() == "One."


@pytest.mark.parametrize(
    "content",
    [
        # A table of contents of the page itself, and one that is the content of its page.
        "<div class='menu'><a href='#s1'>Section 1</a> <a href='#s2'>Section 2</a></div>",
        f"<main><h1>Title 4</h1><ul class='nav'><li>{LINKS}</li></ul></main>",
        # Words that only stand where boilerplate does.
        "<div class='navigation'>Navigation of rivers is free to <a href='/x'>all boats</a>.</div>",
        "<footer><p><a name='fn1'>1</a> The note of a page.</p></footer>",
        "<article><header><h1>Act</h1></header><footer>Enacted in May.</footer></article>",
        "<p>Next, the <a href='/x'>next</a> year is counted.</p>",
    ],
)
def test_content_that_resembles_boilerplate_is_kept(content: str) -> None:
    body = normalized(f"<body>{content}{LAW}</body>")
    assert body.left_out == ()
    assert all(word.strip(".,") in body.markdown for word in words_of(content))


def test_the_head_of_a_page_is_left_out_where_its_content_is_marked() -> None:
    page = f"<header><p>State of Lamps</p></header><main><h1>Title 4</h1>{LAW}</main>"
    assert [each.reason for each in normalized(page).left_out] == ["page header"]
    assert normalized(page.replace("main>", "div>")).left_out == ()


def test_a_page_of_links_keeps_all_but_its_navigation() -> None:
    page = f"<div class='menu'>{LINKS}</div><nav>Skip</nav><p>Codes</p>"
    body = normalized(page)
    assert [each.reason for each in body.left_out] == ["navigation"]
    assert "Search the Code" in body.markdown


def test_the_only_title_is_kept_from_within_the_navigation() -> None:
    body = normalized(f"<nav><p>Release 86</p><h1>TITLE 23 Equity</h1>{LINKS}</nav>{LAW}")
    assert body.markdown.startswith("# TITLE 23 Equity\n")
    assert [heading.section for heading in body.headings] == ["TITLE 23"]


# Captions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "heading", "rest"),
    [
        (
            "<p><span>§332.34.  Lamps in St. Ann; oil</span></p>",
            "§332.34. Lamps in St. Ann; oil",
            "",
        ),
        (
            "<p><b>§346-44 Recovery of lamps.</b> All lamps",
            "§346-44 Recovery of lamps.",
            "All lamps",
        ),
        ("<p><b>[§346-44] Lamps.</b> (a) All", "[§346-44] Lamps.", "(a) All"),
        ("<p><span class=catchline>15-2-3. Lamps.</span> (1) A", "15-2-3. Lamps.", "(1) A"),
        ("<div class='SectionHead'>§ 512. Lamps.</div>", "§ 512. Lamps.", ""),
    ],
)
def test_a_caption_of_a_section_is_a_heading(page: str, heading: str, rest: str) -> None:
    body = normalized(f"<body>{page}{LAW}</body>")
    assert visible_text(body.markdown.partition("\n")[0]).lstrip("# ") == heading
    assert [each.text for each in body.headings] == [heading]
    assert rest in body.markdown


@pytest.mark.parametrize(
    "line",
    [
        "<p>§ 12 applies.</p>",
        "<p>Sec. 5. All lamps burn, and they shall be lit at dusk.</p>",
        "<p>§680. Repealed by Acts 1998, No. 27, §1, eff. June 24, 1998.</p>",
        "<ul><li>§ 501. Lamps</li></ul>",
        "<p><b>Note.</b> All lamps</p>",
        "<p>§ 12. Definitions. In this part lamps are lights</p>",
    ],
)
def test_other_lines_are_no_headings(line: str) -> None:
    assert normalized(f"<body>{line}{LAW}</body>").headings == ()


def test_a_page_that_marks_its_sections_gets_no_other_headings() -> None:
    page = f"<h3>§ 1. Lamps</h3>{LAW}<p><b>§ 2. Oil.</b> Oil burns.</p>"
    assert [heading.text for heading in normalized(page).headings] == ["§ 1. Lamps"]


def test_paragraphs_of_heading_styles_are_headings() -> None:
    body = normalized(
        "<p class='Heading1'>Introduction</p><p>Text.<span class='CRSFootnoteReference'>"
        "<a href='#x1'>1</a></span></p><p class='Heading2'>Oil</p><p>Text.</p>"
        "<p class='FootnoteText'><a id='x1'>1.</a> See the law.</p>"
    )
    assert [(each.level, each.text) for each in body.headings] == [(1, "Introduction"), (2, "Oil")]
    assert "Text.[^1]" in body.markdown
    assert "[^1]: See the law." in body.markdown

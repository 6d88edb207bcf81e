"""Hostile documents are read, and do nothing else."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.errors import ItemFailedError
from fonds.web.document_html import is_clean, render, rendered_of_json

TAGS: Final = frozenset(
    {
        *("h1", "h2", "h3", "h4", "h5", "h6", "p", "blockquote", "pre", "hr", "ol", "ul", "li"),
        *("table", "thead", "tbody", "tr", "th", "td", "a", "br", "code", "del", "em", "ins", "s"),
        *("span", "strong", "sub", "sup", "u"),
    }
)
ATTRIBUTES: Final = frozenset({"href", "title", "rel", "id", "class", "start"})


class Reading(HTMLParser):
    """Fails on whatever a browser could act on."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert tag in TAGS
        for name, value in attrs:
            assert name in ATTRIBUTES, f"{name} in {tag}"
            if name == "href":
                assert re.match(r"(https?|mailto):", value or "", re.IGNORECASE)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")


def shown(text: str) -> str:
    """The HTML of a text, which was looked through."""
    html = render(text).html
    assert is_clean(html)
    reading = Reading()
    reading.feed(html)
    reading.close()
    return html


ATTACKS: Final = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "a <script>alert(1)</script> b",
    "<img src=x onerror=alert(1)>",
    "a <img src=x onerror=alert(1)> b",
    "<svg/onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<object data=x><embed src=x><applet>",
    "<form action=//evil.example><input name=a><button>b</button></form>",
    "<style>body{display:none}</style>",
    "<link rel=stylesheet href=//evil.example><meta http-equiv=refresh content=0>",
    "<base href=//evil.example>",
    "<p style='position:fixed'>x</p>",
    "<a href=javascript:alert(1)>x</a>",
    "<ins onclick=alert(1)>x</ins>",
    "<sub style=x>y</sub>",
    "<br onload=x>",
    "<del\nonmouseover=alert(1)\n>x",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    "[x](/logout)",
    "[x](#s1)",
    "[x](<javascript:alert(1)>)",
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/pixel.png)",
    '![x"onerror="alert(1)](y)',
    '[x](https://a.example "onclick=alert(1)\\" x=\\"")',
    "[![x](y)](javascript:alert(1))",
    "# <script>alert(1)</script>",
    "# [x](javascript:alert(1)) `<script>`",
    "| <script>alert(1)</script> | <img src=x onerror=y> |\n|---|:-:|\n| [x](javascript:y) | z |",
    "```<script>\n</code></pre><script>alert(1)</script>\n```",
    '``` "><script>alert(1)</script>\nx\n```',
    "`</code><script>alert(1)</script>`",
    "<!-- <script>alert(1)</script> -->",
    "<!--><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><?php echo 1 ?>",
    "<!DOCTYPE html>",
    "</div></article></main></body></html>",
    "<div><table><tr><td>",
    "<a <b <c <d",
    "<script",
    "<span class=at id=p1>x</span>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<textarea></textarea><script>alert(1)</script>",
    "<x\x00script>alert(1)</x\x00script>",
    "> - 1. > <script>alert(1)</script>\n> - <b onclick=x>",
    "<" * 500,
    "[" * 500 + "](x)" * 500,
    "<!--text-->",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_a_document_acts(attack: str) -> None:
    shown(attack)
    shown(f"Before.\n\n{attack}\n\nAfter.")
    shown(f"- {attack}\n  1. {attack}\n\n> {attack}")


@given(st.text("<>/!-[]()!`*_|\\\n:;&# \"'=aonscriptjv\t", max_size=120))
@settings(max_examples=300)
def test_nothing_acts_however_it_is_put_together(text: str) -> None:
    shown(text)


@given(st.lists(st.sampled_from([*ATTACKS, "\n", "\n\n", " ", "    ", "|", "> "]), max_size=6))
@settings(max_examples=150)
def test_attacks_do_not_help_each_other(parts: list[str]) -> None:
    shown("".join(parts))


def test_what_is_no_markup_of_ours_is_shown_as_it_is_written() -> None:
    assert "&lt;script&gt;" in shown("a <script> b")
    assert "secret" not in shown("a <!-- secret --> b")


def test_the_few_tags_that_normalizers_write_are_kept() -> None:
    html = shown("x<sup>2</sup> <ins>new</ins> <del>old</del> a<br>b <U>c</U>")
    for tag in ("<sup>2</sup>", "<ins>new</ins>", "<del>old</del>", "<br>", "<u>c</u>"):
        assert tag in html


def test_markup_left_open_ends_with_its_block() -> None:
    assert shown("<ins>a\n\nb").count("</ins>") == 1
    assert "<p>b</p>" in shown("<ins>a\n\nb")


def test_markup_may_stand_in_markup() -> None:
    html = shown("> - **a *b `c`* [d](https://example.org/)**\n")
    assert "<blockquote>" in html
    assert "<strong>a <em>b <code>c</code></em>" in html


def test_links_lead_elsewhere_and_tell_nobody_from_where() -> None:
    html = shown('[a](https://example.org/?a=1&b=2 "t") [b](mailto:a@example.org) [c](x.html)')
    assert 'href="https://example.org/?a=1&amp;b=2"' in html
    assert 'href="mailto:a@example.org"' in html
    assert html.count("href=") == 2
    assert 'rel="noopener noreferrer nofollow"' in html
    assert ">c</a>" in html


def test_pictures_are_told_of_and_not_loaded() -> None:
    html = shown("![A *map* of <b>flood</b> zones](https://evil.example/map.png)")
    assert "evil.example" not in html
    assert 'class="image"' in html
    assert "map" in html
    assert "picture" in shown("![](x.png)")


def test_tables_are_aligned_by_class() -> None:
    html = shown("| a | b | c |\n|:--|--:|:-:|\n| 1 | <ins>2</ins> | 3 |\n")
    assert html.count("<td") == 3
    assert '<td class="right"><ins>2</ins></td>' in html
    assert '<th class="center">c</th>' in html
    assert "style" not in html


def test_a_document_cannot_turn_the_direction_of_writing() -> None:
    html = shown("# invoice\u202efdp\n\na\u2066b\u2069 \u05e9\u05dc\u05d5\u05dd")
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", html)
    assert "invoicefdp" in html
    assert "\u05e9\u05dc\u05d5\u05dd" in html


def test_headings_are_listed_with_anchors() -> None:
    made = render("# One *two*\n\n## <b>x</b> `y`\n\n##### Deep\n\n# One *two*\n")
    assert [(each.level, each.anchor) for each in made.headings] == [
        (1, "s1"),
        (2, "s2"),
        (1, "s4"),
    ]
    assert made.headings[0].text == "One two"
    for anchor in ("s1", "s2", "s3", "s4"):
        assert f'id="{anchor}"' in made.html
    assert 'id="t1"' in render("# One", prefix="t").html


def test_passages_have_anchors_in_the_blocks_they_begin_in() -> None:
    text = "# One\n\nFirst.\n\n- a\n- second\n\n| x |\n|---|\n| third |\n"
    offsets = {n: text.index(word) for n, word in enumerate(("One", "First", "second", "third"))}
    html = render(text, offsets).html
    for number, word in ((0, "One"), (1, "First"), (2, "second"), (3, "third")):
        assert f'<span class="at" id="p{number}"></span>{word}' in html


def test_passages_are_found_behind_signs_that_are_left_out() -> None:
    text = "\u202e" * 50 + "x\n\nFirst.\n\nSecond.\n"
    html = render(text, {7: text.index("Second")}).html
    assert 'id="p7"></span>Second' in html


def test_passages_of_one_block_stand_in_their_order() -> None:
    html = render("One sentence. Another one.", {0: 0, 1: 14}).html
    assert html.index('id="p0"') < html.index('id="p1"')


def test_passages_of_a_text_without_a_block_do_no_harm() -> None:
    assert "id=" not in render("---\n", {0: 0}).html
    assert render("", {0: 0}).html == ""


@pytest.mark.parametrize(
    "piece",
    [
        "A sentence of *some* length with [a link](https://example.org/).\n\n",
        "<ins>a</ins> <b onclick=x> ",
        "[a](",
        "![",
        "[",
        "a\n",
        "|a|b\n|-|-\n",
        "**a _b ",
        "<!-- ",
        "> ",
        "| a | b |\n",
        "`a ``b ",
        "&amp;&#x",
    ],
)
def test_the_work_grows_no_faster_than_the_text(piece: str) -> None:
    """Four times as much text is about four times the work, and far from sixteen times."""
    render(piece)
    assert calls_for(piece, 6_000) < 6 * calls_for(piece, 1_500)


def calls_for(piece: str, size: int) -> int:
    """Function calls that it takes to render so much: the same on every machine."""
    count = 0

    def counting(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    text = piece * (size // len(piece))
    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        render(text)
    finally:
        sys.setprofile(before)
    return count


def test_a_megabyte_is_rendered_whole() -> None:
    paragraph = "A sentence of *some* length, with <ins>marks</ins>, that fills its line.\n\n"
    text = paragraph * (1_000_000 // len(paragraph))
    html = render(text, {0: 0, 1: len(text) - len(paragraph)}).html
    assert html.count("<p>") == text.count("\n\n")
    assert html.rindex('id="p1"') > html.rindex("<p>")


@pytest.mark.parametrize(
    "html",
    [
        "<script>alert(1)</script>",
        '<p onclick="alert(1)">x</p>',
        '<a href="javascript:alert(1)">x</a>',
        '<p><img src="https://evil.example/x.png"></p>',
        '<p id="a" <script>',
        "<p>a < b</p>",
    ],
)
def test_markup_of_a_reader_that_was_taken_over_reaches_no_page(html: str) -> None:
    with pytest.raises(ItemFailedError, match="no page may contain"):
        rendered_of_json({"html": html, "headings": []})


def test_something_other_than_html_of_a_reader_is_refused() -> None:
    with pytest.raises(ItemFailedError, match="something other than HTML"):
        rendered_of_json({"html": "<p>x</p>", "headings": [{"level": "one"}]})

"""Selectors are written by models that read strangers' pages: the bad ones are told."""

from __future__ import annotations

from typing import Any

import pytest

from fonds.errors import UsageError
from fonds.sites.pages import selectors
from fonds.sites.pages.css import css
from fonds.sites.pages.page import read_page

MARKUP = """<body id=top><div class="list first"><h3>A</h3>
<p><a id=a1 href="/x.PDF">1</a></p><p class=odd><a id=a2 href="/y.pdf" rel="nofollow next">2</a></p>
<p lang=en-GB><a id=a3 href="/z.html">3</a></p></div>
<table><tr><td>k</td><td><a id=a4 href=/t.pdf>4</a></td></tr></table><span></span></body>"""


def tree() -> Any:
    return read_page(MARKUP.encode(), "https://e.gov/", None).tree


def ids(elements: list[Any]) -> str:
    return " ".join(element.get("id") or element.tag for element in elements)


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        ("a", "a1 a2 a3 a4"),
        ("#a3, #a1", "a1 a3"),
        ("div.list > p a", "a1 a2 a3"),
        ("div > a", ""),
        ("h3 + p a", "a1"),
        ("h3 ~ p a", "a1 a2 a3"),
        ('a[href$=".pdf"]', "a2 a4"),
        ("a[href$='.pdf' i]", "a1 a2 a4"),
        ("a[href^='/z']", "a3"),
        ("a[href*=t]", "a3 a4"),
        ("a[rel~=next]", "a2"),
        ("[lang|=en] a", "a3"),
        ("td:nth-child(2) a", "a4"),
        ("p:nth-of-type(odd) a", "a1 a3"),
        ("p:nth-last-child(-n+2) a", "a2 a3"),
        ("p:last-child a", "a3"),
        ("p:not(.odd):not([lang]) a", "a1"),
        ("p:has(#a2) > a", "a2"),
        (":is(td, p.odd) a", "a2 a4"),
        ("div:contains('A') a", "a1 a2 a3"),
        ("A::attr(href)", "a1 a2 a3 a4"),
        ("span:empty", "span"),
    ],
)
def test_css_means_what_it_means_in_a_browser(selector: str, meant: str) -> None:
    assert ids(css(selector).select(tree())) == meant


@pytest.mark.parametrize(
    "selector",
    [
        "",
        " ",
        "a[",
        "a >",
        "> a",
        "a,,b",
        "a:hover",
        "a:nth-child(x)",
        "p:not(a b)",
        "a b)",
        "x" * 501,
        "#",
        "a:not(",
    ],
)
def test_css_that_cannot_be_read_is_told(selector: str) -> None:
    with pytest.raises(UsageError):
        css(selector)


@pytest.mark.parametrize(
    ("expression", "meant"),
    [
        ("//a", "a1 a2 a3 a4"),
        ("//div//a", "a1 a2 a3"),
        ("/html/body//p/a", "a1 a2 a3"),
        ("//div[@class='list first']/p[2]/a/@href", "a2"),
        ("//h3/following-sibling::p[1]/a", "a1"),
        ("//a[contains(@href, '.pdf')]", "a2 a4"),
        ("//td[2]/a | //p[1]/a", "a1 a4"),
        ("//a[ancestor::table]", "a4"),
        ("(//a)[2]", "a2"),
        ("//td/..//a", "a4"),
        ("//body[@id='top']/descendant::a[not(ancestor::div)]", "a4"),
    ],
)
def test_xpath_means_what_it_means_elsewhere(expression: str, meant: str) -> None:
    assert ids(selectors.select(expression, tree())) == meant
    assert ids(tree().xpath(expression.removesuffix("/@href"))) == meant


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "//a[",
        "//a[document('/etc/hostname')]",
        "//a[re:test(., 'x')]",
        "//a[$x]",
        "//a[//b]",
        "//a[ancestor::div[.//th]]",
        "count(//a)",
        "//" + "a" * 600,
    ],
)
def test_xpath_that_is_wrong_or_reaches_too_far_is_told(expression: str) -> None:
    with pytest.raises(UsageError):
        selectors.select(expression, tree())


def test_an_expression_is_read_from_a_link_with_its_column_at_hand() -> None:
    link = css("#a4").select(tree())[0]
    assert selectors.value("ancestor::tr[1]/td[1]", link) == "k"
    assert selectors.value("ancestor::table[1]//tr[1]/*[$column]", link, column=2) == "4"
    assert selectors.value("preceding::h3[1]", link) == "A"
    assert selectors.value("ancestor::tr[7]/td", link) == ""


def test_selectors_that_hang_elsewhere_end_here() -> None:
    rows = "<div><p><a href=x>t</a></p></div>" * 3000
    deep = ("<div>" * 90 + "<a href=x>t</a>" + "</div>" * 90) * 150
    flat, nested = (
        read_page(f"<body>{text}".encode(), "https://e.gov/", None).tree for text in (rows, deep)
    )
    assert len(css("div + div ~ div a").select(flat)) == 2998
    assert len(css("div div div div a").select(nested)) == 150
    assert len(selectors.select("//div//div//div//a", nested)) == 150


def test_a_path_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "_XPATH_SECONDS", -1.0)
    with pytest.raises(UsageError, match="too long"):
        selectors.select("//h3/following-sibling::p/a", tree())


def test_a_pattern_gives_its_first_group_or_all_of_it() -> None:
    assert [text for _, text in selectors.matches(r'href="([^"]+\.pdf)"', MARKUP)] == ["/y.pdf"]
    assert [text for _, text in selectors.matches(r"/\w\.html", MARKUP)] == ["/z.html"]


@pytest.mark.parametrize(
    "expression", ["", "(a", "a{1000}{1000}", "(?:a{900}){900}", "x" * 501, "(?R)", "(?:ab){e<=2}"]
)
def test_a_pattern_that_cannot_be_used_is_told(expression: str) -> None:
    with pytest.raises(UsageError):
        selectors.pattern(expression)


def test_a_pattern_that_would_run_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "_PATTERN_SECONDS", 0.05)
    with pytest.raises(UsageError, match="too long"):
        list(selectors.matches(r"(?:<.*?)+zzz", "<a>" * 5000))

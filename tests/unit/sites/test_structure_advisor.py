"""Lists as offices write them; none of them is a page of the zoo."""

from __future__ import annotations

import asyncio

import pytest

from fonds.engine.readers import ReaderPool
from fonds.sites.models import StrategyState, StrategyType, WebsiteConfiguration
from fonds.sites.page_reading import PageBytes, UnparsedPage
from fonds.sites.pages.page import WebPage, read_page
from fonds.sites.strategy import match_page, validated
from fonds.sites.structure_advisor import StructureAdvisor, propose

SITE = WebsiteConfiguration(id="e", name="Commission", base_url="https://e.gov/")
PARTIES = ("Harbour League", "Upland Farmers", "Voice of Ellis", "Tidewater Labour")
YEARS = (2023, 2022)
MARGINS = """<div class="site-footer"><a href="/privacy.pdf">Privacy (PDF)</a>
<a href="/access.pdf">Accessibility</a></div>"""


def file(party: str, year: int) -> str:
    return f"/d/{PARTIES.index(party)}-{year}.pdf"


def each(form: str) -> str:
    return "".join(
        form.format(party=party, year=year, next=year + 1, file=file(party, year))
        for party in PARTIES
        for year in YEARS
    )


def below(heads: str, form: str, *, by_year: bool) -> str:
    told = ""
    for outer in YEARS if by_year else PARTIES:
        told += heads.format(outer)
        for inner in PARTIES if by_year else YEARS:
            party, year = (str(inner), int(outer)) if by_year else (str(outer), int(inner))
            told += form.format(party=party, year=year, file=file(party, year))
    return told


LISTS = {
    "party beside the link": "<ul>"
    + each("<li>{party}, {year} <a href={file}>Download</a> (PDF 120 KB)</li>"),
    "year in the heading": below(
        "<h3>{}</h3>", "<p>{party}: <a href={file}>Return</a></p>", by_year=True
    ),
    "party in the heading": below(
        "<h2>{}</h2>", "<p><a href={file}>Annual accounts {year}</a></p>", by_year=False
    ),
    "party in a row of its own": "<table>"
    + below(
        "<tr><th colspan=2>{}</th></tr>",
        "<tr><td>{year}</td><td><a href={file}>view</a></td></tr>",
        by_year=False,
    ),
    "terms and definitions": "<dl>"
    + below("<dt>Financial year {}</dt>", "<dd><a href={file}>{party}</a></dd>", by_year=True),
    "years as columns": "<table><tr><th>Party</th><th>2023</th><th>2022</th></tr>"
    + "".join(
        f"<tr><td>{party}</td>"
        + "".join(f"<td><a href={file(party, y)}>PDF</a></td>" for y in YEARS)
        for party in PARTIES
    ),
    "parties as columns": "<table><tr><th>Year</th>"
    + "".join(f"<th>{party}</th>" for party in PARTIES)
    + "".join(
        f"<tr><th>{year}</th>"
        + "".join(f"<td><a href={file(p, year)}>PDF</a></td>" for p in PARTIES)
        for year in YEARS
    ),
    "cards with a date of filing": "<div class=grid>"
    + each(
        "<div class=tile><p class=who>{party}</p><p class=when>FY {year}</p>"
        "<p class=filed>Filed 3 May {next}</p><div><a class=btn href={file}>Open</a>"
        "<a class=btn href=/s.html>Summary</a></div></div>"
    )
    + "</div>",
    "a title and a button for each file": each(
        "<div class=file><a href={file}>{party} – {year}</a><a href={file} download>Get</a></div>"
    ),
    "lines with breaks": "<p>" + each("{year} annual return: <a href={file}>{party}</a><br>"),
    "clicks": "<table>"
    + each(
        "<tr><td>{party}</td><td>{year}</td><td>"
        "<button onclick=\"window.open('{file}')\">Show</button></td></tr>"
    ),
    "accordions": below(
        "<button>{}</button>", "<div class=panel><a href={file}>{party}</a></div>", by_year=True
    ),
}


def page(content: str, *, url: str = "https://e.gov/list") -> WebPage:
    # An open table would take the foot of the page into its last cell.
    closed = content + "</table></dl></ul></p>"
    return read_page(
        f"<html><body><div id=nav><a href=/>Home</a> <a href=/guide.pdf>Guide</a></div>"
        f"<h1>Returns</h1>{closed}{MARGINS}</body></html>".encode(),
        url,
        "text/html",
    )


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_is_found_whole_with_organisations_and_periods(kind: str) -> None:
    strategy = propose(SITE, page(LISTS[kind]))
    found = match_page(strategy, page(LISTS[kind])).pdfs
    told = {
        each.url.removeprefix("https://e.gov"): (each.organization, each.period) for each in found
    }
    assert told == {file(p, y): (p, f"{y}-annual") for p in PARTIES for y in YEARS}
    assert strategy.confidence > 0.5
    assert validated(strategy, page(LISTS[kind])).state is StrategyState.VALIDATED


@pytest.mark.parametrize("kind", LISTS)
def test_the_strategy_of_one_page_reads_the_next(kind: str) -> None:
    strategy = propose(SITE, page(LISTS[kind]))
    other = LISTS[kind].replace("/d/", "/e/").replace("Upland", "Lowland")
    assert match_page(strategy, page(other, url="https://e.gov/list2")).score == 1.0


def test_the_advisor_says_the_same_to_those_who_wait() -> None:
    markup = page(LISTS["clicks"])
    source = PageBytes(url=markup.url, content=markup.text.encode())
    with ReaderPool(workers=1) as readers:
        advice = asyncio.run(StructureAdvisor().advise(SITE, UnparsedPage(source, readers)))
    assert advice == propose(SITE, markup)


def test_a_page_that_lists_nothing_is_told_with_little_confidence() -> None:
    strategy = propose(SITE, page("<p>We register <a href=/parties>parties</a>.</p>"))
    assert strategy.confidence < 0.3
    assert match_page(strategy, page("<p>nothing</p>")).pdfs == ()


def test_more_forms_than_reports_do_not_win() -> None:
    forms = "".join(f"<li><a href=/forms/{n}.pdf>Form {n}</a></li>" for n in range(12))
    markup = page(f"<div class=box><ul>{forms}</ul></div>" + LISTS["party in the heading"])
    assert len(match_page(propose(SITE, markup), markup).pdfs) == 8


@pytest.mark.parametrize(
    ("pager", "turns"),
    [
        ("<a rel=next href='?p=2'>2</a>", ["?p=2"]),
        ("<a href='?p=2'>次へ</a>", ["?p=2"]),
        ("<a href='?p=2'>Weiter »</a>", ["?p=2"]),
        ("<a href='?p=2' aria-label='Next page'><svg></svg></a>", ["?p=2"]),
        ("<li class=pager-next><a href='?o=20'>go</a></li>", ["?o=20"]),
        ("<button class=load-more data-url='/more?o=20'>More</button>", ["/more?o=20"]),
        ("<p><b>1</b><a href='?p=2'>2</a><a href='?p=3'>3</a></p>", ["?p=2", "?p=3"]),
        ("<form><select name=page><option>2<option>3</select></form>", ["?page=2", "?page=3"]),
    ],
)
def test_the_next_pages_of_a_list_are_found(pager: str, turns: list[str]) -> None:
    markup = page(LISTS["clicks"] + "</table>" + pager)
    strategy = propose(SITE, markup)
    assert strategy.strategy_type is StrategyType.PAGINATION
    seen = [
        url.removeprefix("https://e.gov").removeprefix("/list")
        for url in match_page(strategy, markup).next_pages
    ]
    assert seen == turns


@pytest.mark.parametrize(
    "other", ["<a href='?p=0'>Previous</a>", "<a href=/x/24>24</a><a href=/x/60>60</a>"]
)
def test_other_links_are_no_next_page(other: str) -> None:
    assert propose(SITE, page(LISTS["clicks"] + "</table>" + other)).pagination_selector is None


def test_an_index_of_years_leads_on_to_the_best_first() -> None:
    markup = page(
        "<ul><li><a href=/list/contact>Contact</a><li><a href=/list/about>Parties</a>"
        "<li><a href=/list/2023>Returns of 2023</a></ul><iframe src=/inner.html></iframe>"
        "<a href=/events/2026/01/>Calendar</a><a href=https://elsewhere.gov/2023>2023</a>"
    )
    further = [url for url, _ in match_page(propose(SITE, markup), markup).further]
    assert further == [
        "https://e.gov/inner.html",
        "https://e.gov/list/2023",
        "https://e.gov/list/about",
    ]

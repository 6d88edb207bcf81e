from __future__ import annotations

import pytest

from fonds.errors import StoreError, UsageError
from fonds.sites.models import ScrapingStrategy, StrategyState, StrategyType
from fonds.sites.pages.page import WebPage, read_page
from fonds.sites.strategy import PageMatch, StrategyHealth, combined, match_page, validated

ROWS = "".join(
    f"<tr><td>{party}</td><td>{year}</td><td><a href='/f/{slug}{year}.pdf'>View</a></td></tr>"
    for party, slug in (("Green Party", "g"), ("Harbour League", "h"))
    for year in (2024, 2023)
)
LIST = f"""<body><nav><a href=/>Home</a></nav><main><h1>Returns</h1><table>{ROWS}</table>
<a class=next href="?page=2">Next</a><a href="/years/2020">2020</a></main>
<footer><a href=/privacy.pdf>Privacy policy</a></footer>"""
INDEX = "<body><h1>Years</h1><ul><li><a href=/2024/>2024</a><li><a href=/2023/>2023</a></ul>"


def page(markup: str = LIST) -> WebPage:
    return read_page(markup.encode(), "https://e.gov/returns", None)


def strategy(kind: str = "css_selector", *selectors: str, **more: object) -> ScrapingStrategy:
    told = {"website_id": "x", "strategy_type": kind, "confidence": 0.8, **more}
    return ScrapingStrategy.model_validate({**told, "pdf_link_selectors": list(selectors)})


@pytest.mark.parametrize(
    ("kind", "selector"),
    [
        ("css_selector", "td a"),
        ("css_selector", "table"),
        ("pagination", "main td > a"),
        ("xpath", "//td/a"),
        ("css_selector", "//td/a"),
        ("regex", r"href='(/f/[^']+)'"),
    ],
)
def test_every_kind_of_strategy_finds_the_list(kind: str, selector: str) -> None:
    match = match_page(strategy(kind, selector), page())
    assert [(each.url, each.organization, each.period) for each in match.pdfs] == [
        ("https://e.gov/f/g2024.pdf", "Green Party", "2024-annual"),
        ("https://e.gov/f/g2023.pdf", "Green Party", "2023-annual"),
        ("https://e.gov/f/h2024.pdf", "Harbour League", "2024-annual"),
        ("https://e.gov/f/h2023.pdf", "Harbour League", "2023-annual"),
    ]
    assert match.score == 1.0
    assert match.next_pages == ("https://e.gov/returns?page=2",)
    assert ("https://e.gov/years/2020", "2020") in match.further


def test_what_a_strategy_says_of_fields_is_believed_first() -> None:
    told = {"organization": "ancestor::tr[1]/td[2]"}
    found = match_page(
        strategy("css_selector", "td a", metadata_extraction=told),
        page(LIST.replace("2024</td>", "Blue Bloc</td>")),
    ).pdfs
    assert found[0].organization == "Blue Bloc"


def test_the_texts_that_led_to_a_page_fill_what_it_does_not_tell() -> None:
    lone = page("<body><h1>Documents</h1><p><a href=/r.pdf>Annual return</a></p>")
    [found] = match_page(
        strategy("css_selector", "p a"), lone, trail=("2022", "Harbour League")
    ).pdfs
    assert (found.organization, found.period) == ("Harbour League", "2022-annual")


def test_margins_are_left_out_where_the_matter_lists_something() -> None:
    urls = [each.url for each in match_page(strategy("css_selector", "a"), page()).pdfs]
    assert "https://e.gov/privacy.pdf" not in urls


def test_a_strategy_that_misses_some_scores_less() -> None:
    whole = match_page(strategy("css_selector", "td a"), page())
    half = match_page(strategy("css_selector", "tr:nth-child(odd) a"), page())
    assert 0 < half.score < whole.score
    assert half.listed == whole.listed == 4


def test_numbered_pagers_and_selectors_of_forms_lead_on() -> None:
    pager = "".join(f"<a href='?p={number}'>{number}</a> " for number in (2, 3, 4))
    numbered = page(f"<body><table>{ROWS}</table><div class=pager><b>1</b> {pager}</div>")
    assert len(match_page(strategy("css_selector", "td a"), numbered).next_pages) == 3
    form = "<form><select name=page><option>1<option>2</select></form>"
    chosen = strategy("pagination", "td a", pagination_selector="form:has(select)")
    assert len(match_page(chosen, page(f"<body><table>{ROWS}</table>{form}")).next_pages) == 2


def test_a_broken_selector_is_an_error_of_use() -> None:
    with pytest.raises(UsageError, match="CSS"):
        match_page(strategy("css_selector", "a["), page())
    assert validated(strategy("css_selector", "a["), page()).state is StrategyState.FAILED


def test_a_strategy_is_tried_on_its_sample_page() -> None:
    good = validated(strategy("css_selector", "td a"), page())
    assert (good.state, good.best) == (StrategyState.VALIDATED, 1.0)
    assert validated(strategy("css_selector", "li a"), page()).state is StrategyState.FAILED
    assert validated(strategy("css_selector", "li.x a"), page(INDEX)).state is StrategyState.CREATED


def sighting(score: float, listed: int = 5) -> PageMatch:
    return PageMatch(pdfs=(), next_pages=(), further=(), score=score, listed=listed)


def test_pages_that_list_nothing_are_no_sign_of_decay() -> None:
    standing = validated(strategy("css_selector", "td a"), page())
    for _ in range(20):
        standing = standing.used(match_page(standing.strategy, page(INDEX)))
    assert not standing.decayed
    assert standing.used(match_page(standing.strategy, page())).state is StrategyState.ACTIVE


def test_a_strategy_decays_when_pages_keep_going_badly() -> None:
    standing = validated(strategy("css_selector", "td a"), page())
    for count in range(3):
        assert not standing.decayed, count
        standing = standing.used(sighting(0.1))
    assert standing.decayed
    assert standing.state is StrategyState.FAILED


def test_one_good_page_among_bad_ones_keeps_a_strategy() -> None:
    standing = validated(strategy("css_selector", "td a"), page())
    for score in (0.1, 0.1, 0.9, 0.1, 0.1):
        standing = standing.used(sighting(score))
    assert not standing.decayed


def test_a_standing_comes_back_from_the_database_as_it_was() -> None:
    standing = validated(strategy("css_selector", "td a"), page()).used(sighting(0.4))
    assert StrategyHealth.from_json(standing.to_json()) == standing
    for text in ("", "{}", '{"strategy": 3, "state": "x", "best": 1, "scores": []}'):
        with pytest.raises(StoreError):
            StrategyHealth.from_json(text)


def test_two_strategies_become_one_that_finds_what_either_does() -> None:
    both = combined(
        strategy("css_selector", "td a", pagination_selector="a.next"),
        strategy("css_selector", "li a", metadata_extraction={"period": "."}),
    )
    assert both.pdf_link_selectors == ["li a", "td a"]
    assert (both.pagination_selector, both.metadata_extraction) == ("a.next", {"period": "."})
    assert combined(strategy("regex", "x"), both) == both
    assert both.strategy_type is StrategyType.CSS

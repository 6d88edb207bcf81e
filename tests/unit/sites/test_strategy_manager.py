"""How a strategy is found, tried, kept, watched and replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import servers
from tests.support.page_readers import hasty_readers

from fonds.errors import FetchError, ItemTimeoutError, SettingsError
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.sites.models import (
    ScrapingStrategy,
    StrategyState,
    StrategyType,
    WebsiteConfiguration,
)
from fonds.sites.page_reading import PageBytes, UnparsedPage
from fonds.sites.strategy import StrategyHealth
from fonds.sites.strategy_manager import (
    MAX_PROPOSALS,
    MAX_SLOW_PAGES,
    StrategyManager,
    advisors_of,
)
from fonds.sites.structure_advisor import StructureAdvisor
from fonds.sites.website import read_health, save_website, write_health
from fonds.stores.database import Database, open_database

OFFICE = WebsiteConfiguration(id="office", name="Office", base_url="https://office.example/")
CLOCK = Seams().clock
READERS = hasty_readers()


@pytest.fixture(scope="module", autouse=True)
def readers() -> Iterator[None]:
    """Processes that end with the tests of this module; they start with the first page."""
    yield
    READERS.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    file = tmp_path / "fonds.db"
    servers.sqlite_database(file)
    opened = open_database(f"sqlite:///{file}", seams=Seams())
    save_website(opened, OFFICE, "output", CLOCK)
    yield opened
    opened.close()


class Advising:
    """Says what it is told to, and counts how often it was asked."""

    def __init__(self, name: str, *selectors: str, error: Exception | None = None) -> None:
        self.name = name
        self.asked = 0
        self._selectors = list(selectors)
        self._error = error

    async def advise(self, website: WebsiteConfiguration, _page: UnparsedPage) -> ScrapingStrategy:
        self.asked += 1
        if self._error is not None:
            raise self._error
        return ScrapingStrategy(
            website_id=website.id,
            strategy_type=StrategyType.CSS,
            pdf_link_selectors=self._selectors,
            confidence=0.9,
        )


FAR_AXES = "//*[count(preceding::*/preceding::*) > 3]"


def unparsed(html: str, url: str) -> UnparsedPage:
    return UnparsedPage(PageBytes(url=url, content=html.encode(), media_type="text/html"), READERS)


def page(name: str, kind: str = "report", count: int = 6) -> UnparsedPage:
    """A page with a list of PDFs, marked up in its own way."""
    items = "".join(
        f'<li class="{kind}"><a class="{kind}-link" href="/{name}/{number}.pdf">'
        f"Party {number} 2024</a></li>"
        for number in range(count)
    )
    html = f"<html><body><main><h1>Reports</h1><ul>{items}</ul></main></body></html>"
    return unparsed(html, f"https://office.example/{name}")


def empty() -> UnparsedPage:
    html = "<html><body><main><p>Years: <a href='/2024'>2024</a></p></main></body></html>"
    return unparsed(html, "https://office.example/")


def tactics(database: Database, *advisors: Advising | StructureAdvisor) -> StrategyManager:
    return StrategyManager(website=OFFICE, advisors=advisors, database=database, clock=CLOCK)


def found(using: StrategyManager, seen: UnparsedPage) -> int:
    return len(asyncio.run(using.match(seen, ())).pdfs)


def test_a_strategy_that_works_is_active_and_kept(database: Database) -> None:
    advisor = Advising("told", "a.report-link")
    assert found(tactics(database, advisor), page("2024")) == 6
    standing = read_health(database, OFFICE.id)
    assert standing is not None
    assert standing.state is StrategyState.ACTIVE
    assert standing.strategy.pdf_link_selectors == ["a.report-link"]


def test_a_kept_strategy_is_used_without_asking(database: Database) -> None:
    found(tactics(database, Advising("told", "a.report-link")), page("2024"))
    again = Advising("again", "a.report-link")
    assert found(tactics(database, again), page("2025")) == 6
    assert again.asked == 0


def test_a_strategy_that_finds_nothing_on_the_page_is_not_used_and_the_next_advisor_is_asked(
    database: Database,
) -> None:
    wrong, right = Advising("wrong", "a.none"), Advising("right", "a.report-link")
    using = tactics(database, wrong, right)
    assert found(using, page("2024")) == 6
    assert (wrong.asked, right.asked, using.advisor) == (1, 1, "right")


def test_an_advisor_that_cannot_be_reached_is_passed_over(database: Database) -> None:
    away = Advising("away", error=FetchError("no answer"))
    using = tactics(database, away, StructureAdvisor())
    assert found(using, page("2024")) == 6
    assert using.advisor == StructureAdvisor().name


def test_a_selector_that_cannot_be_read_is_no_strategy(database: Database) -> None:
    broken = Advising("broken", "a[href")
    assert found(tactics(database, broken, StructureAdvisor()), page("2024")) == 6


def test_pages_of_another_kind_are_asked_about_and_both_are_read_from_then_on(
    database: Database,
) -> None:
    using = tactics(database, StructureAdvisor())
    assert found(using, page("one", "report")) == 6
    assert found(using, page("two", "statement")) == 6
    assert found(using, page("three", "report")) == 6
    assert found(using, page("four", "statement")) == 6


def test_pages_that_list_nothing_say_nothing_about_a_strategy(database: Database) -> None:
    advisor = Advising("told", "a.report-link")
    using = tactics(database, advisor)
    found(using, page("2024"))
    for _ in range(10):
        assert found(using, empty()) == 0
    assert advisor.asked == 1
    assert using.strategy is not None


def test_advisors_are_not_asked_without_end(database: Database) -> None:
    wrong = Advising("wrong", "a.none")
    using = tactics(database, wrong)
    for number in range(2 * MAX_PROPOSALS):
        found(using, page(f"{number}", f"kind{number}"))
    assert wrong.asked == MAX_PROPOSALS


@pytest.mark.long
def test_a_strategy_that_takes_too_long_on_pages_is_replaced_and_they_are_read_all_the_same(
    database: Database,
) -> None:
    slow = ScrapingStrategy(
        website_id=OFFICE.id,
        strategy_type=StrategyType.XPATH,
        pdf_link_selectors=[FAR_AXES],
        confidence=0.9,
    )
    write_health(database, OFFICE.id, StrategyHealth(strategy=slow), CLOCK)
    using = tactics(database, StructureAdvisor())
    for number in range(MAX_SLOW_PAGES):
        assert using.strategy == slow
        assert found(using, page(f"{number}", count=1500)) == 1500
    assert using.strategy != slow
    assert found(using, page("next")) == 6


def test_a_page_that_takes_too_long_whatever_reads_it_is_an_error(database: Database) -> None:
    using = tactics(database, StructureAdvisor())
    assert found(using, page("2024")) == 6
    attributes = " ".join(f"a{number}" for number in range(100_000))
    with pytest.raises(ItemTimeoutError, match="cannot be read as a page"):
        found(using, unparsed(f"<html><p {attributes}>", "https://office.example/hostile"))
    assert found(using, page("2025")) == 6


def test_a_strategy_of_another_address_is_forgotten(database: Database) -> None:
    found(tactics(database, Advising("told", "a.report-link")), page("2024"))
    save_website(database, OFFICE, "output", CLOCK)
    assert read_health(database, OFFICE.id) is not None
    moved = OFFICE.model_copy(update={"base_url": "https://elsewhere.example/"})
    save_website(database, moved, "output", CLOCK)
    assert read_health(database, OFFICE.id) is None


def test_a_strategy_can_be_forgotten(database: Database) -> None:
    found(tactics(database, Advising("told", "a.report-link")), page("2024"))
    write_health(database, OFFICE.id, None, CLOCK)
    assert read_health(database, OFFICE.id) is None


def test_the_settings_say_who_is_asked() -> None:
    settings = Settings()
    assert [one.name for one in advisors_of(settings)] == ["structure"]
    model = replace(settings, advisor="openai:some-model", advisor_key="k")
    assert [one.name for one in advisors_of(model)][-1] == "structure"
    assert len(advisors_of(model)) == 2
    for wrong in ("", "openai", "oracle:x", "structure:x"):
        with pytest.raises(SettingsError, match="structure or openai:MODEL"):
            advisors_of(replace(settings, advisor=wrong))

"""Pages, selectors and results that would hold a crawl, read in processes that may be ended."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.page_readers import hasty_readers

from fonds.engine.readers import ReaderPool
from fonds.errors import EngineError, ItemFailedError, ItemTimeoutError, WorkerDiedError
from fonds.sites.models import ScrapingStrategy, StrategyType
from fonds.sites.page_reading import PageBytes, UnparsedPage, typed
from fonds.sites.pages.page import WebPage
from fonds.sites.strategy import PageMatch, match_fields

FAR_AXES = "//*[count(preceding::*/preceding::*) > 3]"
BRACKETED = "(//*/preceding::*/preceding::*)[1]"


@pytest.fixture(scope="module")
def readers() -> Iterator[ReaderPool]:
    with hasty_readers() as made:
        yield made


def listing(filler: int = 0) -> str:
    items = "".join(f"<li><a href=/{n}-2024.pdf>Party {n} 2024</a>" for n in range(5))
    return f"<html><body><main><ul>{items}</ul>{'<p>text</p>' * filler}</main></body></html>"


def many_attributes(count: int) -> str:
    attributes = " ".join(f"a{number}=1" for number in range(count))
    return f"<html><body><p {attributes}></p>{listing()}</body></html>"


def match(readers: ReaderPool, markup: str, selector: str = "li a") -> PageMatch:
    strategy = ScrapingStrategy(
        website_id="e",
        strategy_type=StrategyType.XPATH if selector[0] in "/(" else StrategyType.CSS,
        pdf_link_selectors=[selector],
        confidence=0.9,
    )
    page = UnparsedPage(PageBytes(url="https://e.gov/l", content=markup.encode()), readers)
    return typed(PageMatch, asyncio.run(page.read(match_fields, strategy, ())))


def test_a_page_with_very_many_attributes_on_one_tag_is_an_error_and_the_next_page_is_read(
    readers: ReaderPool,
) -> None:
    with pytest.raises(ItemTimeoutError, match=r"e\.gov/l cannot be read as a page: .* 2 s"):
        match(readers, many_attributes(100_000))
    assert len(match(readers, listing()).pdfs) == 5


@pytest.mark.parametrize("selector", [FAR_AXES, BRACKETED])
def test_an_xpath_with_far_axes_is_an_error_and_the_next_page_is_read(
    readers: ReaderPool, selector: str
) -> None:
    with pytest.raises(EngineError, match="longer than"):
        match(readers, listing(filler=5_000), selector)
    assert len(match(readers, listing(), "//li/a").pdfs) == 5


def test_a_page_that_ends_its_reader_is_an_error_and_the_next_page_is_read(
    readers: ReaderPool,
) -> None:
    page = UnparsedPage(PageBytes(url="https://e.gov/l", content=listing().encode()), readers)
    with pytest.raises(WorkerDiedError, match="seems to be damaged"):
        asyncio.run(page.read(_end_the_process))
    assert len(match(readers, listing()).pdfs) == 5


def _end_the_process(_page: WebPage) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def test_a_page_in_a_file_is_read_from_there(readers: ReaderPool, tmp_path: Path) -> None:
    file = tmp_path / "page"
    file.write_text(listing())
    page = UnparsedPage(PageBytes(url="https://e.gov/l", content=file), readers)
    assert asyncio.run(page.read(_addresses)) == [f"https://e.gov/{n}-2024.pdf" for n in range(5)]


def _addresses(page: WebPage) -> list[str]:
    return [link.url for link in page.links()]


@pytest.mark.parametrize(
    "fields",
    [
        None,
        {},
        {"pdfs": [{"url": 7}], "next_pages": [], "further": [], "score": 1.0, "listed": 1},
        {"pdfs": [], "next_pages": [["a"]], "further": [], "score": 1.0, "listed": 1},
    ],
)
def test_a_result_of_another_form_is_an_error(fields: Any) -> None:
    with pytest.raises(ItemFailedError, match="not a PageMatch"):
        typed(PageMatch, fields)

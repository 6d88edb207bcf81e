"""Index pages as publishers wrote them: a strategy, or an honest word that there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fonds.sites.models import WebsiteConfiguration
from fonds.sites.pages.page import WebPage, read_page
from fonds.sites.strategy import match_page
from fonds.sites.structure_advisor import propose

SITE = WebsiteConfiguration(id="real", name="Real", base_url="https://example.gov/")
MIN_CONFIDENCE = 0.3


def read(file: Path) -> WebPage:
    return read_page(file.read_bytes(), "https://example.gov/", "text/html")


def test_each_gives_a_strategy_or_little_confidence(corpus: Callable[[str], Path]) -> None:
    files = sorted(corpus("sites/sites").rglob("*.htm*"))
    assert len(files) > 15
    for file in files:
        page = read(file)
        strategy = propose(SITE, page)
        found = match_page(strategy, page).pdfs
        assert strategy.confidence < MIN_CONFIDENCE or len(found) > 1, file


def test_a_code_whose_titles_are_pdfs_is_listed_whole(corpus: Callable[[str], Path]) -> None:
    [file] = corpus("sites/sites").glob("us-de/statute/*/delaware-code-html/index.html")
    match = match_page(propose(SITE, read(file)), read(file))
    assert len(match.pdfs) == 32
    assert match.score >= 0.8
    assert len(match.further) >= 31


@pytest.mark.parametrize("state", ["us-mt", "us-nh", "us-hi", "us-oh", "us-wa"])
def test_a_table_of_contents_leads_on(state: str, corpus: Callable[[str], Path]) -> None:
    files = sorted(corpus("sites/sites").glob(f"{state}/*/*/*/*.htm*"))
    furthest = max(len(match_page(propose(SITE, page), page).further) for page in map(read, files))
    assert furthest >= 10

"""Index pages as publishers wrote them: a strategy, or an honest word that there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fonds.sites.models import WebsiteConfiguration
from fonds.sites.pages.page import WebPage, read_page
from fonds.sites.strategy import sight
from fonds.sites.structure_advisor import advised

SITE = WebsiteConfiguration(id="real", name="Real", base_url="https://example.gov/")
UNSURE = 0.3


def read(file: Path) -> WebPage:
    return read_page(file.read_bytes(), "https://example.gov/", "text/html")


def test_each_gives_a_strategy_or_little_confidence(corpus: Callable[[str], Path]) -> None:
    files = sorted(corpus("sites/sites").rglob("*.htm*"))
    assert len(files) > 15
    for file in files:
        page = read(file)
        strategy = advised(SITE, page)
        found = sight(strategy, page).found
        assert strategy.confidence < UNSURE or len(found) > 1, file


def test_a_code_whose_titles_are_pdfs_is_listed_whole(corpus: Callable[[str], Path]) -> None:
    [file] = corpus("sites/sites").glob("us-de/statute/*/delaware-code-html/index.html")
    sighting = sight(advised(SITE, read(file)), read(file))
    assert len(sighting.found) == 32
    assert sighting.score >= 0.8
    assert len(sighting.further) >= 31


@pytest.mark.parametrize("state", ["us-mt", "us-nh", "us-hi", "us-oh", "us-wa"])
def test_a_table_of_contents_leads_on(state: str, corpus: Callable[[str], Path]) -> None:
    files = sorted(corpus("sites/sites").glob(f"{state}/*/*/*/*.htm*"))
    furthest = max(len(sight(advised(SITE, page), page).further) for page in map(read, files))
    assert furthest >= 10

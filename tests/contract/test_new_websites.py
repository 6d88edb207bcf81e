"""Websites that another process crawls are known to servers, schedulers and commands."""

from __future__ import annotations

import pytest
from tests.support.polling import wait_until

from fonds.errors import UnknownSourceError
from fonds.library import Library
from fonds.serving import following_websites
from fonds.sites.models import WebsiteConfiguration
from fonds.sites.website import save_website


def crawl_elsewhere(library: Library, name: str) -> str:
    """Store a website as a crawl of another process does; returns the name of its source."""
    configuration = WebsiteConfiguration(
        id=name,
        name="Water Office",
        base_url="https://water.example/",
        description="Reports",
        crawl_frequency="daily",
    )
    save_website(library.database, configuration, "output", library.seams.clock)
    return f"site-{name}"


def test_a_server_learns_of_a_website_while_it_runs(library: Library) -> None:
    with following_websites(library, seconds=0.01):
        name = crawl_elsewhere(library, "water")
        wait_until(lambda: name in library.sources)
        other = crawl_elsewhere(library, "wood")
        wait_until(lambda: {name, other} <= set(library.sources))


def test_a_command_finds_a_website_that_was_crawled_after_it_started(library: Library) -> None:
    name = crawl_elsewhere(library, "water")
    assert name not in library.sources
    assert library.require_source(name).info.schedule is not None
    with pytest.raises(UnknownSourceError):
        library.require_source("site-wind")


def test_websites_that_have_not_changed_are_not_read_again(library: Library) -> None:
    name = crawl_elsewhere(library, "water")
    library.reload_websites()
    website = library.sources[name]
    library.reload_websites()
    assert library.sources[name] is website

"""The picture of the site in README.md. To renew it, and then look at it:

FONDS_SCREENSHOTS=docs/images .venv/bin/python -m pytest tests/web/test_picture.py
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from tests.web.browsing import Site, photograph

PICTURE: Final = Path(__file__).parents[2] / "docs" / "images" / "site.png"
MAX_BYTES: Final = 150_000
WIDTH: Final = 960
HEIGHT: Final = 620
"""About the width of a README, and enough for facets next to results."""


def test_search_results_are_photographed(site: Site, page: Page) -> None:
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    page.emulate_media(color_scheme="light")
    page.goto(f"{site.address}/?q=overtime+salary+threshold")
    expect(page.locator(".hit mark").first).to_be_visible()
    expect(page.get_by_role("group", name="Source")).to_be_visible()
    photograph(page, PICTURE.stem, full_page=False)


@pytest.mark.smoke
def test_committed_picture_is_a_small_png() -> None:
    content = PICTURE.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(content) < MAX_BYTES
    assert struct.unpack(">II", content[16:24]) == (WIDTH, HEIGHT)

"""Search to document to citation, tree to section to redline, in a real browser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from tests.support.libraries.demo import copy_demo_library
from tests.web.browsing import PATIENCE, Site, aside, check_page, served

from fonds.codes.run import CodeRequest

OLDER: Final = "118-250"
SECTION: Final = "usc/119-36/root/title-53/chapter-1/section-103"
PAGES: Final = {
    "home": "/",
    "search": "/?q=wildfire+smoke",
    "narrowed": "/?q=wildfire+smoke&source=federal_register&year=2026",
    "nothing-found": "/?q=zzzzqqqq",
    "bad-question": "/?q=-only",
    "document": "/d/fr:2026-00101",
    "section": f"/d/{SECTION}",
    "bill": "/d/bill:119-hr-2101",
    "member": "/d/legislator:A901005",
    "vote": "/d/vote:house/119-1/362",
    "links": "/links/bill:119-hr-2101",
    "verified": "/verify/fr:2026-00101",
    "codes": "/c",
    "code": "/c/usc",
    "edition": "/c/usc/119-36",
    "chapter": "/c/usc/119-36/root/title-53/chapter-1",
    "compared": f"/compare?before={SECTION.replace('119-36', OLDER)}&after={SECTION}",
    "changes": "/changes",
    "changes-of-a-source": "/changes?source=federal_register",
    "reference": "/docs",
    "login": "/login",
}

expect.set_options(timeout=PATIENCE * 1000)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The demo library with an older edition of its code beside the newest."""
    with served(copy_demo_library(tmp_path_factory.mktemp("reading"))) as site:
        release = "data/uscode.house.gov/download/releasepoints/us/pl/118/250/usc53.xml"
        older = files("fonds.demo") / release
        request = CodeRequest(version=OLDER, given=str(older))
        aside(lambda: asyncio.run(site.library.ingest_code("usc", request)))
        yield site


@pytest.mark.smoke
def test_search_leads_to_a_document_and_to_its_citation(
    site: Site, open_page: Callable[..., Page]
) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(site.address)
    page.get_by_label("Search the library").fill("overtime salary threshold")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("mark").first).to_be_visible()
    page.get_by_role("link", name="Defining and Delimiting the Exemptions").first.click()
    expect(page.get_by_role("heading", level=1).first).to_contain_text("Salary Threshold")
    assert page.evaluate("document.querySelector(':target') !== null")
    page.get_by_role("button", name="Copy citation").click()
    expect(page.locator("#announcer")).to_have_text("copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(r"91 Fed\. Reg\. \d+ \(.+ 2026\)\.", copied)
    page.get_by_text("CSL-JSON, BibTeX").click()
    page.get_by_role("button", name="Copy BibTeX").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.startsWith('@'))")


def test_results_are_narrowed_by_facets_and_widened_again(site: Site, page: Page) -> None:
    page.goto(f"{site.address}/?q=wildfire+smoke")
    everything = page.locator(".hit").count()
    page.get_by_role("group", name="Source").get_by_role("link", name="Federal Register").click()
    expect(page).to_have_url(re.compile("source=federal_register"))
    for where in page.locator(".hit .cite").all_text_contents():
        assert "Fed. Reg." in where
    page.get_by_role("link", name="selected; remove").click()
    expect(page.locator(".hit")).to_have_count(everything)


def test_keys_lead_through_results(site: Site, page: Page) -> None:
    page.goto(f"{site.address}/?q=wildfire")
    page.locator("body").press("j")
    page.locator(":focus").press("j")
    second = page.locator("[data-hit]").nth(1)
    expect(second).to_be_focused()
    second.press("/")
    expect(page.get_by_label("Search the library")).to_be_focused()


@pytest.mark.parametrize("with_script", [True, False])
def test_tree_leads_to_a_section_and_to_a_redline(
    site: Site,
    open_page: Callable[..., Page],
    with_script: bool,  # noqa: FBT001 — how tests are given values
) -> None:
    page = open_page(java_script_enabled=with_script)
    page.goto(f"{site.address}/c")
    page.get_by_role("link", name="United States Code").click()
    page.get_by_role("link", name="119-36").click()
    page.locator("summary", has_text="Title 53").click()
    if not with_script:
        page.get_by_role("link", name="Open Title 53").click()
    page.locator("summary", has_text="CHAPTER 1—ACCESS").click()
    if not with_script:
        page.get_by_role("link", name="Open CHAPTER 1").click()
    page.get_by_role("link", name="§ 103. Requests").first.click()
    expect(page).to_have_url(f"{site.address}/d/{SECTION}")
    page.get_by_role("link", name="compare").click()
    expect(page.locator("del").first).to_contain_text("thirty")
    expect(page.locator("ins").first).to_contain_text("ten")


def test_sections_lead_to_the_next_and_the_one_before(site: Site, plain_page: Page) -> None:
    plain_page.goto(f"{site.address}/d/{SECTION}")
    following = plain_page.locator("a[rel=next]")
    name = following.inner_text()
    following.click()
    expect(plain_page.get_by_role("heading", level=1).first).to_contain_text(name.strip(" →")[:20])
    plain_page.locator("a[rel=prev]").click()
    expect(plain_page).to_have_url(f"{site.address}/d/{SECTION}")


@pytest.mark.parametrize("name", PAGES)
def test_page_fits_is_accessible_and_quiet(site: Site, page: Page, name: str) -> None:
    answer = page.goto(site.address + PAGES[name])
    assert answer is not None
    assert answer.status == 200
    check_page(page, name)


def test_every_page_works_without_scripts(site: Site, plain_page: Page) -> None:
    for path in PAGES.values():
        answer = plain_page.goto(site.address + path)
        assert answer is not None
        assert answer.status == 200, path
        assert plain_page.locator("main").inner_text().strip(), path


def test_unknown_page_is_told_in_words(site: Site, page: Page, complaints: list[str]) -> None:
    page.goto(f"{site.address}/d/fr:0000-00000")
    expect(page.get_by_role("heading", name="Not Found")).to_be_visible()
    expect(page.get_by_text("the library has no document")).to_be_visible()
    assert [each for each in complaints if "404" not in each] == []
    complaints.clear()

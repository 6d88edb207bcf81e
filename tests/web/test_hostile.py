"""Documents that try to run scripts, break pages or deceive readers only get read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect
from tests.support.libraries.demo import copy_demo_library
from tests.support.libraries.documents import hold
from tests.web.browsing import Site, require_no_scroll, served

from fonds.model import NormalizedBody

RUNS: Final = "window.hacked = true"
TRICKS: Final = (
    f"<script>{RUNS}</script>",
    f"<img src=x onerror='{RUNS}'>",
    f"<svg onload='{RUNS}'>",
    f'"><script>{RUNS}</script>',
    f"' onmouseover='{RUNS}' x='",
    f"</title><script>{RUNS}</script>",
    f"</textarea></style></script><script>{RUNS}</script>",
    f"<iframe srcdoc='<script>{RUNS}</script>'></iframe>",
    f'<a href="javascript:{RUNS}">click</a>',
    "{{ 7 * 7 }}{% raw %}",
    "<!--<script>",
    "<div><table><b></p>",
    "\u202egnp.exe\u202c \u2066\u2067 \u200f",
    "x" * 3000,
)
BODY: Final = "\n\n".join(
    [
        *(f"# {trick}" for trick in TRICKS[:8]),
        *TRICKS,
        f"[a](javascript:{RUNS}) [b](JaVaScRiPt:{RUNS})",
        f"[c](data:text/html,<script>{RUNS}</script>)",
        f"<javascript:{RUNS}> ![x](https://elsewhere.example/spy.png) [d](vbscript:x) [e](/admin)",
        f"[f]: javascript:{RUNS}\n\n[f]",
        f"| <script>{RUNS}</script> | <img src=x onerror={RUNS}> |\n|---|---|\n| </table> | x |",
        f"```\n</code></pre><script>{RUNS}</script>\n```",
        f'<h1 onclick="{RUNS}">big</h1>',
        "<style>body { display: none }</style>",
        "<form action='https://elsewhere.example'><input name=token></form>",
        "<meta http-equiv=refresh content='0;url=https://elsewhere.example'>",
        "> " * 300 + "deep",
    ]
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A library whose documents were written by somebody who means harm."""
    with served(copy_demo_library(tmp_path_factory.mktemp("hostile"))) as site:
        for number, trick in enumerate(TRICKS):
            hold(
                site.library,
                f"site:evil/{number}",
                "zebra crossing",
                title=f"zebra {trick}",
                summary=trick,
                citation_string=f"Cited {trick}",
                source_org=trick,
                source_url=f"javascript:{RUNS}" if number % 2 else "https://evil.example/" + trick,
                normalized=NormalizedBody(markdown=f"zebra crossing\n\n{BODY}"),
            )
        yield site


@pytest.fixture
def watched(open_page: Callable[..., Page]) -> Page:
    """A page on which a dialog, or a script of a document's, is seen."""
    page = open_page()
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    return page


HARM: Final = """() => [
  ...document.querySelectorAll("main script, iframe, form[action^=http]"),
  ...[...document.links].filter((each) => each.protocol === "javascript:"),
  ...[...document.querySelectorAll("*")].filter(
    (each) => each.getAttributeNames().some((name) => name.startsWith("on"))),
].map((each) => each.outerHTML)"""


def assert_harmless(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    assert page.locator("footer").is_visible()
    assert page.evaluate(HARM) == []
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        require_no_scroll(page)


@pytest.mark.parametrize("number", range(len(TRICKS)))
def test_document_runs_nothing_and_breaks_no_page(site: Site, watched: Page, number: int) -> None:
    answer = watched.goto(f"{site.address}/d/site:evil/{number}")
    assert answer is not None
    assert answer.status == 200
    for link in watched.locator("article a").all()[:5]:
        link.hover()
    assert_harmless(watched)
    assert not any(mark in watched.title() for mark in "\u202e\u2066\u2067")


def test_questions_run_nothing(site: Site, watched: Page) -> None:
    for trick in TRICKS:
        watched.goto(f"{site.address}/?q={quote(trick[:500])}")
        assert_harmless(watched)


@pytest.mark.parametrize(
    "path", ["/?q=zebra", "/changes", "/links/site:evil/0", "/verify/site:evil/0"]
)
def test_lists_of_such_documents_are_harmless(site: Site, watched: Page, path: str) -> None:
    watched.goto(site.address + path)
    expect(watched.get_by_text("zebra").first).to_be_visible()
    assert_harmless(watched)

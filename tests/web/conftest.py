"""Fixtures for tests in a real Chromium, over a site that is really served.

`site` is a copy of the library that `fonds demo` makes, for one module. `page` belongs to one test,
and fails it for whatever a visitor with open developer tools would see: errors, and requests that
leave this machine. Playwright's loop runs in the thread of the tests for as long as the browser is
open, so `asyncio.run` needs `browsing.aside` here; the browser is closed before any other test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright
from tests.support.libraries.demo import copy_demo_library
from tests.web.browsing import Site, served

from fonds.sites.browser import find_program


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module: pytest would keep one of the folder open until the run ends."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_program(""), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The demo library, served to whoever sits at this machine."""
    home = copy_demo_library(tmp_path_factory.mktemp("site"))
    with served(home) as site:
        yield site


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complained about; a test that expects it takes it out."""
    return []


@pytest.fixture
def open_page(chromium: Browser, complaints: list[str]) -> Iterator[Callable[..., Page]]:
    """Opens pages in a browser of their own each, with options such as `java_script_enabled`."""
    with ExitStack() as stack:

        def opened(**options: Any) -> Page:
            context = chromium.new_context(
                viewport={"width": 1280, "height": 900}, reduced_motion="reduce", **options
            )
            stack.callback(context.close)
            page = context.new_page()
            _watch(page, complaints)
            return page

        yield opened
    assert complaints == []


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    """A page of a browser that knows nothing yet."""
    return open_page()


@pytest.fixture
def plain_page(open_page: Callable[..., Page]) -> Page:
    """The same, without JavaScript."""
    return open_page(java_script_enabled=False)


def _watch(page: Page, complaints: list[str]) -> None:
    def asked(request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.hostname != "127.0.0.1":
            complaints.append(f"request to {request.url}")

    def said(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(f"console: {message.text}")

    page.on("request", asked)
    page.on("pageerror", lambda error: complaints.append(f"page error: {error}"))
    page.on("console", said)

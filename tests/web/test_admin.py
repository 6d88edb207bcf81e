"""Operators at work in a browser: what they see, and a run from their click to its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from tests.support.libraries.demo import copy_demo_library
from tests.support.libraries.troubled import Trouble, make_trouble
from tests.web.browsing import (
    PATIENCE,
    PHONE,
    Site,
    check_page,
    photograph,
    served,
)

from fonds.demo.bundle import bundled_sites
from fonds.demo.http import Handler, Request, Response
from fonds.demo.server import DemoUpstream
from fonds.operations import dispatcher
from fonds.runs import commands

AT: Final = "/admin/ingestion"
TITLE: Final = "Members of Congress"
PAGES: Final = {
    "overview": "",
    "runs": "/runs",
    "texts": "/normalization",
    "vectors": "/embedding",
    "citations": "/citations",
    "uploads": "/uploads",
    "sites": "/sites",
    "indexes": "/indexes",
    "audits": "/audits",
    "commands": "/commands",
    "source": "/sources/federal_register",
}


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Keeps every publisher from answering while it is closed."""

    is_open: threading.Event = field(default_factory=threading.Event)

    def before(self, answer: Handler) -> Handler:
        def held(request: Request) -> Response:
            self.is_open.wait(PATIENCE)
            return answer(request)

        return held


@pytest.fixture(autouse=True)
def _patience(page: Page) -> None:
    page.set_default_timeout(PATIENCE * 1000)
    expect.set_options(timeout=PATIENCE * 1000)


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, gate: Gate) -> Iterator[Site]:
    """The demo library with its publishers behind a gate."""
    home = copy_demo_library(tmp_path_factory.mktemp("operated"))
    sites = {host: gate.before(answer) for host, answer in bundled_sites().items()}
    with (
        DemoUpstream(sites) as upstream,
        served(home, hosts=upstream.hosts, allow_private=True) as site,
    ):
        yield site


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Trouble]]:
    home = copy_demo_library(tmp_path_factory.mktemp("troubled"))
    with served(home) as site:
        yield site, make_trouble(site.library)


@contextmanager
def scheduler(site: Site) -> Iterator[None]:
    """Somebody who takes commands up, as `fonds scheduler` does."""
    stop = threading.Event()
    serving = dispatcher(site.library, poll=0.1).serve(stop.is_set)
    thread = threading.Thread(target=lambda: asyncio.run(serving), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.fixture
def closed(gate: Gate) -> Iterator[Gate]:
    """The gate, closed until the test opens it or ends."""
    gate.is_open.clear()
    yield gate
    gate.is_open.set()


def begin(page: Page, site: Site) -> None:
    """Log in, click on Run, and follow the run."""
    site.operate(page)
    page.goto(site.address + AT)
    page.get_by_role("button", name=f"Run {TITLE}").click()
    asked = page.locator("#submitted")
    expect(asked).to_contain_text("Run of legislators")
    asked.get_by_role("link", name="follow the run").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Run of {TITLE}")
    expect(page.locator("#head .badge").first).to_have_text("running")


def test_run_is_started_followed_live_and_seen_to_end(site: Site, page: Page, closed: Gate) -> None:
    with scheduler(site):
        begin(page, site)
        page.evaluate("window.wasNotLoadedAgain = true")
        log = page.get_by_role("log")
        expect(log).to_contain_text("discovering began")
        check_page(page, "admin-run-going-on")
        before = log.locator(".line").count()
        closed.is_open.set()
        expect(log).to_contain_text("run ended: success")
        expect(page.locator("#head .badge").first).to_have_text("success")
        assert log.locator(".line").count() > before
        assert page.evaluate("window.wasNotLoadedAgain")
    expect(page.locator("#stages")).to_contain_text("discover")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    photograph(page, "admin-run-ended")
    messages = log.locator(".line bdi:first-of-type")
    followed = messages.all_text_contents()
    page.reload()
    assert messages.all_text_contents() == followed


def test_run_is_cancelled(site: Site, page: Page, closed: Gate) -> None:
    with scheduler(site):
        begin(page, site)
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#head .badge").first).to_have_text("cancelled")
        expect(page.locator("#submitted")).to_contain_text("the run was cancelled")
        closed.is_open.set()
    photograph(page, "admin-run-cancelled")


def test_range_is_asked_for_while_nobody_is_there(site: Site, page: Page) -> None:
    site.operate(page)
    page.goto(f"{site.address}{AT}/sources/federal_register")
    page.get_by_text("Backfill a range").click()
    form = page.locator("form", has=page.get_by_role("button", name="Backfill"))
    form.get_by_label("Since").fill("2026-01-01")
    form.get_by_label("Until").fill("2026-01-31")
    form.get_by_role("button", name="Backfill").click()
    expect(page.locator("#submitted")).to_contain_text("waits for a scheduler or worker")
    with site.library.database.read() as connection:
        (asked,) = commands.listing(connection, is_open=True, limit=5)
    assert asked.args == {"since": "2026-01-01", "until": "2026-01-31"}
    with site.library.database.write() as connection:
        commands.withdraw(connection, "federal_register", "test", site.library.seams.clock.now())


@pytest.mark.parametrize("name", [*PAGES, "run"])
def test_page_of_operators_fits_and_is_accessible(
    troubled: tuple[Site, Trouble], page: Page, name: str
) -> None:
    site, trouble = troubled
    site.operate(page)
    page.goto(site.address + AT + PAGES.get(name, f"/runs/{trouble.failed}"))
    check_page(page, f"admin-{name}")


def test_pages_work_without_javascript(
    troubled: tuple[Site, Trouble], open_page: Callable[..., Page]
) -> None:
    site, trouble = troubled
    page = open_page(java_script_enabled=False)
    page.set_viewport_size({"width": PHONE, "height": 900})
    site.operate(page)
    for place in (*PAGES.values(), f"/runs/{trouble.failed}"):
        page.goto(site.address + AT + place)
        expect(page.locator("h1")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE
    expect(page.get_by_role("log")).to_contain_text("line 23")
    page.goto(site.address + AT)
    page.get_by_role("button", name=f"Run {TITLE}").click()
    expect(page.locator("#submitted")).to_contain_text("waits for a scheduler or worker")
    expect(page.get_by_text("No process seems to execute commands")).to_be_visible()
    page.get_by_label("Operations").get_by_role("link", name="Commands").click()
    expect(page.locator("#commands")).to_contain_text("Run of legislators")

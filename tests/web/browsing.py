"""A site in a thread of this process, and what all pages are asked for in a real browser."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from fonds.library import Library, open_library
from fonds.mcp.http import bind_socket
from fonds.uploads.users import Scope, create_token
from fonds.uploads.worker import UploadWorker
from fonds.web.site import make_site

PHONE: Final = 390
DESKTOP: Final = 1280
HEIGHT: Final = 900
PATIENCE: Final = 60.0
GRAVE: Final = ("serious", "critical")
_UNUSUAL: Final = re.compile(r"[^a-z0-9]+")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Site:
    """A library that is served, which tests may look into and change meanwhile."""

    address: str
    library: Library

    def token(self, user: str, scope: Scope = "user") -> str:
        """A token to log in with."""
        with self.library.database.write() as connection:
            _, secret = create_token(
                connection,
                user=user,
                label="test",
                scope=scope,
                now=self.library.seams.clock.now(),
                rng=self.library.seams.rng,
            )
        return secret

    def operate(self, page: Page) -> None:
        """Log in as an operator."""
        self.log_in(page, self.token("ada", "admin"))

    def log_in(self, page: Page, token: str) -> None:
        """As a person does."""
        page.goto(f"{self.address}/login")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{self.address}/")

    @contextmanager
    def worker(self) -> Iterator[None]:
        """A worker on uploads, beside the site."""
        with (
            self.library.worker_resources() as resources,
            _beside(UploadWorker(resources, poll=0.05).run),
        ):
            try:
                yield
            finally:
                resources.stop.set()


@contextmanager
def served(home: Path, *, is_exposed: bool = False, **settings: Any) -> Iterator[Site]:
    """The site of a library, at a port of its own."""
    with open_library(home, **settings) as library, bind_socket("127.0.0.1", 0) as listening:
        server = uvicorn.Server(
            uvicorn.Config(
                make_site(library, is_exposed=is_exposed),
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=1,
            )
        )
        with _beside(lambda: server.run([listening])):
            try:
                address = f"http://127.0.0.1:{listening.getsockname()[1]}"
                yield Site(address=address, library=library)
            finally:
                server.should_exit = True


@contextmanager
def _beside(work: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    thread.join(PATIENCE)
    assert not thread.is_alive()


def aside(work: Callable[[], T]) -> T:
    """Do something in another thread: in that of the tests, Playwright's loop is running.

    Whatever calls `asyncio.run`, such as most commands, needs this in tests with a browser.
    """
    done: list[T] = []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    thread.join(PATIENCE)
    (result,) = done
    return result


# What every page is asked for -------------------------------------------------------------


def check_page(page: Page, name: str) -> None:
    """Fits a phone and a desk, is accessible in light and dark, and has its picture taken."""
    for width in (PHONE, DESKTOP):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        require_no_scroll(page)
        photograph(page, f"{name}-{width}")
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        require_accessible(page)
        if scheme == "dark":
            photograph(page, f"{name}-dark")


def require_no_scroll(page: Page) -> None:
    """Nothing reaches beyond the right edge."""
    beyond = page.evaluate(
        """() => {
          const wide = document.documentElement.clientWidth;
          const far = document.documentElement.scrollWidth;
          if (far <= wide) return [];
          return [`${far} of ${wide}`, ...[...document.querySelectorAll("body *")]
            .filter((each) => each.getBoundingClientRect().right > wide + 1)
            .map((each) => each.outerHTML.slice(0, 200))];
        }"""
    )
    assert beyond == [], f"{page.url} scrolls sideways at {page.viewport_size}"


def require_accessible(page: Page) -> None:
    """axe finds nothing serious."""
    found = Axe().run(page).response["violations"]
    grave = [
        f"{each['id']}: {each['help']}: {node['html'][:200]} {node['any'][:1]}"
        for each in found
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]
    assert grave == []


def photograph(page: Page, name: str, *, full_page: bool = True) -> None:
    """Save a picture of the page in the folder that `FONDS_SCREENSHOTS` names, if it is set."""
    folder = os.environ.get("FONDS_SCREENSHOTS")
    if folder:
        path = Path(folder, f"{_UNUSUAL.sub('-', name.lower()).strip('-')}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=path, full_page=full_page)

"""Rendering pages in a browser: with the lists that scripts build, isolated from the network.

    page ─ browser ─ scripts ─┬─ elements ─ page
               └── requests ─ fetch ─┘

The browser has no network. The requests of a page go through `fetch`, so that the guard, the
limits, robots.txt and the pace apply to them too. Interception alone is not enough: speculation
rules, WebRTC, WebSockets and shared workers bypass it. So the browser also has a proxy at an
address where no process listens, no DNS, and no UDP.

A rendered page is archived as the publisher served it, without the changes by scripts: only that
can be verified by others. A list that is built from other requests is therefore not in the archived
page.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from fonds.errors import (
    FetchError,
    UsageError,
)
from fonds.settings import Settings
from fonds.sites.browser_page import (
    CLOSE_SECONDS,
    Fetch,
    PageLimits,
    PageText,
    ResponseCache,
    StuckError,
    Tab,
    text_fields,
)
from fonds.sites.page_reading import UnparsedPage, typed

if TYPE_CHECKING:
    from playwright import async_api as api

T = TypeVar("T")

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
"""The supported browsers, in order of preference."""
MAX_TABS: Final = 4
"""Pages that are open at the same time."""

_INSTALL: Final = (
    "install one (Debian: apt-get install chromium), or set FONDS_BROWSER to the path of one"
)
_FLAGS: Final = (
    # Two flags about WebRTC: one for Chromium, one for older versions and Chrome.
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--block-new-web-contents",
    "--deny-permission-prompts",
    "--disable-3d-apis",
    "--disable-gpu",
    "--disable-notifications",
    "--disable-quic",
    "--disable-speech-api",
)


class Browser:
    """A Chromium without a profile, started on entering, that renders pages.

    Unless `is_guarded`, private addresses can be requested; pages then receive data from their own
    host only, so that no page can read the operator's network.
    """

    def __init__(
        self, program: str = "", *, is_guarded: bool = True, limits: PageLimits | None = None
    ) -> None:
        self._program = program
        self._is_guarded = is_guarded
        self._limits = limits or PageLimits()
        self._cache = ResponseCache()
        self._tabs = asyncio.Semaphore(MAX_TABS)
        self._starting = asyncio.Lock()
        self._launcher: _Launcher | None = None
        self._running: _Running | None = None

    async def __aenter__(self) -> Self:
        program = find_program(self._program)
        self._stack = AsyncExitStack()
        try:
            folder = self._stack.enter_context(TemporaryDirectory(prefix="fonds-browser-"))
            closed = self._stack.enter_context(socket.socket())
            closed.bind(("127.0.0.1", 0))  # without listening: connections are refused
            proxy = closed.getsockname()[1]
            self._launcher = _Launcher(program, Path(folder), proxy, self._limits.memory_mib)
            self._stack.push_async_callback(self._end)
            self._running = await self._launcher.launch()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def render(self, page: UnparsedPage, *, fetch: Fetch) -> UnparsedPage:
        """The page after its scripts have finished; FetchError if they do not."""
        text = typed(PageText, await page.read(text_fields))
        async with self._tabs:
            for _ in range(2):
                running = await self._started()
                tab = Tab(text, fetch, self._limits, self._cache, self._is_guarded, running.error)
                try:
                    return replace(page, source=await tab.run(running.chromium))
                except running.error as error:
                    if await running.is_alive():
                        raise FetchError(
                            f"{page.url} cannot be rendered: {_brief(error)}"
                        ) from error
                    await self._end(running)
                except StuckError as error:
                    await self._end(running)
                    raise FetchError(str(error)) from error
        raise FetchError(f"{page.url} cannot be rendered: the browser crashed on it twice")

    async def _started(self) -> _Running:
        """The browser, started again if it has died."""
        assert self._launcher is not None, "the browser is not entered"
        async with self._starting:
            if self._running is None:
                try:
                    self._running = await self._launcher.launch()
                except UsageError as error:  # it started before
                    raise FetchError(f"the browser died, and {error}") from error
            return self._running

    async def _end(self, process: _Running | None = None) -> None:
        if self._running is not None and process in {None, self._running}:
            running, self._running = self._running, None
            await running.close()


@asynccontextmanager
async def open_browser(
    settings: Settings, *, enabled: bool = True
) -> AsyncIterator[Browser | None]:
    """The browser that renders pages; None if it is not enabled."""
    if not enabled:
        yield None
        return
    async with Browser(settings.browser, is_guarded=not settings.allow_private) as browser:
        yield browser


def find_program(configured: str) -> str:
    """The browser to start: the configured one, else the first that is installed."""
    for name in [configured] if configured else PROGRAMS:
        if path := shutil.which(name):
            return path
    if configured:
        raise UsageError(f"there is no browser at {configured}: {_INSTALL}")
    raise UsageError(f"pages are rendered by Chromium, and there is none: {_INSTALL}")


# The browser's processes ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Running:
    driver: api.Playwright
    chromium: api.Browser
    error: type[Exception]

    async def is_alive(self) -> bool:
        # If playwright's own process has died, the browser still seems to be connected.
        try:
            context = await asyncio.wait_for(self.chromium.new_context(), CLOSE_SECONDS)
            await asyncio.wait_for(context.close(), CLOSE_SECONDS)
        except (self.error, TimeoutError):
            return False
        return True

    async def close(self) -> None:
        # It may be dead already, which raises various errors.
        for close in (self.chromium.close, self.driver.stop):
            with suppress(Exception):
                await asyncio.wait_for(close(), CLOSE_SECONDS)


@dataclass(frozen=True)
class _Launcher:
    program: str
    folder: Path
    proxy: int
    memory_mib: int

    async def launch(self) -> _Running:
        library = _playwright()
        driver = await library.async_playwright().start()
        try:
            chromium = await driver.chromium.launch(
                executable_path=self._limited(),
                headless=True,
                # Chromium has no sandbox for root, and does not start with it.
                chromium_sandbox=os.geteuid() != 0,
                args=[f"--proxy-server=http://127.0.0.1:{self.proxy}", *_FLAGS],
                ignore_default_args=["--disable-popup-blocking"],
                # None of our environment, which contains keys, and no folders of the user.
                env={"HOME": str(self.folder), "TMPDIR": str(self.folder), "PATH": os.defpath},
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except BaseException as error:
            await driver.stop()
            if isinstance(error, library.Error):
                raise UsageError(f"{self.program} does not start: {_brief(error)}") from error
            raise
        return _Running(driver, chromium, library.Error)

    def _limited(self) -> Path:
        """A script that starts the browser with a memory limit, for which it has no flag."""
        script = self.folder / "browser"
        script.write_text(
            f"#!/bin/sh\nulimit -d {self.memory_mib * 1024}\nulimit -c 0\n"
            f'exec {shlex.quote(self.program)} "$@"\n'
        )
        script.chmod(0o700)
        return script


def _playwright() -> Any:
    try:
        from playwright import async_api  # noqa: PLC0415 — an optional dependency
    except ImportError:
        raise UsageError("rendering pages needs playwright: pip install 'fonds[browser]'") from None
    return async_api


def _brief(error: Exception) -> str:
    """The message of the browser in that of playwright; else playwright's first line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    messages = [line.partition("[err]")[2].strip() for line in lines if "[err]" in line]
    return next(filter(None, messages), lines[0])

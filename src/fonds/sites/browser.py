"""Pages as a browser shows them: with the lists that scripts build, and no way out for scripts.

    page ─ browser ─ scripts ─┬─ elements ─ page
               └── requests ── ask ──┘

The browser reaches nothing by itself. What a page requests is had by `ask`, so that the guard, the
caps, robots.txt and the pace hold for it too. Interception alone would not do: speculation rules,
WebRTC, WebSockets and shared workers pass it by. So the browser is also given a proxy that nobody
answers at, no names, and no UDP.

What is archived of a rendered page is the publisher's own answer, never what scripts made of it:
only the former can be checked by others. A list that is built from other requests does therefore
not stand in the archived page; its address says where it can be seen.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from fonds.errors import (
    FetchError,
    UsageError,
)
from fonds.settings import Settings
from fonds.sites.browser_page import FAREWELL, Ask, Bounds, Memory, Showing, StuckError
from fonds.sites.pages.page import WebPage

if TYPE_CHECKING:
    from playwright import async_api as api

T = TypeVar("T")

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
"""Names of browsers that can be used, best first."""
AT_ONCE: Final = 4
"""Pages that are open side by side."""

_INSTALL: Final = (
    "install one (Debian: apt-get install chromium), or set FONDS_BROWSER to the path of one"
)
_FLAGS: Final = (
    # Chromium heeds one of the two about WebRTC, older ones and Chrome the other.
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
    """A Chromium without a profile, started on entering, in which pages are rendered one by one.

    Unless `is_guarded`, private addresses can be asked for; pages then read data from their own
    host alone, so that none can tell strangers what it finds behind the operator's door.
    """

    def __init__(
        self, program: str = "", *, is_guarded: bool = True, bounds: Bounds | None = None
    ) -> None:
        self._program = program
        self._is_guarded = is_guarded
        self._bounds = bounds or Bounds()
        self._memory = Memory()
        self._tabs = asyncio.Semaphore(AT_ONCE)
        self._starting = asyncio.Lock()
        self._launcher: _Launcher | None = None
        self._running: _Running | None = None

    async def __aenter__(self) -> Self:
        program = find_program(self._program)
        self._stack = AsyncExitStack()
        try:
            folder = self._stack.enter_context(TemporaryDirectory(prefix="fonds-browser-"))
            nowhere = self._stack.enter_context(socket.socket())
            nowhere.bind(("127.0.0.1", 0))  # and never listened on: whoever connects is refused
            proxy = nowhere.getsockname()[1]
            self._launcher = _Launcher(program, Path(folder), proxy, self._bounds.memory_mib)
            self._stack.push_async_callback(self._end)
            self._running = await self._launcher.launch()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def render(self, page: WebPage, *, ask: Ask) -> WebPage:
        """The page as it is after its scripts have come to rest; FetchError if they do not."""
        async with self._tabs:
            for _ in range(2):
                running = await self._started()
                showing = Showing(
                    page, ask, self._bounds, self._memory, self._is_guarded, running.broken
                )
                try:
                    return await showing.run(running.chromium)
                except running.broken as error:
                    if await running.answers():
                        raise FetchError(
                            f"{page.url} cannot be rendered: {_brief(error)}"
                        ) from error
                    await self._end(running)
                except StuckError as error:
                    await self._end(running)
                    raise FetchError(str(error)) from error
        raise FetchError(
            f"{page.url} cannot be rendered: the browser came to an end over it, twice"
        )

    async def _started(self) -> _Running:
        """The browser; another one where it has died."""
        assert self._launcher is not None, "a browser is entered before pages are rendered"
        async with self._starting:
            if self._running is None:
                try:
                    self._running = await self._launcher.launch()
                except UsageError as error:  # it did start before
                    raise FetchError(f"after the browser died, {error}") from error
            return self._running

    async def _end(self, one: _Running | None = None) -> None:
        if self._running is not None and one in {None, self._running}:
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


def find_program(named: str) -> str:
    """The browser to start: the one that is named, else the first that is installed."""
    for name in [named] if named else PROGRAMS:
        if found := shutil.which(name):
            return found
    if named:
        raise UsageError(f"there is no browser at {named}: {_INSTALL}")
    raise UsageError(f"pages are rendered by Chromium, and there is none: {_INSTALL}")


# The browser's processes ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Running:
    driver: api.Playwright
    chromium: api.Browser
    broken: type[Exception]

    async def answers(self) -> bool:
        # Where playwright's own process has died, it still takes the browser to be connected.
        try:
            context = await asyncio.wait_for(self.chromium.new_context(), FAREWELL)
            await asyncio.wait_for(context.close(), FAREWELL)
        except (self.broken, TimeoutError):
            return False
        return True

    async def close(self) -> None:
        # It may be dead already, and be told so in as many ways as it can die.
        for ending in (self.chromium.close, self.driver.stop):
            with suppress(Exception):
                await asyncio.wait_for(ending(), FAREWELL)


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
                # Chromium has no sandbox for root, and does not start if told to have one.
                chromium_sandbox=os.geteuid() != 0,
                args=[f"--proxy-server=http://127.0.0.1:{self.proxy}", *_FLAGS],
                ignore_default_args=["--disable-popup-blocking"],
                # None of our variables, of which some are keys, and none of the user's folders.
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
        """A program that starts the browser with a limit of memory, which no flag of it sets."""
        script = self.folder / "browser"
        script.write_text(
            f"#!/bin/sh\nulimit -d {self.memory_mib * 1024}\nulimit -c 0\n"
            f'exec {shlex.quote(self.program)} "$@"\n'
        )
        script.chmod(0o700)
        return script


def _playwright() -> Any:
    try:
        from playwright import async_api  # noqa: PLC0415 — an extra, for who renders pages
    except ImportError:
        raise UsageError("rendering pages needs playwright: pip install 'fonds[browser]'") from None
    return async_api


def _brief(error: Exception) -> str:
    """What the browser said, of all that playwright tells; else playwright's first line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    said = [line.partition("[err]")[2].strip() for line in lines if "[err]" in line]
    return next(filter(None, said), lines[0])

"""One page in a tab of its own: what it is given, when it is whole, and what it then looks like."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from fonds.errors import (
    BadRedirectError,
    FetchError,
    FetchTimeoutError,
    ForbiddenAddressError,
    NotFoundError,
    RefusedError,
    RobotsForbiddenError,
    TooLargeError,
)
from fonds.fetch.client import Download
from fonds.sites.pages.page import WebPage, read_page
from fonds.sites.pages.urls import canonical

if TYPE_CHECKING:
    from playwright import async_api as api

T = TypeVar("T")

Ask = Callable[[str], Awaitable[Download]]
"""Fetches an address for a page, or raises; robots.txt and pace are its business."""

KEPT: Final = 32 << 20
"""Bytes of answers that are remembered: the scripts of a website are the same on all its pages."""
FAREWELL: Final = 5.0
"""Seconds in which something has to close."""

_DATA: Final = frozenset({"xhr", "fetch"})
_WANTED: Final = _DATA | {"script"}
_HARMLESS: Final = (RefusedError, RobotsForbiddenError, ForbiddenAddressError, BadRedirectError)
"""A page without these is as complete as anybody can have it here."""
_GLANCE: Final = 0.1
# Evaluated in a world of its own, where scripts of the page have replaced nothing.
_SIZE: Final = "document.readyState === 'complete' ? document.getElementsByTagName('*').length : -1"
_TAKEN: Final = """(() => {
  const html = document.documentElement ? document.documentElement.outerHTML : "";
  return {address: location.href, html: html.length > %d ? null : html};
})()"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """What one page may take."""

    requests: int = 50
    seconds: float = 20.0
    """For itself, the time not counted in which others are waited for."""
    longest: float = 300.0
    """Seconds in all."""
    quiet: float = 1.0
    """Seconds without a request and a new element after which a page is taken to be whole."""
    largest: int = 16 << 20
    """Bytes of all that it is given, and characters of what it makes of that."""
    memory_mib: int = 1024
    """Of each process of the browser."""


class StuckError(Exception):
    """A page that cannot even be closed."""


class _BrowserResponse(NamedTuple):
    body: bytes
    media_type: str
    status: int = 200


_MISSING: Final = _BrowserResponse(b"", "text/plain", 404)


class Memory:
    """What was answered before, as far as it is small; what was not used for longest goes first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, _BrowserResponse] = OrderedDict()
        self._size = 0
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def turn(self, url: str) -> asyncio.Lock:
        """Held by who asks for an address, so that others find the answer after it."""
        return self._turns.setdefault(url, asyncio.Lock())

    def get(self, url: str) -> _BrowserResponse | None:
        """What was answered at an address."""
        if url in self._answers:
            self._answers.move_to_end(url)
        return self._answers.get(url)

    def keep(self, url: str, answer: _BrowserResponse) -> None:
        """Remember an answer."""
        if url not in self._answers:
            self._answers[url] = answer
            self._size += len(answer.body)
        while self._size > KEPT:
            _, gone = self._answers.popitem(last=False)
            self._size -= len(gone.body)


@dataclass
class Showing:
    """One page in a tab of its own, from its opening to its end."""

    page: WebPage
    ask: Ask
    bounds: Bounds
    memory: Memory
    is_guarded: bool
    gone: type[Exception]
    """What playwright raises where there is no page any more."""
    _asking: set[asyncio.Task[_BrowserResponse | None]] = field(default_factory=set)
    _asked: int = 0
    _given: int = 0
    _is_open: bool = False
    _trouble: BaseException | None = None
    _context: Context = field(default_factory=copy_context)
    """Of who wants the page, to whom requests are charged."""

    async def run(self, chromium: api.Browser) -> WebPage:
        """The page as its scripts have made it."""
        context = await chromium.new_context(
            accept_downloads=False, service_workers="block", java_script_enabled=True
        )
        try:
            await context.route("**/*", self._respond)
            return await self._until_crash(context, await context.new_page())
        finally:
            for task in self._asking:
                task.cancel()
            await self._leave(context)

    async def _leave(self, context: api.BrowserContext) -> None:
        try:
            await asyncio.wait_for(context.close(), FAREWELL)
        except TimeoutError:
            raise StuckError(f"{self.page.url} cannot be closed") from None

    async def _until_crash(self, context: api.BrowserContext, tab: api.Page) -> WebPage:
        crash: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tab.once("crash", lambda _tab: None if crash.done() else crash.set_result(None))
        work = asyncio.ensure_future(self._shown(context, tab))
        either: set[asyncio.Future[Any]] = {work, crash}
        try:
            await asyncio.wait(
                either, timeout=self.bounds.longest, return_when=asyncio.FIRST_COMPLETED
            )
            if crash.done():
                raise FetchError(f"{self.page.url} crashed in the browser; it may want much memory")
            if not work.done():
                raise self._endless()
            return work.result()
        finally:
            crash.cancel()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _shown(self, context: api.BrowserContext, tab: api.Page) -> WebPage:
        world = await self._in_time(self._opened(context, tab))
        await self._settle(world)
        if self._trouble is not None:
            raise self._trouble
        taken = await self._in_time(world.evaluate(_TAKEN % self.bounds.largest))
        if taken["html"] is None:
            raise TooLargeError(f"{self.page.url} grows beyond measure in the browser")
        return await asyncio.to_thread(self._reread, taken["html"], taken["address"])

    def _reread(self, html: str, address: str) -> WebPage:
        data = html.encode("utf-8", errors="replace")
        url = canonical(address) or self.page.url
        page = read_page(data, url, "text/html; charset=utf-8")
        # Queries of its links are written in the encoding of the page that was fetched.
        return replace(page, encoding=self.page.encoding)

    async def _settle(self, world: _World) -> None:
        """Wait until nothing is asked for and nothing grows, or the page has had its time."""
        clock = asyncio.get_running_loop().time
        left, quiet, before = self.bounds.seconds, 0.0, (0, 0)
        while left > 0 and quiet < self.bounds.quiet and self._trouble is None:
            begun = clock()
            await asyncio.sleep(_GLANCE)
            state = await self._in_time(world.evaluate(_SIZE)), self._asked
            passed = clock() - begun
            if self._asking:
                quiet = 0.0
            else:
                left -= passed
                quiet = quiet + passed if state == before and state[0] >= 0 else 0.0
            before = state

    async def _opened(self, context: api.BrowserContext, tab: api.Page) -> _World:
        await tab.goto(self.page.url, wait_until="commit")
        return await _World.beside(await context.new_cdp_session(tab))

    async def _in_time(self, work: Awaitable[T]) -> T:
        """What a page says, which a script that goes on and on keeps it from."""
        try:
            return await asyncio.wait_for(work, self.bounds.seconds)
        except TimeoutError:
            raise self._endless() from None

    def _endless(self) -> FetchError:
        return FetchTimeoutError(f"{self.page.url}: its scripts come to no end in the browser")

    # What it requests

    async def _respond(self, route: api.Route) -> None:
        request = route.request
        task = asyncio.create_task(self._found(request), context=self._context)
        self._asking.add(task)
        try:
            await asyncio.wait({task})
            await self._reply(route, self._outcome(task))
        except self.gone:
            await route.fallback()  # which playwright waits for, though nobody is there any more
        finally:
            task.cancel()
            self._asking.discard(task)

    def _outcome(self, task: asyncio.Task[_BrowserResponse | None]) -> _BrowserResponse | None:
        if task.cancelled():
            return None
        if error := task.exception():
            self._trouble = self._trouble or error
            return None
        return task.result()

    async def _reply(self, route: api.Route, answer: _BrowserResponse | None) -> None:
        if answer is None:
            # Any other code would put a page of the browser's own in the place of this one.
            await route.abort("aborted")
            return
        headers = {
            "content-type": answer.media_type,
            # The browser has no cookies and no keys: what it can have, anybody can.
            "access-control-allow-origin": route.request.headers.get("origin", "*"),
            "access-control-allow-credentials": "true",
        }
        await route.fulfill(status=answer.status, headers=headers, body=answer.body)

    async def _found(self, request: api.Request) -> _BrowserResponse | None:
        """What answers a request; None: nothing may."""
        if request.is_navigation_request():
            return self._document()
        if not self._may(request):
            return None
        self._asked += 1
        async with self.memory.turn(request.url):
            return self.memory.get(request.url) or await self._fetched(request)

    async def _fetched(self, request: api.Request) -> _BrowserResponse | None:
        try:
            answer = _answer(await self.ask(request.url), self.bounds.largest - self._given)
        except NotFoundError:
            return _MISSING
        except FetchError as error:
            if self._matters(request, error):
                raise
            return None
        self._given += len(answer.body)
        self.memory.keep(request.url, answer)
        return answer

    def _document(self) -> _BrowserResponse | None:
        """The page, once; frames, windows and what it would rather be are visited by the crawl."""
        if self._is_open:
            return None
        self._is_open = True
        return _BrowserResponse(self.page.text.encode(), "text/html; charset=utf-8")

    def _may(self, request: api.Request) -> bool:
        return (
            request.method == "GET"
            and request.resource_type in _WANTED
            and request.url.startswith(("http://", "https://"))
            and self._asked < self.bounds.requests
            and (self.is_guarded or request.resource_type not in _DATA or self._is_home(request))
        )

    def _is_home(self, request: api.Request) -> bool:
        return urlsplit(request.url).netloc == urlsplit(self.page.url).netloc

    def _matters(self, request: api.Request, error: FetchError) -> bool:
        """Whether a page that did not get this may list less than it should."""
        if isinstance(error, _HARMLESS) or isinstance(error.__cause__, _HARMLESS):
            return False
        return request.resource_type in _DATA or self._is_home(request)


def _answer(download: Download, room: int) -> _BrowserResponse:
    try:
        if download.size > room:
            raise TooLargeError(f"{download.url} is too much for the page that asks for it")
        return _BrowserResponse(download.read(), download.media_type or "")
    finally:
        download.discard()


@dataclass(frozen=True)
class _World:
    """Where expressions see a page's elements, and nothing that its scripts have made."""

    session: api.CDPSession
    context: int

    @classmethod
    async def beside(cls, session: api.CDPSession) -> Self:
        tree = await session.send("Page.getFrameTree")
        frame = tree["frameTree"]["frame"]["id"]
        made = await session.send("Page.createIsolatedWorld", {"frameId": frame})
        return cls(session, made["executionContextId"])

    async def evaluate(self, expression: str) -> Any:
        asked = {"expression": expression, "contextId": self.context, "returnByValue": True}
        answer = await self.session.send("Runtime.evaluate", asked)
        if "exceptionDetails" in answer:
            raise FetchError("the page cannot be read from the browser")
        return answer["result"]["value"]

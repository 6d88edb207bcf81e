"""One page in a tab of its own: the responses to its requests, its end, and its final elements."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
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
from fonds.sites.page_reading import PageBytes
from fonds.sites.pages.page import WebPage
from fonds.sites.pages.urls import canonical

if TYPE_CHECKING:
    from playwright import async_api as api

T = TypeVar("T")

Fetch = Callable[[str], Awaitable[Download]]
"""Fetches an address for a page, or raises; it observes robots.txt and the pace."""

CACHE_SIZE: Final = 32 << 20
"""Bytes of cached responses: the scripts of a website are the same on all its pages."""
CLOSE_SECONDS: Final = 5.0
"""Seconds after which closing is aborted."""

_DATA: Final = frozenset({"xhr", "fetch"})
_ALLOWED: Final = _DATA | {"script"}
_HARMLESS: Final = (RefusedError, RobotsForbiddenError, ForbiddenAddressError, BadRedirectError)
"""Errors after which a page is as complete as it can be."""
_POLL_SECONDS: Final = 0.1
# Evaluated in an isolated world, in which scripts of the page have replaced nothing.
_SIZE: Final = "document.readyState === 'complete' ? document.getElementsByTagName('*').length : -1"
_SNAPSHOT: Final = """(() => {
  const html = document.documentElement ? document.documentElement.outerHTML : "";
  return {address: location.href, html: html.length > %d ? null : html};
})()"""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageLimits:
    """The limits of one page."""

    requests: int = 50
    seconds: float = 20.0
    """Without the time in which requests are in progress."""
    total_seconds: float = 300.0
    """With all requests."""
    quiet: float = 1.0
    """Seconds without a request or a new element after which a page is complete."""
    max_size: int = 16 << 20
    """Bytes of all responses, and characters of the final page."""
    memory_mib: int = 1024
    """Of each process of the browser."""


@dataclass(frozen=True, slots=True)
class PageText:
    """The markup of a page, for the browser."""

    url: str
    text: str
    encoding: str
    """As the page was served."""


def text_fields(page: WebPage) -> dict[str, str]:
    """For a reader process: the fields of the text of a page."""
    return {"url": page.url, "text": page.text, "encoding": page.encoding}


class StuckError(Exception):
    """A page that cannot be closed."""


class _BrowserResponse(NamedTuple):
    content: bytes
    media_type: str
    status: int = 200


_MISSING: Final = _BrowserResponse(b"", "text/plain", 404)


class ResponseCache:
    """Earlier responses; the least recently used ones are dropped first."""

    def __init__(self) -> None:
        self._responses: OrderedDict[str, _BrowserResponse] = OrderedDict()
        self._size = 0
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, url: str) -> asyncio.Lock:
        """The lock of an address: later requests wait for it, and then use the cached response."""
        return self._locks.setdefault(url, asyncio.Lock())

    def get(self, url: str) -> _BrowserResponse | None:
        """The cached response of an address."""
        if url in self._responses:
            self._responses.move_to_end(url)
        return self._responses.get(url)

    def store(self, url: str, response: _BrowserResponse) -> None:
        """Cache a response."""
        if url not in self._responses:
            self._responses[url] = response
            self._size += len(response.content)
        while self._size > CACHE_SIZE:
            _, dropped = self._responses.popitem(last=False)
            self._size -= len(dropped.content)


@dataclass
class Tab:
    """One page in a tab of its own, from opening to closing."""

    page: PageText
    fetch: Fetch
    limits: PageLimits
    cache: ResponseCache
    is_guarded: bool
    error: type[Exception]
    """The error that playwright raises if the page no longer exists."""
    _requests: set[asyncio.Task[_BrowserResponse | None]] = field(default_factory=set)
    _request_count: int = 0
    _response_size: int = 0
    _is_open: bool = False
    _failure: BaseException | None = None
    _context: Context = field(default_factory=copy_context)
    """Of the caller, whose budget the requests use."""

    async def run(self, chromium: api.Browser) -> PageBytes:
        """The page after its scripts have finished."""
        context = await chromium.new_context(
            accept_downloads=False, service_workers="block", java_script_enabled=True
        )
        try:
            await context.route("**/*", self._respond)
            return await self._until_crash(context, await context.new_page())
        finally:
            for task in self._requests:
                task.cancel()
            await self._close(context)

    async def _close(self, context: api.BrowserContext) -> None:
        try:
            await asyncio.wait_for(context.close(), CLOSE_SECONDS)
        except TimeoutError:
            raise StuckError(f"{self.page.url} cannot be closed") from None

    async def _until_crash(self, context: api.BrowserContext, tab: api.Page) -> PageBytes:
        crash: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tab.once("crash", lambda _tab: None if crash.done() else crash.set_result(None))
        work = asyncio.ensure_future(self._rendered(context, tab))
        either: set[asyncio.Future[Any]] = {work, crash}
        try:
            await asyncio.wait(
                either, timeout=self.limits.total_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if crash.done():
                raise FetchError(f"{self.page.url} crashed in the browser; it may need much memory")
            if not work.done():
                raise self._endless()
            return work.result()
        finally:
            crash.cancel()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _rendered(self, context: api.BrowserContext, tab: api.Page) -> PageBytes:
        world = await self._in_time(self._opened(context, tab))
        await self._wait_until_complete(world)
        if self._failure is not None:
            raise self._failure
        snapshot = await self._in_time(world.evaluate(_SNAPSHOT % self.limits.max_size))
        if snapshot["html"] is None:
            raise TooLargeError(f"{self.page.url} becomes too large in the browser")
        return PageBytes(
            url=canonical(snapshot["address"]) or self.page.url,
            content=snapshot["html"].encode("utf-8", errors="replace"),
            media_type="text/html; charset=utf-8",
            query_encoding=self.page.encoding,
        )

    async def _wait_until_complete(self, world: _World) -> None:
        """Wait until there are no requests and no new elements, or the time is over."""
        clock = asyncio.get_running_loop().time
        remaining, quiet, before = self.limits.seconds, 0.0, (0, 0)
        while remaining > 0 and quiet < self.limits.quiet and self._failure is None:
            started = clock()
            await asyncio.sleep(_POLL_SECONDS)
            state = await self._in_time(world.evaluate(_SIZE)), self._request_count
            passed = clock() - started
            if self._requests:
                quiet = 0.0
            else:
                remaining -= passed
                quiet = quiet + passed if state == before and state[0] >= 0 else 0.0
            before = state

    async def _opened(self, context: api.BrowserContext, tab: api.Page) -> _World:
        await tab.goto(self.page.url, wait_until="commit")
        return await _World.create(await context.new_cdp_session(tab))

    async def _in_time(self, work: Awaitable[T]) -> T:
        """The result of a page, unless an endless script prevents it."""
        try:
            return await asyncio.wait_for(work, self.limits.seconds)
        except TimeoutError:
            raise self._endless() from None

    def _endless(self) -> FetchError:
        return FetchTimeoutError(f"{self.page.url}: its scripts do not finish in the browser")

    # Requests

    async def _respond(self, route: api.Route) -> None:
        request = route.request
        task = asyncio.create_task(self._response(request), context=self._context)
        self._requests.add(task)
        try:
            await asyncio.wait({task})
            await self._reply(route, self._outcome(task))
        except self.error:
            await route.fallback()  # playwright waits for it, also without a page
        finally:
            task.cancel()
            self._requests.discard(task)

    def _outcome(self, task: asyncio.Task[_BrowserResponse | None]) -> _BrowserResponse | None:
        if task.cancelled():
            return None
        if error := task.exception():
            self._failure = self._failure or error
            return None
        return task.result()

    async def _reply(self, route: api.Route, response: _BrowserResponse | None) -> None:
        if response is None:
            # Any other code would replace this page by an error page of the browser.
            await route.abort("aborted")
            return
        headers = {
            "content-type": response.media_type,
            # The browser has no cookies and no keys: all that it can fetch is public.
            "access-control-allow-origin": route.request.headers.get("origin", "*"),
            "access-control-allow-credentials": "true",
        }
        await route.fulfill(status=response.status, headers=headers, body=response.content)

    async def _response(self, request: api.Request) -> _BrowserResponse | None:
        """The response to a request; None if it is not allowed."""
        if request.is_navigation_request():
            return self._document()
        if not self._is_allowed(request):
            return None
        self._request_count += 1
        async with self.cache.lock(request.url):
            return self.cache.get(request.url) or await self._fetched(request)

    async def _fetched(self, request: api.Request) -> _BrowserResponse | None:
        try:
            download = await self.fetch(request.url)
            response = _browser_response(download, self.limits.max_size - self._response_size)
        except NotFoundError:
            return _MISSING
        except FetchError as error:
            if self._matters(request, error):
                raise
            return None
        self._response_size += len(response.content)
        self.cache.store(request.url, response)
        return response

    def _document(self) -> _BrowserResponse | None:
        """The page, once; frames, windows and redirections are visited by the crawl."""
        if self._is_open:
            return None
        self._is_open = True
        return _BrowserResponse(self.page.text.encode(), "text/html; charset=utf-8")

    def _is_allowed(self, request: api.Request) -> bool:
        return (
            request.method == "GET"
            and request.resource_type in _ALLOWED
            and request.url.startswith(("http://", "https://"))
            and self._request_count < self.limits.requests
            and (self.is_guarded or request.resource_type not in _DATA or self._is_home(request))
        )

    def _is_home(self, request: api.Request) -> bool:
        return urlsplit(request.url).netloc == urlsplit(self.page.url).netloc

    def _matters(self, request: api.Request, error: FetchError) -> bool:
        """Whether a page without the response to this request may list too little."""
        if isinstance(error, _HARMLESS) or isinstance(error.__cause__, _HARMLESS):
            return False
        return request.resource_type in _DATA or self._is_home(request)


def _browser_response(download: Download, limit: int) -> _BrowserResponse:
    try:
        if download.size > limit:
            raise TooLargeError(f"{download.url} is too large for the page that requests it")
        return _BrowserResponse(download.read(), download.media_type or "")
    finally:
        download.discard()


@dataclass(frozen=True)
class _World:
    """An isolated world: expressions access a page's elements, and no objects of its scripts."""

    session: api.CDPSession
    context: int

    @classmethod
    async def create(cls, session: api.CDPSession) -> Self:
        tree = await session.send("Page.getFrameTree")
        frame = tree["frameTree"]["frame"]["id"]
        world = await session.send("Page.createIsolatedWorld", {"frameId": frame})
        return cls(session, world["executionContextId"])

    async def evaluate(self, expression: str) -> Any:
        params = {"expression": expression, "contextId": self.context, "returnByValue": True}
        response = await self.session.send("Runtime.evaluate", params)
        if "exceptionDetails" in response:
            raise FetchError("the page cannot be read from the browser")
        return response["result"]["value"]

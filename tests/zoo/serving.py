"""Serving sites of the zoo on loopback ports, from one thread."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, cast

from tests.support.upstreams.loopback import open_port
from tests.zoo.site import ELSEWHERE, HOME, Answer, Ask, ZooSite

_PAUSE: Final = 0.002
"""Seconds between two pieces of a body that drips."""
_GZIP: Final = b"\x1f\x8b"


class Seen(NamedTuple):
    """A request as the server had it, and the status it gave."""

    time: float
    """By the monotonic clock."""
    site: str
    path: str
    """With its query, as it came."""
    headers: Mapping[str, str]
    status: int


class Zoo:
    """Sites that are being served, and what was asked of them."""

    def __init__(self, sites: Sequence[ZooSite]) -> None:
        self.sites = tuple(sites)
        self.requests: list[Seen] = []
        self.crashes: list[str] = []
        self._bases: dict[str, str] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._numbers: Counter[str] = Counter()

    def base(self, site: ZooSite | str) -> str:
        """The address of a site's root, without a slash at its end."""
        return self._bases[site if isinstance(site, str) else site.id]

    def start(self, site: ZooSite) -> str:
        """The address at which a crawl of a site begins."""
        return self.base(site) + site.start

    def configuration(self) -> dict[str, Any]:
        """What a crawl of all sites is told, as its file has it."""
        told = [{"id": s.id, "name": s.name, "base_url": self.start(s)} for s in self.sites]
        return {"version": "1.0", "websites": told}

    def asked(self, site: ZooSite | str) -> list[Seen]:
        """The requests of one site, in order."""
        wanted = site if isinstance(site, str) else site.id
        return [seen for seen in list(self.requests) if seen.site == wanted]

    def reset(self) -> None:
        """Forget all requests; what fails only once will fail again."""
        self.requests.clear()
        self._counts.clear()
        self._numbers.clear()

    def answer(self, site: ZooSite, target: str, headers: Mapping[str, str]) -> Answer:
        """The response of a site; the request is written down."""
        self._counts[site.id, target] += 1
        self._numbers[site.id] += 1
        ask = Ask(
            target=target,
            headers=headers,
            count=self._counts[site.id, target],
            number=self._numbers[site.id],
        )
        answer = self._addressed(site, _unless_known(ask, site.answer(ask)))
        self.requests.append(Seen(time.monotonic(), site.id, target, headers, answer.status))
        return answer

    def _addressed(self, site: ZooSite, answer: Answer) -> Answer:
        """The response with real addresses where the site wrote its own or its file server's."""
        if answer.media == "application/pdf":
            return answer
        standing = [(HOME, self._bases[site.id])]
        if site.files:
            standing.append((ELSEWHERE, self._bases[site.files.id]))
        body, headers = answer.body, dict(answer.headers)
        zipped = body.startswith(_GZIP)
        body = gzip.decompress(body) if zipped else body
        for name, address in standing:
            body = body.replace(name.encode(), address.encode())
            headers = {key: value.replace(name, address) for key, value in headers.items()}
        body = gzip.compress(body, mtime=0) if zipped else body
        if body == answer.body and headers == answer.headers:
            return answer
        return replace(answer, body=body, headers=headers)

    async def run(self, ready: Callable[[], None], stop: asyncio.Event, port: int = 0) -> None:
        """Serve until told to stop; `ready` is called when all ports are open."""
        async with AsyncExitStack() as ports:
            for site in _with_files(self.sites):
                opened = await ports.enter_async_context(open_port(partial(self._talk, site), port))
                self._bases[site.id] = f"http://127.0.0.1:{opened}"
            ready()
            await stop.wait()

    async def _talk(self, site: ZooSite, client: socket.socket) -> None:
        connection = Connection(self, site)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_accepted_socket(lambda: connection, client)
        try:
            await connection.ended.wait()
        finally:
            transport.abort()
            await connection.stop_dripping()


class Connection(asyncio.Protocol):
    """One client of one site: requests are answered in the order in which they come."""

    def __init__(self, zoo: Zoo, site: ZooSite) -> None:
        self.ended = asyncio.Event()
        self._zoo, self._site = zoo, site
        self._buffer = b""
        self._dripping: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 — asyncio's name
        self.ended.set()

    async def stop_dripping(self) -> None:
        """Send no more of a body that comes in pieces."""
        if self._dripping:
            self._dripping.cancel()
            await asyncio.wait([self._dripping])

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._converse()

    def _converse(self) -> None:
        while not self._dripping:
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            self._buffer = rest
            try:
                self._respond(head)
            except Exception:  # noqa: BLE001 — a site's own function may raise anything; told at the end
                self._zoo.crashes.append(traceback.format_exc())
                self._transport.abort()
                return

    def _respond(self, head: bytes) -> None:
        line, *rest = head.decode("latin-1").split("\r\n")
        method, target, _ = line.split(" ", 2)
        pairs = (entry.partition(":") for entry in rest)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        answer = self._zoo.answer(self._site, target, headers)
        if method == "HEAD":
            self._transport.write(answer.head)
        elif answer.drip:
            self._dripping = asyncio.get_running_loop().create_task(self._drip(answer))
        else:
            self._transport.write(answer.wire)

    async def _drip(self, answer: Answer) -> None:
        self._transport.write(answer.head)
        for start in range(0, len(answer.body), answer.drip):
            self._transport.write(answer.body[start : start + answer.drip])
            await asyncio.sleep(_PAUSE)
        self._dripping = None
        self._converse()


@contextmanager
def serve(sites: Sequence[ZooSite]) -> Iterator[Zoo]:
    """Each site on a port of its own, until the block ends."""
    zoo = Zoo(sites)
    ready, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(zoo.run(ready.set, stop)), name="zoo", daemon=True
    )
    thread.start()
    if not ready.wait(10):
        raise RuntimeError("the zoo did not open")
    try:
        yield zoo
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
    if zoo.crashes:
        raise AssertionError("a site crashed:\n" + "\n".join(zoo.crashes))


def _with_files(sites: Sequence[ZooSite]) -> list[ZooSite]:
    return [each for site in sites for each in (site, site.files) if each]


def _unless_known(ask: Ask, answer: Answer) -> Answer:
    """304 where the client has these bytes."""
    etag, modified = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
    known, since = ask.headers.get("if-none-match"), ask.headers.get("if-modified-since")
    same = known == etag if known else since is not None and since == modified
    if answer.status != 200 or not etag or not same:
        return answer
    return Answer(status=304, media=None, headers=answer.headers)

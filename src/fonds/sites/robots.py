"""The rules of a host's robots.txt: which addresses may be requested, and how often."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from protego import Protego

from fonds.errors import (
    FetchError,
    NotFoundError,
    RefusedError,
    RobotsForbiddenError,
    TooLargeError,
)
from fonds.fetch.client import Fetcher
from fonds.fetch.rates import Pace

MARGIN: Final = 1.02
"""Pauses are longer by this: requests take their time to arrive, some less than others."""
PACE: Final = Pace(per_second=2.0 / MARGIN, include_loopback=True)
"""Unless a host states another one: a little less than two requests a second."""
MAX_DELAY: Final = 60.0
"""Seconds between two requests; a longer delay that a host states is not observed."""
MAX_SIZE: Final = 512 * 1024
"""Bytes of the file that are read; the rest is ignored."""
MAX_DOWNLOAD: Final = 16 << 20
"""Bytes of the file that are received; a host that sends more is not asked."""
MAX_LINES: Final = 5_000
"""Each rule costs time when the file is read, and again for each address that is judged by it."""
CACHE_SIZE: Final = 256
FORBIDDEN: Final = "robots.txt forbids it"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one host."""

    parsed: Protego
    agent: str

    def allows(self, url: str) -> bool:
        """Whether an address may be requested."""
        try:
            return bool(self.parsed.can_fetch(url, self.agent))
        except ValueError:  # a malformed address
            return False

    def require(self, url: str) -> None:
        """Raise RobotsForbiddenError unless an address may be requested."""
        if not self.allows(url):
            raise RobotsForbiddenError(f"{url}: {FORBIDDEN}")

    @property
    def pace(self) -> Pace:
        """The rate that the host allows, at most our own."""
        delay = self.parsed.crawl_delay(self.agent) or 0.0
        rate = self.parsed.request_rate(self.agent)
        if rate is not None and rate.requests > 0:
            delay = max(delay, rate.seconds / rate.requests)
        slowed = max(1 / PACE.per_second, MARGIN * min(delay, MAX_DELAY))
        return Pace(per_second=1 / slowed, include_loopback=True)

    @property
    def sitemaps(self) -> list[str]:
        """The addresses of the host's sitemaps."""
        return list(self.parsed.sitemaps)


class Robots:
    """The rules of hosts, each fetched once in a crawl."""

    def __init__(self, fetcher: Fetcher, *, source: str, agent: str) -> None:
        self._fetcher = fetcher
        self._source = source
        self._agent = agent
        self._rules: OrderedDict[str, asyncio.Future[Rules]] = OrderedDict()

    async def rules(self, url: str) -> Rules:
        """The rules for an address; FetchError if its host does not respond."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._rules:
            self._rules[origin] = asyncio.ensure_future(self._fetch(f"{origin}/robots.txt"))
            if len(self._rules) > CACHE_SIZE:
                self._rules.popitem(last=False)
        self._rules.move_to_end(origin)
        rules = self._rules[origin]
        return rules.result() if rules.done() else await asyncio.shield(rules)

    async def permit(self, url: str) -> Pace:
        """The pace for an address; RobotsForbiddenError if it must not be requested."""
        rules = await self.rules(url)
        rules.require(url)
        return rules.pace

    async def _fetch(self, url: str) -> Rules:
        """Fetch a robots.txt; a host without one allows everything."""
        try:
            return read_rules(await self._download(url), self._agent)
        except (NotFoundError, RefusedError):
            return read_rules(b"", self._agent)
        except FetchError as error:
            raise FetchError(
                f"its robots.txt cannot be read, so nothing is requested: {error}"
            ) from error

    async def _download(self, url: str) -> bytes:
        download = await self._fetcher.download(
            url, source=self._source, pace=PACE, max_size=MAX_DOWNLOAD
        )
        assert download is not None, "an unconditional request never returns None"
        try:
            with download.file.open("rb") as file:
                return file.read(MAX_SIZE)
        finally:
            download.discard()


def read_rules(data: bytes, agent: str) -> Rules:
    """The rules of a robots.txt; a malformed line forbids nothing. TooLargeError for too many."""
    # Ignoring the rest of them could mean to request what a host forbids.
    if len(data.splitlines()) > MAX_LINES:
        raise TooLargeError(f"it has more than {MAX_LINES:,} lines")
    text = data.decode("utf-8-sig", errors="replace").replace("\0", "")
    return Rules(Protego.parse(text), agent)


def agent_of(user_agent: str) -> str:
    """The name by which a robots.txt refers to this program: `fonds`."""
    return user_agent.partition("/")[0].strip() or "fonds"

"""What a host's robots.txt lets us ask, and how often."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from protego import Protego

from fonds.errors import FetchError, NotFoundError, RefusedError, RobotsForbiddenError
from fonds.fetch.client import Fetcher
from fonds.fetch.rates import Pace

MARGIN: Final = 1.02
"""Pauses are longer by this: requests take their time to arrive, some less than others."""
PACE: Final = Pace(per_second=2.0 / MARGIN, include_loopback=True)
"""Where a host does not ask for another one: a little less than twice a second."""
SLOWEST: Final = 60.0
"""Seconds between two requests that are kept to, however much longer a host asks for."""
LARGEST: Final = 512 * 1024
"""Bytes that are read of the file; what comes after is passed over."""
REMEMBERED: Final = 256
FORBIDDEN: Final = "robots.txt forbids it"


@dataclass(frozen=True, slots=True)
class Rules:
    """What one host asks for."""

    parsed: Protego
    agent: str

    def allows(self, url: str) -> bool:
        """Whether we may ask for an address."""
        try:
            return bool(self.parsed.can_fetch(url, self.agent))
        except ValueError:  # an address that cannot be taken apart is asked of nobody
            return False

    def require(self, url: str) -> None:
        """Raise unless we may ask for an address."""
        if not self.allows(url):
            raise RobotsForbiddenError(f"{url}: {FORBIDDEN}")

    @property
    def pace(self) -> Pace:
        """How often we may ask: as the host says, at most as often as we do by ourselves."""
        delay = self.parsed.crawl_delay(self.agent) or 0.0
        rate = self.parsed.request_rate(self.agent)
        if rate is not None and rate.requests > 0:
            delay = max(delay, rate.seconds / rate.requests)
        slowed = max(1 / PACE.per_second, MARGIN * min(delay, SLOWEST))
        return Pace(per_second=1 / slowed, include_loopback=True)

    @property
    def sitemaps(self) -> list[str]:
        """Lists of addresses that the host announces."""
        return list(self.parsed.sitemaps)


class Robots:
    """The rules of hosts, asked for once in a crawl."""

    def __init__(self, fetcher: Fetcher, *, source: str, agent: str) -> None:
        self._fetcher = fetcher
        self._source = source
        self._agent = agent
        self._known: OrderedDict[str, asyncio.Future[Rules]] = OrderedDict()

    async def rules(self, url: str) -> Rules:
        """The rules for an address; one that cannot be had for a while is an error."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._known:
            self._known[origin] = asyncio.ensure_future(self._ask(f"{origin}/robots.txt"))
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(origin)
        known = self._known[origin]
        return known.result() if known.done() else await asyncio.shield(known)

    async def _ask(self, url: str) -> Rules:
        """A host without rules allows everything; one that is down, nothing for now."""
        try:
            download = await self._fetcher.download(url, source=self._source, pace=PACE)
        except (NotFoundError, RefusedError):
            return read_rules(b"", self._agent)
        except FetchError as error:
            raise FetchError(
                f"its robots.txt cannot be read, so it is not asked: {error}"
            ) from error
        assert download is not None, "an unconditional request is never answered by None"
        try:
            with download.file.open("rb") as file:
                return read_rules(file.read(LARGEST), self._agent)
        finally:
            download.discard()


def read_rules(data: bytes, agent: str) -> Rules:
    """The rules of a robots.txt, however malformed: what cannot be understood forbids nothing."""
    text = data.decode("utf-8-sig", errors="replace").replace("\0", "")
    return Rules(Protego.parse(text), agent)


def agent_of(user_agent: str) -> str:
    """The name by which robots.txt may speak of us: `fonds`."""
    return user_agent.partition("/")[0].strip() or "fonds"

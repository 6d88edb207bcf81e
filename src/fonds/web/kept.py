"""Pages that were just made, kept in memory for whoever asks for the same one next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from starlette.responses import Response

from fonds.seams import Clock

SECONDS: Final = 10.0
"""How old a page may be that somebody is shown."""
MOST_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Page:
    response: Response
    at: float


class Kept:
    """Pages by whatever decides what is on them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pages: OrderedDict[Hashable, _Page] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Response]) -> Response:
        """The page under a key: the one that was made some seconds ago, or else another."""
        now = self._clock.monotonic()
        with self._lock:
            page = self._pages.get(key)
        if page is not None and now - page.at < SECONDS:
            return page.response
        response = make()
        with self._lock:
            self._forget(key)
            self._pages[key] = _Page(response, now)
            self._bytes += len(response.body)
            while self._bytes > MOST_BYTES:
                self._forget(next(iter(self._pages)))
        return response

    def _forget(self, key: Hashable) -> None:
        page = self._pages.pop(key, None)
        self._bytes -= len(page.response.body) if page else 0

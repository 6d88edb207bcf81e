"""The requests of this server: how many, of which route, how answered, and how soon.

These figures are the process's own, and begin at nought with it.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fonds.seams import Clock

FIGURE: Final = (
    "fonds_http_request_seconds",
    "Time until the answer to a request began.",
    ("method", "route", "status"),
)
"""Name, meaning and labels of what is counted."""
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
UNROUTED: Final = "none"
"""Stands for whatever leads to no route: their number has no bound."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class Traffic:
    """Counts requests; one for an application."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(*FIGURE, buckets=SECONDS, registry=self._registry)

    def count(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one request by its route, never by its path."""
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = getattr(scope.get("route"), "path", UNROUTED)
        self._seconds.labels(method, route, str(status)).observe(seconds)

    def render(self) -> str:
        """The figures in Prometheus' text format."""
        # When each series began is of no use to anybody, and as long as the figures.
        lines = generate_latest(self._registry).decode().splitlines(keepends=True)
        return "".join(line for line in lines if "_seconds_created" not in line)


class Watched:
    """A layer that tells of each request once its answer begins."""

    def __init__(self, app: ASGIApp, traffic: Traffic, clock: Clock) -> None:
        self._app = app
        self._traffic = traffic
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._clock.monotonic()

        async def seen(message: Message) -> None:
            if message["type"] == "http.response.start":
                took = self._clock.monotonic() - began
                self._traffic.count(scope, message["status"], took)
            await send(message)

        await self._app(scope, receive, seen)

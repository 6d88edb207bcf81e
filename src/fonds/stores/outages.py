"""Waiting for a database or an object store that does not respond.

Commands and workers wait as long as the setting `outage_seconds` says; a server does not wait.
"""

from __future__ import annotations

import time
from threading import Event, Lock
from typing import Final

import structlog

MIN_PAUSE: Final = 0.2
MAX_PAUSE: Final = 2.0
"""Seconds before another attempt; a server is seldom back sooner than it was away."""
FORGET_SECONDS: Final = 60.0
"""After so long without an attempt, a failure is the first of another outage."""

STOP: Final = Event()
"""Set when the process is asked to end: nothing waits for a server after that."""

_log: Final = structlog.get_logger("fonds.stores")


class Outage:
    """Waits for one server while it does not respond, up to a limit for the whole outage.

    Shared by all threads that use the server: the limit counts from the first failed attempt.
    """

    def __init__(self, server: str, seconds: float) -> None:
        """`server` is its name in messages; `seconds` is the limit, 0 if nothing may wait."""
        self.server = server
        self.seconds = seconds
        self._lock = Lock()
        self._began: float | None = None
        self._last = 0.0

    def wait(self, reason: str) -> bool:
        """Wait before another attempt; False if the limit is reached or the process is to end."""
        now = time.monotonic()
        with self._lock:
            if self._began is None or now - self._last > FORGET_SECONDS:
                self._began = now
                if self.seconds > 0:
                    limit = f"{self.seconds:.0f} seconds"
                    message = f"waiting up to {limit} for {self.server}: {reason}"
                    _log.warning(message)
            self._last = now
            waited = now - self._began
        pause = min(max(MIN_PAUSE, waited / 4), MAX_PAUSE)
        if waited + pause > self.seconds:
            return False
        return not STOP.wait(pause)

    def end(self) -> None:
        """Note that the server has responded."""
        if self._began is not None:
            self._report_end()

    def _report_end(self) -> None:
        with self._lock:
            began, self._began = self._began, None
        if began is not None and self.seconds > 0:
            seconds = time.monotonic() - began
            _log.warning(f"{self.server} responds again, after {seconds:.0f} seconds")

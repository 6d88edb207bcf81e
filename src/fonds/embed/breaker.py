"""The circuit breaker: an endpoint that keeps failing is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final

from fonds.errors import BreakerOpenError
from fonds.seams import Clock

FAILURES: Final = 5
PAUSE: Final = 30.0
"""Seconds before one request tries whether the endpoint is back."""


class Breaker:
    """Opens after some failures in a row; shared by all threads that ask one endpoint."""

    def __init__(self, clock: Clock, *, failures: int = FAILURES, pause: float = PAUSE) -> None:
        self._clock = clock
        self._most = failures
        self._pause = pause
        self._lock = Lock()
        self._failures = 0
        self._cause = ""
        self._open_until: float | None = None
        self._is_probing = False
        self.tell: Callable[[float | None], object] = lambda _seconds: None
        """Told for how many seconds the endpoint is left alone, and None when it is back."""

    def check(self) -> None:
        """Let a request pass or raise BreakerOpenError; after the pause one may try.

        Whoever passes must say how it went, by `succeeded` or `failed`.
        """
        with self._lock:
            if self._open_until is None:
                return
            left = self._open_until - self._clock.monotonic()
            if left > 0 or self._is_probing:
                raise BreakerOpenError(
                    f"the endpoint failed {self._failures} times in a row and is left alone;"
                    f" last: {self._cause}",
                    retry_after=max(left, 0.0),
                )
            self._is_probing = True

    def succeeded(self) -> None:
        """The endpoint answered."""
        with self._lock:
            was_open = self._open_until is not None
            self._failures, self._open_until, self._is_probing = 0, None, False
        if was_open:
            self.tell(None)

    def failed(self, cause: str) -> None:
        """The endpoint did not answer, or said that it cannot."""
        with self._lock:
            self._failures += 1
            self._cause = cause
            self._is_probing = False
            is_open = self._failures >= self._most
            if is_open:
                self._open_until = self._clock.monotonic() + self._pause
        if is_open:
            self.tell(self._pause)

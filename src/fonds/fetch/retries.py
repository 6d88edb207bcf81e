"""How long to wait before asking again."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator

import stamina
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from fonds.errors import RetryableFetchError
from fonds.settings import Settings

_log = logging.getLogger("fonds.fetch")


def _log_retry(details: RetryDetails) -> None:
    """A repetition is news only to somebody who asked for it; a failure is recorded anyway."""
    _log.info("asking again in %.3f s: %s", details.wait_for, details.caused_by)


# Left alone, stamina writes its own lines to the standard output of whoever uses the library.
set_on_retry_hooks([_log_retry])


def tries(settings: Settings, chance: random.Random) -> AsyncIterator[stamina.Attempt]:
    """The tries of one request, with the waits between them."""
    backoff = Backoff(settings, chance)
    return stamina.retry_context(on=backoff, attempts=max(1, settings.retries), timeout=None)


class Backoff:
    """Told of each failure of one request, answers False or the seconds to wait."""

    def __init__(self, settings: Settings, chance: random.Random) -> None:
        self._first = settings.retry_wait
        self._longest = settings.retry_wait_max
        self._chance = chance
        self._failures = 0

    def __call__(self, error: Exception) -> bool | float:
        """False: not worth another try. Otherwise what the upstream asked for, or a guess."""
        if not isinstance(error, RetryableFetchError):
            return False
        self._failures += 1
        if error.retry_after is not None:
            return float(min(error.retry_after, self._longest))
        return float(min(self._guess(), self._longest))

    def _guess(self) -> float:
        # Jitter keeps parallel requests that failed together from coming back together.
        doubled = self._first * 2.0 ** min(self._failures - 1, 32)
        return doubled + self._chance.uniform(0, self._first)

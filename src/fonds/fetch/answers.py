"""What a status means."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

from fonds.errors import (
    FetchError,
    NotFoundError,
    RateLimitedError,
    RefusedError,
    UpstreamDownError,
)
from fonds.fetch.secrecy import public_url

OK: Final = 200
NOT_MODIFIED: Final = 304
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

_MISSING: Final = frozenset({404, 410})
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_SERVER_ERRORS: Final = range(500, 600)
_SUCCESSES: Final = range(200, 300)
# These promise no body, or only a part of it: nothing that could be archived as the file.
_BODILESS: Final = frozenset({204, 205, 206})


def is_fine(status: int) -> bool:
    """Whether the whole body that was asked for follows."""
    return status in _SUCCESSES and status not in _BODILESS


def failure(url: str, status: int, headers: Mapping[str, str], now: datetime) -> FetchError:
    """The error that an unsuccessful answer amounts to."""
    where = public_url(url)
    wait = retry_after(headers.get("retry-after"), now)
    if status in _MISSING:
        return NotFoundError(f"{where} does not exist ({status})")
    if status == _TOO_MANY or (status == _UNAVAILABLE and wait is not None):
        return RateLimitedError(f"{where} asks us to slow down ({status})", retry_after=wait)
    if status in _SERVER_ERRORS:
        return UpstreamDownError(f"{where} failed ({status})", retry_after=wait)
    return RefusedError(f"{where} answered {status} instead of the file")


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header, which holds seconds or a date."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return max(0.0, (aware - now).total_seconds())

"""Addresses out of feeds and pages, which may be anything: `http://[x` is none, and no failure."""

from __future__ import annotations

from urllib.parse import SplitResult, urljoin, urlsplit

_NONE = SplitResult("", "", "", "", "")


def parts_of(address: str) -> SplitResult:
    """Scheme, host, path and query; all of them empty where the address cannot be read."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # is read late, and may be no number
    except ValueError:
        return _NONE
    return parts


def joined(base: str, address: str) -> str | None:
    """An address as a page at `base` means it; None where it cannot be read."""
    try:
        return urljoin(base, address)
    except ValueError:
        return None

"""Where a page stands, and where its links lead from there."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urljoin

_ABSOLUTE: Final = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_WRITABLE: Final = re.compile(r"(?:https?://|mailto:)[^\s<>()\\]+", re.IGNORECASE)
# White space and brackets would end a link in Markdown; in an address both may be written so.
_ENCODED: Final = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})
_LONGEST: Final = 2_000


def page_address(root: Any, hint: str | None) -> str | None:
    """The address that relative links start from: what the page says, or what is known of it."""
    known = _absolute(hint) or next(filter(None, map(_canonical, root.iter("link"))), None)
    for base in root.iter("base"):
        if href := (base.get("href") or "").strip():
            return _absolute(_joined(known or "", href)) or known
    return known


def link_target(href: str | None, page: str | None) -> str | None:
    """The address as Markdown can hold it; None for a link that leads nowhere from here."""
    href = (href or "").strip()
    # Links within the page stay text. With the page's address they would fill a table of contents
    # with addresses, which are read, searched and counted, to headings that stand below it anyway.
    if not href or len(href) > _LONGEST or href.startswith("#"):
        return None
    target = (_joined(page, href) if page else href).translate(_ENCODED)
    return target if len(target) <= _LONGEST and _WRITABLE.fullmatch(target) else None


def _canonical(link: Any) -> str | None:
    if "canonical" not in (link.get("rel") or "").lower().split():
        return None
    return _absolute((link.get("href") or "").strip())


def _absolute(address: str | None) -> str | None:
    if not address or len(address) > _LONGEST or not _ABSOLUTE.match(address):
        return None
    return address


def _joined(page: str, href: str) -> str:
    try:
        return urljoin(page, href)
    except ValueError:
        # Brackets in a host that are no IPv6 address.
        return ""

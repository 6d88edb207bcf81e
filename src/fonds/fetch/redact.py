"""Removes keys, tokens and passwords from what is logged, reported and recorded."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from fonds.fetch.transport import SECRET_PARAMETERS, Headers, public_url
from fonds.settings import Settings

HIDDEN: Final = "[hidden]"

_MIN_SECRET: Final = 6
"""Characters; a shorter secret is also an ordinary word."""
_SECRET_NAMES: Final = re.compile(
    r"(?i)authori[sz]ation|cookie|credential|passw(or)?d|secret|signature|token\b|api[-_]?key"
)
_SECRET_PATTERNS: Final = (
    # In an address, or in a form: any name of a secret, and its value.
    (
        re.compile(
            r"(?i)([?&;](?:[\w.-]*(?:key|secret|token|passw|signature|credential)[\w.-]*|auth|sig)=)"
            r"[^&#>\s\"';,]+"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(://)[^/@\s:]*:[^/@\s]+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"\bfonds_[\w-]{8,}"), HIDDEN),
)

# Headers that a source adds to its requests are never recorded, whatever their name, so this
# lists the headers to record, and not those to remove.
_RECORDED_REQUEST_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "content-type",
        "host",
        "if-modified-since",
        "if-none-match",
        "user-agent",
    }
)
_SECRET_RESPONSE_HEADERS: Final = frozenset(
    {"authorization", "proxy-authenticate", "set-cookie", "set-cookie2", "x-api-key"}
)
_ADDRESS_HEADERS: Final = frozenset({"content-location", "location"})
# `Link` and its like contain addresses among other things.
_SECRET_IN_ADDRESS: Final = re.compile(
    rf"(?i)([?&;](?:{'|'.join(map(re.escape, sorted(SECRET_PARAMETERS)))})=)[^&#>\s\"';,]+"
)


def matching_url(url: str) -> str:
    """The form of an address that a replay compares: public, query sorted, no fragment."""
    parts = urlsplit(public_url(url))
    query = urlencode(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    host = parts.netloc.lower()
    return urlunsplit((parts.scheme.lower(), host, parts.path or "/", query, ""))


def recorded_request_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """The headers of a request that contain nothing about the user and no key."""
    return [(name, value) for name, value in headers if name.lower() in _RECORDED_REQUEST_HEADERS]


def recorded_response_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """The headers of a response without cookies, keys, and secrets inside addresses."""
    return [
        (name, _recorded_value(name.lower(), value))
        for name, value in headers
        if name.lower() not in _SECRET_RESPONSE_HEADERS
    ]


def _recorded_value(name: str, value: str) -> str:
    if name in _ADDRESS_HEADERS:
        # The headers of a WARC are ASCII; warcio by itself would quote the colon as well.
        return quote(public_url(value), safe=string.printable)
    return _SECRET_IN_ADDRESS.sub(r"\1", value)


class Redaction:
    """Hides what looks like a secret, and the secrets in the settings."""

    def __init__(self, settings: Settings | None = None) -> None:
        values = sorted(set(_secrets(settings)) if settings else (), key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, values))) if values else None

    def __call__(self, text: str) -> str:
        """The text without the secrets in it."""
        if self._values is not None:
            text = self._values.sub(HIDDEN, text)
        for pattern, replacement in _SECRET_PATTERNS:
            text = pattern.sub(replacement, text)
        return text

    def values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values by name without secrets, which are recognized by name or by form."""
        return {
            name: HIDDEN if value and _SECRET_NAMES.search(name) else self._value(value)
            for name, value in values.items()
        }

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return self.values({str(name): each for name, each in value.items()})
        if isinstance(value, list | tuple | set | frozenset):
            return [self._value(each) for each in value]
        is_harmless = value is None or isinstance(value, bool | int | float)
        return value if is_harmless else self(str(value))


def _secrets(settings: Settings) -> Iterator[str]:
    for entry in fields(settings):
        if entry.metadata["secret"]:
            value = getattr(settings, entry.name)
            for text in [value] if isinstance(value, str) else value:
                yield from _forms(_password(text) if "://" in text else text)


def _password(address: str) -> str:
    """Of an address, only the password before the host is secret."""
    try:
        return unquote(urlsplit(address).password or "")
    except ValueError:
        return address


def _forms(secret: str) -> Iterator[str]:
    if len(secret) >= _MIN_SECRET:
        yield secret
        yield quote(secret, safe="")

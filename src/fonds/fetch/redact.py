"""What is taken out of everything that is logged: keys, tokens and passwords."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, unquote_plus, urlencode, urlsplit, urlunsplit

from fonds.settings import Settings

HIDDEN: Final = "[hidden]"

_SHORTEST: Final = 6
"""Characters; a shorter secret is also an ordinary word."""
_NAMES: Final = re.compile(
    r"(?i)authori[sz]ation|cookie|credential|passw(or)?d|secret|signature|token\b|api[-_]?key"
)
_PATTERNS: Final = (
    # In an address, or in a form: any name that speaks of a secret, and its value.
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


class Redaction:
    """Hides secrets by their looks, and those that are set by their value."""

    def __init__(self, settings: Settings | None = None) -> None:
        values = sorted(set(_secrets(settings)) if settings else (), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, values))) if values else None

    def __call__(self, text: str) -> str:
        """The text without the secrets in it."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for pattern, instead in _PATTERNS:
            text = pattern.sub(instead, text)
        return text

    def values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Named values without secrets, be it by their name."""
        return {
            name: HIDDEN if value and _NAMES.search(name) else self._value(value)
            for name, value in told.items()
        }

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return self.values({str(name): each for name, each in value.items()})
        if isinstance(value, list | tuple | set | frozenset):
            return [self._value(each) for each in value]
        plain = value is None or isinstance(value, bool | int | float)
        return value if plain else self(str(value))


def _secrets(settings: Settings) -> Iterator[str]:
    for entry in fields(settings):
        if entry.metadata["secret"]:
            value = getattr(settings, entry.name)
            for text in [value] if isinstance(value, str) else value:
                yield from _forms(_password(text) if "://" in text else text)


def _password(address: str) -> str:
    """An address is no secret but for what stands before the host."""
    try:
        return unquote(urlsplit(address).password or "")
    except ValueError:
        return address


def _forms(secret: str) -> Iterator[str]:
    if len(secret) >= _SHORTEST:
        yield secret
        yield quote(secret, safe="")


_SECRET_KEYS: Final = frozenset(
    {
        "access_token",
        "api-key",
        "api_key",
        "apikey",
        "auth",
        "key",
        "password",
        "secret",
        "sig",
        "signature",
        "token",
        "x-amz-credential",
        "x-amz-security-token",
        "x-amz-signature",
    }
)

# Headers that a source adds to its requests are never recorded, whatever their name, so the
# rule lists what may be kept and not what must go.
_KEPT_REQUEST_HEADERS: Final = frozenset(
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
_SECRET_ANSWER_HEADERS: Final = frozenset(
    {"authorization", "proxy-authenticate", "set-cookie", "set-cookie2", "x-api-key"}
)
_ADDRESS_HEADERS: Final = frozenset({"content-location", "location"})
# `Link` and its like hold addresses among other things.
_SECRET_INSIDE: Final = re.compile(
    rf"(?i)([?&;](?:{'|'.join(map(re.escape, sorted(_SECRET_KEYS)))})=)[^&#>\s\"';,]+"
)

Headers = list[tuple[str, str]]


def public_url(url: str) -> str:
    """The address without credentials; one that holds none comes back as it is."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    netloc = parts.netloc.rpartition("@")[2]
    pairs = parts.query.split("&")
    kept = [pair for pair in pairs if not _is_secret(pair)]
    if netloc == parts.netloc and len(kept) == len(pairs):
        return url
    return urlunsplit(parts._replace(netloc=netloc, query="&".join(kept)))


def _is_secret(pair: str) -> bool:
    return unquote_plus(pair.partition("=")[0]).strip().lower() in _SECRET_KEYS


def matching_url(url: str) -> str:
    """The form in which a replay compares addresses: public, query sorted, no fragment."""
    parts = urlsplit(public_url(url))
    query = urlencode(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    host = parts.netloc.lower()
    return urlunsplit((parts.scheme.lower(), host, parts.path or "/", query, ""))


def recorded_request_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Those request headers that tell nothing about who asked with which key."""
    return [(name, value) for name, value in headers if name.lower() in _KEPT_REQUEST_HEADERS]


def recorded_answer_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """The answer's headers without cookies, keys, and secrets inside addresses."""
    return [
        (name, _recorded_value(name.lower(), value))
        for name, value in headers
        if name.lower() not in _SECRET_ANSWER_HEADERS
    ]


def _recorded_value(name: str, value: str) -> str:
    if name in _ADDRESS_HEADERS:
        # A WARC's headers are ASCII; left to itself the writer would quote the colon as well.
        return quote(public_url(value), safe=string.printable)
    return _SECRET_INSIDE.sub(r"\1", value)

"""What may be written down: addresses and headers without the secrets they carry."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_plus, urlencode, urlsplit, urlunsplit

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

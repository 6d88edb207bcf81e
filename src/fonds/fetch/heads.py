"""Heads of HTTP/1.1 in their plainest form, written and read at one go.

h11 understands all that there is; going through its states takes longer than a small file takes
to arrive. What is not exactly of this form is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fonds.fetch.wire import Headers

_NAME: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_VALUE: Final = rb"(?:[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?"
_FIELD: Final = re.compile(rb"(%b): ?(%b)\r\n" % (_NAME, _VALUE))
_HEAD: Final = re.compile(
    rb"HTTP/1\.1 200 ([\x20-\x7e]*)\r\n((?:%b: ?%b\r\n)*)\r\n" % (_NAME, _VALUE)
)
_TARGET: Final = re.compile(rb"/[\x21-\x7e]*")
_LENGTH: Final = re.compile(rb"\d{1,15}")
_FRAMING: Final = frozenset({b"transfer-encoding", b"upgrade", b"trailer"})
_SENT: Final = frozenset({b"content-length", b"transfer-encoding", b"connection", b"expect"})


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an answer."""

    status: int
    reason: bytes
    headers: Headers


def written(method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes | None:
    """A question without a body; None where it takes more care."""
    names = [name.lower() for name, _ in headers]
    if method != b"GET" or names.count(b"host") != 1 or not _SENT.isdisjoint(names):
        return None
    # Old servers want the host first.
    ordered = sorted(headers, key=lambda header: header[0].lower() != b"host")
    fields = b"".join(b"%b: %b\r\n" % header for header in ordered)
    # Read back, so that no value can pass for another header.
    if not _TARGET.fullmatch(target) or _FIELD.findall(fields) != ordered:
        return None
    return b"GET %b HTTP/1.1\r\n%b\r\n" % (target, fields)


def read(data: bytes) -> tuple[Head, int, int] | None:
    """A head, its own length and that of the body behind it; None where it takes more care."""
    found = _HEAD.match(data)
    if found is None:
        return None
    headers = _FIELD.findall(found[2])
    lengths = []
    for name, value in headers:
        lowered = name.lower()
        if lowered in _FRAMING or (lowered == b"connection" and value.lower() != b"keep-alive"):
            return None
        if lowered == b"content-length":
            lengths.append(value)
    if len(lengths) != 1 or not _LENGTH.fullmatch(lengths[0]):
        return None
    return Head(200, found[1], headers), found.end(), int(lengths[0])

"""Unit-separated values: fields end at U+001F, records at a newline, and any text is possible.

Control characters of a value are written as an escape (U+001B) and a visible character, as
terminals display them: a newline is `ESC J`. A reader may replace the escapes in any order, except
that of the escape character itself, which must be the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from fonds.errors import RecordError, ShardError

FIELD: Final = "\x1f"
RECORD: Final = "\n"
ESCAPE: Final = "\x1b"
NULL: Final = f"{ESCAPE}-"
"""A field without a value, as opposed to an empty text."""

ESCAPES: Final[Mapping[str, str]] = MappingProxyType(
    {chr(code): f"{ESCAPE}{chr(code + 64)}" for code in range(32)}
    | {"\x7f": f"{ESCAPE}?"}
    # Readers take it for a byte order mark at the start of a file.
    | {"\ufeff": f"{ESCAPE}f"}
)
"""The escapes of characters that cannot be written as they are."""

_SPECIAL: Final = re.compile("[" + re.escape("".join(ESCAPES)) + "]")
_ESCAPED: Final = re.compile(f"{ESCAPE}(.?)", re.DOTALL)
_CHARACTERS: Final = {escape[1]: character for character, escape in ESCAPES.items()}


def encode(fields: Sequence[str | None]) -> bytes:
    """One record, with its newline; RecordError if a value is not valid Unicode."""
    text = FIELD.join(NULL if field is None else _escape(field) for field in fields) + RECORD
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise RecordError(
            "a value contains a surrogate, which cannot be stored; remove it"
        ) from None


def decode(record: bytes) -> list[str | None]:
    """The fields of a record without its newline; ShardError if it is invalid."""
    try:
        fields = record.decode().split(FIELD)
    except UnicodeDecodeError:
        raise ShardError("a record is not UTF-8") from None
    return [_unescape(field) if ESCAPE in field else field for field in fields]


def records(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The records of a stream without their newlines; ShardError if it ends inside a record."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        raise ShardError("the file ends inside a record")


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda match: ESCAPES[match[0]], text)


def _unescape(field: str) -> str | None:
    return None if field == NULL else _ESCAPED.sub(_character, field)


def _character(match: re.Match[str]) -> str:
    try:
        return _CHARACTERS[match[1]]
    except KeyError:
        raise ShardError(f"a record contains an unknown escape, {match[0]!r}") from None

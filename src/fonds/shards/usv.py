"""Unit-separated values: fields end at U+001F, records at a newline, and every text survives.

Control characters of a value are written as an escape (U+001B) and a visible character, as a
terminal shows them: a newline is `ESC J`. As no other escape can stand in a record, the order in
which a reader takes them back does not matter, but for the escape itself, which comes last.
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
"""A field without a value; an empty text is something else."""

ESCAPES: Final[Mapping[str, str]] = MappingProxyType(
    {chr(code): f"{ESCAPE}{chr(code + 64)}" for code in range(32)}
    | {"\x7f": f"{ESCAPE}?"}
    # A reader of files takes it for a mark, not for text, where a file begins with it.
    | {"\ufeff": f"{ESCAPE}f"}
)
"""How each character that cannot stand for itself is written."""

_SPECIAL: Final = re.compile("[" + re.escape("".join(ESCAPES)) + "]")
_ESCAPED: Final = re.compile(f"{ESCAPE}(.?)", re.DOTALL)
_MEANING: Final = {written[1]: character for character, written in ESCAPES.items()}


def encode(fields: Sequence[str | None]) -> bytes:
    """One record, with its newline; RecordError if a value is not valid Unicode."""
    text = FIELD.join(NULL if field is None else _escape(field) for field in fields) + RECORD
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise RecordError(
            "a value holds half a character (a surrogate); it cannot be kept"
        ) from None


def decode(record: bytes) -> list[str | None]:
    """The fields of one record, given without its newline; ShardError if it is none."""
    try:
        fields = record.decode().split(FIELD)
    except UnicodeDecodeError:
        raise ShardError("a record is not UTF-8") from None
    return [_unescape(field) if ESCAPE in field else field for field in fields]


def records(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The records of a stream without their newlines; ShardError if it ends inside of one."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        raise ShardError("the file ends inside a record")


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda found: ESCAPES[found[0]], text)


def _unescape(field: str) -> str | None:
    return None if field == NULL else _ESCAPED.sub(_meaning, field)


def _meaning(found: re.Match[str]) -> str:
    try:
        return _MEANING[found[1]]
    except KeyError:
        raise ShardError(f"a record holds an unknown escape, {found[0]!r}") from None

"""What an index holds: named fields with types, a key, and the time that says what is newer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final, Literal, get_args

from fonds.errors import RecordError, ShardError, UsageError
from fonds.shards import usv

Type = Literal["string", "integer", "number", "boolean", "date", "datetime"]
"""Types by the names that Frictionless gives them."""
Value = str | int | float | bool | date | datetime | None
Record = Mapping[str, Value]

_LARGEST: Final = 2**63 - 1
_LONGEST_KEY: Final = 256
"""Bytes; so that its file name, three characters for each at worst, fits any store."""
LONGEST_RECORD: Final = 1 << 20
"""Bytes; so that readers of lines, which hold some thousands at once, can hold them."""


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """A column of an index."""

    name: str
    type: Type

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or not self.name.isascii():
            raise UsageError(f"{self.name!r} cannot name a field: letters, digits and underscores")
        if self.type not in get_args(Type):
            raise UsageError(f"no type {self.type!r}; possible are {', '.join(get_args(Type))}")

    def write(self, value: Value) -> str | None:
        """A value as it stands in a record; RecordError if it is of another type."""
        if value is None:
            return None
        try:
            return _WRITERS[self.type](value)
        except (TypeError, ValueError, OverflowError):
            raise RecordError(f"{self.name} is to be {_SAID[self.type]}, not {value!r}") from None

    def read(self, text: str | None) -> Value:
        """A value from a record, or as somebody typed it; RecordError if it is none."""
        if text is None:
            return None
        try:
            return _READERS[self.type](text)
        except ValueError:
            raise RecordError(f"{self.name} is to be {_SAID[self.type]}, not {text!r}") from None


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of an index: the first is its key, the last the time of the record."""

    fields: tuple[IndexColumn, ...]

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        if len(names) < 2 or len({name.lower() for name in names}) < len(names):  # noqa: PLR2004 — key and time
            raise UsageError("an index has at least two fields, and each a name of its own")
        if self.key.type != "string" or self.time.type != "datetime":
            raise UsageError(
                "the first field of an index is its key, a string; the last a datetime"
            )

    @property
    def key(self) -> IndexColumn:
        """What a record is looked up by."""
        return self.fields[0]

    @property
    def time(self) -> IndexColumn:
        """What decides which of two records of a key is newer."""
        return self.fields[-1]

    def encode(self, record: Record) -> bytes:
        """A record with its newline; RecordError where it does not fit the schema."""
        if unknown := record.keys() - {field.name for field in self.fields}:
            raise RecordError(f"the index has no field {min(unknown)!r}")
        written = [field.write(record.get(field.name)) for field in self.fields]
        if written[-1] is None:
            raise RecordError(f"{self.time.name} is missing: it says which record is newer")
        key, line = check_key(written[0]), usv.encode(written)
        if len(line) > LONGEST_RECORD:
            raise RecordError(f"the record of {key[:40]!r} is longer than {LONGEST_RECORD:,} bytes")
        return line

    def decode(self, line: bytes) -> dict[str, Value]:
        """The record of a line without its newline; ShardError if it is not one of this index."""
        texts = usv.decode(line)
        if len(texts) != len(self.fields):
            raise ShardError(f"a record has {len(texts)} fields, not {len(self.fields)}")
        try:
            return {
                field.name: field.read(text) for field, text in zip(self.fields, texts, strict=True)
            }
        except RecordError as error:
            raise ShardError(f"a record cannot be read: {error}") from None

    def parse(self, texts: Mapping[str, str | None]) -> dict[str, Value]:
        """A record of values as somebody typed them."""
        types = {field.name: field for field in self.fields}
        if unknown := texts.keys() - types.keys():
            raise RecordError(f"the index has no field {min(unknown)!r}; it has {', '.join(types)}")
        return {name: types[name].read(text) for name, text in texts.items()}


def check_key(key: str | None) -> str:
    """The key itself; RecordError where none could be stored under it."""
    if not key:
        raise RecordError("a record needs a key")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise RecordError(f"the key {key[:40]!r} holds half a character (a surrogate)") from None
    if size > _LONGEST_KEY:
        raise RecordError(f"the key {key[:40]!r}… is longer than {_LONGEST_KEY} bytes")
    return key


def rank(line: bytes) -> tuple[bytes, bytes]:
    """What is greater for the newer of two records, and never equal for different ones.

    Times are written in one length, so that their bytes compare as they do.
    """
    return line.rpartition(b"\x1f")[2], line


def schema_of(columns: Sequence[tuple[str, str]]) -> Schema:
    """A schema of names and types."""
    return Schema(tuple(IndexColumn(name, kind) for name, kind in columns))  # type: ignore[arg-type]


def _write_string(value: Value) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _write_integer(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
        raise TypeError
    return str(value)


def _write_number(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return repr(float(value))


def _write_boolean(value: Value) -> str:
    if not isinstance(value, bool):
        raise TypeError
    return "true" if value else "false"


def _write_date(value: Value) -> str:
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError
    return value.isoformat()


def _write_datetime(value: Value) -> str:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise TypeError
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _read_integer(text: str) -> int:
    number = int(text)
    if abs(number) > _LARGEST:
        raise ValueError
    return number


def _read_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _read_boolean(text: str) -> bool:
    return {"true": True, "false": False}[text] if text in {"true", "false"} else _refuse()


def _read_datetime(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _refuse() -> bool:
    raise ValueError


_WRITERS: Final[Mapping[Type, Callable[[Any], str]]] = {
    "string": _write_string,
    "integer": _write_integer,
    "number": _write_number,
    "boolean": _write_boolean,
    "date": _write_date,
    "datetime": _write_datetime,
}
_READERS: Final[Mapping[Type, Callable[[str], Value]]] = {
    "string": str,
    "integer": _read_integer,
    "number": _read_number,
    "boolean": _read_boolean,
    "date": date.fromisoformat,
    "datetime": _read_datetime,
}
_SAID: Final[Mapping[Type, str]] = {
    "string": "a text",
    "integer": "a whole number of 64 bits",
    "number": "a finite number",
    "boolean": "true or false",
    "date": "a day (2026-03-04)",
    "datetime": "a time with its zone (2026-03-04T05:06:07Z)",
}

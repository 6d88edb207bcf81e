"""The schema of an index: named fields with types, a key, and the time of a record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final, Literal, get_args

from fonds.errors import RecordError, ShardError, UsageError
from fonds.shards import usv

Type = Literal["string", "integer", "number", "boolean", "date", "datetime"]
"""Types by their Frictionless names."""
Value = str | int | float | bool | date | datetime | None
Record = Mapping[str, Value]

_MAX_INTEGER: Final = 2**63 - 1
_MAX_KEY_SIZE: Final = 256
"""Bytes; its file name, of up to three characters for each, must be valid in any store."""
MAX_RECORD_SIZE: Final = 1 << 20
"""Bytes, as readers have some thousands of records in memory."""


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """A column of an index."""

    name: str
    type: Type

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or not self.name.isascii():
            raise UsageError(
                f"{self.name!r} is not a valid name of a field: use letters, digits and underscores"
            )
        if self.type not in get_args(Type):
            raise UsageError(f"{self.type!r} is not a type; use {', '.join(get_args(Type))}")

    def write(self, value: Value) -> str | None:
        """The text of a value in a record; RecordError if it has another type."""
        if value is None:
            return None
        try:
            return _WRITERS[self.type](value)
        except (TypeError, ValueError, OverflowError):
            expected = _DESCRIPTIONS[self.type]
            raise RecordError(f"{self.name} must be {expected}, not {value!r}") from None

    def read(self, text: str | None) -> Value:
        """The value of a text in a record or from a user; RecordError if it is invalid."""
        if text is None:
            return None
        try:
            return _READERS[self.type](text)
        except ValueError:
            expected = _DESCRIPTIONS[self.type]
            raise RecordError(f"{self.name} must be {expected}, not {text!r}") from None


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of an index: the first is its key, the last the time of the record."""

    fields: tuple[IndexColumn, ...]

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        if len(names) < 2 or len({name.lower() for name in names}) < len(names):  # noqa: PLR2004 — key and time
            raise UsageError("an index needs at least two fields with different names")
        if self.key.type != "string" or self.time.type != "datetime":
            raise UsageError(
                "the first field of an index must be its key, a string, and the last a datetime"
            )

    @property
    def key(self) -> IndexColumn:
        """The field by which a record is looked up."""
        return self.fields[0]

    @property
    def time(self) -> IndexColumn:
        """The field that decides which of two records of a key is newer."""
        return self.fields[-1]

    def encode(self, record: Record) -> bytes:
        """A record with its newline; RecordError if it does not match the schema."""
        if unknown := record.keys() - {field.name for field in self.fields}:
            raise RecordError(f"the index has no field {min(unknown)!r}")
        values = [field.write(record.get(field.name)) for field in self.fields]
        if values[-1] is None:
            raise RecordError(f"{self.time.name} is missing, which decides which record is newer")
        key, line = check_key(values[0]), usv.encode(values)
        if len(line) > MAX_RECORD_SIZE:
            raise RecordError(
                f"the record of {key[:40]!r} is longer than {MAX_RECORD_SIZE:,} bytes"
            )
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
        """A record of values from a user's texts."""
        types = {field.name: field for field in self.fields}
        if unknown := texts.keys() - types.keys():
            raise RecordError(f"the index has no field {min(unknown)!r}; it has {', '.join(types)}")
        return {name: types[name].read(text) for name, text in texts.items()}


def check_key(key: str | None) -> str:
    """The key itself; RecordError if no record can be stored under it."""
    if not key:
        raise RecordError("a record needs a key")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise RecordError(f"the key {key[:40]!r} contains a surrogate") from None
    if size > _MAX_KEY_SIZE:
        raise RecordError(f"the key {key[:40]!r}… is longer than {_MAX_KEY_SIZE} bytes")
    return key


def rank(line: bytes) -> tuple[bytes, bytes]:
    """The sort key of a record: greater for the newer one, and different for different records.

    All times have the same length, so that their bytes compare as times do.
    """
    return line.rpartition(b"\x1f")[2], line


def schema_of(columns: Sequence[tuple[str, str]]) -> Schema:
    """A schema from names and types."""
    return Schema(tuple(IndexColumn(name, kind) for name, kind in columns))  # type: ignore[arg-type]


def _write_string(value: Value) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _write_integer(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MAX_INTEGER:
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
    if abs(number) > _MAX_INTEGER:
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
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


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
_DESCRIPTIONS: Final[Mapping[Type, str]] = {
    "string": "a text",
    "integer": "a whole number of 64 bits",
    "number": "a finite number",
    "boolean": "true or false",
    "date": "a day (2026-03-04)",
    "datetime": "a time with its zone (2026-03-04T05:06:07Z)",
}

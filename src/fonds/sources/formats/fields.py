"""Fields of a loaded JSON or YAML record, read strictly: a wrong shape is a named error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from fonds.errors import DuplicateKeyError, MalformedError
from fonds.model import ParsedRecord

_Number = TypeVar("_Number", int, float)

# Python would also read `nan`, `1_000` and digits of other scripts.
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,15}(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,2})?")


def describe(value: Any) -> str:
    """A loaded value described for messages: `a mapping with the keys members, pagination`."""
    if isinstance(value, Mapping):
        keys = ", ".join(map(str, list(value)[:5])) or "none"
        return f"a mapping with the keys {keys}"
    if isinstance(value, list):
        return f"a list of {len(value)} items"
    return "nothing" if value is None else f"the plain value {str(value)[:60]!r}"


def distinct(records: Iterable[ParsedRecord]) -> Iterator[ParsedRecord]:
    """The same records; a key met twice is an error, never an overwrite."""
    keys: set[str] = set()
    for record in records:
        if record.key in keys:
            raise DuplicateKeyError(f"{record.key} appears twice in one file; keep one of them")
        keys.add(record.key)
        yield record


def camel_case(column: str) -> str:
    """The name of a publisher's field in camel case: `docClass` for the column `doc_class`."""
    first, *others = column.split("_")
    return first + "".join(map(str.capitalize, others))


def text(record: Mapping[str, Any], field: str) -> str | None:
    """A scalar field as text, or None where it is absent or blank."""
    value = record.get(field)
    if value is None:
        return None
    if isinstance(value, dict | list):
        raise MalformedError(f"`{field}` should be text and is {describe(value)}")
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip() or None


def required(record: Mapping[str, Any], field: str) -> str:
    """A scalar field that must be there."""
    value = text(record, field)
    if value is None:
        raise MalformedError(f"`{field}` is missing from {describe(record)}")
    return value


def whole(record: Mapping[str, Any], field: str) -> int | None:
    """A field as a whole number, or None where it is absent."""
    return _number(record, field, int, "a whole number")


def decimal(record: Mapping[str, Any], field: str) -> float | None:
    """A field as a number, or None where it is absent."""
    return _number(record, field, float, "a number")


def texts(record: Mapping[str, Any], field: str) -> list[str]:
    """A field that holds one scalar or a list of them."""
    value = record.get(field)
    listed = value if isinstance(value, list) else [value]
    values = [text({field: item}, field) for item in listed]
    return [item for item in values if item is not None]


def section(record: Any, field: str) -> Mapping[str, Any]:
    """A field that holds a mapping; an empty one where it is absent."""
    value = mapping(record).get(field)
    return {} if value is None else mapping(value, field)


def sections(record: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    """A field that holds a list of mappings; an empty list where it is absent."""
    value = record.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise MalformedError(f"`{field}` should be a list and is {describe(value)}")
    return [mapping(item, field) for item in value]


def mapping(value: Any, field: str = "an entry") -> Mapping[str, Any]:
    """The value itself, known to be a mapping."""
    if not isinstance(value, Mapping):
        raise MalformedError(f"`{field}` should be a mapping and is {describe(value)}")
    return value


def _number(
    record: Mapping[str, Any], field: str, kind: Callable[[str], _Number], name: str
) -> _Number | None:
    value = text(record, field)
    if value is None:
        return None
    try:
        if _NUMBER.fullmatch(value):
            return kind(value)
    except ValueError:
        pass  # a fraction where a whole number should be
    raise MalformedError(f"`{field}` should be {name} and is {value[:60]!r}")

"""The one way to write a row down, and to read it back."""

from __future__ import annotations

import json
from typing import Any, Final

from fonds.errors import BundleError
from fonds.exchange.bundle.content import Field, Record, Resource

_KINDS: Final = {"string": str, "integer": int, "boolean": bool, "object": dict}


def line_of(record: Record) -> bytes:
    """A row as a line of JSON: fields by name, no space that means nothing, UTF-8."""
    return (canonical(record) + "\n").encode()


def canonical(value: Any) -> str:
    """The same text for the same value, on every machine."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def read_line(resource: Resource, line: bytes) -> Record:
    """The row of a line; BundleError says what is wrong with it."""
    try:
        record = json.loads(line)
        is_canonical = isinstance(record, dict) and line_of(record) == line
    except (ValueError, RecursionError):
        raise BundleError("is not JSON in UTF-8") from None
    if not is_canonical:
        raise BundleError("is JSON, but not written the one way there is")
    if set(record) != {field.name for field in resource.fields}:
        raise BundleError(f"has other fields than {resource.name} have")
    for field in resource.fields:
        _check(field, record[field.name])
    return dict(record)


def _check(field: Field, value: Any) -> None:
    if value is None:
        if field.required:
            raise BundleError(f"has no {field.name}")
        return
    # What is true or false would pass for a number.
    if type(value) is not _KINDS[field.type]:
        raise BundleError(f"has a {field.name} that is no {field.type}")

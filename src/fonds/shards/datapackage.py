"""The data package beside the shards: what they hold, for us and for any Frictionless tool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from fonds.errors import ShardError, UsageError
from fonds.shards import usv
from fonds.shards.layout import DIGITS, MOST_DIGITS, Layout
from fonds.shards.schema import Schema, schema_of

_NEVER_WRITTEN: Final = "\x1c"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a shard holds."""

    records: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Description:
    """What a data package tells of an index."""

    schema: Schema
    digits: int
    entries: Mapping[str, Entry]


def describe(layout: Layout, schema: Schema, entries: Mapping[str, Entry]) -> bytes:
    """The data package of an index whose shards hold this."""
    told = {
        "name": layout.name,
        "resources": [_resource(schema, entries)],
        "digits": layout.digits,
        "records": sum(entry.records for entry in entries.values()),
        "bytes": sum(entry.bytes for entry in entries.values()),
        "shards": {shard: asdict(entry) for shard, entry in sorted(entries.items())},
    }
    return json.dumps(told, indent=1).encode()


def _resource(schema: Schema, entries: Mapping[str, Entry]) -> dict[str, Any]:
    filled = sorted(shard for shard, entry in entries.items() if entry.bytes)
    fields: list[dict[str, Any]] = [
        {"name": field.name, "type": field.type} for field in schema.fields
    ]
    for field in (fields[0], fields[-1]):
        field["constraints"] = {"required": True}
    return {
        "name": "shards",
        "type": "table",
        **(_files(filled) if filled else _nothing(schema)),
        "rows": sum(entry.records for entry in entries.values()),
        "schema": {
            "fields": fields,
            "primaryKey": [schema.key.name],
            "missingValues": [usv.NULL],
        },
    }


def _files(shards: list[str]) -> dict[str, Any]:
    return {
        "path": [f"shards/{shard}.usv" for shard in shards],
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "dialect": {
            "header": False,
            "csv": {
                "delimiter": usv.FIELD,
                "lineTerminator": usv.RECORD,
                # There has to be one: a character that stands in no record.
                "quoteChar": _NEVER_WRITTEN,
            },
        },
    }


def _nothing(schema: Schema) -> dict[str, Any]:
    # A resource without data is not valid, nor is one whose file is missing or has no byte.
    return {"format": "inline", "data": [[field.name for field in schema.fields]]}


def read_description(data: bytes) -> Description:
    """What a data package says; ShardError if it is none of ours."""
    try:
        told = json.loads(data)
        fields = told["resources"][0]["schema"]["fields"]
        return Description(
            schema_of([(field["name"], field["type"]) for field in fields]),
            _digits(told.get("digits", DIGITS)),
            {shard: _entry(entry) for shard, entry in told.get("shards", {}).items()},
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, UsageError):
        raise ShardError("datapackage.json is not the data package of an index") from None


def _digits(told: Any) -> int:
    if told not in range(1, MOST_DIGITS + 1):
        raise ValueError
    return int(told)


def _entry(told: Mapping[str, Any]) -> Entry:
    entry = Entry(**told)
    if [type(value) for value in asdict(entry).values()] != [int, int, str]:
        raise TypeError
    return entry

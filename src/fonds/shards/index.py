"""An index: where it stands, what it holds, and what both are read from.

The index that is shipped: every host that was touched, and who is behind it.

The data package beside the shards: what they hold, for us and for any Frictionless tool.

What stands in the folder of an index's shards, as the store lists it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Final

from fonds.errors import BlobExistsError, BlobMissingError, ShardError, UsageError
from fonds.shards import usv
from fonds.shards.layout import DIGITS, MOST_DIGITS, IndexLayout
from fonds.shards.schema import Schema, schema_of
from fonds.stores.blobs import BlobInfo, Blobs, BlobVersion

DOMAINS: Final = schema_of(
    [
        ("domain", "string"),
        ("company_name", "string"),
        ("scraper_version", "integer"),
        ("updated_at", "datetime"),
    ]
)

SHIPPED: Final[Mapping[str, Schema]] = MappingProxyType({"domains": DOMAINS})
"""Indexes that need not be made before they are written to."""


_NEVER_WRITTEN: Final = "\x1c"


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """What a shard holds."""

    records: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Description:
    """What a data package tells of an index."""

    schema: Schema
    digits: int
    entries: Mapping[str, ShardEntry]


def describe(layout: IndexLayout, schema: Schema, entries: Mapping[str, ShardEntry]) -> bytes:
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


def _resource(schema: Schema, entries: Mapping[str, ShardEntry]) -> dict[str, Any]:
    filled = sorted(shard for shard, entry in entries.items() if entry.bytes)
    fields: list[dict[str, Any]] = [
        {"name": column.name, "type": column.type} for column in schema.fields
    ]
    for required in (fields[0], fields[-1]):
        required["constraints"] = {"required": True}
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


def _entry(told: Mapping[str, Any]) -> ShardEntry:
    entry = ShardEntry(**told)
    if [type(value) for value in asdict(entry).values()] != [int, int, str]:
        raise TypeError
    return entry


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """One index in one store."""

    blobs: Blobs
    layout: IndexLayout
    schema: Schema

    @property
    def name(self) -> str:
        """What it is called."""
        return self.layout.name


def open_index(blobs: Blobs, name: str) -> Index:
    """The index of a name, as its data package describes it; UsageError where there is none."""
    layout = IndexLayout(name)
    if described := version_of(blobs, layout.descriptor):
        description = read_description(described.data)
        layout = IndexLayout(name, description.digits)
        return Index(blobs=blobs, layout=layout, schema=description.schema)
    if name in SHIPPED:
        return Index(blobs=blobs, layout=layout, schema=SHIPPED[name])
    raise UsageError(
        f"there is no index {name} here; make one with:"
        f" fonds index create {name} key:string … updated_at:datetime"
    )


def create_index(blobs: Blobs, name: str, schema: Schema) -> Index:
    """Make an index that is empty; UsageError if one of this name has other fields."""
    layout = IndexLayout(name)
    try:
        blobs.create(layout.descriptor, describe(layout, schema, {}))
    except BlobExistsError:
        held = open_index(blobs, name)
        if held.schema != schema:
            raise UsageError(f"the index {name} exists, and has other fields") from None
        return held
    return Index(blobs=blobs, layout=layout, schema=schema)


def version_of(blobs: Blobs, key: str) -> BlobVersion | None:
    """An object with its etag, if there is one."""
    try:
        return blobs.read(key)
    except BlobMissingError:
        return None


_PART: Final = re.compile(r"([0-9a-f]{1,4})\.(usv|json)")


@dataclass(frozen=True, slots=True)
class ShardListing:
    """Objects by the shard that they belong to; shards of two divisions may be among them."""

    shards: dict[str, BlobInfo] = field(default_factory=dict)
    entries: dict[str, BlobInfo] = field(default_factory=dict)
    locks: list[BlobInfo] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    """Keys of what no index writes there."""

    def add(self, index: Index, info: BlobInfo) -> None:
        """Sort in one object of the folder."""
        name = info.key.removeprefix(index.layout.shards)
        if part := _PART.fullmatch(name):
            (self.shards if part[2] == "usv" else self.entries)[part[1]] = info
        elif name.endswith(".lock"):
            self.locks.append(info)
        else:
            self.strangers.append(info.key)


def list_shards(index: Index) -> ShardListing:
    """Everything in the folder of the shards."""
    listing = ShardListing()
    for info in index.blobs.list(index.layout.shards):
        listing.add(index, info)
    return listing

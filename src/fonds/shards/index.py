"""An index in a store: its data package, the listing of its shards, and the index of hosts.

The data package describes the shards, for this program and for any Frictionless tool.
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
from fonds.shards.layout import DIGITS, MAX_DIGITS, IndexLayout
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
"""Indexes that exist without `fonds index create`."""
_PACKAGE_NAMES: Final = {"domains": "domain-index"}


_UNUSED_CHARACTER: Final = "\x1c"


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """The contents of a shard: counts and hash."""

    records: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Description:
    """An index as its data package describes it."""

    schema: Schema
    digits: int
    entries: Mapping[str, ShardEntry]


def describe(layout: IndexLayout, schema: Schema, entries: Mapping[str, ShardEntry]) -> bytes:
    """The data package of an index with these shards."""
    package = {
        "name": _PACKAGE_NAMES.get(layout.name, layout.name),
        "resources": [_resource(schema, entries)],
        "digits": layout.digits,
        "records": sum(entry.records for entry in entries.values()),
        "bytes": sum(entry.bytes for entry in entries.values()),
        "shards": {shard: asdict(entry) for shard, entry in sorted(entries.items())},
    }
    return json.dumps(package, indent=1).encode()


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
                # The dialect requires one: a character that no record contains.
                "quoteChar": _UNUSED_CHARACTER,
            },
        },
    }


def _nothing(schema: Schema) -> dict[str, Any]:
    # A resource without data is invalid, and so is one whose file is missing or empty.
    return {"format": "inline", "data": [[field.name for field in schema.fields]]}


def read_description(data: bytes) -> Description:
    """The description in a data package; ShardError if it is not one of an index."""
    try:
        package = json.loads(data)
        fields = package["resources"][0]["schema"]["fields"]
        return Description(
            schema_of([(field["name"], field["type"]) for field in fields]),
            _digits(package.get("digits", DIGITS)),
            {shard: _entry(entry) for shard, entry in package.get("shards", {}).items()},
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, UsageError):
        raise ShardError("datapackage.json is not the data package of an index") from None


def _digits(value: Any) -> int:
    if value not in range(1, MAX_DIGITS + 1):
        raise ValueError
    return int(value)


def _entry(fields: Mapping[str, Any]) -> ShardEntry:
    entry = ShardEntry(**fields)
    if [type(value) for value in asdict(entry).values()] != [int, int, str]:
        raise TypeError
    return entry


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """An index in a store."""

    blobs: Blobs
    layout: IndexLayout
    schema: Schema

    @property
    def name(self) -> str:
        """The name of the index."""
        return self.layout.name


def open_index(blobs: Blobs, name: str) -> Index:
    """The index of a name, as its data package describes it; UsageError if there is none."""
    layout = IndexLayout(name)
    if described := version_of(blobs, layout.descriptor):
        description = read_description(described.data)
        layout = IndexLayout(name, description.digits)
        return Index(blobs=blobs, layout=layout, schema=description.schema)
    if name in SHIPPED:
        return Index(blobs=blobs, layout=layout, schema=SHIPPED[name])
    raise UsageError(
        f"there is no index {name}; create it with"
        f" `fonds index create {name} key:string … updated_at:datetime`"
    )


def create_index(blobs: Blobs, name: str, schema: Schema) -> Index:
    """Create an empty index; UsageError if one of this name has other fields."""
    layout = IndexLayout(name)
    try:
        blobs.create(layout.descriptor, describe(layout, schema, {}))
    except BlobExistsError:
        existing = open_index(blobs, name)
        if existing.schema != schema:
            raise UsageError(f"the index {name} exists with other fields") from None
        return existing
    return Index(blobs=blobs, layout=layout, schema=schema)


def version_of(blobs: Blobs, key: str) -> BlobVersion | None:
    """A blob with its etag, if there is one."""
    try:
        return blobs.read(key)
    except BlobMissingError:
        return None


_PART: Final = re.compile(r"([0-9a-f]{1,4})\.(usv|json)")


@dataclass(frozen=True, slots=True)
class ShardListing:
    """Blobs by shard; while an index is being divided, shards of both divisions."""

    shards: dict[str, BlobInfo] = field(default_factory=dict)
    entries: dict[str, BlobInfo] = field(default_factory=dict)
    locks: list[BlobInfo] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    """Keys of blobs that do not belong to an index."""

    def add(self, index: Index, info: BlobInfo) -> None:
        """Add a blob of the folder."""
        name = info.key.removeprefix(index.layout.shards)
        if part := _PART.fullmatch(name):
            (self.shards if part[2] == "usv" else self.entries)[part[1]] = info
        elif name.endswith(".lock"):
            self.locks.append(info)
        else:
            self.strangers.append(info.key)


def list_shards(index: Index) -> ShardListing:
    """All blobs in the folder of the shards."""
    listing = ShardListing()
    for info in index.blobs.list(index.layout.shards):
        listing.add(index, info)
    return listing

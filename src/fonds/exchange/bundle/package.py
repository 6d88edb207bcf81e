"""The data package of a bundle: its tables, the files they are in, and the hash over all of them.

A table is known by the hash over its files, and a bundle by the hash over its tables: whoever
compares two bundles need not look below what is equal.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from fonds.errors import BlobMissingError, BundleError
from fonds.exchange.bundle.canonical import canonical
from fonds.exchange.bundle.content import ORIGINS, RESOURCES, Resource
from fonds.exchange.bundle.parts import MOST, Part
from fonds.stores.blobs import Blobs

DESCRIPTOR: Final = "datapackage.json"
FORMAT: Final = 1
"""Of the files; another one has other hashes of the same content."""
_LONGEST_DESCRIPTOR: Final = 256 << 20
_LONGEST_RECORD: Final = 1 << 30
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Package:
    """What a bundle holds."""

    sources: tuple[str, ...] | None
    """Those it was asked for; None: all there were."""
    parts: Mapping[Resource, Sequence[Part]]

    @property
    def root(self) -> str:
        """The hash over everything: bundles with the same one are the same."""
        return self._hash(RESOURCES)

    @property
    def content(self) -> str:
        """The hash over everything but the publishers' bytes, of which only hashes are held."""
        return self._hash([each for each in RESOURCES if each is not ORIGINS])

    def records(self, resource: Resource) -> int:
        """How many rows a table has."""
        return sum(part.records for part in self.parts[resource])

    @property
    def bytes(self) -> int:
        """Of all files but this one."""
        return sum(part.bytes for parts in self.parts.values() for part in parts)

    def _hash(self, resources: Sequence[Resource]) -> str:
        hashes = {each.name: digest(self.parts[each]) for each in resources}
        return _sha256({"format": FORMAT, "resources": hashes})


def digest(parts: Sequence[Part]) -> str:
    """The hash of a table."""
    return _sha256([asdict(part) for part in parts])


def _sha256(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def describe(package: Package) -> bytes:
    """The data package, as a file."""
    told = {
        "name": "fonds-bundle",
        "title": "Public documents with their citations, and the hash over all of them.",
        "format": FORMAT,
        "root": package.root,
        "content": package.content,
        "selection": package.sources,
        "resources": [_described_resource(each, package.parts[each]) for each in RESOURCES],
    }
    return (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode()


def _described_resource(resource: Resource, parts: Sequence[Part]) -> dict[str, Any]:
    return {
        "name": resource.name,
        "type": "table",
        "description": resource.about,
        **(_files(resource, parts) if parts else _nothing(resource)),
        "rows": sum(part.records for part in parts),
        "digest": digest(parts),
        "parts": [asdict(part) for part in parts],
        "schema": _schema(resource),
    }


def _files(resource: Resource, parts: Sequence[Part]) -> dict[str, Any]:
    paths = [part.path(resource) for part in parts]
    return {
        "path": paths,
        "format": "jsonl",
        "mediatype": "application/x-ndjson",
        "encoding": "utf-8",
    }


def _nothing(resource: Resource) -> dict[str, Any]:
    # A resource without data is not valid, nor is one whose file has no byte.
    return {"format": "inline", "data": [[field.name for field in resource.fields]]}


def _schema(resource: Resource) -> dict[str, Any]:
    fields = [
        {"name": field.name, "type": field.type, "constraints": {"required": field.required}}
        for field in resource.fields
    ]
    # What is empty is not missing.
    return {"fields": fields, "primaryKey": list(resource.key), "missingValues": []}


def read_package(blobs: Blobs, where: str) -> Package:
    """What the data package at an address says; BundleError if it is not one of a bundle."""
    found = blobs.head(DESCRIPTOR)
    if found is None:
        raise BundleError(f"there is no bundle at {where}: it has no {DESCRIPTOR}")
    if found.size > _LONGEST_DESCRIPTOR:
        raise BundleError(f"the {DESCRIPTOR} at {where} is too long for one of a bundle")
    try:
        return _read(json.loads(blobs.get(DESCRIPTOR)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BundleError(f"the {DESCRIPTOR} at {where} is not one of a bundle") from None


def _read(told: Mapping[str, Any]) -> Package:
    if told["format"] != FORMAT:
        raise BundleError(
            f"the bundle has the format {told['format']!r}, and this program reads {FORMAT}"
        )
    tables = told["resources"]
    if [each["name"] for each in tables] != [each.name for each in RESOURCES]:
        raise BundleError("the bundle has other tables than its format has")
    sources = told["selection"]
    package = Package(
        None if sources is None else tuple(_text(each) for each in sources),
        {known: _parts(known, table) for known, table in zip(RESOURCES, tables, strict=True)},
    )
    # All of it follows from the files and their hashes; nothing else may stand in for it.
    expected = json.loads(describe(package))
    for name in ("root", "content", "resources"):
        if told[name] != expected[name]:
            raise BundleError(f"the bundle's {DESCRIPTOR} does not fit its own hashes: {name}")
    return package


def _parts(resource: Resource, table: Mapping[str, Any]) -> list[Part]:
    parts = [Part(**each) for each in table["parts"]]
    for part in parts:
        if [type(value) for value in asdict(part).values()] != [int, int, str]:
            raise TypeError
        if not _SHA256.fullmatch(part.sha256) or part.records < 1:
            raise ValueError
        if not 0 < part.bytes <= (MOST if part.records > 1 else _LONGEST_RECORD):
            raise BundleError(f"a file of {resource.name} is said to have {part.bytes:,} bytes")
    return parts


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def read_part(blobs: Blobs, resource: Resource, part: Part) -> bytes:
    """The bytes of a file, which are what the data package says; BundleError if not."""
    path = part.path(resource)
    found = blobs.head(path)
    if found is None:
        raise BundleError(f"{path} is missing")
    if found.size != part.bytes:
        raise BundleError(f"{path} has {found.size:,} bytes instead of {part.bytes:,}")
    try:
        data = blobs.get(path)
    except BlobMissingError:
        raise BundleError(f"{path} is missing") from None
    if hashlib.sha256(data).hexdigest() != part.sha256:
        raise BundleError(f"{path} does not have the bytes it is named after")
    return data

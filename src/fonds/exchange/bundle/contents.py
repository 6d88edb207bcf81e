"""The one way to write a row down, and to read it back.

Rows in files of bounded size, whose boundaries depend on the rows alone.

A file ends before a row whose owner's hash says so, once it is large enough. So a row that is new,
changed or removed changes the file it stands in, and rarely another one.

What of a library is content, table by table; everything else tells how it came to be.

Content is what a publisher says and what is derived from it: the same wherever and whenever it was
read. Times, archive keys, numbers of rows, histories and links to whatever else is held are not.

The data package of a bundle: its tables, the files they are in, and the hash over all of them.

A table is known by the hash over its files, and a bundle by the hash over its tables: whoever
compares two bundles need not look below what is equal.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from fonds import ids
from fonds.errors import BlobMissingError, BundleError
from fonds.stores.blobs import Blobs

Type = Literal["string", "integer", "boolean", "object"]
Record = dict[str, Any]
"""A row: every field, by its name."""


@dataclass(frozen=True, slots=True)
class BundleField:
    """A field of a table, and whether it is always filled in."""

    name: str
    type: Type = "string"
    required: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """A table of a bundle."""

    name: str
    about: str
    key: tuple[str, ...]
    """What its rows are sorted by, and what no two of them share."""
    fields: tuple[BundleField, ...]
    """By name: as they stand in a line."""

    @property
    def owner(self) -> str:
        """The field that says which document, or node, a row belongs to."""
        return self.key[0]

    def key_of(self, record: Record) -> tuple[Any, ...]:
        """What a row is sorted by."""
        return tuple(record[name] for name in self.key)


def _resource(name: str, about: str, key: tuple[str, ...], *fields: BundleField) -> Resource:
    ordered = tuple(sorted(fields, key=lambda field: field.name))
    return Resource(name=name, about=about, key=key, fields=ordered)


def _told(*names: str) -> tuple[BundleField, ...]:
    return tuple(BundleField(name, required=True) for name in names)


DOCUMENTS: Final = _resource(
    "documents",
    "What is cited: who published it, how it is cited, and its text.",
    ("id",),
    *_told("id", "source", "kind", "title", "source_url", "source_org", "citation_string"),
    *_told("content_sha256", "recipe"),
    BundleField("summary"),
    BundleField("published_at"),
    BundleField("unit"),
    BundleField("body_format"),
    BundleField("body_text"),
    BundleField("body_text_sha256"),
    BundleField("body_normalizer"),
    BundleField("body_map", "object"),
    BundleField("is_gone", "boolean", required=True),
)

PASSAGES: Final = _resource(
    "passages",
    "The text in pieces, each with its place.",
    ("document", "ord"),
    *_told("document", "id", "chunker", "sha256", "text"),
    BundleField("ord", "integer", required=True),
    BundleField("start", "integer", required=True),
    BundleField("end", "integer", required=True),
    BundleField("tokens", "integer", required=True),
    BundleField("locator", "object", required=True),
)

ALIASES: Final = _resource(
    "aliases",
    "Every other name of a document.",
    ("document", "alias"),
    *_told("document", "alias"),
    BundleField("edition"),
)

CITATIONS: Final = _resource(
    "citations",
    "What a document cites, and where in its text.",
    ("document", "start"),
    *_told("document", "raw", "kind", "target"),
    BundleField("start", "integer", required=True),
    BundleField("end", "integer", required=True),
    BundleField("locator", "object", required=True),
    BundleField("pinpoint"),
)

ORIGINS: Final = _resource(
    "origins",
    "Hashes of the bytes that a document was read from, as the publisher served them.",
    ("document",),
    *_told("document", "raw_sha256"),
    BundleField("body_raw_sha256"),
)

EDITIONS: Final = _resource(
    "editions",
    "Titles and acts of codes, in each edition.",
    ("id",),
    *_told("id", "source", "version", "unit", "label", "input_sha256", "state"),
    BundleField("published_at"),
    BundleField("nodes", "integer", required=True),
    BundleField("shards", "integer", required=True),
    BundleField("bytes", "integer", required=True),
)

NODES: Final = _resource(
    "nodes",
    "The trees of codes.",
    ("id",),
    *_told("id", "source", "version", "kind", "label", "path", "unit", "parent"),
    BundleField("position", "integer", required=True),
    BundleField("status"),
)

OF_DOCUMENTS: Final = (PASSAGES, ALIASES, CITATIONS, ORIGINS)
"""Tables whose rows belong to a document."""
RESOURCES: Final = (DOCUMENTS, *OF_DOCUMENTS, EDITIONS, NODES)


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
    if set(record) != {one.name for one in resource.fields}:
        raise BundleError(f"has other fields than {resource.name} have")
    for column in resource.fields:
        _check(column, record[column.name])
    return dict(record)


def _check(field: BundleField, value: Any) -> None:
    if value is None:
        if field.required:
            raise BundleError(f"has no {field.name}")
        return
    # What is true or false would pass for a number.
    if type(value) is not _KINDS[field.type]:
        raise BundleError(f"has a {field.name} that is no {field.type}")


LEAST: Final = 1 << 20
MOST: Final = 8 << 20
"""Bytes of a file: one that is not the last has no fewer, and one of several rows no more."""
_ODDS: Final = 16
"""Of so many documents, one may begin a file."""


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file of rows, known by its hash."""

    records: int
    bytes: int
    sha256: str

    def path(self, resource: Resource) -> str:
        """Where it stands in a bundle: equal rows are the same file in all of them."""
        return f"data/{resource.name}/{self.sha256}.jsonl"


@dataclass(frozen=True, slots=True)
class Filled:
    """A file with its bytes."""

    part: BundleFile
    data: bytes = field(repr=False)

    def read(self) -> bytes:
        """Its bytes, which need not be fetched."""
        return self.data


def cut(resource: Resource, records: Iterable[Record]) -> Iterator[Filled]:
    """Rows, in order, as files."""
    lines: list[bytes] = []
    size, before = 0, None
    for record in records:
        line, owner = line_of(record), record[resource.owner]
        is_over = size + len(line) > MOST
        if lines and (is_over or (size >= LEAST and owner != before and _begins(owner))):
            yield _filled(lines)
            lines, size = [], 0
        lines.append(line)
        size, before = size + len(line), owner
    if lines:
        yield _filled(lines)


def _begins(owner: str) -> bool:
    return int(ids.text_sha256(owner)[:8], 16) % _ODDS == 0


def _filled(lines: list[bytes]) -> Filled:
    data = b"".join(lines)
    return Filled(BundleFile(len(lines), len(data), hashlib.sha256(data).hexdigest()), data)


DESCRIPTOR: Final = "datapackage.json"
FORMAT: Final = 1
"""Of the files; another one has other hashes of the same content."""
_LONGEST_DESCRIPTOR: Final = 256 << 20
_LONGEST_RECORD: Final = 1 << 30
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class BundlePackage:
    """What a bundle holds."""

    sources: tuple[str, ...] | None
    """Those it was asked for; None: all there were."""
    parts: Mapping[Resource, Sequence[BundleFile]]

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


def digest(parts: Sequence[BundleFile]) -> str:
    """The hash of a table."""
    return _sha256([asdict(part) for part in parts])


def _sha256(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def describe(package: BundlePackage) -> bytes:
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


def _described_resource(resource: Resource, parts: Sequence[BundleFile]) -> dict[str, Any]:
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


def _files(resource: Resource, parts: Sequence[BundleFile]) -> dict[str, Any]:
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


def read_package(blobs: Blobs, where: str) -> BundlePackage:
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


def _read(told: Mapping[str, Any]) -> BundlePackage:
    if told["format"] != FORMAT:
        raise BundleError(
            f"the bundle has the format {told['format']!r}, and this program reads {FORMAT}"
        )
    tables = told["resources"]
    if [each["name"] for each in tables] != [each.name for each in RESOURCES]:
        raise BundleError("the bundle has other tables than its format has")
    sources = told["selection"]
    package = BundlePackage(
        None if sources is None else tuple(_text(each) for each in sources),
        {known: _parts(known, table) for known, table in zip(RESOURCES, tables, strict=True)},
    )
    # All of it follows from the files and their hashes; nothing else may stand in for it.
    expected = json.loads(describe(package))
    for name in ("root", "content", "resources"):
        if told[name] != expected[name]:
            raise BundleError(f"the bundle's {DESCRIPTOR} does not fit its own hashes: {name}")
    return package


def _parts(resource: Resource, table: Mapping[str, Any]) -> list[BundleFile]:
    parts = [BundleFile(**each) for each in table["parts"]]
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


def read_part(blobs: Blobs, resource: Resource, part: BundleFile) -> bytes:
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

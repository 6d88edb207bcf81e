"""The format of bundles: tables, lines, files, and the data package with the hashes over them.

The tables have the content of a library: what publishers state and what is derived from it, which
is the same wherever and whenever it was read. Times, archive keys, row numbers, histories and links
to other documents of the library are not content.

A row is a line in canonical JSON. The boundaries of files depend only on their rows: a file that is
large enough ends before a row whose owner's hash is a multiple of 16, so that a change of a row
changes one file and rarely another. A table has a hash over its files, and a bundle one over its
tables, so that comparing two bundles can skip what is equal.
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
    """A field of a table, which may be required."""

    name: str
    type: Type = "string"
    required: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """A table of a bundle."""

    name: str
    about: str
    key: tuple[str, ...]
    """The unique key by which its rows are sorted."""
    fields: tuple[BundleField, ...]
    """In the order of their names, as in a line."""

    @property
    def owner(self) -> str:
        """The field with the document or node that a row belongs to."""
        return self.key[0]

    def key_of(self, record: Record) -> tuple[Any, ...]:
        """The sort key of a row."""
        return tuple(record[name] for name in self.key)


def _resource(name: str, about: str, key: tuple[str, ...], *fields: BundleField) -> Resource:
    ordered = tuple(sorted(fields, key=lambda field: field.name))
    return Resource(name=name, about=about, key=key, fields=ordered)


def _required(*names: str) -> tuple[BundleField, ...]:
    return tuple(BundleField(name, required=True) for name in names)


DOCUMENTS: Final = _resource(
    "documents",
    "What is cited: who published it, how it is cited, and its text.",
    ("id",),
    *_required("id", "source", "kind", "title", "source_url", "source_org", "citation_string"),
    *_required("content_sha256", "recipe"),
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
    *_required("document", "id", "chunker", "sha256", "text"),
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
    *_required("document", "alias"),
    BundleField("edition"),
)

CITATIONS: Final = _resource(
    "citations",
    "What a document cites, and where in its text.",
    ("document", "start"),
    *_required("document", "raw", "kind", "target"),
    BundleField("start", "integer", required=True),
    BundleField("end", "integer", required=True),
    BundleField("locator", "object", required=True),
    BundleField("pinpoint"),
)

ORIGINS: Final = _resource(
    "origins",
    "Hashes of the bytes that a document was read from, as the publisher served them.",
    ("document",),
    *_required("document", "raw_sha256"),
    BundleField("body_raw_sha256"),
)

EDITIONS: Final = _resource(
    "editions",
    "Titles and acts of codes, in each edition.",
    ("id",),
    *_required("id", "source", "version", "unit", "label", "input_sha256", "state"),
    BundleField("published_at"),
    BundleField("nodes", "integer", required=True),
    BundleField("shards", "integer", required=True),
    BundleField("bytes", "integer", required=True),
)

NODES: Final = _resource(
    "nodes",
    "The trees of codes.",
    ("id",),
    *_required("id", "source", "version", "kind", "label", "path", "unit", "parent"),
    BundleField("position", "integer", required=True),
    BundleField("status"),
)

INPUTS: Final = _resource(
    "inputs",
    "What documents were read from: tasks of feeds, and units of codes, with their files.",
    ("source", "key"),
    *_required("source", "key", "kind", "recipe"),
    BundleField("fingerprint"),
    BundleField("task", "object", required=True),
)
"""A table beside those of the root: how a library came to its documents is not their content."""

OF_DOCUMENTS: Final = (PASSAGES, ALIASES, CITATIONS, ORIGINS)
"""Tables whose rows belong to a document."""
RESOURCES: Final = (DOCUMENTS, *OF_DOCUMENTS, EDITIONS, NODES)


_KINDS: Final = {"string": str, "integer": int, "boolean": bool, "object": dict}


def line_of(record: Record) -> bytes:
    """A row as a line of canonical JSON."""
    return (canonical(record) + "\n").encode()


def canonical(value: Any) -> str:
    """JSON with sorted keys and without spaces: equal values have equal texts."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def read_line(resource: Resource, line: bytes) -> Record:
    """The row of a line; BundleError if it is invalid."""
    try:
        record = json.loads(line)
        is_canonical = isinstance(record, dict) and line_of(record) == line
    except (ValueError, RecursionError):
        raise BundleError("is not JSON in UTF-8") from None
    if not is_canonical:
        raise BundleError("is JSON, but not in the canonical form")
    if set(record) != {column.name for column in resource.fields}:
        raise BundleError(f"has other fields than {resource.name} have")
    for column in resource.fields:
        _check(column, record[column.name])
    return dict(record)


def _check(field: BundleField, value: Any) -> None:
    if value is None:
        if field.required:
            raise BundleError(f"has no {field.name}")
        return
    # Not isinstance: a bool is an int.
    if type(value) is not _KINDS[field.type]:
        raise BundleError(f"has a {field.name} that is not of type {field.type}")


MIN_FILE_SIZE: Final = 1 << 20
MAX_FILE_SIZE: Final = 8 << 20
"""Bytes of a file. The last one may be smaller, and one with a single row larger."""
_ODDS: Final = 16
"""One in so many documents may begin a file."""


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file of rows, named by its hash."""

    records: int
    bytes: int
    sha256: str

    def path(self, resource: Resource) -> str:
        """The path in a bundle, which is the same for equal rows."""
        return f"data/{resource.name}/{self.sha256}.jsonl"


@dataclass(frozen=True, slots=True)
class FilledFile:
    """A file with its bytes."""

    part: BundleFile
    data: bytes = field(repr=False)

    def read(self) -> bytes:
        """The bytes, as from `read_part`."""
        return self.data


def cut(resource: Resource, records: Iterable[Record]) -> Iterator[FilledFile]:
    """The files of sorted rows."""
    lines: list[bytes] = []
    size, before = 0, None
    for record in records:
        line, owner = line_of(record), record[resource.owner]
        is_over = size + len(line) > MAX_FILE_SIZE
        if lines and (is_over or (size >= MIN_FILE_SIZE and owner != before and _begins(owner))):
            yield _filled(lines)
            lines, size = [], 0
        lines.append(line)
        size, before = size + len(line), owner
    if lines:
        yield _filled(lines)


def _begins(owner: str) -> bool:
    return int(ids.text_sha256(owner)[:8], 16) % _ODDS == 0


def _filled(lines: list[bytes]) -> FilledFile:
    data = b"".join(lines)
    return FilledFile(BundleFile(len(lines), len(data), hashlib.sha256(data).hexdigest()), data)


DESCRIPTOR: Final = "datapackage.json"
FORMAT: Final = 1
"""The version of the format; in another one, equal content has other hashes."""
MAX_DESCRIPTOR: Final = 256 << 20
_MAX_RECORD: Final = 256 << 20
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class BundlePackage:
    """The contents of a bundle."""

    sources: tuple[str, ...] | None
    """The selected sources; None if all were selected."""
    parts: Mapping[Resource, Sequence[BundleFile]]

    @property
    def root(self) -> str:
        """The hash over everything: bundles with equal ones are equal."""
        return self._hash(RESOURCES)

    @property
    def content(self) -> str:
        """The hash over everything except the hashes of the publishers' bytes."""
        return self._hash([each for each in RESOURCES if each is not ORIGINS])

    def records(self, resource: Resource) -> int:
        """The number of rows of a table."""
        return sum(part.records for part in self.parts[resource])

    @property
    def bytes(self) -> int:
        """The size of all files except the data package."""
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
    """The bytes of the data package."""
    package_fields = {
        "name": "fonds-bundle",
        "title": "Public documents with their citations, and the hash over all of them.",
        "format": FORMAT,
        "root": package.root,
        "content": package.content,
        "selection": package.sources,
        "resources": [_described_resource(each, package.parts[each]) for each in RESOURCES],
    }
    return (json.dumps(package_fields, indent=1, ensure_ascii=False) + "\n").encode()


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
    # A resource without data is invalid, and so is one with an empty file.
    return {"format": "inline", "data": [[field.name for field in resource.fields]]}


def _schema(resource: Resource) -> dict[str, Any]:
    fields = [
        {"name": field.name, "type": field.type, "constraints": {"required": field.required}}
        for field in resource.fields
    ]
    # Empty texts are not missing values.
    return {"fields": fields, "primaryKey": list(resource.key), "missingValues": []}


def read_package(blobs: Blobs, where: str) -> BundlePackage:
    """The contents by the data package at an address; BundleError if it is not one of a bundle."""
    info = blobs.head(DESCRIPTOR)
    if info is None:
        raise BundleError(f"there is no bundle at {where}: it has no {DESCRIPTOR}")
    if info.size > MAX_DESCRIPTOR:
        raise BundleError(f"the {DESCRIPTOR} at {where} is too long for one of a bundle")
    try:
        return _read(json.loads(blobs.get(DESCRIPTOR)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BundleError(f"the {DESCRIPTOR} at {where} is not one of a bundle") from None


def _read(package_fields: Mapping[str, Any]) -> BundlePackage:
    if package_fields["format"] != FORMAT:
        raise BundleError(
            f"the bundle has format {package_fields['format']!r}, and this program reads {FORMAT}"
        )
    tables = package_fields["resources"]
    if [each["name"] for each in tables] != [each.name for each in RESOURCES]:
        raise BundleError("the bundle has other tables than its format")
    sources = package_fields["selection"]
    package = BundlePackage(
        None if sources is None else tuple(_text(each) for each in sources),
        {
            resource: read_files(resource, table["parts"])
            for resource, table in zip(RESOURCES, tables, strict=True)
        },
    )
    # All fields follow from the files and their hashes, and must be equal.
    expected = json.loads(describe(package))
    for name in ("root", "content", "resources"):
        if package_fields[name] != expected[name]:
            raise BundleError(f"the bundle's {DESCRIPTOR} does not match its own hashes: {name}")
    return package


def read_files(resource: Resource, files: Sequence[Mapping[str, Any]]) -> list[BundleFile]:
    """The files of a table, as a descriptor lists them."""
    parts = [BundleFile(**each) for each in files]
    for part in parts:
        if [type(value) for value in asdict(part).values()] != [int, int, str]:
            raise TypeError
        if not _SHA256.fullmatch(part.sha256) or part.records < 1:
            raise ValueError
        if not 0 < part.bytes <= (MAX_FILE_SIZE if part.records > 1 else _MAX_RECORD):
            raise BundleError(
                f"a file of {resource.name} has an invalid size: {part.bytes:,} bytes"
            )
    return parts


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def read_part(blobs: Blobs, resource: Resource, part: BundleFile) -> bytes:
    """The bytes of a file; BundleError if they do not match the data package."""
    path = part.path(resource)
    info = blobs.head(path)
    if info is None:
        raise BundleError(f"{path} is missing")
    if info.size != part.bytes:
        raise BundleError(f"{path} has {info.size:,} bytes instead of {part.bytes:,}")
    try:
        data = blobs.get(path)
    except BlobMissingError:
        raise BundleError(f"{path} is missing") from None
    if hashlib.sha256(data).hexdigest() != part.sha256:
        raise BundleError(f"the content of {path} does not match the hash in its name")
    return data

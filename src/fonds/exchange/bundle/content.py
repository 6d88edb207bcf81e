"""What of a library is content, table by table; everything else tells how it came to be.

Content is what a publisher says and what is derived from it: the same wherever and whenever it was
read. Times, archive keys, numbers of rows, histories and links to whatever else is held are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

Type = Literal["string", "integer", "boolean", "object"]
Record = dict[str, Any]
"""A row: every field, by its name."""


@dataclass(frozen=True, slots=True)
class Field:
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
    fields: tuple[Field, ...]
    """By name: as they stand in a line."""

    @property
    def owner(self) -> str:
        """The field that says which document, or node, a row belongs to."""
        return self.key[0]

    def key_of(self, record: Record) -> tuple[Any, ...]:
        """What a row is sorted by."""
        return tuple(record[name] for name in self.key)


def _resource(name: str, about: str, key: tuple[str, ...], *fields: Field) -> Resource:
    ordered = tuple(sorted(fields, key=lambda field: field.name))
    return Resource(name=name, about=about, key=key, fields=ordered)


def _told(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, required=True) for name in names)


DOCUMENTS: Final = _resource(
    "documents",
    "What is cited: who published it, how it is cited, and its text.",
    ("id",),
    *_told("id", "source", "kind", "title", "source_url", "source_org", "citation_string"),
    *_told("content_sha256", "recipe"),
    Field("summary"),
    Field("published_at"),
    Field("unit"),
    Field("body_format"),
    Field("body_text"),
    Field("body_text_sha256"),
    Field("body_normalizer"),
    Field("body_map", "object"),
    Field("is_gone", "boolean", required=True),
)

PASSAGES: Final = _resource(
    "passages",
    "The text in pieces, each with its place.",
    ("document", "ord"),
    *_told("document", "id", "chunker", "sha256", "text"),
    Field("ord", "integer", required=True),
    Field("start", "integer", required=True),
    Field("end", "integer", required=True),
    Field("tokens", "integer", required=True),
    Field("locator", "object", required=True),
)

ALIASES: Final = _resource(
    "aliases",
    "Every other name of a document.",
    ("document", "alias"),
    *_told("document", "alias"),
    Field("edition"),
)

CITATIONS: Final = _resource(
    "citations",
    "What a document cites, and where in its text.",
    ("document", "start"),
    *_told("document", "raw", "kind", "target"),
    Field("start", "integer", required=True),
    Field("end", "integer", required=True),
    Field("locator", "object", required=True),
    Field("pinpoint"),
)

ORIGINS: Final = _resource(
    "origins",
    "Hashes of the bytes that a document was read from, as the publisher served them.",
    ("document",),
    *_told("document", "raw_sha256"),
    Field("body_raw_sha256"),
)

EDITIONS: Final = _resource(
    "editions",
    "Titles and acts of codes, in each edition.",
    ("id",),
    *_told("id", "source", "version", "unit", "label", "input_sha256", "state"),
    Field("published_at"),
    Field("nodes", "integer", required=True),
    Field("shards", "integer", required=True),
    Field("bytes", "integer", required=True),
)

NODES: Final = _resource(
    "nodes",
    "The trees of codes.",
    ("id",),
    *_told("id", "source", "version", "kind", "label", "path", "unit", "parent"),
    Field("position", "integer", required=True),
    Field("status"),
)

OF_DOCUMENTS: Final = (PASSAGES, ALIASES, CITATIONS, ORIGINS)
"""Tables whose rows belong to a document."""
RESOURCES: Final = (DOCUMENTS, *OF_DOCUMENTS, EDITIONS, NODES)

"""Bundles made of rows that nobody ingested, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from fonds import ids
from fonds.exchange.bundle.contents import (
    ALIASES,
    CITATIONS,
    DESCRIPTOR,
    DOCUMENTS,
    ORIGINS,
    PASSAGES,
    RESOURCES,
    BundlePackage,
    Record,
    Resource,
    cut,
    describe,
)
from fonds.seams import Seams
from fonds.stores.blobs import Blobs, open_blobs

Rows = Mapping[Resource, Sequence[Record]]


def document(document_id: str, text: str = "Some words.", **said: Any) -> dict[Resource, Record]:
    """A document with a row of each table."""
    told = {
        "id": document_id,
        "source": "held",
        "kind": "note",
        "title": f"About {document_id}",
        "source_url": f"https://held.example/{document_id}",
        "source_org": "The Office",
        "citation_string": f"Held, {document_id}.",
        "content_sha256": ids.text_sha256(text),
        "recipe": "text_v1@1.0.0 headings@1.1.0:512/64",
        "body_format": "text",
        "body_text": text,
        "body_text_sha256": ids.text_sha256(text),
        "body_normalizer": "text_v1@1.0.0",
        "body_map": {"sections": [], "pages": []},
        "is_gone": False,
        **said,
    }
    passage = {
        "document": document_id,
        "ord": 0,
        "id": str(ids.chunk_id(ids.document_uid(document_id), "headings", "1.1.0", 0)),
        "chunker": "headings@1.1.0",
        "sha256": ids.chunk_sha(text),
        "text": text,
        "start": 0,
        "end": len(text),
        "tokens": 3,
        "locator": {"heading_path": []},
    }
    cited = {"raw": "90 FR 55", "kind": "fr", "target": "90 FR 55", "pinpoint": None}
    return {
        DOCUMENTS: {**dict.fromkeys(field.name for field in DOCUMENTS.fields), **told},
        PASSAGES: passage,
        ALIASES: {"document": document_id, "alias": f"No. {document_id}", "edition": None},
        CITATIONS: {"document": document_id, "start": 0, "end": 4, "locator": {}, **cited},
        ORIGINS: {
            "document": document_id,
            "raw_sha256": sha256(text.encode()).hexdigest(),
            "body_raw_sha256": None,
        },
    }


def rows_of(*documents: Mapping[Resource, Record]) -> dict[Resource, list[Record]]:
    """The rows of all tables, in order."""
    return {
        resource: sorted(
            (each[resource] for each in documents if resource in each), key=resource.key_of
        )
        for resource in RESOURCES
    }


def bundle(rows: Rows) -> tuple[Blobs, BundlePackage]:
    """A bundle of rows, as they are given, whether or not they make sense."""
    blobs = open_blobs("memory://", seams=Seams())
    parts: dict[Resource, list[Any]] = {}
    for resource in RESOURCES:
        parts[resource] = []
        for filled in cut(resource, rows.get(resource, ())):
            blobs.put(filled.part.path(resource), filled.data)
            parts[resource].append(filled.part)
    package = BundlePackage(None, parts)
    blobs.put(DESCRIPTOR, describe(package))
    return blobs, package

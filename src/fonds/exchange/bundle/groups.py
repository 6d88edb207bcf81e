"""The rows of a document in all tables of a bundle, from a bundle or from a library."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from fonds.exchange.bundle.contents import (
    DOCUMENTS,
    OF_DOCUMENTS,
    BundleFile,
    BundlePackage,
    Record,
    Resource,
    read_line,
    read_part,
)
from fonds.exchange.bundle.create import rows_of_documents
from fonds.exchange.snapshot import Snapshot
from fonds.stores.blobs import Blobs

TABLES: Final = (DOCUMENTS, *OF_DOCUMENTS)

DocumentRows = Mapping[Resource, Sequence[Record]]
"""The rows of one document, by table."""


def bundle_table(blobs: Blobs, package: BundlePackage, resource: Resource) -> Iterator[Record]:
    """The rows of a table of a bundle; BundleError for one that is malformed."""
    yield from read_rows(blobs, resource, package.parts[resource])


def read_rows(blobs: Blobs, resource: Resource, parts: Sequence[BundleFile]) -> Iterator[Record]:
    """The rows of files of a table."""
    for part in parts:
        for line in read_part(blobs, resource, part).splitlines(keepends=True):
            yield read_line(resource, line)


def bundle_documents(blobs: Blobs, package: BundlePackage) -> Iterator[tuple[str, DocumentRows]]:
    """All documents of a bundle, each with its rows."""
    streams = [_owned(each, bundle_table(blobs, package, each)) for each in TABLES]
    for owner, group in groupby(heapq.merge(*streams, key=_owner), key=_owner):
        rows: dict[Resource, list[Record]] = {each: [] for each in TABLES}
        for _, resource, record in group:
            rows[resource].append(record)
        yield owner, rows


_Owned = tuple[str, Resource, Record]


def _owned(resource: Resource, rows: Iterator[Record]) -> Iterator[_Owned]:
    for record in rows:
        yield record[resource.owner], resource, record


def _owner(owned: _Owned) -> str:
    return owned[0]


def library_documents(view: Snapshot, document_ids: Sequence[str]) -> dict[str, DocumentRows]:
    """Documents of a library, each with the rows that a bundle would have."""
    rows: dict[str, dict[Resource, list[Record]]] = defaultdict(
        lambda: {each: [] for each in TABLES}
    )
    for resource in TABLES:
        for record in rows_of_documents(view, resource, document_ids):
            rows[record[resource.owner]][resource].append(record)
    return {key: each for key, each in rows.items() if each[DOCUMENTS]}

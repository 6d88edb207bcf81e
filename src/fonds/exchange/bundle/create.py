"""Making a bundle: only files that are not there are written, and the data package last.

The content of a library, row by row, in the order of a bundle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, Table, func, select

from fonds.errors import BlobExistsError, UsageError
from fonds.exchange.bundle.contents import (
    ALIASES,
    CITATIONS,
    DESCRIPTOR,
    DOCUMENTS,
    EDITIONS,
    NODES,
    ORIGINS,
    PASSAGES,
    RESOURCES,
    BundleFile,
    BundlePackage,
    Filled,
    Record,
    Resource,
    cut,
    describe,
    read_package,
)
from fonds.exchange.snapshot import Snapshot, snapshot
from fonds.stores.blobs import Blobs
from fonds.stores.database import Database, by_bytes
from fonds.stores.documents import visible_to
from fonds.stores.leases import MAX_ATTEMPTS
from fonds.stores.sqlite import batched
from fonds.stores.tables import (
    citation_edges,
    code_units,
    document_aliases,
    document_chunk_buffer,
    documents,
    ingestion_citation_queue,
    ingestion_normalization_queue,
    nodes,
)

_AT_ONCE: Final = 100
"""Documents whose rows one statement asks for."""
_FETCHED: Final = 50
"""Rows, each with its text, that are in memory at once."""

_document: Final = documents.c
_chunk: Final = document_chunk_buffer.c
_edge: Final = citation_edges.c

_SELECTED: Final[Mapping[Resource, Select[Any]]] = {
    DOCUMENTS: select(
        *(_document[field.name] for field in DOCUMENTS.fields if field.name in _document),
        _document.body_raw_format.label("body_format"),
        _document.body_normalizer_version.label("body_normalizer"),
        _document.gone_at.is_not(None).label("is_gone"),
    ),
    PASSAGES: select(
        _document.id.label("document"),
        _chunk.chunk_id.label("id"),
        _chunk.chunk_ord.label("ord"),
        (_chunk.chunker_name + "@" + _chunk.chunker_version).label("chunker"),
        _chunk.chunk_sha.label("sha256"),
        _chunk.text,
        _chunk.meta,
    ).join_from(documents, document_chunk_buffer, _chunk.document_id == _document.uid),
    ALIASES: select(
        document_aliases.c.document_id.label("document"),
        document_aliases.c.alias,
        document_aliases.c.edition,
    ),
    CITATIONS: select(
        _edge.from_document_id.label("document"),
        *(_edge[field.name] for field in CITATIONS.fields if field.name in _edge),
    ),
    ORIGINS: select(
        _document.id.label("document"), _document.raw_sha256, _document.body_raw_sha256
    ),
}
_BELONGS: Final[Mapping[Resource, ColumnElement[Any]]] = {
    DOCUMENTS: _document.id,
    PASSAGES: _document.id,
    ALIASES: document_aliases.c.document_id,
    CITATIONS: _edge.from_document_id,
    ORIGINS: _document.id,
}
_THEN_BY: Final[Mapping[Resource, ColumnElement[Any]]] = {
    PASSAGES: _chunk.chunk_ord,
    ALIASES: document_aliases.c.alias,
    CITATIONS: _edge.start,
}
_TREES: Final[Mapping[Resource, Table]] = {EDITIONS: code_units, NODES: nodes}


def records(held: Snapshot, resource: Resource, sources: Sequence[str] | None) -> Iterator[Record]:
    """The public rows of a table of a bundle, of some sources or of all; a page at a time."""
    if resource in _TREES:
        yield from _tree(held, resource, sources)
        return
    column = _BELONGS[resource]
    order = [by_bytes(held.connection, column)]
    if resource in _THEN_BY:
        then = _THEN_BY[resource]
        order.append(by_bytes(held.connection, then) if resource is ALIASES else then)
    query = _SELECTED[resource].order_by(*order)
    finish = _passage if resource is PASSAGES else _plain
    for ids in batched(_public_ids(held, sources), _AT_ONCE):
        for row in held.stream(query.where(column.in_(ids)), at_once=_FETCHED):
            yield finish(row)


def require_held(held: Snapshot, sources: Sequence[str] | None) -> None:
    """Refuse to go on with a source of which nothing public is held: zero is suspicious."""
    for source in sources or ():
        query = select(_document.id).where(*_public([source])).limit(1)
        if held.connection.scalar(query) is None:
            raise UsageError(f"the library holds nothing public of {source}")


def waiting(held: Snapshot, sources: Sequence[str] | None) -> dict[str, int]:
    """How many public documents still wait for their text, and for their citations."""
    queues = {"texts": ingestion_normalization_queue, "citations": ingestion_citation_queue}
    return {name: _waiting(held, queue, sources) for name, queue in queues.items()}


def _waiting(held: Snapshot, queue: Table, sources: Sequence[str] | None) -> int:
    counted = select(func.count()).join_from(
        documents, queue, (queue.c.record_id == _document.id) & (queue.c.attempts < MAX_ATTEMPTS)
    )
    return held.connection.scalar(counted.where(*_public(sources))) or 0


def _public(sources: Sequence[str] | None) -> list[ColumnElement[bool]]:
    chosen = [] if sources is None else [_document.source.in_(sources)]
    return [visible_to(None), *chosen]


def _public_ids(held: Snapshot, sources: Sequence[str] | None) -> Iterator[str]:
    # Ids alone are sorted where there is no index in this order; their rows are asked for by them.
    query = select(_document.id).where(*_public(sources))
    for row in held.stream(
        query.order_by(by_bytes(held.connection, _document.id)), at_once=_FETCHED
    ):
        yield row.id


def _tree(held: Snapshot, resource: Resource, sources: Sequence[str] | None) -> Iterator[Record]:
    table = _TREES[resource]
    query = select(*(table.c[field.name] for field in resource.fields))
    if sources is not None:
        query = query.where(table.c.source.in_(sources))
    for row in held.stream(query.order_by(by_bytes(held.connection, table.c.id)), at_once=_FETCHED):
        yield _plain(row)


def _plain(row: Row[Any]) -> Record:
    return row._asdict()


def _passage(row: Row[Any]) -> Record:
    told = row._asdict()
    meta = told.pop("meta")
    places = {name: meta[name] for name in ("start", "end", "tokens", "locator")}
    return {**told, "id": str(told["id"]), **places}


Watch = Callable[[str, int], None]
"""Told, now and then, of a table and how many of its rows are done."""

_TOLD: Final = 500
_DATA: Final = "data/"
_OURS: Final = re.compile(r"data/[a-z]+/[0-9a-f]{64}\.jsonl")


@dataclass(frozen=True, kw_only=True, slots=True)
class Created:
    """The bundle that is there, and what it took."""

    root: str
    content: str
    records: Mapping[str, int]
    bytes: int
    files: int
    written: int
    """Files that were not there before."""
    removed: int
    """Files of an earlier bundle that this one does not have."""
    waiting: Mapping[str, int]
    """Documents whose text or citations are still to be found: not all is in the bundle."""


def create(
    database: Database,
    blobs: Blobs,
    *,
    sources: Sequence[str] | None = None,
    where: str,
    watch: Watch | None = None,
) -> Created:
    """Write the public content of a library, or of some of its sources, to an address."""
    before = None if blobs.head(DESCRIPTOR) is None else read_package(blobs, where)
    there = {info.key: info.size for info in blobs.list(_DATA)}
    written = 0
    parts: dict[Resource, list[BundleFile]] = {}
    with snapshot(database) as held:
        require_held(held, sources)
        unfinished = waiting(held, sources)
        for resource in RESOURCES:
            rows = watched(records(held, resource, sources), resource, watch)
            parts[resource] = []
            for filled in cut(resource, rows):
                parts[resource].append(filled.part)
                written += _write(blobs, resource, filled, there)
    package = BundlePackage(None if sources is None else tuple(sorted(set(sources))), parts)
    if package != before:
        blobs.put(DESCRIPTOR, describe(package))
    return Created(
        root=package.root,
        content=package.content,
        records={each.name: package.records(each) for each in RESOURCES},
        bytes=package.bytes,
        files=sum(map(len, parts.values())),
        written=written + (package != before),
        removed=_sweep(blobs, package, there),
        waiting=unfinished,
    )


def watched(rows: Iterable[Record], resource: Resource, watch: Watch | None) -> Iterator[Record]:
    """The same rows, told of."""
    for count, row in enumerate(rows, 1):
        if watch is not None and count % _TOLD == 0:
            watch(resource.name, count)
        yield row


def _write(blobs: Blobs, resource: Resource, filled: Filled, there: Mapping[str, int]) -> bool:
    path = filled.part.path(resource)
    if there.get(path) == filled.part.bytes:
        return False
    if path in there:  # cut short by somebody else: nothing of ours is
        blobs.put(path, filled.data)
        return True
    with suppress(BlobExistsError):
        blobs.create(path, filled.data)
    return True


def _sweep(blobs: Blobs, package: BundlePackage, there: Iterable[str]) -> int:
    kept = {part.path(each) for each, parts in package.parts.items() for part in parts}
    stale = [key for key in there if _OURS.fullmatch(key) and key not in kept]
    for key in stale:
        blobs.delete(key)
    return len(stale)

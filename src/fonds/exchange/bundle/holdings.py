"""The content of a library, row by row, in the order of a bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, Table, func, select

from fonds.errors import UsageError
from fonds.exchange.bundle.content import (
    ALIASES,
    CITATIONS,
    DOCUMENTS,
    EDITIONS,
    NODES,
    ORIGINS,
    PASSAGES,
    Record,
    Resource,
)
from fonds.exchange.snapshot import Snapshot
from fonds.stores.batches import pieces
from fonds.stores.database import by_bytes
from fonds.stores.queues import MAX_ATTEMPTS
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
from fonds.stores.visibility import visible_to

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
    for ids in pieces(_public_ids(held, sources), _AT_ONCE):
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

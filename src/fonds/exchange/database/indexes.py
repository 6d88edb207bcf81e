"""The indexes over words and vectors, made anew: each kind of database has its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, select

from fonds.exchange.snapshot import Snapshot
from fonds.stores.batches import pieces
from fonds.stores.database import Database
from fonds.stores.passages import index_entry
from fonds.stores.tables import document_chunk_buffer, document_vector_buffer, documents
from fonds.stores.vectors import Generation, generations

AT_ONCE: Final = 200

_chunk: Final = document_chunk_buffer.c
_vector: Final = document_vector_buffer.c


def index_words(held: Snapshot, target: Database, connection: Connection) -> int:
    """Make the passages of all documents findable by their words."""
    count = 0
    for rows in pieces(_passages(held, select(_chunk.id, _chunk.text, _chunk.meta)), AT_ONCE):
        entries = [index_entry(row.id, row.title, row._asdict()) for row in rows]
        target.fulltext.add(connection, entries)
        count += len(entries)
    return count


def index_vectors(held: Snapshot, target: Database, connection: Connection) -> int:
    """Make them findable by their vectors, in every generation."""
    count = 0
    for generation in generations(connection):
        target.vectors.create(connection, generation)
        for rows in pieces(_vectors(held, generation), AT_ONCE):
            near = [(row.id, bytes(row.vector)) for row in rows]
            target.vectors.add(connection, generation, near)
            count += len(near)
    return count


def _vectors(held: Snapshot, generation: Generation) -> Iterator[Row[Any]]:
    query = select(_chunk.id, _vector.vector).join_from(
        document_chunk_buffer, document_vector_buffer, _vector.chunk_id == _chunk.chunk_id
    )
    made_by = _vector.embed_model == generation.name, _vector.embed_version == generation.version
    return _passages(held, query.where(*made_by))


def _passages(held: Snapshot, query: Select[Any]) -> Iterator[Row[Any]]:
    # Passages of an upload that is not published yet belong to no document, and are not found.
    joined = query.add_columns(documents.c.title).join(
        documents, documents.c.uid == _chunk.document_id
    )
    return held.stream(joined.order_by(_chunk.id), at_once=AT_ONCE)

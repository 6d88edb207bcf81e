"""Passages of a document that is not published yet: stored and embedded, but not to be found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, and_, delete, func, select

from fonds.stores.database import insert_many
from fonds.stores.fulltext import FullText
from fonds.stores.passages import Passages, index_entry
from fonds.stores.tables import document_chunk_buffer, document_vector_buffer
from fonds.stores.vectors import VectorIndex, generations

_PAGE: Final = 500
_chunk: Final = document_chunk_buffer.c
_vector: Final = document_vector_buffer.c


@dataclass(frozen=True, kw_only=True, slots=True)
class Staged:
    """What is staged of a document."""

    passages: int
    vectors: int
    """Of one model, as many passages as have one."""


def stage_passages(
    connection: Connection, fulltext: FullText, passages: Passages, now: datetime
) -> None:
    """Store the passages of a document in place of any that were staged before.

    Those that are there already stay, with the vectors they have.
    """
    rows = passages.rows(now)
    if _is_staged(connection, passages.document_uid, rows):
        return
    connection.execute(
        delete(document_chunk_buffer).where(_chunk.document_id == passages.document_uid)
    )
    numbers = fulltext.allocate(connection, len(rows))
    numbered = [{"id": number, **row} for number, row in zip(numbers, rows, strict=True)]
    insert_many(connection, document_chunk_buffer, numbered)


def _is_staged(connection: Connection, uid: UUID, rows: Sequence[dict[str, Any]]) -> bool:
    query = select(_chunk.chunk_id, _chunk.chunk_sha).where(_chunk.document_id == uid)
    held = {row.chunk_id: row.chunk_sha for row in connection.execute(query)}
    return held == {row["chunk_id"]: row["chunk_sha"] for row in rows}


def staged(connection: Connection, uid: UUID, model: str, version: str) -> Staged:
    """How many passages are there, and how many of them have a vector of a model."""
    made_by = and_(_vector.embed_model == model, _vector.embed_version == version)
    query = (
        select(func.count(), func.count(_vector.chunk_id))
        .select_from(document_chunk_buffer)
        .outerjoin(document_vector_buffer, and_(_vector.chunk_id == _chunk.chunk_id, made_by))
        .where(_chunk.document_id == uid)
    )
    passages, vectors = connection.execute(query).one()
    return Staged(passages=passages, vectors=vectors)


def staged_hashes(connection: Connection, uid: UUID) -> dict[int, str]:
    """The hash of each passage that is stored, by its place."""
    query = select(_chunk.chunk_ord, _chunk.chunk_sha).where(_chunk.document_id == uid)
    return {row.chunk_ord: row.chunk_sha for row in connection.execute(query)}


def publish_passages(
    connection: Connection, fulltext: FullText, index: VectorIndex, uid: UUID, title: str
) -> None:
    """Make the staged passages of a document findable, by their words and by their vectors."""
    columns: list[Any] = [_chunk.id, _chunk.chunk_id, _chunk.chunk_ord, _chunk.text, _chunk.meta]
    query = select(*columns).where(_chunk.document_id == uid).order_by(_chunk.chunk_ord)
    after = -1
    while rows := connection.execute(query.where(_chunk.chunk_ord > after).limit(_PAGE)).all():
        fulltext.add(connection, [index_entry(row.id, title, row._asdict()) for row in rows])
        _publish_vectors(connection, index, {row.chunk_id: row.id for row in rows})
        after = rows[-1].chunk_ord


def _publish_vectors(
    connection: Connection, index: VectorIndex, numbers: Mapping[UUID, int]
) -> None:
    query = select(_vector.chunk_id, _vector.vector).where(_vector.chunk_id.in_(list(numbers)))
    for generation in generations(connection):
        made_by = query.where(
            _vector.embed_model == generation.name, _vector.embed_version == generation.version
        )
        found = [(numbers[row.chunk_id], bytes(row.vector)) for row in connection.execute(made_by)]
        if found:
            index.add(connection, generation, found)

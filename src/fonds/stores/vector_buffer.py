"""What embedding asks of the database: passages without a vector, equal texts, one batch stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    exists,
    func,
    insert,
    literal,
    select,
    text,
)

from fonds.stores.columns import Timestamp
from fonds.stores.database import insert_many, run
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    documents,
    embedding_batches,
    embedding_costs,
)
from fonds.stores.vectors import Generation, VectorIndex

_chunk: Final = document_chunk_buffer.c
_vector: Final = document_vector_buffer.c


class PendingPassage(NamedTuple):
    """A passage that had no vector when it was read."""

    row: int
    """`document_chunk_buffer.id`: a changed text has another one."""
    ordinal: int
    sha: str
    """The same for equal texts."""
    text: str
    tokens: int
    is_known: bool
    """Whether an equal text had a vector then."""
    document: str
    """`documents.id`"""


class StoredVector(NamedTuple):
    """A vector that passed all checks, as it is stored."""

    data: bytes
    sha: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentShare:
    """What one document had of a batch."""

    document: str
    texts: int
    tokens: int
    cost: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Spending:
    """What one batch took."""

    run_id: UUID
    texts: int
    tokens: int
    requests: int
    retries: int
    cost: float
    shares: Sequence[DocumentShare]


# Passages without a vector ----------------------------------------------------------------


def passage_counts(connection: Connection, uids: Sequence[UUID]) -> dict[UUID, int]:
    """How many passages documents have."""
    counted = select(_chunk.document_id, func.count()).group_by(_chunk.document_id)
    rows: Iterable[Any] = select_in(connection, counted, _chunk.document_id, uids)
    return dict(rows)


def lacking(
    connection: Connection, generation: Generation, uids: Sequence[UUID]
) -> list[PendingPassage]:
    """The passages of some documents that have no vector, as they were written."""
    found: list[PendingPassage] = []
    for batch in batched(uids):
        found += _passages(connection, _lacking_of_some(generation), {"uids": batch})
    return sorted(found)


@lru_cache(maxsize=8)
def _lacking_of_some(generation: Generation) -> Select[Any]:
    # Building the statement takes longer than reading some passages by it.
    wanted = bindparam("uids", expanding=True, type_=_chunk.document_id.type)
    return _lacking(generation).where(_chunk.document_id.in_(wanted))


def lacking_of_one(
    connection: Connection, generation: Generation, uid: UUID, after: int, limit: int
) -> list[PendingPassage]:
    """One page of a document's passages that have no vector, behind a place in it."""
    query = _lacking(generation).where(_chunk.document_id == uid, _chunk.chunk_ord > after)
    return _passages(connection, query.order_by(_chunk.chunk_ord).limit(limit))


def lacking_staged(
    connection: Connection, generation: Generation, document_id: str, uid: UUID, limit: int
) -> list[PendingPassage]:
    """The first passages without a vector of a document that is not published yet."""
    query = _columns(generation, literal(document_id)).where(_chunk.document_id == uid)
    query = query.where(~_held(generation))
    return _passages(connection, query.order_by(_chunk.chunk_ord).limit(limit))


def lacking_after(
    connection: Connection, generation: Generation, after: int, limit: int
) -> list[PendingPassage]:
    """One page of all passages that have no vector, behind a row."""
    query = _lacking(generation).where(_chunk.id > after)
    return _passages(connection, query.order_by(_chunk.id).limit(limit))


def _passages(
    connection: Connection, query: Select[Any], given: Mapping[str, Any] | None = None
) -> list[PendingPassage]:
    # The driver's own rows: Core would spend on each as much time as the database did.
    return [PendingPassage._make(row) for row in connection.execute(query, given).cursor.fetchall()]


def documents_lacking(connection: Connection, generation: Generation) -> int:
    """How many documents have a passage without a vector."""
    of = _lacking(generation).with_only_columns(func.count(_chunk.document_id.distinct()))
    return connection.scalar(of) or 0


def _lacking(generation: Generation) -> Select[Any]:
    """Passages without a vector, of documents that are published."""
    query = _columns(generation, documents.c.id)
    return query.join(documents, documents.c.uid == _chunk.document_id).where(~_held(generation))


def _columns(generation: Generation, document: Any) -> Select[Any]:
    """What a `PendingPassage` says; a phrase that ends ten thousand documents is no dearer."""
    twin = document_chunk_buffer.alias("twin").c
    known = exists().where(
        twin.chunk_sha == _chunk.chunk_sha,
        _vector.chunk_id == twin.chunk_id,
        _made_by(generation),
    )
    return select(
        _chunk.id,
        _chunk.chunk_ord,
        _chunk.chunk_sha,
        _chunk.text,
        _chunk.meta["tokens"].as_integer(),
        known,
        document,
    )


def _held(generation: Generation) -> Any:
    return exists().where(_vector.chunk_id == _chunk.chunk_id, _made_by(generation))


def _made_by(generation: Generation) -> ColumnElement[bool]:
    return and_(_vector.embed_model == generation.name, _vector.embed_version == generation.version)


# Equal texts ------------------------------------------------------------------------------


def vectors_of_texts(
    connection: Connection, generation: Generation, shas: Iterable[str]
) -> dict[str, StoredVector]:
    """The vectors of those texts that have one."""
    wanted = _each_of(connection, shas)
    holder = (
        select(_vector.chunk_id)
        .join(document_chunk_buffer, _chunk.chunk_id == _vector.chunk_id)
        .where(_chunk.chunk_sha == wanted.c.value, _made_by(generation))
        .limit(1)
        .scalar_subquery()
    )
    found = connection.execute(select(holder, wanted.c.value).where(holder.is_not(None)))
    shas_of = {row[0]: row[1] for row in found.all()}
    query = select(_vector.chunk_id, _vector.vector, _vector.vector_sha)
    query = query.where(_made_by(generation))
    rows: Iterable[Any] = select_in(connection, query, _vector.chunk_id, list(shas_of))
    return {shas_of[chunk_id]: StoredVector(bytes(data), sha) for chunk_id, data, sha in rows}


def _each_of(connection: Connection, values: Iterable[str]) -> Any:
    given = literal(json.dumps(list(values)), Text)
    if connection.dialect.name == "sqlite":
        return func.json_each(given).table_valued("value")
    return func.json_array_elements_text(cast(given, JSON)).table_valued("value")


# Storing ----------------------------------------------------------------------------------


def store_vectors(
    connection: Connection,
    index: VectorIndex,
    generation: Generation,
    made: Sequence[tuple[PendingPassage, StoredVector]],
    now: datetime,
) -> set[int]:
    """Store vectors, here and in the index; says which rows have one now.

    The others are gone: their text has changed since it was read, or is changing.
    """
    there, ours = keep_vectors(connection, generation, made, now)
    index.add(connection, generation, [(row, vector.data) for row, vector in ours.items()])
    return there


def keep_vectors(
    connection: Connection,
    generation: Generation,
    made: Sequence[tuple[PendingPassage, StoredVector]],
    now: datetime,
) -> tuple[set[int], dict[int, StoredVector]]:
    """Store vectors in the buffer alone; says which rows have one now, and which of them ours."""
    vectors = {passage.row: vector for passage, vector in made}
    if connection.dialect.name == "postgresql":
        vectors = _only_unchanging(connection, vectors)
    if _insert(connection, generation, vectors, now) == len(vectors):
        return set(vectors), vectors
    # Some are gone, or have a vector of somebody else's making, who put it into the index.
    shas = _stored_shas(connection, generation, list(vectors))
    return set(shas), {row: one for row, one in vectors.items() if shas.get(row) == one.sha}


def _only_unchanging(
    connection: Connection, vectors: Mapping[int, StoredVector]
) -> dict[int, StoredVector]:
    """Those of rows that stay as they are until the transaction ends; waits for no loader."""
    query = select(_chunk.id).with_for_update(key_share=True, skip_locked=True)
    rows: Iterable[Any] = select_in(connection, query, _chunk.id, list(vectors))
    return {row[0]: vectors[row[0]] for row in rows}


def _insert(
    connection: Connection,
    generation: Generation,
    vectors: Mapping[int, StoredVector],
    now: datetime,
) -> int:
    """Store the vectors of those rows that are there and have none, by one statement.

    Row by row, each thread would have to wait for the interpreter's lock after every one of them.
    """
    if not vectors:
        return 0
    rows, datas, shas = list(vectors), *map(list, zip(*vectors.values(), strict=True))
    given: dict[str, Any] = {"model": generation.name, "version": generation.version, "now": now}
    if connection.dialect.name == "sqlite":
        given |= {"rows": json.dumps(list(zip(rows, shas, strict=True)))}
        given |= {"data": b"".join(datas), "size": len(datas[0])}
    else:
        given |= {"rows": rows, "datas": datas, "shas": shas}
    return run(connection, _INSERT[connection.dialect.name], given).rowcount


_NOW: Final = bindparam("now", type_=Timestamp)
_INSERT: Final = {
    "sqlite": text("""
        INSERT OR IGNORE INTO document_vector_buffer
            (document_id, chunk_id, embed_model, embed_version, vector, vector_sha, created_at)
        SELECT c.document_id, c.chunk_id, :model, :version,
               substr(:data, 1 + given.key * :size, :size), given.value ->> 1, :now
        FROM json_each(:rows) AS given
        CROSS JOIN document_chunk_buffer AS c ON c.id = given.value ->> 0
    """).bindparams(_NOW),
    "postgresql": text("""
        INSERT INTO document_vector_buffer
            (document_id, chunk_id, embed_model, embed_version, vector, vector_sha, created_at)
        SELECT c.document_id, c.chunk_id, :model, :version, given.data, given.sha, :now
        FROM unnest(CAST(:rows AS integer[]), CAST(:datas AS bytea[]), CAST(:shas AS text[]))
             AS given (id, data, sha)
        JOIN document_chunk_buffer AS c ON c.id = given.id
        ON CONFLICT DO NOTHING
    """).bindparams(_NOW),
}


def _stored_shas(
    connection: Connection, generation: Generation, rows: Sequence[int]
) -> dict[int, str]:
    query = select(_chunk.id, _vector.vector_sha).join(
        document_vector_buffer, (_vector.chunk_id == _chunk.chunk_id) & _made_by(generation)
    )
    found: Iterable[Any] = select_in(connection, query, _chunk.id, rows)
    return dict(map(tuple, found))


def record_spending(
    connection: Connection, generation: Generation, spending: Spending, now: datetime
) -> None:
    """Keep what a batch took, and each document's share of it."""
    row = {
        "run_id": spending.run_id,
        "generation": generation.id,
        "texts": spending.texts,
        "tokens": spending.tokens,
        "requests": spending.requests,
        "retries": spending.retries,
        "cost": spending.cost,
        "created_at": now,
    }
    batch = run(connection, _BATCH, row).scalar_one()
    shares = [
        {
            "batch_id": batch,
            "document_id": share.document,
            "texts": share.texts,
            "tokens": share.tokens,
            "cost": share.cost,
        }
        for share in spending.shares
    ]
    insert_many(connection, embedding_costs, shares)


_BATCH: Final = (
    insert(embedding_batches)
    .values(
        {
            column: bindparam(column.name, type_=column.type)
            for column in embedding_batches.c
            if column is not embedding_batches.c.id
        }
    )
    .returning(embedding_batches.c.id)
)

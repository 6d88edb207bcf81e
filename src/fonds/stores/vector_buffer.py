"""The buffer of vectors: passages without one, vectors of equal texts, and storing a batch."""

from __future__ import annotations

import base64
import hashlib
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
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    text,
)

from fonds.stores.columns import Timestamp
from fonds.stores.database import insert_many, run
from fonds.stores.fulltext import visible_text
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
_HASH_LENGTH: Final = 64
_vector: Final = document_vector_buffer.c


def vector_sha(data: bytes) -> str:
    """The hash by which a stored vector is checked."""
    return hashlib.sha256(base64.b64encode(data)).hexdigest()


class PendingPassage(NamedTuple):
    """A passage that had no vector when it was read."""

    row: int
    """`document_chunk_buffer.id`, which is another one if the text changes."""
    ordinal: int
    sha: str
    """The hash of the text, and behind it the lead-ins, which are embedded with it."""
    text: str
    tokens: int
    is_reusable: bool
    """True if an equal text had a vector then."""
    document: str
    """`documents.id`"""

    @property
    def embedded_text(self) -> str:
        """The text for the model: after the introductions of its lists, the header of its table."""
        lead_ins = json.loads(self.sha[_HASH_LENGTH:] or "[]")
        return visible_text("\n".join([*lead_ins, self.text]))


class StoredVector(NamedTuple):
    """A checked vector in its stored form."""

    data: bytes
    sha: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentCost:
    """The part of a batch's cost that one document caused."""

    document: str
    texts: int
    tokens: int
    cost: float


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchCost:
    """The requests, tokens and cost of one batch."""

    run_id: UUID
    texts: int
    tokens: int
    requests: int
    retries: int
    cost: float
    documents: Sequence[DocumentCost]


# Passages without a vector ----------------------------------------------------------------


def passage_counts(connection: Connection, uids: Sequence[UUID]) -> dict[UUID, int]:
    """The number of passages of each document."""
    counted = select(_chunk.document_id, func.count()).group_by(_chunk.document_id)
    rows: Iterable[Any] = select_in(connection, counted, _chunk.document_id, uids)
    return dict(rows)


def pending(
    connection: Connection, generation: Generation, uids: Sequence[UUID]
) -> list[PendingPassage]:
    """The passages of some documents that have no vector, in the order of their rows."""
    passages: list[PendingPassage] = []
    for batch in batched(uids):
        passages += _passages(connection, _pending_of_some(generation), {"uids": batch})
    return sorted(passages)


@lru_cache(maxsize=8)
def _pending_of_some(generation: Generation) -> Select[Any]:
    # Building the statement takes longer than executing it.
    requested = bindparam("uids", expanding=True, type_=_chunk.document_id.type)
    return _without_vector(generation).where(_chunk.document_id.in_(requested))


def pending_of_document(
    connection: Connection, generation: Generation, uid: UUID, after: int, limit: int
) -> list[PendingPassage]:
    """A page of a document's passages without a vector, after a position in it."""
    query = _without_vector(generation).where(_chunk.document_id == uid, _chunk.chunk_ord > after)
    return _passages(connection, query.order_by(_chunk.chunk_ord).limit(limit))


def pending_staged(
    connection: Connection, generation: Generation, document_id: str, uid: UUID, limit: int
) -> list[PendingPassage]:
    """The first passages without a vector of a document that is not published yet."""
    params = {"document": document_id, "uid": uid, "count": limit}
    return _passages(connection, _pending_staged(generation), params)


@lru_cache(maxsize=8)
def _pending_staged(generation: Generation) -> Select[Any]:
    document = bindparam("document", type_=documents.c.id.type)
    query = _columns(generation, document).where(~_has_vector(generation))
    query = query.where(_chunk.document_id == bindparam("uid", type_=_chunk.document_id.type))
    return query.order_by(_chunk.chunk_ord).limit(bindparam("count", type_=Integer))


def pending_after(
    connection: Connection, generation: Generation, after: int, limit: int
) -> list[PendingPassage]:
    """A page of all passages without a vector, after a row."""
    query = _without_vector(generation).where(_chunk.id > after)
    return _passages(connection, query.order_by(_chunk.id).limit(limit))


def _passages(
    connection: Connection, query: Select[Any], params: Mapping[str, Any] | None = None
) -> list[PendingPassage]:
    # The driver's own rows, as Core takes as much time for each as the database does.
    return [
        PendingPassage._make(row) for row in connection.execute(query, params).cursor.fetchall()
    ]


def count_pending_documents(connection: Connection, generation: Generation) -> int:
    """The number of documents that have a passage without a vector."""
    of = _without_vector(generation).with_only_columns(func.count(_chunk.document_id.distinct()))
    return connection.scalar(of) or 0


def _without_vector(generation: Generation) -> Select[Any]:
    """Passages without a vector, of documents that are published."""
    query = _columns(generation, documents.c.id)
    return query.join(documents, documents.c.uid == _chunk.document_id).where(
        ~_has_vector(generation)
    )


def _columns(generation: Generation, document: Any) -> Select[Any]:
    """The columns of a `PendingPassage`; texts that ten thousand documents share are not slower."""
    twin = document_chunk_buffer.alias("twin").c
    is_reusable = exists().where(
        twin.chunk_sha == _chunk.chunk_sha,
        _lead_ins(twin) == _lead_ins(_chunk),
        _vector.chunk_id == twin.chunk_id,
        _made_by(generation),
    )
    return select(
        _chunk.id,
        _chunk.chunk_ord,
        _chunk.chunk_sha + _lead_ins(_chunk),
        _chunk.text,
        _chunk.meta["tokens"].as_integer(),
        is_reusable,
        document,
    )


def _lead_ins(chunk: Any) -> Any:
    """The lead-ins as JSON; an empty text if there are none."""
    return func.coalesce(chunk.meta["locator"]["lead_ins"].as_string(), "")


def _has_vector(generation: Generation) -> Any:
    return exists().where(_vector.chunk_id == _chunk.chunk_id, _made_by(generation))


def _made_by(generation: Generation) -> ColumnElement[bool]:
    return and_(_vector.embed_model == generation.name, _vector.embed_version == generation.version)


# Equal texts ------------------------------------------------------------------------------


def vectors_of_texts(
    connection: Connection, generation: Generation, shas: Iterable[str]
) -> dict[str, StoredVector]:
    """The vectors of texts, by hash and lead-ins, as far as they have one."""
    requested = _rows_of(connection, shas)
    holder = (
        select(_vector.chunk_id)
        .join(document_chunk_buffer, _chunk.chunk_id == _vector.chunk_id)
        .where(_chunk.chunk_sha == func.substr(requested.c.value, 1, _HASH_LENGTH))
        .where(_chunk.chunk_sha + _lead_ins(_chunk) == requested.c.value, _made_by(generation))
        .limit(1)
        .scalar_subquery()
    )
    holders = connection.execute(select(holder, requested.c.value).where(holder.is_not(None)))
    shas_of = {row[0]: row[1] for row in holders.all()}
    query = select(_vector.chunk_id, _vector.vector, _vector.vector_sha)
    query = query.where(_made_by(generation))
    rows: Iterable[Any] = select_in(connection, query, _vector.chunk_id, list(shas_of))
    return {shas_of[chunk_id]: StoredVector(bytes(data), sha) for chunk_id, data, sha in rows}


def _rows_of(connection: Connection, values: Iterable[str]) -> Any:
    texts = literal(json.dumps(list(values)), Text)
    if connection.dialect.name == "sqlite":
        return func.json_each(texts).table_valued("value")
    return func.json_array_elements_text(cast(texts, JSON)).table_valued("value")


# Storing ----------------------------------------------------------------------------------


def store_vectors(
    connection: Connection,
    index: VectorIndex,
    generation: Generation,
    made: Sequence[tuple[PendingPassage, StoredVector]],
    now: datetime,
) -> set[int]:
    """Store vectors in the buffer and the index; returns the rows that have one now.

    The others do not exist any more: their text has changed since it was read, or is changing.
    """
    embedded, added = buffer_vectors(connection, generation, made, now)
    index.add(connection, generation, [(row, vector.data) for row, vector in added.items()])
    return embedded


def buffer_vectors(
    connection: Connection,
    generation: Generation,
    made: Sequence[tuple[PendingPassage, StoredVector]],
    now: datetime,
) -> tuple[set[int], dict[int, StoredVector]]:
    """Store vectors in the buffer only.

    Returns the rows that have a vector now, and the vectors among them that were added here.
    """
    vectors = {passage.row: vector for passage, vector in made}
    if connection.dialect.name == "postgresql":
        vectors = _only_unchanging(connection, vectors)
    if _insert(connection, generation, vectors, now) == len(vectors):
        return set(vectors), vectors
    # Some rows do not exist any more, or have a vector that another process stored and indexed.
    shas = _stored_shas(connection, generation, list(vectors))
    added = {row: vector for row, vector in vectors.items() if shas.get(row) == vector.sha}
    return set(shas), added


def vectors_after(connection: Connection, chunk_id: UUID | None, limit: int) -> list[Any]:
    """Vectors in the order of their chunks, from one on, or from the first."""
    columns = (_vector.document_id, _vector.chunk_id, _vector.vector, _vector.vector_sha)
    query = select(*columns).order_by(_vector.chunk_id).limit(limit)
    if chunk_id is not None:
        query = query.where(_vector.chunk_id > chunk_id)
    return list(connection.execute(query))


def is_damaged(row: Any) -> bool:
    """True if a vector differs from its hash."""
    return bool(vector_sha(bytes(row.vector)) != row.vector_sha)


def remove_damaged_vectors(connection: Connection, document: UUID) -> int:
    """Delete the vectors of a document that differ from their hash, so that they are made again."""
    of_document = _vector.document_id == document
    keys = (_vector.chunk_id, _vector.embed_model, _vector.embed_version)
    rows = connection.execute(select(*keys, _vector.vector, _vector.vector_sha).where(of_document))
    damaged = [row for row in rows if is_damaged(row)]
    for row in damaged:
        same = [key == getattr(row, key.name) for key in keys]
        connection.execute(delete(document_vector_buffer).where(of_document, *same))
    return len(damaged)


def _only_unchanging(
    connection: Connection, vectors: Mapping[int, StoredVector]
) -> dict[int, StoredVector]:
    """The vectors of rows that could be locked until the transaction ends, without waiting."""
    query = select(_chunk.id).with_for_update(key_share=True, skip_locked=True)
    rows: Iterable[Any] = select_in(connection, query, _chunk.id, list(vectors))
    return {row[0]: vectors[row[0]] for row in rows}


def _insert(
    connection: Connection,
    generation: Generation,
    vectors: Mapping[int, StoredVector],
    now: datetime,
) -> int:
    """Store the vectors of existing rows that have none, in one statement.

    Row by row, a thread would have to wait for the GIL after each of them.
    """
    if not vectors:
        return 0
    rows, datas, shas = list(vectors), *map(list, zip(*vectors.values(), strict=True))
    params: dict[str, Any] = {"model": generation.name, "version": generation.version, "now": now}
    if connection.dialect.name == "sqlite":
        params |= {"rows": json.dumps(list(zip(rows, shas, strict=True)))}
        params |= {"data": b"".join(datas), "size": len(datas[0])}
    else:
        params |= {"rows": rows, "datas": datas, "shas": shas}
    return run(connection, _INSERT[connection.dialect.name], params).rowcount


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
    stored: Iterable[Any] = select_in(connection, query, _chunk.id, rows)
    return dict(map(tuple, stored))


def record_costs(
    connection: Connection, generation: Generation, cost: BatchCost, now: datetime
) -> None:
    """Store the cost of a batch, and each document's part of it."""
    row = {
        "run_id": cost.run_id,
        "generation": generation.id,
        "texts": cost.texts,
        "tokens": cost.tokens,
        "requests": cost.requests,
        "retries": cost.retries,
        "cost": cost.cost,
        "created_at": now,
    }
    batch = run(connection, _BATCH, row).scalar_one()
    rows = [
        {
            "batch_id": batch,
            "document_id": document.document,
            "texts": document.texts,
            "tokens": document.tokens,
            "cost": document.cost,
        }
        for document in cost.documents
    ]
    insert_many(connection, embedding_costs, rows)


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

"""Generations of vectors: created, chosen, rolled back, deleted; one of them is searched."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, delete, exists, insert, select, text, update

from fonds.embed.base import Embedder, EmbeddingModel
from fonds.errors import EmbedError, UsageError
from fonds.seams import Seams
from fonds.stores.database import Database, insert_ignoring
from fonds.stores.documents import enqueue
from fonds.stores.sqlite import batched
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    documents,
    embedding_batches,
    embedding_choice,
    embedding_generations,
    embedding_models,
    ingestion_embedding_queue,
)
from fonds.stores.vector_buffer import is_damaged, remove_damaged_vectors, vectors_after
from fonds.stores.vectors import Generation, current_generation, generations

CHECK_BATCH: Final = 1000
"""Vectors whose hashes are computed from one query."""
DELETE_BATCH: Final = 5000
"""Vectors deleted in one transaction, which blocks other writers."""


def ensure_generation(
    database: Database, seams: Seams, embedder: Embedder, spec: str
) -> Generation:
    """The generation of a model, created if needed; the first of a library is searched."""
    model = embedder.model
    with database.read() as connection:
        existing = _existing(connection, model)
    if existing is not None and (existing.embedder, existing.price) == (spec, model.price):
        return _checked(existing, model)
    now = seams.clock.now()
    with database.write() as connection:
        _lock_choice(connection)
        existing = _existing(connection, model)
        if existing is None:
            _insert(connection, model, spec, now)
        else:
            _update(connection, _checked(existing, model), model, spec)
        generation = _existing(connection, model)
        assert generation is not None
        database.vectors.create(connection, generation)
        choice = {"id": 1, "generation": generation.id, "previous": None, "chosen_at": now}
        insert_ignoring(connection, embedding_choice, [choice])
    return generation


def find_generation(connection: Connection, name: str) -> Generation:
    """A generation by its number, its embedder or its model's name, if only one matches."""
    existing = generations(connection)
    matches = [each for each in existing if name == str(each.id)] or [
        each
        for each in existing
        if name in {each.embedder, each.name, f"{each.name}@{each.version}"}
    ]
    if len(matches) == 1:
        return matches[0]
    choices = ", ".join(f"{each.id} ({each.name}@{each.version})" for each in matches or existing)
    reason = "names several generations" if matches else "names no generation"
    raise UsageError(f"{name!r} {reason}; there are: {choices or 'none'}")


def switch(database: Database, seams: Seams, generation: Generation) -> int:
    """Search a generation from now on; returns how many documents wait for its vectors."""
    with database.write() as connection:
        _lock_choice(connection)
        return _choose(connection, generation, seams.clock.now())


def roll_back(database: Database, seams: Seams) -> tuple[Generation, int]:
    """Search the generation that was searched before, as `switch` does."""
    with database.write() as connection:
        _lock_choice(connection)
        previous = connection.scalar(select(embedding_choice.c.previous))
        if previous is None:
            raise UsageError(
                "there is no earlier generation to go back to;"
                " `fonds embed-status` lists those there are"
            )
        before = next(each for each in generations(connection) if each.id == previous)
        return before, _choose(connection, before, seams.clock.now())


def mark_filled(database: Database, seams: Seams, generation: Generation) -> None:
    """Record the time at which every passage first had a vector of a generation."""
    table = embedding_generations
    unmarked = (table.c.id == generation.id) & table.c.filled_at.is_(None)
    with database.write() as connection:
        connection.execute(update(table).where(unmarked).values(filled_at=seams.clock.now()))


def drop(database: Database, generation: Generation) -> int:
    """Delete a generation that is not searched, with its vectors, index and costs.

    Returns how many vectors there were. If it is interrupted, the generation remains, and can be
    deleted or filled again.
    """
    with database.write() as connection:
        _lock_choice(connection)
        _refuse_current(connection, generation)
        table = embedding_generations
        is_it = table.c.id == generation.id
        connection.execute(update(table).where(is_it).values(filled_at=None))
    deleted = _drop_vectors(database, generation)
    with database.write() as connection:
        _lock_choice(connection)
        _refuse_current(connection, generation)
        choice = embedding_choice
        is_previous = choice.c.previous == generation.id
        connection.execute(update(choice).where(is_previous).values(previous=None))
        rest = connection.execute(delete(document_vector_buffer).where(_made_by(generation)))
        database.vectors.drop(connection, generation)
        batches, model = embedding_batches.c, embedding_models.c
        connection.execute(delete(embedding_batches).where(batches.generation == generation.id))
        connection.execute(delete(table).where(is_it))
        same = (model.name == generation.name) & (model.version == generation.version)
        connection.execute(delete(embedding_models).where(same))
    return deleted + rest.rowcount


def without_vector(name: str, version: str) -> ColumnElement[bool]:
    """True for rows of `document_chunk_buffer` without a vector of a version of a model."""
    vector = document_vector_buffer.c
    made = (vector.embed_model == name) & (vector.embed_version == version)
    return ~exists().where(vector.chunk_id == document_chunk_buffer.c.chunk_id, made)


def _existing(connection: Connection, model: EmbeddingModel) -> Generation | None:
    key = (model.name, model.version)
    every = generations(connection)
    return next((each for each in every if (each.name, each.version) == key), None)


def _checked(generation: Generation, model: EmbeddingModel) -> Generation:
    if generation.dims != model.dims:
        raise EmbedError(
            f"{model.name} {model.version} made vectors of {generation.dims} numbers before, and"
            f" now makes {model.dims}: another model needs another name or version"
        )
    return generation


def _lock_choice(connection: Connection) -> None:
    """Serialize decisions about generations; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE embedding_choice IN SHARE ROW EXCLUSIVE MODE"))


def _insert(connection: Connection, model: EmbeddingModel, spec: str, now: datetime) -> None:
    key = {"name": model.name, "version": model.version}
    row = {**key, "dims": model.dims, "price": model.price}
    insert_ignoring(connection, embedding_models, [row])
    row = {**key, "embedder": spec, "created_at": now}
    connection.execute(insert(embedding_generations).values(row))


def _update(connection: Connection, existing: Generation, model: EmbeddingModel, spec: str) -> None:
    """The folder of a model may move, and its price may change."""
    table, models = embedding_generations, embedding_models
    connection.execute(update(table).where(table.c.id == existing.id).values(embedder=spec))
    same = (models.c.name == existing.name) & (models.c.version == existing.version)
    connection.execute(update(models).where(same).values(price=model.price))


def _choose(connection: Connection, generation: Generation, now: datetime) -> int:
    if find_generation(connection, str(generation.id)) == current_generation(connection):
        return 0
    choice = embedding_choice
    chosen = {"previous": choice.c.generation, "generation": generation.id, "chosen_at": now}
    connection.execute(update(choice).values(chosen))
    return _enqueue_documents(connection, generation, now)


def _enqueue_documents(connection: Connection, generation: Generation, now: datetime) -> int:
    """Queue the documents that have a passage without a vector of a generation."""
    chunk, document = document_chunk_buffer.c, documents.c
    incomplete = select(chunk.document_id).where(
        without_vector(generation.name, generation.version)
    )
    query = select(document.id, document.content_sha256).where(document.uid.in_(incomplete))
    rows = connection.execute(query.order_by(document.id)).all()
    queued = ({"record_id": row.id, "input_sha": row.content_sha256} for row in rows)
    for batch in batched(queued):
        enqueue(connection, ingestion_embedding_queue, batch, now)
    return len(rows)


def renew_damaged_vectors(database: Database, seams: Seams) -> int:
    """Remove vectors that differ from their hash, and queue their documents; returns how many."""
    removed, last = 0, None
    while True:
        with database.read() as connection:
            rows = vectors_after(connection, last, CHECK_BATCH)
        if not rows:
            return removed
        last = rows[-1].chunk_id
        affected = {row.document_id for row in rows if is_damaged(row)}
        for document_id in affected:
            removed += _renew(database, document_id, seams.clock.now())


def _renew(database: Database, document_id: UUID, now: datetime) -> int:
    query = select(documents.c.id, documents.c.content_sha256).where(documents.c.uid == document_id)
    with database.write() as connection:
        removed = remove_damaged_vectors(connection, document_id)
        rows = connection.execute(query).all()
        queued = [{"record_id": row.id, "input_sha": row.content_sha256} for row in rows]
        enqueue(connection, ingestion_embedding_queue, queued, now)
    return removed


def _refuse_current(connection: Connection, generation: Generation) -> None:
    if find_generation(connection, str(generation.id)) == current_generation(connection):
        raise UsageError(
            f"generation {generation.id} ({generation.name}) is the one that is searched; switch"
            " to another first: `fonds embed migrate --to MODEL` or `fonds embed rollback`"
        )


def _drop_vectors(database: Database, generation: Generation) -> int:
    vector = document_vector_buffer.c
    is_its, deleted = _made_by(generation), 0
    after: Any = None
    while True:
        beyond = is_its if after is None else is_its & (vector.chunk_id > after)
        page = select(vector.chunk_id).where(beyond).order_by(vector.chunk_id)
        with database.write() as connection:
            chunk_ids = list(connection.scalars(page.limit(DELETE_BATCH)))
            if not chunk_ids:
                return deleted
            after = chunk_ids[-1]
            batch = delete(document_vector_buffer).where(beyond, vector.chunk_id <= after)
            deleted += connection.execute(batch).rowcount


def _made_by(generation: Generation) -> ColumnElement[bool]:
    vector = document_vector_buffer.c
    return (vector.embed_model == generation.name) & (vector.embed_version == generation.version)

"""Generations of vectors: made, chosen, left again, forgotten; one of them is searched."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

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
from fonds.stores.vectors import Generation, current_generation, generations

FORGOTTEN_AT_ONCE: Final = 5000
"""Vectors deleted in one transaction, so that nobody waits long for the one writer."""


def ensure_generation(
    database: Database, seams: Seams, embedder: Embedder, spec: str
) -> Generation:
    """The generation of a model, made if there is none; the first of a library is searched."""
    model = embedder.model
    with database.read() as connection:
        held = _held(connection, model)
    if held is not None and (held.embedder, held.price) == (spec, model.price):
        return _checked(held, model)
    now = seams.clock.now()
    with database.write() as connection:
        _take_turn(connection)
        held = _held(connection, model)
        if held is None:
            _insert(connection, model, spec, now)
        else:
            _update(connection, _checked(held, model), model, spec)
        made = _held(connection, model)
        assert made is not None
        database.vectors.create(connection, made)
        choice = {"id": 1, "generation": made.id, "previous": None, "chosen_at": now}
        insert_ignoring(connection, embedding_choice, [choice])
    return made


def find_generation(connection: Connection, name: str) -> Generation:
    """A generation by its number, its embedder or its model's name, if that names only one."""
    held = generations(connection)
    fitting = [each for each in held if name == str(each.id)] or [
        each for each in held if name in {each.embedder, each.name, f"{each.name}@{each.version}"}
    ]
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(f"{each.id} ({each.name}@{each.version})" for each in fitting or held)
    wrong = "names several generations" if fitting else "names no generation"
    raise UsageError(f"{name!r} {wrong}; there are: {known or 'none'}")


def switch(database: Database, seams: Seams, generation: Generation) -> int:
    """Search a generation from this moment on; says how many documents wait for its vectors."""
    with database.write() as connection:
        _take_turn(connection)
        return _choose(connection, generation, seams.clock.now())


def roll_back(database: Database, seams: Seams) -> tuple[Generation, int]:
    """Search the generation that was searched before, as `switch` does."""
    with database.write() as connection:
        _take_turn(connection)
        previous = connection.scalar(select(embedding_choice.c.previous))
        if previous is None:
            raise UsageError(
                "there is no earlier generation to go back to;"
                " `fonds embed-status` lists those there are"
            )
        before = next(each for each in generations(connection) if each.id == previous)
        return before, _choose(connection, before, seams.clock.now())


def mark_filled(database: Database, seams: Seams, generation: Generation) -> None:
    """Remember when every passage first had a vector of a generation."""
    table = embedding_generations
    unmarked = (table.c.id == generation.id) & table.c.filled_at.is_(None)
    with database.write() as connection:
        connection.execute(update(table).where(unmarked).values(filled_at=seams.clock.now()))


def drop(database: Database, generation: Generation) -> int:
    """Forget a generation that is not searched, with its vectors, index and costs.

    Says how many vectors there were. If it is interrupted, the generation is still there, to be
    forgotten again or filled anew.
    """
    with database.write() as connection:
        _take_turn(connection)
        _refuse_current(connection, generation)
        table = embedding_generations
        of_it = table.c.id == generation.id
        connection.execute(update(table).where(of_it).values(filled_at=None))
    forgotten = _drop_vectors(database, generation)
    with database.write() as connection:
        _take_turn(connection)
        _refuse_current(connection, generation)
        choice = embedding_choice
        left = choice.c.previous == generation.id
        connection.execute(update(choice).where(left).values(previous=None))
        rest = connection.execute(delete(document_vector_buffer).where(_made_by(generation)))
        database.vectors.drop(connection, generation)
        batches, model = embedding_batches.c, embedding_models.c
        connection.execute(delete(embedding_batches).where(batches.generation == generation.id))
        connection.execute(delete(table).where(of_it))
        same = (model.name == generation.name) & (model.version == generation.version)
        connection.execute(delete(embedding_models).where(same))
    return forgotten + rest.rowcount


def without_vector(name: str, version: str) -> ColumnElement[bool]:
    """Whether a row of `document_chunk_buffer` has no vector of a version of a model."""
    vector = document_vector_buffer.c
    made = (vector.embed_model == name) & (vector.embed_version == version)
    return ~exists().where(vector.chunk_id == document_chunk_buffer.c.chunk_id, made)


def _held(connection: Connection, model: EmbeddingModel) -> Generation | None:
    same = (model.name, model.version)
    held = generations(connection)
    return next((each for each in held if (each.name, each.version) == same), None)


def _checked(held: Generation, model: EmbeddingModel) -> Generation:
    if held.dims != model.dims:
        raise EmbedError(
            f"{model.name} {model.version} made vectors of {held.dims} numbers before, and now"
            f" makes {model.dims}: another model needs another name or version"
        )
    return held


def _take_turn(connection: Connection) -> None:
    """Let one transaction at a time decide about generations; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE embedding_choice IN SHARE ROW EXCLUSIVE MODE"))


def _insert(connection: Connection, model: EmbeddingModel, spec: str, now: datetime) -> None:
    named = {"name": model.name, "version": model.version}
    known = {**named, "dims": model.dims, "price": model.price}
    insert_ignoring(connection, embedding_models, [known])
    row = {**named, "embedder": spec, "created_at": now}
    connection.execute(insert(embedding_generations).values(row))


def _update(connection: Connection, held: Generation, model: EmbeddingModel, spec: str) -> None:
    """The folder of a model may move, and its price may change."""
    table, models = embedding_generations, embedding_models
    connection.execute(update(table).where(table.c.id == held.id).values(embedder=spec))
    same = (models.c.name == held.name) & (models.c.version == held.version)
    connection.execute(update(models).where(same).values(price=model.price))


def _choose(connection: Connection, generation: Generation, now: datetime) -> int:
    if find_generation(connection, str(generation.id)) == current_generation(connection):
        return 0
    choice = embedding_choice
    chosen = {"previous": choice.c.generation, "generation": generation.id, "chosen_at": now}
    connection.execute(update(choice).values(chosen))
    return _enqueue_lacking(connection, generation, now)


def _enqueue_lacking(connection: Connection, generation: Generation, now: datetime) -> int:
    """Queue the documents that have a passage without a vector of a generation."""
    chunk, document = document_chunk_buffer.c, documents.c
    lacking = select(chunk.document_id).where(without_vector(generation.name, generation.version))
    query = select(document.id, document.content_sha256).where(document.uid.in_(lacking))
    found = connection.execute(query.order_by(document.id)).all()
    queued = ({"record_id": row.id, "input_sha": row.content_sha256} for row in found)
    for batch in batched(queued):
        enqueue(connection, ingestion_embedding_queue, batch, now)
    return len(found)


def _refuse_current(connection: Connection, generation: Generation) -> None:
    if find_generation(connection, str(generation.id)) == current_generation(connection):
        raise UsageError(
            f"generation {generation.id} ({generation.name}) is the one that is searched; switch"
            " to another first: `fonds embed migrate --to MODEL` or `fonds embed rollback`"
        )


def _drop_vectors(database: Database, generation: Generation) -> int:
    vector = document_vector_buffer.c
    of_it, forgotten = _made_by(generation), 0
    after: Any = None
    while True:
        beyond = of_it if after is None else of_it & (vector.chunk_id > after)
        page = select(vector.chunk_id).where(beyond).order_by(vector.chunk_id)
        with database.write() as connection:
            found = list(connection.scalars(page.limit(FORGOTTEN_AT_ONCE)))
            if not found:
                return forgotten
            after = found[-1]
            gone = delete(document_vector_buffer).where(beyond, vector.chunk_id <= after)
            forgotten += connection.execute(gone).rowcount


def _made_by(generation: Generation) -> ColumnElement[bool]:
    vector = document_vector_buffer.c
    return (vector.embed_model == generation.name) & (vector.embed_version == generation.version)

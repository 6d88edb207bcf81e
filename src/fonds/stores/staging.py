"""Passages of a document that is not published yet: stored and embedded, but not to be found.

Statements stand ready: to build one takes longer than the database takes to do it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    JSON,
    Connection,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    select,
)

from fonds.stores.database import Database, insert_many, run
from fonds.stores.fulltext import FullText
from fonds.stores.passages import Passages, index_entry
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    embedding_choice,
    embedding_generations,
    embedding_models,
)
from fonds.stores.vectors import Generation

_PAGE: Final = 500
_chunk: Final = document_chunk_buffer.c
_vector: Final = document_vector_buffer.c

_of: Final = _chunk.document_id == bindparam("of")
_made_by: Final = and_(
    _vector.embed_model == bindparam("model"), _vector.embed_version == bindparam("version")
)
_STAGED: Final = select(_chunk.chunk_ord, _chunk.chunk_id, _chunk.chunk_sha).where(_of)
_REMOVED: Final = delete(document_chunk_buffer).where(_of)
_COUNTED: Final = (
    select(func.count(), func.count(_vector.chunk_id))
    .select_from(document_chunk_buffer)
    .outerjoin(document_vector_buffer, and_(_vector.chunk_id == _chunk.chunk_id, _made_by))
    .where(_of)
)
_PASSAGES: Final = (
    select(_chunk.id, _chunk.chunk_id, _chunk.chunk_ord, _chunk.text, _chunk.meta)
    .where(_of, _chunk.chunk_ord > bindparam("after"))
    .order_by(_chunk.chunk_ord)
    .limit(_PAGE)
)
_VECTORS: Final = select(_vector.chunk_id, _vector.vector).where(
    _vector.chunk_id.in_(bindparam("chunks", expanding=True)), _made_by
)

_generation: Final = embedding_generations.c
_model: Final = embedding_models.c
_GENERATIONS: Final = (
    select(
        _generation.id,
        _generation.name,
        _generation.version,
        _generation.embedder,
        _model.dims,
        _model.price,
        embedding_choice.c.id.is_not(None).label("is_chosen"),
    )
    .join_from(
        embedding_generations,
        embedding_models,
        and_(_model.name == _generation.name, _model.version == _generation.version),
    )
    .outerjoin(embedding_choice, embedding_choice.c.generation == _generation.id)
    .order_by(_generation.id)
)
_CHOSEN: Final = select(embedding_choice.c.generation)


@dataclass(frozen=True, kw_only=True, slots=True)
class Staged:
    """What is staged of a document."""

    passages: int
    vectors: int
    """Of one model, as many passages as have one."""


def stage_passages(
    connection: Connection, fulltext: FullText, passages: Passages, now: datetime
) -> list[dict[str, Any]]:
    """Store the passages of a document in place of any that were staged before; gives their rows.

    Those that are there already stay, with the vectors they have, and no row is given.
    """
    rows = passages.rows(now)
    held = run(connection, _STAGED, {"of": passages.document_uid}).all()
    if held:
        if {str(row.chunk_id): row.chunk_sha for row in held} == {
            str(row["chunk_id"]): row["chunk_sha"] for row in rows
        }:
            return []
        run(connection, _REMOVED, {"of": passages.document_uid})
    numbers = fulltext.allocate(connection, len(rows))
    numbered = [{"id": number, **row} for number, row in zip(numbers, rows, strict=True)]
    insert_many(connection, document_chunk_buffer, numbered)
    return numbered


def staged(connection: Connection, uid: UUID, model: str, version: str) -> Staged:
    """How many passages are there, and how many of them have a vector of a model."""
    given = {"of": uid, "model": model, "version": version}
    counted = run(connection, _COUNTED, given).one()
    return Staged(passages=counted[0], vectors=counted[1])


def staged_hashes(connection: Connection, uid: UUID) -> dict[int, str]:
    """The hash of each passage that is stored, by its place."""
    held = run(connection, _STAGED, {"of": uid})
    return {row.chunk_ord: row.chunk_sha for row in held}


def known_texts(connection: Connection, generation: Generation, shas: Iterable[str]) -> set[str]:
    """Which of some texts have a vector already, wherever they stand."""
    given = {"shas": json.dumps(list(shas)), **_by(generation)}
    return set(run(connection, _known(connection.dialect.name), given).scalars())


@cache
def _known(dialect: str) -> Select[Any]:
    shas = bindparam("shas", type_=Text)
    each = (
        func.json_each(shas)
        if dialect == "sqlite"
        else func.json_array_elements_text(cast(shas, JSON))
    ).table_valued("value")
    held = exists().where(
        _chunk.chunk_sha == each.c.value, _vector.chunk_id == _chunk.chunk_id, _made_by
    )
    return select(each.c.value).where(held)


def _by(generation: Generation) -> dict[str, str]:
    return {"model": generation.name, "version": generation.version}


@dataclass(frozen=True, kw_only=True, slots=True)
class Searched:
    """The generations of vectors there are."""

    generations: Sequence[Generation]
    current: Generation | None
    """The one that is searched; None while nothing has been embedded."""


def searched(connection: Connection) -> Searched:
    """Which generations of vectors there are now."""
    found = [row._asdict() for row in run(connection, _GENERATIONS, {})]
    chosen = [row.pop("is_chosen") for row in found]
    known = [Generation(**row) for row in found]
    current = next((one for one, is_chosen in zip(known, chosen, strict=True) if is_chosen), None)
    return Searched(generations=known, current=current)


def is_searched(connection: Connection, generation: Generation) -> bool:
    """Whether it is the vectors of this generation that are searched now."""
    chosen: int | None = run(connection, _CHOSEN, {}).scalar()
    return chosen == generation.id


# Publishing -------------------------------------------------------------------------------


def publish_passages(
    connection: Connection,
    database: Database,
    generations: Sequence[Generation],
    uid: UUID,
    title: str,
) -> None:
    """Make the staged passages of a document findable, by their words and by their vectors."""
    after = -1
    while page := connection.execute(_PASSAGES, {"of": uid, "after": after}).all():
        rows = [row._asdict() for row in page]
        numbers = {row["chunk_id"]: row["id"] for row in rows}
        vectors = {one: _vectors(connection, one, numbers) for one in generations}
        publish_rows(connection, database, title, rows, vectors)
        if len(page) < _PAGE:
            return
        after = page[-1].chunk_ord


def publish_rows(
    connection: Connection,
    database: Database,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    vectors: Mapping[Generation, Sequence[tuple[int, bytes]]],
) -> None:
    """Make passages findable whose rows, and vectors by these rows' numbers, are in hand."""
    entries = [index_entry(row["id"], title, row) for row in rows]
    database.fulltext.add(connection, entries)
    for generation, some in vectors.items():
        if some:
            database.vectors.add(connection, generation, some)


def _vectors(
    connection: Connection, generation: Generation, numbers: Mapping[UUID, int]
) -> list[tuple[int, bytes]]:
    given = {"chunks": list(numbers), **_by(generation)}
    found = connection.execute(_VECTORS, given)
    return [(numbers[row.chunk_id], bytes(row.vector)) for row in found]

"""Writes passages with their full-text and vector entries, only where the text has changed.

The passages of a staged document are stored and embedded, but not indexed until it is published.
Statements are built once, as building one takes longer than the database takes to execute it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    func,
    select,
    update,
)

from fonds import ids
from fonds.errors import GateError
from fonds.model import Chunk
from fonds.stores.database import Database, insert_ignoring, insert_many, run, vector_index
from fonds.stores.fulltext import FullText, IndexEntry, headings_of, visible_text
from fonds.stores.sqlite import batched, select_in
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    embedding_choice,
    embedding_generations,
    embedding_models,
)
from fonds.stores.vector_buffer import vector_sha
from fonds.stores.vectors import Generation, generations


@dataclass(frozen=True, kw_only=True, slots=True)
class Passages:
    """All passages of one document by one chunker."""

    document_uid: UUID
    title: str
    chunks: Sequence[Chunk]
    chunker_name: str
    chunker_version: str

    def rows(self, now: datetime) -> list[dict[str, Any]]:
        """Rows of the chunk buffer, without row numbers."""
        return [
            {
                "chunk_id": ids.chunk_id(
                    self.document_uid, self.chunker_name, self.chunker_version, chunk.ordinal
                ),
                "document_id": self.document_uid,
                "chunk_ord": chunk.ordinal,
                "chunker_name": self.chunker_name,
                "chunker_version": self.chunker_version,
                "chunk_sha": ids.chunk_sha(chunk.text),
                "text": chunk.text,
                "meta": chunk_meta(chunk),
                "created_at": now,
            }
            for chunk in self.chunks
        ]


def chunk_meta(chunk: Chunk) -> dict[str, Any]:
    """The metadata of a passage in the buffer: offsets, size and locator."""
    locator: dict[str, Any] = {"heading_path": list(chunk.heading_path)}
    if chunk.section is not None:
        locator["section"] = chunk.section
    if chunk.page is not None:
        locator["page"] = chunk.page
    if chunk.pdf_page is not None:
        locator["pdf_page"] = chunk.pdf_page
    if chunk.enumeration:
        locator["enumeration"] = list(chunk.enumeration)
    if chunk.lead_ins:
        locator["lead_ins"] = list(chunk.lead_ins)
    if chunk.uncertain:
        locator["uncertain"] = list(chunk.uncertain)
    return {"start": chunk.start, "end": chunk.end, "tokens": chunk.tokens, "locator": locator}


def add_passages(
    connection: Connection, fulltext: FullText, new: Sequence[Passages], now: datetime
) -> None:
    """Write the passages of documents without passages."""
    titled = [(passages.title, row) for passages in new for row in passages.rows(now)]
    _insert(connection, fulltext, titled)


def replace_passages(
    connection: Connection, fulltext: FullText, changed: Sequence[Passages], now: datetime
) -> bool:
    """Update the passages of changed documents, and reuse the vectors of equal texts.

    Returns True if a passage has a new text.
    """
    existing = _existing_rows(connection, [passages.document_uid for passages in changed])
    stale: list[Row[Any]] = []
    new_rows: list[tuple[str, dict[str, Any]]] = []
    moved: list[dict[str, Any]] = []
    for passages in changed:
        before = {row.chunk_id: row for row in existing[passages.document_uid]}
        for row in passages.rows(now):
            old = before.pop(row["chunk_id"], None)
            if old is not None and _vector_key(old) == _vector_key_of(row):
                moved.append({"row": old.id, "title": passages.title, **row})
            else:
                stale += [old] if old is not None else []
                new_rows.append((passages.title, row))
        stale += before.values()
    vectors = _take_vectors(connection, stale)
    _remove(connection, fulltext, [row.id for row in stale])
    _relink(connection, vectors, _insert(connection, fulltext, new_rows))
    _move(connection, fulltext, moved)
    return bool(new_rows)


def _existing_rows(connection: Connection, uids: Sequence[UUID]) -> dict[UUID, list[Row[Any]]]:
    table = document_chunk_buffer.c
    query = select(table.id, table.chunk_id, table.document_id, table.chunk_sha, table.meta)
    existing: dict[UUID, list[Row[Any]]] = defaultdict(list)
    for row in select_in(connection, query, table.document_id, uids):
        existing[row.document_id].append(row)
    return existing


def _insert(
    connection: Connection, fulltext: FullText, titled: Sequence[tuple[str, dict[str, Any]]]
) -> list[dict[str, Any]]:
    if not titled:
        return []
    numbers = fulltext.allocate(connection, len(titled))
    numbered = [
        (title, {"id": number, **row}) for number, (title, row) in zip(numbers, titled, strict=True)
    ]
    rows = [row for _, row in numbered]
    insert_many(connection, document_chunk_buffer, rows)
    fulltext.add(connection, [index_entry(row["id"], title, row) for title, row in numbered])
    return rows


def index_entry(number: int, title: str, row: Mapping[str, Any]) -> IndexEntry:
    """The full-text entry of a row of the chunk buffer."""
    headings = headings_of(title, row["meta"]["locator"])
    return IndexEntry(row=number, title=title, headings=headings, text=visible_text(row["text"]))


def _remove(connection: Connection, fulltext: FullText, rows: Sequence[int]) -> None:
    if not rows:
        return
    fulltext.remove(connection, rows)
    vector_index(connection.dialect).remove(connection, generations(connection), rows)
    for batch in batched(rows):
        connection.execute(
            delete(document_chunk_buffer).where(document_chunk_buffer.c.id.in_(batch))
        )


def remove_passages(connection: Connection, fulltext: FullText, uid: UUID) -> None:
    """Remove all passages of a document, staged ones too, with their vectors."""
    rows = select(document_chunk_buffer.c.id).where(document_chunk_buffer.c.document_id == uid)
    _remove(connection, fulltext, list(connection.scalars(rows)))


_VectorKey = tuple[str, tuple[str, ...]]
"""The hash of a text, and its lead-ins, which are embedded with it."""


def _vector_key(row: Row[Any]) -> _VectorKey:
    return row.chunk_sha, tuple(row.meta["locator"].get("lead_ins", ()))


def _vector_key_of(row: Mapping[str, Any]) -> _VectorKey:
    return row["chunk_sha"], tuple(row["meta"]["locator"].get("lead_ins", ()))


def _take_vectors(
    connection: Connection, stale: Sequence[Row[Any]]
) -> dict[_VectorKey, list[Row[Any]]]:
    key_of = {row.chunk_id: _vector_key(row) for row in stale}
    vectors: dict[_VectorKey, list[Row[Any]]] = defaultdict(list)
    table = document_vector_buffer
    for row in select_in(connection, select(table), table.c.chunk_id, list(key_of)):
        vectors[key_of[row.chunk_id]].append(row)
    return vectors


def _relink(
    connection: Connection,
    vectors: Mapping[_VectorKey, list[Row[Any]]],
    new_rows: Sequence[dict[str, Any]],
) -> None:
    linked = [(row, vector) for row in new_rows for vector in vectors.get(_vector_key_of(row), ())]
    if not linked:
        return
    copies = [
        {**vector._asdict(), "document_id": row["document_id"], "chunk_id": row["chunk_id"]}
        for row, vector in linked
    ]
    insert_ignoring(connection, document_vector_buffer, copies)
    index = vector_index(connection.dialect)
    for generation in generations(connection):
        made_by = (generation.name, generation.version)
        added = {
            row["id"]: bytes(vector.vector)
            for row, vector in linked
            if (vector.embed_model, vector.embed_version) == made_by
        }
        index.add(connection, generation, list(added.items()))


def _move(connection: Connection, fulltext: FullText, moved: Sequence[dict[str, Any]]) -> None:
    """Update passages with equal text, whose offsets, locator and title may differ."""
    if not moved:
        return
    connection.execute(
        update(document_chunk_buffer)
        .where(document_chunk_buffer.c.id == bindparam("row"))
        .values(meta=bindparam("new_meta")),
        [{"row": row["row"], "new_meta": row["meta"]} for row in moved],
    )
    fulltext.remove(connection, [row["row"] for row in moved])
    fulltext.add(connection, [index_entry(row["row"], row["title"], row) for row in moved])


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
_VECTORS: Final = select(_vector.chunk_id, _vector.vector, _vector.vector_sha).where(
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


@dataclass(frozen=True, kw_only=True, slots=True)
class StagedDocument:
    """Counts of the staged passages of a document."""

    passages: int
    vectors: int
    """The number of passages that have a vector of one model."""


def stage_passages(
    connection: Connection, fulltext: FullText, passages: Passages, now: datetime
) -> None:
    """Replace the staged passages of a document, unless they are equal."""
    rows = passages.rows(now)
    existing = run(connection, _STAGED, {"of": passages.document_uid}).all()
    if existing:
        if {str(row.chunk_id): row.chunk_sha for row in existing} == {
            str(row["chunk_id"]): row["chunk_sha"] for row in rows
        }:
            return
        run(connection, _REMOVED, {"of": passages.document_uid})
    numbers = fulltext.allocate(connection, len(rows))
    numbered = [{"id": number, **row} for number, row in zip(numbers, rows, strict=True)]
    insert_many(connection, document_chunk_buffer, numbered)


def staged(connection: Connection, uid: UUID, model: str, version: str) -> StagedDocument:
    """The numbers of staged passages, and of those that have a vector of a model."""
    params = {"of": uid, "model": model, "version": version}
    counted = run(connection, _COUNTED, params).one()
    return StagedDocument(passages=counted[0], vectors=counted[1])


def staged_hashes(connection: Connection, uid: UUID) -> dict[int, str]:
    """The hash of each staged passage, by its position."""
    rows = run(connection, _STAGED, {"of": uid})
    return {row.chunk_ord: row.chunk_sha for row in rows}


def _by(generation: Generation) -> dict[str, str]:
    return {"model": generation.name, "version": generation.version}


@dataclass(frozen=True, kw_only=True, slots=True)
class Searched:
    """All generations of vectors."""

    generations: Sequence[Generation]
    current: Generation | None
    """The one that is searched; None until something has been embedded."""


def searched(connection: Connection) -> Searched:
    """All generations of vectors, and the one that is searched."""
    rows = [row._asdict() for row in run(connection, _GENERATIONS, {})]
    chosen = [row.pop("is_chosen") for row in rows]
    all_generations = [Generation(**row) for row in rows]
    current = next((each for each, flag in zip(all_generations, chosen, strict=True) if flag), None)
    return Searched(generations=all_generations, current=current)


# Publishing -------------------------------------------------------------------------------


def publish_passages(
    connection: Connection,
    database: Database,
    generations: Sequence[Generation],
    uid: UUID,
    title: str,
) -> None:
    """Add the staged passages of a document to the full-text and vector indexes.

    GateError if one of their vectors is no longer the one that was stored.
    """
    after = -1
    while page := connection.execute(_PASSAGES, {"of": uid, "after": after}).all():
        rows = [row._asdict() for row in page]
        numbers = {row["chunk_id"]: row["id"] for row in rows}
        entries = [index_entry(row["id"], title, row) for row in rows]
        database.fulltext.add(connection, entries)
        for generation in generations:
            if vectors := _vectors(connection, generation, numbers):
                database.vectors.add(connection, generation, vectors)
        if len(page) < _PAGE:
            return
        after = page[-1].chunk_ord


def _vectors(
    connection: Connection, generation: Generation, numbers: Mapping[UUID, int]
) -> list[tuple[int, bytes]]:
    params = {"chunks": list(numbers), **_by(generation)}
    rows = connection.execute(_VECTORS, params).all()
    damaged = sum(vector_sha(bytes(row.vector)) != row.vector_sha for row in rows)
    if damaged:
        raise GateError(f"{damaged} stored vectors are damaged: their hash differs; retry to renew")
    return [(numbers[row.chunk_id], bytes(row.vector)) for row in rows]

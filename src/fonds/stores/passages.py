"""Writing passages: rows, words and vectors follow the text, and only where it changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, bindparam, delete, select, update

from fonds import ids
from fonds.model import Chunk
from fonds.stores.batches import pieces, select_in
from fonds.stores.database import insert_ignoring, insert_many, vector_index
from fonds.stores.fulltext import FullText, IndexEntry, as_seen, headings_of
from fonds.stores.tables import document_chunk_buffer, document_vector_buffer
from fonds.stores.vectors import generations


@dataclass(frozen=True, kw_only=True, slots=True)
class Passages:
    """All passages of one document, as one chunker made them."""

    document_uid: UUID
    title: str
    chunks: Sequence[Chunk]
    chunker_name: str
    chunker_version: str

    def rows(self, now: datetime) -> list[dict[str, Any]]:
        """Rows of the chunk buffer, still without a number."""
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
    """What the buffer keeps beside the text: offsets, size, and the place to cite."""
    locator: dict[str, Any] = {"heading_path": list(chunk.heading_path)}
    if chunk.section is not None:
        locator["section"] = chunk.section
    if chunk.page is not None:
        locator["page"] = chunk.page
    if chunk.enumeration:
        locator["enumeration"] = list(chunk.enumeration)
    if chunk.lead_ins:
        locator["lead_ins"] = list(chunk.lead_ins)
    return {"start": chunk.start, "end": chunk.end, "tokens": chunk.tokens, "locator": locator}


def add_passages(
    connection: Connection, fulltext: FullText, new: Sequence[Passages], now: datetime
) -> None:
    """Write the passages of documents that had none."""
    titled = [(passages.title, row) for passages in new for row in passages.rows(now)]
    _insert(connection, fulltext, titled)


def replace_passages(
    connection: Connection, fulltext: FullText, changed: Sequence[Passages], now: datetime
) -> bool:
    """Bring the passages of changed documents up to date, keeping vectors of equal text.

    Says whether any of them has other words than before.
    """
    held = _held(connection, [passages.document_uid for passages in changed])
    stale: list[Row[Any]] = []
    fresh: list[tuple[str, dict[str, Any]]] = []
    moved: list[dict[str, Any]] = []
    for passages in changed:
        before = {row.chunk_id: row for row in held[passages.document_uid]}
        for row in passages.rows(now):
            old = before.pop(row["chunk_id"], None)
            if old is not None and old.chunk_sha == row["chunk_sha"]:
                moved.append({"row": old.id, "title": passages.title, **row})
            else:
                stale += [old] if old is not None else []
                fresh.append((passages.title, row))
        stale += before.values()
    vectors = _take_vectors(connection, stale)
    _remove(connection, fulltext, [row.id for row in stale])
    _relink(connection, vectors, _insert(connection, fulltext, fresh))
    _move(connection, fulltext, moved)
    return bool(fresh)


def _held(connection: Connection, uids: Sequence[UUID]) -> dict[UUID, list[Row[Any]]]:
    table = document_chunk_buffer.c
    query = select(table.id, table.chunk_id, table.document_id, table.chunk_sha)
    held: dict[UUID, list[Row[Any]]] = defaultdict(list)
    for row in select_in(connection, query, table.document_id, uids):
        held[row.document_id].append(row)
    return held


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
    """The words of a row of the chunk buffer, whose document has a title."""
    headings = headings_of(title, row["meta"]["locator"])
    return IndexEntry(row=number, title=title, headings=headings, text=as_seen(row["text"]))


def _remove(connection: Connection, fulltext: FullText, rows: Sequence[int]) -> None:
    if not rows:
        return
    fulltext.remove(connection, rows)
    vector_index(connection.dialect).remove(connection, generations(connection), rows)
    for piece in pieces(rows):
        connection.execute(
            delete(document_chunk_buffer).where(document_chunk_buffer.c.id.in_(piece))
        )


def _take_vectors(connection: Connection, stale: Sequence[Row[Any]]) -> dict[str, list[Row[Any]]]:
    sha_of = {row.chunk_id: row.chunk_sha for row in stale}
    vectors: dict[str, list[Row[Any]]] = defaultdict(list)
    table = document_vector_buffer
    for row in select_in(connection, select(table), table.c.chunk_id, list(sha_of)):
        vectors[sha_of[row.chunk_id]].append(row)
    return vectors


def _relink(
    connection: Connection, vectors: dict[str, list[Row[Any]]], fresh: Sequence[dict[str, Any]]
) -> None:
    linked = [(row, vector) for row in fresh for vector in vectors.get(row["chunk_sha"], ())]
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
    """Equal text in another place: offsets, locator and indexed title may differ."""
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

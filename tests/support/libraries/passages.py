"""Documents with passages of a test's choice, written as a load writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
from sqlalchemy import select, text

from fonds import ids
from fonds.chunk.tokens import count
from fonds.model import Archived, Chunk, Document
from fonds.stores.database import Database
from fonds.stores.documents import DocumentWrite, WriteResult, write_documents
from fonds.stores.passages import Passages
from fonds.stores.tables import document_chunk_buffer
from fonds.stores.vector_buffer import vector_sha
from fonds.stores.vectors import Generation

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
_RAW = Archived(
    url="https://notes.example/raw", key="corpus/raw", sha256="0", size=1, retrieved_at=NOW
)


def put(
    database: Database,
    context: Mapping[str, Sequence[str]],
    *,
    source: str = "note",
    tokens: int | None = None,
) -> WriteResult:
    """Write documents by id, each with the texts of its passages; what is unchanged is left.

    `tokens` is what each passage is said to have, whatever its length.
    """

    def derive(document: Document) -> Passages:
        texts = enumerate(context[document.id])
        chunks = [_chunk(number, each, tokens or count(each)) for number, each in texts]
        return Passages(
            document_uid=ids.document_uid(document.id),
            title=document.title,
            chunks=chunks,
            chunker_name="test",
            chunker_version="1",
        )

    writings = [_writing(name, texts, source) for name, texts in context.items()]
    with database.write() as connection:
        return write_documents(connection, database.fulltext, writings, NOW, derive=derive)


def _chunk(number: int, passage: str, tokens: int) -> Chunk:
    return Chunk(ordinal=number, text=passage, start=0, end=len(passage), tokens=tokens)


def _writing(name: str, texts: Sequence[str], source: str) -> DocumentWrite:
    document = Document(
        id=name,
        source=source,
        kind="note",
        title=f"Title of {name}",
        source_url="https://notes.example",
        source_org="The Note Office",
        citation_string=name,
        raw=_RAW,
    )
    return DocumentWrite(
        document=document,
        content_sha256=ids.json_sha256([name, list(texts)]),
        body_text_sha256=None,
        recipe="test",
        task_key=name,
    )


def problems(database: Database, generation: Generation) -> list[str]:
    """What is wrong with the vectors of a library whose passages should all have one."""
    made = {"model": generation.name, "version": generation.version}
    with database.read() as connection:
        held = connection.execute(
            text(
                "SELECT c.id, v.vector, v.vector_sha, v.document_id = c.document_id AS same"
                " FROM document_chunk_buffer c JOIN document_vector_buffer v"
                " ON v.chunk_id = c.chunk_id AND embed_model = :model AND embed_version = :version"
            ),
            made,
        ).all()
        rows = set(connection.scalars(text("SELECT id FROM document_chunk_buffer")))
        stray = connection.scalar(text("SELECT count(*) FROM document_vector_buffer"))
        query = np.full(generation.dims, generation.dims**-0.5, "<f4").tobytes()
        everything = select(document_chunk_buffer.c.id)
        near = database.vectors.search(
            connection, generation, query, everything, limit=len(rows) + 10
        )
    found = [f"row {number} lacks a vector" for number in rows - {each.id for each in held}]
    found += [f"row {each.id} is unsound" for each in held if not _is_sound(each, generation)]
    if stray != len(held):
        found.append(f"{stray} vectors, {len(held)} of passages")
    if sorted(each.row for each in near) != sorted(rows):
        found.append(f"the index has {len(near)} rows, the library {len(rows)}")
    return found


def _is_sound(held: object, generation: Generation) -> bool:
    data = bytes(held.vector)  # type: ignore[attr-defined]  # a row of the query above
    numbers = np.frombuffer(data, "<f4")
    length = float(np.linalg.norm(numbers))
    return (
        len(numbers) == generation.dims
        and bool(np.isfinite(numbers).all())
        and (abs(length - 1) < 1e-5 or length == 0)
        and vector_sha(data) == held.vector_sha  # type: ignore[attr-defined]
        and bool(held.same)  # type: ignore[attr-defined]
    )

"""Documents and passages by their names, in bounded pieces."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Select, func, select

from fonds.errors import UnknownDocumentError
from fonds.library import Library
from fonds.mcp.answers import DocumentHead, DocumentSlice, Passage, PassageAnswer
from fonds.mcp.problems import RefusedError
from fonds.results import ChunkLocator, Resolution
from fonds.stores.fulltext import as_seen
from fonds.stores.tables import code_units, document_chunk_buffer, documents
from fonds.stores.visibility import visible_to

LONGEST_PASSAGE: Final = 20_000
"""Characters; a passage made with the default settings is a tenth of it."""
_MOST_RIVALS: Final = 10
_LAST_ORDINAL: Final = 2**31 - 1


def document_slice(
    library: Library, name: str, offset: int, length: int, owner: UUID | None
) -> DocumentSlice:
    """A document's head, and its text from an offset on."""
    row = find(library, name, owner)
    text = row["body_text"] or row["summary"] or ""
    if offset > len(text):
        message = f"the text of {row['id']} has {len(text)} characters, none at {offset}"
        raise RefusedError("bad_request", message, hint="Begin at offset 0.")
    end = min(len(text), offset + length)
    with library.database.read() as connection:
        return DocumentSlice(
            document=DocumentHead.of(row, _edition(connection, row["unit"])),
            text=text[offset:end],
            offset=offset,
            total_characters=len(text),
            next_offset=end if end < len(text) else None,
            passages=_passage_count(connection, row["uid"]),
        )


def passages_around(library: Library, name: str, around: int, owner: UUID | None) -> PassageAnswer:
    """A passage by `ID#n` or its UUID, with so many neighbours on each side."""
    row, ordinal = _named_passage(library, name, owner)
    chunk = document_chunk_buffer.c
    near = select(document_chunk_buffer).where(
        chunk.document_id == row["uid"],
        chunk.chunk_ord.between(ordinal - around, min(ordinal + around, _LAST_ORDINAL)),
    )
    with library.database.read() as connection:
        found = connection.execute(near.order_by(chunk.chunk_ord)).all()
        total = _passage_count(connection, row["uid"])
        head = DocumentHead.of(row, _edition(connection, row["unit"]))
    if all(one.chunk_ord != ordinal for one in found):
        message = f"{row['id']} has {total} passages, none with the number {ordinal}"
        raise RefusedError("not_found", message, hint="Passages are numbered from 0.")
    return PassageAnswer(
        document=head,
        asked=passage_name(head.id, ordinal),
        passages=[_passage(head, one) for one in found],
        total_passages=total,
    )


def find(library: Library, name: str, owner: UUID | None) -> dict[str, Any]:
    """A document by its id, any other name, or a citation somebody typed."""
    try:
        return library.document(name, owner=owner)
    except UnknownDocumentError:
        resolution = library.resolve(name, owner=owner)
        if resolution.document is not None:
            return library.document(resolution.document.id, owner=owner)
        refuse_if_ambiguous(resolution)
        raise


def refuse_if_ambiguous(resolution: Resolution) -> None:
    """Name the documents that a citation may mean, if there are several."""
    if resolution.problem != "ambiguous":
        return
    rivals = ", ".join(one.id for one in resolution.candidates[:_MOST_RIVALS])
    message = f"{resolution.citation!r} may mean several documents: {rivals}"
    raise RefusedError("ambiguous", message, hint="Ask for one of these ids.") from None


def passage_name(document_id: str, ordinal: int) -> str:
    """What a passage is called: `fr:2026-00101#3`."""
    return f"{document_id}#{ordinal}"


def _named_passage(library: Library, name: str, owner: UUID | None) -> tuple[dict[str, Any], int]:
    document, mark, number = name.rpartition("#")
    if mark and number.isascii() and number.isdecimal():
        ordinal = int(number[:10])
        return find(library, document, owner), min(ordinal, _LAST_ORDINAL)
    try:
        chunk_id = UUID(name)
    except ValueError:
        message = f"{name!r} names no passage"
        hint = "Passages are named by document and number, fr:2026-00101#3, or by a UUID."
        raise RefusedError("bad_request", message, hint=hint) from None
    with library.database.read() as connection:
        found = connection.execute(_by_uuid(chunk_id, owner)).one_or_none()
    if found is None:
        raise RefusedError("not_found", f"there is no passage {name}", hint="Search again.")
    return library.document(found.id, owner=owner), found.chunk_ord


def _by_uuid(chunk_id: UUID, owner: UUID | None) -> Select[Any]:
    chunk = document_chunk_buffer.c
    return (
        select(documents.c.id, chunk.chunk_ord)
        .join(documents, documents.c.uid == chunk.document_id)
        .where(chunk.chunk_id == chunk_id, visible_to(owner))
    )


def _passage(head: DocumentHead, row: Any) -> Passage:
    text = as_seen(row.text)
    locator = ChunkLocator(passage=row.chunk_ord, **row.meta["locator"])
    return Passage(
        id=passage_name(head.id, row.chunk_ord),
        chunk_id=str(row.chunk_id),
        text=text[:LONGEST_PASSAGE],
        is_cut=len(text) > LONGEST_PASSAGE,
        start=row.meta["start"],
        end=row.meta["end"],
        citation=head.citation.model_copy(update={"locator": locator}),
    )


def _passage_count(connection: Connection, uid: UUID) -> int:
    chunk = document_chunk_buffer.c
    return connection.scalar(select(func.count()).where(chunk.document_id == uid)) or 0


def _edition(connection: Connection, unit: str | None) -> tuple[str, bool] | None:
    if unit is None:
        return None
    query = select(code_units.c.version, code_units.c.is_newest).where(code_units.c.id == unit)
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.version, row.is_newest)

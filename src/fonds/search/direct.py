"""A citation typed as the query goes straight to its document."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Row, Select

from fonds.results import Resolution
from fonds.search.candidates import shown_passages
from fonds.search.query import Query
from fonds.stores.database import Database
from fonds.stores.tables import document_chunk_buffer, documents

LONGEST: Final = 120
"""In characters; what is longer is a question that mentions a citation."""


def cited(database: Database, asked: Query, owner: UUID | None) -> Resolution | None:
    """What the query names, if it is nothing but a citation, an id or another name."""
    text = asked.text.strip()
    # Names without any number are words as well, and words are to be looked for.
    has_number = any(map(str.isdigit, text[:LONGEST]))
    if asked.phrases or asked.excluded or len(text) > LONGEST or not has_number:
        return None
    # Patterns of citations take a tenth of a second to compile, and most queries are words.
    from fonds.search.reading import names_one_thing  # noqa: PLC0415 — as said above
    from fonds.search.resolution import resolve  # noqa: PLC0415 — as said above

    resolution = resolve(database, text, owner=owner)
    is_whole = resolution.target is None or names_one_thing(text)
    return resolution if resolution.found and is_whole else None


def cited_passage(
    connection: Connection, resolution: Resolution, eligible: Select[Any]
) -> Row[Any] | None:
    """The passage it leads to, of the edition that the filters let pass; None if they let none."""
    assert resolution.document is not None
    names = [resolution.document.id, *(each.id for each in resolution.editions)]
    chunk = document_chunk_buffer.c
    first = eligible.where(documents.c.id.in_(names)).order_by(chunk.chunk_ord)
    pointed = first.where(chunk.chunk_ord == (resolution.passage or 0))
    rows = connection.scalars(pointed).all() or connection.scalars(first.limit(1)).all()
    return next(iter(shown_passages(connection, rows[:1]).values()), None)

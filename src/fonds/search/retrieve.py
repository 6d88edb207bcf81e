"""Passages for a question, each with its citation; everything in it was computed at ingestion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Select, select

from fonds.errors import UsageError
from fonds.results import ChunkLocator, Citation, RetrievalResult
from fonds.search.query import query_terms
from fonds.search.snippet import snippet_of
from fonds.stores.batches import select_in
from fonds.stores.database import Database
from fonds.stores.fulltext import Match
from fonds.stores.tables import code_units, document_chunk_buffer, documents

MOST_RESULTS: Final = 1000
CANDIDATES_PER_RESULT: Final = 50
"""Passages ranked for each document wanted, as one document may have many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """Which documents count; applied before anything is ranked or cut."""

    sources: Sequence[str] = ()
    since: date | None = None
    until: date | None = None
    owner: UUID | None = None
    """The user whose uploads may be seen beside what is public."""
    edition: str | None = None
    """Sections of this edition of codes; None is the newest edition of each, and all else."""
    include_gone: bool = False


def search(
    database: Database, query: str, filters: Filters, *, limit: int = 10
) -> list[RetrievalResult]:
    """The best passage of each of the best documents."""
    if not 1 <= limit <= MOST_RESULTS:
        raise UsageError(f"limit must be between 1 and {MOST_RESULTS}")
    terms = query_terms(query)
    if not terms:
        return []
    with database.read() as connection:
        matches = database.fulltext.search(
            connection, terms, _eligible(filters), limit * CANDIDATES_PER_RESULT
        )
        rows = _passages(connection, [match.row for match in matches])
    by_document: dict[str, list[Match]] = defaultdict(list)
    for match in matches:
        by_document[rows[match.row].document_id].append(match)
    best = [max(found, key=_by_itself) for found in list(by_document.values())[:limit]]
    return [_result(rows[match.row], terms) for match in best]


def _by_itself(match: Match) -> tuple[float, int]:
    return match.passage_score, -match.row


def _eligible(filters: Filters) -> Select[Any]:
    table = documents.c
    query = select(document_chunk_buffer.c.id).join(
        documents, table.uid == document_chunk_buffer.c.document_id
    )
    visible = table.owner.is_(None)
    query = query.where(visible | (table.owner == filters.owner) if filters.owner else visible)
    units = select(code_units.c.id)
    if filters.edition is None:
        newest = table.unit.in_(units.where(code_units.c.is_newest))
        query = query.where(table.unit.is_(None) | newest)
    else:
        query = query.where(table.unit.in_(units.where(code_units.c.version == filters.edition)))
    if filters.sources:
        query = query.where(table.source.in_(filters.sources))
    if filters.since:
        query = query.where(table.published_at >= filters.since.isoformat())
    if filters.until and filters.until < date.max:
        after = filters.until + timedelta(days=1)
        query = query.where(table.published_at < after.isoformat())
    return query if filters.include_gone else query.where(table.gone_at.is_(None))


def _passages(connection: Connection, rows: Sequence[int]) -> dict[int, Any]:
    chunk, document = document_chunk_buffer.c, documents.c
    query = select(
        chunk.id,
        chunk.text,
        chunk.meta,
        document.id.label("document_id"),
        document.title,
        document.source_org,
        document.source_url,
        document.published_at,
        document.citation_string,
    ).join(documents, document.uid == chunk.document_id)
    return {row.id: row for row in select_in(connection, query, chunk.id, rows)}


def _result(row: Any, terms: Sequence[str]) -> RetrievalResult:
    return RetrievalResult(
        id=row.document_id,
        snippet=snippet_of(row.text, terms),
        citation=Citation(
            title=row.title,
            organization=row.source_org,
            url=row.source_url,
            published_at=date.fromisoformat(row.published_at[:10]) if row.published_at else None,
            citation_string=row.citation_string,
            locator=ChunkLocator(**row.meta["locator"]),
        ),
    )

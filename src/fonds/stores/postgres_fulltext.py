"""Full text on PostgreSQL: text search vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select, text

from fonds.stores.fulltext import IndexEntry, Match, with_bigrams

_ADD = text(
    "INSERT INTO chunk_index (id, words) VALUES (:id, "
    "setweight(to_tsvector('english', :title), 'A') || "
    "setweight(to_tsvector('english', :headings), 'B') || "
    "setweight(to_tsvector('english', :text), 'D'))"
)

# ts_rank weighs D, C, B, A; the same proportions as the BM25 weights on SQLite.
_RANK = "ts_rank('{0.25, 0.4, 0.5, 1.0}', chunk_index.words, query, 1) AS score"
_PASSAGE_RANK = "ts_rank('{0.25, 0.4, 0.5, 0.0}', chunk_index.words, query, 1) AS passage_score"


class PostgresFullText:
    """A tsvector for each passage, with a GIN index."""

    def add(self, connection: Connection, entries: Sequence[IndexEntry]) -> None:
        """Make passages findable."""
        if entries:
            connection.execute(
                _ADD,
                [
                    {
                        "id": entry.row,
                        "title": with_bigrams(entry.title),
                        "headings": with_bigrams(entry.headings),
                        "text": with_bigrams(entry.text),
                    }
                    for entry in entries
                ],
            )

    def remove(self, connection: Connection, rows: Sequence[int]) -> None:
        """Forget passages."""
        if rows:
            connection.execute(
                text("DELETE FROM chunk_index WHERE id = ANY(:rows)"), {"rows": list(rows)}
            )

    def allocate(self, connection: Connection, count: int) -> list[int]:
        """Fresh row numbers from the table's own sequence."""
        sequence = "pg_get_serial_sequence('document_chunk_buffer', 'id')"
        statement = text(f"SELECT nextval({sequence}) FROM generate_series(1, :count)")  # noqa: S608 — a constant
        return list(connection.scalars(statement, {"count": count}))

    def search(
        self, connection: Connection, terms: Sequence[str], eligible: Any, limit: int
    ) -> list[Match]:
        """The best passages for any of the terms, by cover density and weight."""
        phrases = [with_bigrams(term).replace("\0", " ") for term in terms]
        if not phrases:
            return []
        names = [f"phrase_{index}" for index in range(len(phrases))]
        query = " || ".join(f"phraseto_tsquery('english', :{name})" for name in names)
        passages = eligible.subquery()
        statement = (
            select(passages.c.id, text(_RANK), text(_PASSAGE_RANK))
            .select_from(text(f"(SELECT {query} AS query) AS asked, chunk_index"))
            .join(passages, text("chunk_index.id = anon_1.id"))
            .where(text("chunk_index.words @@ query"))
            .order_by(text("score DESC"), passages.c.id)
            .limit(limit)
        )
        rows = connection.execute(statement, dict(zip(names, phrases, strict=True)))
        return [Match(row=row[0], score=row[1], passage_score=row[2]) for row in rows]

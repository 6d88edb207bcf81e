"""Full text on SQLite: FTS5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, func, select, text

from fonds.stores.fulltext import (
    HEADINGS_WEIGHT,
    TEXT_WEIGHT,
    TITLE_WEIGHT,
    IndexEntry,
    Match,
    with_bigrams,
)
from fonds.stores.tables import document_chunk_buffer


class SqliteFullText:
    """FTS5 without a copy of the text: it stands in the passages already."""

    def add(self, connection: Connection, entries: Sequence[IndexEntry]) -> None:
        """Make passages findable."""
        if entries:
            connection.exec_driver_sql(
                "INSERT INTO chunk_index (rowid, title, headings, text) VALUES (?, ?, ?, ?)",
                [
                    (
                        entry.row,
                        with_bigrams(entry.title),
                        with_bigrams(entry.headings),
                        with_bigrams(entry.text),
                    )
                    for entry in entries
                ],
            )

    def remove(self, connection: Connection, rows: Sequence[int]) -> None:
        """Forget passages."""
        if rows:
            connection.exec_driver_sql(
                "DELETE FROM chunk_index WHERE rowid = ?", [(row,) for row in rows]
            )

    def allocate(self, connection: Connection, count: int) -> range:
        """Fresh row numbers; the transaction already holds the only writer's claim."""
        last = connection.scalar(select(func.max(document_chunk_buffer.c.id))) or 0
        return range(last + 1, last + 1 + count)

    def search(
        self, connection: Connection, terms: Sequence[str], eligible: Any, limit: int
    ) -> list[Match]:
        """The best passages for any of the terms, by BM25."""
        query = " OR ".join(f'"{term}"' for term in map(_quotable, terms) if term)
        if not query:
            return []
        passages = eligible.subquery()
        statement = (
            select(
                passages.c.id,
                text("-bm25(chunk_index, :title, :headings, :text) AS score"),
                text("-bm25(chunk_index, 0.0, :headings, :text) AS passage_score"),
            )
            .select_from(text("chunk_index"))
            .join(passages, text("chunk_index.rowid = id"))
            .where(text("chunk_index MATCH :query"))
            .order_by(text("score DESC"), passages.c.id)
            .limit(limit)
        )
        weights = {"title": TITLE_WEIGHT, "headings": HEADINGS_WEIGHT, "text": TEXT_WEIGHT}
        rows = connection.execute(statement, {"query": query, **weights})
        return [Match(row=row[0], score=row[1], passage_score=row[2]) for row in rows]


def _quotable(term: str) -> str:
    return with_bigrams(term).replace('"', " ").replace("\0", " ").strip()

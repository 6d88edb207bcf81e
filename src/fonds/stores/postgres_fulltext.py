"""Full text on PostgreSQL: text search vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    REAL,
    ColumnElement,
    Connection,
    Select,
    cast,
    column,
    func,
    literal,
    or_,
    select,
    table,
    text,
    union_all,
)

from fonds.stores.fulltext import SPARE, IndexEntry, first_passing, with_bigrams
from fonds.stores.tables import document_chunk_buffer

_POSTGRES_ADD = text(
    "INSERT INTO chunk_index (id, words) VALUES (:id, "
    "setweight(to_tsvector('english', :title), 'A') || "
    "setweight(to_tsvector('english', :headings), 'B') || "
    "setweight(to_tsvector('english', :text), 'D'))"
)

# ts_rank weighs D, C, B, A.
_WEIGHTS: Final = cast([0.4, 0.1, 0.1, 1.0], ARRAY(REAL))
COUNTED: Final = 5000
"""Passages that are counted one by one, as the server visits each. They come about in the order
in which they were written, so that the last of them tells how many there must be in all."""

_POSTGRES_INDEX: Final = table("chunk_index", column("id"), column("words"))
_ROW: Final = document_chunk_buffer.c.id


class PostgresFullText:
    """A tsvector for each passage, with a GIN index."""

    def add(self, connection: Connection, entries: Sequence[IndexEntry]) -> None:
        """Make passages findable."""
        if entries:
            connection.execute(
                _POSTGRES_ADD,
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
        self, connection: Connection, terms: Sequence[str], eligible: Select[Any], limit: int
    ) -> list[int]:
        """The best passages for any of the terms, by weight and number of its words."""
        phrases = _phrases(terms)
        if not phrases:
            return []
        query = reduce(lambda one, other: one.op("||")(other), phrases)
        ranked = _postgres_rows(query).order_by(
            func.ts_rank(_WEIGHTS, _POSTGRES_INDEX.c.words, query, 1).desc()
        )
        ranked = ranked.order_by(_POSTGRES_INDEX.c.id)
        first = list(connection.scalars(ranked.limit(limit * SPARE)))
        passing = first_passing(connection, first, eligible, limit)
        if len(passing) == limit or len(first) < limit * SPARE:
            return passing
        return list(
            connection.scalars(ranked.where(_POSTGRES_INDEX.c.id.in_(eligible)).limit(limit))
        )

    def frequencies(self, connection: Connection, terms: Sequence[str]) -> dict[str, int]:
        """In how many passages each term stands; of frequent ones, about."""
        if not terms:
            return {}
        counted = union_all(
            *(_counted(place, phrase) for place, phrase in enumerate(_phrases(terms)))
        )
        passages = self.passages(connection)
        return {
            terms[place]: count if count < COUNTED else count * passages // last
            for place, count, last in connection.execute(counted)
        }

    def passages(self, connection: Connection) -> int:
        """How many there were ever: as good as the number there is, and known at once."""
        return connection.scalar(select(func.max(_ROW))) or 0

    def holding(self, phrases: Sequence[str], excluded: Sequence[str]) -> list[ColumnElement[bool]]:
        """Conditions on passages: all of the phrases, and none of the excluded."""
        # A phrase of nothing but stop words is in no index: nobody can ask for it.
        wanted = [
            or_(func.numnode(phrase) == 0, _ROW.in_(_postgres_rows(phrase)))
            for phrase in _phrases(phrases)
        ]
        return wanted + [_ROW.not_in(_postgres_rows(phrase)) for phrase in _phrases(excluded)]


def _counted(place: int, phrase: Any) -> Select[Any, Any, Any]:
    first = _postgres_rows(phrase).limit(COUNTED).subquery()
    return select(literal(place), func.count(), func.max(first.c.id))


def _phrases(phrases: Sequence[str]) -> list[Any]:
    return [func.phraseto_tsquery("english", with_bigrams(phrase)) for phrase in phrases]


def _postgres_rows(query: Any) -> Select[Any]:
    return select(_POSTGRES_INDEX.c.id).where(_POSTGRES_INDEX.c.words.op("@@")(query))

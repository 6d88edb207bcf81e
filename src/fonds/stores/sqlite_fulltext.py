"""Full text on SQLite: FTS5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Integer, Select, column, func, select, table

from fonds.stores.fulltext import (
    HEADINGS_WEIGHT,
    SPARE,
    TEXT_WEIGHT,
    TITLE_WEIGHT,
    IndexEntry,
    first_passing,
    with_bigrams,
)
from fonds.stores.sqlite import insert_rows
from fonds.stores.tables import document_chunk_buffer

_INDEX: Final = table("chunk_index", column("rowid", Integer), column("chunk_index"))
_ROW: Final = document_chunk_buffer.c.id
_ADD: Final = "INSERT INTO chunk_index (rowid, title, headings, text) VALUES (?, ?, ?, ?)"
_LAST: Final = select(func.max(_ROW))


class SqliteFullText:
    """FTS5 without a copy of the text: it stands in the passages already."""

    def add(self, connection: Connection, entries: Sequence[IndexEntry]) -> None:
        """Make passages findable."""
        texts = (
            (entry.row, *map(with_bigrams, (entry.title, entry.headings, entry.text)))
            for entry in entries
        )
        insert_rows(connection, _ADD, list(texts))

    def remove(self, connection: Connection, rows: Sequence[int]) -> None:
        """Forget passages."""
        if rows:
            connection.exec_driver_sql(
                "DELETE FROM chunk_index WHERE rowid = ?", [(row,) for row in rows]
            )

    def allocate(self, connection: Connection, count: int) -> range:
        """Fresh row numbers; the transaction already holds the only writer's claim."""
        last = self.passages(connection)
        return range(last + 1, last + 1 + count)

    def search(
        self, connection: Connection, terms: Sequence[str], eligible: Select[Any], limit: int
    ) -> list[int]:
        """The best passages for any of the terms, by BM25."""
        query = _match(terms, " OR ")
        if not query:
            return []
        first = list(connection.scalars(_ranked(query).limit(limit * SPARE)))
        passing = first_passing(connection, first, eligible, limit)
        if len(passing) == limit or len(first) < limit * SPARE:
            return passing
        # Plus nothing, or SQLite would look into the index anew for every row that is eligible.
        among = _ranked(query).where((_INDEX.c.rowid + 0).in_(eligible))
        return list(connection.scalars(among.limit(limit)))

    def frequencies(self, connection: Connection, terms: Sequence[str]) -> dict[str, int]:
        """In how many passages each term stands."""
        return {term: _frequency(connection, _match([term], "")) for term in terms}

    def passages(self, connection: Connection) -> int:
        """How many there were ever: as good as the number there is, and known at once."""
        return connection.scalar(_LAST) or 0

    def holding(self, phrases: Sequence[str], excluded: Sequence[str]) -> list[ColumnElement[bool]]:
        """Conditions on passages: all of the phrases, and none of the excluded."""
        wanted, unwanted = _match(phrases, " AND "), _match(excluded, " OR ")
        conditions: list[ColumnElement[bool]] = []
        if wanted:
            conditions.append(_ROW.in_(_rows(wanted)))
        if unwanted:
            conditions.append(_ROW.not_in(_rows(unwanted)))
        return conditions


def _match(terms: Sequence[str], joined: str) -> str:
    return joined.join(f'"{term}"' for term in map(_quotable, terms) if term)


def _frequency(connection: Connection, query: str) -> int:
    if not query:
        return 0
    # A question has many words: what SQLAlchemy does for each statement takes longer than SQLite.
    counted = "SELECT count(*) FROM chunk_index WHERE chunk_index MATCH ?"
    count: int = connection.exec_driver_sql(counted, (query,)).scalar_one()
    return count


def _rows(query: str) -> Select[Any]:
    return select(_INDEX.c.rowid).where(_INDEX.c.chunk_index.op("MATCH")(query))


def _ranked(query: str) -> Select[Any]:
    weights = (TITLE_WEIGHT, HEADINGS_WEIGHT, TEXT_WEIGHT)
    return _rows(query).order_by(func.bm25(_INDEX.c.chunk_index, *weights), _INDEX.c.rowid)


def _quotable(term: str) -> str:
    return with_bigrams(term).replace('"', " ").replace("\0", " ").strip()

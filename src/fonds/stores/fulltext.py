"""The full-text index over passages: FTS5 on SQLite, text search vectors on PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Protocol

from sqlalchemy import (
    ARRAY,
    REAL,
    ColumnElement,
    Connection,
    Integer,
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

from fonds.stores.postgres import rows_in_statements
from fonds.stores.sqlite import PARAMETERS, batched, insert_rows
from fonds.stores.tables import document_chunk_buffer

# The weights by which the indexes rank candidates. BM25 multiplies the count of a word by them, so
# that a count of one has the same effect as with a k1 of 0.65.
TITLE_WEIGHT: Final = 4.0
HEADINGS_WEIGHT: Final = 0.5
TEXT_WEIGHT: Final = 1.85

SPARE: Final = 4
"""The multiple of the limit that is searched without the condition `eligible` first, which is far
faster: in most searches nearly all passages are eligible."""

# Han, kana and hangul are written without spaces, so that neither tokenizer finds words in them.
# Every two neighbouring characters become a term, in the index and in queries.
_CJK: Final = re.compile(
    "[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexEntry:
    """The indexed texts of one passage."""

    row: int
    """`document_chunk_buffer.id`"""
    title: str
    headings: str
    text: str


class FullText(Protocol):
    """The full-text index over all passages, written in the transaction of the passages."""

    def add(self, connection: Connection, entries: Sequence[IndexEntry]) -> None:
        """Add passages."""
        ...

    def remove(self, connection: Connection, rows: Sequence[int]) -> None:
        """Remove passages."""
        ...

    def allocate(self, connection: Connection, count: int) -> Iterable[int]:
        """New row numbers for passages to be inserted."""
        ...

    def search(
        self, connection: Connection, terms: Sequence[str], eligible: Any, limit: int
    ) -> list[int]:
        """The best passages for any of the terms among the rows of the query `eligible`.

        Best first by the index; at least `limit` if so many are eligible.
        """
        ...

    def frequencies(self, connection: Connection, terms: Sequence[str]) -> dict[str, int]:
        """The number of passages in which each term occurs."""
        ...

    def passages(self, connection: Connection) -> int:
        """The approximate number of passages."""
        ...

    def holding(self, phrases: Sequence[str], excluded: Sequence[str]) -> list[ColumnElement[bool]]:
        """Conditions on `document_chunk_buffer`: all of the phrases, and none of the excluded."""
        ...


def first_passing(
    connection: Connection, rows: Sequence[int], eligible: Select[Any], limit: int
) -> list[int]:
    """The first `limit` of some rows of `document_chunk_buffer` that are eligible."""
    passing: list[int] = []
    for batch in batched(rows, min(PARAMETERS, limit + limit // 4)):
        among = eligible.where(document_chunk_buffer.c.id.in_(batch))
        eligible_rows = set(connection.scalars(among))
        passing += [row for row in batch if row in eligible_rows]
        if len(passing) >= limit:
            break
    return passing[:limit]


def headings_of(title: str, locator: Mapping[str, Any]) -> str:
    """The headings above a passage, without its document's title, which is indexed separately."""
    headings = [heading for heading in locator["heading_path"] if heading != title]
    return "\n".join([*headings, *locator.get("lead_ins", ())])


def visible_text(text: str) -> str:
    """The text without comments, and without soft hyphens, which would split words."""
    if "\xad" in text:
        text = text.replace("\xad", "")
    return _COMMENT.sub(" ", text) if "<!--" in text else text


def is_cjk(character: str) -> bool:
    """True if a character belongs to a script that is written without spaces."""
    return _CJK.match(character) is not None


def with_bigrams(text: str) -> str:
    """The text with every run of CJK characters replaced by its overlapping pairs."""
    if text.isascii():
        return text
    return _CJK.sub(_pairs, text)


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    if len(characters) == 1:
        return f" {characters} "
    pairs = (characters[i : i + 2] for i in range(len(characters) - 1))
    return f" {' '.join(pairs)} "


_INDEX: Final = table("chunk_index", column("rowid", Integer), column("chunk_index"))
_ROW: Final = document_chunk_buffer.c.id
_ADD: Final = "INSERT INTO chunk_index (rowid, title, headings, text) VALUES (?, ?, ?, ?)"
_LAST: Final = select(func.max(_ROW))


class SqliteFullText:
    """FTS5 without a copy of the text, which is in the passages."""

    def add(self, connection: Connection, entries: Sequence[IndexEntry]) -> None:
        """Add passages."""
        texts = (
            (entry.row, *map(with_bigrams, (entry.title, entry.headings, entry.text)))
            for entry in entries
        )
        insert_rows(connection, _ADD, list(texts))

    def remove(self, connection: Connection, rows: Sequence[int]) -> None:
        """Remove passages."""
        if rows:
            connection.exec_driver_sql(
                "DELETE FROM chunk_index WHERE rowid = ?", [(row,) for row in rows]
            )

    def allocate(self, connection: Connection, count: int) -> range:
        """New row numbers; this transaction is the only writer."""
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
        # "+ 0" keeps SQLite from searching the index again for every eligible row.
        among = _ranked(query).where((_INDEX.c.rowid + 0).in_(eligible))
        return list(connection.scalars(among.limit(limit)))

    def frequencies(self, connection: Connection, terms: Sequence[str]) -> dict[str, int]:
        """The number of passages in which each term occurs."""
        return {term: _frequency(connection, _match([term], "")) for term in terms}

    def passages(self, connection: Connection) -> int:
        """The highest row number, which is quick to read and close to the number of passages."""
        return connection.scalar(_LAST) or 0

    def holding(self, phrases: Sequence[str], excluded: Sequence[str]) -> list[ColumnElement[bool]]:
        """Conditions on passages: all of the phrases, and none of the excluded."""
        required, unwanted = _match(phrases, " AND "), _match(excluded, " OR ")
        conditions: list[ColumnElement[bool]] = []
        if required:
            conditions.append(_ROW.in_(_rows(required)))
        if unwanted:
            conditions.append(_ROW.not_in(_rows(unwanted)))
        return conditions


def _match(terms: Sequence[str], joined: str) -> str:
    return joined.join(f'"{term}"' for term in map(_quotable, terms) if term)


def _frequency(connection: Connection, query: str) -> int:
    if not query:
        return 0
    # A query has many words, and Core takes longer for each statement than SQLite.
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


_POSTGRES_ADD: Final = (
    "INSERT INTO chunk_index (id, words) VALUES (%(id)s, "
    "setweight(to_tsvector('english', %(title)s::text), 'A') || "
    "setweight(to_tsvector('english', %(headings)s::text), 'B') || "
    "setweight(to_tsvector('english', %(text)s::text), 'D'))"
)

# The weights of D, C, B, A in ts_rank.
_WEIGHTS: Final = cast([0.4, 0.1, 0.1, 1.0], ARRAY(REAL))
COUNTED: Final = 5000
"""Passages that are counted exactly, as the server reads each of them. They come roughly in the
order of their rows, so that the last row number shows how many there are in all."""

_POSTGRES_INDEX: Final = table("chunk_index", column("id"), column("words"))


class PostgresFullText:
    """A tsvector for each passage, with a GIN index."""

    def add(self, connection: Connection, entries: Sequence[IndexEntry]) -> None:
        """Add passages."""
        rows = [
            {
                "id": entry.row,
                "title": with_bigrams(entry.title),
                "headings": with_bigrams(entry.headings),
                "text": with_bigrams(entry.text),
            }
            for entry in entries
        ]
        for statement, values in rows_in_statements(_POSTGRES_ADD, rows):
            connection.exec_driver_sql(statement, values)

    def remove(self, connection: Connection, rows: Sequence[int]) -> None:
        """Remove passages."""
        if rows:
            connection.execute(
                text("DELETE FROM chunk_index WHERE id = ANY(:rows)"), {"rows": list(rows)}
            )

    def allocate(self, connection: Connection, count: int) -> list[int]:
        """New row numbers from the sequence of the table."""
        sequence = "pg_get_serial_sequence('document_chunk_buffer', 'id')"
        statement = text(f"SELECT nextval({sequence}) FROM generate_series(1, :count)")  # noqa: S608 — a constant
        return list(connection.scalars(statement, {"count": count}))

    def search(
        self, connection: Connection, terms: Sequence[str], eligible: Select[Any], limit: int
    ) -> list[int]:
        """The best passages for any of the terms, by weights and frequencies."""
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
        """The number of passages in which each term occurs, estimated for frequent ones."""
        if not terms:
            return {}
        counted = union_all(
            *(_counted(number, phrase) for number, phrase in enumerate(_phrases(terms)))
        )
        passages = self.passages(connection)
        return {
            terms[number]: count if count < COUNTED else count * passages // last
            for number, count, last in connection.execute(counted)
        }

    def passages(self, connection: Connection) -> int:
        """The highest row number, which is quick to read and close to the number of passages."""
        return connection.scalar(select(func.max(_ROW))) or 0

    def holding(self, phrases: Sequence[str], excluded: Sequence[str]) -> list[ColumnElement[bool]]:
        """Conditions on passages: all of the phrases, and none of the excluded."""
        # A phrase of stop words only is not indexed, and cannot be required.
        required = [
            or_(func.numnode(phrase) == 0, _ROW.in_(_postgres_rows(phrase)))
            for phrase in _phrases(phrases)
        ]
        return required + [_ROW.not_in(_postgres_rows(phrase)) for phrase in _phrases(excluded)]


def _counted(number: int, phrase: Any) -> Select[Any, Any, Any]:
    first = _postgres_rows(phrase).limit(COUNTED).subquery()
    return select(literal(number), func.count(), func.max(first.c.id))


def _phrases(phrases: Sequence[str]) -> list[Any]:
    return [func.phraseto_tsquery("english", with_bigrams(phrase)) for phrase in phrases]


def _postgres_rows(query: Any) -> Select[Any]:
    return select(_POSTGRES_INDEX.c.id).where(_POSTGRES_INDEX.c.words.op("@@")(query))

"""Full text over passages: what both databases index, and in which form.

Full text on SQLite: FTS5.

Full text on PostgreSQL: text search vectors.
"""

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

from fonds.stores.sqlite import PARAMETERS, batched, insert_rows
from fonds.stores.tables import document_chunk_buffer

# What the indexes rank by, to find passages worth a closer look. BM25's weights multiply the count
# of a word, which makes a count of one reach as far as it does with a k1 of 0.65.
TITLE_WEIGHT: Final = 4.0
HEADINGS_WEIGHT: Final = 0.5
TEXT_WEIGHT: Final = 1.85

SPARE: Final = 4
"""How many times as many are looked at without regard to `eligible`, before it is asked for in the
search itself: nearly every search lets nearly everything pass, and that is far quicker."""

# Han, kana and hangul are written without spaces: neither tokenizer finds words in them. Every
# two neighbours become one term, in the index and in the query alike.
_CJK: Final = re.compile(
    "[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexEntry:
    """The words of one passage."""

    row: int
    """`document_chunk_buffer.id`"""
    title: str
    headings: str
    text: str


class FullText(Protocol):
    """One full-text index over all passages, written in the transaction of the passages."""

    def add(self, connection: Connection, entries: Sequence[IndexEntry]) -> None:
        """Make passages findable."""
        ...

    def remove(self, connection: Connection, rows: Sequence[int]) -> None:
        """Forget passages."""
        ...

    def allocate(self, connection: Connection, count: int) -> Iterable[int]:
        """Fresh row numbers for passages about to be inserted."""
        ...

    def search(
        self, connection: Connection, terms: Sequence[str], eligible: Any, limit: int
    ) -> list[int]:
        """The best passages for any of the terms among the rows of the query `eligible`.

        Best first, as well as the index can tell; never fewer than `limit` if so many are eligible.
        """
        ...

    def frequencies(self, connection: Connection, terms: Sequence[str]) -> dict[str, int]:
        """In how many passages each term stands."""
        ...

    def passages(self, connection: Connection) -> int:
        """How many passages there are, about."""
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
        found = set(connection.scalars(among))
        passing += [row for row in batch if row in found]
        if len(passing) >= limit:
            break
    return passing[:limit]


def headings_of(title: str, locator: Mapping[str, Any]) -> str:
    """What stands above a passage, less its document's title, which is indexed for itself."""
    headings = [heading for heading in locator["heading_path"] if heading != title]
    return "\n".join([*headings, *locator.get("lead_ins", ())])


def as_seen(text: str) -> str:
    """The text as a reader sees it: no comments, and no soft hyphens, which cut words in two."""
    if "\xad" in text:
        text = text.replace("\xad", "")
    return _COMMENT.sub(" ", text) if "<!--" in text else text


def is_cjk(character: str) -> bool:
    """Whether it is of a script that is written without spaces."""
    return _CJK.match(character) is not None


def with_bigrams(text: str) -> str:
    """The text with every run of CJK characters spelled as its overlapping pairs."""
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

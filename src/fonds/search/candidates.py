"""Passages worth a closer look: found by their words, by their vectors, or by both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, select

from fonds.search.rank import Candidate, Question
from fonds.search.words import words_asked
from fonds.stores.batches import select_in
from fonds.stores.database import Database
from fonds.stores.fulltext import headings_of
from fonds.stores.tables import document_chunk_buffer, documents
from fonds.stores.vectors import Generation

MOST_POSTINGS: Final = 60_000
"""Places where the words looked for may stand, at most about; the rarest words count first.

A word in every second passage decides nothing about which are worth a look, and takes as long to
follow as all the others together. Every word counts where passages are ranked.
"""

MOST_COUNTED: Final = 20_000
"""Places of both words up to which it is counted where they stand side by side."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """A question as a model sees it."""

    generation: Generation
    vector: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """The passages found at some depth, with all that ranking and showing them needs."""

    candidates: Sequence[Candidate]
    rows: Mapping[int, Row[Any]]
    is_all: bool
    """Whether a deeper look would find no more."""


class Finder:
    """Looks for the passages of one question, as deep as is asked for."""

    def __init__(
        self,
        database: Database,
        connection: Connection,
        eligible: Select[Any],
        meaning: Meaning | None,
    ) -> None:
        self._database = database
        self._connection = connection
        self._eligible = eligible
        self._meaning = meaning
        self._frequencies: dict[str, int] = {}

    def question(self, text: str) -> Question:
        """The words of a question with their weights in this library."""
        words = words_asked(text)
        having = self._having(words.single)
        pairs = [
            f"{one} {two}" for one, two in words.pairs if having[one] + having[two] <= MOST_COUNTED
        ]
        passages = self._database.fulltext.passages(self._connection)
        return Question(words, having | self._having(pairs), passages)

    def look(self, terms: Sequence[str], depth: int, near: int) -> Looked:
        """The best `depth` passages by any of the terms, and the `near`est ones by meaning."""
        found = self._by_words(terms, depth) if depth else []
        nearest = self._by_meaning(near)
        cosines = self._cosines(found) | nearest
        rows = shown_passages(self._connection, list(dict.fromkeys([*found, *nearest])))
        return Looked(
            candidates=[_candidate(row, cosines.get(row.id)) for row in rows.values()],
            rows=rows,
            is_all=len(found) < max(depth, 1) and len(nearest) < near,
        )

    def _by_words(self, terms: Sequence[str], depth: int) -> list[int]:
        having = self._having([term.lower() for term in terms])
        chosen = list(_rarest(having))
        found = self._search(chosen, depth)
        if len(found) < depth and len(chosen) < sum(map(bool, having.values())):
            found += [row for row in self._search(list(having), depth) if row not in set(found)]
        return found[:depth]

    def _search(self, terms: Sequence[str], depth: int) -> list[int]:
        if not terms:
            return []
        return self._database.fulltext.search(self._connection, terms, self._eligible, depth)

    def _by_meaning(self, near: int) -> dict[int, float]:
        if self._meaning is None:
            return {}
        index, generation = self._database.vectors, self._meaning.generation
        vector = self._meaning.vector
        found = index.search(self._connection, generation, vector, self._eligible, near)
        return {each.row: each.similarity for each in found}

    def _cosines(self, rows: Sequence[int]) -> dict[int, float]:
        if self._meaning is None:
            return {}
        index, generation = self._database.vectors, self._meaning.generation
        return index.similarities(self._connection, generation, self._meaning.vector, rows)

    def _having(self, terms: Sequence[str]) -> dict[str, int]:
        known = self._frequencies
        unknown = sorted({term for term in terms if term not in known})
        known |= self._database.fulltext.frequencies(self._connection, unknown)
        return {term: known[term] for term in terms}


def _rarest(having: Mapping[str, int]) -> Iterable[str]:
    followed = 0
    for term, count in sorted(having.items(), key=lambda item: (item[1], item[0])):
        if followed and followed + count > MOST_POSTINGS:
            return
        if count:
            followed += count
            yield term


def shown_passages(connection: Connection, rows: Sequence[int]) -> dict[int, Row[Any]]:
    """Passages with what a result says of them, by their rows."""
    chunk, document = document_chunk_buffer.c, documents.c
    query = select(
        chunk.id,
        chunk.text,
        chunk.meta,
        chunk.chunk_ord,
        document.id.label("document_id"),
        document.source,
        document.kind,
        document.title,
        document.source_org,
        document.source_url,
        document.published_at,
        document.citation_string,
    ).join(documents, document.uid == chunk.document_id)
    return {row.id: row for row in select_in(connection, query, chunk.id, rows)}


def _candidate(row: Row[Any], cosine: float | None) -> Candidate:
    headings = headings_of(row.title, row.meta["locator"])
    return Candidate(row=row.id, title=row.title, headings=headings, text=row.text, cosine=cosine)

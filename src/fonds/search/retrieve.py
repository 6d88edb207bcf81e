"""Passages for a question, each with its citation; everything in it was computed at ingestion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from itertools import chain, islice
from typing import Any, Final

from sqlalchemy import Row

from fonds.errors import UsageError
from fonds.results import ChunkLocator, Citation, Found, RetrievalResult
from fonds.search.candidates import Finder, Looked, Meaning
from fonds.search.direct import cited, cited_passage
from fonds.search.facets import facets_of
from fonds.search.filters import Filters, eligible
from fonds.search.query import Query, read_query
from fonds.search.rank import Question, Score
from fonds.search.snippet import snippet_of
from fonds.stores.database import Database

MOST_RESULTS: Final = 1000
DEPTHS: Final = (200, 1000, 4000)
"""Passages ranked together. What a deeper look adds comes behind what the first one found, so that
one page follows the other whatever their sizes."""
NEAR: Final = 0.5
"""Part of the depth to which vectors are followed, where words are as well."""
_NOTHING: Final = Looked(candidates=(), rows={}, is_all=True)


def search(
    database: Database,
    query: str,
    filters: Filters,
    *,
    limit: int = 10,
    offset: int = 0,
    meaning: Meaning | None = None,
    by_words: bool = True,
) -> list[RetrievalResult]:
    """The best passage of each of the best documents, by words, by meaning, or by both."""
    _refuse_beyond(limit, offset)
    looked = _look(database, query, filters, meaning=meaning, by_words=by_words)
    with looked as (_, best):
        return list(islice(best, offset, offset + limit))


def look(
    database: Database,
    query: str,
    filters: Filters,
    *,
    limit: int = 10,
    offset: int = 0,
    meaning: Meaning | None = None,
    by_words: bool = True,
) -> Found:
    """What `search` gives, and the facets of the documents that were ranked first for it."""
    _refuse_beyond(limit, offset)
    looked = _look(database, query, filters, meaning=meaning, by_words=by_words)
    with looked as (first, best):
        results = list(islice(best, offset, offset + limit))
    return Found(results=results, facets=facets_of(first.rows.values(), is_all=first.is_all))


def _refuse_beyond(limit: int, offset: int) -> None:
    if not 1 <= limit <= MOST_RESULTS:
        raise UsageError(f"limit must be between 1 and {MOST_RESULTS}")
    if not 0 <= offset <= MOST_RESULTS - limit:
        raise UsageError(
            f"results are ranked down to the {MOST_RESULTS}th: narrow the question, or its filters"
        )


@contextmanager
def _look(
    database: Database, query: str, filters: Filters, *, meaning: Meaning | None, by_words: bool
) -> Iterator[tuple[Looked, Iterator[RetrievalResult]]]:
    """What a first look finds, and all results in their order, which may look deeper."""
    asked = read_query(query)
    filters = filters.narrowed(asked)
    if not asked.wanted and (meaning is None or not asked.text):
        if asked.excluded:
            raise UsageError("say what to look for, not only what to leave out")
        yield _NOTHING, iter(())
        return
    named = cited(database, asked, filters.owner)
    with database.read() as connection:
        passages = eligible(connection, filters).where(
            *database.fulltext.holding(asked.phrases, asked.excluded)
        )
        if named is not None and (row := cited_passage(connection, named, passages)) is not None:
            yield replace(_NOTHING, rows={row.id: row}), iter([_result(row, asked.wanted)])
            return
        finder = Finder(database, connection, passages, meaning)
        looks = _looks(finder, asked, by_words=by_words)
        first = next(looks)
        question = finder.question(asked.text if by_words else "")
        best = _best(question, chain([first], looks))
        yield first, (_result(row, asked.wanted) for row in best)


def _looks(finder: Finder, asked: Query, *, by_words: bool) -> Iterator[Looked]:
    """At the best passages, then at more of them, until there are no more."""
    for depth in DEPTHS:
        near = int(depth * NEAR) if by_words else depth
        looked = finder.look(asked.wanted, depth if by_words else 0, near)
        yield looked
        if looked.is_all:
            return


def _best(question: Question, looks: Iterable[Looked]) -> Iterator[Row[Any]]:
    """The best passage of each document, best document first."""
    shown: set[str] = set()
    for looked in looks:
        for row in _by_document(looked, question.rank(looked.candidates)):
            if row.document_id not in shown:
                shown.add(row.document_id)
                yield row


def _by_document(looked: Looked, ranked: Sequence[Score]) -> Iterator[Row[Any]]:
    best: dict[str, Score] = {}
    for score in ranked:
        document = looked.rows[score.row].document_id
        if document not in best or score.passage > best[document].passage:
            # A document keeps the place of its first passage, and shows the best.
            best[document] = score
    for score in best.values():
        yield looked.rows[score.row]


def _result(row: Row[Any], terms: Sequence[str]) -> RetrievalResult:
    return RetrievalResult(
        id=row.document_id,
        snippet=snippet_of(row.text, terms),
        citation=citation_of(row),
    )


def citation_of(row: Row[Any]) -> Citation:
    """The citation of a passage, from its row and its document's."""
    return Citation(
        title=row.title,
        organization=row.source_org,
        url=row.source_url,
        published_at=date.fromisoformat(row.published_at[:10]) if row.published_at else None,
        citation_string=row.citation_string,
        locator=ChunkLocator(passage=row.chunk_ord, **row.meta["locator"]),
    )

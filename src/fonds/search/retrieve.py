"""Passages for a question, each with its citation; everything in it was computed at ingestion.

Passages worth a closer look: found by their words, by their vectors, or by both.

A citation typed as the query goes straight to its document.

What the documents that a search ranks have in common, counted while they are at hand.

Questions as the model of the searched generation sees them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID

import structlog
from sqlalchemy import Connection, Row, Select, select

from fonds.errors import EmbedError, UsageError
from fonds.results import (
    ChunkLocator,
    Citation,
    FacetCount,
    Facets,
    Resolution,
    RetrievalResult,
    SearchPage,
)
from fonds.search.filters import Filters, eligible
from fonds.search.query import Query, read_query, snippet_of, words_asked
from fonds.search.rank import Candidate, Question, Score
from fonds.settings import Settings
from fonds.sources.registry import SourceRegistry
from fonds.stores.database import Database
from fonds.stores.fulltext import headings_of
from fonds.stores.sqlite import select_in
from fonds.stores.tables import document_chunk_buffer, documents
from fonds.stores.vectors import Generation, current_generation

if TYPE_CHECKING:
    from fonds.embed.base import Embedder

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
    from fonds.search.lookup import names_one_thing  # noqa: PLC0415 — as said above
    from fonds.search.resolve import resolve  # noqa: PLC0415 — as said above

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


MOST_VALUES: Final = 30
"""Of one facet that are told of."""
_UNTITLED: Final = {"uploads": "Uploads"}


def facets_of(rows: Iterable[Row[Any]], registry: SourceRegistry, *, is_all: bool) -> Facets:
    """The facets of passages, by document; `is_all` unless a deeper look would find more."""
    documents = {row.document_id: row for row in rows}
    sources = Counter(row.source for row in documents.values())
    kinds = Counter(row.kind for row in documents.values())
    organizations = Counter(row.source_org for row in documents.values())
    years = Counter(row.published_at[:4] for row in documents.values() if row.published_at)
    return Facets(
        sources=_most(sources, lambda name: _title(name, registry)),
        kinds=_most(kinds, lambda kind: kind.replace("_", " ")),
        organizations=_most(organizations),
        years=sorted(_most(years), key=lambda each: each.value, reverse=True),
        jurisdictions=_most(_jurisdictions(sources, registry)),
        counted=len(documents),
        is_all=is_all,
    )


def _jurisdictions(sources: Counter[str], registry: SourceRegistry) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in sources.items():
        if (source := registry.get(name)) and source.info.jurisdiction:
            found[source.info.jurisdiction] += count
    return found


def _title(name: str, registry: SourceRegistry) -> str:
    source = registry.get(name)
    return source.info.title if source else _UNTITLED.get(name, name)


def _most(
    counted: Counter[str], label: Callable[[str], str] = lambda value: value
) -> list[FacetCount]:
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [
        FacetCount(value=value, label=label(value), count=count)
        for value, count in ordered[:MOST_VALUES]
    ]


MOST_RESULTS: Final = 1000
DEPTHS: Final = (200, 1000, 4000)
"""Passages ranked together. What a deeper look adds comes behind what the first one found, so that
one page follows the other whatever their sizes."""
NEAR: Final = 0.5
"""Part of the depth to which vectors are followed, where words are as well."""
_NOTHING: Final = Looked(candidates=(), rows={}, is_all=True)


def search(
    database: Database,
    registry: SourceRegistry,
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
    looked = _look(database, registry, query, filters, meaning=meaning, by_words=by_words)
    with looked as (_, best):
        return list(islice(best, offset, offset + limit))


def look(
    database: Database,
    registry: SourceRegistry,
    query: str,
    filters: Filters,
    *,
    limit: int = 10,
    offset: int = 0,
    meaning: Meaning | None = None,
    by_words: bool = True,
) -> SearchPage:
    """What `search` gives, and the facets of the documents that were ranked first for it."""
    _refuse_beyond(limit, offset)
    looked = _look(database, registry, query, filters, meaning=meaning, by_words=by_words)
    with looked as (first, best):
        results = list(islice(best, offset, offset + limit))
    return SearchPage(
        results=results, facets=facets_of(first.rows.values(), registry, is_all=first.is_all)
    )


def _refuse_beyond(limit: int, offset: int) -> None:
    if not 1 <= limit <= MOST_RESULTS:
        raise UsageError(f"limit must be between 1 and {MOST_RESULTS}")
    if not 0 <= offset <= MOST_RESULTS - limit:
        raise UsageError(
            f"results are ranked down to the {MOST_RESULTS}th: narrow the question, or its filters"
        )


@contextmanager
def _look(
    database: Database,
    registry: SourceRegistry,
    query: str,
    filters: Filters,
    *,
    meaning: Meaning | None,
    by_words: bool,
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
        passages = eligible(connection, filters, registry).where(
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


Mode = Literal["lexical", "semantic", "hybrid"]

_log = structlog.get_logger("fonds.search")


class Understanding:
    """Holds the model open between questions; may be asked from several threads."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._opening = Lock()
        self._opened: tuple[Generation, Embedder] | None = None

    def meaning(self, query: str, mode: Mode | None) -> Meaning | None:
        """The question's vector; None where words alone are to decide.

        Without a mode, vectors are used if there are any and their model answers; a mode that needs
        them insists.
        """
        if mode == "lexical":
            return None
        text = read_query(query).text
        with self._database.read() as connection:
            generation = current_generation(connection)
        if generation is None and mode is not None:
            raise UsageError(f"mode {mode} needs vectors, and there are none: `fonds embed` first")
        if generation is None or not text:
            return None
        try:
            return Meaning(generation=generation, vector=self._vector(generation, text))
        except EmbedError as error:
            if mode is not None:
                raise
            _log.warning("vectors left out", cause=str(error))
            return None

    def _vector(self, generation: Generation, text: str) -> bytes:
        from fonds.embed.migration import query_vectors  # noqa: PLC0415 — models take long to import

        (vector,) = query_vectors(self._embedder(generation), [text])
        return vector

    def _embedder(self, generation: Generation) -> Embedder:
        from fonds.embed.worker import embedder_of  # noqa: PLC0415 — models take long to import

        with self._opening:
            if self._opened is None or self._opened[0] != generation:
                self._opened = (generation, embedder_of(generation, self._settings))
            return self._opened[1]

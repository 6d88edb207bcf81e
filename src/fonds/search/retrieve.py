"""Search: the passages for a query, with citations and facets.

Candidates match by their words, by their vectors, or by both, and are then ranked. A query that is
a citation leads directly to its document.
"""

from __future__ import annotations

from collections import Counter, defaultdict
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
    RetrievedPassage,
    SearchPage,
)
from fonds.search.filters import Filters, eligible
from fonds.search.query import Query, query_words, read_query
from fonds.search.rank import Candidate, Score, WeightedQuery
from fonds.search.snippet import snippet_of
from fonds.settings import Settings
from fonds.sources.registry import SourceRegistry
from fonds.stores.database import Database
from fonds.stores.fulltext import headings_of
from fonds.stores.sqlite import select_in
from fonds.stores.tables import document_chunk_buffer, documents, upload_jobs
from fonds.stores.vectors import Generation, current_generation

if TYPE_CHECKING:
    from fonds.embed.base import Embedder

MAX_POSTINGS: Final = 60_000
"""The approximate limit of passages read for the words of a query, the rarest words first.

A word in every second passage selects nothing, and takes as long to read as all the others
together. For the ranking of candidates every word counts.
"""

MAX_PAIR_POSTINGS: Final = 20_000
"""The passages with two neighbouring words up to which those with the pair are counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryVector:
    """The vector of a query in a generation."""

    generation: Generation
    vector: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class CandidateSet:
    """The candidates up to some depth, with the rows for results."""

    candidates: Sequence[Candidate]
    rows: Mapping[int, Row[Any]]
    is_all: bool
    """Whether there are no more candidates at a greater depth."""


class CandidateFinder:
    """Finds the candidates of one query, up to any depth."""

    def __init__(
        self,
        database: Database,
        connection: Connection,
        eligible: Select[Any],
        query_vector: QueryVector | None,
    ) -> None:
        self._database = database
        self._connection = connection
        self._eligible = eligible
        self._query_vector = query_vector
        self._frequencies: dict[str, int] = {}

    def weighted_query(self, text: str) -> WeightedQuery:
        """The words of a query with their weights in this library."""
        words = query_words(text)
        having = self._having(words.single)
        pairs = [
            f"{first} {second}"
            for first, second in words.pairs
            if having[first] + having[second] <= MAX_PAIR_POSTINGS
        ]
        passages = self._database.fulltext.passages(self._connection)
        return WeightedQuery(words, having | self._having(pairs), passages)

    def find(self, terms: Sequence[str], depth: int, near: int) -> CandidateSet:
        """The best `depth` passages by any of the terms, and the `near`est ones by vector."""
        matches = self._by_words(terms, depth) if depth else []
        nearest = self._by_vector(near)
        cosines = self._cosines(matches) | nearest
        rows = passage_rows(self._connection, list(dict.fromkeys([*matches, *nearest])))
        return CandidateSet(
            candidates=[_candidate(row, cosines.get(row.id)) for row in rows.values()],
            rows=rows,
            is_all=len(matches) < max(depth, 1) and len(nearest) < near,
        )

    def _by_words(self, terms: Sequence[str], depth: int) -> list[int]:
        having = self._having([term.lower() for term in terms])
        chosen = list(_rarest(having))
        rows = self._search(chosen, depth)
        if len(rows) < depth and len(chosen) < sum(map(bool, having.values())):
            rows += [row for row in self._search(list(having), depth) if row not in set(rows)]
        return rows[:depth]

    def _search(self, terms: Sequence[str], depth: int) -> list[int]:
        if not terms:
            return []
        return self._database.fulltext.search(self._connection, terms, self._eligible, depth)

    def _by_vector(self, near: int) -> dict[int, float]:
        if self._query_vector is None:
            return {}
        index, generation = self._database.vectors, self._query_vector.generation
        vector = self._query_vector.vector
        nearest = index.search(self._connection, generation, vector, self._eligible, near)
        return {passage.row: passage.similarity for passage in nearest}

    def _cosines(self, rows: Sequence[int]) -> dict[int, float]:
        if self._query_vector is None:
            return {}
        index, generation = self._database.vectors, self._query_vector.generation
        return index.similarities(self._connection, generation, self._query_vector.vector, rows)

    def _having(self, terms: Sequence[str]) -> dict[str, int]:
        cached = self._frequencies
        missing = sorted({term for term in terms if term not in cached})
        cached |= self._database.fulltext.frequencies(self._connection, missing)
        return {term: cached[term] for term in terms}


def _rarest(having: Mapping[str, int]) -> Iterable[str]:
    total = 0
    for term, count in sorted(having.items(), key=lambda item: (item[1], item[0])):
        if total and total + count > MAX_POSTINGS:
            return
        if count:
            total += count
            yield term


def passage_rows(connection: Connection, rows: Sequence[int]) -> dict[int, Row[Any]]:
    """The columns of passages for results, by their rows."""
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
        upload_jobs.c.name.label("file_name"),
    ).join(documents, document.uid == chunk.document_id)
    query = query.outerjoin(upload_jobs, upload_jobs.c.document_id == document.uid)
    return {row.id: row for row in select_in(connection, query, chunk.id, rows)}


def _candidate(row: Row[Any], cosine: float | None) -> Candidate:
    headings = headings_of(row.title, row.meta["locator"])
    title = f"{row.title}\n{row.file_name}" if row.file_name else row.title
    return Candidate(row=row.id, title=title, headings=headings, text=row.text, cosine=cosine)


MAX_CITATION_LENGTH: Final = 120
"""In characters; a longer query may mention a citation, but is not one."""


def cited(database: Database, query: Query, owner: UUID | None) -> Resolution | None:
    """The resolution of a query that is only a citation, an id or another name."""
    text = query.text.strip()
    # Names without a number are words as well, and words are searched for.
    has_number = any(map(str.isdigit, text[:MAX_CITATION_LENGTH]))
    if query.phrases or query.excluded or len(text) > MAX_CITATION_LENGTH or not has_number:
        return None
    # Patterns of citations take a tenth of a second to compile, and most queries are words.
    from fonds.search.lookup import is_citation  # noqa: PLC0415 — as above
    from fonds.search.resolve import resolve  # noqa: PLC0415 — as above

    resolution = resolve(database, text, owner=owner)
    is_whole = resolution.target is None or is_citation(text)
    return resolution if resolution.found and is_whole else None


def cited_passage(
    connection: Connection, resolution: Resolution, eligible: Select[Any]
) -> Row[Any] | None:
    """The passage of a resolution, in the edition that matches the filters; None if none does."""
    assert resolution.document is not None
    names = [resolution.document.id, *(each.id for each in resolution.editions)]
    chunk = document_chunk_buffer.c
    first = eligible.where(documents.c.id.in_(names)).order_by(chunk.chunk_ord)
    cited = first.where(chunk.chunk_ord == (resolution.passage or 0))
    rows = connection.scalars(cited).all() or connection.scalars(first.limit(1)).all()
    return next(iter(passage_rows(connection, rows[:1]).values()), None)


MAX_VALUES: Final = 30
"""The limit of values of one facet."""
_UNTITLED: Final = {"uploads": "Uploads"}


def facets_of(rows: Iterable[Row[Any]], registry: SourceRegistry, *, is_all: bool) -> Facets:
    """The facets of passages, by document; `is_all` unless there are more candidates."""
    documents = {row.document_id: row for row in rows}
    sources = Counter(row.source for row in documents.values())
    kinds = Counter(row.kind for row in documents.values())
    organizations = Counter(row.source_org for row in documents.values())
    years = Counter(row.published_at[:4] for row in documents.values() if row.published_at)
    return Facets(
        sources=_counts(sources, lambda name: _title(name, registry)),
        kinds=_counts(kinds, lambda kind: kind.replace("_", " ")),
        organizations=_counts(organizations),
        years=sorted(_counts(years), key=lambda count: count.value, reverse=True),
        jurisdictions=_counts(_jurisdictions(sources, registry)),
        counted=len(documents),
        is_all=is_all,
    )


def _jurisdictions(sources: Counter[str], registry: SourceRegistry) -> Counter[str]:
    jurisdictions: Counter[str] = Counter()
    for name, count in sources.items():
        if (source := registry.get(name)) and source.info.jurisdiction:
            jurisdictions[source.info.jurisdiction] += count
    return jurisdictions


def _title(name: str, registry: SourceRegistry) -> str:
    source = registry.get(name)
    return source.info.title if source else _UNTITLED.get(name, name)


def _counts(
    counted: Counter[str], label: Callable[[str], str] = lambda value: value
) -> list[FacetCount]:
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [
        FacetCount(value=value, label=label(value), count=count)
        for value, count in ordered[:MAX_VALUES]
    ]


MAX_RESULTS: Final = 1000
DEPTHS: Final = (200, 1000, 4000)
"""The numbers of passages that are ranked together. The results of a greater depth follow those of
the first one, so that pages follow each other whatever their sizes."""
NEAR: Final = 0.5
"""The fraction of the depth for vectors, if words are used as well."""
PER_DOCUMENT: Final = 3
MAX_PER_DOCUMENT: Final = 50
_NO_CANDIDATES: Final = CandidateSet(candidates=(), rows={}, is_all=True)


def search(
    database: Database,
    registry: SourceRegistry,
    query: str,
    filters: Filters,
    *,
    limit: int = 10,
    offset: int = 0,
    per_document: int = PER_DOCUMENT,
    query_vector: QueryVector | None = None,
    by_words: bool = True,
) -> SearchPage:
    """The best documents with their best passages, by words, by vector, or by both.

    Inside one document (`filters.document`) each result is one passage. The facets are of the
    candidates that were ranked first.
    """
    _check_range(limit, offset, per_document)
    ranked = _ranked(
        database, registry, query, filters, query_vector=query_vector, by_words=by_words
    )
    terms = read_query(query).search_terms
    with ranked as (first, best):
        matches = list(islice(best, offset, offset + limit))
        results = [_result(match, terms, per_document) for match in matches]
    return SearchPage(
        results=results, facets=facets_of(first.rows.values(), registry, is_all=first.is_all)
    )


def _check_range(limit: int, offset: int, per_document: int) -> None:
    if not 1 <= per_document <= MAX_PER_DOCUMENT:
        raise UsageError(f"per_document must be between 1 and {MAX_PER_DOCUMENT}")
    if not 1 <= limit <= MAX_RESULTS:
        raise UsageError(f"limit must be between 1 and {MAX_RESULTS}")
    if not 0 <= offset <= MAX_RESULTS - limit:
        raise UsageError(
            f"only the first {MAX_RESULTS} results are ranked: narrow the query or its filters"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Match:
    """The passages of a document that are candidates, best first; one of them inside a document."""

    rows: Sequence[Row[Any]]


@contextmanager
def _ranked(
    database: Database,
    registry: SourceRegistry,
    query: str,
    filters: Filters,
    *,
    query_vector: QueryVector | None,
    by_words: bool,
) -> Iterator[tuple[CandidateSet, Iterator[_Match]]]:
    """The first candidates, and all results in order, which may need a greater depth."""
    parsed = read_query(query)
    filters = filters.narrowed(parsed)
    if not parsed.search_terms and (query_vector is None or not parsed.text):
        if parsed.excluded:
            raise UsageError("the query only excludes words; add words to search for")
        yield _NO_CANDIDATES, iter(())
        return
    resolution = cited(database, parsed, filters.owner)
    with database.read() as connection:
        passages = eligible(connection, filters, registry).where(
            *database.fulltext.holding(parsed.phrases, parsed.excluded)
        )
        if resolution and (row := cited_passage(connection, resolution, passages)) is not None:
            yield replace(_NO_CANDIDATES, rows={row.id: row}), iter([_Match(rows=[row])])
            return
        finder = CandidateFinder(database, connection, passages, query_vector)
        sets = _candidate_sets(finder, parsed, by_words=by_words)
        first = next(sets)
        weighted = finder.weighted_query(parsed.text if by_words else "")
        best = _best_inside if filters.document else _best
        yield first, best(weighted, chain([first], sets))


def _candidate_sets(
    finder: CandidateFinder, query: Query, *, by_words: bool
) -> Iterator[CandidateSet]:
    """The candidates at growing depths, until there are no more."""
    for depth in DEPTHS:
        near = int(depth * NEAR) if by_words else depth
        candidates = finder.find(query.search_terms, depth if by_words else 0, near)
        yield candidates
        if candidates.is_all:
            return


def _best(query: WeightedQuery, sets: Iterable[CandidateSet]) -> Iterator[_Match]:
    """The best documents, each with its passages."""
    document_ids: set[str] = set()
    for each in sets:
        for document_id, candidates in _by_document(each, query.rank(each.candidates)).items():
            if document_id not in document_ids:
                document_ids.add(document_id)
                yield _Match(rows=[each.rows[row] for row in _inside(query, candidates)])


def _best_inside(query: WeightedQuery, sets: Iterable[CandidateSet]) -> Iterator[_Match]:
    """The best passages of one document."""
    yielded: set[int] = set()
    for each in sets:
        for row in _inside(query, each.candidates):
            if row not in yielded:
                yielded.add(row)
                yield _Match(rows=[each.rows[row]])


def _by_document(
    candidates: CandidateSet, ranked: Sequence[Score]
) -> Mapping[str, Sequence[Candidate]]:
    """The candidates of each document, which has the rank of its first one."""
    by_row = {each.row: each for each in candidates.candidates}
    by_document: dict[str, list[Candidate]] = defaultdict(list)
    for score in ranked:
        by_document[candidates.rows[score.row].document_id].append(by_row[score.row])
    return by_document


def _inside(query: WeightedQuery, candidates: Sequence[Candidate]) -> list[int]:
    """The rows of passages of one document, best first; its title tells them not apart."""
    if len(candidates) == 1:
        return [candidates[0].row]
    scores = query.among(candidates).rank(candidates)
    return [score.row for score in sorted(scores, key=lambda score: (-score.passage, score.row))]


def _result(match: _Match, terms: Sequence[str], per_document: int) -> RetrievalResult:
    passages = [_passage(row, terms) for row in match.rows[:per_document]]
    return RetrievalResult(
        id=match.rows[0].document_id,
        snippet=passages[0].snippet,
        citation=citation_of(match.rows[0]),
        passages=passages if len(passages) > 1 else [],
        more_passages=len(match.rows) - len(passages),
    )


def _passage(row: Row[Any], terms: Sequence[str]) -> RetrievedPassage:
    locator = _locator(row)
    snippet = snippet_of(row.text, terms, locator.lead_ins)
    return RetrievedPassage(snippet=snippet, passage=row.chunk_ord, locator=locator)


def _locator(row: Row[Any]) -> ChunkLocator:
    return ChunkLocator(passage=row.chunk_ord, **row.meta["locator"])


def citation_of(row: Row[Any]) -> Citation:
    """The citation of a passage, from its row and its document's."""
    return Citation(
        title=row.title,
        organization=row.source_org,
        url=row.source_url,
        published_at=date.fromisoformat(row.published_at[:10]) if row.published_at else None,
        citation_string=row.citation_string,
        locator=_locator(row),
    )


Mode = Literal["lexical", "semantic", "hybrid"]

_log = structlog.get_logger("fonds.search")


class QueryEmbedder:
    """Embeds search queries with the model of the searched generation; used by several threads."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._lock = Lock()
        self._opened: tuple[Generation, Embedder] | None = None

    def query_vector(self, query: str, mode: Mode | None) -> QueryVector | None:
        """The vector of a query; None to search by words only.

        Without a mode, vectors are used if there are any and their model is available; a mode that
        needs them fails otherwise.
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
            return QueryVector(generation=generation, vector=self._vector(generation, text))
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

        with self._lock:
            if self._opened is None or self._opened[0] != generation:
                self._opened = (generation, embedder_of(generation, self._settings))
            return self._opened[1]

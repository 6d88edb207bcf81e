"""Changing the model: another generation is filled, compared with the current one, and chosen.

Two generations are compared by the passages that both return for the same queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Final

from sqlalchemy import Connection, Select, select

from fonds.embed.base import Embedder, pack_vectors
from fonds.embed.generations import ensure_generation, mark_filled, switch
from fonds.embed.registry import open_embedder, open_pool
from fonds.embed.worker import EmbeddingReport, Watch, embedder_of, fill
from fonds.errors import EmbedError
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.database import Database
from fonds.stores.fulltext import visible_text
from fonds.stores.sqlite import batched
from fonds.stores.tables import code_units, document_chunk_buffer, documents
from fonds.stores.vectors import Generation, current_generation

TOP: Final = 10
SAMPLE: Final = 60
MAX_EXAMPLES: Final = 5
MAX_QUERY_LENGTH: Final = 200
QUERY_BATCH: Final = 64

# A sentence ends before a capital, so that "Pub. L. 117-58" rarely does.
_SENTENCE: Final = re.compile(r".{20,}?[.!?。](?=\s+[A-Z\"“]|\s*$|[^\s\d])", re.DOTALL)
_MARKUP: Final = re.compile(r"[#*_`>|\\\[\]]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddedQueries:
    """A generation, and the vectors of queries by its model."""

    generation: Generation
    vectors: Sequence[bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """The agreement of two generations for one query."""

    query: str
    shared: float
    """The fraction of the best passages that both return, from 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """The agreement of two generations for a sample of queries."""

    queries: int
    top: int
    mean: float
    worst: float
    most_different: tuple[Agreement, ...]


def compare(
    database: Database, before: EmbeddedQueries, after: EmbeddedQueries, queries: Sequence[str]
) -> Overlap | None:
    """The overlap of the best passages of two generations; None if neither returns any."""
    agreements: list[Agreement] = []
    with database.read() as connection:
        for query, first, second in zip(queries, before.vectors, after.vectors, strict=True):
            old = _nearest(database, connection, before.generation, first)
            new = _nearest(database, connection, after.generation, second)
            if count := max(len(old), len(new)):
                agreements.append(Agreement(query=query, shared=len(old & new) / count))
    if not agreements:
        return None
    agreements.sort(key=lambda agreement: (agreement.shared, agreement.query))
    return Overlap(
        queries=len(agreements),
        top=TOP,
        mean=sum(agreement.shared for agreement in agreements) / len(agreements),
        worst=agreements[0].shared,
        most_different=tuple(each for each in agreements[:MAX_EXAMPLES] if each.shared < 1),
    )


def query_vectors(embedder: Embedder, queries: Sequence[str]) -> list[bytes]:
    """The vectors of queries, in the form that the index is searched with."""
    vectors: list[bytes] = []
    for batch in batched(queries, QUERY_BATCH):
        embedded = embedder.embed(batch, "query").vectors
        stored = pack_vectors(embedded, len(batch), embedder.model.dims)
        vectors += [vector.data for vector in stored]
    return vectors


def sample_queries(database: Database, count: int = SAMPLE) -> list[str]:
    """Queries from the library itself: titles, headings and first sentences, always the same.

    The computed ids of documents serve as random numbers that are the same on every machine.
    """
    with database.read() as connection:
        return list(dict.fromkeys(_sampled(connection, count)))


def _sampled(connection: Connection, count: int) -> Iterator[str]:
    chunk, document = document_chunk_buffer.c, documents.c
    drawn = (
        select(document.uid, document.title)
        .where(*_searched())
        .order_by(document.uid)
        .limit(count)
        .subquery()
    )
    first = select(drawn.c.title, chunk.text, chunk.meta).join(
        drawn, (drawn.c.uid == chunk.document_id) & (chunk.chunk_ord == 0)
    )
    for number, row in enumerate(connection.execute(first.order_by(drawn.c.uid))):
        kinds = (_title(row), _heading(row), _first_sentence(row))
        if query := _query_of(kinds[number % len(kinds)]) or _query_of(_title(row)):
            yield query


def _title(row: Any) -> str:
    title: str = row.title
    return title


def _heading(row: Any) -> str:
    return "".join(row.meta["locator"].get("heading_path", ())[-1:])


def _first_sentence(row: Any) -> str:
    text = visible_text(row.text).lstrip()
    sentence = _SENTENCE.match(text[: 5 * MAX_QUERY_LENGTH])
    return sentence[0] if sentence else text


def _query_of(text: str) -> str:
    words = " ".join(_MARKUP.sub(" ", text).split())
    if len(words) <= MAX_QUERY_LENGTH:
        return words
    return words[:MAX_QUERY_LENGTH].rpartition(" ")[0] or words[:MAX_QUERY_LENGTH]


def _nearest(
    database: Database, connection: Connection, generation: Generation, query: bytes
) -> set[int]:
    nearest = database.vectors.search(connection, generation, query, _eligible(), TOP)
    return {passage.row for passage in nearest}


def _eligible() -> Select[Any]:
    chunk = document_chunk_buffer.c
    return (
        select(chunk.id).join(documents, documents.c.uid == chunk.document_id).where(*_searched())
    )


def _searched() -> tuple[Any, ...]:
    """The conditions of a search without filters."""
    document = documents.c
    newest = select(code_units.c.id).where(code_units.c.is_newest)
    in_force = document.unit.is_(None) | document.unit.in_(newest)
    return document.owner.is_(None), document.gone_at.is_(None), in_force


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    """The result of a change of the model."""

    generation: Generation
    """The generation of the requested model."""
    before: Generation
    """The generation that was searched until then."""
    filling: EmbeddingReport
    overlap: Overlap | None
    """None if there was nothing to compare, or for the reason in `not_compared`."""
    not_compared: str | None
    is_filled: bool
    """True if it has all vectors; else it is not chosen."""
    is_searched: bool
    """True if it is searched from now on."""
    waiting: int
    """Documents that were added meanwhile, and wait for its vectors."""


def migrate(
    database: Database,
    seams: Seams,
    settings: Settings,
    to: str,
    *,
    queries: Sequence[str] | None = None,
    workers: int | None = None,
    switching: bool = True,
    watch: Watch | None = None,
    stop: Event | None = None,
) -> Migration:
    """Fill a generation of another model, compare it by queries, and search it from then on.

    It can be interrupted and repeated: passages with a vector are not embedded again.
    """
    embedder = open_embedder(to, settings)
    generation = ensure_generation(database, seams, embedder, to)
    with database.read() as connection:
        before = current_generation(connection)
    assert before is not None
    with open_pool(to, embedder, settings, workers) as (pooled, concurrency):
        filling = fill(
            database,
            seams,
            pooled,
            generation,
            settings=settings,
            workers=concurrency,
            watch=watch,
            stop=stop,
        )
    is_filled = filling.ended is None and not filling.failed
    overlap, not_compared, waiting = None, None, 0
    if is_filled:
        mark_filled(database, seams, generation)
        overlap, not_compared = _compared(
            database, settings, before, generation, embedder=embedder, queries=queries
        )
        if switching:
            waiting = switch(database, seams, generation)
    return Migration(
        generation=generation,
        before=before,
        filling=filling,
        overlap=overlap,
        not_compared=not_compared,
        is_filled=is_filled,
        is_searched=generation.id == before.id or (is_filled and switching),
        waiting=waiting,
    )


def _compared(
    database: Database,
    settings: Settings,
    before: Generation,
    generation: Generation,
    *,
    embedder: Embedder,
    queries: Sequence[str] | None,
) -> tuple[Overlap | None, str | None]:
    if before.id == generation.id:
        return None, None
    if queries is None:
        queries = sample_queries(database)
    new = EmbeddedQueries(generation=generation, vectors=query_vectors(embedder, queries))
    try:
        vectors = query_vectors(embedder_of(before, settings), queries)
    except EmbedError as error:
        # A model that is not available any more is a good reason to change to another.
        return None, str(error)
    old = EmbeddedQueries(generation=before, vectors=vectors)
    return compare(database, old, new, queries), None

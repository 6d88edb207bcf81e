"""Changing the model: another generation is filled beside the first, compared, and chosen.

How much two generations agree: the passages both find for the same questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Final

from sqlalchemy import Connection, Select, select

from fonds.embed.base import Embedder, packed
from fonds.embed.generations import ensure_generation, mark_filled, switch
from fonds.embed.registry import at_work, open_embedder
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
SHOWN: Final = 5
LONGEST_QUERY: Final = 200
ASKED_AT_ONCE: Final = 64

# A sentence ends before a capital, so that "Pub. L. 117-58" rarely does.
_SENTENCE: Final = re.compile(r".{20,}?[.!?。](?=\s+[A-Z\"“]|\s*$|[^\s\d])", re.DOTALL)
_MARKUP: Final = re.compile(r"[#*_`>|\\\[\]]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddedQueries:
    """A generation, and the questions as its model sees them."""

    generation: Generation
    vectors: Sequence[bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """What two generations find for one question."""

    query: str
    shared: float
    """Part of the best passages that both find, from 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """What two generations find for a sample of questions."""

    queries: int
    top: int
    mean: float
    worst: float
    most_different: tuple[Agreement, ...]


def compare(
    database: Database, one: EmbeddedQueries, other: EmbeddedQueries, queries: Sequence[str]
) -> Overlap | None:
    """The overlap of the best passages of two generations; None if nothing is found by either."""
    found: list[Agreement] = []
    with database.read() as connection:
        for query, first, second in zip(queries, one.vectors, other.vectors, strict=True):
            mine = _nearest(database, connection, one.generation, first)
            theirs = _nearest(database, connection, other.generation, second)
            if most := max(len(mine), len(theirs)):
                found.append(Agreement(query=query, shared=len(mine & theirs) / most))
    if not found:
        return None
    found.sort(key=lambda each: (each.shared, each.query))
    return Overlap(
        queries=len(found),
        top=TOP,
        mean=sum(each.shared for each in found) / len(found),
        worst=found[0].shared,
        most_different=tuple(each for each in found[:SHOWN] if each.shared < 1),
    )


def query_vectors(embedder: Embedder, queries: Sequence[str]) -> list[bytes]:
    """Questions as a model sees them, ready to be searched with."""
    vectors: list[bytes] = []
    for batch in batched(queries, ASKED_AT_ONCE):
        made = embedder.embed(batch, "query").vectors
        vectors += [each.data for each in packed(made, len(batch), embedder.model.dims)]
    return vectors


def sample_queries(database: Database, count: int = SAMPLE) -> list[str]:
    """Questions made of the library itself: titles, headings and first sentences, always the same.

    The computed ids of documents are as good as drawn by lot, and the same on every machine.
    """
    with database.read() as connection:
        found = list(_sampled(connection, count))
    return list(dict.fromkeys(found))


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
        if query := _plain(kinds[number % len(kinds)]) or _plain(_title(row)):
            yield query


def _title(row: Any) -> str:
    title: str = row.title
    return title


def _heading(row: Any) -> str:
    return "".join(row.meta["locator"].get("heading_path", ())[-1:])


def _first_sentence(row: Any) -> str:
    text = visible_text(row.text).lstrip()
    sentence = _SENTENCE.match(text[: 5 * LONGEST_QUERY])
    return sentence[0] if sentence else text


def _plain(text: str) -> str:
    words = " ".join(_MARKUP.sub(" ", text).split())
    if len(words) <= LONGEST_QUERY:
        return words
    return words[:LONGEST_QUERY].rpartition(" ")[0] or words[:LONGEST_QUERY]


def _nearest(
    database: Database, connection: Connection, generation: Generation, query: bytes
) -> set[int]:
    near = database.vectors.search(connection, generation, query, _eligible(), TOP)
    return {each.row for each in near}


def _eligible() -> Select[Any]:
    chunk = document_chunk_buffer.c
    return (
        select(chunk.id).join(documents, documents.c.uid == chunk.document_id).where(*_searched())
    )


def _searched() -> tuple[Any, ...]:
    """What a search without filters looks at."""
    document = documents.c
    newest = select(code_units.c.id).where(code_units.c.is_newest)
    in_force = document.unit.is_(None) | document.unit.in_(newest)
    return document.owner.is_(None), document.gone_at.is_(None), in_force


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    """What came of a change of the model."""

    generation: Generation
    """The one that was asked for."""
    before: Generation
    """The one that was searched until then."""
    filling: EmbeddingReport
    overlap: Overlap | None
    """None if there was nothing to compare, or `not_compared` says why."""
    not_compared: str | None
    is_filled: bool
    """A generation that lacks vectors is not switched to."""
    is_searched: bool
    """Whether it is the one that is searched from now on."""
    waiting: int
    """Documents that came meanwhile, and wait for vectors of it."""


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
    """Fill a generation of another model, compare it on questions, and search it from then on.

    Safe to kill and to repeat: what has a vector is not embedded again.
    """
    embedder = open_embedder(to, settings)
    generation = ensure_generation(database, seams, embedder, to)
    with database.read() as connection:
        before = current_generation(connection)
    assert before is not None
    with at_work(to, embedder, settings, workers) as (asked, at_once):
        filling = fill(
            database,
            seams,
            asked,
            generation,
            settings=settings,
            workers=at_once,
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
    asked = sample_queries(database) if queries is None else queries
    new = EmbeddedQueries(generation=generation, vectors=query_vectors(embedder, asked))
    try:
        vectors = query_vectors(embedder_of(before, settings), asked)
    except EmbedError as error:
        # A model that is gone is a good reason to change to another, and none to stay.
        return None, str(error)
    return compare(database, EmbeddedQueries(generation=before, vectors=vectors), new, asked), None

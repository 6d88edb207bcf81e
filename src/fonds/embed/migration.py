"""Changing the model: another generation is filled beside the first, compared, and chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event

from fonds.embed.apart import at_work
from fonds.embed.base import Embedder
from fonds.embed.current import embedder_of
from fonds.embed.generations import ensure_generation, mark_filled, switch
from fonds.embed.overlap import Asked, Overlap, compare, query_vectors, sample_queries
from fonds.embed.registry import open_embedder
from fonds.embed.worker import EmbeddingReport, Watch, fill
from fonds.errors import EmbedError
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.database import Database
from fonds.stores.vectors import Generation, current_generation


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
    new = Asked(generation=generation, vectors=query_vectors(embedder, asked))
    try:
        vectors = query_vectors(embedder_of(before, settings), asked)
    except EmbedError as error:
        # A model that is gone is a good reason to change to another, and none to stay.
        return None, str(error)
    return compare(database, Asked(generation=before, vectors=vectors), new, asked), None

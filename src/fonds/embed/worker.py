"""Draining the embedding queue, and filling a generation without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event

from fonds.embed.base import Embedder
from fonds.embed.calls import Calls, Restraint
from fonds.embed.desk import PAGE, Desk
from fonds.embed.standstill import noted
from fonds.embed.workshop import GONE, Workshop
from fonds.errors import UsageError
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores import queues
from fonds.stores.database import Database
from fonds.stores.embedding import Passage, documents_lacking, lacking_after
from fonds.stores.tables import ingestion_embedding_queue
from fonds.stores.vectors import Generation

Watch = Callable[[int, int], None]
"""Told how many documents are done so far, and how many passages have got a vector."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingReport:
    """What came of draining the queue, or of filling a generation."""

    done: int
    """Documents all of whose passages have a vector now; a fill does not count them."""
    embedded: int
    """Passages whose text was sent to the model, and whose vector is stored."""
    reused: int
    """Passages that got the vector of an equal text."""
    tokens: int
    requests: int
    retries: int
    cost: float
    """USD"""
    failed: int
    """Documents with a passage the model cannot embed; tried again next time."""
    waiting: int
    given_up: int
    ended: str | None
    """Why it ended before everything was tried; None if nothing was left to try."""


def drain(
    database: Database,
    seams: Seams,
    embedder: Embedder,
    generation: Generation,
    *,
    settings: Settings,
    workers: int = 1,
    limit: int | None = None,
    watch: Watch | None = None,
    stop: Event | None = None,
    restraint: Restraint | None = None,
) -> EmbeddingReport:
    """Embed what waits, each document once, until nothing is left that may be tried now.

    `stop` ends it between batches; `restraint` is for those who drain again and again.
    """
    _require_model_of(generation, embedder)
    calls = Calls(embedder, seams, settings, stop=stop, restraint=restraint)
    calls.restraint.breaker.tell = noted(database, generation.name, seams.clock)
    desk = Desk(database, seams, generation, limit)
    shop = Workshop(
        database,
        seams,
        calls,
        generation,
        workers=workers,
        settled=desk.settled,
        tick=desk.tick,
    )
    try:
        with shop:
            _work_off(shop, desk.pages(), lambda: _tell(watch, desk.done + desk.failed, shop))
    finally:
        desk.close()
    _tell(watch, desk.done + desk.failed, shop)
    with database.read() as connection:
        left = queues.depth(connection, ingestion_embedding_queue)
    return _report(shop, done=desk.done, failed=desk.failed, **left)


def fill(
    database: Database,
    seams: Seams,
    embedder: Embedder,
    generation: Generation,
    *,
    settings: Settings,
    workers: int = 1,
    watch: Watch | None = None,
    stop: Event | None = None,
    restraint: Restraint | None = None,
) -> EmbeddingReport:
    """Embed every passage that has no vector of a generation, whoever waits for it.

    Of its report `waiting` is the number of documents it did not get to.
    """
    _require_model_of(generation, embedder)
    failed: set[str] = set()

    def settled(passage: Passage, cause: str | None) -> None:
        if cause is not None and cause is not GONE:
            failed.add(passage.document)

    calls = Calls(embedder, seams, settings, stop=stop, restraint=restraint)
    calls.restraint.breaker.tell = noted(database, generation.name, seams.clock)
    shop = Workshop(
        database,
        seams,
        calls,
        generation,
        workers=workers,
        settled=settled,
    )
    with shop:
        _work_off(shop, _all_pages(database, generation), lambda: _tell(watch, 0, shop))
    _tell(watch, 0, shop)
    waiting = 0
    if shop.ended is not None:
        with database.read() as connection:
            waiting = documents_lacking(connection, generation) - len(failed)
    return _report(shop, done=0, failed=len(failed), waiting=waiting, given_up=0)


def _work_off(shop: Workshop, pages: Iterable[Sequence[Passage]], tell: Callable[[], None]) -> None:
    for page in pages:
        shop.take(page)
        tell()
        if shop.ended is not None:
            return
    shop.finish()


def _tell(watch: Watch | None, documents: int, shop: Workshop) -> None:
    if watch is not None:
        watch(documents, shop.tally.embedded + shop.tally.reused)


def _require_model_of(generation: Generation, embedder: Embedder) -> None:
    model = embedder.model
    if (model.name, model.version, model.dims) != (
        generation.name,
        generation.version,
        generation.dims,
    ):
        raise UsageError(
            f"{model.name} {model.version} cannot add to the vectors of {generation.name}"
            f" {generation.version}; another model needs `fonds embed migrate`"
        )


def _all_pages(database: Database, generation: Generation) -> Iterator[list[Passage]]:
    after = 0
    while True:
        with database.read() as connection:
            page = lacking_after(connection, generation, after, PAGE)
        if not page:
            return
        after = page[-1].row
        yield page


def _report(
    shop: Workshop, *, done: int, failed: int, waiting: int, given_up: int
) -> EmbeddingReport:
    tally = shop.tally
    return EmbeddingReport(
        done=done,
        embedded=tally.embedded,
        reused=tally.reused,
        tokens=tally.tokens,
        requests=tally.requests,
        retries=tally.retries,
        cost=tally.cost,
        failed=failed,
        waiting=waiting,
        given_up=given_up,
        ended=shop.ended,
    )

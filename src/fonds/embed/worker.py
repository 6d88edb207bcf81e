"""Draining the embedding queue, and filling a generation without one.

Documents of the embedding queue: claimed, read page by page, and given back as they end.

The generation that is searched: its model, and bringing it up to date.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Final
from uuid import UUID, uuid4

from sqlalchemy import Connection, Row

from fonds import ids
from fonds.embed.base import Embedder
from fonds.embed.batches import GONE, MAX_TEXTS, Transaction, Workshop
from fonds.embed.client import Calls, Restraint, noted
from fonds.embed.generations import ensure_generation
from fonds.embed.registry import at_work, open_embedder
from fonds.errors import EmbedError, ModelMissingError, RetryableEmbedError, UsageError
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores import leases
from fonds.stores.database import Database
from fonds.stores.tables import ingestion_embedding_queue
from fonds.stores.tables import ingestion_embedding_queue as queue
from fonds.stores.vector_buffer import (
    PendingPassage,
    count_pending_documents,
    passage_counts,
    pending,
    pending_after,
    pending_of_document,
    pending_staged,
)
from fonds.stores.vectors import Generation, current_generation

CLAIMED_AT_ONCE: Final = 200
PAGE: Final = 512
"""Passages read at a time, so that a title of the Code never sits in memory."""
RENEWED_AFTER: Final = leases.LEASE.total_seconds() / 3


@dataclass(slots=True)
class _Claimed:
    """A document that this drain works on."""

    row: Row[Any]
    waiting: int = 0
    """Passages that were read and are not settled."""
    is_read: bool = False
    cause: str | None = None
    """Why one of its passages has no vector."""


class EmbeddingQueue:
    """Hands out the passages of documents that wait, and takes note of how each document ends.

    A document is tried once; its row is removed when all its passages have a vector, unless it
    has been queued anew meanwhile. Used by one thread.
    """

    def __init__(
        self, database: Database, seams: Seams, generation: Generation, limit: int | None
    ) -> None:
        self._database = database
        self._clock = seams.clock
        self._generation = generation
        self._left = limit
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._begun = self._clock.now()
        self._renewed = self._clock.monotonic()
        self._open: dict[str, _Claimed] = {}
        self._ready: list[Row[Any]] = []
        self._causes: dict[Row[Any], str] = {}
        self.done = 0
        self.failed = 0

    def pages(self) -> Iterator[list[PendingPassage]]:
        """The passages without a vector of all documents that may be tried now."""
        while rows := self._claim():
            names = {ids.document_uid(row.record_id): row.record_id for row in rows}
            with self._database.read() as connection:
                counts = passage_counts(connection, list(names))
            for group in _groups(names, counts):
                yield from self._read(group, is_long=counts.get(next(iter(group)), 0) > PAGE)

    def settled(self, passage: PendingPassage, cause: str | None) -> None:
        """Take note of what became of a passage."""
        claimed = self._open[passage.document]
        claimed.waiting -= 1
        claimed.cause = claimed.cause or cause
        self._close_if_done(claimed)

    def tick(self) -> None:
        """Keep what is being worked on, now and then."""
        now = self._clock.monotonic()
        if now - self._renewed < RENEWED_AFTER:
            return
        self._renewed = now
        held = [claimed.row for claimed in self._open.values()]
        with self._database.write() as connection:
            leases.renew(connection, queue, held, self._owner, self._clock.now())

    def close(self) -> None:
        """Give everything back: what is done, what failed, and what nobody got to."""
        with self._database.write() as connection:
            self._hand_in(connection)
            rest = [claimed.row for claimed in self._open.values()]
            leases.release(connection, queue, rest, self._owner)

    def _claim(self) -> Sequence[Row[Any]]:
        size = CLAIMED_AT_ONCE if self._left is None else min(CLAIMED_AT_ONCE, self._left)
        if size <= 0:
            return ()
        now = self._clock.now()
        with self._database.write() as connection:
            self._hand_in(connection)
            if not self._is_current(connection):
                return ()
            rows = leases.claim(
                connection, queue, self._owner, now, size, untried_since=self._begun
            )
        self._open |= {row.record_id: _Claimed(row) for row in rows}
        if self._left is not None:
            self._left -= len(rows)
        return rows

    def _is_current(self, connection: Connection) -> bool:
        """Whether vectors of this generation are still what the queue asks for."""
        current = current_generation(connection)
        return current is None or current.id == self._generation.id

    def _hand_in(self, connection: Connection) -> None:
        if not self._is_current(connection):
            leases.release(connection, queue, self._ready, self._owner)
            self._ready = []
        self.done += leases.finish_all(connection, queue, self._ready, self._owner)
        leases.fail_all(connection, queue, self._causes, self._owner)
        self._ready, self._causes = [], {}

    def _read(self, names: Mapping[UUID, str], *, is_long: bool) -> Iterator[list[PendingPassage]]:
        if is_long:
            yield from self._read_long(*next(iter(names.items())))
            return
        with self._database.read() as connection:
            page = pending(connection, self._generation, list(names))
        found = Counter(passage.document for passage in page)
        for name in names.values():
            self._note_read(name, found[name], is_read=True)
        if page:
            yield page

    def _read_long(self, uid: UUID, name: str) -> Iterator[list[PendingPassage]]:
        after, more = -1, True
        while more:
            with self._database.read() as connection:
                page = pending_of_document(connection, self._generation, uid, after, PAGE)
            more = len(page) == PAGE
            self._note_read(name, len(page), is_read=not more)
            if page:
                after = page[-1].ordinal
                yield page

    def _note_read(self, name: str, count: int, *, is_read: bool) -> None:
        claimed = self._open[name]
        claimed.waiting += count
        claimed.is_read = is_read
        self._close_if_done(claimed)

    def _close_if_done(self, claimed: _Claimed) -> None:
        # One that has changed meanwhile stays open until all are released.
        if not claimed.is_read or claimed.waiting or claimed.cause is GONE:
            return
        del self._open[claimed.row.record_id]
        if claimed.cause is None:
            self._ready.append(claimed.row)
        else:
            self._causes[claimed.row] = claimed.cause.replace("\0", "\ufffd")
            self.failed += 1


def _groups(names: Mapping[UUID, str], counts: Mapping[UUID, int]) -> Iterator[dict[UUID, str]]:
    """Documents to be read together, in their order: about a page of passages, or one long one."""
    group: dict[UUID, str] = {}
    size = 0
    for uid, name in names.items():
        count = counts.get(uid, 0)
        if group and size + count > PAGE:
            yield group
            group, size = {}, 0
        group[uid] = name
        size += count
    if group:
        yield group


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
    desk = EmbeddingQueue(database, seams, generation, limit)
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
        left = leases.depth(connection, ingestion_embedding_queue)
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

    def settled(passage: PendingPassage, cause: str | None) -> None:
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
            waiting = count_pending_documents(connection, generation) - len(failed)
    return _report(shop, done=0, failed=len(failed), waiting=waiting, given_up=0)


def embed_document(
    database: Database,
    seams: Seams,
    calls: Calls,
    generation: Generation,
    document: UUID,
    *,
    run_id: UUID,
    transaction: Transaction,
) -> int:
    """Embed the next passages without a vector of a document that is not published yet.

    Returns how many there were. Their vectors are stored in batches, each in a `transaction`.
    Raises EmbedError if a passage cannot be embedded, RetryableEmbedError if none can for now.
    """
    with database.read() as connection:
        name = ids.upload_id(document)
        page = pending_staged(connection, generation, name, document, MAX_TEXTS)
    left, errors = len(page), list[str]()

    def record(passage: PendingPassage, cause: str | None) -> None:
        nonlocal left
        left -= 1
        if cause is not None and cause is not GONE:
            errors.append(f"the model cannot embed passage {passage.ordinal}: {cause}")

    shop = Workshop(
        database,
        seams,
        calls,
        generation,
        workers=1,
        settled=record,
        run_id=run_id,
        transaction=transaction,
        is_indexed=False,
    )
    with shop:
        shop.take(page)
        shop.finish()
    if errors:
        raise EmbedError(errors[0])
    if left and shop.ended is not None:
        raise RetryableEmbedError(shop.ended)
    return len(page)


def _work_off(
    shop: Workshop, pages: Iterable[Sequence[PendingPassage]], tell: Callable[[], None]
) -> None:
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


def _all_pages(database: Database, generation: Generation) -> Iterator[list[PendingPassage]]:
    after = 0
    while True:
        with database.read() as connection:
            page = pending_after(connection, generation, after, PAGE)
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


def embed_waiting(
    database: Database,
    seams: Seams,
    settings: Settings,
    *,
    workers: int | None = None,
    limit: int | None = None,
    watch: Watch | None = None,
    stop: Event | None = None,
) -> EmbeddingReport:
    """Make the vectors of documents that wait, by the model whose generation is searched.

    A library without any gets its first generation, of the model in the settings.
    """
    generation = ensure_current(database, seams, settings)
    embedder = embedder_of(generation, settings)
    with at_work(generation.embedder, embedder, settings, workers) as (asked, at_once):
        return drain(
            database,
            seams,
            asked,
            generation,
            settings=settings,
            workers=at_once,
            limit=limit,
            watch=watch,
            stop=stop,
        )


def ensure_current(database: Database, seams: Seams, settings: Settings) -> Generation:
    """The generation that is searched; the first one of a library is made by the settings."""
    with database.read() as connection:
        generation = current_generation(connection)
    if generation is not None:
        return generation
    ensure_generation(
        database, seams, open_embedder(settings.embedder, settings), settings.embedder
    )
    with database.read() as connection:
        generation = current_generation(connection)  # another process may have been first
    assert generation is not None
    return generation


def embedder_of(generation: Generation, settings: Settings) -> Embedder:
    """The very model that made a generation; its vectors cannot be compared with another's."""
    embedder = open_embedder(generation.embedder, settings)
    model = embedder.model
    if (model.name, model.version) != (generation.name, generation.version):
        raise ModelMissingError(
            f"the vectors were made by {generation.name} {generation.version}, but"
            f" {generation.embedder} is {model.name} {model.version} here: run"
            f" `fonds embed migrate --to {generation.embedder}`, or bring the former back"
        )
    return embedder

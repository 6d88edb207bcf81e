"""Making vectors: of the embedding queue, of a whole generation, or of one new document.

Documents of the queue are claimed, read page by page, and released as they end.
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
from fonds.embed.batches import CHANGED, MAX_TEXTS, BatchEmbedder, Transaction
from fonds.embed.client import EmbeddingClient, Endpoints, EndpointState, breaker_recorder
from fonds.embed.generations import ensure_generation
from fonds.embed.registry import open_embedder, open_pool
from fonds.errors import (
    BreakerOpenError,
    EmbedError,
    EndpointRefusedError,
    ModelMissingError,
    RetryableEmbedError,
    UsageError,
)
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores import leases
from fonds.stores.database import Database, repeatable
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

CLAIM_SIZE: Final = 200
PAGE_SIZE: Final = 512
"""Passages read at a time, so that the largest documents need little memory."""
RENEWAL_SECONDS: Final = leases.LEASE.total_seconds() / 3


@dataclass(slots=True)
class _Claimed:
    """A document that this drain works on."""

    row: Row[Any]
    waiting: int = 0
    """Passages that were read and have no result."""
    is_read: bool = False
    error: str | None = None
    """The reason why one of its passages has no vector."""


class EmbeddingQueue:
    """Reads the passages of queued documents, and records the result of each document.

    A document is tried once; its row is removed when all its passages have a vector, unless it
    has been queued again meanwhile. Used by one thread.
    """

    def __init__(
        self, database: Database, seams: Seams, generation: Generation, limit: int | None
    ) -> None:
        self._database = database
        self._clock = seams.clock
        self._generation = generation
        self._left = limit
        self._owner = f"{os.uname().nodename}:{os.getpid()}:{uuid4()}"
        self._started = self._clock.now()
        self._renewed = self._clock.monotonic()
        self._open: dict[str, _Claimed] = {}
        self._ready: list[Row[Any]] = []
        self._errors: dict[Row[Any], str] = {}
        self.done = 0
        self.failed = 0

    def pages(self) -> Iterator[list[PendingPassage]]:
        """The passages without a vector of all documents that can be claimed now."""
        while rows := self._claim():
            names = {ids.document_uid(row.record_id): row.record_id for row in rows}
            with self._database.read() as connection:
                counts = passage_counts(connection, list(names))
            for group in _groups(names, counts):
                yield from self._read(group, is_long=counts.get(next(iter(group)), 0) > PAGE_SIZE)

    def record(self, passage: PendingPassage, error: str | None) -> None:
        """Record the result of a passage."""
        claimed = self._open[passage.document]
        claimed.waiting -= 1
        claimed.error = claimed.error or error
        self._close_if_done(claimed)

    @repeatable
    def tick(self) -> None:
        """Renew the leases on open documents, if it is time."""
        now = self._clock.monotonic()
        if now - self._renewed < RENEWAL_SECONDS:
            return
        self._renewed = now
        rows = [claimed.row for claimed in self._open.values()]
        with self._database.write() as connection:
            leases.renew(connection, queue, rows, self._owner, self._clock.now())

    @repeatable
    def close(self) -> None:
        """Record the results so far, and release the documents without one."""
        with self._database.write() as connection:
            done = self._store_results(connection)
            rest = [claimed.row for claimed in self._open.values()]
            leases.release(connection, queue, rest, self._owner)
        self._forget_results(done)

    @repeatable
    def _claim(self) -> Sequence[Row[Any]]:
        size = CLAIM_SIZE if self._left is None else min(CLAIM_SIZE, self._left)
        if size <= 0:
            return ()
        rows: Sequence[Row[Any]] = ()
        with self._database.write() as connection:
            now = self._clock.now()
            done = self._store_results(connection)
            if self._is_current(connection):
                rows = leases.claim(
                    connection, queue, self._owner, now, size, untried_since=self._started
                )
        self._forget_results(done)
        self._open |= {row.record_id: _Claimed(row) for row in rows}
        if self._left is not None:
            self._left -= len(rows)
        return rows

    def _is_current(self, connection: Connection) -> bool:
        """Whether this generation is still the one that is searched."""
        current = current_generation(connection)
        return current is None or current.id == self._generation.id

    def _store_results(self, connection: Connection) -> int:
        """Store the results so far; returns the number of finished documents."""
        done = 0
        if self._is_current(connection):
            done = leases.finish_all(connection, queue, self._ready, self._owner)
        else:
            leases.release(connection, queue, self._ready, self._owner)
        leases.fail_all(connection, queue, self._errors, self._owner)
        return done

    def _forget_results(self, done: int) -> None:
        """Count results whose transaction was committed."""
        self.done += done
        self._ready, self._errors = [], {}

    def _read(self, names: Mapping[UUID, str], *, is_long: bool) -> Iterator[list[PendingPassage]]:
        if is_long:
            yield from self._read_long(*next(iter(names.items())))
            return
        with self._database.read() as connection:
            page = pending(connection, self._generation, list(names))
        counts = Counter(passage.document for passage in page)
        for name in names.values():
            self._add_waiting(name, counts[name], is_read=True)
        if page:
            yield page

    def _read_long(self, uid: UUID, name: str) -> Iterator[list[PendingPassage]]:
        after, more = -1, True
        while more:
            with self._database.read() as connection:
                page = pending_of_document(connection, self._generation, uid, after, PAGE_SIZE)
            more = len(page) == PAGE_SIZE
            self._add_waiting(name, len(page), is_read=not more)
            if page:
                after = page[-1].ordinal
                yield page

    def _add_waiting(self, name: str, count: int, *, is_read: bool) -> None:
        claimed = self._open[name]
        claimed.waiting += count
        claimed.is_read = is_read
        self._close_if_done(claimed)

    def _close_if_done(self, claimed: _Claimed) -> None:
        # A document that has changed meanwhile stays open until `close` releases it.
        if not claimed.is_read or claimed.waiting or claimed.error is CHANGED:
            return
        del self._open[claimed.row.record_id]
        if claimed.error is None:
            self._ready.append(claimed.row)
        else:
            self._errors[claimed.row] = claimed.error.replace("\0", "\ufffd")
            self.failed += 1


def _groups(names: Mapping[UUID, str], counts: Mapping[UUID, int]) -> Iterator[dict[UUID, str]]:
    """Documents that are read together, in order: about a page of passages, or a long document."""
    group: dict[UUID, str] = {}
    size = 0
    for uid, name in names.items():
        count = counts.get(uid, 0)
        if group and size + count > PAGE_SIZE:
            yield group
            group, size = {}, 0
        group[uid] = name
        size += count
    if group:
        yield group


Watch = Callable[[int, int], None]
"""Called with the numbers of finished documents and of passages with a new vector."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingReport:
    """The result of draining the queue, or of filling a generation."""

    done: int
    """Documents whose passages all have a vector now; `fill` does not count them."""
    embedded: int
    """Passages whose text was sent to the model and whose vector is stored."""
    reused: int
    """Passages with the vector of an equal text."""
    tokens: int
    requests: int
    retries: int
    cost: float
    """USD"""
    failed: int
    """Documents with a passage that the model cannot embed; retried next time."""
    waiting: int
    given_up: int
    ended: str | None
    """The reason why it ended early; None if everything was tried."""


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
    endpoint: EndpointState | None = None,
) -> EmbeddingReport:
    """Embed the queued documents, each once, until none can be claimed.

    `stop` ends it between batches; `endpoint` shares limits between several drains.
    """
    _require_model_of(generation, embedder)
    client = EmbeddingClient(embedder, seams, settings, stop=stop, endpoint=endpoint)
    client.endpoint.breaker.on_change = breaker_recorder(database, generation.name, seams.clock)
    documents = EmbeddingQueue(database, seams, generation, limit)
    batches = BatchEmbedder(
        database,
        seams,
        client,
        generation,
        workers=workers,
        on_result=documents.record,
        tick=documents.tick,
    )

    def report_progress() -> None:
        _report_progress(watch, documents.done + documents.failed, batches)

    try:
        with batches:
            _embed_pages(batches, documents.pages(), report_progress)
    finally:
        documents.close()
    report_progress()
    with database.read() as connection:
        left = leases.depth(connection, queue)
    return _report(batches, done=documents.done, failed=documents.failed, **left)


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
    endpoint: EndpointState | None = None,
) -> EmbeddingReport:
    """Embed every passage that has no vector of a generation, queued or not.

    In its report `waiting` is the number of documents that it did not reach.
    """
    _require_model_of(generation, embedder)
    failed: set[str] = set()

    def record(passage: PendingPassage, error: str | None) -> None:
        if error is not None and error is not CHANGED:
            failed.add(passage.document)

    client = EmbeddingClient(embedder, seams, settings, stop=stop, endpoint=endpoint)
    client.endpoint.breaker.on_change = breaker_recorder(database, generation.name, seams.clock)
    batches = BatchEmbedder(database, seams, client, generation, workers=workers, on_result=record)
    with batches:
        _embed_pages(
            batches,
            _all_pages(database, generation),
            lambda: _report_progress(watch, 0, batches),
        )
    _report_progress(watch, 0, batches)
    waiting = 0
    if batches.ended is not None:
        with database.read() as connection:
            waiting = count_pending_documents(connection, generation) - len(failed)
    return _report(batches, done=0, failed=len(failed), waiting=waiting, given_up=0)


def embed_document(
    database: Database,
    seams: Seams,
    client: EmbeddingClient,
    generation: Generation,
    document: UUID,
    *,
    run_id: UUID,
    transaction: Transaction,
) -> int:
    """Embed the next passages without a vector of a document that is not published yet.

    Returns how many there were. Their vectors are stored in batches, each in a `transaction`.
    Raises EmbedError if a passage cannot be embedded, EndpointRefusedError if none can,
    RetryableEmbedError if none can for now, and BreakerOpenError if nothing was asked.
    """
    with database.read() as connection:
        name = ids.upload_id(document)
        page = pending_staged(connection, generation, name, document, MAX_TEXTS)
    left, errors = len(page), list[str]()

    def record(passage: PendingPassage, error: str | None) -> None:
        nonlocal left
        left -= 1
        if error is not None and error is not CHANGED:
            errors.append(f"the model cannot embed passage {passage.ordinal}: {error}")

    batches = BatchEmbedder(
        database,
        seams,
        client,
        generation,
        workers=1,
        on_result=record,
        run_id=run_id,
        transaction=transaction,
        is_indexed=False,
    )
    with batches:
        batches.add(page)
        batches.finish()
    if errors:
        raise EmbedError(errors[0])
    if left and batches.ended is not None:
        raise _ending(batches)
    return len(page)


def _ending(batches: BatchEmbedder) -> EmbedError:
    """The error that tells the caller whether to try again, and whether this was a try at all."""
    error = batches.error
    was_tried = batches.counts.requests > 0
    if isinstance(error, EndpointRefusedError) or (
        isinstance(error, BreakerOpenError) and not was_tried
    ):
        return error
    return RetryableEmbedError(batches.ended or "")


def _embed_pages(
    batches: BatchEmbedder,
    pages: Iterable[Sequence[PendingPassage]],
    report_progress: Callable[[], None],
) -> None:
    for page in pages:
        batches.add(page)
        report_progress()
        if batches.ended is not None:
            return
    batches.finish()


def _report_progress(watch: Watch | None, documents: int, batches: BatchEmbedder) -> None:
    if watch is not None:
        watch(documents, batches.counts.embedded + batches.counts.reused)


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
            page = pending_after(connection, generation, after, PAGE_SIZE)
        if not page:
            return
        after = page[-1].row
        yield page


def _report(
    batches: BatchEmbedder, *, done: int, failed: int, waiting: int, given_up: int
) -> EmbeddingReport:
    counts = batches.counts
    return EmbeddingReport(
        done=done,
        embedded=counts.embedded,
        reused=counts.reused,
        tokens=counts.tokens,
        requests=counts.requests,
        retries=counts.retries,
        cost=counts.cost,
        failed=failed,
        waiting=waiting,
        given_up=given_up,
        ended=batches.ended,
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
    endpoints: Endpoints | None = None,
) -> EmbeddingReport:
    """Make the vectors of queued documents, by the model of the generation that is searched.

    The first generation of a library is created with the model of the settings. `endpoints` are
    those of all clients of this process.
    """
    generation = ensure_current(database, seams, settings)
    embedder = embedder_of(generation, settings)
    with open_pool(generation.embedder, embedder, settings, workers) as (pooled, concurrency):
        return drain(
            database,
            seams,
            pooled,
            generation,
            settings=settings,
            workers=concurrency,
            limit=limit,
            watch=watch,
            stop=stop,
            endpoint=(endpoints or Endpoints()).of(embedder, seams, settings),
        )


@repeatable
def ensure_current(database: Database, seams: Seams, settings: Settings) -> Generation:
    """The generation that is searched; the first one is created with the model of the settings."""
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
    """The model that made a generation; only its vectors can be compared with them."""
    embedder = open_embedder(generation.embedder, settings)
    model = embedder.model
    if (model.name, model.version) != (generation.name, generation.version):
        raise ModelMissingError(
            f"the vectors were made by {generation.name} {generation.version}, but"
            f" {generation.embedder} is {model.name} {model.version} here: run"
            f" `fonds embed migrate --to {generation.embedder}`, or restore the earlier version"
        )
    return embedder

"""Embedding in batches: as many texts as one request takes, each distinct text once.

One thread gathers the passages; others embed the batches and store their vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Final, ParamSpec, Self, TypeVar
from uuid import UUID

from sqlalchemy import Connection

from fonds.embed.client import EmbeddingClient, EmbeddingResult
from fonds.embed.costs import costs_of_documents, price_of
from fonds.errors import EmbedError
from fonds.seams import Seams
from fonds.stores.database import Database, repeatable
from fonds.stores.vector_buffer import (
    BatchCost,
    PendingPassage,
    StoredVector,
    buffer_vectors,
    record_costs,
    store_vectors,
    vector_sha,
    vectors_of_texts,
)
from fonds.stores.vectors import Generation

MAX_TEXTS: Final = 256
MAX_TWINS: Final = 1024
"""The limit of passages that wait for the vector of an equal text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageBatch:
    """Passages for one request."""

    leaders: Sequence[PendingPassage]
    """The passages whose texts are sent; no two are equal."""
    twins: Sequence[PendingPassage]
    """The passages with the text of a leader, which get its vector."""


class BatchBuilder:
    """Collects passages into batches; used by one thread."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._leaders: dict[str, PendingPassage] = {}
        self._twins: list[PendingPassage] = []
        self._tokens = 0
        self._sent: set[str] = set()
        self._late: list[PendingPassage] = []

    @property
    def is_full(self) -> bool:
        """Whether too many passages wait for a text that was sent."""
        return len(self._late) >= MAX_TWINS

    def add(self, passage: PendingPassage) -> PassageBatch | None:
        """Add a passage; returns a batch if one is full."""
        if passage.sha in self._sent:
            self._late.append(passage)
            return None
        if passage.sha in self._leaders:
            self._twins.append(passage)
            return self.close() if len(self._twins) >= MAX_TWINS else None
        overflows = self._tokens + passage.tokens > self._max_tokens
        full = self.close() if overflows or len(self._leaders) >= MAX_TEXTS else None
        self._leaders[passage.sha] = passage
        self._tokens += passage.tokens
        return full

    def close(self) -> PassageBatch | None:
        """The batch that was collected so far; its texts count as sent from now on."""
        if not self._leaders:
            return None
        batch = PassageBatch(leaders=list(self._leaders.values()), twins=self._twins)
        self._sent.update(self._leaders)
        self._leaders, self._twins, self._tokens = {}, [], 0
        return batch

    def finish(self, batch: PassageBatch) -> list[PendingPassage]:
        """Forget a batch; returns passages of equal text that were added after it was closed."""
        texts = {passage.sha for passage in batch.leaders}
        self._sent -= texts
        late = [passage for passage in self._late if passage.sha in texts]
        self._late = [passage for passage in self._late if passage.sha not in texts]
        return late


P = ParamSpec("P")
T = TypeVar("T")

TICK_SECONDS: Final = 1.0
"""Seconds between checks of leases and of `stop`, while nothing else happens."""
CHANGED: Final = "the passage has changed meanwhile"

OnResult = Callable[[PendingPassage, str | None], None]
"""Called with each passage, and None if it has a vector, else CHANGED or the error."""
Transaction = Callable[[], AbstractContextManager[Connection]]
"""Opens the transaction that stores the vectors of a batch, and its costs."""


@dataclass(kw_only=True, slots=True)
class EmbeddingCounts:
    """Counts of what was done so far."""

    embedded: int = 0
    reused: int = 0
    tokens: int = 0
    requests: int = 0
    retries: int = 0
    cost: float = 0.0


@dataclass(kw_only=True, slots=True)
class _BatchOutcome:
    """The result of one batch, or of passages that reuse the vector of an equal text."""

    batch: PassageBatch | None = None
    result: EmbeddingResult = field(default_factory=EmbeddingResult)
    cost: float = 0.0
    passages: Sequence[PendingPassage] = ()
    errors: dict[str, str] = field(default_factory=dict)
    """The reason why a text has no vector, by its hash."""
    stored: set[int] = field(default_factory=set)
    not_reusable: Sequence[PendingPassage] = ()
    """Passages for which no equal text has a valid vector any more."""


class _InlineExecutor(Executor):
    """Executes everything at once, in the thread that submits it."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(work(*args, **kwargs))
        return done


class BatchEmbedder:
    """Makes and stores the vectors of passages for one generation.

    At most `workers` batches are in flight, each in a thread of its own, which stores its vectors
    and costs in one transaction. All methods are for the thread that created the object.
    """

    def __init__(
        self,
        database: Database,
        seams: Seams,
        client: EmbeddingClient,
        generation: Generation,
        *,
        workers: int,
        on_result: OnResult,
        tick: Callable[[], None] = lambda: None,
        run_id: UUID | None = None,
        transaction: Transaction | None = None,
        is_indexed: bool = True,
    ) -> None:
        """Without `is_indexed` the vectors are stored, but not found by searches."""
        self._database = database
        self._seams = seams
        self._client = client
        self._generation = generation
        self._run_id = run_id or UUID(int=seams.rng.getrandbits(128), version=4)
        self._transaction = transaction or database.write
        self._is_indexed = is_indexed
        self._workers = workers
        self._on_result = on_result
        self._tick = tick
        self._builder = BatchBuilder(client.model.batch_tokens)
        # A thread helps while a request waits for another machine; a local model would only
        # compete for the interpreter's lock.
        is_inline = workers == 1 and not client.is_remote
        self._pool = _InlineExecutor() if is_inline else ThreadPoolExecutor(workers, "fonds-embed")
        self._running: set[Future[_BatchOutcome]] = set()
        self._reusable: list[PendingPassage] = []
        self._new_texts: set[str] = set()
        self._refused: dict[str, str] = {}
        self._to_embed: list[PendingPassage] = []
        self._ended: str | None = None
        self.error: EmbedError | None = None
        """The error that ended it; None if it was asked to stop."""
        self.counts = EmbeddingCounts()

    @property
    def ended(self) -> str | None:
        """The reason why no more passages should be added; None to go on."""
        if self._ended is None and self._client.stop.is_set():
            self._ended = "asked to stop"
        return self._ended

    def add(self, passages: Sequence[PendingPassage]) -> None:
        """Add passages that were just read; waits while all threads are busy."""
        self._new_texts.clear()
        for passage in passages:
            if passage.is_reusable or passage.sha in self._new_texts:
                self._reusable.append(passage)
            elif not self._gather(passage):
                return
        self._submit_reusable(MAX_TEXTS)
        self._collect(block=False)

    def finish(self) -> None:
        """Finish all passages that were added."""
        while self.ended is None:
            passages, self._to_embed = self._to_embed, []
            for passage in passages:
                self._gather(passage)
            batch = self._builder.close()
            if batch is not None:
                self._start(partial(self._embed, batch))
            self._submit_reusable(1)
            if self._running:
                self._collect(block=True)
            elif not (self._to_embed or self._reusable):
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if error is not None and self._running:  # do not wait for all their retries
            self._client.stop.set()
        try:
            while self._running:
                self._collect(block=True)
        finally:
            self._pool.shutdown()

    def _gather(self, passage: PendingPassage) -> bool:
        """Add a passage to a batch; False if no more should be added."""
        if passage.sha in self._refused:
            self._on_result(passage, self._refused[passage.sha])
            return True
        batch = self._builder.add(passage)
        if batch is not None:
            self._start(partial(self._embed, batch))
        while self._builder.is_full and self._running:
            self._collect(block=True)
        return batch is None or self.ended is None

    def _submit_reusable(self, min_count: int) -> None:
        while len(self._reusable) >= min_count and self.ended is None:
            some, self._reusable = self._reusable[:MAX_TEXTS], self._reusable[MAX_TEXTS:]
            self._start(partial(self._reuse, some))

    def _start(self, work: Callable[[], _BatchOutcome]) -> None:
        while len(self._running) >= self._workers:
            self._collect(block=True)
        if self.ended is None:
            self._running.add(self._pool.submit(copy_context().run, work))

    def _collect(self, *, block: bool) -> None:
        done, self._running = wait(
            self._running, timeout=TICK_SECONDS if block else 0, return_when=FIRST_COMPLETED
        )
        for future in done:
            self._finish(future.result())
        self._tick()

    def _finish(self, outcome: _BatchOutcome) -> None:
        self._count(outcome)
        self._refused |= outcome.errors
        self._to_embed += outcome.not_reusable
        if outcome.result.ended is not None and self._ended is None:
            self._ended, self.error = outcome.result.ended, outcome.result.error
        for passage in outcome.passages:
            default = None if passage.row in outcome.stored else CHANGED
            self._on_result(passage, outcome.errors.get(passage.sha, default))
        if outcome.batch is not None:
            self._finish_late(outcome.batch)

    def _finish_late(self, batch: PassageBatch) -> None:
        shas = {passage.sha for passage in batch.leaders}
        self._new_texts |= shas - self._refused.keys()
        for passage in self._builder.finish(batch):
            if passage.sha in self._refused:
                self._on_result(passage, self._refused[passage.sha])
            else:
                self._reusable.append(passage)

    def _count(self, outcome: _BatchOutcome) -> None:
        result, counts = outcome.result, self.counts
        sent = {passage.row for passage in outcome.batch.leaders} if outcome.batch else set()
        counts.embedded += len(outcome.stored & sent)
        counts.reused += len(outcome.stored - sent)
        counts.tokens += result.tokens
        counts.requests += result.requests
        counts.retries += result.retries
        counts.cost += outcome.cost

    # The methods below are called by the threads.

    def _embed(self, batch: PassageBatch) -> _BatchOutcome:
        leaders = batch.leaders
        texts = [passage.embedded_text for passage in leaders]
        result = self._client.embed(texts, [passage.tokens for passage in leaders])
        errors = {leaders[index].sha: error for index, error in result.refused.items()}
        vectors = {leaders[index].sha: vector for index, vector in result.vectors.items()}
        result.vectors.clear()
        passages = (*leaders, *batch.twins)
        outcome = _BatchOutcome(
            batch=batch,
            result=result,
            cost=price_of(result.tokens, self._generation.price),
            passages=[each for each in passages if each.sha in vectors or each.sha in errors],
            errors=errors,
        )
        if result.requests:
            made = [(each, vectors[each.sha]) for each in passages if each.sha in vectors]
            outcome.stored = self._store(made, self._cost_of(outcome, leaders))
        return outcome

    def _cost_of(self, outcome: _BatchOutcome, leaders: Sequence[PendingPassage]) -> BatchCost:
        result = outcome.result
        return BatchCost(
            run_id=self._run_id,
            texts=len(leaders),
            tokens=result.tokens,
            requests=result.requests,
            retries=result.retries,
            cost=outcome.cost,
            documents=costs_of_documents(leaders, result.tokens, self._generation.price),
        )

    @repeatable
    def _store(
        self, made: Sequence[tuple[PendingPassage, StoredVector]], cost: BatchCost
    ) -> set[int]:
        with self._transaction() as connection:
            stored = self._store_vectors(connection, made)
            record_costs(connection, self._generation, cost, self._seams.clock.now())
        return stored

    def _store_vectors(
        self, connection: Connection, made: Sequence[tuple[PendingPassage, StoredVector]]
    ) -> set[int]:
        now = self._seams.clock.now()
        if not self._is_indexed:
            return buffer_vectors(connection, self._generation, made, now)[0]
        return store_vectors(connection, self._database.vectors, self._generation, made, now)

    @repeatable
    def _reuse(self, passages: Sequence[PendingPassage]) -> _BatchOutcome:
        """Give passages the vector of an equal text; damaged vectors are made again."""
        shas = {passage.sha for passage in passages}
        with self._transaction() as connection:
            stored_vectors = vectors_of_texts(connection, self._generation, shas)
            vectors = {
                sha: vector
                for sha, vector in stored_vectors.items()
                if vector_sha(vector.data) == vector.sha
            }
            made = [(each, vectors[each.sha]) for each in passages if each.sha in vectors]
            stored = self._store_vectors(connection, made)
        return _BatchOutcome(
            passages=[passage for passage, _ in made],
            stored=stored,
            not_reusable=[passage for passage in passages if passage.sha not in vectors],
        )

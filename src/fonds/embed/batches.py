"""Micro-batches: as many texts as one request takes, each distinct text once.

From passages to stored vectors: gathered by one thread, embedded and stored by others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Final, ParamSpec, Self, TypeVar
from uuid import UUID

from sqlalchemy import Connection

from fonds.embed.base import vector_sha
from fonds.embed.client import Answers, Calls
from fonds.embed.costs import price_of, shares_of
from fonds.seams import Seams
from fonds.stores.database import Database
from fonds.stores.fulltext import visible_text
from fonds.stores.vector_buffer import (
    BatchCost,
    PendingPassage,
    StoredVector,
    buffer_vectors,
    record_costs,
    store_vectors,
    vectors_of_texts,
)
from fonds.stores.vectors import Generation

MAX_TEXTS: Final = 256
MAX_TWINS: Final = 1024
"""Passages of equal text that may wait for one of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageBatch:
    """Passages for one request."""

    leaders: Sequence[PendingPassage]
    """Their texts are sent; no two are equal."""
    twins: Sequence[PendingPassage]
    """Each has the text of a leader, and gets its vector."""


class Gatherer:
    """Gathers passages into batches; used by one thread."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._leaders: dict[str, PendingPassage] = {}
        self._twins: list[PendingPassage] = []
        self._tokens = 0
        self._asked: set[str] = set()
        self._late: list[PendingPassage] = []

    @property
    def is_crowded(self) -> bool:
        """Whether many wait for a text that was sent."""
        return len(self._late) >= MAX_TWINS

    def add(self, passage: PendingPassage) -> PassageBatch | None:
        """Take a passage; gives the batch that is full by it."""
        if passage.sha in self._asked:
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
        """What was gathered, as it is; its texts count as sent from now on."""
        if not self._leaders:
            return None
        batch = PassageBatch(leaders=list(self._leaders.values()), twins=self._twins)
        self._asked.update(self._leaders)
        self._leaders, self._twins, self._tokens = {}, [], 0
        return batch

    def settle(self, batch: PassageBatch) -> list[PendingPassage]:
        """Forget a batch; gives the passages of equal text that came after it was closed."""
        settled = {passage.sha for passage in batch.leaders}
        self._asked -= settled
        came_late = [passage for passage in self._late if passage.sha in settled]
        self._late = [passage for passage in self._late if passage.sha not in settled]
        return came_late


P = ParamSpec("P")
T = TypeVar("T")

TICK: Final = 1.0
"""Seconds between looks at leases and the wish to stop, while nothing else happens."""
GONE: Final = "the passage has changed meanwhile"

Settled = Callable[[PendingPassage, str | None], None]
"""Told of each passage: None if it has a vector, GONE, or why it cannot have one."""
Transaction = Callable[[], AbstractContextManager[Connection]]
"""Opens the transaction that stores the vectors of a batch, and its costs."""


@dataclass(kw_only=True, slots=True)
class EmbeddingCounts:
    """What was done so far."""

    embedded: int = 0
    reused: int = 0
    tokens: int = 0
    requests: int = 0
    retries: int = 0
    cost: float = 0.0


@dataclass(kw_only=True, slots=True)
class _BatchOutcome:
    """What one thread did with one batch, or with passages whose text is known."""

    batch: PassageBatch | None = None
    answers: Answers = field(default_factory=Answers)
    cost: float = 0.0
    passages: Sequence[PendingPassage] = ()
    causes: dict[str, str] = field(default_factory=dict)
    """By text: why there is no vector."""
    stored: set[int] = field(default_factory=set)
    unknown: Sequence[PendingPassage] = ()
    """Those whose text had a vector before, but no more."""


class _Here(Executor):
    """Does everything at once, in the thread that asks for it."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(work(*args, **kwargs))
        return done


class Workshop:
    """Gives passages of one generation their vectors, some batches at a time.

    At most `workers` batches are in flight, each in a thread of its own, and stored in one
    transaction, with its costs, before that thread takes another. All methods are for the thread
    that made the workshop.
    """

    def __init__(
        self,
        database: Database,
        seams: Seams,
        calls: Calls,
        generation: Generation,
        *,
        workers: int,
        settled: Settled,
        tick: Callable[[], None] = lambda: None,
        run_id: UUID | None = None,
        transaction: Transaction | None = None,
        is_indexed: bool = True,
    ) -> None:
        """Without `is_indexed` the vectors are stored, but not found by searches."""
        self._database = database
        self._seams = seams
        self._calls = calls
        self._generation = generation
        self._run_id = run_id or UUID(int=seams.chance.getrandbits(128), version=4)
        self._transaction = transaction or database.write
        self._is_indexed = is_indexed
        self._workers = workers
        self._settled = settled
        self._tick = tick
        self._gatherer = Gatherer(calls.model.batch_tokens)
        # A thread helps where there is something to wait for; a model on this machine works
        # through the interpreter's lock, and would only share it.
        is_alone = workers == 1 and not calls.is_remote
        self._pool = _Here() if is_alone else ThreadPoolExecutor(workers, "fonds-embed")
        self._running: set[Future[_BatchOutcome]] = set()
        self._known: list[PendingPassage] = []
        self._fresh: set[str] = set()
        self._refused: dict[str, str] = {}
        self._again: list[PendingPassage] = []
        self._ended: str | None = None
        self.tally = EmbeddingCounts()

    @property
    def ended(self) -> str | None:
        """Why nothing more should be brought."""
        if self._ended is None and self._calls.stop.is_set():
            self._ended = "asked to stop"
        return self._ended

    def take(self, passages: Sequence[PendingPassage]) -> None:
        """Take passages as they were just read; waits while all threads are busy."""
        self._fresh.clear()
        for passage in passages:
            if passage.is_reusable or passage.sha in self._fresh:
                self._known.append(passage)
            elif not self._gather(passage):
                return
        self._submit_known(MAX_TEXTS)
        self._collect(block=False)

    def finish(self) -> None:
        """See all passages to their end that were taken."""
        while self.ended is None:
            again, self._again = self._again, []
            for passage in again:
                self._gather(passage)
            batch = self._gatherer.close()
            if batch is not None:
                self._start(partial(self._embed, batch))
            self._submit_known(1)
            if self._running:
                self._collect(block=True)
            elif not (self._again or self._known):
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._running:  # do not wait for all their retries
            self._calls.stop.set()
        try:
            while self._running:
                self._collect(block=True)
        finally:
            self._pool.shutdown()

    def _gather(self, passage: PendingPassage) -> bool:
        """False if it should be the last for now."""
        if passage.sha in self._refused:
            self._settled(passage, self._refused[passage.sha])
            return True
        batch = self._gatherer.add(passage)
        if batch is not None:
            self._start(partial(self._embed, batch))
        while self._gatherer.is_crowded and self._running:
            self._collect(block=True)
        return batch is None or self.ended is None

    def _submit_known(self, at_least: int) -> None:
        while len(self._known) >= at_least and self.ended is None:
            piece, self._known = self._known[:MAX_TEXTS], self._known[MAX_TEXTS:]
            self._start(partial(self._fill_in, piece))

    def _start(self, work: Callable[[], _BatchOutcome]) -> None:
        while len(self._running) >= self._workers:
            self._collect(block=True)
        if self.ended is None:
            self._running.add(self._pool.submit(copy_context().run, work))

    def _collect(self, *, block: bool) -> None:
        done, self._running = wait(
            self._running, timeout=TICK if block else 0, return_when=FIRST_COMPLETED
        )
        for future in done:
            self._settle(future.result())
        self._tick()

    def _settle(self, outcome: _BatchOutcome) -> None:
        self._count(outcome)
        self._refused |= outcome.causes
        self._again += outcome.unknown
        if outcome.answers.ended is not None and self._ended is None:
            self._ended = outcome.answers.ended
        for passage in outcome.passages:
            is_there = passage.row in outcome.stored
            self._settled(passage, outcome.causes.get(passage.sha, None if is_there else GONE))
        if outcome.batch is not None:
            self._settle_late(outcome.batch)

    def _settle_late(self, batch: PassageBatch) -> None:
        self._fresh.update(one.sha for one in batch.leaders if one.sha not in self._refused)
        for passage in self._gatherer.settle(batch):
            if passage.sha in self._refused:
                self._settled(passage, self._refused[passage.sha])
            else:
                self._known.append(passage)

    def _count(self, outcome: _BatchOutcome) -> None:
        answers, tally = outcome.answers, self.tally
        sent = {one.row for one in outcome.batch.leaders} if outcome.batch else set()
        tally.embedded += len(outcome.stored & sent)
        tally.reused += len(outcome.stored - sent)
        tally.tokens += answers.tokens
        tally.requests += answers.requests
        tally.retries += answers.retries
        tally.cost += outcome.cost

    # What follows is done by the threads.

    def _embed(self, batch: PassageBatch) -> _BatchOutcome:
        leaders = batch.leaders
        texts = [visible_text(passage.text) for passage in leaders]
        answers = self._calls.embed(texts, [passage.tokens for passage in leaders])
        causes = {leaders[place].sha: cause for place, cause in answers.refused.items()}
        vectors = {leaders[place].sha: vector for place, vector in answers.vectors.items()}
        answers.vectors.clear()
        everyone = (*leaders, *batch.twins)
        outcome = _BatchOutcome(
            batch=batch,
            answers=answers,
            cost=price_of(answers.tokens, self._generation.price),
            passages=[one for one in everyone if one.sha in vectors or one.sha in causes],
            causes=causes,
        )
        if answers.requests:
            made = [(one, vectors[one.sha]) for one in everyone if one.sha in vectors]
            outcome.stored = self._store(made, self._spending(outcome, leaders))
        return outcome

    def _spending(self, outcome: _BatchOutcome, leaders: Sequence[PendingPassage]) -> BatchCost:
        answers = outcome.answers
        return BatchCost(
            run_id=self._run_id,
            texts=len(leaders),
            tokens=answers.tokens,
            requests=answers.requests,
            retries=answers.retries,
            cost=outcome.cost,
            documents=shares_of(leaders, answers.tokens, self._generation.price),
        )

    def _store(
        self, made: Sequence[tuple[PendingPassage, StoredVector]], spending: BatchCost
    ) -> set[int]:
        with self._transaction() as connection:
            stored = self._store_vectors(connection, made)
            record_costs(connection, self._generation, spending, self._seams.clock.now())
        return stored

    def _store_vectors(
        self, connection: Connection, made: Sequence[tuple[PendingPassage, StoredVector]]
    ) -> set[int]:
        now = self._seams.clock.now()
        if not self._is_indexed:
            return buffer_vectors(connection, self._generation, made, now)[0]
        return store_vectors(connection, self._database.vectors, self._generation, made, now)

    def _fill_in(self, known: Sequence[PendingPassage]) -> _BatchOutcome:
        """Give passages the vector of an equal text; a damaged one is made again."""
        with self._transaction() as connection:
            held = vectors_of_texts(connection, self._generation, {one.sha for one in known})
            found = {sha: one for sha, one in held.items() if vector_sha(one.data) == one.sha}
            made = [(passage, found[passage.sha]) for passage in known if passage.sha in found]
            stored = self._store_vectors(connection, made)
        return _BatchOutcome(
            passages=[passage for passage, _ in made],
            stored=stored,
            unknown=[passage for passage in known if passage.sha not in found],
        )

"""The steps of an upload: interrupted between any two, taken over, or failing."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import func, insert, select
from tests.support.libraries.documents import hold
from tests.support.libraries.uploads import (
    TEXT,
    inline_resources,
    make_user,
    now_of,
    send,
    stored,
    upload_library,
    work,
)

from fonds.chunk.chunker import Chunker
from fonds.embed.base import Embedded, Purpose
from fonds.embed.batches import MAX_TEXTS
from fonds.embed.client import FAILURES, EmbeddingClient
from fonds.embed.generations import ensure_generation, switch
from fonds.embed.hashing import HashingEmbedder
from fonds.embed.registry import open_embedder
from fonds.errors import EmbedError, EndpointRefusedError, RetryableEmbedError
from fonds.library import Library
from fonds.model import Chunk, NormalizedBody
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    embedding_batches,
    ingestion_embedding_queue,
    users,
)
from fonds.testing import ManualClock
from fonds.uploads.jobs import MAX_RETRIES, Job, claim, events_of, job_transition
from fonds.uploads.resources import ClaimedJob, SearchModel, WorkerResources
from fonds.uploads.stages import STEPS
from fonds.uploads.states import ACTIVE, ENDED, MOVES, JobStatus
from fonds.uploads.worker import LEASE, STORE_PAUSE, UploadWorker

PASSING: Final = {JobStatus.PARSE_VALIDATED, JobStatus.EMBEDDING_IN_PROGRESS}
"""Where a job stands only within a step, or between two batches."""
PATH: Final = ["uploaded", *(status.value for status in ACTIVE), "complete"]


class CrashError(BaseException):
    """The end of a process: nothing of ours may catch it."""


@dataclass
class Surroundings:
    """Counts durable operations, and ends the process before one of them."""

    clock: ManualClock = field(default_factory=ManualClock)
    operations: list[str] = field(default_factory=list)
    crash_at: int | None = None

    def durable(self, operation: str, _subject: str) -> None:
        self.operations.append(operation)
        if len(self.operations) == self.crash_at:
            raise CrashError


@pytest.fixture
def around() -> Surroundings:
    return Surroundings()


@pytest.fixture(params=["sqlite", "postgres"])
def library(
    request: pytest.FixtureRequest, tmp_path: Path, around: Surroundings
) -> Iterator[Library]:
    on = {}
    if request.param == "postgres":
        on["database"] = request.getfixturevalue("postgres_database")
    seams = Seams(clock=around.clock, durable=around.durable)
    with upload_library(tmp_path, seams=seams, **on) as library:
        yield library


@contextmanager
def _ready(library: Library) -> Iterator[tuple[WorkerResources, UploadWorker]]:
    """A worker whose model is open."""
    resources = inline_resources(library)
    resources.model()
    yield resources, UploadWorker(resources)


def _moves(library: Library, job: Job) -> list[str]:
    with library.database.read() as connection:
        return [event.to_status for event in events_of(connection, job.job_id)]


def _count(library: Library, table: Any) -> int:
    with library.database.read() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def _text(number: int) -> bytes:
    return TEXT.replace("500", str(number)).encode()


OPERATIONS: Final = [
    "commit",  # claimed
    "blob.put",
    "blob.rename",
    "commit",  # parsed
    "commit",  # validated
    "commit",  # cut
    "commit",  # queued
    "commit",  # embedded
    "commit",  # published
]


def test_each_step_is_one_transaction(library: Library, around: Surroundings) -> None:
    job = send(library, make_user(library), TEXT.encode())
    with _ready(library) as (_, worker):
        around.operations.clear()
        assert worker.work_once()
    assert around.operations == OPERATIONS
    assert _moves(library, job) == PATH
    assert now_of(library, job).progress == {
        "chunks_total": 2,
        "chunks_done": 2,
        "embeds_total": 2,
        "embeds_done": 2,
    }


def test_job_interrupted_before_any_operation_is_taken_over(
    library: Library, around: Surroundings
) -> None:
    user = make_user(library)
    with _ready(library) as (_, worker):
        for at in range(1, len(OPERATIONS) + 1):
            job = send(library, user, _text(at))
            around.operations.clear()
            around.crash_at = at
            with pytest.raises(CrashError):
                worker.work_once()
            around.crash_at = None
            assert now_of(library, job).status is not JobStatus.COMPLETE
            around.clock.move(seconds=LEASE.total_seconds() + 1)
            assert worker.work_once()
            assert _moves(library, job) == PATH
    cut = Counter(_ids(library, document_chunk_buffer))
    assert set(cut.values()) == {2}
    assert Counter(_ids(library, document_vector_buffer)) == cut


def _ids(library: Library, table: Any) -> Sequence[Any]:
    with library.database.read() as connection:
        return connection.scalars(select(table.c.document_id)).all()


def test_job_left_at_any_status_is_taken_over_and_ends_the_same(
    library: Library, around: Surroundings, tmp_path: Path
) -> None:
    user = make_user(library)
    left: dict[JobStatus, Job] = {}
    with _ready(library) as (resources, _):
        for number, status in enumerate(ACTIVE):
            left[status] = send(library, user, _text(number))
            _leave_at(resources, status)
    assert {status: now_of(library, job).status for status, job in left.items()} == {
        status: status for status in ACTIVE
    }
    around.clock.move(seconds=LEASE.total_seconds() + 1)
    work(library)
    assert {tuple(_moves(library, job)) for job in left.values()} == {tuple(PATH)}
    with upload_library(tmp_path / "calm") as calm:
        with calm.database.write() as connection:
            row = {"id": user, "name": "somebody", "created_at": around.clock.now()}
            connection.execute(insert(users).values(row))
        for number in range(len(ACTIVE)):
            send(calm, user, _text(number))
        work(calm)
        assert stored(calm)["vectors"] == stored(library)["vectors"]  # which say what was cut


def _leave_at(resources: WorkerResources, status: JobStatus) -> None:
    """A worker takes the only job that is free to a status, and is never heard of again."""
    context = resources.context
    with context.database.write() as connection:
        held = claim(connection, f"left at {status}", context.seams.clock.now(), LEASE)
    assert held is not None
    claimed = ClaimedJob(resources=resources, job=held)
    while claimed.job.status is not status:
        if status in PASSING and status in MOVES[claimed.job.status]:
            with job_transition(context, claimed.job) as transition:
                transition.move(status, why="on the way")
            return
        STEPS[claimed.job.status](claimed)


def test_worker_that_is_overtaken_while_it_embeds_writes_nothing(
    library: Library, around: Surroundings
) -> None:
    job = send(library, make_user(library), TEXT.encode())

    def overtake(_texts: Sequence[str]) -> None:
        around.clock.move(seconds=LEASE.total_seconds() + 1)
        with library.database.write() as connection:
            assert claim(connection, "another", around.clock.now(), timedelta(hours=1))

    with _asking(library, overtake) as worker:
        assert worker.work_once()
    held = now_of(library, job)
    assert (held.status, held.lease_owner) == (JobStatus.EMBEDDING_QUEUED, "another")
    assert _count(library, document_vector_buffer) == 0
    assert _count(library, embedding_batches) == 0


def test_model_that_fails_keeps_what_was_done_before(
    library: Library, around: Surroundings
) -> None:
    job = send(library, make_user(library), TEXT.encode())

    def fail(_texts: Sequence[str]) -> None:
        raise RetryableEmbedError("the model is down")

    with _asking(library, fail) as worker:
        assert worker.work_once()
    waiting = now_of(library, job)
    assert (waiting.status, waiting.retry_count) == (JobStatus.EMBEDDING_QUEUED, 1)
    assert _count(library, document_chunk_buffer) == 2
    assert _count(library, document_vector_buffer) == 0
    around.clock.move(seconds=3)
    work(library)
    assert _moves(library, job) == PATH


def test_document_waits_for_a_model_that_was_chosen_while_it_was_embedded(
    library: Library,
) -> None:
    job = send(library, make_user(library), TEXT.encode())

    def choose(_texts: Sequence[str]) -> None:
        embedder = open_embedder("hashing:16", library.settings)
        generation = ensure_generation(library.database, library.seams, embedder, "hashing:16")
        switch(library.database, library.seams, generation)

    with _asking(library, choose) as worker:
        assert worker.work_once()
    assert _moves(library, job) == PATH
    assert _count(library, ingestion_embedding_queue) == 1


class _Asked:
    """A model with which something happens before it answers."""

    is_remote = False

    def __init__(self, before: Callable[[Sequence[str]], object]) -> None:
        self._inner = HashingEmbedder(32)
        self.model = self._inner.model
        self._before = before

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        self._before(texts)
        return self._inner.embed(texts, purpose)


@contextmanager
def _asking(library: Library, before: Callable[[Sequence[str]], object]) -> Iterator[UploadWorker]:
    with _ready(library) as (resources, worker):
        client = EmbeddingClient(_Asked(before), library.seams, Settings(retries=1))
        resources._model = replace(resources.model(), client=client)
        yield worker


def test_large_file_is_embedded_in_batches(library: Library, around: Surroundings) -> None:
    count = MAX_TEXTS + 1
    parts = [f"## Part {number}\n\nPart {number} covers water." for number in range(count)]
    job = send(library, make_user(library), "\n\n".join(parts).encode())
    with _ready(library) as (_, worker):
        around.operations.clear()
        assert worker.work_once()
    assert around.operations.count("commit") == OPERATIONS.count("commit") + 1
    assert _moves(library, job) == PATH


class _Broken(Chunker):
    """Cuts nothing."""

    def chunk(self, body: NormalizedBody) -> list[Chunk]:
        raise RuntimeError(f"cannot cut {len(body.markdown)} characters")


class _Forgetful(Chunker):
    """Loses the end of every text."""

    def chunk(self, body: NormalizedBody) -> list[Chunk]:
        return super().chunk(body)[:-1]


@pytest.mark.parametrize("chunker", [_Broken(), _Forgetful()])
def test_text_that_cannot_be_cut_fails_where_it_should_have_been(
    library: Library, chunker: Chunker
) -> None:
    job = send(library, make_user(library), TEXT.encode())
    with _ready(library) as (resources, worker):
        resources.context.__dict__["chunker"] = chunker
        assert worker.work_once()
    assert _moves(library, job) == [*PATH[:5], "failed_chunking"]
    assert _count(library, document_chunk_buffer) == 0


class _Endpoint:
    """A model of another machine, which fails as a test says."""

    is_remote = True

    def __init__(self, failure: Callable[[], EmbedError | None]) -> None:
        self._failure = failure
        self._embedder = HashingEmbedder(32)
        self.model = self._embedder.model
        self.requests = 0

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        self.requests += 1
        if error := self._failure():
            raise error
        return self._embedder.embed(texts, purpose)


def _worked_on(library: Library, clock: ManualClock, endpoint: _Endpoint) -> Job:
    """A job at its end, worked on whenever it was due, with the model of an endpoint."""
    job = send(library, make_user(library), TEXT.encode())
    resources = inline_resources(library)
    generation = resources.model().generation
    client = EmbeddingClient(
        endpoint,
        library.seams,
        Settings(),
        sleep=lambda seconds: clock.move(seconds=seconds + 0.001),
    )
    resources._model = SearchModel(generation=generation, client=client)
    worker = UploadWorker(resources)
    while (current := now_of(library, job)).status not in ENDED:
        due = current.next_attempt_at or clock.now()
        clock.move(seconds=max(0.0, (due - clock.now()).total_seconds()))
        assert worker.work_once()
    return current


def test_endpoint_that_is_away_for_ten_seconds_fails_no_upload(
    library: Library, around: Surroundings
) -> None:
    # The breaker that opens meanwhile is closed for longer than the waits of all tries.
    back_at = around.clock.now() + timedelta(seconds=10)
    down = RetryableEmbedError("no answer")
    endpoint = _Endpoint(lambda: down if around.clock.now() < back_at else None)
    job = _worked_on(library, around.clock, endpoint)
    assert job.status is JobStatus.COMPLETE
    assert endpoint.requests > FAILURES


def test_endpoint_that_stays_away_fails_an_upload(library: Library, around: Surroundings) -> None:
    endpoint = _Endpoint(lambda: RetryableEmbedError("no answer"))
    job = _worked_on(library, around.clock, endpoint)
    assert job.status is JobStatus.FAILED_EMBEDDING
    assert endpoint.requests == FAILURES + MAX_RETRIES


def test_endpoint_that_refuses_our_key_is_not_asked_again(
    library: Library, around: Surroundings
) -> None:
    endpoint = _Endpoint(lambda: EndpointRefusedError("401: set FONDS_EMBED_KEY"))
    job = _worked_on(library, around.clock, endpoint)
    assert job.status is JobStatus.FAILED_EMBEDDING
    assert job.last_error is not None
    assert "set FONDS_EMBED_KEY" in job.last_error["message"]
    assert endpoint.requests == 2  # the passages, and a text that every model can embed


def test_uploads_and_the_embedding_queue_have_one_breaker_and_one_limit(library: Library) -> None:
    hold(library, "gao:1", "The dredger works at the mole.")
    with _ready(library) as (resources, _):
        endpoint = resources.model().client.endpoint
    for _ in range(FAILURES):
        endpoint.breaker.failed("no answer")
    report = library.embed()
    assert (report.done, report.requests) == (0, 0)
    assert "no requests for now" in (report.ended or "")


def test_a_store_without_room_counts_no_attempt_of_an_upload(tmp_path: Path) -> None:
    clock, is_full = ManualClock(), True

    def store(operation: str, subject: str) -> None:
        if is_full and operation.startswith("blob.") and subject.startswith("parsed/"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), subject)

    with upload_library(tmp_path, seams=Seams(clock=clock, durable=store)) as library:
        job = send(library, make_user(library), b"# Policy\n\nWords of a policy.\n")
        work(library)
        waiting = now_of(library, job)
        assert (waiting.status, waiting.retry_count) == ("parse_queued", 0)
        assert waiting.lease_owner is None
        is_full = False
        clock.move(seconds=STORE_PAUSE.total_seconds() + 1)
        work(library)
        assert now_of(library, job).status == "complete"

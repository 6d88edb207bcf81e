"""The vectors of a job's passages: in micro-batches, each stored before the next is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from fonds import ids
from fonds.embed.base import vector_sha
from fonds.embed.batches import MAX_TEXTS
from fonds.embed.client import Answers
from fonds.embed.costs import price_of, shares_of
from fonds.errors import EmbedError, RetryableEmbedError
from fonds.stores.fulltext import as_seen
from fonds.stores.passages import Passages, known_texts, staged
from fonds.stores.vector_buffer import (
    PendingPassage,
    Spending,
    StoredVector,
    keep_vectors,
    lacking_staged,
    record_spending,
    vectors_of_texts,
)
from fonds.stores.vectors import Generation
from fonds.uploads.jobs import AFRESH, Job, Way, moving
from fonds.uploads.resources import SearchModel, WorkerResources
from fonds.uploads.states import JobStatus, check_embedded

UNSTORED: Final = -1
"""The row of a passage that has none yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MicroBatch:
    """Passages that the model is asked about together."""

    model: SearchModel
    passages: Sequence[PendingPassage]
    known: Mapping[str, StoredVector]
    """Vectors that equal texts have already."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """What came of it."""

    model: SearchModel
    passages: Sequence[PendingPassage]
    vectors: Mapping[str, StoredVector]
    """By the hash of a text."""
    spending: Spending | None
    cause: EmbedError | None
    """Why some are missing."""


def queue_embedding(resources: WorkerResources, job: Job) -> Job:
    """`chunks_stored` → `embedding_queued`."""
    model = resources.model()
    with moving(resources.context.database, job) as way:
        queued(way, resources, model)
    return way.job


def queued(way: Way, resources: WorkerResources, model: SearchModel) -> None:
    """The passages wait for a model."""
    generation, total = model.generation, _total(way.job)
    way.move(
        JobStatus.EMBEDDING_QUEUED,
        why=f"{total} passages wait for {generation.name} {generation.version}",
        now=resources.context.seams.clock.now(),
        embed_model=generation.name,
        embed_version=generation.version,
        progress={**(way.job.progress or {}), "embeds_total": total, "embeds_done": 0},
    )


def embed_batch(resources: WorkerResources, job: Job) -> Job:
    """`embedding_queued` → `embedding_in_progress` → `embeddings_stored`, a batch at a time."""
    model = resources.model()
    with resources.context.database.read() as connection:
        name = ids.upload_id(job.document_id)
        lacking = lacking_staged(connection, model.generation, name, job.document_id, MAX_TEXTS)
        passages = _first_batch(lacking, model)
        known = _known(connection, model, passages)
    answered = ask(resources, MicroBatch(model=model, passages=passages, known=known))
    with moving(resources.context.database, job) as way:
        embedded(way, resources, answered)
    if answered.cause is not None:
        raise answered.cause
    return way.job


def batch_of_all(
    model: SearchModel, resources: WorkerResources, job: Job, passages: Passages
) -> MicroBatch | None:
    """All passages of a document, before they are stored; None where they are too many."""
    shas = [ids.chunk_sha(chunk.text) for chunk in passages.chunks]
    batch = [
        PendingPassage(
            row=UNSTORED,
            ordinal=chunk.ordinal,
            sha=sha,
            text=chunk.text,
            tokens=chunk.tokens,
            is_known=False,
            document=ids.upload_id(job.document_id),
        )
        for sha, chunk in zip(shas, passages.chunks, strict=True)
    ]
    if len(_first_batch(batch, model)) < len(batch):
        return None
    with resources.context.database.read() as connection:
        held = known_texts(connection, model.generation, shas)
        batch = [passage._replace(is_known=passage.sha in held) for passage in batch]
        return MicroBatch(model=model, passages=batch, known=_known(connection, model, batch))


def ask(resources: WorkerResources, batch: MicroBatch) -> Answered:
    """The vectors of a micro-batch."""
    known, model = batch.known, batch.model
    unknown = {passage.sha: passage for passage in batch.passages if passage.sha not in known}
    fresh = list(unknown.values())
    answers = Answers()
    if fresh:
        texts = [as_seen(passage.text) for passage in fresh]
        answers = model.calls.embed(texts, [passage.tokens for passage in fresh])
    made = {fresh[place].sha: vector for place, vector in answers.vectors.items()}
    return Answered(
        model=model,
        passages=batch.passages,
        vectors={**known, **made},
        spending=_spending(resources, model, fresh, answers),
        cause=_cause(fresh, answers),
    )


def embedded(way: Way, resources: WorkerResources, answered: Answered) -> dict[int, StoredVector]:
    """The vectors of a micro-batch are stored; gives those that are ours.

    The last batch ends the stage.
    """
    now, generation = resources.context.seams.clock.now(), answered.model.generation
    vectors = answered.vectors
    made = [(one, vectors[one.sha]) for one in answered.passages if one.sha in vectors]
    _, ours = keep_vectors(way.connection, generation, made, now)
    if answered.spending is not None:
        record_spending(way.connection, generation, answered.spending, now)
    if made or answered.cause is None:  # nothing was lacking: another lost its lease too late
        _advance(way, generation, now, is_whole=answered.cause is None)
    return ours


def _first_batch(passages: Iterable[PendingPassage], model: SearchModel) -> list[PendingPassage]:
    batch: list[PendingPassage] = []
    tokens = 0
    for passage in passages:
        tokens += passage.tokens
        if batch and tokens > model.calls.model.batch_tokens:
            break
        batch.append(passage)
    return batch


def _known(
    connection: Connection, model: SearchModel, batch: Sequence[PendingPassage]
) -> dict[str, StoredVector]:
    """Vectors of equal texts; a damaged one is made anew."""
    wanted = {passage.sha for passage in batch if passage.is_known}
    held = vectors_of_texts(connection, model.generation, wanted) if wanted else {}
    return {sha: one for sha, one in held.items() if vector_sha(one.data) == one.sha}


def _spending(
    resources: WorkerResources,
    model: SearchModel,
    fresh: Sequence[PendingPassage],
    answers: Answers,
) -> Spending | None:
    if not answers.requests:
        return None
    price = model.generation.price
    return Spending(
        run_id=resources.run_id,
        texts=len(fresh),
        tokens=answers.tokens,
        requests=answers.requests,
        retries=answers.retries,
        cost=price_of(answers.tokens, price),
        shares=shares_of(fresh, answers.tokens, price),
    )


def _cause(fresh: Sequence[PendingPassage], answers: Answers) -> EmbedError | None:
    if answers.refused:
        place, cause = next(iter(answers.refused.items()))
        return EmbedError(f"the model cannot embed passage {fresh[place].ordinal}: {cause}")
    return RetryableEmbedError(answers.ended) if answers.ended is not None else None


def _advance(way: Way, generation: Generation, now: datetime, *, is_whole: bool) -> None:
    job = way.job
    count = staged(way.connection, job.document_id, generation.name, generation.version)
    if job.status is JobStatus.EMBEDDING_QUEUED:
        why = f"the first of {count.passages} passages have a vector"
        way.move(JobStatus.EMBEDDING_IN_PROGRESS, why=why, now=now)
    way.keep(
        now,
        **AFRESH,
        embed_model=generation.name,
        embed_version=generation.version,
        progress={**(job.progress or {}), "embeds_done": count.vectors},
        first_embedded_at=job.first_embedded_at or now,
    )
    if count.vectors == count.passages and is_whole:
        check_embedded(count.passages, count.vectors, _total(job))
        why = f"all {count.passages} passages have a vector"
        way.move(JobStatus.EMBEDDINGS_STORED, why=why, now=now)


def _total(job: Job) -> int:
    return (job.progress or {}).get("chunks_total", 0)

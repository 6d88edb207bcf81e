"""The vectors of a job's passages: in micro-batches, each stored before the next is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from fonds import ids
from fonds.embed.batches import MAX_TEXTS
from fonds.embed.calls import Answers
from fonds.embed.costs import price_of, shares_of
from fonds.embed.packing import vector_sha
from fonds.errors import EmbedError, RetryableEmbedError
from fonds.stores.embedding import (
    Passage,
    Spending,
    Vector,
    keep_vectors,
    lacking_staged,
    record_spending,
    vectors_of_texts,
)
from fonds.stores.fulltext import as_seen
from fonds.stores.staging import staged
from fonds.stores.vectors import Generation
from fonds.uploads.gates import check_embedded
from fonds.uploads.jobs import Job, keep, move
from fonds.uploads.states import Status
from fonds.uploads.workbench import Model, Workbench


def queue_embedding(bench: Workbench, job: Job) -> Job:
    """Say which model the passages wait for."""
    generation = bench.model().generation
    now = bench.shelf.seams.clock.now()
    with bench.shelf.database.write() as connection:
        return move(
            connection,
            job,
            Status.EMBEDDING_QUEUED,
            by=job.lease_owner or "fonds",
            why=f"{_total(job)} passages wait for {generation.name} {generation.version}",
            now=now,
            embed_model=generation.name,
            embed_version=generation.version,
            progress={**(job.progress or {}), "embeds_total": _total(job), "embeds_done": 0},
        )


def embed_batch(bench: Workbench, job: Job) -> Job:
    """Give the next micro-batch its vectors, and store them; the last one ends the stage."""
    model = bench.model()
    generation, database = model.generation, bench.shelf.database
    with database.read() as connection:
        batch = _next_batch(connection, generation, job, model.calls.model.batch_tokens)
        known = _known(connection, generation, batch)
    vectors, spending, cause = _embedded(bench, model, batch, known)
    now = bench.shelf.seams.clock.now()
    with database.write() as connection:
        made = [(passage, vectors[passage.sha]) for passage in batch if passage.sha in vectors]
        keep_vectors(connection, generation, made, now)
        if spending is not None:
            record_spending(connection, generation, spending, now)
        if made or cause is None:  # nothing was lacking: another worker lost its lease too late
            job = _advanced(connection, job, generation, now, is_whole=cause is None)
    if cause is not None:
        raise cause
    return job


def _next_batch(
    connection: Connection, generation: Generation, job: Job, max_tokens: int
) -> list[Passage]:
    name = ids.upload_id(job.document_id)
    batch: list[Passage] = []
    tokens = 0
    for passage in lacking_staged(connection, generation, name, job.document_id, MAX_TEXTS):
        tokens += passage.tokens
        if batch and tokens > max_tokens:
            break
        batch.append(passage)
    return batch


def _known(
    connection: Connection, generation: Generation, batch: Sequence[Passage]
) -> dict[str, Vector]:
    """Vectors of equal texts; a damaged one is made anew."""
    wanted = {passage.sha for passage in batch if passage.is_known}
    held = vectors_of_texts(connection, generation, wanted) if wanted else {}
    return {sha: one for sha, one in held.items() if vector_sha(one.data) == one.sha}


def _embedded(
    bench: Workbench, model: Model, batch: Sequence[Passage], known: Mapping[str, Vector]
) -> tuple[dict[str, Vector], Spending | None, EmbedError | None]:
    """The vectors by text, what they took, and why some are missing."""
    fresh = list({passage.sha: passage for passage in batch if passage.sha not in known}.values())
    if not fresh:
        return dict(known), None, None
    answers = model.calls.embed(
        [as_seen(passage.text) for passage in fresh], [passage.tokens for passage in fresh]
    )
    made = {fresh[place].sha: vector for place, vector in answers.vectors.items()}
    return {**known, **made}, _spending(bench, model, fresh, answers), _cause(fresh, answers)


def _spending(
    bench: Workbench, model: Model, fresh: Sequence[Passage], answers: Answers
) -> Spending | None:
    if not answers.requests:
        return None
    price = model.generation.price
    return Spending(
        run_id=bench.run_id,
        texts=len(fresh),
        tokens=answers.tokens,
        requests=answers.requests,
        retries=answers.retries,
        cost=price_of(answers.tokens, price),
        shares=shares_of(fresh, answers.tokens, price),
    )


def _cause(fresh: Sequence[Passage], answers: Answers) -> EmbedError | None:
    if answers.refused:
        place, cause = next(iter(answers.refused.items()))
        return EmbedError(f"the model cannot embed passage {fresh[place].ordinal}: {cause}")
    return RetryableEmbedError(answers.ended) if answers.ended is not None else None


def _advanced(
    connection: Connection, job: Job, generation: Generation, now: datetime, *, is_whole: bool
) -> Job:
    count = staged(connection, job.document_id, generation.name, generation.version)
    columns: dict[str, Any] = {
        "embed_model": generation.name,
        "embed_version": generation.version,
        "progress": {**(job.progress or {}), "embeds_done": count.vectors},
        "first_embedded_at": job.first_embedded_at or now,
    }
    by = job.lease_owner or "fonds"
    if job.status is Status.EMBEDDING_QUEUED:
        why = f"the first of {count.passages} passages have a vector"
        job = move(connection, job, Status.EMBEDDING_IN_PROGRESS, by=by, why=why, now=now)
    if count.vectors < count.passages or not is_whole:
        return keep(connection, job, now, retry_count=0, takeovers=0, **columns)
    check_embedded(count.passages, count.vectors, _total(job))
    why = f"all {count.passages} passages have a vector"
    return move(connection, job, Status.EMBEDDINGS_STORED, by=by, why=why, now=now, **columns)


def _total(job: Job) -> int:
    return (job.progress or {}).get("chunks_total", 0)

"""The vectors of a job's passages, from `chunks_stored` to `embeddings_stored`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from fonds.embed.worker import embed_document
from fonds.stores.passages import staged
from fonds.stores.vector_buffer import remove_damaged_vectors
from fonds.stores.vectors import Generation
from fonds.uploads.jobs import RESET_COUNTERS, Job, JobTransition
from fonds.uploads.resources import ClaimedJob
from fonds.uploads.states import JobStatus, check_embedded


def queue_embedding(claimed: ClaimedJob) -> None:
    """`chunks_stored` → `embedding_queued`."""
    generation = claimed.resources.model().generation
    with claimed.transition() as transition:
        # After a retry, vectors may be there already.
        remove_damaged_vectors(transition.connection, transition.job.document_id)
        total = _total(transition.job)
        progress = {**(transition.job.progress or {}), "embeds_total": total, "embeds_done": 0}
        transition.move(
            JobStatus.EMBEDDING_QUEUED,
            why=f"{total} passages wait for {generation.name} {generation.version}",
            embed_model=generation.name,
            embed_version=generation.version,
            progress=progress,
        )


def embed(claimed: ClaimedJob) -> None:
    """`embedding_queued` → `embedding_in_progress` → `embeddings_stored`.

    The job moves in the transactions that store its vectors, one for each batch of passages.
    """
    model, context = claimed.resources.model(), claimed.context

    @contextmanager
    def transaction() -> Iterator[Connection]:
        with claimed.transition() as transition:
            yield transition.connection
            _advance(transition, model.generation)

    count = embed_document(
        context.database,
        context.seams,
        model.client,
        model.generation,
        claimed.job.document_id,
        run_id=claimed.resources.run_id,
        transaction=transaction,
    )
    if not count:  # all passages have a vector already, or there are none
        with transaction():
            pass


def _advance(transition: JobTransition, generation: Generation) -> None:
    job = transition.job
    count = staged(transition.connection, job.document_id, generation.name, generation.version)
    progress = job.progress or {}
    if count.vectors == progress.get("embeds_done", 0) and count.vectors < count.passages:
        return  # nothing but costs was stored, which must not reset the count of retries
    columns = {
        "embed_model": generation.name,
        "embed_version": generation.version,
        "progress": {**progress, "embeds_done": count.vectors},
        "first_embedded_at": job.first_embedded_at or transition.now,
    }
    if job.status is JobStatus.EMBEDDING_QUEUED:
        why = f"the first of {count.passages} passages have a vector"
        transition.move(JobStatus.EMBEDDING_IN_PROGRESS, why=why, **columns)
    else:
        transition.update(**RESET_COUNTERS, **columns)
    if count.vectors == count.passages:
        check_embedded(count.passages, count.vectors, _total(job))
        why = f"all {count.passages} passages have a vector"
        transition.move(JobStatus.EMBEDDINGS_STORED, why=why)


def _total(job: Job) -> int:
    return (job.progress or {}).get("chunks_total", 0)

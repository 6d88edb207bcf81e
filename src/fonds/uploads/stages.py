"""What is done with a job at each status; every step ends in the move it justifies.

The end of a job: its document appears, whole and findable, or not at all.

How an uploaded file is cited: by its name, and by the hash that tells it from all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from fonds import ids
from fonds.citations.bluebook import bluebook_date
from fonds.errors import GateError, StoreError
from fonds.model import Archived, Body, Document, NormalizedBody
from fonds.normalize.registry import get_normalizer
from fonds.runs.normalization import chunker_label, passages_of_text, recipe_of
from fonds.stores.database import Database, run
from fonds.stores.documents import Writing, ask_for_vectors, publish_document
from fonds.stores.passages import (
    Passages,
    publish_passages,
    publish_rows,
    searched,
    stage_passages,
    staged,
    staged_hashes,
)
from fonds.stores.tables import upload_jobs
from fonds.stores.vector_buffer import StoredVector
from fonds.stores.vectors import Generation
from fonds.uploads.embedding import embed_batch, queue_embedding
from fonds.uploads.files import raw_format_of
from fonds.uploads.jobs import Job, Way, moving
from fonds.uploads.parsing import MARKDOWN, parse_here, parse_outside, read_parsed
from fonds.uploads.resources import WorkerResources
from fonds.uploads.states import JobStatus, check_chunks, check_embedded


def cite_upload(*, name: str, sha256: str, uploaded: date) -> str:
    """`policy.pdf (uploaded Nov. 16, 2026; SHA-256 3fa9c1d2e4b5).`, which no other file has."""
    return f"{name} (uploaded {bluebook_date(uploaded)}; SHA-256 {sha256[:12]})."


SOURCE: Final = "uploads"


@dataclass(frozen=True, kw_only=True, slots=True)
class InHand:
    """Passages and vectors that were stored in this very transaction."""

    rows: Sequence[Mapping[str, Any]]
    """Of the chunk buffer."""
    generation: Generation
    """The one that is searched."""
    vectors: Mapping[int, StoredVector]
    """By the number of a row; each has one."""


def finalize(resources: WorkerResources, job: Job) -> Job:
    """`embeddings_stored` → `complete`."""
    text = read_parsed(resources.context.blobs, job)
    with moving(resources.context.database, job) as way:
        publish(way, resources, text)
    return way.job


def publish(
    way: Way, resources: WorkerResources, text: NormalizedBody, hand: InHand | None = None
) -> None:
    """The document appears, if every passage that was cut is there with its vector."""
    job, now = way.job, resources.context.seams.clock.now()
    way.move(
        JobStatus.COMPLETE,
        why="the document can be found",
        now=now,
        completed_at=now,
        lease_owner=None,
        lease_until=None,
    )
    writing = _writing(resources, job, text)
    if hand is not None:  # of a job that is held, and whose vectors were counted here
        publish_document(way.connection, writing, now)
        _publish_in_hand(way.connection, resources.context.database, job, hand)
        return
    way.hold()  # of two who believe to have the job, the second waits here and loses
    publish_document(way.connection, writing, now)
    _check_counts(way.connection, job)
    there = searched(way.connection)
    publish_passages(
        way.connection, resources.context.database, there.generations, job.document_id, job.name
    )
    made_by = (job.embed_model, job.embed_version)
    if there.current and (there.current.name, there.current.version) != made_by:
        ask_for_vectors(way.connection, writing, now)  # another model was chosen meanwhile


def _check_counts(connection: Connection, job: Job) -> None:
    assert job.embed_model is not None
    assert job.embed_version is not None
    count = staged(connection, job.document_id, job.embed_model, job.embed_version)
    check_embedded(count.passages, count.vectors, (job.progress or {}).get("chunks_total", 0))


def _publish_in_hand(connection: Connection, database: Database, job: Job, hand: InHand) -> None:
    vectors = [(row, vector.data) for row, vector in hand.vectors.items()]
    publish_rows(connection, database, job.name, hand.rows, {hand.generation: vectors})


def _writing(resources: WorkerResources, job: Job, text: NormalizedBody) -> Writing:
    document_id = ids.upload_id(job.document_id)
    raw = Archived(
        url=f"/api/documents/{document_id}/raw",
        key=job.raw_path,
        sha256=job.raw_sha256,
        size=job.bytes,
        retrieved_at=job.created_at,
    )
    body = _body(job, raw, text)
    document = Document(
        id=document_id,
        source=SOURCE,
        kind="upload",
        title=job.name,
        source_url=raw.url,
        source_org="Upload",
        citation_string=cite_upload(
            name=job.name, sha256=job.raw_sha256, uploaded=job.created_at.date()
        ),
        raw=raw,
        body=body,
        owner=str(job.user_id),
    )
    return Writing(
        document=document,
        content_sha256=ids.json_sha256([job.name, job.raw_sha256, job.parsed_sha256]),
        body_text_sha256=ids.text_sha256(text.markdown),
        recipe=recipe_of(body.normalizer, resources.context.chunker),
        task_key=job.raw_path,
    )


def _body(job: Job, raw: Archived, text: NormalizedBody) -> Body:
    """What the text can be made from again: the file, or what a parser outside made of it."""
    assert job.parsed_path is not None
    assert job.parsed_sha256 is not None
    if job.parser == "local":
        form = raw_format_of(job.format)
        return Body(archived=raw, format=form, normalizer=job.parsed_by, normalized=text)
    parsed = Archived(
        url=raw.url,
        key=job.parsed_path,
        sha256=job.parsed_sha256,
        size=job.parsed_bytes or 0,
        retrieved_at=job.updated_at,
    )
    return Body(
        archived=parsed, format="text", normalizer=get_normalizer(MARKDOWN).label, normalized=text
    )


_UNVALIDATED: Final = (
    JobStatus.UPLOADED,
    JobStatus.PARSE_QUEUED,
    JobStatus.PARSED,
    JobStatus.FAILED_PARSE,
)

Step = Callable[[WorkerResources, Job], Job]
"""Takes a job that is held by a lease one step forward, and gives it as it stands then."""


def parse(resources: WorkerResources, job: Job) -> Job:
    """`parse_queued` → `parsed`, now or when the parser outside answers."""
    return (parse_here if job.parser == "local" else parse_outside)(resources, job)


def validate(resources: WorkerResources, job: Job) -> Job:
    """`parsed` → `parse_validated` → `chunking`; a text the user has already is kept once."""
    read_parsed(resources.context.blobs, job)
    with moving(resources.context.database, job) as way:
        validated(way, resources)
        chunking(way, resources)
    drop_copy(resources, job.parsed_path, way.job)
    return way.job


def validated(way: Way, resources: WorkerResources) -> None:
    """The text is whole, as the caller has seen."""
    job = way.job
    given = {"user": job.user_id, "sha256": job.parsed_sha256}
    earlier = run(way.connection, _SAME_TEXT, given).all()
    canonical = min(earlier).parsed_path if earlier else job.parsed_path
    is_copy = canonical != job.parsed_path
    way.move(
        JobStatus.PARSE_VALIDATED,
        why="the same text as of an earlier file" if is_copy else "the text is whole",
        now=resources.context.seams.clock.now(),
        parsed_path=canonical,
    )


_SAME_TEXT: Final = (
    select(upload_jobs.c.created_at, upload_jobs.c.job_id, upload_jobs.c.parsed_path)
    .where(upload_jobs.c.user_id == bindparam("user"))
    .where(upload_jobs.c.parsed_sha256 == bindparam("sha256"))
    .where(*(upload_jobs.c.status != status.value for status in _UNVALIDATED))
)
"""Where files of a user have a text, the first of them least.

Asked for the first, SQLite would go through all jobs of the user in their order.
"""


def drop_copy(resources: WorkerResources, written: str | None, job: Job) -> None:
    """Remove a text that was written, but that an earlier file of the user has too."""
    if written is not None and written != job.parsed_path:
        with suppress(StoreError):  # one text too many is no harm
            resources.context.blobs.delete(written)


def begin_chunking(resources: WorkerResources, job: Job) -> Job:
    """`parse_validated` → `chunking`."""
    with moving(resources.context.database, job) as way:
        chunking(way, resources)
    return way.job


def chunking(way: Way, resources: WorkerResources) -> None:
    """The text is about to be cut."""
    label, now = chunker_label(resources.context.chunker), resources.context.seams.clock.now()
    way.move(JobStatus.CHUNKING, why=f"cut by {label}", now=now, chunks_version=label)


def chunk(resources: WorkerResources, job: Job) -> Job:
    """`chunking` → `chunks_stored`."""
    passages = cut(resources, job, read_parsed(resources.context.blobs, job))
    with moving(resources.context.database, job) as way:
        chunks_stored(way, resources, passages)
    return way.job


def cut(resources: WorkerResources, job: Job, text: NormalizedBody) -> Passages:
    """The passages of a job's text, if they are plausible."""
    chunker, document_id = resources.context.chunker, ids.upload_id(job.document_id)
    passages = passages_of_text(document_id, job.name, None, text, chunker)
    check_chunks(text.markdown, passages.chunks, chunker)
    return passages


def chunks_stored(way: Way, resources: WorkerResources, passages: Passages) -> list[dict[str, Any]]:
    """The passages are stored; gives the rows that were not there already."""
    context, now, count = (
        resources.context,
        resources.context.seams.clock.now(),
        len(passages.chunks),
    )
    rows = stage_passages(way.connection, context.database.fulltext, passages, now)
    _check_stored(way.connection, passages)
    way.move(
        JobStatus.CHUNKS_STORED,
        why=f"{count} passages",
        now=now,
        chunks_version=chunker_label(context.chunker),
        progress={"chunks_total": count, "chunks_done": count},
        chunked_at=now,
    )
    return rows


def _check_stored(connection: Connection, passages: Passages) -> None:
    held = staged_hashes(connection, passages.document_uid)
    if held != {chunk.ordinal: ids.chunk_sha(chunk.text) for chunk in passages.chunks}:
        raise GateError("the passages that are stored are not those that were cut")


STEPS: Final[Mapping[JobStatus, Step]] = {
    JobStatus.PARSE_QUEUED: parse,
    JobStatus.PARSED: validate,
    JobStatus.PARSE_VALIDATED: begin_chunking,
    JobStatus.CHUNKING: chunk,
    JobStatus.CHUNKS_STORED: queue_embedding,
    JobStatus.EMBEDDING_QUEUED: embed_batch,
    JobStatus.EMBEDDING_IN_PROGRESS: embed_batch,
    JobStatus.EMBEDDINGS_STORED: finalize,
}

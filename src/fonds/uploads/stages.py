"""The steps of an upload job: one for each status that a worker takes a job from.

A step prepares its result without a transaction, and then stores it in one, together with the move
of the job that it justifies. What a step has made is passed on to the next (`ClaimedJob`), so that
a text is read and checked once; any other worker reads it where it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from typing import Final

from sqlalchemy import Connection, bindparam, select

from fonds import ids
from fonds.citations.forms import bluebook_date
from fonds.context import Context
from fonds.errors import GateError, StoreError
from fonds.model import Archived, Body, Document, NormalizedBody
from fonds.normalize.registry import get_normalizer
from fonds.runs.normalization import chunker_label, derivation_versions, passages_of_text
from fonds.stores.database import run
from fonds.stores.documents import DocumentWrite, publish_document, queue_vectors
from fonds.stores.passages import (
    Passages,
    publish_passages,
    searched,
    stage_passages,
    staged,
    staged_hashes,
)
from fonds.stores.tables import upload_jobs
from fonds.uploads.embedding import embed, queue_embedding
from fonds.uploads.files import FORMATS
from fonds.uploads.jobs import Job, JobTransition
from fonds.uploads.parsing import MARKDOWN, parse_externally, parse_locally, text_of
from fonds.uploads.resources import ClaimedJob
from fonds.uploads.states import JobStatus, check_chunks, check_embedded
from fonds.uploads.titles import title_of


def cite_upload(*, title: str, name: str, sha256: str, uploaded: date) -> str:
    """Title and file name, the day, and the beginning of a hash that no other file has.

    `Flood policy, policy.pdf (uploaded Nov. 16, 2026; SHA-256 3fa9c1d2e4b5).`
    """
    both = name if title == name else f"{title}, {name}"
    return f"{both} (uploaded {bluebook_date(uploaded)}; SHA-256 {sha256[:12]})."


SOURCE: Final = "uploads"


def parse(claimed: ClaimedJob) -> None:
    """`parse_queued` → `parsed`, now, or when the external parser has finished."""
    if claimed.job.parser == "local":
        parse_locally(claimed)
    else:
        parse_externally(claimed)


def validate(claimed: ClaimedJob) -> None:
    """`parsed` → `parse_validated` → `chunking`; equal texts of a user are stored once."""
    text_of(claimed)
    parsed_path = claimed.job.parsed_path
    with claimed.transition() as transition:
        earlier_path = _path_of_same_text(transition)
        transition.move(
            JobStatus.PARSE_VALIDATED,
            why="the same text as of an earlier file" if earlier_path else "the text is whole",
            parsed_path=earlier_path or parsed_path,
        )
        _begin_chunking(transition, claimed.context)
    if earlier_path and parsed_path is not None:
        with suppress(StoreError):  # a second copy does no harm
            claimed.context.blobs.delete(parsed_path)


def _path_of_same_text(transition: JobTransition) -> str | None:
    """The path of the same text of an earlier file of the user, if that is another path."""
    job = transition.job
    params = {"user": job.user_id, "sha256": job.parsed_sha256}
    earlier = run(transition.connection, _SAME_TEXT, params).all()
    path = min(earlier).parsed_path if earlier else job.parsed_path
    return path if path != job.parsed_path else None


_UNVALIDATED: Final = (
    JobStatus.UPLOADED,
    JobStatus.PARSE_QUEUED,
    JobStatus.PARSED,
    JobStatus.FAILED_PARSE,
)

_SAME_TEXT: Final = (
    select(upload_jobs.c.created_at, upload_jobs.c.job_id, upload_jobs.c.parsed_path)
    .where(upload_jobs.c.user_id == bindparam("user"))
    .where(upload_jobs.c.parsed_sha256 == bindparam("sha256"))
    .where(*(upload_jobs.c.status != status.value for status in _UNVALIDATED))
    .with_for_update(read=True, key_share=True)
)
"""The paths of a text of a user, and when their jobs were made; they are not deleted meanwhile.

Asked for the first, SQLite would go through all jobs of the user in their order.
"""


def begin_chunking(claimed: ClaimedJob) -> None:
    """`parse_validated` → `chunking`."""
    with claimed.transition() as transition:
        _begin_chunking(transition, claimed.context)


def _begin_chunking(transition: JobTransition, context: Context) -> None:
    label = chunker_label(context.chunker)
    transition.move(JobStatus.CHUNKING, why=f"cut by {label}", chunks_version=label)


def chunk(claimed: ClaimedJob) -> None:
    """`chunking` → `chunks_stored`."""
    job, text = claimed.job, text_of(claimed)
    chunker, database = claimed.context.chunker, claimed.context.database
    document_id = ids.upload_id(job.document_id)
    passages = passages_of_text(document_id, title_of(text, job.name), None, text, chunker)
    check_chunks(text.markdown, passages.chunks, chunker)
    count = len(passages.chunks)
    with claimed.transition() as transition:
        stage_passages(transition.connection, database.fulltext, passages, transition.now)
        _check_stored(transition.connection, passages)
        transition.move(
            JobStatus.CHUNKS_STORED,
            why=f"{count} passages",
            chunks_version=chunker_label(chunker),
            progress={"chunks_total": count, "chunks_done": count},
            chunked_at=transition.now,
        )


def _check_stored(connection: Connection, passages: Passages) -> None:
    stored = staged_hashes(connection, passages.document_uid)
    if stored != {chunk.ordinal: ids.chunk_sha(chunk.text) for chunk in passages.chunks}:
        raise GateError("the stored passages differ from those that were cut")


def publish(claimed: ClaimedJob) -> None:
    """`embeddings_stored` → `complete`: the document appears, if each passage has its vector."""
    text, database = text_of(claimed), claimed.context.database
    with claimed.transition() as transition:
        connection, job, now = transition.connection, transition.job, transition.now
        # If two workers both have the job, the second one waits here, and fails.
        transition.move(
            JobStatus.COMPLETE,
            why="the document can be found",
            completed_at=now,
            lease_owner=None,
            lease_until=None,
        )
        _check_counts(connection, job)
        write = _document_write(claimed, text)
        publish_document(connection, write, now)
        vectors = searched(connection)
        # The name of the file is searched as the title is.
        titles = "\n".join(dict.fromkeys([write.document.title, job.name]))
        publish_passages(connection, database, vectors.generations, job.document_id, titles)
        made_by = (job.embed_model, job.embed_version)
        if vectors.current and (vectors.current.name, vectors.current.version) != made_by:
            queue_vectors(connection, write, now)  # another model was chosen meanwhile


def _check_counts(connection: Connection, job: Job) -> None:
    assert job.embed_model is not None
    assert job.embed_version is not None
    count = staged(connection, job.document_id, job.embed_model, job.embed_version)
    check_embedded(count.passages, count.vectors, (job.progress or {}).get("chunks_total", 0))


def _document_write(claimed: ClaimedJob, text: NormalizedBody) -> DocumentWrite:
    job = claimed.job
    document_id = ids.upload_id(job.document_id)
    raw = Archived(
        url=f"/api/documents/{document_id}/raw",
        key=job.raw_path,
        sha256=job.raw_sha256,
        size=job.bytes,
        retrieved_at=job.created_at,
    )
    content, title = _content(job, raw, text), title_of(text, job.name)
    document = Document(
        id=document_id,
        source=SOURCE,
        kind="upload",
        title=title,
        source_url=raw.url,
        source_org="Upload",
        citation_string=cite_upload(
            title=title, name=job.name, sha256=job.raw_sha256, uploaded=job.created_at.date()
        ),
        raw=raw,
        body=content,
        owner=str(job.user_id),
    )
    return DocumentWrite(
        document=document,
        content_sha256=ids.json_sha256([job.name, job.raw_sha256, job.parsed_sha256]),
        body_text_sha256=ids.text_sha256(text.markdown),
        recipe=derivation_versions(content.normalizer, claimed.context.chunker),
        task_key=job.raw_path,
    )


def _content(job: Job, raw: Archived, text: NormalizedBody) -> Body:
    """The body, archived as the file itself, or as the Markdown of an external parser."""
    assert job.parsed_path is not None
    assert job.parsed_sha256 is not None
    if job.parser == "local":
        return Body(
            archived=raw,
            format=FORMATS[job.format].body_format,
            normalizer=job.parsed_by,
            normalized=text,
        )
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


Step = Callable[[ClaimedJob], None]
"""Takes a claimed job one status further, or further still.

It prepares all that it can without a transaction, and ends in one (`ClaimedJob.transition`).
"""

STEPS: Final[Mapping[JobStatus, Step]] = {
    JobStatus.PARSE_QUEUED: parse,
    JobStatus.PARSED: validate,
    JobStatus.PARSE_VALIDATED: begin_chunking,
    JobStatus.CHUNKING: chunk,
    JobStatus.CHUNKS_STORED: queue_embedding,
    JobStatus.EMBEDDING_QUEUED: embed,
    JobStatus.EMBEDDING_IN_PROGRESS: embed,
    JobStatus.EMBEDDINGS_STORED: publish,
}

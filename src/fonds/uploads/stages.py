"""What is done with a job at each status; every step ends in the move it justifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from sqlalchemy import Connection, select

from fonds import ids
from fonds.errors import GateError, StoreError
from fonds.runs.derive import chunker_label, passages_of_text
from fonds.stores.passages import Passages
from fonds.stores.staging import stage_passages, staged_hashes
from fonds.stores.tables import upload_jobs
from fonds.uploads.embedding import embed_batch, queue_embedding
from fonds.uploads.gates import check_chunks
from fonds.uploads.jobs import Job, move
from fonds.uploads.parsing import parse_here, parse_outside, read_parsed
from fonds.uploads.publication import finalize
from fonds.uploads.states import Status
from fonds.uploads.workbench import Workbench

_UNVALIDATED: Final = (
    Status.UPLOADED,
    Status.PARSE_QUEUED,
    Status.PARSED,
    Status.FAILED_PARSE,
)

Step = Callable[[Workbench, Job], Job]
"""Takes a job that is held by a lease one step forward, and gives it as it stands then."""


def parse(bench: Workbench, job: Job) -> Job:
    """`parse_queued` → `parsed`, now or when the parser outside answers."""
    return (parse_here if job.parser == "local" else parse_outside)(bench, job)


def validate(bench: Workbench, job: Job) -> Job:
    """`parsed` → `parse_validated` → `chunking`; a text the user has already is kept once."""
    assert job.parsed_path is not None
    blobs, now = bench.shelf.blobs, bench.shelf.seams.clock.now()
    read_parsed(blobs, job)
    with bench.shelf.database.write() as connection:
        canonical = _canonical_path(connection, job)
        is_copy = canonical != job.parsed_path
        validated = move(
            connection,
            job,
            Status.PARSE_VALIDATED,
            by=_by(job),
            why="the same text as of an earlier file" if is_copy else "the text is whole",
            now=now,
            parsed_path=canonical,
        )
        begun = _begin_chunking(connection, bench, validated)
    if is_copy:
        with suppress(StoreError):  # one text too many is no harm
            blobs.delete(job.parsed_path)
    return begun


def _canonical_path(connection: Connection, job: Job) -> str | None:
    """Where the first file of this user with this text has it."""
    table = upload_jobs.c
    first = (
        select(table.parsed_path)
        .where(table.user_id == job.user_id, table.parsed_sha256 == job.parsed_sha256)
        .where(table.status.not_in([status.value for status in _UNVALIDATED]))
        .order_by(table.created_at, table.job_id)
        .limit(1)
    )
    return connection.scalar(first) or job.parsed_path


def begin_chunking(bench: Workbench, job: Job) -> Job:
    """`parse_validated` → `chunking`."""
    with bench.shelf.database.write() as connection:
        return _begin_chunking(connection, bench, job)


def _begin_chunking(connection: Connection, bench: Workbench, job: Job) -> Job:
    label = chunker_label(bench.shelf.chunker)
    return move(
        connection,
        job,
        Status.CHUNKING,
        by=_by(job),
        why=f"cut by {label}",
        now=bench.shelf.seams.clock.now(),
        chunks_version=label,
    )


def chunk(bench: Workbench, job: Job) -> Job:
    """`chunking` → `chunks_stored`."""
    shelf, now = bench.shelf, bench.shelf.seams.clock.now()
    text = read_parsed(shelf.blobs, job)
    document_id = ids.upload_id(job.document_id)
    passages = passages_of_text(document_id, job.name, None, text, shelf.chunker)
    check_chunks(text.markdown, passages.chunks, shelf.chunker)
    count = len(passages.chunks)
    with shelf.database.write() as connection:
        stage_passages(connection, shelf.database.fulltext, passages, now)
        _check_stored(connection, passages)
        return move(
            connection,
            job,
            Status.CHUNKS_STORED,
            by=_by(job),
            why=f"{count} passages",
            now=now,
            chunks_version=chunker_label(shelf.chunker),
            progress={"chunks_total": count, "chunks_done": count},
            chunked_at=now,
        )


def _check_stored(connection: Connection, passages: Passages) -> None:
    held = staged_hashes(connection, passages.document_uid)
    if held != {chunk.ordinal: ids.chunk_sha(chunk.text) for chunk in passages.chunks}:
        raise GateError("the passages that are stored are not those that were cut")


def _by(job: Job) -> str:
    return job.lease_owner or "fonds"


STEPS: Final[Mapping[Status, Step]] = {
    Status.PARSE_QUEUED: parse,
    Status.PARSED: validate,
    Status.PARSE_VALIDATED: begin_chunking,
    Status.CHUNKING: chunk,
    Status.CHUNKS_STORED: queue_embedding,
    Status.EMBEDDING_QUEUED: embed_batch,
    Status.EMBEDDING_IN_PROGRESS: embed_batch,
    Status.EMBEDDINGS_STORED: finalize,
}

"""What is done with a job at each status; every step ends in the move it justifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from fonds import ids
from fonds.errors import GateError, StoreError
from fonds.model import NormalizedBody
from fonds.runs.derive import chunker_label, passages_of_text
from fonds.stores.database import run
from fonds.stores.passages import Passages
from fonds.stores.staging import stage_passages, staged_hashes
from fonds.stores.tables import upload_jobs
from fonds.uploads.embedding import embed_batch, queue_embedding
from fonds.uploads.gates import check_chunks
from fonds.uploads.jobs import Job
from fonds.uploads.moving import Way, moving
from fonds.uploads.parsing import parse_here, parse_outside, read_parsed
from fonds.uploads.publication import finalize
from fonds.uploads.states import JobStatus
from fonds.uploads.workbench import Workbench

_UNVALIDATED: Final = (
    JobStatus.UPLOADED,
    JobStatus.PARSE_QUEUED,
    JobStatus.PARSED,
    JobStatus.FAILED_PARSE,
)

Step = Callable[[Workbench, Job], Job]
"""Takes a job that is held by a lease one step forward, and gives it as it stands then."""


def parse(bench: Workbench, job: Job) -> Job:
    """`parse_queued` → `parsed`, now or when the parser outside answers."""
    return (parse_here if job.parser == "local" else parse_outside)(bench, job)


def validate(bench: Workbench, job: Job) -> Job:
    """`parsed` → `parse_validated` → `chunking`; a text the user has already is kept once."""
    read_parsed(bench.shelf.blobs, job)
    with moving(bench.shelf.database, job) as way:
        validated(way, bench)
        chunking(way, bench)
    drop_copy(bench, job.parsed_path, way.job)
    return way.job


def validated(way: Way, bench: Workbench) -> None:
    """The text is whole, as the caller has seen."""
    job = way.job
    given = {"user": job.user_id, "sha256": job.parsed_sha256}
    earlier = run(way.connection, _SAME_TEXT, given).all()
    canonical = min(earlier).parsed_path if earlier else job.parsed_path
    is_copy = canonical != job.parsed_path
    way.move(
        JobStatus.PARSE_VALIDATED,
        why="the same text as of an earlier file" if is_copy else "the text is whole",
        now=bench.shelf.seams.clock.now(),
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


def drop_copy(bench: Workbench, written: str | None, job: Job) -> None:
    """Remove a text that was written, but that an earlier file of the user has too."""
    if written is not None and written != job.parsed_path:
        with suppress(StoreError):  # one text too many is no harm
            bench.shelf.blobs.delete(written)


def begin_chunking(bench: Workbench, job: Job) -> Job:
    """`parse_validated` → `chunking`."""
    with moving(bench.shelf.database, job) as way:
        chunking(way, bench)
    return way.job


def chunking(way: Way, bench: Workbench) -> None:
    """The text is about to be cut."""
    label, now = chunker_label(bench.shelf.chunker), bench.shelf.seams.clock.now()
    way.move(JobStatus.CHUNKING, why=f"cut by {label}", now=now, chunks_version=label)


def chunk(bench: Workbench, job: Job) -> Job:
    """`chunking` → `chunks_stored`."""
    passages = cut(bench, job, read_parsed(bench.shelf.blobs, job))
    with moving(bench.shelf.database, job) as way:
        chunks_stored(way, bench, passages)
    return way.job


def cut(bench: Workbench, job: Job, text: NormalizedBody) -> Passages:
    """The passages of a job's text, if they are plausible."""
    chunker, document_id = bench.shelf.chunker, ids.upload_id(job.document_id)
    passages = passages_of_text(document_id, job.name, None, text, chunker)
    check_chunks(text.markdown, passages.chunks, chunker)
    return passages


def chunks_stored(way: Way, bench: Workbench, passages: Passages) -> list[dict[str, Any]]:
    """The passages are stored; gives the rows that were not there already."""
    shelf, now, count = bench.shelf, bench.shelf.seams.clock.now(), len(passages.chunks)
    rows = stage_passages(way.connection, shelf.database.fulltext, passages, now)
    _check_stored(way.connection, passages)
    way.move(
        JobStatus.CHUNKS_STORED,
        why=f"{count} passages",
        now=now,
        chunks_version=chunker_label(shelf.chunker),
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

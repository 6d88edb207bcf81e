"""The states of an upload job, and the moves between them, as the database knows them too.

    uploaded ─ parse_queued ─ parsed ─ parse_validated ─ chunking ─ chunks_stored ─┐
    ┌──────────────────────────────────────────────────────────────────────────────┘
    └ embedding_queued ─ embedding_in_progress ─ embeddings_stored ─ complete

Every stage may end in its failure, and a retry leads back from there to the last good stage.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class JobStatus(StrEnum):
    """Where a job stands."""

    UPLOADED = "uploaded"
    """The upload is announced; the file is on its way."""
    PARSE_QUEUED = "parse_queued"
    PARSED = "parsed"
    PARSE_VALIDATED = "parse_validated"
    CHUNKING = "chunking"
    CHUNKS_STORED = "chunks_stored"
    EMBEDDING_QUEUED = "embedding_queued"
    EMBEDDING_IN_PROGRESS = "embedding_in_progress"
    EMBEDDINGS_STORED = "embeddings_stored"
    COMPLETE = "complete"
    FAILED_PARSE = "failed_parse"
    FAILED_CHUNKING = "failed_chunking"
    FAILED_EMBEDDING = "failed_embedding"


MOVES: Final = {
    JobStatus.UPLOADED: {JobStatus.PARSE_QUEUED, JobStatus.FAILED_PARSE},
    JobStatus.PARSE_QUEUED: {JobStatus.PARSED, JobStatus.FAILED_PARSE},
    JobStatus.PARSED: {JobStatus.PARSE_VALIDATED, JobStatus.FAILED_PARSE},
    JobStatus.PARSE_VALIDATED: {JobStatus.CHUNKING, JobStatus.FAILED_CHUNKING},
    JobStatus.CHUNKING: {JobStatus.CHUNKS_STORED, JobStatus.FAILED_CHUNKING},
    JobStatus.CHUNKS_STORED: {JobStatus.EMBEDDING_QUEUED, JobStatus.FAILED_EMBEDDING},
    JobStatus.EMBEDDING_QUEUED: {JobStatus.EMBEDDING_IN_PROGRESS, JobStatus.FAILED_EMBEDDING},
    JobStatus.EMBEDDING_IN_PROGRESS: {JobStatus.EMBEDDINGS_STORED, JobStatus.FAILED_EMBEDDING},
    JobStatus.EMBEDDINGS_STORED: {JobStatus.COMPLETE, JobStatus.FAILED_EMBEDDING},
    JobStatus.COMPLETE: set[JobStatus](),
    JobStatus.FAILED_PARSE: {JobStatus.UPLOADED, JobStatus.PARSE_QUEUED},
    JobStatus.FAILED_CHUNKING: {JobStatus.PARSE_VALIDATED},
    JobStatus.FAILED_EMBEDDING: {JobStatus.CHUNKS_STORED},
}

INITIAL: Final = (JobStatus.UPLOADED, JobStatus.PARSE_QUEUED)
"""A job begins with one of these."""
FAILURES: Final = frozenset(
    {JobStatus.FAILED_PARSE, JobStatus.FAILED_CHUNKING, JobStatus.FAILED_EMBEDDING}
)
ENDED: Final = FAILURES | {JobStatus.COMPLETE}
WORKED_ON: Final = tuple(status for status in MOVES if status not in {*ENDED, JobStatus.UPLOADED})
"""What a worker takes forward; a file that is on its way is its user's business."""


def failure_of(status: JobStatus) -> JobStatus:
    """How a job ends that cannot go on from here."""
    return next(after for after in MOVES[status] if after in FAILURES)


def stage_of(status: JobStatus) -> str:
    """`parse`, `chunking` or `embedding`: what a job at this status fails in."""
    failure = status if status in FAILURES else failure_of(status)
    return failure.removeprefix("failed_")

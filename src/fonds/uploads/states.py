"""The states of an upload job, and the moves between them, as the database knows them too.

    uploaded ─ parse_queued ─ parsed ─ parse_validated ─ chunking ─ chunks_stored ─┐
    ┌──────────────────────────────────────────────────────────────────────────────┘
    └ embedding_queued ─ embedding_in_progress ─ embeddings_stored ─ complete

Every stage may end in its failure, and a retry leads back from there to the last good stage.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Status(StrEnum):
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
    Status.UPLOADED: {Status.PARSE_QUEUED, Status.FAILED_PARSE},
    Status.PARSE_QUEUED: {Status.PARSED, Status.FAILED_PARSE},
    Status.PARSED: {Status.PARSE_VALIDATED, Status.FAILED_PARSE},
    Status.PARSE_VALIDATED: {Status.CHUNKING, Status.FAILED_CHUNKING},
    Status.CHUNKING: {Status.CHUNKS_STORED, Status.FAILED_CHUNKING},
    Status.CHUNKS_STORED: {Status.EMBEDDING_QUEUED, Status.FAILED_EMBEDDING},
    Status.EMBEDDING_QUEUED: {Status.EMBEDDING_IN_PROGRESS, Status.FAILED_EMBEDDING},
    Status.EMBEDDING_IN_PROGRESS: {Status.EMBEDDINGS_STORED, Status.FAILED_EMBEDDING},
    Status.EMBEDDINGS_STORED: {Status.COMPLETE, Status.FAILED_EMBEDDING},
    Status.COMPLETE: set[Status](),
    Status.FAILED_PARSE: {Status.UPLOADED, Status.PARSE_QUEUED},
    Status.FAILED_CHUNKING: {Status.PARSE_VALIDATED},
    Status.FAILED_EMBEDDING: {Status.CHUNKS_STORED},
}

INITIAL: Final = (Status.UPLOADED, Status.PARSE_QUEUED)
"""A job begins with one of these."""
FAILURES: Final = frozenset({Status.FAILED_PARSE, Status.FAILED_CHUNKING, Status.FAILED_EMBEDDING})
ENDED: Final = FAILURES | {Status.COMPLETE}
WORKED_ON: Final = tuple(status for status in MOVES if status not in {*ENDED, Status.UPLOADED})
"""What a worker takes forward; a file that is on its way is its user's business."""


def failure_of(status: Status) -> Status:
    """How a job ends that cannot go on from here."""
    return next(after for after in MOVES[status] if after in FAILURES)


def stage_of(status: Status) -> str:
    """`parse`, `chunking` or `embedding`: what a job at this status fails in."""
    failure = status if status in FAILURES else failure_of(status)
    return failure.removeprefix("failed_")

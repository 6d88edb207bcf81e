"""The states of an upload job, and the moves between them, as the database knows them too.

    uploaded ─ parse_queued ─ parsed ─ parse_validated ─ chunking ─ chunks_stored ─┐
    ┌──────────────────────────────────────────────────────────────────────────────┘
    └ embedding_queued ─ embedding_in_progress ─ embeddings_stored ─ complete

Every stage may end in its failure, and a retry leads back from there to the last good stage.

What a stage must have left behind before a job may leave it. Pure; each raises GateError.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

from fonds.chunk.chunker import Chunker
from fonds.chunk.headings import read_outline
from fonds.chunk.tokens import count
from fonds.errors import GateError
from fonds.model import Chunk


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


_WORD: Final = re.compile(r"\w")


def check_parsed(data: bytes, sha256: str, body_map: Mapping[str, Any]) -> str:
    """The Markdown that a parser left, if it is what was promised and has words in it."""
    if hashlib.sha256(data).hexdigest() != sha256:
        raise GateError("the stored text is not the one that was parsed: its hash differs")
    try:
        markdown = data.decode()
    except UnicodeDecodeError as error:
        raise GateError("the stored text is not UTF-8") from error
    if "\0" in markdown:
        raise GateError("the stored text holds NUL characters")
    if not _WORD.search(markdown):
        raise GateError("the file has no text in it: not one word was found")
    for part in ("sections", "pages"):
        offsets = [offset for offset, _ in body_map[part]]
        if offsets != sorted(offsets) or any(not 0 <= at <= len(markdown) for at in offsets):
            raise GateError(f"the {part} of the text are not where they are said to be")
    return markdown


def check_chunks(markdown: str, chunks: Sequence[Chunk], chunker: Chunker) -> None:
    """That passages are exact, in order, of a plausible number and overlap, and lose nothing."""
    below = _without_headings(markdown)
    if not below.strip():
        return  # headings and nothing below them: the document's title stands for it
    if not chunks:
        raise GateError("the text has words, but no passage was made of it")
    if len(chunks) > len(below.split()):
        raise GateError(f"{len(chunks)} passages are too many for {len(below)} characters")
    for place, chunk in enumerate(chunks):
        if chunk.ordinal != place:
            raise GateError("the passages are not numbered in their order")
        if not chunk.text or chunk.text != markdown[chunk.start : chunk.end]:
            raise GateError(f"passage {place} is not what stands at its place in the text")
        if chunk.tokens > chunker.max_tokens:
            raise GateError(f"passage {place} is longer than passages may be")
    for one, two in pairwise(chunks):
        _check_neighbours(below, one, two, chunker)
    _check_gap(below, 0, chunks[0].start)
    _check_gap(below, chunks[-1].end, len(below))


def _without_headings(markdown: str) -> str:
    """The text with blanks for its headings, which passages have in their place instead."""
    pieces, end = [], 0
    for line in read_outline(markdown).headings:
        pieces += [markdown[end : line.start], " " * (line.end - line.start)]
        end = line.end
    return "".join([*pieces, markdown[end:]])


def _check_neighbours(below: str, one: Chunk, two: Chunk, chunker: Chunker) -> None:
    if not one.start < two.start or not one.end <= two.end:
        raise GateError(f"passage {two.ordinal} does not follow the one before it")
    if two.start >= one.end:
        _check_gap(below, one.end, two.start)
    elif count(below[two.start : one.end]) > chunker.overlap_tokens:
        raise GateError(f"passage {two.ordinal} repeats more of the one before it than allowed")


def _check_gap(below: str, start: int, end: int) -> None:
    if below[start:end].strip():
        raise GateError(f"no passage holds the text at {start}")


def check_embedded(passages: int, vectors: int, expected: int) -> None:
    """That each passage that was cut is there, and has its vector."""
    if passages != expected:
        raise GateError(f"{expected} passages were cut, but {passages} are stored")
    if vectors != passages:
        raise GateError(f"{vectors} of {passages} passages have a vector")

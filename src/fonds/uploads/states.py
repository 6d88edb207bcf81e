"""The statuses of an upload job, and the moves between them; triggers are made from both.

    uploaded ─ parse_queued ─ parsed ─ parse_validated ─ chunking ─ chunks_stored ─┐
    ┌──────────────────────────────────────────────────────────────────────────────┘
    └ embedding_queued ─ embedding_in_progress ─ embeddings_stored ─ complete

Every stage may end in its failure, and a retry leads back from there to the last good stage.

The checks of what a stage has stored, without which a job does not move on; they raise GateError.
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
    """The status of a job."""

    UPLOADED = "uploaded"
    """The upload is announced, and its file is expected."""
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
"""The statuses of a new job."""
FAILURES: Final = frozenset(
    {JobStatus.FAILED_PARSE, JobStatus.FAILED_CHUNKING, JobStatus.FAILED_EMBEDDING}
)
ENDED: Final = FAILURES | {JobStatus.COMPLETE}
ACTIVE: Final = tuple(status for status in MOVES if status not in {*ENDED, JobStatus.UPLOADED})
"""Statuses from which a worker takes a job further; `uploaded` waits for the user."""


def failure_of(status: JobStatus) -> JobStatus:
    """The status of a job that fails at this one."""
    return next(after for after in MOVES[status] if after in FAILURES)


def stage_of(status: JobStatus) -> str:
    """The stage that a job at this status fails in: `parse`, `chunking` or `embedding`."""
    failure = status if status in FAILURES else failure_of(status)
    return failure.removeprefix("failed_")


_WORD: Final = re.compile(r"\w")


def check_parsed(data: bytes, sha256: str, body_map: Mapping[str, Any]) -> str:
    """The Markdown that a parser stored, if it is unchanged and has words in it."""
    if hashlib.sha256(data).hexdigest() != sha256:
        raise GateError("the stored text is not the one that was parsed: its hash differs")
    try:
        markdown = data.decode()
    except UnicodeDecodeError as error:
        raise GateError("the stored text is not UTF-8") from error
    if "\0" in markdown:
        raise GateError("the stored text contains NUL characters")
    if not _WORD.search(markdown):
        raise GateError("the file has no text in it: no word was found")
    for part in ("sections", "pages"):
        offsets = [offset for offset, *_ in body_map[part]]
        if offsets != sorted(offsets) or any(not 0 <= at <= len(markdown) for at in offsets):
            raise GateError(f"the offsets of the {part} are not in order or not within the text")
    return markdown


def check_chunks(markdown: str, chunks: Sequence[Chunk], chunker: Chunker) -> None:
    """Check that passages are exact, ordered, of a plausible number and overlap, and complete."""
    text = _without_headings(markdown)
    if not text.strip():
        return  # only headings: the document has its title as a passage
    if not chunks:
        raise GateError("the text has words, but no passage was made of it")
    if len(chunks) > len(text.split()):
        raise GateError(f"{len(chunks)} passages are too many for {len(text)} characters")
    for ordinal, chunk in enumerate(chunks):
        if chunk.ordinal != ordinal:
            raise GateError("the passages are not numbered in their order")
        if not chunk.text or chunk.text != markdown[chunk.start : chunk.end]:
            raise GateError(f"passage {ordinal} differs from the text at its offsets")
        if chunk.tokens > chunker.max_tokens:
            raise GateError(f"passage {ordinal} is longer than passages may be")
    for previous, chunk in pairwise(chunks):
        _check_neighbours(text, previous, chunk, chunker)
    _check_gap(text, 0, chunks[0].start)
    _check_gap(text, chunks[-1].end, len(text))


def _without_headings(markdown: str) -> str:
    """The text with blanks instead of its headings, which belong to no passage."""
    parts, end = [], 0
    for line in read_outline(markdown).headings:
        parts += [markdown[end : line.start], " " * (line.end - line.start)]
        end = line.end
    return "".join([*parts, markdown[end:]])


def _check_neighbours(text: str, previous: Chunk, chunk: Chunk, chunker: Chunker) -> None:
    if not previous.start < chunk.start or not previous.end <= chunk.end:
        raise GateError(f"passage {chunk.ordinal} does not follow the one before it")
    if chunk.start >= previous.end:
        _check_gap(text, previous.end, chunk.start)
    elif count(text[chunk.start : previous.end]) > chunker.overlap_tokens:
        raise GateError(f"passage {chunk.ordinal} repeats more of the one before it than allowed")


def _check_gap(text: str, start: int, end: int) -> None:
    if text[start:end].strip():
        raise GateError(f"no passage contains the text at {start}")


def check_embedded(passages: int, vectors: int, expected: int) -> None:
    """Check that each passage that was cut is stored and has its vector."""
    if passages != expected:
        raise GateError(f"{expected} passages were cut, but {passages} are stored")
    if vectors != passages:
        raise GateError(f"{vectors} of {passages} passages have a vector")

"""Moving a job on from outside: only where its writes are there already.

A service that did a stage's work itself, or found it done, may say so; what it says is checked as
the worker's own work is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection

from fonds import ids
from fonds.api.problems import ProblemError
from fonds.errors import BlobMissingError, GateError, LeaseLostError
from fonds.model import NormalizedBody
from fonds.runs.derive import chunker_label, passages_of_text
from fonds.runs.shelf import Shelf
from fonds.stores.staging import staged, staged_hashes
from fonds.stores.vectors import current_generation
from fonds.uploads.gates import check_embedded
from fonds.uploads.jobs import Job, job_of, move
from fonds.uploads.parsing import read_parsed
from fonds.uploads.states import FAILURES, MOVES, JobStatus

_Check = Callable[[Connection, Job, "_Found"], dict[str, Any]]
"""Refuses a move whose writes are not there; gives the columns that go with it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """What was found before the transaction, as reading and cutting a text takes its time."""

    now: datetime
    chunker: str
    passages: Mapping[int, str] = field(default_factory=dict)
    """The hash of each passage that the text has."""


def advance_job(shelf: Shelf, document_id: UUID, to: JobStatus, *, by: str) -> Job | None:
    """Move a job, if it may and can; None where there is none."""
    with shelf.database.read() as connection:
        seen = job_of(connection, document_id)
    if seen is None:
        return None
    _check_move(seen, to)
    found = _look(shelf, seen, to)
    with shelf.database.write() as connection:
        job = job_of(connection, document_id, to_write=True)
        if job is None or _what_counts(job) != _what_counts(seen):
            raise LeaseLostError(f"job {seen.job_id} has moved on; nothing was written")
        columns = _CHECKS[to](connection, job, found)
        return move(
            connection,
            job,
            to,
            by=by,
            why="advanced from outside",
            now=found.now,
            lease_owner=None,
            lease_until=None,
            **columns,
        )


def _look(shelf: Shelf, job: Job, to: JobStatus) -> _Found:
    label, passages = chunker_label(shelf.chunker), {}
    if to in _NEED_TEXT:
        text = _text(shelf, job)
        if to is JobStatus.CHUNKS_STORED:
            name = ids.upload_id(job.document_id)
            cut = passages_of_text(name, job.name, None, text, shelf.chunker)
            passages = {chunk.ordinal: ids.chunk_sha(chunk.text) for chunk in cut.chunks}
    return _Found(now=shelf.seams.clock.now(), chunker=label, passages=passages)


def _text(shelf: Shelf, job: Job) -> NormalizedBody:
    if job.parsed_path is None or job.parsed_sha256 is None:
        raise GateError("no parsed text is stored")
    try:
        return read_parsed(shelf.blobs, job)
    except BlobMissingError:
        raise GateError("the parsed text is not in the store") from None


def _what_counts(job: Job) -> tuple[JobStatus, str | None, str | None]:
    return job.status, job.parsed_path, job.parsed_sha256


def _check_move(job: Job, to: JobStatus) -> None:
    if to not in MOVES[job.status]:
        raise ProblemError(409, "illegal-move", f"a job cannot move from {job.status} to {to}")
    if job.status in FAILURES:
        raise ProblemError(409, "use-retry", "a job that failed is sent back by its retry")
    if to not in _CHECKS:
        raise ProblemError(409, "not-by-hand", f"only the worker itself moves a job to {to}")


def _has_come(_connection: Connection, job: Job, _found: _Found) -> dict[str, Any]:
    if job.arrived_at is None:
        raise GateError("the file has not come: complete the upload")
    return {}


def _is_parsed(_connection: Connection, _job: Job, _found: _Found) -> dict[str, Any]:
    return {}


def _can_be_cut(_connection: Connection, _job: Job, found: _Found) -> dict[str, Any]:
    return {"chunks_version": found.chunker}


def _is_cut(connection: Connection, job: Job, found: _Found) -> dict[str, Any]:
    held, count = staged_hashes(connection, job.document_id), len(found.passages)
    if held != found.passages:
        raise GateError(f"{len(held)} passages are stored, and not the {count} that the text has")
    return {
        "chunks_version": found.chunker,
        "progress": {"chunks_total": count, "chunks_done": count},
        "chunked_at": found.now,
    }


def _has_model(connection: Connection, job: Job, _found: _Found) -> dict[str, Any]:
    generation = current_generation(connection)
    if generation is None:
        raise GateError("there is no model yet that passages could wait for")
    return {
        "embed_model": generation.name,
        "embed_version": generation.version,
        "progress": {**(job.progress or {}), "embeds_total": _total(job), "embeds_done": 0},
    }


def _has_vectors(connection: Connection, job: Job, found: _Found) -> dict[str, Any]:
    passages, vectors = _counts(connection, job)
    if not vectors:
        raise GateError(f"none of {passages} passages has a vector")
    return {
        "progress": {**(job.progress or {}), "embeds_done": vectors},
        "first_embedded_at": job.first_embedded_at or found.now,
    }


def _is_embedded(connection: Connection, job: Job, found: _Found) -> dict[str, Any]:
    check_embedded(*_counts(connection, job), _total(job))
    return _has_vectors(connection, job, found)


def _counts(connection: Connection, job: Job) -> tuple[int, int]:
    if job.embed_model is None or job.embed_version is None:
        raise GateError("no model was chosen for this job")
    found = staged(connection, job.document_id, job.embed_model, job.embed_version)
    return found.passages, found.vectors


def _total(job: Job) -> int:
    return (job.progress or {}).get("chunks_total", 0)


_CHECKS: Final[Mapping[JobStatus, _Check]] = {
    JobStatus.PARSE_QUEUED: _has_come,
    JobStatus.PARSED: _is_parsed,
    JobStatus.PARSE_VALIDATED: _is_parsed,
    JobStatus.CHUNKING: _can_be_cut,
    JobStatus.CHUNKS_STORED: _is_cut,
    JobStatus.EMBEDDING_QUEUED: _has_model,
    JobStatus.EMBEDDING_IN_PROGRESS: _has_vectors,
    JobStatus.EMBEDDINGS_STORED: _is_embedded,
}
_NEED_TEXT: Final = frozenset(
    {JobStatus.PARSED, JobStatus.PARSE_VALIDATED, JobStatus.CHUNKING, JobStatus.CHUNKS_STORED}
)

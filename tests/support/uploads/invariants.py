"""What must always hold of uploads, whatever happened to them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, select
from tests.support.uploads.files import BY_SHA, PAPERS, USERS
from tests.support.uploads.world import World, opened

from fonds import ids
from fonds.stores.blobs import FolderBlobs
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    documents,
    upload_errors,
    upload_events,
)
from fonds.uploads.intake import staging_key
from fonds.uploads.jobs import Job, page_of_jobs
from fonds.uploads.states import ENDED, FAILURES, MOVES, JobStatus, stage_of
from fonds.uploads.worker import UploadWorker

CUT: Final = (
    JobStatus.CHUNKS_STORED,
    JobStatus.EMBEDDING_QUEUED,
    JobStatus.EMBEDDING_IN_PROGRESS,
    JobStatus.EMBEDDINGS_STORED,
    JobStatus.COMPLETE,
    JobStatus.FAILED_EMBEDDING,
)
"""Where a job stands that has passages."""

Calm = Mapping[tuple[UUID, str], tuple[list[Any], dict[UUID, str]]]
"""Passages and vectors by document and name of its file, where nobody disturbs anything."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """All that is known of uploads at one moment."""

    jobs: list[Job]
    moves: list[Any]
    final_errors: int
    passages: Mapping[UUID, list[Any]]
    vectors: Mapping[UUID, dict[UUID, str]]
    documents: list[str]


def calm_run(home: Path) -> Calm:
    """Every file under every name, with nothing in its way."""
    found: dict[tuple[UUID, str], tuple[list[Any], dict[UUID, str]]] = {}
    for number in range(max(len(paper.names) for paper in PAPERS)):
        with opened(home / str(number)) as world:
            _upload_all(world, number)
            world.drain([UploadWorker(world.resources())])
            seen = look(world)
        for job in seen.jobs:
            key = job.document_id
            found[key, job.name] = (seen.passages[key], seen.vectors[key])
    return found


def _upload_all(world: World, number: int) -> None:
    """All that have a name of this number."""
    for user in USERS:
        for paper in PAPERS:
            for name in paper.names[number : number + 1]:
                job = world.announce(user, paper, name)
                world.files.put(staging_key(job), paper.data)
                world.complete(job)


def look(world: World) -> Seen:
    """Everything at once, as a reader of the database sees it."""
    made, error = upload_events.c, upload_errors.c
    columns = (made.id, made.job_id, made.from_status, made.to_status)
    with world.library.database.read() as connection:
        return Seen(
            jobs=page_of_jobs(connection, limit=1000),
            moves=sorted(connection.execute(select(*columns))),
            final_errors=sum(connection.scalars(select(error.is_final))),
            passages=_passages(connection),
            vectors=_vectors(connection),
            documents=sorted(connection.scalars(select(documents.c.id))),
        )


def _passages(connection: Connection) -> dict[UUID, list[Any]]:
    chunk = document_chunk_buffer.c
    query = select(chunk.document_id, chunk.chunk_id, chunk.chunk_ord, chunk.text, chunk.meta)
    held: dict[UUID, list[Any]] = defaultdict(list)
    for row in connection.execute(query.order_by(chunk.chunk_ord)):
        held[row.document_id].append((row.chunk_id, row.chunk_ord, row.text, row.meta))
    return held


def _vectors(connection: Connection) -> dict[UUID, dict[UUID, str]]:
    vector = document_vector_buffer.c
    held: dict[UUID, dict[UUID, str]] = defaultdict(dict)
    query = select(vector.document_id, vector.chunk_id, vector.vector_sha)
    for row in connection.execute(query):
        assert row.chunk_id not in held[row.document_id]
        held[row.document_id][row.chunk_id] = row.vector_sha
    return held


def require_truth(world: World, calm: Calm) -> None:
    """Nothing lies: neither a job nor what is stored for it."""
    seen = look(world)
    _check_moves(seen)
    _check_errors(seen.jobs)
    _check_texts(world.files, seen.jobs)
    _check_passages(seen, calm)
    complete = [job.document_id for job in seen.jobs if job.status is JobStatus.COMPLETE]
    assert seen.documents == sorted(map(ids.upload_id, complete))


def _check_moves(seen: Seen) -> None:
    """Every job came by legal moves to where it stands, and each failure was noted."""
    for job in seen.jobs:
        own = [move for move in seen.moves if move.job_id == job.job_id]
        path = [JobStatus(move.to_status) for move in own]
        assert [move.from_status for move in own] == [None, *path[:-1]]
        assert (path[0], path[-1]) == (JobStatus.UPLOADED, job.status)
        assert all(after in MOVES[before] for before, after in pairwise(path))
    assert seen.final_errors == sum(move.to_status in FAILURES for move in seen.moves)


def _check_errors(jobs: Sequence[Job]) -> None:
    """Who failed says where and why, and nobody holds what has ended or not begun."""
    for job in jobs:
        if job.status in FAILURES:
            assert job.last_error is not None
            assert job.last_error["stage"] == stage_of(job.status)
            assert job.last_error["type"]
            assert job.last_error["message"].strip()
        if job.status in ENDED or job.status is JobStatus.UPLOADED:
            assert job.lease_owner is None


def _check_texts(blobs: FolderBlobs, jobs: Sequence[Job]) -> None:
    """Files and texts are where jobs say."""
    for job in jobs:
        if job.arrived_at is not None:
            assert blobs.get(job.raw_path) == BY_SHA[job.raw_sha256].data
        if job.parsed_path is not None and job.status not in {*FAILURES, JobStatus.PARSE_QUEUED}:
            parsed = blobs.get(job.parsed_path)
            assert hashlib.sha256(parsed).hexdigest() == job.parsed_sha256


def _check_passages(seen: Seen, calm: Calm) -> None:
    """Passages and vectors are those of a calm run, and only of jobs that are so far."""
    jobs = {job.document_id: job for job in seen.jobs}
    assert set(seen.passages) == {key for key, job in jobs.items() if job.status in CUT}
    assert set(seen.vectors) <= set(seen.passages)
    for document_id, held in seen.passages.items():
        job = jobs[document_id]
        cut, embedded = calm[document_id, job.name]
        vectors = seen.vectors.get(document_id, {})
        assert held == cut
        assert vectors.items() <= embedded.items()
        _check_progress(job, len(vectors), len(cut))


def _check_progress(job: Job, vectors: int, passages: int) -> None:
    assert job.progress is not None
    assert job.progress["chunks_total"] == passages
    if job.status in {JobStatus.EMBEDDINGS_STORED, JobStatus.COMPLETE}:
        assert vectors == passages
    if job.status is JobStatus.EMBEDDING_IN_PROGRESS:
        assert job.progress["embeds_done"] == vectors > 0
    if job.status is JobStatus.CHUNKS_STORED and not job.reprocessed:
        assert vectors == 0

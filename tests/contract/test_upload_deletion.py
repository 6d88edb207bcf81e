"""Deletion of an upload: nothing of it stays, and what others need does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert, select
from tests.support.libraries.passages import problems
from tests.support.libraries.uploads import (
    TEXT,
    announce,
    make_user,
    now_of,
    send,
    stored,
    upload_library,
    work,
)

from fonds import ids
from fonds.embed.worker import ensure_current
from fonds.engine.readers import ReadingKey
from fonds.errors import LeaseLostError, StoreError, UnknownDocumentError, UploadRefusedError
from fonds.library import Library
from fonds.normalize.registry import NormalizerInput, read_text
from fonds.seams import Seams
from fonds.stores.tables import (
    core_tables,
    idempotency_keys,
    ingestion_embedding_queue,
    upload_deletions,
)
from fonds.testing import ManualClock
from fonds.uploads.deletion import SWEEP_FOR, delete_upload, finish_deletions
from fonds.uploads.intake import complete_upload, staging_key
from fonds.uploads.jobs import Job, claim, job_of
from fonds.uploads.resources import ClaimedJob
from fonds.uploads.stages import STEPS
from fonds.uploads.states import JobStatus
from fonds.uploads.worker import LEASE

DATA = TEXT.encode()
KEPT = {"users", "upload_deletions", "embedding_batches", "embedding_costs"}
"""Tables that may name an upload after its deletion: by its id, and without content."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite-folder", "sqlite-s3", "postgres-folder", "postgres-s3"])
def stores(request: pytest.FixtureRequest) -> dict[str, str]:
    database, blobs = request.param.split("-")
    on: dict[str, str] = {}
    if database == "postgres":
        on["database"] = request.getfixturevalue("postgres_database")
    if blobs == "s3":
        on["blobs"] = request.getfixturevalue("s3_address")
    return on


@pytest.fixture
def library(tmp_path: Path, clock: ManualClock, stores: dict[str, str]) -> Iterator[Library]:
    with upload_library(tmp_path, seams=Seams(clock=clock), **stores) as library:
        yield library


def deleted(library: Library, job: Job) -> bool:
    return delete_upload(library.context, job.user_id, job.document_id, by=f"user:{job.user_id}")


def traces(library: Library, *words: str) -> set[str]:
    """Tables with a row in which one of the words occurs."""
    with library.database.read() as connection:
        return {
            table.name
            for table in core_tables
            for row in connection.execute(select(table))
            if any(word in str(value) for value in row for word in words)
        }


def files(library: Library) -> list[str]:
    return [info.key for info in library.blobs.list()]


def test_nothing_of_a_deleted_upload_stays(library: Library) -> None:
    job = send(library, make_user(library), DATA)
    work(library)
    library.extract_citations()
    row = {
        "table_name": "documents",
        "record_id": ids.upload_id(job.document_id),
        "input_sha": "x",
        "enqueued_at": library.seams.clock.now(),
        "attempts": 5,
    }
    with library.database.write() as connection:
        connection.execute(insert(ingestion_embedding_queue).values(row))
        connection.execute(insert(idempotency_keys), _responses(library, job))
    words = (str(job.document_id), "policy.md", "sum insured")
    assert traces(library, *words) > {"documents", "document_chunk_buffer", "upload_jobs"}

    assert deleted(library, job)

    assert traces(library, *words) <= KEPT
    assert traces(library, "policy.md", "sum insured", job.raw_sha256) == set()
    assert files(library) == []
    assert stored(library) == {"passages": [], "vectors": []}
    assert library.search("damage by water", owner=job.user_id) == []
    with pytest.raises(UnknownDocumentError):
        library.document(ids.upload_id(job.document_id), owner=job.user_id)
    with library.database.read() as connection:
        assert connection.scalars(select(idempotency_keys.c.key)).all() == ["other"]
        (kept,) = connection.execute(select(upload_deletions)).all()
    assert (kept.document_id, kept.status, kept.bytes) == (job.document_id, "complete", len(DATA))


def _responses(library: Library, job: Job) -> list[dict[str, Any]]:
    """Responses of the API that are stored: one about this upload, and one about another."""
    of_both = {
        "user_id": job.user_id,
        "request_sha256": "x",
        "status": 201,
        "created_at": library.seams.clock.now(),
    }
    answers = {
        "one": {"document_id": str(job.document_id), "name": "policy.md"},
        "other": {"document_id": str(uuid4()), "name": "letter.md"},
    }
    return [{**of_both, "key": key, "answer": answer} for key, answer in answers.items()]


def test_results_of_readers_are_forgotten_with_the_bytes_they_were_read_from(
    library: Library,
) -> None:
    job = send(library, make_user(library), DATA)
    work(library)
    key = ReadingKey(job.raw_sha256, "a recipe")

    def read(text: bytes) -> str:
        item = NormalizerInput(normalizer="markdown_v1", data=text, address=None)
        result: dict[str, str] = library.context.readers.read_now(read_text, item, key=key)
        return result["markdown"].strip()

    assert read(b"of the upload") == read(b"of others") == "of the upload"
    assert deleted(library, job)
    assert read(b"of others") == "of others"


def test_deletion_leaves_what_other_uploads_share(library: Library) -> None:
    maria, noah = make_user(library), make_user(library)
    first, same_text = send(library, maria, DATA), send(library, maria, DATA + b"\n", "copy.md")
    theirs = send(library, noah, DATA)
    work(library)
    assert deleted(library, first)
    for job in (same_text, theirs):
        kept = now_of(library, job)
        assert library.blobs.get(kept.raw_path)
        assert kept.parsed_path is not None
        assert library.blobs.get(kept.parsed_path)
        document_id = ids.upload_id(job.document_id)
        assert library.verify(document_id, owner=job.user_id).verdict == "match"
        hits = library.search("damage by water", owner=job.user_id)
        assert {hit.id for hit in hits} == {document_id}
    generation = ensure_current(library.database, library.seams, library.settings)
    assert problems(library.database, generation) == []
    for job in (same_text, theirs):
        assert deleted(library, job)
    assert files(library) == []


def test_upload_of_another_user_cannot_be_deleted(library: Library) -> None:
    job = send(library, make_user(library), DATA)
    stranger = make_user(library)
    assert not delete_upload(library.context, stranger, job.document_id, by="user:stranger")
    assert now_of(library, job) == job
    deleted(library, job)
    assert not delete_upload(library.context, stranger, job.document_id, by="user:stranger")


@pytest.mark.parametrize(
    "status",
    [
        JobStatus.PARSE_QUEUED,
        JobStatus.PARSED,
        JobStatus.CHUNKING,
        JobStatus.CHUNKS_STORED,
        JobStatus.EMBEDDING_QUEUED,
        JobStatus.EMBEDDINGS_STORED,
    ],
)
def test_running_job_is_stopped_by_deletion_and_leaves_nothing(
    library: Library, clock: ManualClock, status: JobStatus
) -> None:
    send(library, make_user(library), DATA)
    with library.worker_resources() as resources:
        with library.database.write() as connection:
            job = claim(connection, "a worker", clock.now(), LEASE)
        assert job is not None
        claimed = ClaimedJob(resources=resources, job=job)
        while claimed.job.status is not status:
            STEPS[claimed.job.status](claimed)
        assert deleted(library, job)
        with pytest.raises((LeaseLostError, StoreError)):
            STEPS[status](claimed)
    finish_deletions(library.context)
    assert files(library) == []
    assert stored(library) == {"passages": [], "vectors": []}
    assert traces(library, str(job.document_id)) <= KEPT


def test_file_that_comes_back_after_its_deletion_is_removed(
    library: Library, clock: ManualClock
) -> None:
    job = announce(library, make_user(library), DATA)
    library.blobs.put(staging_key(job), DATA)
    assert deleted(library, job)
    assert files(library) == []
    library.blobs.put(staging_key(job), DATA)
    with pytest.raises(UploadRefusedError, match="deleted"):
        complete_upload(library.context, library.settings, job)
    finish_deletions(library.context)
    assert files(library) == []
    clock.move(seconds=SWEEP_FOR.total_seconds())
    finish_deletions(library.context)
    with library.database.read() as connection:
        assert connection.scalar(select(upload_deletions.c.finished_at)) is not None


def test_deleted_upload_can_be_uploaded_again(library: Library, clock: ManualClock) -> None:
    user = make_user(library)
    job = send(library, user, DATA)
    work(library)
    deleted(library, job)
    again = send(library, user, DATA)
    assert (again.document_id, again.job_id == job.job_id) == (job.document_id, False)
    work(library)
    finish_deletions(library.context)
    clock.move(seconds=SWEEP_FOR.total_seconds())
    finish_deletions(library.context)
    assert now_of(library, again).status is JobStatus.COMPLETE
    document_id = ids.upload_id(job.document_id)
    assert library.verify(document_id, owner=user).verdict == "match"


class _KilledError(BaseException):
    """The end of the process: nothing of ours may catch it."""


class _Killer:
    """Ends the work at the Nth durable operation."""

    def __init__(self) -> None:
        self.count, self.kill_at = 0, 0

    def __call__(self, _operation: str, _subject: str) -> None:
        self.count += 1
        if self.count == self.kill_at:
            raise _KilledError


def _by_user(library: Library, job: Job) -> None:
    assert deleted(library, job)


def _by_worker(library: Library, _job: Job) -> None:
    finish_deletions(library.context)


@pytest.mark.parametrize(
    "stores",
    ["sqlite-folder", "postgres-folder", pytest.param("sqlite-s3", marks=pytest.mark.long)],
    indirect=True,
)
@pytest.mark.parametrize("finish", [_by_user, _by_worker])
def test_killed_deletion_is_completed_by_the_next_try(
    tmp_path: Path,
    stores: dict[str, str],
    clock: ManualClock,
    finish: Callable[[Library, Job], None],
) -> None:
    killer = _Killer()
    with upload_library(tmp_path, seams=Seams(clock=clock, durable=killer), **stores) as library:
        user = make_user(library)
        for operation in range(1, 100):
            job = send(library, user, DATA)
            work(library)
            killer.count, killer.kill_at = 0, operation
            try:
                deleted(library, job)
            except _KilledError:
                pass
            else:
                break
            finally:
                killer.kill_at = 0
            with library.database.read() as connection:
                has_begun = job_of(connection, job.document_id) is None
            if has_begun:
                finish(library, job)
                assert files(library) == []
                assert stored(library) == {"passages": [], "vectors": []}
            else:
                assert now_of(library, job).status is JobStatus.COMPLETE
        assert operation > 4
        assert files(library) == []

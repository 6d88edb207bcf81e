"""An upload from its announcement to its passages, on every kind of store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import event, func, select, update
from tests.support.engines import InlineEngine
from tests.support.libraries.uploads import (
    TEXT,
    announce,
    inline_resources,
    make_user,
    now_of,
    send,
    stored,
    upload_library,
    work,
)
from tests.support.polling import wait_until
from tests.unit.normalize.written_pdf import lines, written

from fonds import ids
from fonds.embed.generations import ensure_generation, switch
from fonds.embed.registry import open_embedder
from fonds.engine.base import ItemResult
from fonds.errors import ItemTimeoutError, UnknownDocumentError, UploadRefusedError, UsageError
from fonds.library import Library
from fonds.results import Reading
from fonds.seams import Seams
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    documents,
    embedding_batches,
    ingestion_embedding_queue,
    ingestion_leases,
    upload_errors,
    upload_jobs,
)
from fonds.testing import ManualClock
from fonds.uploads.intake import (
    MAX_ANNOUNCED,
    MAX_ANNOUNCED_FULL,
    UploadRequest,
    begin_upload,
    check_arrivals,
    complete_upload,
    expire_uploads,
    retry_upload,
    staging_key,
)
from fonds.uploads.jobs import Job, claim, events_of, release
from fonds.uploads.live_workers import is_worker_running, record_worker
from fonds.uploads.resources import ClaimedJob, WorkerResources
from fonds.uploads.stages import STEPS
from fonds.uploads.states import JobStatus
from fonds.uploads.worker import LEASE, MAX_TAKEOVERS, UploadWorker

_vector = document_vector_buffer.c


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
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def library(stores: dict[str, str], tmp_path: Path, clock: ManualClock) -> Iterator[Library]:
    with upload_library(tmp_path, seams=Seams(clock=clock), **stores) as library:
        yield library


def _count(library: Library, table: Any) -> int:
    with library.database.read() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def _own_path(job: Job) -> str:
    return f"parsed/{job.user_id}/{job.document_id}.md"


def _statuses(library: Library, job: Job) -> list[str]:
    with library.database.read() as connection:
        return [event.to_status for event in events_of(connection, job.job_id)]


def test_upload_becomes_searchable_through_all_states(library: Library) -> None:
    user = make_user(library)
    job = send(library, user, TEXT.encode())
    assert library.search("water damage", owner=user) == []
    work(library)
    assert _statuses(library, job) == [
        "uploaded",
        "parse_queued",
        "parsed",
        "parse_validated",
        "chunking",
        "chunks_stored",
        "embedding_queued",
        "embedding_in_progress",
        "embeddings_stored",
        "complete",
    ]
    (hit,) = library.search("water damage", owner=user, limit=1)
    assert hit.id == ids.upload_id(job.document_id)
    assert hit.citation.locator is not None
    assert hit.citation.locator.heading_path == ["Flood policy", "Cover"]
    assert hit.citation.citation_string.startswith(
        "Flood policy, policy.md (uploaded Mar. 10, 2026; SHA-256 "
    )


def test_title_is_that_of_the_text_and_the_file_name_is_beside_it(library: Library) -> None:
    user = make_user(library)
    job = send(library, user, TEXT.encode(), name="Terms_of_the_insurer.md")
    work(library)
    document = library.document(ids.upload_id(job.document_id), owner=user, with_text=False)
    assert (document["title"], document["file_name"]) == ("Flood policy", "Terms_of_the_insurer.md")
    for query in (
        "title:flood water",
        'title:"terms of" water',
        "title:of_the water",
        "insurer terms",
    ):
        assert [hit.citation.title for hit in library.search(query, owner=user)] == ["Flood policy"]
    assert library.search("title:Terms_on water", owner=user) == []


def test_what_was_read_is_on_the_job_and_the_document(library: Library) -> None:
    user = make_user(library)
    pdf = written(lines(72, 700, "Flood policy of the river", "The insurer pays for damage."))
    job = send(library, user, pdf, name="policy.pdf")
    plain = send(library, user, TEXT.encode())
    work(library)
    reading = Reading.of(now_of(library, job).parsed_map)
    assert reading is not None
    assert (reading.pages, reading.tables, reading.summary) == (1, 0, "1 page")
    document = library.document(ids.upload_id(job.document_id), owner=user, with_text=False)
    assert Reading.model_validate(document["reading"]) == reading
    other = library.document(ids.upload_id(plain.document_id), owner=user, with_text=False)
    assert other["reading"] is None


def test_passages_of_equal_rows_below_other_headers_have_other_vectors(library: Library) -> None:
    user = make_user(library)
    rows = "\n".join(f"| Benefit number {n} of the plan | paid in full |" for n in range(80))
    tables = [
        f"# {name}\n\n| {name} | Limit |\n| --- | --- |\n{rows}" for name in ("Gold", "Silver")
    ]
    send(library, user, "\n\n".join([*tables, *tables]).encode())
    work(library)
    chunk = document_chunk_buffer.c
    query = select(chunk.text, chunk.meta, _vector.vector_sha).join(
        document_vector_buffer, _vector.chunk_id == chunk.chunk_id
    )
    with library.database.read() as connection:
        passages = connection.execute(query.order_by(chunk.chunk_ord)).all()
    last = [row for row in passages if "number 79 " in row.text]
    assert len({row.text for row in last}) == 1
    assert [row.meta["locator"]["lead_ins"] for row in last] == [
        ["Gold | Limit"],
        ["Silver | Limit"],
        ["Gold | Limit"],
        ["Silver | Limit"],
    ]
    gold, silver, *again = [row.vector_sha for row in last]
    assert gold != silver
    assert again == [gold, silver]


def test_damaged_file_is_called_damaged(library: Library) -> None:
    user = make_user(library)
    job = send(library, user, b"%PDF-1.7\n1 0 obj << /Type /Catalog", name="cut.pdf")
    work(library)
    error = now_of(library, job).last_error
    assert error is not None
    assert "damaged" in error["message"]


def test_file_and_text_stand_under_the_keys_of_the_specification(library: Library) -> None:
    user = make_user(library)
    job = send(library, user, TEXT.encode())
    work(library)
    assert library.blobs.get(f"raw/{user}/{job.document_id}.md") == TEXT.encode()
    assert library.blobs.get(f"parsed/{user}/{job.document_id}.md").decode() == TEXT
    assert [info.key for info in library.blobs.list("incoming/")] == []


def test_document_can_be_verified_from_its_archived_bytes(library: Library) -> None:
    user = make_user(library)
    job = send(library, user, TEXT.encode())
    work(library)
    assert library.verify(ids.upload_id(job.document_id), owner=user).verdict == "match"


def test_same_bytes_of_the_same_user_are_one_document(library: Library) -> None:
    user = make_user(library)
    job = send(library, user, TEXT.encode())
    work(library)
    before = stored(library)
    again = send(library, user, TEXT.encode(), name="copy.md")
    work(library)
    assert again.job_id == job.job_id
    assert now_of(library, job).status is JobStatus.COMPLETE
    assert stored(library) == before


def test_same_bytes_of_another_user_are_another_document_and_cost_nothing(
    library: Library,
) -> None:
    one, two = make_user(library), make_user(library)
    first = send(library, one, TEXT.encode())
    work(library)
    asked = _count(library, embedding_batches)
    second = send(library, two, TEXT.encode())
    work(library)
    assert first.document_id != second.document_id
    assert now_of(library, second).status is JobStatus.COMPLETE
    assert _count(library, embedding_batches) == asked
    with pytest.raises(UnknownDocumentError):
        library.document(ids.upload_id(first.document_id), owner=two)


def test_two_files_with_one_text_share_its_path(library: Library) -> None:
    user = make_user(library)
    first = send(library, user, TEXT.encode())
    second = send(library, user, TEXT.replace("\n", "\r\n").encode())
    work(library)
    one, two = now_of(library, first), now_of(library, second)
    assert one.document_id != two.document_id
    assert one.parsed_sha256 == two.parsed_sha256
    assert one.parsed_path == two.parsed_path
    assert {one.status, two.status} == {JobStatus.COMPLETE}
    assert [info.key for info in library.blobs.list("parsed/")] == [one.parsed_path]


def test_text_that_two_files_have_apart_is_shared_where_the_first_has_it(
    library: Library, clock: ManualClock
) -> None:
    user, jobs = make_user(library), []
    for ends in range(2):
        jobs.append(send(library, user, TEXT.replace("\n", "\r\n", ends).encode()))
        clock.move(seconds=1)
    work(library)
    with library.database.write() as connection:  # as two workers leave it who saw nothing yet
        apart = update(upload_jobs).where(upload_jobs.c.job_id == jobs[1].job_id)
        connection.execute(apart.values(parsed_path=_own_path(jobs[1])))
    third = send(library, user, TEXT.replace("\n", "\r\n", 2).encode())
    theirs = send(library, make_user(library), TEXT.encode())
    work(library)
    assert now_of(library, third).parsed_path == _own_path(jobs[0])
    assert now_of(library, theirs).parsed_path == _own_path(theirs)


def test_equal_text_is_looked_for_by_its_hash(tmp_path: Path) -> None:
    """And not among all jobs of a user, who may have uploaded thousands of files."""
    asked: list[tuple[str, Any]] = []
    with upload_library(tmp_path) as library:
        send(library, make_user(library), TEXT.encode())

        @event.listens_for(library.database.engine, "before_cursor_execute")
        def _listen(_connection: Any, _cursor: Any, statement: str, given: Any, *_: Any) -> None:
            asked.append((statement, given))

        work(library)
        ((statement, given),) = [
            each for each in asked if each[0].startswith("SELECT") and "parsed_sha256 =" in each[0]
        ]
        with library.database.read() as connection:
            (plan,) = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
    assert "ix_upload_jobs_parsed_sha256" in plan.detail


def test_nothing_is_published_before_the_counts_are_right(library: Library) -> None:
    job = send(library, make_user(library), TEXT.encode())
    _carry_to(library, job, JobStatus.EMBEDDINGS_STORED)
    with library.database.write() as connection:
        some = select(document_vector_buffer.c.chunk_id).limit(1).scalar_subquery()
        connection.execute(
            document_vector_buffer.delete().where(document_vector_buffer.c.chunk_id == some)
        )
    work(library)
    failed = now_of(library, job)
    assert failed.status is JobStatus.FAILED_EMBEDDING
    assert failed.last_error is not None
    assert "passages have a vector" in failed.last_error["message"]
    assert _count(library, documents) == 0
    retry_upload(library.context, failed, by="tester")
    work(library)
    assert now_of(library, job).status is JobStatus.COMPLETE


def test_damaged_vector_is_not_published_and_a_retry_makes_it_again(library: Library) -> None:
    job = send(library, make_user(library), TEXT.encode())
    _carry_to(library, job, JobStatus.EMBEDDINGS_STORED)
    whole = stored(library)
    with library.database.write() as connection:
        some = select(_vector.chunk_id).limit(1).scalar_subquery()
        zeros = update(document_vector_buffer).values(vector=b"\0" * 128)
        connection.execute(zeros.where(_vector.chunk_id == some))
    work(library)
    failed = now_of(library, job)
    assert failed.status is JobStatus.FAILED_EMBEDDING
    assert failed.last_error is not None
    assert "1 stored vectors are damaged" in failed.last_error["message"]
    assert _count(library, documents) == 0
    retry_upload(library.context, failed, by="tester")
    work(library)
    assert now_of(library, job).status is JobStatus.COMPLETE
    assert stored(library) == whole
    with library.database.read() as connection:
        assert b"\0" * 128 not in connection.scalars(select(_vector.vector)).all()


class HangingReaders(InlineEngine):
    """Readers that end each reading at its limit, as for a file that takes for ever."""

    def run(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for index, item in enumerate(items):
            error = ItemTimeoutError(f"{function.__name__} took longer than 1 s")
            yield ItemResult(index=index, item=item, error=error)


@pytest.mark.parametrize("name", ["policy.md", "policy.txt"])
def test_every_file_is_read_by_readers_with_limits_plain_text_too(
    library: Library, name: str
) -> None:
    job = send(library, make_user(library), TEXT.encode(), name)
    UploadWorker(WorkerResources(context=library.context, engine=HangingReaders())).drain()
    failed = now_of(library, job)
    assert failed.status is JobStatus.FAILED_PARSE
    assert failed.last_error is not None
    assert failed.last_error["message"] == "read_text took longer than 1 s"


def _carry_to(library: Library, job: Job, status: JobStatus) -> None:
    """Work step by step until the job stands there, and no further."""
    with library.database.write() as connection:
        held = claim(connection, "tester", library.seams.clock.now(), timedelta(minutes=1))
    assert held is not None
    claimed = ClaimedJob(resources=inline_resources(library), job=held)
    while claimed.job.status is not status:
        STEPS[claimed.job.status](claimed)
    with library.database.write() as connection:
        release(connection, claimed.job)
    assert now_of(library, job).status is status


def test_text_that_was_changed_behind_our_back_fails_with_its_reason(library: Library) -> None:
    job = send(library, make_user(library), TEXT.encode())
    _carry_to(library, job, JobStatus.PARSED)
    path = now_of(library, job).parsed_path
    assert path is not None
    library.blobs.put(path, b"# Another text\n")
    work(library)
    failed = now_of(library, job)
    assert failed.status is JobStatus.FAILED_PARSE
    assert failed.last_error is not None
    assert "hash differs" in failed.last_error["message"]
    assert _count(library, document_chunk_buffer) == 0


def test_retry_of_a_failed_parse_reads_the_file_again(library: Library) -> None:
    job = send(library, make_user(library), TEXT.encode())
    _carry_to(library, job, JobStatus.PARSED)
    path = now_of(library, job).parsed_path
    assert path is not None
    library.blobs.put(path, b"# Another text\n")
    work(library)
    retried = retry_upload(library.context, now_of(library, job), by="tester")
    assert retried.status is JobStatus.PARSE_QUEUED
    work(library)
    done = now_of(library, job)
    assert (done.status, done.reprocessed) == (JobStatus.COMPLETE, 1)


def test_file_without_a_word_fails_for_good(library: Library) -> None:
    job = send(library, make_user(library), b"\n \n***\n")
    work(library)
    failed = now_of(library, job)
    assert failed.status is JobStatus.FAILED_PARSE
    assert failed.retry_count == 0
    assert _count(library, upload_errors) == 1


def test_only_a_failed_job_can_be_retried(library: Library) -> None:
    job = send(library, make_user(library), TEXT.encode())
    with pytest.raises(UsageError, match="only a job that failed"):
        retry_upload(library.context, job, by="tester")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"other bytes of the same len", "hash-mismatch"),
        (b"short", "size-mismatch"),
        (b"far more than was announced, by a good deal", "size-mismatch"),
    ],
)
def test_other_bytes_than_announced_end_the_job(library: Library, data: bytes, kind: str) -> None:
    user = make_user(library)
    promised = b"what was announced to come."
    assert len(promised) == 27
    job = announce(library, user, promised, "a.txt")
    library.blobs.put(staging_key(job), data)
    with pytest.raises(UploadRefusedError) as refused:
        complete_upload(library.context, library.settings, job)
    assert refused.value.kind == kind
    assert now_of(library, job).status is JobStatus.FAILED_PARSE
    assert [info.key for info in library.blobs.list("")] == []
    assert send(library, user, promised, "a.txt").status is JobStatus.PARSE_QUEUED


def test_pdf_that_is_a_web_page_is_refused_and_welcome_under_its_name(library: Library) -> None:
    user = make_user(library)
    page = b"<!doctype html><html><body><h1>Policy</h1><p>Water is covered.</p></body></html>"
    with pytest.raises(UploadRefusedError) as refused:
        send(library, user, page, "policy.pdf")
    assert refused.value.kind == "type-mismatch"
    job = send(library, user, page, "policy.html")
    work(library)
    assert now_of(library, job).status is JobStatus.COMPLETE


@pytest.mark.parametrize(
    ("name", "size", "kind"),
    [
        ("a.pdf", 0, "empty"),
        ("a.pdf", 2 << 30, "too-large"),
        ("a.exe", 10, "type-unknown"),
        ("..", 10, "bad-name"),
    ],
)
def test_claims_that_cannot_be_met_make_no_job(
    library: Library, name: str, size: int, kind: str
) -> None:
    with pytest.raises(UploadRefusedError) as refused:
        begin_upload(
            library.context,
            library.settings,
            make_user(library),
            UploadRequest(name=name, size=size, sha256="0" * 64),
        )
    assert refused.value.kind == kind
    assert _count(library, upload_jobs) == 0


def test_name_with_path_tricks_stays_a_name(library: Library) -> None:
    user = make_user(library)
    job = send(library, user, TEXT.encode(), "../../etc/..\\passwd\x00.md")
    assert job.name == "passwd .md"
    assert job.raw_path == f"raw/{user}/{job.document_id}.md"


def test_file_that_never_comes_ends_the_job_after_an_hour(
    library: Library, clock: ManualClock
) -> None:
    user = make_user(library)
    job = announce(library, user, TEXT.encode())
    clock.move(minutes=59)
    assert expire_uploads(library.context) == 0
    clock.move(minutes=2)
    assert expire_uploads(library.context) == 1
    failed = now_of(library, job)
    assert failed.status is JobStatus.FAILED_PARSE
    assert failed.last_error is not None
    assert failed.last_error["message"] == "the file did not arrive in time"
    assert send(library, user, TEXT.encode()).status is JobStatus.PARSE_QUEUED


def test_announced_files_of_a_user_are_limited_in_number(
    library: Library, clock: ManualClock
) -> None:
    user = make_user(library)
    jobs = [announce(library, user, b"%d" % number) for number in range(MAX_ANNOUNCED)]
    with pytest.raises(UploadRefusedError, match="send and complete them, delete them") as refused:
        announce(library, user, b"another")
    assert refused.value.kind == "too-many"
    announce(library, make_user(library), b"another")
    assert announce(library, user, b"0") == jobs[0]
    send(library, user, b"0")
    announce(library, user, b"another")
    clock.move(hours=1, seconds=1)
    announce(library, user, b"the next hour")


def test_announced_files_of_a_user_are_limited_in_bytes(library: Library) -> None:
    user, size = make_user(library), library.settings.max_file_mib * 1024 * 1024

    def claim_of(number: int, size: int) -> UploadRequest:
        return UploadRequest(name="a.md", size=size, sha256=f"{number:064x}")

    for number in range(MAX_ANNOUNCED_FULL):
        begin_upload(library.context, library.settings, user, claim_of(number, size))
    with pytest.raises(UploadRefusedError) as refused:
        begin_upload(library.context, library.settings, user, claim_of(99, 1))
    assert refused.value.kind == "too-many"


def test_file_sent_to_the_store_that_is_larger_than_announced_is_deleted_and_ends_the_job(
    library: Library,
) -> None:
    user = make_user(library)
    large, right = announce(library, user, TEXT.encode()), announce(library, user, b"Right.")
    library.blobs.put(staging_key(large), TEXT.encode() * 100)
    library.blobs.put(staging_key(right), b"Right.")
    check_arrivals(library.context)
    failed = now_of(library, large)
    assert failed.status is JobStatus.FAILED_PARSE
    assert failed.last_error is not None
    assert failed.last_error["message"] == (
        f"{len(TEXT.encode())} bytes were announced, but {100 * len(TEXT.encode())} arrived"
    )
    assert [info.key for info in library.blobs.list("incoming/")] == [staging_key(right)]
    assert complete_upload(library.context, library.settings, right).arrived_at is not None


def test_file_sent_to_the_store_that_no_upload_waits_for_is_deleted(
    library: Library, clock: ManualClock
) -> None:
    user = make_user(library)
    done, late = send(library, user, TEXT.encode()), announce(library, user, b"Late.")
    clock.move(hours=1, seconds=1)
    expire_uploads(library.context)
    for job in (done, late):
        library.blobs.put(staging_key(job), b"again")
    library.blobs.put(f"incoming/{user}/{user}", b"unknown")
    work(library)
    assert list(library.blobs.list("incoming/")) == []
    assert now_of(library, done).status is JobStatus.COMPLETE


def test_completing_before_the_file_came_changes_nothing(library: Library) -> None:
    job = announce(library, make_user(library), TEXT.encode())
    with pytest.raises(UploadRefusedError) as refused:
        complete_upload(library.context, library.settings, job)
    assert refused.value.kind == "not-there"
    assert now_of(library, job).status is JobStatus.UPLOADED


def test_completing_twice_is_completing_once(library: Library) -> None:
    job = send(library, make_user(library), TEXT.encode())
    assert complete_upload(library.context, library.settings, job).status is JobStatus.PARSE_QUEUED
    assert _statuses(library, job) == ["uploaded", "parse_queued"]


def test_bytes_put_after_completion_change_nothing(library: Library) -> None:
    user = make_user(library)
    job = send(library, user, TEXT.encode())
    library.blobs.put(staging_key(job), b"# Forged\n")
    work(library)
    assert now_of(library, job).status is JobStatus.COMPLETE
    document = library.document(ids.upload_id(job.document_id), owner=user)
    assert hashlib.sha256(library.raw(document)).hexdigest() == job.raw_sha256


# Leases -----------------------------------------------------------------------------------


def test_job_whose_worker_vanished_is_taken_over(library: Library, clock: ManualClock) -> None:
    job = send(library, make_user(library), TEXT.encode())
    with library.database.write() as connection:
        assert claim(connection, "vanished", clock.now(), timedelta(seconds=30))
    work(library)
    assert now_of(library, job).status is JobStatus.PARSE_QUEUED
    clock.move(seconds=31)
    work(library)
    assert now_of(library, job).status is JobStatus.COMPLETE


def test_running_worker_is_known_until_it_ends_or_its_lease_does(
    library: Library, clock: ManualClock
) -> None:
    def is_running() -> bool:
        with library.database.read() as connection:
            return is_worker_running(connection, clock.now())

    assert not is_running()
    with library.worker_resources() as resources:
        worker = UploadWorker(resources, poll=0.01)
        thread = Thread(target=worker.run)
        thread.start()
        wait_until(is_running)
        worker.stop.set()
        thread.join()
    assert not is_running()
    with library.database.write() as connection:
        record_worker(connection, "killed", clock.now(), LEASE)
    assert is_running()
    clock.move(seconds=31)
    assert not is_running()
    with library.database.write() as connection:
        record_worker(connection, "another", clock.now(), LEASE)
        assert connection.scalars(select(ingestion_leases.c.owner)).all() == ["another"]


def test_job_that_every_worker_dies_of_ends(library: Library, clock: ManualClock) -> None:
    job = send(library, make_user(library), TEXT.encode())
    for _ in range(MAX_TAKEOVERS + 1):
        with library.database.write() as connection:
            assert claim(connection, "dies", clock.now(), timedelta(seconds=30))
        clock.move(seconds=31)
    work(library)
    failed = now_of(library, job)
    assert failed.status is JobStatus.FAILED_PARSE
    assert failed.last_error is not None
    assert "workers ended while they had this job" in failed.last_error["message"]


def test_worker_that_lost_its_lease_writes_nothing(library: Library, clock: ManualClock) -> None:
    job = send(library, make_user(library), TEXT.encode())
    with library.database.write() as connection:
        slow = claim(connection, "slow", clock.now(), timedelta(seconds=30))
    assert slow is not None
    clock.move(seconds=31)
    work(library)
    before = stored(library)
    with library.worker_resources() as resources:
        UploadWorker(resources)._work_on(slow)
    assert stored(library) == before
    assert now_of(library, job).status is JobStatus.COMPLETE


def test_jobs_are_taken_in_the_order_they_came_and_each_by_one(
    library: Library, clock: ManualClock
) -> None:
    user = make_user(library)
    sent = []
    for number in range(3):
        sent.append(send(library, user, f"{TEXT}{number}".encode()).job_id)
        clock.move(seconds=1)
    taken = []
    for owner in ("one", "two", "three", "four"):
        with library.database.write() as connection:
            job = claim(connection, owner, clock.now(), timedelta(seconds=30))
        taken.append(job and job.job_id)
    assert taken == [*sent, None]


# Retries ----------------------------------------------------------------------------------


def test_error_that_may_pass_is_tried_again_after_three_six_and_twelve_seconds(
    library: Library, clock: ManualClock
) -> None:
    job = send(library, make_user(library), TEXT.encode())
    raw = library.blobs.get(job.raw_path)
    library.blobs.delete(job.raw_path)
    for wait in (3, 6, 12):
        work(library)
        waiting = now_of(library, job)
        assert waiting.status is JobStatus.PARSE_QUEUED
        assert waiting.next_attempt_at == clock.now() + timedelta(seconds=wait)
        work(library)
        assert now_of(library, job).retry_count == waiting.retry_count
        clock.move(seconds=wait)
    work(library)
    failed = now_of(library, job)
    assert failed.status is JobStatus.FAILED_PARSE
    assert failed.last_error is not None
    assert failed.last_error["type"] == "BlobMissingError"
    library.blobs.put(job.raw_path, raw)
    retry_upload(library.context, failed, by="tester")
    work(library)
    assert now_of(library, job).status is JobStatus.COMPLETE


def test_progress_makes_a_job_young_again(library: Library, clock: ManualClock) -> None:
    job = send(library, make_user(library), TEXT.encode())
    raw = library.blobs.get(job.raw_path)
    library.blobs.delete(job.raw_path)
    work(library)
    library.blobs.put(job.raw_path, raw)
    clock.move(seconds=3)
    work(library)
    done = now_of(library, job)
    assert (done.status, done.retry_count, done.next_attempt_at) == (JobStatus.COMPLETE, 0, None)


def test_model_chosen_just_before_the_end_is_waited_for_afterwards(library: Library) -> None:
    job = send(library, make_user(library), TEXT.encode())
    _carry_to(library, job, JobStatus.EMBEDDINGS_STORED)
    _choose(library, "hashing:16")
    work(library)
    assert now_of(library, job).status is JobStatus.COMPLETE
    assert _count(library, ingestion_embedding_queue) == 1
    assert library.embed().done == 1


def test_model_chosen_in_the_middle_makes_all_vectors(library: Library) -> None:
    job = send(library, make_user(library), TEXT.encode())
    _carry_to(library, job, JobStatus.EMBEDDING_QUEUED)
    _choose(library, "hashing:16")
    work(library)
    done = now_of(library, job)
    assert done.status is JobStatus.COMPLETE
    with library.database.read() as connection:
        made_by = set(connection.execute(select(_vector.embed_model, _vector.embed_version)))
    assert made_by == {(done.embed_model, done.embed_version)}
    assert _count(library, ingestion_embedding_queue) == 0


def _choose(library: Library, spec: str) -> None:
    embedder = open_embedder(spec, library.settings)
    generation = ensure_generation(library.database, library.seams, embedder, spec)
    switch(library.database, library.seams, generation)

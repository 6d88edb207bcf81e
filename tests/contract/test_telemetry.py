"""What the figures of uploads say of jobs, times, errors and the queue, on every database."""

from __future__ import annotations

from datetime import timedelta

from tests.support.uploads.statistics import (
    NOW,
    WAY,
    ago,
    failing,
    job,
    sent_back,
    stumbling,
    told,
    user,
)

from fonds.errors import EmbedError, ParserError, RetryableEmbedError
from fonds.stores.database import Database
from fonds.uploads.jobs import claim, postpone
from fonds.uploads.states import JobStatus
from fonds.uploads.statistics import SECONDS, ErrorCount
from fonds.uploads.usage import ModelUsage, StorageUsage

# Jobs ---------------------------------------------------------------------------------------


def test_empty_library_has_figures_and_all_are_zero(database: Database) -> None:
    found = told(database)
    assert found.jobs == dict.fromkeys(JobStatus, 0)
    assert set(found.durations) == {"parse", "chunk", "first_embedding", "complete"}
    assert all((spread.count, spread.mean) == (0, 0) for spread in found.durations.values())
    assert found.errors == ()
    assert [(one.entered, one.rate) for one in found.stages] == [(0, 0)] * 3
    assert (found.queue.due, found.queue.lag, found.queue.oldest) == (0, 0, None)
    assert found.reprocessing.rate == 0
    assert found.costs.total == found.costs.repeated == ModelUsage(tokens=0, cost=0)
    assert (found.costs.requests, found.costs.retries, found.costs.top_documents) == (0, 0, ())
    assert (found.storage.by_format, found.storage.by_user, found.storage.users) == ({}, (), 0)
    assert found.storage.total == StorageUsage(raw=0, parsed=0)


def test_jobs_are_counted_by_status(database: Database) -> None:
    owner = user(database)
    for status in (JobStatus.UPLOADED, JobStatus.CHUNKING, JobStatus.COMPLETE, JobStatus.COMPLETE):
        job(database, owner, status)
    failing(database, job(database, owner, JobStatus.CHUNKING), ParserError("x"))
    counted = {status: count for status, count in told(database).jobs.items() if count}
    assert counted == {
        JobStatus.UPLOADED: 1,
        JobStatus.CHUNKING: 1,
        JobStatus.COMPLETE: 2,
        JobStatus.FAILED_CHUNKING: 1,
    }


# Times --------------------------------------------------------------------------------------


def test_times_are_told_from_arrival_to_each_milestone(database: Database) -> None:
    job(
        database,
        user(database),
        JobStatus.COMPLETE,
        made=ago(9000),
        arrived_at=ago(5000),
        parsed_at=ago(4998.5),
        chunked_at=ago(4991),
        first_embedded_at=ago(4500),
        completed_at=ago(500),
    )
    found = told(database).durations
    sums = {name: spread.sum for name, spread in found.items()}
    assert sums == {"parse": 1.5, "chunk": 9, "first_embedding": 500, "complete": 4500}
    within = {name: dict(spread.buckets) for name, spread in found.items()}
    assert (within["parse"][1], within["parse"][2]) == (0, 1)
    assert (within["chunk"][5], within["chunk"][10]) == (0, 1)
    assert (within["first_embedding"][300], within["first_embedding"][600]) == (0, 1)
    assert within["complete"] == dict.fromkeys(SECONDS, 0)
    assert found["complete"].count == 1


def test_time_of_a_job_without_arrival_is_told_from_its_beginning(database: Database) -> None:
    job(
        database,
        user(database),
        JobStatus.PARSED,
        made=ago(70),
        arrived_at=None,
        parsed_at=ago(60),
    )
    assert told(database).durations["parse"].sum == 10


def test_bounds_belong_to_their_bucket_to_the_millisecond(database: Database) -> None:
    owner = user(database)
    for took in (0.999, 1.0, 1.001):
        job(database, owner, JobStatus.PARSED, arrived_at=ago(100), parsed_at=ago(100 - took))
    spread = told(database).durations["parse"]
    assert (spread.count, spread.sum, spread.mean) == (3, 3.0, 1.0)
    assert spread.buckets[:2] == ((1, 2), (2, 3))


def test_time_that_runs_backwards_counts_as_none(database: Database) -> None:
    owner = user(database)
    job(database, owner, JobStatus.PARSED, arrived_at=NOW, parsed_at=ago(30))
    job(database, owner, JobStatus.PARSED, arrived_at=NOW, parsed_at=NOW + timedelta(seconds=4))
    spread = told(database).durations["parse"]
    assert (spread.count, spread.sum) == (2, 4)
    assert spread.buckets[0] == (1, 1)


# Errors -------------------------------------------------------------------------------------


def test_errors_are_counted_by_stage_type_and_end(database: Database) -> None:
    owner = user(database)
    failing(database, job(database, owner), ParserError("x"))
    failing(database, job(database, owner), ParserError("y"))
    one = stumbling(
        database, job(database, owner, JobStatus.EMBEDDING_QUEUED), RetryableEmbedError("x")
    )
    failing(database, one, EmbedError("z"))
    assert told(database).errors == (
        ErrorCount(stage="embedding", type="EmbedError", is_final=True, count=1),
        ErrorCount(stage="embedding", type="RetryableEmbedError", is_final=False, count=1),
        ErrorCount(stage="parse", type="ParserError", is_final=True, count=2),
    )


def test_error_rate_is_the_share_of_jobs_that_came_to_the_stage(database: Database) -> None:
    owner = user(database)
    failing(database, job(database, owner), ParserError("x"))
    job(database, owner, JobStatus.PARSED)
    failing(database, job(database, owner, JobStatus.CHUNKING), ParserError("x"))
    one = job(database, owner, JobStatus.EMBEDDING_IN_PROGRESS)
    for _ in range(2):
        one = stumbling(database, one, RetryableEmbedError("x"))
    job(database, owner, JobStatus.COMPLETE)
    found = {one.stage: (one.entered, one.with_error, one.rate) for one in told(database).stages}
    assert found == {"parse": (5, 1, 0.2), "chunking": (3, 1, 1 / 3), "embedding": (2, 1, 0.5)}


def test_job_that_fails_has_entered_the_stage_it_failed_in(database: Database) -> None:
    owner = user(database)
    for status in WAY[:-1]:
        failing(database, job(database, owner, status), ParserError("x"))
    found = [(one.stage, one.entered, one.with_error) for one in told(database).stages]
    assert found == [("parse", 9, 3), ("chunking", 6, 2), ("embedding", 4, 4)]


def test_job_that_stumbled_and_was_sent_back_is_repeated_once(database: Database) -> None:
    owner = user(database)
    one = stumbling(database, job(database, owner, JobStatus.CHUNKING), RetryableEmbedError("x"))
    sent_back(database, failing(database, one, ParserError("x")))
    sent_back(
        database, failing(database, job(database, owner, JobStatus.CHUNKING), ParserError("x"))
    )
    stumbling(database, job(database, owner), RetryableEmbedError("x"))
    failing(database, job(database, owner), ParserError("x"))
    job(database, owner, JobStatus.COMPLETE)
    found = told(database).reprocessing
    assert (found.jobs, found.repeated, found.rate) == (5, 3, 0.6)


# The queue ----------------------------------------------------------------------------------


def test_lag_is_that_of_the_first_job_a_worker_could_take(database: Database) -> None:
    owner = user(database)
    job(database, owner, moved=ago(10))
    job(database, owner, JobStatus.EMBEDDING_QUEUED, moved=ago(40))
    job(database, owner, JobStatus.UPLOADED, moved=ago(500))
    job(database, owner, JobStatus.COMPLETE, moved=ago(500))
    queue = told(database).queue
    assert (queue.due, queue.lag) == (2, 40)


def test_job_that_is_held_or_rests_is_not_due(database: Database) -> None:
    owner = user(database)
    job(database, owner, moved=ago(100))
    resting = job(database, owner, moved=ago(100))
    with database.write() as connection:
        postpone(connection, resting, NOW + timedelta(seconds=1), ago(100))
        assert claim(connection, "worker", ago(90), timedelta(seconds=120)) is not None
    queue = told(database).queue
    assert (queue.due, queue.lag) == (0, 0)
    assert queue.oldest is not None


def test_lag_begins_when_a_rest_or_a_lease_is_over(database: Database) -> None:
    owner = user(database)
    job(database, owner, moved=ago(100))
    with database.write() as connection:
        assert claim(connection, "worker", ago(90), timedelta(seconds=60)) is not None
    assert told(database).queue.lag == 30
    resting = job(database, owner, moved=ago(100))
    with database.write() as connection:
        postpone(connection, resting, ago(50), ago(100))
    queue = told(database).queue
    assert (queue.due, queue.lag) == (2, 50)


def test_longest_waiting_job_is_the_oldest_that_has_come_and_not_ended(database: Database) -> None:
    owner = user(database)
    job(database, owner, JobStatus.UPLOADED, made=ago(900))
    job(database, owner, JobStatus.COMPLETE, made=ago(900))
    oldest = job(database, owner, JobStatus.CHUNKING, made=ago(300), arrived_at=ago(200))
    job(database, owner, made=ago(400), arrived_at=ago(100))
    longest = told(database).queue.oldest
    assert longest is not None
    assert (longest.job_id, longest.status, longest.seconds) == (
        oldest.job_id,
        JobStatus.CHUNKING,
        200,
    )


def test_clock_that_is_behind_makes_no_negative_age(database: Database) -> None:
    job(database, user(database))
    queue = told(database, ago(60)).queue
    assert queue.oldest is not None
    assert (queue.due, queue.lag, queue.oldest.seconds) == (1, 0, 0)

"""What the figures of uploads say, on every database, and how Prometheus reads them."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import insert
from tests import servers

from fonds import ids
from fonds.errors import EmbedError, FondsError, ParserError, RetryableEmbedError
from fonds.seams import Seams
from fonds.stores.database import Database, open_database
from fonds.stores.tables import (
    embedding_batches,
    embedding_costs,
    embedding_generations,
    embedding_models,
    users,
)
from fonds.uploads.consumption import DEAREST, LISTED_USERS, Spent, Stored
from fonds.uploads.jobs import Job, claim, create, fail, keep, move, postpone, retry_later
from fonds.uploads.metrics import ALL_USERS, render
from fonds.uploads.states import ENDED, MOVES, Status
from fonds.uploads.telemetry import SECONDS, ErrorCount, UploadFigures, figures

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
WAY = [status for status in Status if status not in ENDED] + [Status.COMPLETE]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "postgres":
        address = request.getfixturevalue("postgres_database")
    else:
        file = shutil.copy(servers.sqlite_template(), tmp_path / "fonds.db")
        address = f"sqlite:///{file}"
    database = open_database(address, seams=Seams())
    yield database
    database.close()


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def told(database: Database, now: datetime = NOW) -> UploadFigures:
    with database.read() as connection:
        return figures(connection, now)


def user(database: Database, name: str = "Ada") -> UUID:
    made = uuid4()
    with database.write() as connection:
        connection.execute(insert(users).values(id=made, name=name, created_at=NOW))
    return made


def job(
    database: Database,
    owner: UUID,
    status: Status = Status.PARSE_QUEUED,
    *,
    made: datetime = NOW,
    moved: datetime = NOW,
    document: UUID | None = None,
    form: str = "pdf",
    size: int = 1000,
    **columns: Any,
) -> Job:
    document = document or uuid4()
    values = {
        "job_id": uuid4(),
        "user_id": owner,
        "document_id": document,
        "status": "uploaded",
        "name": "Confidential policy.pdf",
        "format": form,
        "bytes": size,
        "raw_sha256": "0" * 64,
        "raw_path": f"raw/{owner}/{document}.pdf",
        "parser": "local",
        "chunks_version": "test@1",
        "moved_by": "test",
        "moved_why": "announced",
    }
    with database.write() as connection:
        begun = create(connection, values, made)
        assert begun is not None
        path = WAY[1 : WAY.index(status) + 1]
        if not path:
            return keep(connection, begun, moved, **columns)
        arrived = {"arrived_at": made, **columns}
        return move(connection, begun, *path, by="test", why="test", now=moved, **arrived)


def failing(database: Database, one: Job, error: FondsError, at: datetime = NOW) -> Job:
    with database.write() as connection:
        return fail(connection, one, error, at)


def stumbling(database: Database, one: Job, error: FondsError, at: datetime = NOW) -> Job:
    with database.write() as connection:
        return retry_later(connection, one, error, at)


def sent_back(database: Database, one: Job) -> Job:
    (back,) = MOVES[one.status]
    with database.write() as connection:
        return move(connection, one, back, by="test", why="retry", now=NOW, reprocessed=1)


def generation(database: Database) -> int:
    with database.write() as connection:
        model = {"name": "model", "version": "1"}
        connection.execute(insert(embedding_models).values(**model, dims=4, price=1.0))
        made = insert(embedding_generations).values(**model, embedder="test", created_at=NOW)
        key = connection.execute(made).inserted_primary_key
    assert key is not None
    return int(key[0])


def batch(
    database: Database,
    generation: int,
    shares: dict[str, int],
    *,
    retries: int = 0,
    at: datetime = NOW,
) -> None:
    """Each token costs a quarter of a dollar, which is exact in binary."""
    tokens = sum(shares.values())
    row = {"run_id": uuid4(), "generation": generation, "texts": 1, "tokens": tokens}
    row |= {"requests": 1 + retries, "retries": retries, "cost": tokens / 4, "created_at": at}
    with database.write() as connection:
        key = connection.execute(insert(embedding_batches).values(row)).inserted_primary_key
        assert key is not None
        for document, part in shares.items():
            share = {"document_id": document, "texts": 1, "tokens": part, "cost": part / 4}
            connection.execute(insert(embedding_costs).values(batch_id=key[0], **share))


# Jobs ---------------------------------------------------------------------------------------


def test_empty_library_has_figures_and_all_are_zero(database: Database) -> None:
    found = told(database)
    assert found.jobs == dict.fromkeys(Status, 0)
    assert set(found.durations) == {"parse", "chunk", "first_embedding", "complete"}
    assert all((spread.count, spread.mean) == (0, 0) for spread in found.durations.values())
    assert found.errors == ()
    assert [(one.entered, one.rate) for one in found.stages] == [(0, 0)] * 3
    assert (found.queue.due, found.queue.lag, found.queue.longest) == (0, 0, None)
    assert found.reprocessing.rate == 0
    assert found.costs.total == found.costs.repeated == Spent(tokens=0, cost=0)
    assert (found.costs.requests, found.costs.retries, found.costs.dearest) == (0, 0, ())
    assert (found.storage.by_format, found.storage.by_user, found.storage.users) == ({}, (), 0)
    assert found.storage.total == Stored(raw=0, parsed=0)
    assert set(samples(exposed(database)).values()) == {0}


def test_jobs_are_counted_by_status(database: Database) -> None:
    owner = user(database)
    for status in (Status.UPLOADED, Status.CHUNKING, Status.COMPLETE, Status.COMPLETE):
        job(database, owner, status)
    failing(database, job(database, owner, Status.CHUNKING), ParserError("x"))
    counted = {status: count for status, count in told(database).jobs.items() if count}
    assert counted == {
        Status.UPLOADED: 1,
        Status.CHUNKING: 1,
        Status.COMPLETE: 2,
        Status.FAILED_CHUNKING: 1,
    }


# Times --------------------------------------------------------------------------------------


def test_times_are_told_from_arrival_to_each_milestone(database: Database) -> None:
    job(
        database,
        user(database),
        Status.COMPLETE,
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
        Status.PARSED,
        made=ago(70),
        arrived_at=None,
        parsed_at=ago(60),
    )
    assert told(database).durations["parse"].sum == 10


def test_bounds_belong_to_their_bucket_to_the_millisecond(database: Database) -> None:
    owner = user(database)
    for took in (0.999, 1.0, 1.001):
        job(database, owner, Status.PARSED, arrived_at=ago(100), parsed_at=ago(100 - took))
    spread = told(database).durations["parse"]
    assert (spread.count, spread.sum, spread.mean) == (3, 3.0, 1.0)
    assert spread.buckets[:2] == ((1, 2), (2, 3))


def test_time_that_runs_backwards_counts_as_none(database: Database) -> None:
    owner = user(database)
    job(database, owner, Status.PARSED, arrived_at=NOW, parsed_at=ago(30))
    job(database, owner, Status.PARSED, arrived_at=NOW, parsed_at=NOW + timedelta(seconds=4))
    spread = told(database).durations["parse"]
    assert (spread.count, spread.sum) == (2, 4)
    assert spread.buckets[0] == (1, 1)


# Errors -------------------------------------------------------------------------------------


def test_errors_are_counted_by_stage_type_and_end(database: Database) -> None:
    owner = user(database)
    failing(database, job(database, owner), ParserError("x"))
    failing(database, job(database, owner), ParserError("y"))
    one = stumbling(
        database, job(database, owner, Status.EMBEDDING_QUEUED), RetryableEmbedError("x")
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
    job(database, owner, Status.PARSED)
    failing(database, job(database, owner, Status.CHUNKING), ParserError("x"))
    one = job(database, owner, Status.EMBEDDING_IN_PROGRESS)
    for _ in range(2):
        one = stumbling(database, one, RetryableEmbedError("x"))
    job(database, owner, Status.COMPLETE)
    found = {one.stage: (one.entered, one.met, one.rate) for one in told(database).stages}
    assert found == {"parse": (5, 1, 0.2), "chunking": (3, 1, 1 / 3), "embedding": (2, 1, 0.5)}


def test_job_that_fails_has_entered_the_stage_it_failed_in(database: Database) -> None:
    owner = user(database)
    for status in WAY[:-1]:
        failing(database, job(database, owner, status), ParserError("x"))
    found = [(one.stage, one.entered, one.met) for one in told(database).stages]
    assert found == [("parse", 9, 3), ("chunking", 6, 2), ("embedding", 4, 4)]


def test_job_that_stumbled_and_was_sent_back_is_repeated_once(database: Database) -> None:
    owner = user(database)
    one = stumbling(database, job(database, owner, Status.CHUNKING), RetryableEmbedError("x"))
    sent_back(database, failing(database, one, ParserError("x")))
    sent_back(database, failing(database, job(database, owner, Status.CHUNKING), ParserError("x")))
    stumbling(database, job(database, owner), RetryableEmbedError("x"))
    failing(database, job(database, owner), ParserError("x"))
    job(database, owner, Status.COMPLETE)
    found = told(database).reprocessing
    assert (found.jobs, found.repeated, found.rate) == (5, 3, 0.6)


# The queue ----------------------------------------------------------------------------------


def test_lag_is_that_of_the_first_job_a_worker_could_take(database: Database) -> None:
    owner = user(database)
    job(database, owner, moved=ago(10))
    job(database, owner, Status.EMBEDDING_QUEUED, moved=ago(40))
    job(database, owner, Status.UPLOADED, moved=ago(500))
    job(database, owner, Status.COMPLETE, moved=ago(500))
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
    assert queue.longest is not None


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
    job(database, owner, Status.UPLOADED, made=ago(900))
    job(database, owner, Status.COMPLETE, made=ago(900))
    oldest = job(database, owner, Status.CHUNKING, made=ago(300), arrived_at=ago(200))
    job(database, owner, made=ago(400), arrived_at=ago(100))
    longest = told(database).queue.longest
    assert longest is not None
    assert (longest.job_id, longest.status, longest.seconds) == (
        oldest.job_id,
        Status.CHUNKING,
        200,
    )


def test_clock_that_is_behind_makes_no_negative_age(database: Database) -> None:
    job(database, user(database))
    queue = told(database, ago(60)).queue
    assert queue.longest is not None
    assert (queue.due, queue.lag, queue.longest.seconds) == (1, 0, 0)


# Tokens and bytes ---------------------------------------------------------------------------


def test_only_the_shares_of_uploads_are_counted(database: Database) -> None:
    made, one, two = generation(database), ids.upload_id(uuid4()), ids.upload_id(uuid4())
    batch(database, made, {one: 100, two: 8, "fr:2026-1": 5000})
    batch(database, made, {one: 400})
    batch(database, made, {"fr:2026-2": 7000, "uploads:x": 3, "Upload:x": 3, "upload": 3})
    costs = told(database).costs
    assert costs.total == Spent(tokens=508, cost=127)
    assert (costs.requests, costs.retries) == (2, 0)
    assert (costs.batches.count, costs.batches.sum) == (2, 508)
    assert costs.batches.buckets[:3] == ((100, 0), (300, 1), (1000, 2))
    assert (costs.documents.count, costs.documents.sum) == (2, 508)
    assert costs.documents.buckets[:3] == ((100, 1), (300, 1), (1000, 2))
    assert [(each.id, each.spent.tokens) for each in costs.dearest] == [(one, 500), (two, 8)]


def test_dearest_documents_are_a_short_list(database: Database) -> None:
    made = generation(database)
    for tokens in range(DEAREST + 5):
        batch(database, made, {ids.upload_id(uuid4()): tokens})
    dearest = [each.spent.tokens for each in told(database).costs.dearest]
    assert dearest == list(range(DEAREST + 4, 4, -1))


def test_cost_of_retries_is_what_was_spent_after_something_failed(database: Database) -> None:
    made, owner = generation(database), user(database)
    calm = job(database, owner, Status.EMBEDDING_QUEUED)
    unlucky = job(database, owner, Status.EMBEDDING_QUEUED)
    for error_at in (ago(50), ago(20)):
        unlucky = stumbling(database, unlucky, RetryableEmbedError("x"), error_at)
    badly_parsed = stumbling(database, job(database, owner), ParserError("x"), ago(100))
    for one, at, retries, tokens in (
        (calm, ago(10), 0, 1),
        (calm, ago(10), 2, 10),
        (unlucky, ago(60), 0, 100),
        (unlucky, ago(40), 0, 1000),
        (unlucky, ago(10), 1, 10_000),
        (badly_parsed, ago(10), 0, 100_000),
    ):
        document = ids.upload_id(one.document_id)
        batch(database, made, {document: tokens}, retries=retries, at=at)
    costs = told(database).costs
    assert costs.repeated == Spent(tokens=11_010, cost=11_010 / 4)
    assert (costs.requests, costs.retries) == (9, 3)


def test_storage_is_told_by_user_and_by_format(database: Database) -> None:
    ada, bob = user(database, "Ada"), user(database, "Bob")
    job(database, ada, form="text", size=10)
    for size in (1000, 2000):
        document = uuid4()
        job(
            database,
            bob,
            Status.PARSED,
            document=document,
            size=size,
            parsed_bytes=50,
            parsed_path=f"parsed/{bob}/{document}.md",
        )
    storage = told(database).storage
    assert storage.by_format == {
        "pdf": Stored(raw=3000, parsed=100),
        "text": Stored(raw=10, parsed=0),
    }
    assert [(each.user_id, each.name, each.stored) for each in storage.by_user] == [
        (bob, "Bob", Stored(raw=3000, parsed=100)),
        (ada, "Ada", Stored(raw=10, parsed=0)),
    ]
    assert (storage.users, storage.total) == (2, Stored(raw=3010, parsed=100))


def test_file_that_has_not_come_takes_no_storage(database: Database) -> None:
    job(database, user(database), Status.UPLOADED, size=10_000)
    storage = told(database).storage
    assert (storage.users, storage.total) == (0, Stored(raw=0, parsed=0))


def test_text_that_two_files_share_is_stored_once(database: Database) -> None:
    owner, first, copy = user(database), uuid4(), uuid4()
    shared: dict[str, Any] = {"parsed_path": f"parsed/{owner}/{first}.md", "parsed_bytes": 70}
    for document in (first, copy):
        job(database, owner, Status.PARSE_VALIDATED, document=document, **shared)
    assert told(database).storage.total == Stored(raw=2000, parsed=70)


# Prometheus ---------------------------------------------------------------------------------


def exposed(database: Database) -> str:
    with database.read() as connection:
        return render(connection, NOW)


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[f"fonds_upload_{name}", frozenset(labels.items())]


def busy(database: Database) -> Job:
    owner, made = user(database, "Ada Lovelace"), generation(database)
    for took in (0.5, 3, 90, 5000):
        job(database, owner, Status.PARSED, arrived_at=ago(9000), parsed_at=ago(9000 - took))
    job(database, owner, moved=ago(25))
    failed = failing(database, job(database, owner), ParserError("page 7 of the policy is torn"))
    batch(database, made, {ids.upload_id(failed.document_id): 2000}, retries=1)
    return failed


def test_exposition_says_what_the_figures_say(database: Database) -> None:
    failed = busy(database)
    found = samples(exposed(database))
    assert value(found, "jobs", status="parsed") == 4
    assert value(found, "jobs", status="complete") == 0
    assert value(found, "duration_seconds_sum", milestone="parse") == 5093.5
    assert value(found, "errors_total", stage="parse", type="ParserError", final="true") == 1
    assert value(found, "stage_jobs", stage="parse") == 6
    assert value(found, "stage_error_ratio", stage="parse") == pytest.approx(1 / 6)
    assert value(found, "due_jobs") == 5
    assert value(found, "queue_lag_seconds") == 25
    assert value(found, "longest_wait_seconds") == 9000
    assert value(found, "repeated_jobs") == value(found, "repeated_ratio") == 0
    assert value(found, "batch_tokens_sum") == value(found, "document_tokens_sum") == 2000
    assert value(found, "cost_dollars_total") == 500
    assert value(found, "repeated_tokens_total") == 2000
    assert value(found, "repeated_cost_dollars_total") == 500
    assert (value(found, "requests_total"), value(found, "request_retries_total")) == (2, 1)
    assert value(found, "user_storage_bytes", user=str(failed.user_id), content="raw") == 6000
    assert value(found, "format_storage_bytes", format="pdf", content="raw") == 6000
    assert value(found, "format_storage_bytes", format="pdf", content="parsed") == 0


def test_every_metric_is_ours_explained_and_told_once(database: Database) -> None:
    busy(database)
    families = list(text_string_to_metric_families(exposed(database)))
    names = [family.name for family in families]
    assert len(names) == len(set(names)) > 15
    for family in families:
        assert family.name.startswith("fonds_upload_")
        assert family.documentation.endswith(".")
        assert family.type in {"gauge", "counter", "histogram"}
        keys = [(sample.name, frozenset(sample.labels.items())) for sample in family.samples]
        assert len(keys) == len(set(keys))


def test_buckets_of_histograms_are_cumulative(database: Database) -> None:
    busy(database)
    text = exposed(database)
    found, buckets = samples(text), defaultdict(list)
    for (name, labels), count in found.items():
        if name.endswith("_bucket"):
            others = frozenset((key, each) for key, each in labels if key != "le")
            buckets[name.removesuffix("_bucket"), others].append((float(dict(labels)["le"]), count))
    assert len(buckets) == 6
    for (name, labels), counted in buckets.items():
        counts = [count for _, count in sorted(counted)]
        assert counts == sorted(counts)
        assert max(counted) == (float("inf"), found[f"{name}_count", labels])
    parse = dict(buckets["fonds_upload_duration_seconds", frozenset({("milestone", "parse")})])
    assert [parse[bound] for bound in (1, 2, 5, 60, 120, 3600)] == [1, 1, 2, 2, 3, 3]
    assert parse[float("inf")] == 4


def test_no_name_and_no_message_is_exposed(database: Database) -> None:
    failed = busy(database)
    text = exposed(database)
    for secret in ("Ada", "Confidential", "torn", str(failed.document_id), str(failed.job_id)):
        assert secret not in text


def test_many_users_are_exposed_as_one_sum(database: Database) -> None:
    for number in range(LISTED_USERS):
        job(database, user(database, f"user {number}"), size=10)
    name = "fonds_upload_user_storage_bytes"
    assert sum(key == name for key, _ in samples(exposed(database))) == 2 * LISTED_USERS
    job(database, user(database, "one too many"), size=10)
    found = samples(exposed(database))
    assert sum(key == name for key, _ in found) == 2
    assert value(found, "user_storage_bytes", user=ALL_USERS, content="raw") == 1010

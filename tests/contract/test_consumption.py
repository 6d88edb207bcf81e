"""What the figures of uploads say of tokens, money and bytes, on every database."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from tests.support.uploads.statistics import ago, batch, generation, job, stumbling, told, user

from fonds import ids
from fonds.errors import ParserError, RetryableEmbedError
from fonds.stores.database import Database
from fonds.uploads.states import JobStatus
from fonds.uploads.usage import MAX_DOCUMENTS, ModelUsage, StorageUsage


def test_only_the_shares_of_uploads_are_counted(database: Database) -> None:
    made, one, two = generation(database), ids.upload_id(uuid4()), ids.upload_id(uuid4())
    batch(database, made, {one: 100, two: 8, "fr:2026-1": 5000})
    batch(database, made, {one: 400})
    batch(database, made, {"fr:2026-2": 7000, "uploads:x": 3, "Upload:x": 3, "upload": 3})
    costs = told(database).costs
    assert costs.total == ModelUsage(tokens=508, cost=127)
    assert (costs.requests, costs.retries) == (2, 0)
    assert (costs.batches.count, costs.batches.sum) == (2, 508)
    assert costs.batches.buckets[:3] == ((100, 0), (300, 1), (1000, 2))
    assert (costs.documents.count, costs.documents.sum) == (2, 508)
    assert costs.documents.buckets[:3] == ((100, 1), (300, 1), (1000, 2))
    assert [(each.id, each.usage.tokens) for each in costs.top_documents] == [(one, 500), (two, 8)]


def test_dearest_documents_are_a_short_list(database: Database) -> None:
    made = generation(database)
    for tokens in range(MAX_DOCUMENTS + 5):
        batch(database, made, {ids.upload_id(uuid4()): tokens})
    dearest = [each.usage.tokens for each in told(database).costs.top_documents]
    assert dearest == list(range(MAX_DOCUMENTS + 4, 4, -1))


def test_cost_of_retries_is_what_was_spent_after_something_failed(database: Database) -> None:
    made, owner = generation(database), user(database)
    calm = job(database, owner, JobStatus.EMBEDDING_QUEUED)
    unlucky = job(database, owner, JobStatus.EMBEDDING_QUEUED)
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
    assert costs.repeated == ModelUsage(tokens=11_010, cost=11_010 / 4)
    assert (costs.requests, costs.retries) == (9, 3)


def test_storage_is_told_by_user_and_by_format(database: Database) -> None:
    ada, bob = user(database, "Ada"), user(database, "Bob")
    job(database, ada, form="text", size=10)
    for size in (1000, 2000):
        document = uuid4()
        job(
            database,
            bob,
            JobStatus.PARSED,
            document=document,
            size=size,
            parsed_bytes=50,
            parsed_path=f"parsed/{bob}/{document}.md",
        )
    storage = told(database).storage
    assert storage.by_format == {
        "pdf": StorageUsage(raw=3000, parsed=100),
        "text": StorageUsage(raw=10, parsed=0),
    }
    assert [(each.user_id, each.name, each.stored) for each in storage.by_user] == [
        (bob, "Bob", StorageUsage(raw=3000, parsed=100)),
        (ada, "Ada", StorageUsage(raw=10, parsed=0)),
    ]
    assert (storage.users, storage.total) == (2, StorageUsage(raw=3010, parsed=100))


def test_file_that_has_not_come_takes_no_storage(database: Database) -> None:
    job(database, user(database), JobStatus.UPLOADED, size=10_000)
    storage = told(database).storage
    assert (storage.users, storage.total) == (0, StorageUsage(raw=0, parsed=0))


def test_text_that_two_files_share_is_stored_once(database: Database) -> None:
    owner, first, copy = user(database), uuid4(), uuid4()
    shared: dict[str, Any] = {"parsed_path": f"parsed/{owner}/{first}.md", "parsed_bytes": 70}
    for document in (first, copy):
        job(database, owner, JobStatus.PARSE_VALIDATED, document=document, **shared)
    assert told(database).storage.total == StorageUsage(raw=2000, parsed=70)

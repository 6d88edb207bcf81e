"""Jobs, errors and costs as figures of uploads count them, written by the moves that make them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert

from fonds.errors import FondsError
from fonds.stores.database import Database
from fonds.stores.tables import (
    embedding_batches,
    embedding_costs,
    embedding_generations,
    embedding_models,
    users,
)
from fonds.uploads.jobs import Job, create, fail, move, retry_later, update_job
from fonds.uploads.states import ENDED, MOVES, JobStatus
from fonds.uploads.statistics import UploadStatistics, upload_statistics

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
WAY = [status for status in JobStatus if status not in ENDED] + [JobStatus.COMPLETE]


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def told(database: Database, now: datetime = NOW) -> UploadStatistics:
    with database.read() as connection:
        return upload_statistics(connection, now)


def user(database: Database, name: str = "Ada") -> UUID:
    made = uuid4()
    with database.write() as connection:
        connection.execute(insert(users).values(id=made, name=name, created_at=NOW))
    return made


def job(
    database: Database,
    owner: UUID,
    status: JobStatus = JobStatus.PARSE_QUEUED,
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
            return update_job(connection, begun, moved, **columns)
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

"""The state of the queues: lengths, ages, failures, and the cost of vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, Table, case, func, literal, select

from fonds.embed.status import HIDDEN_ERROR, UPLOAD
from fonds.runs.commands import QueueName
from fonds.stores.leases import MAX_ATTEMPTS
from fonds.stores.tables import (
    embedding_batches,
    ingestion_citation_queue,
    ingestion_embedding_queue,
    ingestion_normalization_queue,
)
from fonds.stores.vectors import current_generation

TABLES: Final[Mapping[QueueName, Table]] = {
    "normalization": ingestion_normalization_queue,
    "embedding": ingestion_embedding_queue,
    "citations": ingestion_citation_queue,
}
MAX_FAILURES: Final = 10
MAX_ERROR_LENGTH: Final = 500
SPANS: Final = {"hour": timedelta(hours=1), "day": timedelta(days=1)}


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueFailure:
    """An error of queued documents, with their number."""

    cause: str
    documents: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """The state of one queue."""

    queue: QueueName
    waiting: int
    """Documents that will be tried, including those with a lease."""
    leased: int
    """Of them, those that a process works on."""
    failed_before: int
    """Of them, those that failed before."""
    given_up: int
    """Failed so often that they are only tried again on request."""
    oldest_at: datetime | None
    """The time when the oldest of them was queued."""
    oldest_seconds: float | None
    tried_last_hour: int
    """Of those in the queue, the ones tried within an hour."""
    causes: tuple[QueueFailure, ...]
    """The most frequent first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """Requests to a model within a span of time."""

    texts: int
    tokens: int
    requests: int
    retries: int
    cost: float
    """USD"""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingWork:
    """The use of the embedding model."""

    model: str | None
    """The model whose vectors are searched; None before the first."""
    embedder: str | None
    last_hour: Throughput
    last_day: Throughput
    total: Throughput


def backlogs(connection: Connection, now: datetime) -> list[Backlog]:
    """All queues."""
    return [backlog(connection, queue, now) for queue in TABLES]


def backlog(connection: Connection, queue: QueueName, now: datetime) -> Backlog:
    """One queue."""
    table = TABLES[queue].c
    open_ = table.attempts < MAX_ATTEMPTS
    leased = table.lease_until >= now
    lately = table.last_attempt_at >= now - SPANS["hour"]
    row = connection.execute(
        select(
            func.count(case((open_, 1))).label("waiting"),
            func.count(case((open_ & leased, 1))).label("leased"),
            func.count(case((open_ & table.last_error.is_not(None), 1))).label("failed_before"),
            func.count(case((~open_, 1))).label("given_up"),
            func.min(case((open_, table.enqueued_at)), type_=table.enqueued_at.type).label(
                "oldest"
            ),
            func.count(case((lately, 1))).label("tried_last_hour"),
        )
    ).one()
    age = None if row.oldest is None else max(0.0, (now - row.oldest).total_seconds())
    return Backlog(
        queue=queue,
        waiting=row.waiting,
        leased=row.leased,
        failed_before=row.failed_before,
        given_up=row.given_up,
        oldest_at=row.oldest,
        oldest_seconds=age,
        tried_last_hour=row.tried_last_hour,
        causes=_failures(connection, queue),
    )


def embedding_work(connection: Connection, now: datetime) -> EmbeddingWork:
    """Requests to models within an hour, a day, and in all."""
    generation = current_generation(connection)
    return EmbeddingWork(
        model=generation.name if generation else None,
        embedder=generation.embedder if generation else None,
        last_hour=_throughput(connection, now - SPANS["hour"]),
        last_day=_throughput(connection, now - SPANS["day"]),
        total=_throughput(connection, None),
    )


def _failures(connection: Connection, queue: QueueName) -> tuple[QueueFailure, ...]:
    table = TABLES[queue].c
    many = func.count().label("documents")
    # An error message about an upload may quote its text.
    is_upload = table.record_id.startswith(UPLOAD)
    error = case(
        (is_upload, literal(HIDDEN_ERROR)), else_=func.substr(table.last_error, 1, MAX_ERROR_LENGTH)
    ).label("cause")
    errors = select(error).where(table.last_error.is_not(None)).subquery()
    query = select(errors.c.cause, many).group_by(errors.c.cause)
    rows = connection.execute(query.order_by(many.desc(), errors.c.cause).limit(MAX_FAILURES))
    return tuple(QueueFailure(cause=row.cause, documents=row.documents) for row in rows)


def _throughput(connection: Connection, since: datetime | None) -> Throughput:
    table = embedding_batches.c
    sums = [
        func.coalesce(func.sum(table[name]), 0).label(name)
        for name in ("texts", "tokens", "requests", "retries", "cost")
    ]
    query = select(*sums) if since is None else select(*sums).where(table.created_at >= since)
    row = connection.execute(query).one()
    return Throughput(
        texts=int(row.texts),  # PostgreSQL sums to decimals
        tokens=int(row.tokens),
        requests=int(row.requests),
        retries=int(row.retries),
        cost=float(row.cost),
    )

"""The status of embedding, and a plan of its requests, cost and time; both only read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import CTE, Connection, case, exists, func, literal, select

from fonds.embed.base import Embedder, EmbeddingModel
from fonds.embed.batches import MAX_TEXTS
from fonds.embed.client import read_rate
from fonds.embed.costs import EmbeddingCost, sum_costs
from fonds.embed.generations import without_vector
from fonds.embed.registry import open_embedder
from fonds.embed.worker import embedder_of
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores import leases
from fonds.stores.database import Database
from fonds.stores.fulltext import visible_text
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    embedding_batches,
    embedding_choice,
    embedding_generations,
    ingestion_embedding_queue,
)
from fonds.stores.vectors import current_generation, generations

SAMPLE: Final = 64
"""Texts with which a local model is timed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingPlan:
    """The work until every passage has a vector of a model."""

    embedder: str
    model: str
    version: str
    is_remote: bool
    """Whether texts leave this machine."""
    documents: int
    """Documents with a passage that has no vector."""
    passages: int
    """Passages without a vector."""
    texts: int
    """The distinct texts of these passages for which no vector can be reused."""
    tokens: int
    """The tokens of these texts, as our chunker counts them."""
    requests: int
    cost: float
    """USD"""
    seconds: float | None
    """On this machine, or by the endpoint's limits; None if it has none."""


def plan_embedding(
    database: Database, seams: Seams, settings: Settings, to: str | None = None
) -> EmbeddingPlan:
    """Plan the rest of the current generation, or of the model `to`."""
    with database.read() as connection:
        current = current_generation(connection)
    if to is None and current is not None:
        spec, embedder = current.embedder, embedder_of(current, settings)
    else:
        spec = to or settings.embedder
        embedder = open_embedder(spec, settings)
    model = embedder.model
    with database.read() as connection:
        counted = _count(connection, model)
        sample = [] if embedder.is_remote else _sample(connection, model)
    requests = _requests(model, counted["texts"], counted["tokens"])
    return EmbeddingPlan(
        embedder=spec,
        model=model.name,
        version=model.version,
        is_remote=embedder.is_remote,
        **counted,
        requests=requests,
        cost=counted["tokens"] * model.price / 1_000_000,
        seconds=(
            _seconds_by_limits(settings.embed_rate, requests, counted["tokens"])
            if embedder.is_remote
            else _timed(embedder, seams, sample, counted["tokens"])
        ),
    )


def _count(connection: Connection, model: EmbeddingModel) -> dict[str, int]:
    chunk = document_chunk_buffer.c
    pending = without_vector(model.name, model.version)
    per_passage = select(func.count(), func.count(chunk.document_id.distinct())).where(pending)
    passages, document_count = connection.execute(per_passage).one()
    unseen = _new_texts(model)
    # A model reads no more than its limit, and nothing beyond it is paid for.
    read = case((unseen.c.tokens > model.max_tokens, model.max_tokens), else_=unseen.c.tokens)
    per_text = select(func.count(), func.coalesce(func.sum(read), 0)).select_from(unseen)
    texts, tokens = connection.execute(per_text).one()
    return {
        "documents": document_count,
        "passages": passages,
        "texts": texts,
        "tokens": int(tokens),
    }


def _new_texts(model: EmbeddingModel) -> CTE:
    """The texts for which no passage has a vector."""
    chunk, vector = document_chunk_buffer.c, document_vector_buffer.c
    pending = (
        select(chunk.chunk_sha, func.max(chunk.meta["tokens"].as_integer()).label("tokens"))
        .where(without_vector(model.name, model.version))
        .group_by(chunk.chunk_sha)
        .cte("pending")
    )
    twin = document_chunk_buffer.alias("twin")
    is_reusable = (
        exists()
        .where(twin.c.chunk_sha == pending.c.chunk_sha, vector.chunk_id == twin.c.chunk_id)
        .where(vector.embed_model == model.name, vector.embed_version == model.version)
    )
    return select(pending).where(~is_reusable).cte("unseen")


def _requests(model: EmbeddingModel, texts: int, tokens: int) -> int:
    return max(math.ceil(texts / MAX_TEXTS), math.ceil(tokens / model.batch_tokens))


def _seconds_by_limits(rate: str, requests: int, tokens: int) -> float | None:
    limits = read_rate(rate)
    if limits is None:
        return None
    return 60 * max(requests / limits.requests, tokens / limits.tokens)


def _sample(connection: Connection, model: EmbeddingModel) -> list[tuple[str, int]]:
    chunk = document_chunk_buffer.c
    query = select(chunk.text, chunk.meta).where(without_vector(model.name, model.version))
    drawn = connection.execute(query.order_by(chunk.chunk_sha).limit(SAMPLE))
    return [(visible_text(row.text), row.meta["tokens"]) for row in drawn]


def _timed(
    embedder: Embedder, seams: Seams, sample: Sequence[tuple[str, int]], tokens: int
) -> float:
    """The seconds for so many tokens, estimated from a sample."""
    texts = [text for text, _ in sample]
    if not texts:
        return 0.0
    embedder.embed(texts[:1], "passage")  # the first call may load the model
    started = seams.clock.monotonic()
    embedder.embed(texts, "passage")
    seconds = seams.clock.monotonic() - started
    return seconds / max(1, sum(counted for _, counted in sample)) * tokens


RECENTLY: Final = timedelta(hours=1)
MAX_ERRORS: Final = 5
UPLOAD: Final = "upload:"
HIDDEN_ERROR: Final = "failed for uploads; the error may quote them: it is in the queue only"


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationStatus:
    """The status of a generation."""

    id: int
    model: str
    version: str
    embedder: str
    dims: int
    vectors: int
    is_current: bool
    """True for the one that is searched."""
    is_previous: bool
    """True for the one that `fonds embed rollback` returns to."""
    created_at: datetime
    filled_at: datetime | None
    """The time at which every passage first had a vector of it, if a migration filled it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingStatus:
    """The status of embedding."""

    generations: Sequence[GenerationStatus]
    passages: int
    """The number of all passages."""
    waiting: int
    """Documents in the queue."""
    given_up: int
    """Documents that failed too often to be retried automatically."""
    errors: Sequence[dict[str, Any]]
    """The most frequent errors: `cause` and `documents`."""
    last_hour: dict[str, Any]
    """`texts`, `tokens`, `requests`, `retries`"""
    costs: Sequence[EmbeddingCost]
    """By source."""


def embedding_status(database: Database, now: datetime) -> EmbeddingStatus:
    """The status in one transaction."""
    with database.read() as connection:
        return EmbeddingStatus(
            generations=_generations(connection),
            passages=connection.scalar(select(func.count(document_chunk_buffer.c.id))) or 0,
            **leases.depth(connection, ingestion_embedding_queue),
            errors=_errors(connection),
            last_hour=_since(connection, now - RECENTLY),
            costs=sum_costs(connection, by="source"),
        )


def _generations(connection: Connection) -> list[GenerationStatus]:
    vector, table = document_vector_buffer.c, embedding_generations.c
    kinds = (vector.embed_model, vector.embed_version)
    counted = {
        (row[0], row[1]): row[2]
        for row in connection.execute(select(*kinds, func.count()).group_by(*kinds))
    }
    dated = {
        row.id: row
        for row in connection.execute(select(table.id, table.created_at, table.filled_at))
    }
    choice = connection.execute(select(embedding_choice)).one_or_none()
    return [
        GenerationStatus(
            id=each.id,
            model=each.name,
            version=each.version,
            embedder=each.embedder,
            dims=each.dims,
            vectors=counted.get((each.name, each.version), 0),
            is_current=choice is not None and choice.generation == each.id,
            is_previous=choice is not None and choice.previous == each.id,
            created_at=dated[each.id].created_at,
            filled_at=dated[each.id].filled_at,
        )
        for each in generations(connection)
    ]


def _errors(connection: Connection) -> list[dict[str, Any]]:
    queue = ingestion_embedding_queue.c
    count = func.count().label("documents")
    # An endpoint may quote the text that it refuses.
    is_upload = queue.record_id.startswith(UPLOAD)
    error = case((is_upload, literal(HIDDEN_ERROR)), else_=queue.last_error).label("cause")
    errors = select(error).where(queue.last_error.is_not(None)).subquery().c
    query = select(errors.cause, count).group_by(errors.cause)
    query = query.order_by(count.desc(), errors.cause)
    return [row._asdict() for row in connection.execute(query.limit(MAX_ERRORS))]


def _since(connection: Connection, start: datetime) -> dict[str, Any]:
    table = embedding_batches.c
    sums = [
        func.coalesce(func.sum(table[name]), 0).label(name)
        for name in ("texts", "tokens", "requests", "retries")
    ]
    row = connection.execute(select(*sums).where(table.created_at >= start)).one()
    return {name: int(number) for name, number in row._asdict().items()}

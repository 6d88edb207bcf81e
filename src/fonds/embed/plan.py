"""What embedding will take, before it begins: counted from the database, which is only read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import CTE, Connection, case, exists, func, select

from fonds.embed.base import Embedder, EmbeddingModel
from fonds.embed.batches import MAX_TEXTS
from fonds.embed.current import embedder_of
from fonds.embed.generations import without_vector
from fonds.embed.limits import read_rate
from fonds.embed.registry import open_embedder
from fonds.seams import Seams
from fonds.settings import Settings
from fonds.stores.database import Database
from fonds.stores.fulltext import as_seen
from fonds.stores.tables import document_chunk_buffer, document_vector_buffer
from fonds.stores.vectors import current_generation

SAMPLE: Final = 64
"""Texts that a local model is timed with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingPlan:
    """What it takes until every passage has a vector of a model."""

    embedder: str
    model: str
    version: str
    is_remote: bool
    """Whether texts leave this machine."""
    documents: int
    """With a passage that has no vector."""
    passages: int
    """Without a vector."""
    texts: int
    """Distinct ones among them that the model has not seen; all others are known already."""
    tokens: int
    """Of these texts, as our chunker counts them."""
    requests: int
    cost: float
    """USD"""
    seconds: float | None
    """On this machine, or at the endpoint's limits; None where neither tells."""


def plan_embedding(
    database: Database, seams: Seams, settings: Settings, to: str | None = None
) -> EmbeddingPlan:
    """Count what a model has not seen yet: of the current generation, unless another is named."""
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
            _at_the_limits(settings.embed_rate, requests, counted["tokens"])
            if embedder.is_remote
            else _timed(embedder, seams, sample, counted["tokens"])
        ),
    )


def _count(connection: Connection, model: EmbeddingModel) -> dict[str, int]:
    chunk = document_chunk_buffer.c
    lacking = without_vector(model.name, model.version)
    per_passage = select(func.count(), func.count(chunk.document_id.distinct())).where(lacking)
    passages, holders = connection.execute(per_passage).one()
    unseen = _unseen(model)
    # A model reads no further than its limit, and is paid for no more.
    read = case((unseen.c.tokens > model.max_tokens, model.max_tokens), else_=unseen.c.tokens)
    per_text = select(func.count(), func.coalesce(func.sum(read), 0)).select_from(unseen)
    texts, tokens = connection.execute(per_text).one()
    return {"documents": holders, "passages": passages, "texts": texts, "tokens": int(tokens)}


def _unseen(model: EmbeddingModel) -> CTE:
    """Texts none of whose passages has a vector."""
    chunk, vector = document_chunk_buffer.c, document_vector_buffer.c
    lacking = (
        select(chunk.chunk_sha, func.max(chunk.meta["tokens"].as_integer()).label("tokens"))
        .where(without_vector(model.name, model.version))
        .group_by(chunk.chunk_sha)
        .cte("lacking")
    )
    twin = document_chunk_buffer.alias("twin")
    seen = (
        exists()
        .where(twin.c.chunk_sha == lacking.c.chunk_sha, vector.chunk_id == twin.c.chunk_id)
        .where(vector.embed_model == model.name, vector.embed_version == model.version)
    )
    return select(lacking).where(~seen).cte("unseen")


def _requests(model: EmbeddingModel, texts: int, tokens: int) -> int:
    return max(math.ceil(texts / MAX_TEXTS), math.ceil(tokens / model.batch_tokens))


def _at_the_limits(rate: str, requests: int, tokens: int) -> float | None:
    limits = read_rate(rate)
    if limits is None:
        return None
    return 60 * max(requests / limits.requests, tokens / limits.tokens)


def _sample(connection: Connection, model: EmbeddingModel) -> list[tuple[str, int]]:
    chunk = document_chunk_buffer.c
    query = select(chunk.text, chunk.meta).where(without_vector(model.name, model.version))
    drawn = connection.execute(query.order_by(chunk.chunk_sha).limit(SAMPLE))
    return [(as_seen(row.text), row.meta["tokens"]) for row in drawn]


def _timed(
    embedder: Embedder, seams: Seams, sample: Sequence[tuple[str, int]], tokens: int
) -> float:
    """Seconds for so many tokens, by what a few texts take."""
    texts = [text for text, _ in sample]
    if not texts:
        return 0.0
    embedder.embed(texts[:1], "passage")  # the first call may load the model
    begun = seams.clock.monotonic()
    embedder.embed(texts, "passage")
    taken = seams.clock.monotonic() - begun
    return taken / max(1, sum(counted for _, counted in sample)) * tokens

"""The costs of embedding: the part of each document in a batch, and sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Select, Text, cast, func, select

from fonds.stores.tables import documents, embedding_batches, embedding_costs
from fonds.stores.vector_buffer import DocumentCost, PendingPassage


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingCost:
    """The cost of one source, document or run."""

    name: str
    texts: int
    """The texts that were sent to the model."""
    tokens: int
    requests: int
    """The requests it had a part in; one request may count for several."""
    retries: int
    cost: float
    """USD"""


def price_of(tokens: int, price: float) -> float:
    """The cost of so many tokens, at a price for a million."""
    return tokens * price / 1_000_000


def costs_of_documents(
    passages: Sequence[PendingPassage], tokens: int, price: float
) -> list[DocumentCost]:
    """Divide the tokens that the model counted in proportion to the sizes of the texts."""
    texts: dict[str, int] = defaultdict(int)
    sizes: dict[str, int] = defaultdict(int)
    for passage in passages:
        texts[passage.document] += 1
        sizes[passage.document] += passage.tokens or 1
    whole = sum(sizes.values())
    costs, size_so_far, tokens_so_far = [], 0, 0
    for document, size in sizes.items():
        size_so_far += size
        part = tokens * size_so_far // whole - tokens_so_far
        tokens_so_far += part
        cost = price_of(part, price)
        costs.append(DocumentCost(document=document, texts=texts[document], tokens=part, cost=cost))
    return costs


def sum_costs(
    connection: Connection,
    by: Literal["source", "document", "run"],
    *,
    source: str | None = None,
    document: str | None = None,
    generation: int | None = None,
) -> list[EmbeddingCost]:
    """Sums by source, by document or by run, the highest first; of one only if it is given."""
    batch = embedding_batches.c
    parts = _parts(by, source=source, document=document).subquery().c
    query = (
        select(
            parts.name,
            func.sum(parts.texts),
            func.sum(parts.tokens),
            func.sum(batch.requests),
            func.sum(batch.retries),
            func.sum(parts.cost),
        )
        .join(embedding_batches, batch.id == parts.batch_id)
        .group_by(parts.name)
        .order_by(func.sum(parts.cost).desc(), func.sum(parts.tokens).desc(), parts.name)
    )
    if generation is not None:
        query = query.where(batch.generation == generation)
    return [
        EmbeddingCost(
            name=name,
            texts=int(texts),  # PostgreSQL sums to decimals
            tokens=int(tokens),
            requests=int(requests),
            retries=int(retries),
            cost=float(cost),
        )
        for name, texts, tokens, requests, retries, cost in connection.execute(query)
    ]


def _parts(by: str, *, source: str | None, document: str | None) -> Select[Any]:
    """The part of each source, document or run in each batch."""
    cost, batch = embedding_costs.c, embedding_batches.c
    name = {"source": documents.c.source, "document": cost.document_id, "run": batch.run_id}[by]
    query = (
        select(
            cast(name, Text).label("name"),
            cost.batch_id,
            func.sum(cost.texts).label("texts"),
            func.sum(cost.tokens).label("tokens"),
            func.sum(cost.cost).label("cost"),
        )
        .join(embedding_batches, batch.id == cost.batch_id)
        .join(documents, documents.c.id == cost.document_id)
        .group_by(name, cost.batch_id)
    )
    if source is not None:
        query = query.where(documents.c.source == source)
    return query if document is None else query.where(cost.document_id == document)

"""How embedding stands: generations, what waits, what failed, how fast it goes and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, case, func, literal, select

from fonds.embed.costs import Spent, spent
from fonds.stores import queues
from fonds.stores.database import Database
from fonds.stores.tables import (
    document_chunk_buffer,
    document_vector_buffer,
    embedding_batches,
    embedding_choice,
    embedding_generations,
    ingestion_embedding_queue,
)
from fonds.stores.vectors import generations

LATELY: Final = timedelta(hours=1)
SHOWN_ERRORS: Final = 5
UPLOAD: Final = "upload:"
NOT_TOLD: Final = "failed for uploads; the cause may quote them, and is in the queue alone"


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationStatus:
    """How far a generation is."""

    id: int
    model: str
    version: str
    embedder: str
    dims: int
    vectors: int
    is_current: bool
    """The one that is searched."""
    is_previous: bool
    """The one that a roll-back returns to."""
    created_at: datetime
    filled_at: datetime | None
    """When every passage first had a vector of it, if a migration filled it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingStatus:
    """How embedding stands."""

    generations: Sequence[GenerationStatus]
    passages: int
    """That could have a vector."""
    waiting: int
    """Documents in the queue."""
    given_up: int
    """Documents that failed too often to be tried again by themselves."""
    errors: Sequence[dict[str, Any]]
    """The most frequent causes: `cause` and `documents`."""
    last_hour: dict[str, Any]
    """`texts`, `tokens`, `requests`, `retries`"""
    costs: Sequence[Spent]
    """By source."""


def embedding_status(database: Database, now: datetime) -> EmbeddingStatus:
    """Look at everything at one moment."""
    with database.read() as connection:
        return EmbeddingStatus(
            generations=_generations(connection),
            passages=connection.scalar(select(func.count(document_chunk_buffer.c.id))) or 0,
            **queues.depth(connection, ingestion_embedding_queue),
            errors=_errors(connection),
            last_hour=_since(connection, now - LATELY),
            costs=spent(connection, by="source"),
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
    many = func.count().label("documents")
    # An endpoint may answer with the very text that it refuses.
    is_upload = queue.record_id.startswith(UPLOAD)
    cause = case((is_upload, literal(NOT_TOLD)), else_=queue.last_error).label("cause")
    named = select(cause).where(queue.last_error.is_not(None)).subquery()
    query = select(named.c.cause, many).group_by(named.c.cause)
    query = query.order_by(many.desc(), named.c.cause)
    return [row._asdict() for row in connection.execute(query.limit(SHOWN_ERRORS))]


def _since(connection: Connection, moment: datetime) -> dict[str, Any]:
    table = embedding_batches.c
    sums = [
        func.coalesce(func.sum(table[name]), 0).label(name)
        for name in ("texts", "tokens", "requests", "retries")
    ]
    row = connection.execute(select(*sums).where(table.created_at >= moment)).one()
    return {name: int(number) for name, number in row._asdict().items()}

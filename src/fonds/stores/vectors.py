"""Indexes over the vectors of passages, one for each generation, and search in them with filters.

The vectors themselves are in the buffer, from which an index can be made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final, Protocol

from sqlalchemy import Connection, Row, select

from fonds.stores.tables import embedding_choice, embedding_generations, embedding_models


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """All vectors of one version of one model."""

    id: int
    name: str
    version: str
    embedder: str
    """The name by which the model is opened."""
    dims: int
    price: float
    """USD for a million tokens."""

    @property
    def table(self) -> str:
        """The name of its index."""
        return f"vec_{self.id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class NearPassage:
    """A passage whose vector is near that of the query."""

    row: int
    """`document_chunk_buffer.id`"""
    similarity: float
    """Cosine, computed from the full vectors."""


class VectorIndex(Protocol):
    """An index over vectors; it is written in the transaction that stores the vectors."""

    def create(self, connection: Connection, generation: Generation) -> None:
        """Create the index of a generation, if there is none yet."""
        ...

    def drop(self, connection: Connection, generation: Generation) -> None:
        """Drop the index of a generation."""
        ...

    def add(
        self, connection: Connection, generation: Generation, vectors: Sequence[tuple[int, bytes]]
    ) -> None:
        """Add vectors by the row of their passage; an existing one is replaced."""
        ...

    def remove(
        self, connection: Connection, generations: Sequence[Generation], rows: Sequence[int]
    ) -> None:
        """Remove passages."""
        ...

    def search(
        self,
        connection: Connection,
        generation: Generation,
        query: bytes,
        eligible: Any,
        limit: int,
    ) -> list[NearPassage]:
        """The nearest passages among the rows of the query `eligible`, best first.

        At least `limit` if so many are eligible and have a vector.
        """
        ...

    def similarities(
        self, connection: Connection, generation: Generation, query: bytes, rows: Sequence[int]
    ) -> dict[int, float]:
        """The cosines of passages, without those that have no vector."""
        ...


def generations(connection: Connection) -> list[Generation]:
    """All generations, oldest first."""
    return [_generation(row) for row in connection.execute(_query().order_by(_table.id))]


def current_generation(connection: Connection) -> Generation | None:
    """The generation that is searched; None until something has been embedded."""
    chosen = _query().join(embedding_choice, embedding_choice.c.generation == _table.id)
    row = connection.execute(chosen).one_or_none()
    return None if row is None else _generation(row)


_table = embedding_generations.c


def _query() -> Any:
    model = embedding_models.c
    same = (model.name == _table.name) & (model.version == _table.version)
    return select(
        _table.id, _table.name, _table.version, _table.embedder, model.dims, model.price
    ).join(embedding_models, same)


def _generation(row: Row[Any]) -> Generation:
    return Generation(**row._asdict())


ENOUGH: Final = 0.75
"""The fraction of the first rows that must be eligible; in most searches nearly all are."""
SPARSE: Final = 0.1
"""If a smaller fraction is eligible, it is faster to compare only eligible rows."""


class IndexRows(Protocol):
    """The rows of an index, as one query sees them."""

    def best(self, count: int) -> Sequence[int]:
        """The best rows by the index, which is approximate and ignores filters."""
        ...

    def weigh(self, rows: Sequence[int]) -> Mapping[int, float]:
        """The exact cosine of each row that is eligible."""
        ...

    def among_eligible(self, count: int) -> Mapping[int, float]:
        """The exact cosines of the best eligible rows; at least `count` if there are so many."""
        ...


def nearest(rows: IndexRows, limit: int, spare: int) -> list[NearPassage]:
    """The best eligible rows, best first; at least `limit` if there are so many.

    `spare` more rows are compared in full, as the order of the index is approximate.
    """
    count = limit + spare
    candidates = rows.best(count)
    cosines = dict(rows.weigh(candidates))
    fraction = len(cosines) / count
    if (
        fraction >= SPARSE
        and len(cosines) < max(limit, ENOUGH * count)
        and len(candidates) == count
    ):
        cosines |= rows.weigh(_others(rows.best(ceil(count / fraction)), candidates))
    if fraction < SPARSE or len(cosines) < limit:
        cosines = dict(rows.among_eligible(count))
    best = sorted(cosines.items(), key=lambda item: (-item[1], item[0]))
    return [NearPassage(row=row, similarity=cosine) for row, cosine in best[:limit]]


def _others(rows: Sequence[int], candidates: Sequence[int]) -> list[int]:
    excluded = set(candidates)
    return [row for row in rows if row not in excluded]

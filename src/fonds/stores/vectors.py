"""The index over vectors of passages, one for each generation; the buffer holds the truth.

How an index that knows no filters answers a question that has some.
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
    """All vectors that one version of one model made."""

    id: int
    name: str
    version: str
    embedder: str
    """How the model is opened."""
    dims: int
    price: float
    """USD for a million tokens."""

    @property
    def table(self) -> str:
        """The name of its index."""
        return f"vec_{self.id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class NearPassage:
    """A passage whose vector is near the one asked for."""

    row: int
    """`document_chunk_buffer.id`"""
    similarity: float
    """Cosine; exact, whatever found the passage."""


class VectorIndex(Protocol):
    """Finds near vectors; written in the transaction of the vectors themselves."""

    def create(self, connection: Connection, generation: Generation) -> None:
        """Make the index of a generation, if there is none yet."""
        ...

    def drop(self, connection: Connection, generation: Generation) -> None:
        """Forget the index of a generation."""
        ...

    def add(
        self, connection: Connection, generation: Generation, vectors: Sequence[tuple[int, bytes]]
    ) -> None:
        """Make vectors findable by the row of their passage; one that is there is replaced."""
        ...

    def remove(
        self, connection: Connection, generations: Sequence[Generation], rows: Sequence[int]
    ) -> None:
        """Forget passages."""
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

        Never fewer than `limit` if so many are eligible and have a vector.
        """
        ...

    def similarities(
        self, connection: Connection, generation: Generation, query: bytes, rows: Sequence[int]
    ) -> dict[int, float]:
        """The cosine of given passages; those without a vector are left out."""
        ...


def generations(connection: Connection) -> list[Generation]:
    """All generations there are, oldest first."""
    return [_generation(row) for row in connection.execute(_query().order_by(_table.id))]


def current_generation(connection: Connection) -> Generation | None:
    """The one that is searched; None while nothing has been embedded."""
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
"""Part of the rows looked at that must be eligible; nearly every search lets nearly all pass."""
SPARSE: Final = 0.1
"""Where fewer pass, it is quicker to begin with those that do."""


class IndexRows(Protocol):
    """What an index can tell about one question."""

    def best(self, count: int) -> Sequence[int]:
        """The best rows, eligible or not, as well as the index knows."""
        ...

    def weigh(self, rows: Sequence[int]) -> Mapping[int, float]:
        """The exact cosine of each row that is eligible."""
        ...

    def among_eligible(self, count: int) -> Mapping[int, float]:
        """The exact cosines of the best rows, found among the eligible ones alone.

        Never fewer than `count` if there are so many.
        """
        ...


def nearest(rows: IndexRows, limit: int, spare: int) -> list[NearPassage]:
    """The best eligible rows, best first; never fewer than `limit` if there are so many.

    `spare` is how many more are compared in full, as the index knows only about how near they are.
    """
    wanted = limit + spare
    seen = rows.best(wanted)
    found = dict(rows.weigh(seen))
    share = len(found) / wanted
    if share >= SPARSE and len(found) < max(limit, ENOUGH * wanted) and len(seen) == wanted:
        found |= rows.weigh(_others(rows.best(ceil(wanted / share)), seen))
    if share < SPARSE or len(found) < limit:
        found = dict(rows.among_eligible(wanted))
    best = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [NearPassage(row=row, similarity=cosine) for row, cosine in best[:limit]]


def _others(rows: Sequence[int], seen: Sequence[int]) -> list[int]:
    known = set(seen)
    return [row for row in rows if row not in known]

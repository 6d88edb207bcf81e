"""Vectors on SQLite: the codes of all rows are compared first, then the best rows in full.

A table contains the codes in blocks, each with a hash of its content, so that a process reads only
blocks that have changed since its last search. The extension sqlite-vec compares codes as well,
but needs a second to find enough candidates among 200,000 passages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Select, Text, func, literal, select

from fonds.stores.tables import document_chunk_buffer, document_vector_buffer
from fonds.stores.vector_blocks import BLOCK, VectorBlock, by_block
from fonds.stores.vectors import Generation, NearPassage, nearest

if TYPE_CHECKING:
    from fonds.stores.quantized import Ranking, Slab

SPARE: Final = 2
MIN_SPARE: Final = 200
"""Additional rows compared in full for each result, and at least; on 200,000 real passages that
finds all of the true best 10, and 99 of the best 100."""

_BLOCKS_OF_SLAB: Final = 64

CACHE_BYTES: Final = 256 << 20
"""Bytes of codes cached between searches; 200,000 passages of 256 dimensions take 15 MB.

Codes beyond that are read from the database for each search.
"""

_row: Final = document_chunk_buffer.c.id
_vector: Final = document_vector_buffer.c


class SqliteVectors:
    """Codes of two bits a dimension; the vectors themselves are in the buffer."""

    def __init__(self) -> None:
        self._cache: dict[tuple[str, int], tuple[_Stamps, Slab]] = {}
        self._lock = Lock()

    def create(self, connection: Connection, generation: Generation) -> None:
        """Create the index of a generation, if there is none yet."""
        name = generation.table
        connection.exec_driver_sql(
            f"CREATE TABLE IF NOT EXISTS {name} (block INTEGER PRIMARY KEY, stamp INTEGER NOT NULL,"
            " held BLOB NOT NULL, centre BLOB NOT NULL, scales BLOB NOT NULL, codes BLOB NOT NULL)"
        )
        connection.exec_driver_sql(
            f"CREATE INDEX IF NOT EXISTS {name}_stamps ON {name} (block, stamp)"
        )

    def drop(self, connection: Connection, generation: Generation) -> None:
        """Drop the index of a generation."""
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {generation.table}")
        with self._lock:
            self._cache = {
                key: slab for key, slab in self._cache.items() if key[0] != generation.table
            }

    def add(
        self, connection: Connection, generation: Generation, vectors: Sequence[tuple[int, bytes]]
    ) -> None:
        """Add vectors by the row of their passage; an existing one is replaced."""
        from fonds.stores.quantized import with_vectors  # noqa: PLC0415 — loading needs no numpy

        data = dict(vectors)
        for number, offsets in by_block(data).items():
            block = _read(connection, generation, number)
            data_of_block = [data[number * BLOCK + offset] for offset in offsets]
            _write(connection, generation, with_vectors(block, number, offsets, data_of_block))

    def remove(
        self, connection: Connection, generations: Sequence[Generation], rows: Sequence[int]
    ) -> None:
        """Remove passages."""
        blocks = by_block(rows)
        for generation in generations:
            for number, offsets in blocks.items():
                block = _read(connection, generation, number)
                if block is not None:
                    _write(connection, generation, block.without(offsets))

    def search(
        self,
        connection: Connection,
        generation: Generation,
        query: bytes,
        eligible: Select[Any],
        limit: int,
    ) -> list[NearPassage]:
        """The nearest passages among the rows of the query `eligible`, best first."""
        from fonds.stores.quantized import ranking  # noqa: PLC0415 — loading needs no numpy

        ranked = ranking(list(self._slabs(connection, generation)), query)
        search = _SqliteSearch(connection, generation, query, eligible, ranked)
        return nearest(search, limit, SPARE * limit + MIN_SPARE)

    def similarities(
        self, connection: Connection, generation: Generation, query: bytes, rows: Sequence[int]
    ) -> dict[int, float]:
        """The cosines of passages, without those that have no vector."""
        return _cosines(connection, generation, query, select(_row), rows)

    def _slabs(self, connection: Connection, generation: Generation) -> Iterator[Slab]:
        name = generation.table
        rows = connection.exec_driver_sql(f"SELECT block, stamp FROM {name} ORDER BY block")  # noqa: S608 — a number
        for number, group in groupby(rows.fetchall(), lambda row: row[0] // _BLOCKS_OF_SLAB):
            stamps: _Stamps = [tuple(row) for row in group]
            cached = self._cache.get((name, number))
            if cached is not None and cached[0] == stamps:
                yield cached[1]
            else:
                yield self._keep(name, number, stamps, _read_slab(connection, generation, number))

    def _keep(self, name: str, number: int, stamps: _Stamps, slab: Slab) -> Slab:
        with self._lock:
            self._cache.pop((name, number), None)
            others = [key for key in self._cache if key[0] != name]
            while others and self._size() + slab.size > CACHE_BYTES:
                del self._cache[others.pop()]
            if self._size() + slab.size <= CACHE_BYTES:
                self._cache[name, number] = (stamps, slab)
        return slab

    def _size(self) -> int:
        return sum(slab.size for _, slab in self._cache.values())


_Stamps = list[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _SqliteSearch:
    connection: Connection
    generation: Generation
    query: bytes
    eligible: Select[Any]
    ranking: Ranking

    def best(self, count: int) -> list[int]:
        return self.ranking.best(count)

    def weigh(self, rows: Sequence[int]) -> Mapping[int, float]:
        return _cosines(self.connection, self.generation, self.query, self.eligible, rows)

    def among_eligible(self, count: int) -> Mapping[int, float]:
        eligible = self.connection.scalars(self.eligible).all()
        rows = self.ranking.among(eligible).best(count)
        return _cosines(self.connection, self.generation, self.query, select(_row), rows)


def _cosines(
    connection: Connection,
    generation: Generation,
    query: bytes,
    eligible: Select[Any],
    rows: Sequence[int],
) -> dict[int, float]:
    from fonds.stores.quantized import cosines  # noqa: PLC0415 — loading needs no numpy

    requested = func.json_each(literal(json.dumps(list(rows)), Text)).table_valued("value")
    statement = (
        eligible.add_columns(_vector.vector)
        .where(_row.in_(select(requested.c.value)))
        .where(_vector.chunk_id == document_chunk_buffer.c.chunk_id)
        .where(_vector.embed_model == generation.name)
        .where(_vector.embed_version == generation.version)
    )
    matches: Sequence[Any] = connection.execute(statement).all()
    near = cosines([row[1] for row in matches], query)
    return {row[0]: cosine for row, cosine in zip(matches, near, strict=True)}


# Blocks -----------------------------------------------------------------------------------


def _read(connection: Connection, generation: Generation, number: int) -> VectorBlock | None:
    return next(iter(_read_blocks(connection, generation, number, number)), None)


def _read_blocks(
    connection: Connection, generation: Generation, first: int, last: int
) -> list[VectorBlock]:
    rows = connection.exec_driver_sql(
        f"SELECT block, held, centre, scales, codes FROM {generation.table}"  # noqa: S608 — a number
        " WHERE block BETWEEN ? AND ? ORDER BY block",
        (first, last),
    )
    return [VectorBlock(*row) for row in rows]


def _write(connection: Connection, generation: Generation, block: VectorBlock) -> None:
    name = generation.table
    if block.is_empty:
        connection.exec_driver_sql(f"DELETE FROM {name} WHERE block = ?", (block.number,))  # noqa: S608 — a number
        return
    into = f"INSERT OR REPLACE INTO {name} (stamp, block, held, centre, scales, codes)"
    content = (block.number, block.present, block.centre, block.scales, block.codes)
    connection.exec_driver_sql(f"{into} VALUES (?, ?, ?, ?, ?, ?)", (block.content_hash, *content))


def _read_slab(connection: Connection, generation: Generation, number: int) -> Slab:
    from fonds.stores.quantized import slab_of  # noqa: PLC0415 — loading needs no numpy

    first = number * _BLOCKS_OF_SLAB
    last = first + _BLOCKS_OF_SLAB - 1
    return slab_of(_read_blocks(connection, generation, first, last))

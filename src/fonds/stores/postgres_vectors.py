"""Vectors on PostgreSQL: pgvector, with an HNSW index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import unpack
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Float,
    Select,
    TableClause,
    any_,
    cast,
    column,
    delete,
    func,
    literal,
    select,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import UserDefinedType

from fonds.errors import StoreError
from fonds.stores.nearest import nearest
from fonds.stores.tables import document_chunk_buffer
from fonds.stores.vectors import Generation, Near

OLDEST: Final = (0, 8)
"""Since then an index goes on where it would have stopped short."""
_MOST_INDEXED: Final = 2000
"""Dimensions of an index over numbers in full; more are indexed at half their precision."""
_MOST_HALVED: Final = 4000
"""Dimensions of any index; vectors of more are compared one by one."""
SPARE_AT_LEAST: Final = 20
"""Rows looked at beyond those wanted, so that a few may be filtered out."""
_LEAST_FOLLOWED: Final = 300
_MOST_FOLLOWED: Final = 1000
"""`ef_search`: how many the index has in hand at once. The largest it takes is 1000."""


class PostgresVectors:
    """A table of vectors for each generation; what is found is compared in full."""

    def create(self, connection: Connection, generation: Generation) -> None:
        """Make the index of a generation, if there is none yet."""
        _require_pgvector(connection)
        name, dims = generation.table, generation.dims
        connection.exec_driver_sql(
            f"CREATE TABLE IF NOT EXISTS {name} (id bigint PRIMARY KEY"
            " REFERENCES document_chunk_buffer (id) ON DELETE CASCADE,"
            f" embedding vector({dims}) NOT NULL)"
        )
        if dims <= _MOST_HALVED:
            # All vectors are of unit length: the inner product is the cosine, and is cheaper.
            connection.exec_driver_sql(
                f"CREATE INDEX IF NOT EXISTS {name}_near ON {name}"
                f" USING hnsw ({_indexed(dims)} {_kind(dims)}_ip_ops)"
            )

    def drop(self, connection: Connection, generation: Generation) -> None:
        """Forget the index of a generation."""
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {generation.table}")

    def add(
        self, connection: Connection, generation: Generation, vectors: Sequence[tuple[int, bytes]]
    ) -> None:
        """Make vectors findable by the row of their passage; one that is there is replaced."""
        if vectors:
            into = f"INSERT INTO {generation.table} (id, embedding)"
            given = "VALUES (:id, CAST(:vector AS vector))"
            again = "ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding"
            rows = [{"id": row, "vector": _written(vector)} for row, vector in vectors]
            connection.execute(text(f"{into} {given} {again}"), rows)

    def remove(
        self, connection: Connection, generations: Sequence[Generation], rows: Sequence[int]
    ) -> None:
        """Forget passages."""
        for generation in generations if rows else ():
            index = _table(generation)
            connection.execute(delete(index).where(_is_one_of(index.c.id, rows)))

    def search(
        self,
        connection: Connection,
        generation: Generation,
        query: bytes,
        eligible: Select[Any],
        limit: int,
    ) -> list[Near]:
        """The nearest passages among the rows of the query `eligible`, best first."""
        search = _Search(connection, generation, query, eligible)
        return nearest(search, limit, SPARE_AT_LEAST + limit // 8)

    def similarities(
        self, connection: Connection, generation: Generation, query: bytes, rows: Sequence[int]
    ) -> dict[int, float]:
        """The cosine of given passages; those without a vector are left out."""
        index = _table(generation)
        statement = select(index.c.id, _cosine(index, query)).where(_is_one_of(index.c.id, rows))
        return _pairs(connection, statement)


@dataclass(frozen=True, slots=True)
class _Search:
    connection: Connection
    generation: Generation
    query: bytes
    eligible: Select[Any]

    def best(self, count: int) -> list[int]:
        _follow(self.connection, count)
        name, dims = self.generation.table, self.generation.dims
        # The number stands in the statement itself: a plan made for any number is one for many.
        statement = (
            f"SELECT id FROM {name} ORDER BY {_indexed(dims)}"  # noqa: S608 — numbers
            f" <#> CAST(:query AS {_kind(dims)}({dims})) LIMIT {count}"
        )
        return list(self.connection.scalars(text(statement), {"query": _written(self.query)}))

    def weigh(self, rows: Sequence[int]) -> Mapping[int, float]:
        index, row = _table(self.generation), document_chunk_buffer.c.id
        passing = self.eligible.where(_is_one_of(row, rows))
        statement = passing.add_columns(_cosine(index, self.query)).where(index.c.id == row)
        return _pairs(self.connection, statement)

    def among_eligible(self, count: int) -> Mapping[int, float]:
        index = _table(self.generation)
        cosine = _cosine(index, self.query)
        statement = select(index.c.id, cosine).where(index.c.id.in_(self.eligible))
        return _pairs(self.connection, statement.order_by(cosine.desc(), index.c.id).limit(count))


def _follow(connection: Connection, count: int) -> None:
    """How far the index is followed, for the rest of the transaction."""
    settings = {
        "hnsw.ef_search": min(max(3 * count, _LEAST_FOLLOWED), _MOST_FOLLOWED),
        "hnsw.iterative_scan": "strict_order",
        "hnsw.max_scan_tuples": max(20_000, 8 * count),
    }
    connection.execute(
        select(*(func.set_config(name, str(value), True) for name, value in settings.items()))
    )


def _table(generation: Generation) -> TableClause:
    return table(generation.table, column("id", BigInteger), column("embedding"))


def _cosine(index: TableClause, query: bytes) -> ColumnElement[float]:
    asked = cast(literal(_written(query)), _Vector())
    return -index.c.embedding.op("<#>", return_type=Float())(asked)


def _is_one_of(row: Any, rows: Sequence[int]) -> ColumnElement[bool]:
    return row == any_(literal(list(rows), ARRAY(BigInteger)))  # type: ignore[no-any-return]


def _pairs(connection: Connection, statement: Select[Any]) -> dict[int, float]:
    return {row[0]: row[1] for row in connection.execute(statement)}


def _kind(dims: int) -> str:
    return "vector" if dims <= _MOST_INDEXED else "halfvec"


def _indexed(dims: int) -> str:
    return "embedding" if dims <= _MOST_INDEXED else f"(embedding::halfvec({dims}))"


def _written(vector: bytes) -> str:
    return str(list(unpack(f"<{len(vector) // 4}f", vector)))


class _Vector(UserDefinedType[str]):
    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        return "vector"


def _require_pgvector(connection: Connection) -> None:
    try:
        connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS vector")
    except DBAPIError as error:
        raise StoreError(
            "vectors need the extension pgvector in this PostgreSQL; install it on the server,"
            " and let an administrator run: CREATE EXTENSION vector"
        ) from error
    version = connection.exec_driver_sql(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).scalar_one()
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreError(f"pgvector {version} is too old: 0.8 is the first that works with filters")

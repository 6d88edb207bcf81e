"""Vectors on PostgreSQL: pgvector, with an HNSW index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from struct import unpack
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Float,
    LargeBinary,
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
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import UserDefinedType

from fonds.errors import StoreError
from fonds.stores.tables import document_chunk_buffer
from fonds.stores.vectors import Generation, NearPassage, nearest

OLDEST: Final = (0, 8)
"""The first pgvector with iterative index scans, which filters need."""
_MAX_VECTOR_DIMS: Final = 2000
"""Dimensions of an index at full precision; longer vectors are indexed at half precision."""
_MAX_HALFVEC_DIMS: Final = 4000
"""Dimensions of any index; longer vectors are compared one by one."""
MIN_SPARE: Final = 20
"""Rows read in addition to the limit, so that some may be filtered out."""
_MIN_EF_SEARCH: Final = 300
_MAX_EF_SEARCH: Final = 1000
"""`hnsw.ef_search`, the number of candidates that a scan considers; pgvector allows 1000."""


class PostgresVectors:
    """For each generation a table of distinct vectors, and one of the passages that have them.

    Equal vectors of many passages ("[Reserved]") are in the index once: in an HNSW graph, hundreds
    of equal points would only link to each other, and a search would not reach or leave them.
    Candidates are compared in full.
    """

    def create(self, connection: Connection, generation: Generation) -> None:
        """Create the index of a generation, if there is none yet."""
        _require_pgvector(connection)
        name, dims = generation.table, generation.dims
        connection.exec_driver_sql(
            f"CREATE TABLE IF NOT EXISTS {name}_points"
            f" (sha bytea PRIMARY KEY, embedding vector({dims}) NOT NULL)"
        )
        connection.exec_driver_sql(
            f"CREATE TABLE IF NOT EXISTS {name} (id bigint PRIMARY KEY"
            " REFERENCES document_chunk_buffer (id) ON DELETE CASCADE,"
            f" sha bytea NOT NULL REFERENCES {name}_points (sha))"
        )
        connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS {name}_sha ON {name} (sha, id)")
        if dims <= _MAX_HALFVEC_DIMS:
            # All vectors have unit length: the inner product is the cosine, and is faster.
            connection.exec_driver_sql(
                f"CREATE INDEX IF NOT EXISTS {name}_near ON {name}_points"
                f" USING hnsw ({_indexed(dims)} {_kind(dims)}_ip_ops)"
            )

    def drop(self, connection: Connection, generation: Generation) -> None:
        """Drop the index of a generation."""
        name = generation.table
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}, {name}_points")

    def add(
        self, connection: Connection, generation: Generation, vectors: Sequence[tuple[int, bytes]]
    ) -> None:
        """Add vectors by the row of their passage; an existing one is replaced."""
        if not vectors:
            return
        sha_of = {row: sha256(vector).digest() for row, vector in vectors}
        _keep_points(connection, generation, {sha_of[row]: vector for row, vector in vectors})
        into = insert(_table(generation))
        again = into.on_conflict_do_update(index_elements=["id"], set_={"sha": into.excluded.sha})
        rows = [{"id": row, "sha": sha} for row, sha in sha_of.items()]
        connection.execute(again, rows)

    def remove(
        self, connection: Connection, generations: Sequence[Generation], rows: Sequence[int]
    ) -> None:
        """Remove passages."""
        for generation in generations if rows else ():
            index = _table(generation)
            deleted = delete(index).where(_is_one_of(index.c.id, rows)).returning(index.c.sha)
            _drop_points(connection, generation, set(connection.scalars(deleted)))

    def search(
        self,
        connection: Connection,
        generation: Generation,
        query: bytes,
        eligible: Select[Any],
        limit: int,
    ) -> list[NearPassage]:
        """The nearest passages among the rows of the query `eligible`, best first."""
        search = _PostgresSearch(connection, generation, query, eligible)
        return nearest(search, limit, MIN_SPARE + limit // 8)

    def similarities(
        self, connection: Connection, generation: Generation, query: bytes, rows: Sequence[int]
    ) -> dict[int, float]:
        """The cosines of passages, without those that have no vector."""
        index = _table(generation)
        statement = _with_cosine(select(index.c.id), generation, query)
        return _pairs(connection, statement.where(_is_one_of(index.c.id, rows)))


@dataclass(frozen=True, slots=True)
class _PostgresSearch:
    connection: Connection
    generation: Generation
    query: bytes
    eligible: Select[Any]

    def best(self, count: int) -> list[int]:
        _set_scan_limits(self.connection, count)
        name, dims = self.generation.table, self.generation.dims
        # The number is not a parameter: a plan for any number would be one for many rows.
        statement = (
            f"SELECT held.id FROM {name}_points AS point CROSS JOIN LATERAL"  # noqa: S608 — numbers
            f" (SELECT id FROM {name} WHERE sha = point.sha ORDER BY id LIMIT {count}) AS held"
            f" ORDER BY {_indexed(dims)} <#> CAST(:query AS {_kind(dims)}({dims})) LIMIT {count}"
        )
        return list(
            self.connection.scalars(text(statement), {"query": _vector_literal(self.query)})
        )

    def weigh(self, rows: Sequence[int]) -> Mapping[int, float]:
        row = document_chunk_buffer.c.id
        passing = self.eligible.where(_is_one_of(row, rows), _table(self.generation).c.id == row)
        return _pairs(self.connection, _with_cosine(passing, self.generation, self.query))

    def among_eligible(self, count: int) -> Mapping[int, float]:
        index = _table(self.generation)
        passing = select(index.c.id).where(index.c.id.in_(self.eligible))
        statement = _with_cosine(passing, self.generation, self.query)
        cosine = statement.selected_columns["cosine"]
        return _pairs(self.connection, statement.order_by(cosine.desc(), index.c.id).limit(count))


def _keep_points(
    connection: Connection, generation: Generation, vectors: Mapping[bytes, bytes]
) -> None:
    """Store vectors in the index, and lock them until this transaction ends."""
    points, missing = _points(generation), set(vectors)
    into = insert(points).on_conflict_do_nothing()
    locked = select(points.c.sha).with_for_update(read=True, key_share=True)
    while missing:
        # Sorted, so that two transactions with the same vectors do not deadlock.
        rows = [{"sha": sha, "embedding": _vector_literal(vectors[sha])} for sha in sorted(missing)]
        connection.execute(into, rows)
        missing -= set(connection.scalars(locked.where(_is_one_of(points.c.sha, missing))))


def _drop_points(connection: Connection, generation: Generation, shas: set[bytes]) -> None:
    """Remove vectors that no passage has any more.

    Vectors that another transaction has locked remain, which does no harm.
    """
    points, passages = _points(generation), _table(generation)
    free = select(points.c.sha).with_for_update(skip_locked=True)
    locked = list(connection.scalars(free.where(_is_one_of(points.c.sha, shas))))
    # A separate statement sees the rows that were committed before the vectors were locked.
    is_used = select(passages.c.id).where(passages.c.sha == points.c.sha).exists()
    connection.execute(delete(points).where(_is_one_of(points.c.sha, locked), ~is_used))


def _set_scan_limits(connection: Connection, count: int) -> None:
    """Set how much of the index a scan may read, for the rest of the transaction."""
    settings = {
        "hnsw.ef_search": min(max(3 * count, _MIN_EF_SEARCH), _MAX_EF_SEARCH),
        "hnsw.iterative_scan": "strict_order",
        "hnsw.max_scan_tuples": max(20_000, 8 * count),
    }
    connection.execute(
        select(*(func.set_config(name, str(value), True) for name, value in settings.items()))
    )


@cache
def _points(generation: Generation) -> TableClause:
    name = f"{generation.table}_points"
    return table(name, column("sha", LargeBinary), column("embedding", _PgVector()))


@cache
def _table(generation: Generation) -> TableClause:
    return table(generation.table, column("id", BigInteger), column("sha", LargeBinary))


def _with_cosine(statement: Select[Any], generation: Generation, query: bytes) -> Select[Any]:
    """The statement with the cosine of each passage as another column."""
    points = _points(generation)
    query_vector = cast(literal(_vector_literal(query)), _PgVector())
    cosine = -points.c.embedding.op("<#>", return_type=Float())(query_vector)
    is_its_own = points.c.sha == _table(generation).c.sha
    return statement.add_columns(cosine.label("cosine")).where(is_its_own)


def _is_one_of(key: ColumnElement[Any], keys: Iterable[Any]) -> ColumnElement[bool]:
    return key == any_(literal(list(keys), ARRAY(key.type)))


def _pairs(connection: Connection, statement: Select[Any]) -> dict[int, float]:
    return {row[0]: row[1] for row in connection.execute(statement)}


def _kind(dims: int) -> str:
    return "vector" if dims <= _MAX_VECTOR_DIMS else "halfvec"


def _indexed(dims: int) -> str:
    return "embedding" if dims <= _MAX_VECTOR_DIMS else f"(embedding::halfvec({dims}))"


def _vector_literal(vector: bytes) -> str:
    return str(list(unpack(f"<{len(vector) // 4}f", vector)))


class _PgVector(UserDefinedType[str]):
    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        return "vector"

    def bind_expression(self, bindvalue: BindParameter[Any]) -> ColumnElement[Any]:
        return cast(bindvalue, self)


def _require_pgvector(connection: Connection) -> None:
    try:
        connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS vector")
    except DBAPIError as error:
        raise StoreError(
            "vectors need the PostgreSQL extension pgvector; install it on the server,"
            " and let an administrator run: CREATE EXTENSION vector"
        ) from error
    version = connection.exec_driver_sql(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).scalar_one()
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreError(f"pgvector {version} is too old: filters need 0.8 or later; upgrade it")

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
    """For each generation a table of vectors, and one of the passages that have each of them.

    An equal vector stands in the index once, however many passages say the same ("[Reserved]"):
    hundreds of equal ones would only lead to each other, and a search would not come to them, or
    not away from them. What is found is compared in full.
    """

    def create(self, connection: Connection, generation: Generation) -> None:
        """Make the index of a generation, if there is none yet."""
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
        if dims <= _MOST_HALVED:
            # All vectors are of unit length: the inner product is the cosine, and is cheaper.
            connection.exec_driver_sql(
                f"CREATE INDEX IF NOT EXISTS {name}_near ON {name}_points"
                f" USING hnsw ({_indexed(dims)} {_kind(dims)}_ip_ops)"
            )

    def drop(self, connection: Connection, generation: Generation) -> None:
        """Forget the index of a generation."""
        name = generation.table
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}, {name}_points")

    def add(
        self, connection: Connection, generation: Generation, vectors: Sequence[tuple[int, bytes]]
    ) -> None:
        """Make vectors findable by the row of their passage; one that is there is replaced."""
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
        """Forget passages."""
        for generation in generations if rows else ():
            index = _table(generation)
            gone = delete(index).where(_is_one_of(index.c.id, rows)).returning(index.c.sha)
            _drop_points(connection, generation, set(connection.scalars(gone)))

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
        return nearest(search, limit, SPARE_AT_LEAST + limit // 8)

    def similarities(
        self, connection: Connection, generation: Generation, query: bytes, rows: Sequence[int]
    ) -> dict[int, float]:
        """The cosine of given passages; those without a vector are left out."""
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
        _follow(self.connection, count)
        name, dims = self.generation.table, self.generation.dims
        # The number stands in the statement itself: a plan made for any number is one for many.
        statement = (
            f"SELECT held.id FROM {name}_points AS point CROSS JOIN LATERAL"  # noqa: S608 — numbers
            f" (SELECT id FROM {name} WHERE sha = point.sha ORDER BY id LIMIT {count}) AS held"
            f" ORDER BY {_indexed(dims)} <#> CAST(:query AS {_kind(dims)}({dims})) LIMIT {count}"
        )
        return list(self.connection.scalars(text(statement), {"query": _written(self.query)}))

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
    """Have vectors in the index, and nobody remove them before this transaction ends."""
    points, lacking = _points(generation), set(vectors)
    into = insert(points).on_conflict_do_nothing()
    locked = select(points.c.sha).with_for_update(read=True, key_share=True)
    while lacking:
        # In one order, so that two who write the same do not wait for each other.
        rows = [{"sha": sha, "embedding": _written(vectors[sha])} for sha in sorted(lacking)]
        connection.execute(into, rows)
        lacking -= set(connection.scalars(locked.where(_is_one_of(points.c.sha, lacking))))


def _drop_points(connection: Connection, generation: Generation, shas: set[bytes]) -> None:
    """Remove vectors that no passage has any more.

    One that somebody else is about to use stays: one without a passage is no harm.
    """
    points, held = _points(generation), _table(generation)
    free = select(points.c.sha).with_for_update(skip_locked=True)
    locked = list(connection.scalars(free.where(_is_one_of(points.c.sha, shas))))
    # A statement of its own: it sees what was committed before the lock was had.
    is_used = select(held.c.id).where(held.c.sha == points.c.sha).exists()
    connection.execute(delete(points).where(_is_one_of(points.c.sha, locked), ~is_used))


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


@cache
def _points(generation: Generation) -> TableClause:
    name = f"{generation.table}_points"
    return table(name, column("sha", LargeBinary), column("embedding", _PgVector()))


@cache
def _table(generation: Generation) -> TableClause:
    return table(generation.table, column("id", BigInteger), column("sha", LargeBinary))


def _with_cosine(statement: Select[Any], generation: Generation, query: bytes) -> Select[Any]:
    """Beside each passage of the index, how near it is."""
    points = _points(generation)
    asked = cast(literal(_written(query)), _PgVector())
    cosine = -points.c.embedding.op("<#>", return_type=Float())(asked)
    is_its_own = points.c.sha == _table(generation).c.sha
    return statement.add_columns(cosine.label("cosine")).where(is_its_own)


def _is_one_of(key: ColumnElement[Any], keys: Iterable[Any]) -> ColumnElement[bool]:
    return key == any_(literal(list(keys), ARRAY(key.type)))


def _pairs(connection: Connection, statement: Select[Any]) -> dict[int, float]:
    return {row[0]: row[1] for row in connection.execute(statement)}


def _kind(dims: int) -> str:
    return "vector" if dims <= _MOST_INDEXED else "halfvec"


def _indexed(dims: int) -> str:
    return "embedding" if dims <= _MOST_INDEXED else f"(embedding::halfvec({dims}))"


def _written(vector: bytes) -> str:
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
            "vectors need the extension pgvector in this PostgreSQL; install it on the server,"
            " and let an administrator run: CREATE EXTENSION vector"
        ) from error
    version = connection.exec_driver_sql(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).scalar_one()
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreError(f"pgvector {version} is too old: 0.8 is the first that works with filters")

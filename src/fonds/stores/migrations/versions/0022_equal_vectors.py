"""On PostgreSQL an index over vectors holds equal ones once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    made = sa.text(
        "SELECT id, dims, name, version FROM embedding_generations"
        " JOIN embedding_models USING (name, version)"
    )
    for number, dims, name, version in connection.execute(made).all():
        _create(table := f"vec_{number}", dims)
        _fill(table, name, version)
        op.drop_table(f"{table}_was")
        _index(table, dims)


def _create(table: str, dims: int) -> None:
    op.drop_index(f"{table}_near", if_exists=True)
    op.rename_table(table, f"{table}_was")
    op.execute(
        f"CREATE TABLE {table}_points (sha bytea PRIMARY KEY, embedding vector({dims}) NOT NULL)"
    )
    op.execute(
        f"CREATE TABLE {table} (id bigint PRIMARY KEY"
        " REFERENCES document_chunk_buffer (id) ON DELETE CASCADE,"
        f" sha bytea NOT NULL REFERENCES {table}_points (sha))"
    )


def _fill(table: str, name: str, version: str) -> None:
    held = (
        f"FROM {table}_was AS was JOIN document_chunk_buffer AS chunk USING (id)"
        " JOIN document_vector_buffer AS held ON held.chunk_id = chunk.chunk_id"
        " AND held.embed_model = :name AND held.embed_version = :version"
    )
    points = "SELECT DISTINCT ON (1) sha256(held.vector), was.embedding"
    by = {"name": name, "version": version}
    for into in (
        f"INSERT INTO {table}_points {points} {held}",
        f"INSERT INTO {table} SELECT id, sha256(held.vector) {held}",
    ):
        op.get_bind().execute(sa.text(into), by)


def _index(table: str, dims: int) -> None:
    op.create_index(f"{table}_sha", table, ["sha", "id"])
    if dims <= 4000:  # noqa: PLR2004 — more cannot be indexed
        kind = "vector" if dims <= 2000 else "halfvec"  # noqa: PLR2004 — so much at full precision
        column = "embedding" if kind == "vector" else f"(embedding::halfvec({dims}))"
        op.execute(
            f"CREATE INDEX {table}_near ON {table}_points USING hnsw ({column} {kind}_ip_ops)"
        )

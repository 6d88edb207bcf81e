"""The parent of each node, and the source of each version: trees by level, changes by source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _name_parents()
    _name_sources_of_versions()
    op.create_index("ix_ingestion_runs_started", "ingestion_runs", ["started_at", "id"])


def _name_parents() -> None:
    op.add_column(
        "nodes", sa.Column("parent", sa.Text, comment="The id above: id without its last segment.")
    )
    # What is left of an id when everything behind its last slash is stripped off.
    op.execute(
        "UPDATE nodes SET parent = rtrim(rtrim(id, replace(id, '/', '')), '/') WHERE parent IS NULL"
    )
    with op.batch_alter_table("nodes") as table:
        table.alter_column("parent", existing_type=sa.Text(), nullable=False)
    op.create_index("ix_nodes_parent", "nodes", ["parent", "unit", "position"])


def _name_sources_of_versions() -> None:
    op.add_column("document_versions", sa.Column("source", sa.Text, comment="documents.source"))
    op.execute(
        "UPDATE document_versions SET source ="
        " (SELECT source FROM documents WHERE documents.id = document_versions.document_id)"
    )
    op.create_index(
        "ix_document_versions_source",
        "document_versions",
        ["source", "first_seen_at", "document_id"],
    )

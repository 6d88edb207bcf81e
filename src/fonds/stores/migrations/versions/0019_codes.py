"""Units of codes, and what sections say of the unit they belong to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Timestamp

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_code_units()
    _create_nodes()
    op.add_column(
        "documents",
        sa.Column("unit", sa.Text(), comment="code_units.id, of a section of a code; else NULL."),
    )
    op.create_index("ix_documents_unit", "documents", ["unit"])


def _create_code_units() -> None:
    op.create_table(
        "code_units",
        sa.Column(
            "id", sa.Text(), nullable=False, comment="Its root node: usc/2024/root/title-42."
        ),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column(
            "version", sa.Text(), nullable=False, comment="The edition: the publisher's stamp."
        ),
        sa.Column(
            "unit", sa.Text(), nullable=False, comment="Its name in every edition: title-42."
        ),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column(
            "published_at", sa.Text(), nullable=True, comment="ISO 8601; the day of the text."
        ),
        sa.Column("plan_key", sa.Text(), nullable=False, comment="Blob key of the plan."),
        sa.Column(
            "input_sha256", sa.Text(), nullable=False, comment="Over the pages that were walked."
        ),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("shards", sa.Integer(), nullable=False, comment="Leaves among them."),
        sa.Column(
            "bytes", sa.BigInteger(), nullable=False, comment="Of the bodies, as far as planned."
        ),
        sa.Column("state", sa.Text(), nullable=False, comment="planned, partial, complete"),
        sa.Column(
            "is_newest",
            sa.Boolean(),
            nullable=False,
            comment="Searched unless another is asked for.",
        ),
        sa.Column("planned_at", Timestamp(), nullable=False),
        sa.Column("completed_at", Timestamp(), nullable=True),
        sa.CheckConstraint(
            "state IN ('planned', 'partial', 'complete')", name=op.f("ck_code_units_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_code_units")),
    )
    op.create_index("ix_code_units_source_unit", "code_units", ["source", "unit", "version"])


def _create_nodes() -> None:
    # No release has filled the table of the first migration.
    op.drop_table("nodes")
    op.create_table(
        "nodes",
        sa.Column(
            "id",
            sa.Text(),
            nullable=False,
            comment="Hierarchical: the parent is a strict prefix.",
        ),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column(
            "path", sa.Text(), nullable=False, comment="The segments below the edition's root."
        ),
        sa.Column(
            "body_ref",
            sa.Text(),
            nullable=True,
            comment="<pack>#<offset>+<length>; NULL for a container.",
        ),
        sa.Column("unit", sa.Text(), nullable=False, comment="code_units.id"),
        sa.Column(
            "position",
            sa.Integer(),
            nullable=False,
            comment="In reading order, within the unit.",
        ),
        sa.Column(
            "status", sa.Text(), nullable=True, comment="repealed, reserved, …; NULL is in force."
        ),
        sa.Column("created_at", sa.Integer(), nullable=False, comment="Unix seconds."),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_nodes")),
    )
    op.create_index("ix_nodes_source_version", "nodes", ["source", "version"])
    op.create_index("ix_nodes_unit_position", "nodes", ["unit", "position"])

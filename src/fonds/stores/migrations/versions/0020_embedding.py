"""Generations of vectors, which of them is searched, what they cost; citations are looked up."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Identity, Timestamp

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_embedding_generations()
    _create_embedding_choice()
    _create_embedding_batches()
    _create_embedding_costs()
    op.create_index(
        "ix_documents_citation_string", "documents", ["citation_string"], postgresql_using="hash"
    )


def _create_embedding_generations() -> None:
    op.create_table(
        "embedding_generations",
        sa.Column(
            "id", sa.Integer(), nullable=False, comment="Its vector index is named after it."
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column(
            "embedder", sa.Text(), nullable=False, comment="How the model is opened: wordllama, …"
        ),
        sa.Column("created_at", Timestamp(), nullable=False),
        sa.Column(
            "filled_at",
            Timestamp(),
            nullable=True,
            comment="When every passage first had a vector of it.",
        ),
        sa.ForeignKeyConstraint(
            ["name", "version"],
            ["embedding_models.name", "embedding_models.version"],
            name=op.f("fk_embedding_generations_name_version"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_embedding_generations")),
        sa.UniqueConstraint("name", "version", name=op.f("uq_embedding_generations_name_version")),
        sqlite_autoincrement=True,
    )


def _create_embedding_choice() -> None:
    op.create_table(
        "embedding_choice",
        sa.Column("id", sa.Integer(), nullable=False, comment="Always 1: there is one choice."),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("previous", sa.Integer(), nullable=True, comment="What a rollback takes."),
        sa.Column("chosen_at", Timestamp(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_embedding_choice_one_row")),
        sa.ForeignKeyConstraint(
            ["generation"],
            ["embedding_generations.id"],
            name=op.f("fk_embedding_choice_generation"),
        ),
        sa.ForeignKeyConstraint(
            ["previous"], ["embedding_generations.id"], name=op.f("fk_embedding_choice_previous")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_embedding_choice")),
    )


def _create_embedding_batches() -> None:
    op.create_table(
        "embedding_batches",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", Identity(), nullable=False, comment="One call of `fonds embed`."),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("texts", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False, comment="Retries included."),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Float(), nullable=False, comment="USD"),
        sa.Column("created_at", Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["generation"],
            ["embedding_generations.id"],
            name=op.f("fk_embedding_batches_generation"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_embedding_batches")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_embedding_batches_generation"), "embedding_batches", ["generation"], unique=False
    )


def _create_embedding_costs() -> None:
    op.create_table(
        "embedding_costs",
        sa.Column("batch_id", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False, comment="documents.id"),
        sa.Column("texts", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Float(), nullable=False, comment="Its share of the batch, in USD."),
        sa.ForeignKeyConstraint(
            ["batch_id"],
            ["embedding_batches.id"],
            name=op.f("fk_embedding_costs_batch_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("batch_id", "document_id", name=op.f("pk_embedding_costs")),
    )
    op.create_index(
        "ix_embedding_costs_document_id", "embedding_costs", ["document_id"], unique=False
    )

"""Citations between documents, and the queue of documents to look for them in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Json, Timestamp

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_citation_edges()
    _create_ingestion_citation_queue()
    _ask_for_citations_of_what_is_held()


def _create_citation_edges() -> None:
    op.create_table(
        "citation_edges",
        sa.Column(
            "from_document_id", sa.Text(), nullable=False, comment="The document that cites."
        ),
        sa.Column(
            "start", sa.Integer(), autoincrement=False, nullable=False, comment="In body_text."
        ),
        sa.Column("end", sa.Integer(), nullable=False, comment="In body_text, exclusive."),
        sa.Column("locator", Json, nullable=False, comment="Of the passage it stands in."),
        sa.Column("raw", sa.Text(), nullable=False, comment="As the document writes it."),
        sa.Column(
            "kind",
            sa.Text(),
            nullable=False,
            comment="usc, cfr, public_law, bill, fr, case, …",
        ),
        sa.Column(
            "target", sa.Text(), nullable=False, comment="As document_aliases would have it."
        ),
        sa.Column(
            "pinpoint",
            sa.Text(),
            nullable=True,
            comment="The place within the target: (a)(1), a page.",
        ),
        sa.Column(
            "to_document_id",
            sa.Text(),
            nullable=True,
            comment="The document cited, once it is held.",
        ),
        sa.ForeignKeyConstraint(
            ["from_document_id"],
            ["documents.id"],
            name=op.f("fk_citation_edges_from_document_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["to_document_id"],
            ["documents.id"],
            name=op.f("fk_citation_edges_to_document_id"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("from_document_id", "start", name=op.f("pk_citation_edges")),
    )
    op.create_index(
        "ix_citation_edges_target", "citation_edges", ["target", "to_document_id"], unique=False
    )
    op.create_index(
        "ix_citation_edges_to_document_id",
        "citation_edges",
        ["to_document_id", "target"],
        unique=False,
    )


def _create_ingestion_citation_queue() -> None:
    op.create_table(
        "ingestion_citation_queue",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("input_sha", sa.Text(), nullable=False),
        sa.Column("enqueued_at", Timestamp(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_attempt_at", Timestamp(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", Timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingestion_citation_queue")),
        sa.UniqueConstraint(
            "table_name",
            "record_id",
            name=op.f("uq_ingestion_citation_queue_table_name_record_id"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ingestion_citation_queue_pending",
        "ingestion_citation_queue",
        ["id"],
        unique=False,
        sqlite_where=sa.text("attempts < 5"),
        postgresql_where=sa.text("attempts < 5"),
    )


def _ask_for_citations_of_what_is_held() -> None:
    op.execute(
        "INSERT INTO ingestion_citation_queue (table_name, record_id, input_sha, enqueued_at) "
        "SELECT 'documents', id, content_sha256, updated_at FROM documents"
    )

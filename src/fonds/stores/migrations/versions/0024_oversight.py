"""Stages of runs, results of audits, the run of a command, and what changed since a day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Identity, Json, Timestamp

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _index_changes()
    _name_runs_of_commands()
    _create_ingestion_stages()
    _create_ingestion_audits()


def _index_changes() -> None:
    op.create_index(
        "ix_document_versions_first_seen_at",
        "document_versions",
        ["first_seen_at", "document_id"],
    )
    _partial_index("ix_documents_gone_at", "documents", "gone_at", "gone_at IS NOT NULL")


def _name_runs_of_commands() -> None:
    op.add_column(
        "ingestion_commands",
        sa.Column("run_id", Identity, comment="ingestion_runs.id of the run that came of it."),
    )
    _partial_index("ix_ingestion_commands_open", "ingestion_commands", "id", "finished_at IS NULL")


def _create_ingestion_stages() -> None:
    op.create_table(
        "ingestion_stages",
        sa.Column(
            "run_id",
            Identity,
            sa.ForeignKey(
                "ingestion_runs.id",
                name=op.f("fk_ingestion_stages_run_id_ingestion_runs"),
                ondelete="CASCADE",
            ),
            nullable=False,
        ),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("began_at", Timestamp, nullable=False),
        sa.Column("ended_at", Timestamp, nullable=False, comment="When it last did something."),
        sa.Column("items", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("seconds", sa.Float, nullable=False, comment="Spent on them, added up."),
        sa.Column(
            "waited_seconds",
            sa.Float,
            nullable=False,
            comment="Of them, for a host's rate limit.",
        ),
        sa.Column("retries", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("run_id", "stage", name=op.f("pk_ingestion_stages")),
        sa.CheckConstraint(
            "stage IN ('discover', 'fetch', 'parse', 'load')",
            name=op.f("ck_ingestion_stages_stage"),
        ),
        comment="What each stage of a run took.",
    )


def _create_ingestion_audits() -> None:
    op.create_table(
        "ingestion_audits",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("audited_at", Timestamp, nullable=False),
        sa.Column("requested_by", sa.Text, nullable=False),
        sa.Column(
            "expected", sa.Integer, nullable=False, comment="Documents that the upstream lists."
        ),
        sa.Column("missing", sa.Integer, nullable=False, comment="Of them, not held."),
        sa.Column("open_errors", sa.Integer, nullable=False, comment="Failures that stood then."),
        sa.Column(
            "findings", Json, nullable=False, comment="By list of the upstream, some of each."
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingestion_audits")),
        comment="What audits found.",
        sqlite_autoincrement=True,
    )
    op.create_index("ix_ingestion_audits_source", "ingestion_audits", ["source", "audited_at"])


def _partial_index(name: str, table: str, column: str, where: str) -> None:
    op.create_index(
        name,
        table,
        [column],
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )

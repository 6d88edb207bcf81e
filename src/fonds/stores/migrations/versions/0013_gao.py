"""Tables of the gao source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Timestamp

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_gao_reports()
    _create_gao_recommendations()
    _create_gao_topics()


def _create_gao_reports() -> None:
    op.create_table(
        "gao_reports",
        sa.Column("id", sa.Text(), nullable=False, comment="gao:GAO-26-107521, documents.id."),
        sa.Column("product", sa.Text(), nullable=False, comment="GAO-26-107521, in capitals."),
        sa.Column(
            "title", sa.Text(), nullable=False, comment="As the feed has it, escapes undone."
        ),
        sa.Column(
            "link", sa.Text(), nullable=True, comment="The product's page, as the feed names it."
        ),
        sa.Column("guid", sa.Text(), nullable=True, comment="As the feed has it: a path."),
        sa.Column(
            "description",
            sa.Text(),
            nullable=True,
            comment="What GAO found and why it did the study, as plain text.",
        ),
        sa.Column("pub_date", Timestamp(), nullable=True, comment="pubDate of the feed."),
        sa.Column(
            "published",
            sa.Text(),
            nullable=True,
            comment="ISO day the product is dated, from its page.",
        ),
        sa.Column(
            "publicly_released",
            sa.Text(),
            nullable=True,
            comment="ISO day it was released to the public, from its page.",
        ),
        sa.Column(
            "fast_facts",
            sa.Text(),
            nullable=True,
            comment="The short version for the public, from its page.",
        ),
        sa.Column(
            "html_url", sa.Text(), nullable=True, comment="Where the full text is, if there is one."
        ),
        sa.Column("pdf_url", sa.Text(), nullable=True, comment="Where the PDF is."),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_gao_reports_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gao_reports")),
        comment="Products of the Government Accountability Office.",
    )
    op.create_index("ix_gao_reports_product", "gao_reports", ["product"], unique=False)


def _create_gao_recommendations() -> None:
    op.create_table(
        "gao_recommendations",
        sa.Column("report_id", sa.Text(), nullable=False, comment="gao_reports.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("agency", sa.Text(), nullable=True, comment="The agency it is addressed to."),
        sa.Column("recommendation", sa.Text(), nullable=True, comment="What GAO recommends."),
        sa.Column("status", sa.Text(), nullable=True, comment="Open, Closed – Implemented, …"),
        sa.Column("comments", sa.Text(), nullable=True, comment="What GAO says on its status."),
        sa.ForeignKeyConstraint(
            ["report_id"],
            ["gao_reports.id"],
            name=op.f("fk_gao_recommendations_report_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("report_id", "ord", name=op.f("pk_gao_recommendations")),
        comment="Recommendations of a product and what became of them, from its page.",
    )


def _create_gao_topics() -> None:
    op.create_table(
        "gao_topics",
        sa.Column("report_id", sa.Text(), nullable=False, comment="gao_reports.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "topic", sa.Text(), nullable=False, comment="Topic or subject term, as GAO words it."
        ),
        sa.ForeignKeyConstraint(
            ["report_id"],
            ["gao_reports.id"],
            name=op.f("fk_gao_topics_report_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("report_id", "ord", name=op.f("pk_gao_topics")),
        comment="What a product is about, from its page and the feed's categories.",
    )

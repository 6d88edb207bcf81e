"""Tables of the cbo source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Timestamp

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_cbo_publications()
    _create_bill_cost_estimates()


def _create_cbo_publications() -> None:
    op.create_table(
        "cbo_publications",
        sa.Column("id", sa.Text(), nullable=False, comment="cbo:61234, documents.id."),
        sa.Column(
            "publication_id", sa.Text(), nullable=False, comment="61234, the number in its address."
        ),
        sa.Column("title", sa.Text(), nullable=False, comment="As CBO words it."),
        sa.Column(
            "date", Timestamp(), nullable=True, comment="Date of the list, pubDate of the feed."
        ),
        sa.Column("link", sa.Text(), nullable=True, comment="Its page at cbo.gov."),
        sa.Column(
            "description",
            sa.Text(),
            nullable=True,
            comment="Which version of a bill it estimates, or what it is about.",
        ),
        sa.Column(
            "bill_number",
            sa.Text(),
            nullable=True,
            comment="Bill_Number of the list: often empty, sometimes wrong.",
        ),
        sa.Column(
            "title_bill",
            sa.Text(),
            nullable=True,
            comment="The first bill the title names; it wins over bill_number.",
        ),
        sa.Column(
            "congress",
            sa.Integer(),
            nullable=True,
            comment="Of the list it stands in, else that of its date.",
        ),
        sa.Column(
            "bill_ref", sa.Text(), nullable=True, comment="The bill it is about: bill:119-hr-2101."
        ),
        sa.Column("bill_id", sa.Text(), nullable=True, comment="bills.id once it is loaded."),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_cbo_publications_bill_id")
        ),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_cbo_publications_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cbo_publications")),
        comment="Cost estimates and other publications of the Congressional Budget Office.",
    )
    op.create_index(
        op.f("ix_cbo_publications_bill_id"), "cbo_publications", ["bill_id"], unique=False
    )
    op.create_index(
        "ix_cbo_publications_publication_id", "cbo_publications", ["publication_id"], unique=False
    )


def _create_bill_cost_estimates() -> None:
    op.create_table(
        "bill_cost_estimates",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("pub_date", sa.Text(), nullable=True, comment="ISO moment."),
        sa.Column("title", sa.Text(), nullable=True, comment="H.R. 1, as ordered reported."),
        sa.Column("url", sa.Text(), nullable=True, comment="The page at cbo.gov."),
        sa.Column("description", sa.Text(), nullable=True, comment="What was estimated."),
        sa.Column("publication_ref", sa.Text(), nullable=True, comment="cbo:61234."),
        sa.Column(
            "publication_id",
            sa.Text(),
            nullable=True,
            comment="cbo_publications.id once it is loaded.",
        ),
        sa.ForeignKeyConstraint(
            ["bill_id"],
            ["bills.id"],
            name=op.f("fk_bill_cost_estimates_bill_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["publication_id"],
            ["cbo_publications.id"],
            name=op.f("fk_bill_cost_estimates_publication_id"),
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_cost_estimates")),
        comment="Cost estimates of the Congressional Budget Office for a bill.",
    )
    op.create_index(
        op.f("ix_bill_cost_estimates_publication_id"),
        "bill_cost_estimates",
        ["publication_id"],
        unique=False,
    )

"""Tables of the sap source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Json

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_saps()


def _create_saps() -> None:
    op.create_table(
        "saps",
        sa.Column(
            "id",
            sa.Text(),
            nullable=False,
            comment="sap:2025-01-22/<hash>, documents.id: one for each statement and bill.",
        ),
        sa.Column(
            "document_title", sa.Text(), nullable=False, comment="As published, spaces folded."
        ),
        sa.Column(
            "bill",
            sa.Text(),
            nullable=True,
            comment="The bill this row is about, as the archive codes it: hr2101; NULL for none.",
        ),
        sa.Column(
            "bill_ref", sa.Text(), nullable=True, comment="The same as an id: bill:119-hr-2101."
        ),
        sa.Column("bill_id", sa.Text(), nullable=True, comment="bills.id once it is loaded."),
        sa.Column("bills", Json, nullable=False, comment="All bills of the statement, as coded."),
        sa.Column(
            "congress", sa.Integer(), nullable=True, comment="As stated, else that of date_issued."
        ),
        sa.Column("date_issued", sa.Text(), nullable=True, comment="ISO day."),
        sa.Column("file", sa.Text(), nullable=True, comment="The PDF's place in the archive."),
        sa.Column(
            "url",
            sa.Text(),
            nullable=True,
            comment="Its page at the American Presidency Project, before 2009.",
        ),
        sa.Column(
            "fetched_from_url",
            sa.Text(),
            nullable=True,
            comment="Where the White House had the PDF.",
        ),
        sa.Column("date_fetched", sa.Text(), nullable=True, comment="When the archive fetched it."),
        sa.Column("source", sa.Text(), nullable=True, comment="The list it was found in."),
        sa.Column(
            "rescinded",
            sa.Text(),
            nullable=True,
            comment="What the archive says of its withdrawal; NULL while it stands.",
        ),
        sa.ForeignKeyConstraint(["bill_id"], ["bills.id"], name=op.f("fk_saps_bill_id")),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_saps_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saps")),
        comment="Statements of Administration Policy.",
    )
    op.create_index(op.f("ix_saps_bill_id"), "saps", ["bill_id"], unique=False)
    op.create_index("ix_saps_date_issued", "saps", ["date_issued"], unique=False)

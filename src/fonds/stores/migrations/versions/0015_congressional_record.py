"""Tables of the congressional_record source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_crec_issues()
    _create_crec_granules()
    _create_crec_speakers()
    _create_crec_bills()


def _create_crec_issues() -> None:
    op.create_table(
        "crec_issues",
        sa.Column("id", sa.Text(), nullable=False, comment="The package: CREC-2026-02-03."),
        sa.Column(
            "date_issued", sa.Text(), nullable=True, comment="The day of the issue, ISO 8601."
        ),
        sa.Column("volume", sa.Integer(), nullable=True, comment="One for each year: 172."),
        sa.Column("issue", sa.Integer(), nullable=True, comment="Within the volume."),
        sa.Column("congress", sa.Integer(), nullable=True, comment="119."),
        sa.Column("session", sa.Integer(), nullable=True, comment="Of that Congress."),
        sa.Column("granules", sa.Integer(), nullable=False, comment="How many the MODS lists."),
        sa.Column(
            "task_key", sa.Text(), nullable=True, comment="The input this row was last loaded from."
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_crec_issues")),
        comment="Issues of the daily edition.",
    )
    op.create_index("ix_crec_issues_date_issued", "crec_issues", ["date_issued"], unique=False)


def _create_crec_granules() -> None:
    op.create_table(
        "crec_granules",
        sa.Column("id", sa.Text(), nullable=False, comment="crec:<granule>"),
        sa.Column(
            "issue_ref",
            sa.Text(),
            nullable=True,
            comment="The package it stands in: CREC-2026-02-03.",
        ),
        sa.Column(
            "issue_id", sa.Text(), nullable=True, comment="crec_issues.id once it is loaded."
        ),
        sa.Column("access_id", sa.Text(), nullable=False, comment="CREC-2026-02-03-pt1-PgH501-2."),
        sa.Column(
            "title",
            sa.Text(),
            nullable=False,
            comment="As printed, or the first words without one.",
        ),
        sa.Column("volume", sa.Integer(), nullable=True, comment="172."),
        sa.Column("issue", sa.Integer(), nullable=True, comment="Within the volume."),
        sa.Column("congress", sa.Integer(), nullable=True, comment="119."),
        sa.Column("session", sa.Integer(), nullable=True, comment="Of that Congress."),
        sa.Column(
            "book_number",
            sa.Integer(),
            nullable=True,
            comment="The part of a large issue: 1 of pt1.",
        ),
        sa.Column(
            "granule_class",
            sa.Text(),
            nullable=True,
            comment="HOUSE, SENATE, EXTENSIONS or DAILYDIGEST.",
        ),
        sa.Column(
            "sub_granule_class",
            sa.Text(),
            nullable=True,
            comment="PRAYER, FRONTMATTER, SNOMINATIONS, ALLOTHER, …",
        ),
        sa.Column("chamber", sa.Text(), nullable=True, comment="HOUSE or SENATE."),
        sa.Column(
            "date_issued", sa.Text(), nullable=True, comment="The day of the issue, ISO 8601."
        ),
        sa.Column(
            "granule_date",
            sa.Text(),
            nullable=True,
            comment="The day it was said; earlier for extensions handed in late.",
        ),
        sa.Column(
            "page_start",
            sa.Text(),
            nullable=True,
            comment="H501; NULL where the publisher knows none.",
        ),
        sa.Column("page_end", sa.Text(), nullable=True, comment="H502."),
        sa.Column(
            "time_from",
            sa.Text(),
            nullable=True,
            comment="When it began, Eastern time, where printed.",
        ),
        sa.Column("time_to", sa.Text(), nullable=True, comment="When it ended."),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_crec_granules_id")),
        sa.ForeignKeyConstraint(
            ["issue_id"], ["crec_issues.id"], name=op.f("fk_crec_granules_issue_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_crec_granules")),
        comment="Articles of the Congressional Record.",
    )
    op.create_index("ix_crec_granules_date_issued", "crec_granules", ["date_issued"], unique=False)
    op.create_index(op.f("ix_crec_granules_issue_id"), "crec_granules", ["issue_id"], unique=False)
    op.create_index(
        "ix_crec_granules_page", "crec_granules", ["volume", "page_start"], unique=False
    )


def _create_crec_speakers() -> None:
    op.create_table(
        "crec_speakers",
        sa.Column("granule_id", sa.Text(), nullable=False, comment="crec_granules.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("legislator_ref", sa.Text(), nullable=True, comment="legislator:<bioguide>"),
        sa.Column(
            "legislator_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="First name first."),
        sa.Column("bioguide", sa.Text(), nullable=True, comment="Of the Biographical Directory."),
        sa.Column("parsed", sa.Text(), nullable=True, comment="As printed: Mr. SMITH of Texas."),
        sa.Column("role", sa.Text(), nullable=True, comment="SPEAKING, or RECAPPED in the digest."),
        sa.Column("chamber", sa.Text(), nullable=True, comment="H or S."),
        sa.Column("party", sa.Text(), nullable=True, comment="D, R, I."),
        sa.Column("state", sa.Text(), nullable=True, comment="Postal code."),
        sa.ForeignKeyConstraint(
            ["granule_id"],
            ["crec_granules.id"],
            name=op.f("fk_crec_speakers_granule_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_crec_speakers_legislator_id")
        ),
        sa.PrimaryKeyConstraint("granule_id", "ord", name=op.f("pk_crec_speakers")),
        comment="Members who speak in a granule.",
    )
    op.create_index(
        op.f("ix_crec_speakers_legislator_id"), "crec_speakers", ["legislator_id"], unique=False
    )


def _create_crec_bills() -> None:
    op.create_table(
        "crec_bills",
        sa.Column("granule_id", sa.Text(), nullable=False, comment="crec_granules.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("bill_ref", sa.Text(), nullable=True, comment="bill:<congress>-<type>-<number>"),
        sa.Column("bill_id", sa.Text(), nullable=True, comment="bills.id once it is loaded."),
        sa.Column("congress", sa.Integer(), nullable=True, comment="Of the bill."),
        sa.Column("type", sa.Text(), nullable=True, comment="HR, S, HJRES, …"),
        sa.Column("number", sa.Integer(), nullable=True, comment="Of the bill."),
        sa.Column(
            "context",
            sa.Text(),
            nullable=True,
            comment="TITLE, HEADERLINE, FIRSTPARAGRAPH or OTHER.",
        ),
        sa.ForeignKeyConstraint(["bill_id"], ["bills.id"], name=op.f("fk_crec_bills_bill_id")),
        sa.ForeignKeyConstraint(
            ["granule_id"],
            ["crec_granules.id"],
            name=op.f("fk_crec_bills_granule_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("granule_id", "ord", name=op.f("pk_crec_bills")),
        comment="Bills a granule names; some stand twice.",
    )
    op.create_index(op.f("ix_crec_bills_bill_id"), "crec_bills", ["bill_id"], unique=False)

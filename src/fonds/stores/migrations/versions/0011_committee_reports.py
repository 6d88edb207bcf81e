"""Tables of the committee_reports source."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Json

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_committee_reports()
    _create_bill_committee_reports()
    _create_committee_report_bills()
    _create_committee_report_committees()


def _create_committee_reports() -> None:
    op.create_table(
        "committee_reports",
        *_committee_reports_columns_1(),
        *_committee_reports_columns_2(),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_committee_reports_bill_id")
        ),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_committee_reports_id")),
        sa.ForeignKeyConstraint(
            ["submitted_by_id"],
            ["legislators.id"],
            name=op.f("fk_committee_reports_submitted_by_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_committee_reports")),
        comment="Reports of committees and conferences to their chambers.",
    )
    op.create_index(
        op.f("ix_committee_reports_bill_id"), "committee_reports", ["bill_id"], unique=False
    )
    op.create_index(
        "ix_committee_reports_date_issued", "committee_reports", ["date_issued"], unique=False
    )
    op.create_index(
        "ix_committee_reports_package_id", "committee_reports", ["package_id"], unique=False
    )
    op.create_index(
        op.f("ix_committee_reports_submitted_by_id"),
        "committee_reports",
        ["submitted_by_id"],
        unique=False,
    )


def _committee_reports_columns_1() -> list[sa.Column[Any]]:
    return [
        sa.Column("id", sa.Text(), nullable=False, comment="crpt:<package or granule>"),
        sa.Column("package_id", sa.Text(), nullable=False, comment="CRPT-119hrpt100."),
        sa.Column(
            "access_id", sa.Text(), nullable=False, comment="The granule: CRPT-119hrpt100-pt2."
        ),
        sa.Column("title", sa.Text(), nullable=False, comment="In capitals, as printed."),
        sa.Column("congress", sa.Integer(), nullable=True, comment="119."),
        sa.Column("session", sa.Integer(), nullable=True, comment="Of that Congress: 1 or 2."),
        sa.Column("number", sa.Integer(), nullable=True, comment="100 of H. Rept. 119-100."),
        sa.Column(
            "part_number",
            sa.Integer(),
            nullable=True,
            comment="2 of Part 2; NULL for a report without parts.",
        ),
        sa.Column("chamber", sa.Text(), nullable=True, comment="HOUSE or SENATE."),
        sa.Column(
            "doc_class",
            sa.Text(),
            nullable=True,
            comment="HRPT, SRPT, or ERPT of the Senate in executive session.",
        ),
        sa.Column(
            "subtitle",
            sa.Text(),
            nullable=True,
            comment="Report together with minority views to accompany H.R. 3495.",
        ),
    ]


def _committee_reports_columns_2() -> list[sa.Column[Any]]:
    return [
        sa.Column("short_title", sa.Text(), nullable=True, comment="Of the bill reported."),
        sa.Column(
            "recommendation",
            sa.Text(),
            nullable=True,
            comment="What the committee asks its chamber to do.",
        ),
        sa.Column(
            "submitted_statement",
            sa.Text(),
            nullable=True,
            comment="Who submitted it for which committee.",
        ),
        sa.Column(
            "legislative_history",
            sa.Text(),
            nullable=True,
            comment="What became of the report: ordered to be printed, committed to ….",
        ),
        sa.Column(
            "preferred_citation", sa.Text(), nullable=True, comment="H. Rept. 119-494, Part 2."
        ),
        sa.Column(
            "date_issued",
            sa.Text(),
            nullable=True,
            comment="Day of the report, or of this part's own action; ISO 8601.",
        ),
        sa.Column(
            "is_conference_report",
            sa.Boolean(),
            nullable=True,
            comment="Of the managers of both chambers.",
        ),
        sa.Column(
            "bill_ref",
            sa.Text(),
            nullable=True,
            comment="The bill reported: bill:<congress>-<type>-<number>",
        ),
        sa.Column("bill_id", sa.Text(), nullable=True, comment="bills.id once it is loaded."),
        sa.Column(
            "submitted_by_ref",
            sa.Text(),
            nullable=True,
            comment="legislator:<bioguide> of who submitted it.",
        ),
        sa.Column(
            "submitted_by_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
    ]


def _create_bill_committee_reports() -> None:
    op.create_table(
        "bill_committee_reports",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("citation", sa.Text(), nullable=True, comment="H. Rept. 119-100, Part 1."),
        sa.Column("report_ref", sa.Text(), nullable=True, comment="crpt:CRPT-119hrpt100."),
        sa.Column(
            "report_id", sa.Text(), nullable=True, comment="committee_reports.id once it is loaded."
        ),
        sa.ForeignKeyConstraint(
            ["bill_id"],
            ["bills.id"],
            name=op.f("fk_bill_committee_reports_bill_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["report_id"],
            ["committee_reports.id"],
            name=op.f("fk_bill_committee_reports_report_id"),
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_committee_reports")),
        comment="Committee reports on a bill.",
    )
    op.create_index(
        op.f("ix_bill_committee_reports_report_id"),
        "bill_committee_reports",
        ["report_id"],
        unique=False,
    )


def _create_committee_report_bills() -> None:
    op.create_table(
        "committee_report_bills",
        sa.Column("report_id", sa.Text(), nullable=False, comment="committee_reports.id"),
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
            comment="PRIMARY: it is reported; OTHER: it is mentioned.",
        ),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_committee_report_bills_bill_id")
        ),
        sa.ForeignKeyConstraint(
            ["report_id"],
            ["committee_reports.id"],
            name=op.f("fk_committee_report_bills_report_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("report_id", "ord", name=op.f("pk_committee_report_bills")),
        comment="Bills a report names; the one reported often stands here twice.",
    )
    op.create_index(
        op.f("ix_committee_report_bills_bill_id"),
        "committee_report_bills",
        ["bill_id"],
        unique=False,
    )


def _create_committee_report_committees() -> None:
    op.create_table(
        "committee_report_committees",
        sa.Column("report_id", sa.Text(), nullable=False, comment="committee_reports.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("committee_ref", sa.Text(), nullable=True, comment="committee:<code>"),
        sa.Column(
            "committee_id", sa.Text(), nullable=True, comment="committees.id once it is loaded."
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="Committee on Rules."),
        sa.Column(
            "authority_id",
            sa.Text(),
            nullable=True,
            comment="hsru00; NULL for a committee the authority file does not know.",
        ),
        sa.Column("short_name", sa.Text(), nullable=True, comment="Rules."),
        sa.Column("chamber", sa.Text(), nullable=True, comment="H, S or J."),
        sa.Column(
            "type",
            sa.Text(),
            nullable=True,
            comment="S standing, L select, P special, J joint, T task force, O other.",
        ),
        sa.Column(
            "subcommittees", Json, nullable=False, comment="Names, where the report has any."
        ),
        sa.ForeignKeyConstraint(
            ["committee_id"],
            ["committees.id"],
            name=op.f("fk_committee_report_committees_committee_id"),
        ),
        sa.ForeignKeyConstraint(
            ["report_id"],
            ["committee_reports.id"],
            name=op.f("fk_committee_report_committees_report_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("report_id", "ord", name=op.f("pk_committee_report_committees")),
        comment="Committees that report.",
    )
    op.create_index(
        op.f("ix_committee_report_committees_committee_id"),
        "committee_report_committees",
        ["committee_id"],
        unique=False,
    )

"""Tables of the hearings source."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Json

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_hearings()
    _create_hearing_committees()
    _create_hearing_members()
    _create_hearing_witnesses()
    _create_hearing_bills()


def _create_hearings() -> None:
    op.create_table(
        "hearings",
        *_hearings_columns_1(),
        *_hearings_columns_2(),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_hearings_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hearings")),
        comment="Printed hearings of committees of Congress.",
    )
    op.create_index("ix_hearings_held_date", "hearings", ["held_date"], unique=False)
    op.create_index("ix_hearings_package_id", "hearings", ["package_id"], unique=False)


def _hearings_columns_1() -> list[sa.Column[Any]]:
    return [
        sa.Column("id", sa.Text(), nullable=False, comment="chrg:<package or granule>"),
        sa.Column(
            "package_id",
            sa.Text(),
            nullable=False,
            comment="The printed jacket: CHRG-119hhrg58888.",
        ),
        sa.Column(
            "access_id",
            sa.Text(),
            nullable=False,
            comment="The granule; differs for volumes, parts.",
        ),
        sa.Column(
            "title", sa.Text(), nullable=False, comment="In capitals, as the cover prints it."
        ),
        sa.Column("congress", sa.Integer(), nullable=True, comment="119."),
        sa.Column("session", sa.Integer(), nullable=True, comment="Of that Congress: 1 or 2."),
        sa.Column("chamber", sa.Text(), nullable=True, comment="HOUSE, SENATE or JOINT."),
        sa.Column("doc_class", sa.Text(), nullable=True, comment="HHRG, SHRG or JHRG."),
        sa.Column(
            "type",
            sa.Text(),
            nullable=True,
            comment="F field, M markup, O oversight, AU, AP, N nomination, T treaty, G general.",
        ),
        sa.Column(
            "number",
            sa.Text(),
            nullable=True,
            comment="Of a Senate hearing: 889 of S. Hrg. 117-889.",
        ),
        sa.Column(
            "preferred_citation",
            sa.Text(),
            nullable=True,
            comment="Serial No. 118-30, S. Hrg. 117-889; serials repeat.",
        ),
        sa.Column("jacket_id", sa.Text(), nullable=True, comment="52-385."),
        sa.Column("event_id", sa.Text(), nullable=True, comment="Of the meeting at congress.gov."),
    ]


def _hearings_columns_2() -> list[sa.Column[Any]]:
    return [
        sa.Column("heading", sa.Text(), nullable=True, comment="Part 2, Volume III, Errata."),
        sa.Column("part_number", sa.Text(), nullable=True, comment="2, 1a."),
        sa.Column("volume_number", sa.Text(), nullable=True, comment="2."),
        sa.Column("fiscalyear", sa.Text(), nullable=True, comment="Of an appropriation."),
        sa.Column(
            "other_hosting_org",
            sa.Text(),
            nullable=True,
            comment="Who held it where no committee did.",
        ),
        sa.Column(
            "date_issued", sa.Text(), nullable=True, comment="Day held, by the publisher; ISO 8601."
        ),
        sa.Column(
            "held_date",
            sa.Text(),
            nullable=True,
            comment="First day held, ISO 8601; NULL where it is only a placeholder.",
        ),
        sa.Column("held_dates", Json, nullable=False, comment="All days the publisher states."),
        sa.Column(
            "date_is_placeholder",
            sa.Boolean(),
            nullable=False,
            comment="A scan whose day is unknown: the last of its year stands for it.",
        ),
        sa.Column(
            "is_appropriation", sa.Boolean(), nullable=True, comment="On money for a fiscal year."
        ),
        sa.Column(
            "is_nomination", sa.Boolean(), nullable=True, comment="On somebody's nomination."
        ),
        sa.Column(
            "is_errata", sa.Boolean(), nullable=True, comment="Corrections to another print."
        ),
    ]


def _create_hearing_committees() -> None:
    op.create_table(
        "hearing_committees",
        sa.Column("hearing_id", sa.Text(), nullable=False, comment="hearings.id"),
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
        sa.Column("name", sa.Text(), nullable=False, comment="Committee on Natural Resources."),
        sa.Column(
            "authority_id",
            sa.Text(),
            nullable=True,
            comment="hsii00; NULL for a committee the authority file does not know.",
        ),
        sa.Column("short_name", sa.Text(), nullable=True, comment="Natural Resources."),
        sa.Column("chamber", sa.Text(), nullable=True, comment="H, S or J."),
        sa.Column(
            "type",
            sa.Text(),
            nullable=True,
            comment="S standing, L select, P special, J joint, T task force, O other.",
        ),
        sa.Column("subcommittees", Json, nullable=False, comment="Names of those that sat."),
        sa.ForeignKeyConstraint(
            ["committee_id"], ["committees.id"], name=op.f("fk_hearing_committees_committee_id")
        ),
        sa.ForeignKeyConstraint(
            ["hearing_id"],
            ["hearings.id"],
            name=op.f("fk_hearing_committees_hearing_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("hearing_id", "ord", name=op.f("pk_hearing_committees")),
        comment="Committees that held a hearing.",
    )
    op.create_index(
        op.f("ix_hearing_committees_committee_id"),
        "hearing_committees",
        ["committee_id"],
        unique=False,
    )


def _create_hearing_members() -> None:
    op.create_table(
        "hearing_members",
        sa.Column("hearing_id", sa.Text(), nullable=False, comment="hearings.id"),
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
        sa.Column("parsed", sa.Text(), nullable=True, comment="As printed."),
        sa.Column("role", sa.Text(), nullable=True, comment="COMMMEMBER."),
        sa.Column("chamber", sa.Text(), nullable=True, comment="H or S."),
        sa.Column("party", sa.Text(), nullable=True, comment="D, R, I."),
        sa.Column("state", sa.Text(), nullable=True, comment="Postal code."),
        sa.ForeignKeyConstraint(
            ["hearing_id"],
            ["hearings.id"],
            name=op.f("fk_hearing_members_hearing_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_hearing_members_legislator_id")
        ),
        sa.PrimaryKeyConstraint("hearing_id", "ord", name=op.f("pk_hearing_members")),
        comment="Members of the committees, as the hearing lists them.",
    )
    op.create_index(
        op.f("ix_hearing_members_legislator_id"), "hearing_members", ["legislator_id"], unique=False
    )


def _create_hearing_witnesses() -> None:
    op.create_table(
        "hearing_witnesses",
        sa.Column("hearing_id", sa.Text(), nullable=False, comment="hearings.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "witness",
            sa.Text(),
            nullable=False,
            comment="The whole line: name, office, organisation.",
        ),
        sa.ForeignKeyConstraint(
            ["hearing_id"],
            ["hearings.id"],
            name=op.f("fk_hearing_witnesses_hearing_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("hearing_id", "ord", name=op.f("pk_hearing_witnesses")),
        comment="Who testified, as the cover lists them.",
    )


def _create_hearing_bills() -> None:
    op.create_table(
        "hearing_bills",
        sa.Column("hearing_id", sa.Text(), nullable=False, comment="hearings.id"),
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
            comment="COVER: the hearing is about it; BODY: it is mentioned.",
        ),
        sa.ForeignKeyConstraint(["bill_id"], ["bills.id"], name=op.f("fk_hearing_bills_bill_id")),
        sa.ForeignKeyConstraint(
            ["hearing_id"],
            ["hearings.id"],
            name=op.f("fk_hearing_bills_hearing_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("hearing_id", "ord", name=op.f("pk_hearing_bills")),
        comment="Bills a hearing names.",
    )
    op.create_index(op.f("ix_hearing_bills_bill_id"), "hearing_bills", ["bill_id"], unique=False)

"""Tables of the roll_call_votes source."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Timestamp

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_roll_call_votes()
    _create_bill_recorded_votes()
    _create_vote_amendments()
    _create_vote_documents()
    _create_vote_positions()
    _create_vote_totals()


def _create_roll_call_votes() -> None:
    op.create_table(
        "roll_call_votes",
        *_roll_call_votes_columns_1(),
        *_roll_call_votes_columns_2(),
        *_roll_call_votes_columns_3(),
        sa.ForeignKeyConstraint(["bill_id"], ["bills.id"], name=op.f("fk_roll_call_votes_bill_id")),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_roll_call_votes_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_roll_call_votes")),
    )
    op.create_index(
        op.f("ix_roll_call_votes_bill_id"), "roll_call_votes", ["bill_id"], unique=False
    )
    op.create_index(
        "ix_roll_call_votes_congress_chamber",
        "roll_call_votes",
        ["congress", "chamber", "number"],
        unique=False,
    )


def _roll_call_votes_columns_1() -> list[sa.Column[Any]]:
    return [
        sa.Column(
            "id", sa.Text(), nullable=False, comment="vote:<chamber>/<congress>-<session>/<number>"
        ),
        sa.Column("chamber", sa.Text(), nullable=False, comment="house or senate."),
        sa.Column("congress", sa.Integer(), nullable=False, comment="119."),
        sa.Column("session", sa.Integer(), nullable=False, comment="1 or 2."),
        sa.Column(
            "congress_year",
            sa.Integer(),
            nullable=False,
            comment="Year of the session, which may end in the next January.",
        ),
        sa.Column(
            "number", sa.Integer(), nullable=False, comment="Of the vote within the session."
        ),
        sa.Column(
            "status",
            sa.Text(),
            nullable=False,
            comment="recorded, or vacated: numbered, but void and without positions.",
        ),
        sa.Column(
            "vote_date",
            sa.Text(),
            nullable=True,
            comment="Day of the vote in Washington, ISO 8601.",
        ),
        sa.Column(
            "voted_at",
            Timestamp(),
            nullable=True,
            comment="Moment of the vote; NULL where only a day is given.",
        ),
        sa.Column(
            "modify_date",
            Timestamp(),
            nullable=True,
            comment="Last change, as the Senate states it.",
        ),
        sa.Column("vote_question", sa.Text(), nullable=True, comment="What was put to the vote."),
    ]


def _roll_call_votes_columns_2() -> list[sa.Column[Any]]:
    return [
        sa.Column(
            "vote_type",
            sa.Text(),
            nullable=True,
            comment="House: YEA-AND-NAY, 2/3 RECORDED VOTE, QUORUM …",
        ),
        sa.Column(
            "majority_requirement",
            sa.Text(),
            nullable=True,
            comment="1/2, 3/5 or 2/3; NULL where none is stated.",
        ),
        sa.Column(
            "vote_result",
            sa.Text(),
            nullable=True,
            comment="Passed, Agreed to, Guilty …; in an election the name of the elected.",
        ),
        sa.Column(
            "vote_title", sa.Text(), nullable=True, comment="Senate: what the vote is called."
        ),
        sa.Column(
            "vote_desc",
            sa.Text(),
            nullable=True,
            comment="House `vote-desc`, Senate `vote_document_text`: what it was about.",
        ),
        sa.Column(
            "vote_question_text",
            sa.Text(),
            nullable=True,
            comment="Senate: question, amendment and document in one line.",
        ),
        sa.Column(
            "vote_result_text",
            sa.Text(),
            nullable=True,
            comment="Senate: result and count in one line.",
        ),
        sa.Column(
            "vote_correction",
            sa.Text(),
            nullable=True,
            comment="House: note on a correction or on why a vote is void.",
        ),
        sa.Column(
            "majority", sa.Text(), nullable=True, comment="House: letter of the majority party."
        ),
        sa.Column(
            "legis_num", sa.Text(), nullable=True, comment="House: H R 22, QUORUM, JOURNAL …"
        ),
        sa.Column(
            "amendment_num", sa.Text(), nullable=True, comment="House: number of the amendment."
        ),
    ]


def _roll_call_votes_columns_3() -> list[sa.Column[Any]]:
    return [
        sa.Column(
            "amendment_author",
            sa.Text(),
            nullable=True,
            comment="House: author or description of the amendment.",
        ),
        sa.Column(
            "nomination",
            sa.Text(),
            nullable=True,
            comment="Senate: number of the nomination, PN17.",
        ),
        sa.Column("tie_breaker", sa.Text(), nullable=True, comment="Senate: who broke the tie."),
        sa.Column("tie_breaker_vote", sa.Text(), nullable=True, comment="Senate: how."),
        sa.Column(
            "in_committee",
            sa.Boolean(),
            nullable=False,
            comment="House: taken in the Committee of the Whole.",
        ),
        sa.Column(
            "bill_ref",
            sa.Text(),
            nullable=True,
            comment="The first one concerned: bill:<congress>-<type>-<number>, whether that bill is loaded or not.",
        ),
        sa.Column("bill_id", sa.Text(), nullable=True, comment="bills.id once it is loaded."),
        sa.Column(
            "yea",
            sa.Integer(),
            nullable=True,
            comment="Yea, Aye or Guilty, as published; NULL in an election.",
        ),
        sa.Column(
            "nay",
            sa.Integer(),
            nullable=True,
            comment="Nay, No or Not Guilty, as published; NULL in an election.",
        ),
        sa.Column(
            "present",
            sa.Integer(),
            nullable=True,
            comment="Present, live pairs included, as published.",
        ),
        sa.Column(
            "not_voting", sa.Integer(), nullable=True, comment="Not voting or absent, as published."
        ),
    ]


def _create_bill_recorded_votes() -> None:
    op.create_table(
        "bill_recorded_votes",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "action_ord",
            sa.Integer(),
            nullable=True,
            comment="Of bill_actions; NULL before format 3.0.0, which does not tie them.",
        ),
        sa.Column("chamber", sa.Text(), nullable=True, comment="House or Senate."),
        sa.Column("congress", sa.Integer(), nullable=True, comment="119."),
        sa.Column("session_number", sa.Integer(), nullable=True, comment="1 or 2."),
        sa.Column("roll_number", sa.Integer(), nullable=True, comment="Within the session."),
        sa.Column("date", sa.Text(), nullable=True, comment="ISO moment."),
        sa.Column("url", sa.Text(), nullable=True, comment="The chamber's own record."),
        sa.Column(
            "full_action_name",
            sa.Text(),
            nullable=True,
            comment="What was voted on; before format 3.0.0.",
        ),
        sa.Column("vote_ref", sa.Text(), nullable=True, comment="vote:house/119-1/362."),
        sa.Column(
            "vote_id", sa.Text(), nullable=True, comment="roll_call_votes.id once it is loaded."
        ),
        sa.ForeignKeyConstraint(
            ["bill_id"],
            ["bills.id"],
            name=op.f("fk_bill_recorded_votes_bill_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["vote_id"], ["roll_call_votes.id"], name=op.f("fk_bill_recorded_votes_vote_id")
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_recorded_votes")),
        comment="Roll calls on a bill.",
    )
    op.create_index(
        op.f("ix_bill_recorded_votes_vote_id"), "bill_recorded_votes", ["vote_id"], unique=False
    )


def _create_vote_amendments() -> None:
    op.create_table(
        "vote_amendments",
        sa.Column("vote_id", sa.Text(), nullable=False, comment="roll_call_votes.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("amendment_number", sa.Text(), nullable=True, comment="S.Amdt. 1852."),
        sa.Column(
            "amendment_to_amendment_number",
            sa.Text(),
            nullable=True,
            comment="The amendment it amends.",
        ),
        sa.Column(
            "amendment_to_amendment_to_amendment_number",
            sa.Text(),
            nullable=True,
            comment="The one that one amends.",
        ),
        sa.Column("amendment_to_document_number", sa.Text(), nullable=True, comment="H.R. 1."),
        sa.Column(
            "amendment_to_document_short_title",
            sa.Text(),
            nullable=True,
            comment="Short title of that document.",
        ),
        sa.Column("amendment_purpose", sa.Text(), nullable=True, comment="Statement of purpose."),
        sa.Column(
            "bill_ref",
            sa.Text(),
            nullable=True,
            comment="The amended bill: bill:<congress>-<type>-<number>, whether that bill is loaded or not.",
        ),
        sa.Column("bill_id", sa.Text(), nullable=True, comment="bills.id once it is loaded."),
        sa.ForeignKeyConstraint(["bill_id"], ["bills.id"], name=op.f("fk_vote_amendments_bill_id")),
        sa.ForeignKeyConstraint(
            ["vote_id"],
            ["roll_call_votes.id"],
            name=op.f("fk_vote_amendments_vote_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("vote_id", "ord", name=op.f("pk_vote_amendments")),
        comment="Senate: the amendments a vote was about.",
    )
    op.create_index(
        op.f("ix_vote_amendments_bill_id"), "vote_amendments", ["bill_id"], unique=False
    )


def _create_vote_documents() -> None:
    op.create_table(
        "vote_documents",
        sa.Column("vote_id", sa.Text(), nullable=False, comment="roll_call_votes.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "document_congress",
            sa.Integer(),
            nullable=True,
            comment="The vote's own where none is stated.",
        ),
        sa.Column(
            "document_type", sa.Text(), nullable=True, comment="H.R., S.J.Res., PN, Treaty Doc. …"
        ),
        sa.Column(
            "document_number",
            sa.Text(),
            nullable=True,
            comment="1; with a hyphen for a part of a nomination: 54-11.",
        ),
        sa.Column("document_name", sa.Text(), nullable=True, comment="H.R. 1, PN527."),
        sa.Column("document_title", sa.Text(), nullable=True, comment="Official title."),
        sa.Column("document_short_title", sa.Text(), nullable=True, comment="Short title."),
        sa.Column(
            "question",
            sa.Text(),
            nullable=True,
            comment="Of one of several matters voted on en bloc.",
        ),
        sa.Column(
            "result",
            sa.Text(),
            nullable=True,
            comment="Of one of several matters voted on en bloc.",
        ),
        sa.Column(
            "bill_ref",
            sa.Text(),
            nullable=True,
            comment="bill:<congress>-<type>-<number>, whether that bill is loaded or not.",
        ),
        sa.Column("bill_id", sa.Text(), nullable=True, comment="bills.id once it is loaded."),
        sa.ForeignKeyConstraint(["bill_id"], ["bills.id"], name=op.f("fk_vote_documents_bill_id")),
        sa.ForeignKeyConstraint(
            ["vote_id"],
            ["roll_call_votes.id"],
            name=op.f("fk_vote_documents_vote_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("vote_id", "ord", name=op.f("pk_vote_documents")),
        comment="Senate: what a vote was about, nominations included; several if en bloc.",
    )
    op.create_index(op.f("ix_vote_documents_bill_id"), "vote_documents", ["bill_id"], unique=False)


def _create_vote_positions() -> None:
    op.create_table(
        "vote_positions",
        sa.Column("vote_id", sa.Text(), nullable=False, comment="roll_call_votes.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "member", sa.Text(), nullable=False, comment="As printed: Lewis (GA), Alexander (R-TN)."
        ),
        sa.Column("first_name", sa.Text(), nullable=True, comment="Senate only."),
        sa.Column("party", sa.Text(), nullable=True, comment="Letter, as printed: R, D, I, ID."),
        sa.Column(
            "state",
            sa.Text(),
            nullable=True,
            comment="As printed; XX for a delegate in older files of the House.",
        ),
        sa.Column(
            "position",
            sa.Text(),
            nullable=False,
            comment="As printed: Aye, Not Voting; in an election a candidate's name.",
        ),
        sa.Column(
            "counted_as",
            sa.Text(),
            nullable=True,
            comment="yea, nay, present, not_voting; NULL for a candidate.",
        ),
        sa.Column(
            "name_id",
            sa.Text(),
            nullable=True,
            comment="House: the member's bioguide id; since 2003.",
        ),
        sa.Column(
            "lis_member_id",
            sa.Text(),
            nullable=True,
            comment="Senate: the member's id there, S289.",
        ),
        sa.Column(
            "legislator_ref",
            sa.Text(),
            nullable=True,
            comment="legislator:<bioguide>, or the alias `lis <id>` of a senator; NULL before 2003.",
        ),
        sa.Column(
            "legislator_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_vote_positions_legislator_id")
        ),
        sa.ForeignKeyConstraint(
            ["vote_id"],
            ["roll_call_votes.id"],
            name=op.f("fk_vote_positions_vote_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("vote_id", "ord", name=op.f("pk_vote_positions")),
    )
    op.create_index(
        op.f("ix_vote_positions_legislator_id_legislator_ref"),
        "vote_positions",
        ["legislator_id", "legislator_ref"],
        unique=False,
    )


def _create_vote_totals() -> None:
    op.create_table(
        "vote_totals",
        sa.Column("vote_id", sa.Text(), nullable=False, comment="roll_call_votes.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "kind",
            sa.Text(),
            nullable=False,
            comment="party or candidate; the House publishes them, the Senate does not.",
        ),
        sa.Column(
            "name",
            sa.Text(),
            nullable=False,
            comment="Republican; in an election a candidate, Present or Not Voting.",
        ),
        sa.Column("votes", sa.Integer(), nullable=True, comment="For a candidate."),
        sa.Column(
            "yea",
            sa.Integer(),
            nullable=True,
            comment="Yea, Aye or Guilty, as published; NULL in an election.",
        ),
        sa.Column(
            "nay",
            sa.Integer(),
            nullable=True,
            comment="Nay, No or Not Guilty, as published; NULL in an election.",
        ),
        sa.Column(
            "present",
            sa.Integer(),
            nullable=True,
            comment="Present, live pairs included, as published.",
        ),
        sa.Column(
            "not_voting", sa.Integer(), nullable=True, comment="Not voting or absent, as published."
        ),
        sa.ForeignKeyConstraint(
            ["vote_id"],
            ["roll_call_votes.id"],
            name=op.f("fk_vote_totals_vote_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("vote_id", "ord", name=op.f("pk_vote_totals")),
    )

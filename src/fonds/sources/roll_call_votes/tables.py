"""Tables of recorded votes; columns are named as the publishers name their fields."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds.sources.formats.records import child_table
from fonds.stores.columns import (
    Timestamp,
    bulk_reference,
    document_key,
    owned_by,
    reference,
    texts,
)
from fonds.stores.tables import metadata

_BILL: Final = "bill:<congress>-<type>-<number>, whether that bill is loaded or not."


def _needed(name: str, kind: Any, comment: str) -> Column[Any]:
    return Column(name, kind, nullable=False, comment=comment)


def _count(name: str, comment: str) -> Column[Any]:
    return Column(name, Integer, comment=comment)


def _counts() -> list[Column[Any]]:
    return [
        _count("yea", "Yea, Aye or Guilty, as published; NULL in an election."),
        _count("nay", "Nay, No or Not Guilty, as published; NULL in an election."),
        _count("present", "Present, live pairs included, as published."),
        _count("not_voting", "Not voting or absent, as published."),
    ]


roll_call_votes: Final = Table(
    "roll_call_votes",
    metadata,
    document_key("vote:<chamber>/<congress>-<session>/<number>"),
    _needed("chamber", Text, "house or senate."),
    _needed("congress", Integer, "119."),
    _needed("session", Integer, "1 or 2."),
    _needed("congress_year", Integer, "Year of the session, which may end in the next January."),
    _needed("number", Integer, "Of the vote within the session."),
    _needed("status", Text, "recorded, or vacated: numbered, but void and without positions."),
    *texts(vote_date="Day of the vote in Washington, ISO 8601."),
    Column("voted_at", Timestamp, comment="Moment of the vote; NULL where only a day is given."),
    Column("modify_date", Timestamp, comment="Last change, as the Senate states it."),
    *texts(
        vote_question="What was put to the vote.",
        vote_type="House: YEA-AND-NAY, 2/3 RECORDED VOTE, QUORUM …",
        majority_requirement="1/2, 3/5 or 2/3; NULL where none is stated.",
        vote_result="Passed, Agreed to, Guilty …; in an election the name of the elected.",
        vote_title="Senate: what the vote is called.",
        vote_desc="House `vote-desc`, Senate `vote_document_text`: what it was about.",
        vote_question_text="Senate: question, amendment and document in one line.",
        vote_result_text="Senate: result and count in one line.",
        vote_correction="House: note on a correction or on why a vote is void.",
        majority="House: letter of the majority party.",
        legis_num="House: H R 22, QUORUM, JOURNAL …",
        amendment_num="House: number of the amendment.",
        amendment_author="House: author or description of the amendment.",
        nomination="Senate: number of the nomination, PN17.",
        tie_breaker="Senate: who broke the tie.",
        tie_breaker_vote="Senate: how.",
    ),
    _needed("in_committee", Boolean, "House: taken in the Committee of the Whole."),
    *reference("bill", "bills", f"The first one concerned: {_BILL}"),
    *_counts(),
    Index("ix_roll_call_votes_congress_chamber", "congress", "chamber", "number"),
)

vote_totals: Final = child_table(
    "vote_totals",
    owned_by("roll_call_votes", "vote_id"),
    _needed("kind", Text, "party or candidate; the House publishes them, the Senate does not."),
    _needed("name", Text, "Republican; in an election a candidate, Present or Not Voting."),
    _count("votes", "For a candidate."),
    *_counts(),
)

vote_documents: Final = child_table(
    "vote_documents",
    owned_by("roll_call_votes", "vote_id"),
    Column("document_congress", Integer, comment="The vote's own where none is stated."),
    *texts(
        document_type="H.R., S.J.Res., PN, Treaty Doc. …",
        document_number="1; with a hyphen for a part of a nomination: 54-11.",
        document_name="H.R. 1, PN527.",
        document_title="Official title.",
        document_short_title="Short title.",
        question="Of one of several matters voted on en bloc.",
        result="Of one of several matters voted on en bloc.",
    ),
    *reference("bill", "bills", _BILL),
    comment="Senate: what a vote was about, nominations included; several if en bloc.",
)

vote_amendments: Final = child_table(
    "vote_amendments",
    owned_by("roll_call_votes", "vote_id"),
    *texts(
        amendment_number="S.Amdt. 1852.",
        amendment_to_amendment_number="The amendment it amends.",
        amendment_to_amendment_to_amendment_number="The one that one amends.",
        amendment_to_document_number="H.R. 1.",
        amendment_to_document_short_title="Short title of that document.",
        amendment_purpose="Statement of purpose.",
    ),
    *reference("bill", "bills", f"The amended bill: {_BILL}"),
    comment="Senate: the amendments a vote was about.",
)

vote_positions: Final = child_table(
    "vote_positions",
    owned_by("roll_call_votes", "vote_id"),
    _needed("member", Text, "As printed: Lewis (GA), Alexander (R-TN)."),
    *texts(
        first_name="Senate only.",
        party="Letter, as printed: R, D, I, ID.",
        state="As printed; XX for a delegate in older files of the House.",
    ),
    _needed("position", Text, "As printed: Aye, Not Voting; in an election a candidate's name."),
    Column("counted_as", Text, comment="yea, nay, present, not_voting; NULL for a candidate."),
    *texts(
        name_id="House: the member's bioguide id; since 2003.",
        lis_member_id="Senate: the member's id there, S289.",
    ),
    *bulk_reference(
        "legislator",
        "legislators",
        "legislator:<bioguide>, or the alias `lis <id>` of a senator; NULL before 2003.",
        via_aliases=True,
    ),
)

TABLES: Final = (roll_call_votes, vote_totals, vote_documents, vote_amendments, vote_positions)

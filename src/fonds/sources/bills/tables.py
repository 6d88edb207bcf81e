"""The tables of bills; columns bear the names of BILLSTATUS 3.0.0, in lower case."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds.sources.formats.records import child_table
from fonds.stores.columns import Json, document_key, owned_by, reference, texts
from fonds.stores.tables import metadata


def _whole(name: str, comment: str) -> Column[Any]:
    return Column(name, Integer, comment=comment)


def _json(name: str, comment: str) -> Column[Any]:
    return Column(name, Json, comment=comment)


def _child(name: str, *columns: Any, comment: str) -> Table:
    return child_table(name, owned_by("bills", "bill_id"), *columns, comment=comment)


def _person() -> list[Column[Any]]:
    return [
        *texts(bioguide_id="As upstream; NULL for a committee."),
        *reference("legislator", "legislators", "legislator:C000127."),
        *texts(
            full_name="Rep. Armstrong, Kelly [R-ND-At Large].",
            first_name="Given name.",
            middle_name="Middle name.",
            last_name="Family name.",
            party="R, D, I.",
            state="Two letters.",
        ),
        _whole("district", "0 is at large; NULL for senators."),
    ]


bills: Final = Table(
    "bills",
    metadata,
    document_key("bill:119-hr-1, documents.id."),
    Column("congress", Integer, nullable=False, comment="119."),
    Column("type", Text, nullable=False, comment="HR, S, HJRES, SJRES, HCONRES, …, SRES."),
    Column("number", Integer, nullable=False, comment="Within its Congress and type."),
    Column("title", Text, nullable=False, comment="The display title."),
    *texts(
        origin_chamber="House or Senate.",
        introduced_date="ISO date.",
        policy_area="The one policy area the Congressional Research Service assigns.",
    ),
    *reference("sponsor", "legislators", "The first sponsor: legislator:C000127."),
    *texts(
        latest_action_date="ISO date.",
        latest_action_time="24 hours, Eastern time.",
        latest_action_text="What happened last.",
        constitutional_authority_statement_text="As printed in the Congressional Record.",
        create_date="When the publisher's record was made, ISO moment.",
        update_date="When anything but the list of texts changed, ISO moment.",
        update_date_including_text="When anything changed, ISO moment.",
        version="Of the file format: 3.0.0; NULL in 2016.",
    ),
    _json("notes", "Texts of the publisher's notes."),
    _json("calendar_numbers", "Calendars it was placed on: [{calendar, number}]."),
    Index("ix_bills_congress_type_number", "congress", "type", "number", unique=True),
    Index("ix_bills_introduced_date", "introduced_date"),
    Index("ix_bills_policy_area", "policy_area"),
    comment="Bills and resolutions of Congress, 108th Congress on.",
)

bill_sponsors: Final = _child(
    "bill_sponsors",
    *_person(),
    Column("is_by_request", Boolean, comment="Introduced by request, mostly of the President."),
    *texts(by_request_type="As formats before 3.0.0 say it."),
    comment="Who introduced a bill; mostly one.",
)

bill_cosponsors: Final = _child(
    "bill_cosponsors",
    *_person(),
    *texts(
        sponsorship_date="ISO date.",
        sponsorship_withdrawn_date="ISO date the name was taken back; NULL for most.",
    ),
    Column("is_original_cosponsor", Boolean, comment="Since the day of introduction."),
    comment="Members who signed a bill, those included who withdrew.",
)

bill_actions: Final = _child(
    "bill_actions",
    *texts(
        action_date="ISO date.",
        action_time="24 hours, Eastern time; NULL for most.",
        text="What happened; a few actions have none.",
        type="IntroReferral, Committee, Floor, BecameLaw, …",
        action_code="The publisher's code: H11100.",
    ),
    _whole("source_system_code", "Who recorded it, by number: 9."),
    *texts(source_system_name="Who recorded it: Library of Congress."),
    _json("committees", "System codes of the committees concerned."),
    _json("links", "What the text refers to: [{name, url}]."),
    _json("calendar_number", "The calendar it was placed on."),
    comment="What happened to a bill, newest first.",
)

bill_recorded_votes: Final = _child(
    "bill_recorded_votes",
    _whole("action_ord", "Of bill_actions; NULL before format 3.0.0, which does not tie them."),
    *texts(chamber="House or Senate."),
    _whole("congress", "119."),
    _whole("session_number", "1 or 2."),
    _whole("roll_number", "Within the session."),
    *texts(
        date="ISO moment.",
        url="The chamber's own record.",
        full_action_name="What was voted on; before format 3.0.0.",
    ),
    *reference("vote", "roll_call_votes", "vote:house/119-1/362."),
    comment="Roll calls on a bill.",
)

bill_committees: Final = _child(
    "bill_committees",
    *reference("committee", "committees", "committee:HSAG14."),
    *texts(
        system_code="As upstream: hsag14.",
        name="The committee's name.",
        chamber="House or Senate; NULL for a subcommittee.",
        type="Standing, Select, …; NULL for a subcommittee.",
        parent_system_code="The committee above a subcommittee.",
    ),
    _json("activities", "What it did: [{name, date}]."),
    comment="Committees and subcommittees a bill was before.",
)

bill_committee_reports: Final = _child(
    "bill_committee_reports",
    *texts(citation="H. Rept. 119-100, Part 1."),
    *reference("report", "committee_reports", "crpt:CRPT-119hrpt100."),
    comment="Committee reports on a bill.",
)

bill_subjects: Final = _child(
    "bill_subjects",
    Column("name", Text, nullable=False, index=True, comment="A legislative subject term."),
    *texts(parent_name="The broader term; before format 1.0.0.", update_date="ISO moment."),
    comment="Subject terms the Congressional Research Service assigns to a bill.",
)

bill_summaries: Final = _child(
    "bill_summaries",
    *texts(
        version_code="Orders the versions: 00 is as introduced.",
        name="The version summarised; before format 3.0.0.",
        action_date="ISO date of the version.",
        action_desc="The version: Introduced in House.",
        update_date="ISO moment.",
        last_summary_update_date="ISO moment; before format 3.0.0.",
        text="HTML, as published.",
    ),
    comment="Summaries by the Congressional Research Service, one for each version it summarised.",
)

bill_titles: Final = _child(
    "bill_titles",
    *texts(
        title_type="Official Title as Introduced, …",
        title="The title.",
        chamber_code="H or S.",
        chamber_name="House or Senate.",
        parent_title_type="Short Title; before format 3.0.0.",
        bill_text_version_name="The version it is in.",
        bill_text_version_code="IH, ENR.",
        update_date="ISO moment.",
    ),
    _whole("title_type_code", "The publisher's number of the title type."),
    comment="Every title a bill has borne.",
)

bill_laws: Final = _child(
    "bill_laws",
    *texts(type="Public Law or Private Law.", number="119-21."),
    *reference("law", "public_laws", "plaw:119-21."),
    *texts(
        text_date="ISO date, of the law's text among the bill's versions.",
        text_url="The law's text, as the list of the bill's versions gives it.",
    ),
    comment="Laws a bill became.",
)

bill_cost_estimates: Final = _child(
    "bill_cost_estimates",
    *texts(
        pub_date="ISO moment.",
        title="H.R. 1, as ordered reported.",
        url="The page at cbo.gov.",
        description="What was estimated.",
    ),
    *reference("publication", "cbo_publications", "cbo:61234."),
    comment="Cost estimates of the Congressional Budget Office for a bill.",
)

bill_related: Final = _child(
    "bill_related",
    *reference("related", "bills", "bill:119-s-1."),
    _whole("congress", "119."),
    *texts(type="S, HRES, …"),
    _whole("number", "Within its Congress and type."),
    *texts(
        title="Its title.",
        latest_action_date="ISO date.",
        latest_action_time="24 hours, Eastern time.",
        latest_action_text="What happened to it last.",
    ),
    _json("relationship_details", "How, and who says so: [{type, identifiedBy}]."),
    comment="Bills related to a bill.",
)

bill_amendments: Final = _child(
    "bill_amendments",
    _whole("congress", "119."),
    *texts(type="SAMDT, HAMDT, SUAMDT."),
    _whole("number", "Within its Congress and type."),
    *texts(description="What it does.", purpose="Its purpose, as the sponsor states it."),
    *texts(sponsor_name="Sen. Wyden, Ron [D-OR], or a committee."),
    *reference("sponsor", "legislators", "legislator:W000779."),
    *texts(
        submitted_date="ISO moment.",
        proposed_date="ISO moment.",
        latest_action_date="ISO date.",
        latest_action_time="24 hours, Eastern time.",
        latest_action_text="What happened to it last.",
        create_date="ISO moment.",
        update_date="ISO moment.",
    ),
    _json("amended_amendment", "The amendment it amends: {congress, type, number, …}."),
    _json("actions", "What happened to it, with recorded votes."),
    _json("cosponsors", "Who signed it."),
    _json("links", "What it refers to: [{name, url}]."),
    _json("notes", "The publisher's notes."),
    comment="Amendments offered or submitted to a bill.",
)

bill_text_versions: Final = Table(
    "bill_text_versions",
    metadata,
    document_key("bill:119-hr-1/ih, documents.id."),
    *reference("bill", "bills", "bill:119-hr-1."),
    Column("version_code", Text, nullable=False, comment="ih, rh, eh, enr, eas2, …"),
    *texts(
        type="Introduced in House.",
        date="ISO date; the enrolled text often has none.",
        url="The file the text was read from, or the best one listed.",
        official_title="To amend …; as the text itself states it.",
    ),
    _json("formats", "Addresses of all files listed for this version."),
    comment="The texts of a bill, one for each stage at which it was printed.",
)

TABLES: Final = (
    bills,
    bill_sponsors,
    bill_cosponsors,
    bill_actions,
    bill_recorded_votes,
    bill_committees,
    bill_committee_reports,
    bill_subjects,
    bill_summaries,
    bill_titles,
    bill_laws,
    bill_cost_estimates,
    bill_related,
    bill_amendments,
    bill_text_versions,
)

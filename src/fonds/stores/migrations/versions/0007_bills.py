"""Tables of the bills source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Json

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_bills()
    _create_bill_actions()
    _create_bill_amendments()
    _create_bill_committees()
    _create_bill_cosponsors()
    _create_bill_related()
    _create_bill_sponsors()
    _create_bill_subjects()
    _create_bill_summaries()
    _create_bill_text_versions()
    _create_bill_titles()


def _create_bills() -> None:
    op.create_table(
        "bills",
        sa.Column("id", sa.Text(), nullable=False, comment="bill:119-hr-1, documents.id."),
        sa.Column("congress", sa.Integer(), nullable=False, comment="119."),
        sa.Column(
            "type", sa.Text(), nullable=False, comment="HR, S, HJRES, SJRES, HCONRES, …, SRES."
        ),
        sa.Column("number", sa.Integer(), nullable=False, comment="Within its Congress and type."),
        sa.Column("title", sa.Text(), nullable=False, comment="The display title."),
        sa.Column("origin_chamber", sa.Text(), nullable=True, comment="House or Senate."),
        sa.Column("introduced_date", sa.Text(), nullable=True, comment="ISO date."),
        sa.Column(
            "policy_area",
            sa.Text(),
            nullable=True,
            comment="The one policy area the Congressional Research Service assigns.",
        ),
        sa.Column(
            "sponsor_ref",
            sa.Text(),
            nullable=True,
            comment="The first sponsor: legislator:C000127.",
        ),
        sa.Column(
            "sponsor_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
        sa.Column("latest_action_date", sa.Text(), nullable=True, comment="ISO date."),
        sa.Column(
            "latest_action_time", sa.Text(), nullable=True, comment="24 hours, Eastern time."
        ),
        sa.Column("latest_action_text", sa.Text(), nullable=True, comment="What happened last."),
        sa.Column(
            "constitutional_authority_statement_text",
            sa.Text(),
            nullable=True,
            comment="As printed in the Congressional Record.",
        ),
        sa.Column(
            "create_date",
            sa.Text(),
            nullable=True,
            comment="When the publisher's record was made, ISO moment.",
        ),
        sa.Column(
            "update_date",
            sa.Text(),
            nullable=True,
            comment="When anything but the list of texts changed, ISO moment.",
        ),
        sa.Column(
            "update_date_including_text",
            sa.Text(),
            nullable=True,
            comment="When anything changed, ISO moment.",
        ),
        sa.Column(
            "version", sa.Text(), nullable=True, comment="Of the file format: 3.0.0; NULL in 2016."
        ),
        sa.Column("notes", Json, nullable=True, comment="Texts of the publisher's notes."),
        sa.Column(
            "calendar_numbers",
            Json,
            nullable=True,
            comment="Calendars it was placed on: [{calendar, number}].",
        ),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_bills_id")),
        sa.ForeignKeyConstraint(
            ["sponsor_id"], ["legislators.id"], name=op.f("fk_bills_sponsor_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bills")),
        comment="Bills and resolutions of Congress, 108th Congress on.",
    )
    op.create_index(
        "ix_bills_congress_type_number", "bills", ["congress", "type", "number"], unique=True
    )
    op.create_index("ix_bills_introduced_date", "bills", ["introduced_date"], unique=False)
    op.create_index("ix_bills_policy_area", "bills", ["policy_area"], unique=False)
    op.create_index(op.f("ix_bills_sponsor_id"), "bills", ["sponsor_id"], unique=False)


def _create_bill_actions() -> None:
    op.create_table(
        "bill_actions",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("action_date", sa.Text(), nullable=True, comment="ISO date."),
        sa.Column(
            "action_time",
            sa.Text(),
            nullable=True,
            comment="24 hours, Eastern time; NULL for most.",
        ),
        sa.Column(
            "text", sa.Text(), nullable=True, comment="What happened; a few actions have none."
        ),
        sa.Column(
            "type",
            sa.Text(),
            nullable=True,
            comment="IntroReferral, Committee, Floor, BecameLaw, …",
        ),
        sa.Column("action_code", sa.Text(), nullable=True, comment="The publisher's code: H11100."),
        sa.Column(
            "source_system_code",
            sa.Integer(),
            nullable=True,
            comment="Who recorded it, by number: 9.",
        ),
        sa.Column(
            "source_system_name",
            sa.Text(),
            nullable=True,
            comment="Who recorded it: Library of Congress.",
        ),
        sa.Column(
            "committees", Json, nullable=True, comment="System codes of the committees concerned."
        ),
        sa.Column("links", Json, nullable=True, comment="What the text refers to: [{name, url}]."),
        sa.Column("calendar_number", Json, nullable=True, comment="The calendar it was placed on."),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_actions_bill_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_actions")),
        comment="What happened to a bill, newest first.",
    )


def _create_bill_amendments() -> None:
    op.create_table(
        "bill_amendments",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("congress", sa.Integer(), nullable=True, comment="119."),
        sa.Column("type", sa.Text(), nullable=True, comment="SAMDT, HAMDT, SUAMDT."),
        sa.Column("number", sa.Integer(), nullable=True, comment="Within its Congress and type."),
        sa.Column("description", sa.Text(), nullable=True, comment="What it does."),
        sa.Column(
            "purpose", sa.Text(), nullable=True, comment="Its purpose, as the sponsor states it."
        ),
        sa.Column(
            "sponsor_name",
            sa.Text(),
            nullable=True,
            comment="Sen. Wyden, Ron [D-OR], or a committee.",
        ),
        sa.Column("sponsor_ref", sa.Text(), nullable=True, comment="legislator:W000779."),
        sa.Column(
            "sponsor_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
        sa.Column("submitted_date", sa.Text(), nullable=True, comment="ISO moment."),
        sa.Column("proposed_date", sa.Text(), nullable=True, comment="ISO moment."),
        sa.Column("latest_action_date", sa.Text(), nullable=True, comment="ISO date."),
        sa.Column(
            "latest_action_time", sa.Text(), nullable=True, comment="24 hours, Eastern time."
        ),
        sa.Column(
            "latest_action_text", sa.Text(), nullable=True, comment="What happened to it last."
        ),
        sa.Column("create_date", sa.Text(), nullable=True, comment="ISO moment."),
        sa.Column("update_date", sa.Text(), nullable=True, comment="ISO moment."),
        sa.Column(
            "amended_amendment",
            Json,
            nullable=True,
            comment="The amendment it amends: {congress, type, number, …}.",
        ),
        sa.Column(
            "actions", Json, nullable=True, comment="What happened to it, with recorded votes."
        ),
        sa.Column("cosponsors", Json, nullable=True, comment="Who signed it."),
        sa.Column("links", Json, nullable=True, comment="What it refers to: [{name, url}]."),
        sa.Column("notes", Json, nullable=True, comment="The publisher's notes."),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_amendments_bill_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["sponsor_id"], ["legislators.id"], name=op.f("fk_bill_amendments_sponsor_id")
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_amendments")),
        comment="Amendments offered or submitted to a bill.",
    )
    op.create_index(
        op.f("ix_bill_amendments_sponsor_id"), "bill_amendments", ["sponsor_id"], unique=False
    )


def _create_bill_committees() -> None:
    op.create_table(
        "bill_committees",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("committee_ref", sa.Text(), nullable=True, comment="committee:HSAG14."),
        sa.Column(
            "committee_id", sa.Text(), nullable=True, comment="committees.id once it is loaded."
        ),
        sa.Column("system_code", sa.Text(), nullable=True, comment="As upstream: hsag14."),
        sa.Column("name", sa.Text(), nullable=True, comment="The committee's name."),
        sa.Column(
            "chamber", sa.Text(), nullable=True, comment="House or Senate; NULL for a subcommittee."
        ),
        sa.Column(
            "type",
            sa.Text(),
            nullable=True,
            comment="Standing, Select, …; NULL for a subcommittee.",
        ),
        sa.Column(
            "parent_system_code",
            sa.Text(),
            nullable=True,
            comment="The committee above a subcommittee.",
        ),
        sa.Column("activities", Json, nullable=True, comment="What it did: [{name, date}]."),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_committees_bill_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["committee_id"], ["committees.id"], name=op.f("fk_bill_committees_committee_id")
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_committees")),
        comment="Committees and subcommittees a bill was before.",
    )
    op.create_index(
        op.f("ix_bill_committees_committee_id"), "bill_committees", ["committee_id"], unique=False
    )


def _create_bill_cosponsors() -> None:
    op.create_table(
        "bill_cosponsors",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "bioguide_id", sa.Text(), nullable=True, comment="As upstream; NULL for a committee."
        ),
        sa.Column("legislator_ref", sa.Text(), nullable=True, comment="legislator:C000127."),
        sa.Column(
            "legislator_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
        sa.Column(
            "full_name", sa.Text(), nullable=True, comment="Rep. Armstrong, Kelly [R-ND-At Large]."
        ),
        sa.Column("first_name", sa.Text(), nullable=True, comment="Given name."),
        sa.Column("middle_name", sa.Text(), nullable=True, comment="Middle name."),
        sa.Column("last_name", sa.Text(), nullable=True, comment="Family name."),
        sa.Column("party", sa.Text(), nullable=True, comment="R, D, I."),
        sa.Column("state", sa.Text(), nullable=True, comment="Two letters."),
        sa.Column(
            "district", sa.Integer(), nullable=True, comment="0 is at large; NULL for senators."
        ),
        sa.Column("sponsorship_date", sa.Text(), nullable=True, comment="ISO date."),
        sa.Column(
            "sponsorship_withdrawn_date",
            sa.Text(),
            nullable=True,
            comment="ISO date the name was taken back; NULL for most.",
        ),
        sa.Column(
            "is_original_cosponsor",
            sa.Boolean(),
            nullable=True,
            comment="Since the day of introduction.",
        ),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_cosponsors_bill_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_bill_cosponsors_legislator_id")
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_cosponsors")),
        comment="Members who signed a bill, those included who withdrew.",
    )
    op.create_index(
        op.f("ix_bill_cosponsors_legislator_id"), "bill_cosponsors", ["legislator_id"], unique=False
    )


def _create_bill_related() -> None:
    op.create_table(
        "bill_related",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("related_ref", sa.Text(), nullable=True, comment="bill:119-s-1."),
        sa.Column("related_id", sa.Text(), nullable=True, comment="bills.id once it is loaded."),
        sa.Column("congress", sa.Integer(), nullable=True, comment="119."),
        sa.Column("type", sa.Text(), nullable=True, comment="S, HRES, …"),
        sa.Column("number", sa.Integer(), nullable=True, comment="Within its Congress and type."),
        sa.Column("title", sa.Text(), nullable=True, comment="Its title."),
        sa.Column("latest_action_date", sa.Text(), nullable=True, comment="ISO date."),
        sa.Column(
            "latest_action_time", sa.Text(), nullable=True, comment="24 hours, Eastern time."
        ),
        sa.Column(
            "latest_action_text", sa.Text(), nullable=True, comment="What happened to it last."
        ),
        sa.Column(
            "relationship_details",
            Json,
            nullable=True,
            comment="How, and who says so: [{type, identifiedBy}].",
        ),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_related_bill_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["related_id"], ["bills.id"], name=op.f("fk_bill_related_related_id")
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_related")),
        comment="Bills related to a bill.",
    )
    op.create_index(
        op.f("ix_bill_related_related_id"), "bill_related", ["related_id"], unique=False
    )


def _create_bill_sponsors() -> None:
    op.create_table(
        "bill_sponsors",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "bioguide_id", sa.Text(), nullable=True, comment="As upstream; NULL for a committee."
        ),
        sa.Column("legislator_ref", sa.Text(), nullable=True, comment="legislator:C000127."),
        sa.Column(
            "legislator_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
        sa.Column(
            "full_name", sa.Text(), nullable=True, comment="Rep. Armstrong, Kelly [R-ND-At Large]."
        ),
        sa.Column("first_name", sa.Text(), nullable=True, comment="Given name."),
        sa.Column("middle_name", sa.Text(), nullable=True, comment="Middle name."),
        sa.Column("last_name", sa.Text(), nullable=True, comment="Family name."),
        sa.Column("party", sa.Text(), nullable=True, comment="R, D, I."),
        sa.Column("state", sa.Text(), nullable=True, comment="Two letters."),
        sa.Column(
            "district", sa.Integer(), nullable=True, comment="0 is at large; NULL for senators."
        ),
        sa.Column(
            "is_by_request",
            sa.Boolean(),
            nullable=True,
            comment="Introduced by request, mostly of the President.",
        ),
        sa.Column(
            "by_request_type", sa.Text(), nullable=True, comment="As formats before 3.0.0 say it."
        ),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_sponsors_bill_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_bill_sponsors_legislator_id")
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_sponsors")),
        comment="Who introduced a bill; mostly one.",
    )
    op.create_index(
        op.f("ix_bill_sponsors_legislator_id"), "bill_sponsors", ["legislator_id"], unique=False
    )


def _create_bill_subjects() -> None:
    op.create_table(
        "bill_subjects",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="A legislative subject term."),
        sa.Column(
            "parent_name",
            sa.Text(),
            nullable=True,
            comment="The broader term; before format 1.0.0.",
        ),
        sa.Column("update_date", sa.Text(), nullable=True, comment="ISO moment."),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_subjects_bill_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_subjects")),
        comment="Subject terms the Congressional Research Service assigns to a bill.",
    )
    op.create_index(op.f("ix_bill_subjects_name"), "bill_subjects", ["name"], unique=False)


def _create_bill_summaries() -> None:
    op.create_table(
        "bill_summaries",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "version_code",
            sa.Text(),
            nullable=True,
            comment="Orders the versions: 00 is as introduced.",
        ),
        sa.Column(
            "name", sa.Text(), nullable=True, comment="The version summarised; before format 3.0.0."
        ),
        sa.Column("action_date", sa.Text(), nullable=True, comment="ISO date of the version."),
        sa.Column(
            "action_desc", sa.Text(), nullable=True, comment="The version: Introduced in House."
        ),
        sa.Column("update_date", sa.Text(), nullable=True, comment="ISO moment."),
        sa.Column(
            "last_summary_update_date",
            sa.Text(),
            nullable=True,
            comment="ISO moment; before format 3.0.0.",
        ),
        sa.Column("text", sa.Text(), nullable=True, comment="HTML, as published."),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_summaries_bill_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_summaries")),
        comment="Summaries by the Congressional Research Service, one for each version it summarised.",
    )


def _create_bill_text_versions() -> None:
    op.create_table(
        "bill_text_versions",
        sa.Column("id", sa.Text(), nullable=False, comment="bill:119-hr-1/ih, documents.id."),
        sa.Column("bill_ref", sa.Text(), nullable=True, comment="bill:119-hr-1."),
        sa.Column("bill_id", sa.Text(), nullable=True, comment="bills.id once it is loaded."),
        sa.Column("version_code", sa.Text(), nullable=False, comment="ih, rh, eh, enr, eas2, …"),
        sa.Column("type", sa.Text(), nullable=True, comment="Introduced in House."),
        sa.Column(
            "date", sa.Text(), nullable=True, comment="ISO date; the enrolled text often has none."
        ),
        sa.Column(
            "url",
            sa.Text(),
            nullable=True,
            comment="The file the text was read from, or the best one listed.",
        ),
        sa.Column(
            "official_title",
            sa.Text(),
            nullable=True,
            comment="To amend …; as the text itself states it.",
        ),
        sa.Column(
            "formats",
            Json,
            nullable=True,
            comment="Addresses of all files listed for this version.",
        ),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_text_versions_bill_id")
        ),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_bill_text_versions_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bill_text_versions")),
        comment="The texts of a bill, one for each stage at which it was printed.",
    )
    op.create_index(
        op.f("ix_bill_text_versions_bill_id"), "bill_text_versions", ["bill_id"], unique=False
    )


def _create_bill_titles() -> None:
    op.create_table(
        "bill_titles",
        sa.Column("bill_id", sa.Text(), nullable=False, comment="bills.id"),
        sa.Column(
            "ord",
            sa.Integer(),
            autoincrement=False,
            nullable=False,
            comment="Place in the publisher's list.",
        ),
        sa.Column(
            "title_type", sa.Text(), nullable=True, comment="Official Title as Introduced, …"
        ),
        sa.Column("title", sa.Text(), nullable=True, comment="The title."),
        sa.Column("chamber_code", sa.Text(), nullable=True, comment="H or S."),
        sa.Column("chamber_name", sa.Text(), nullable=True, comment="House or Senate."),
        sa.Column(
            "parent_title_type",
            sa.Text(),
            nullable=True,
            comment="Short Title; before format 3.0.0.",
        ),
        sa.Column(
            "bill_text_version_name", sa.Text(), nullable=True, comment="The version it stands in."
        ),
        sa.Column("bill_text_version_code", sa.Text(), nullable=True, comment="IH, ENR."),
        sa.Column("update_date", sa.Text(), nullable=True, comment="ISO moment."),
        sa.Column(
            "title_type_code",
            sa.Integer(),
            nullable=True,
            comment="The publisher's number of the title type.",
        ),
        sa.ForeignKeyConstraint(
            ["bill_id"], ["bills.id"], name=op.f("fk_bill_titles_bill_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("bill_id", "ord", name=op.f("pk_bill_titles")),
        comment="Every title a bill has borne.",
    )

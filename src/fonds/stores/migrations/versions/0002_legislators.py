"""Tables of the legislators source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_legislators()
    _create_executives()
    _create_legislator_family()
    _create_legislator_ids()
    _create_legislator_leadership_roles()
    _create_legislator_offices()
    _create_legislator_other_names()
    _create_legislator_party_affiliations()
    _create_legislator_social_media()
    _create_legislator_terms()
    _create_executive_ids()
    _create_executive_terms()


def _create_legislators() -> None:
    op.create_table(
        "legislators",
        sa.Column("id", sa.Text(), nullable=False, comment="legislator:<bioguide>"),
        sa.Column("bioguide", sa.Text(), nullable=False, comment="Of the Biographical Directory."),
        sa.Column("first", sa.Text(), nullable=True, comment="Given name, at times an initial."),
        sa.Column("middle", sa.Text(), nullable=True, comment="Middle name or initial."),
        sa.Column("last", sa.Text(), nullable=True, comment="Family name."),
        sa.Column("suffix", sa.Text(), nullable=True, comment="Jr., III."),
        sa.Column(
            "nickname", sa.Text(), nullable=True, comment="Common alternative to the given name."
        ),
        sa.Column(
            "official_full",
            sa.Text(),
            nullable=True,
            comment="Full name as the chamber writes it; since 2012.",
        ),
        sa.Column("birthday", sa.Text(), nullable=True, comment="ISO 8601."),
        sa.Column("gender", sa.Text(), nullable=True, comment="M or F."),
        sa.Column(
            "in_office",
            sa.Boolean(),
            nullable=True,
            comment="Stands in the current file; NULL for a loose file.",
        ),
        sa.Column("type", sa.Text(), nullable=True, comment="Of the latest term: sen or rep."),
        sa.Column("chamber", sa.Text(), nullable=True, comment="Of the latest term."),
        sa.Column(
            "state", sa.Text(), nullable=True, comment="Of the latest term; USPS abbreviation."
        ),
        sa.Column(
            "district",
            sa.Integer(),
            nullable=True,
            comment="Of the latest term; 0 at large, -1 unknown.",
        ),
        sa.Column("party", sa.Text(), nullable=True, comment="Of the latest term."),
        sa.Column(
            "caucus", sa.Text(), nullable=True, comment="Of the latest term, for independents."
        ),
        sa.Column("start", sa.Text(), nullable=True, comment="First day, ISO 8601."),
        sa.Column(
            "end_date", sa.Text(), nullable=True, comment="Upstream `end`: last day, ISO 8601."
        ),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_legislators_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_legislators")),
        sa.UniqueConstraint("bioguide", name=op.f("uq_legislators_bioguide")),
    )
    op.create_index(op.f("ix_legislators_state"), "legislators", ["state"], unique=False)


def _create_executives() -> None:
    op.create_table(
        "executives",
        sa.Column("id", sa.Text(), nullable=False, comment="executive:<govtrack>"),
        sa.Column("govtrack", sa.Text(), nullable=False, comment="GovTrack.us person number."),
        sa.Column(
            "bioguide",
            sa.Text(),
            nullable=True,
            comment="Absent for those who never sat in Congress.",
        ),
        sa.Column(
            "legislator_ref",
            sa.Text(),
            nullable=True,
            comment="legislator:<bioguide>, whether that person is loaded or not.",
        ),
        sa.Column(
            "legislator_id",
            sa.Text(),
            nullable=True,
            comment="legislators.id once it is loaded.",
        ),
        sa.Column("first", sa.Text(), nullable=True, comment="Given name, at times an initial."),
        sa.Column("middle", sa.Text(), nullable=True, comment="Middle name or initial."),
        sa.Column("last", sa.Text(), nullable=True, comment="Family name."),
        sa.Column("suffix", sa.Text(), nullable=True, comment="Jr., III."),
        sa.Column(
            "nickname", sa.Text(), nullable=True, comment="Common alternative to the given name."
        ),
        sa.Column(
            "official_full",
            sa.Text(),
            nullable=True,
            comment="Full name as the chamber writes it; since 2012.",
        ),
        sa.Column("birthday", sa.Text(), nullable=True, comment="ISO 8601."),
        sa.Column("gender", sa.Text(), nullable=True, comment="M or F."),
        sa.Column(
            "type", sa.Text(), nullable=True, comment="Of the latest term: prez or viceprez."
        ),
        sa.Column("party", sa.Text(), nullable=True, comment="Of the latest term."),
        sa.Column("start", sa.Text(), nullable=True, comment="First day, ISO 8601."),
        sa.Column(
            "end_date", sa.Text(), nullable=True, comment="Upstream `end`: last day, ISO 8601."
        ),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_executives_id")),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_executives_legislator_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_executives")),
        sa.UniqueConstraint("govtrack", name=op.f("uq_executives_govtrack")),
    )
    op.create_index(
        op.f("ix_executives_legislator_id"), "executives", ["legislator_id"], unique=False
    )


def _create_legislator_family() -> None:
    op.create_table(
        "legislator_family",
        sa.Column("legislator_id", sa.Text(), nullable=False, comment="legislators.id"),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place in the publisher's list."),
        sa.Column("name", sa.Text(), nullable=True, comment="The relative."),
        sa.Column(
            "relation",
            sa.Text(),
            nullable=True,
            comment="What the legislator is to that relative: son …",
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"],
            ["legislators.id"],
            name=op.f("fk_legislator_family_legislator_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("legislator_id", "ord", name=op.f("pk_legislator_family")),
    )


def _create_legislator_ids() -> None:
    op.create_table(
        "legislator_ids",
        sa.Column("legislator_id", sa.Text(), nullable=False, comment="legislators.id"),
        sa.Column("scheme", sa.Text(), nullable=False, comment="thomas, lis, govtrack, fec …"),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place in the publisher's list."),
        sa.Column(
            "value", sa.Text(), nullable=False, comment="As published, leading zeros included."
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"],
            ["legislators.id"],
            name=op.f("fk_legislator_ids_legislator_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("legislator_id", "scheme", "ord", name=op.f("pk_legislator_ids")),
    )
    op.create_index(
        "ix_legislator_ids_scheme_value", "legislator_ids", ["scheme", "value"], unique=False
    )


def _create_legislator_leadership_roles() -> None:
    op.create_table(
        "legislator_leadership_roles",
        sa.Column("legislator_id", sa.Text(), nullable=False, comment="legislators.id"),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place in the publisher's list."),
        sa.Column("title", sa.Text(), nullable=True, comment="Majority Leader, Speaker …"),
        sa.Column("chamber", sa.Text(), nullable=True, comment="senate or house."),
        sa.Column("start", sa.Text(), nullable=True, comment="First day, ISO 8601."),
        sa.Column(
            "end_date", sa.Text(), nullable=True, comment="Upstream `end`: last day, ISO 8601."
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"],
            ["legislators.id"],
            name=op.f("fk_legislator_leadership_roles_legislator_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "legislator_id", "ord", name=op.f("pk_legislator_leadership_roles")
        ),
    )


def _create_legislator_offices() -> None:
    op.create_table(
        "legislator_offices",
        sa.Column("id", sa.Text(), nullable=False, comment="The publisher's: <bioguide>-<city>."),
        sa.Column(
            "legislator_ref",
            sa.Text(),
            nullable=True,
            comment="legislator:<bioguide>, whether that person is loaded or not.",
        ),
        sa.Column(
            "legislator_id",
            sa.Text(),
            nullable=True,
            comment="legislators.id once it is loaded.",
        ),
        sa.Column("address", sa.Text(), nullable=True, comment="Street and number."),
        sa.Column("suite", sa.Text(), nullable=True, comment="Suite or room."),
        sa.Column("building", sa.Text(), nullable=True, comment="Name of the building."),
        sa.Column("city", sa.Text(), nullable=True, comment="City."),
        sa.Column("state", sa.Text(), nullable=True, comment="USPS abbreviation."),
        sa.Column("zip", sa.Text(), nullable=True, comment="Postal code, leading zeros included."),
        sa.Column("phone", sa.Text(), nullable=True, comment="Of the office."),
        sa.Column("fax", sa.Text(), nullable=True, comment="Of the office."),
        sa.Column("hours", sa.Text(), nullable=True, comment="In the office's own words."),
        sa.Column("latitude", sa.Float(), nullable=True, comment="Degrees north."),
        sa.Column("longitude", sa.Float(), nullable=True, comment="Degrees east."),
        sa.Column(
            "task_key", sa.Text(), nullable=True, comment="The input this row was last loaded from."
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_legislator_offices_legislator_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_legislator_offices")),
    )
    op.create_index(
        op.f("ix_legislator_offices_legislator_id"),
        "legislator_offices",
        ["legislator_id"],
        unique=False,
    )


def _create_legislator_other_names() -> None:
    op.create_table(
        "legislator_other_names",
        sa.Column("legislator_id", sa.Text(), nullable=False, comment="legislators.id"),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place in the publisher's list."),
        sa.Column("first", sa.Text(), nullable=True, comment="If it differed."),
        sa.Column("middle", sa.Text(), nullable=True, comment="If it differed."),
        sa.Column("last", sa.Text(), nullable=True, comment="If it differed."),
        sa.Column("suffix", sa.Text(), nullable=True, comment="If it differed."),
        sa.Column("nickname", sa.Text(), nullable=True, comment="If it differed."),
        sa.Column("start", sa.Text(), nullable=True, comment="First day, ISO 8601."),
        sa.Column(
            "end_date", sa.Text(), nullable=True, comment="Upstream `end`: last day, ISO 8601."
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"],
            ["legislators.id"],
            name=op.f("fk_legislator_other_names_legislator_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("legislator_id", "ord", name=op.f("pk_legislator_other_names")),
    )


def _create_legislator_party_affiliations() -> None:
    op.create_table(
        "legislator_party_affiliations",
        sa.Column("legislator_id", sa.Text(), nullable=False, comment="legislators.id"),
        sa.Column("term_ord", sa.Integer(), nullable=False, comment="legislator_terms.ord"),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place in the publisher's list."),
        sa.Column("start", sa.Text(), nullable=True, comment="First day, ISO 8601."),
        sa.Column(
            "end_date", sa.Text(), nullable=True, comment="Upstream `end`: last day, ISO 8601."
        ),
        sa.Column("party", sa.Text(), nullable=True, comment="Held in these days."),
        sa.Column("caucus", sa.Text(), nullable=True, comment="Party an independent sat with."),
        sa.ForeignKeyConstraint(
            ["legislator_id"],
            ["legislators.id"],
            name=op.f("fk_legislator_party_affiliations_legislator_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "legislator_id", "term_ord", "ord", name=op.f("pk_legislator_party_affiliations")
        ),
    )


def _create_legislator_social_media() -> None:
    op.create_table(
        "legislator_social_media",
        sa.Column(
            "legislator_ref",
            sa.Text(),
            nullable=False,
            comment="legislator:<bioguide>, whether that person is loaded or not.",
        ),
        sa.Column(
            "legislator_id",
            sa.Text(),
            nullable=True,
            comment="legislators.id once it is loaded.",
        ),
        sa.Column(
            "twitter", sa.Text(), nullable=True, comment="Official account; handle or numeric id."
        ),
        sa.Column(
            "twitter_id",
            sa.Text(),
            nullable=True,
            comment="Official account; handle or numeric id.",
        ),
        sa.Column(
            "facebook", sa.Text(), nullable=True, comment="Official account; handle or numeric id."
        ),
        sa.Column(
            "facebook_id",
            sa.Text(),
            nullable=True,
            comment="Official account; handle or numeric id.",
        ),
        sa.Column(
            "youtube", sa.Text(), nullable=True, comment="Official account; handle or numeric id."
        ),
        sa.Column(
            "youtube_id",
            sa.Text(),
            nullable=True,
            comment="Official account; handle or numeric id.",
        ),
        sa.Column(
            "instagram", sa.Text(), nullable=True, comment="Official account; handle or numeric id."
        ),
        sa.Column(
            "instagram_id",
            sa.Text(),
            nullable=True,
            comment="Official account; handle or numeric id.",
        ),
        sa.Column(
            "mastodon", sa.Text(), nullable=True, comment="Official account; handle or numeric id."
        ),
        sa.Column(
            "task_key", sa.Text(), nullable=True, comment="The input this row was last loaded from."
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"],
            ["legislators.id"],
            name=op.f("fk_legislator_social_media_legislator_id"),
        ),
        sa.PrimaryKeyConstraint("legislator_ref", name=op.f("pk_legislator_social_media")),
    )
    op.create_index(
        op.f("ix_legislator_social_media_legislator_id"),
        "legislator_social_media",
        ["legislator_id"],
        unique=False,
    )


def _create_legislator_terms() -> None:
    op.create_table(
        "legislator_terms",
        sa.Column("legislator_id", sa.Text(), nullable=False, comment="legislators.id"),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place in the publisher's list."),
        sa.Column("type", sa.Text(), nullable=False, comment="sen or rep."),
        sa.Column("start", sa.Text(), nullable=True, comment="First day, ISO 8601."),
        sa.Column(
            "end_date", sa.Text(), nullable=True, comment="Upstream `end`: last day, ISO 8601."
        ),
        sa.Column(
            "end_type",
            sa.Text(),
            nullable=True,
            comment="Upstream `end-type`: why an appointment ends early.",
        ),
        sa.Column("district", sa.Integer(), nullable=True, comment="0 at large, -1 unknown."),
        sa.Column("class", sa.Integer(), nullable=True, comment="Election class of a senator."),
        sa.Column(
            "state",
            sa.Text(),
            nullable=True,
            comment="USPS abbreviation; DK, OL and PI are former territories.",
        ),
        sa.Column(
            "state_rank", sa.Text(), nullable=True, comment="junior or senior, for senators."
        ),
        sa.Column("party", sa.Text(), nullable=True, comment="The last one held during the term."),
        sa.Column("caucus", sa.Text(), nullable=True, comment="Party an independent sits with."),
        sa.Column("url", sa.Text(), nullable=True, comment="Official website."),
        sa.Column("address", sa.Text(), nullable=True, comment="Washington office."),
        sa.Column("phone", sa.Text(), nullable=True, comment="Washington office."),
        sa.Column("fax", sa.Text(), nullable=True, comment="Washington office."),
        sa.Column("contact_form", sa.Text(), nullable=True, comment="Address of the contact page."),
        sa.Column("office", sa.Text(), nullable=True, comment="Room and building."),
        sa.Column("rss_url", sa.Text(), nullable=True, comment="Feed of the official website."),
        sa.Column(
            "how",
            sa.Text(),
            nullable=True,
            comment="appointment or special-election, where not a regular election.",
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"],
            ["legislators.id"],
            name=op.f("fk_legislator_terms_legislator_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("legislator_id", "ord", name=op.f("pk_legislator_terms")),
    )


def _create_executive_ids() -> None:
    op.create_table(
        "executive_ids",
        sa.Column("executive_id", sa.Text(), nullable=False, comment="executives.id"),
        sa.Column("scheme", sa.Text(), nullable=False, comment="icpsr_prez, wikidata …"),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place in the publisher's list."),
        sa.Column("value", sa.Text(), nullable=False, comment="As published."),
        sa.ForeignKeyConstraint(
            ["executive_id"],
            ["executives.id"],
            name=op.f("fk_executive_ids_executive_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("executive_id", "scheme", "ord", name=op.f("pk_executive_ids")),
    )


def _create_executive_terms() -> None:
    op.create_table(
        "executive_terms",
        sa.Column("executive_id", sa.Text(), nullable=False, comment="executives.id"),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place in the publisher's list."),
        sa.Column("type", sa.Text(), nullable=False, comment="prez or viceprez."),
        sa.Column("start", sa.Text(), nullable=True, comment="First day, ISO 8601."),
        sa.Column(
            "end_date", sa.Text(), nullable=True, comment="Upstream `end`: last day, ISO 8601."
        ),
        sa.Column("party", sa.Text(), nullable=True, comment="From which elected."),
        sa.Column("how", sa.Text(), nullable=True, comment="election, succession or appointment."),
        sa.ForeignKeyConstraint(
            ["executive_id"],
            ["executives.id"],
            name=op.f("fk_executive_terms_executive_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("executive_id", "ord", name=op.f("pk_executive_terms")),
    )

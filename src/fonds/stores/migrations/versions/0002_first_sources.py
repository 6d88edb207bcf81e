"""Tables of the first sources: legislators, committees, Federal Register."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_agencies()
    _create_committees()
    _create_fr_documents()
    _create_legislators()
    _create_committee_congresses()
    _create_committee_members()
    _create_committee_names()
    _create_executives()
    _create_fr_document_agencies()
    _create_fr_document_cfr_references()
    _create_fr_document_dockets()
    _create_fr_document_rins()
    _create_fr_document_topics()
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


def _create_agencies() -> None:
    op.create_table(
        "agencies",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False, comment="As upstream."),
        sa.Column("name", sa.Text(), nullable=False, comment="Agriculture Department."),
        sa.Column("short_name", sa.Text(), nullable=True, comment="USDA."),
        sa.Column(
            "slug",
            sa.Text(),
            nullable=True,
            comment="The name in addresses: agriculture-department.",
        ),
        sa.Column(
            "parent_ref",
            sa.Integer(),
            nullable=True,
            comment="Id of the department above, as upstream states it.",
        ),
        sa.Column(
            "parent_id",
            sa.Integer(),
            nullable=True,
            comment="The department above, once it is loaded.",
        ),
        sa.Column("url", sa.Text(), nullable=True, comment="Its page at federalregister.gov."),
        sa.Column("agency_url", sa.Text(), nullable=True, comment="Its own site."),
        sa.Column("json_url", sa.Text(), nullable=True, comment="Its record in the API."),
        sa.Column(
            "description",
            sa.Text(),
            nullable=True,
            comment="What it does, as the Federal Register describes it.",
        ),
        sa.ForeignKeyConstraint(["parent_id"], ["agencies.id"], name=op.f("fk_agencies_parent_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agencies")),
        comment="Federal agencies as the Federal Register knows them.",
    )
    op.create_index("ix_agencies_parent_id", "agencies", ["parent_id"], unique=False)
    op.create_index("ix_agencies_slug", "agencies", ["slug"], unique=False)


def _create_committees() -> None:
    op.create_table(
        "committees",
        sa.Column("id", sa.Text(), nullable=False, comment="committee:<code>"),
        sa.Column(
            "thomas_id",
            sa.Text(),
            nullable=False,
            comment="Four letters; two digits below another.",
        ),
        sa.Column("type", sa.Text(), nullable=False, comment="house, senate or joint."),
        sa.Column(
            "name", sa.Text(), nullable=False, comment="Without `Subcommittee on` in most cases."
        ),
        sa.Column(
            "parent_ref",
            sa.Text(),
            nullable=True,
            comment="committee:<code> of the committee above.",
        ),
        sa.Column(
            "parent_id", sa.Text(), nullable=True, comment="committees.id once it is loaded."
        ),
        sa.Column(
            "is_current",
            sa.Boolean(),
            nullable=True,
            comment="Stands in the current list; NULL where nothing says.",
        ),
        sa.Column(
            "house_committee_id",
            sa.Text(),
            nullable=True,
            comment="Two letters of the Clerk of the House.",
        ),
        sa.Column(
            "senate_committee_id", sa.Text(), nullable=True, comment="Four letters of the Senate."
        ),
        sa.Column("url", sa.Text(), nullable=True, comment="Website."),
        sa.Column("minority_url", sa.Text(), nullable=True, comment="Website of the minority."),
        sa.Column("address", sa.Text(), nullable=True, comment="Office."),
        sa.Column("phone", sa.Text(), nullable=True, comment="Office."),
        sa.Column("rss_url", sa.Text(), nullable=True, comment="Feed."),
        sa.Column("minority_rss_url", sa.Text(), nullable=True, comment="Feed of the minority."),
        sa.Column(
            "jurisdiction",
            sa.Text(),
            nullable=True,
            comment="What it has to decide on, in its own words.",
        ),
        sa.Column(
            "jurisdiction_source", sa.Text(), nullable=True, comment="Where those words stand."
        ),
        sa.Column("wikipedia", sa.Text(), nullable=True, comment="Name of the article."),
        sa.Column("youtube_id", sa.Text(), nullable=True, comment="Official channel."),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_committees_id")),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["committees.id"], name=op.f("fk_committees_parent_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_committees")),
    )
    op.create_index(op.f("ix_committees_parent_id"), "committees", ["parent_id"], unique=False)


def _create_fr_documents() -> None:
    op.create_table(
        "fr_documents",
        sa.Column("id", sa.Text(), nullable=False, comment="fr:2026-08558, documents.id."),
        sa.Column("document_number", sa.Text(), nullable=False, comment="Not unique before 2010."),
        sa.Column(
            "publication_date", sa.Text(), nullable=True, comment="Day of the issue, ISO 8601."
        ),
        sa.Column(
            "type",
            sa.Text(),
            nullable=True,
            comment="Rule, Proposed Rule, Notice, Presidential Document.",
        ),
        sa.Column("subtype", sa.Text(), nullable=True, comment="Executive Order, Proclamation, …"),
        sa.Column("title", sa.Text(), nullable=False, comment="As printed."),
        sa.Column("abstract", sa.Text(), nullable=True, comment="The summary."),
        sa.Column(
            "action", sa.Text(), nullable=True, comment="What the document does: Final rule."
        ),
        sa.Column("dates", sa.Text(), nullable=True, comment="The dates section, as printed."),
        sa.Column("citation", sa.Text(), nullable=True, comment="Volume and page: 91 FR 12345."),
        sa.Column("volume", sa.Integer(), nullable=True, comment="Of the Federal Register."),
        sa.Column("start_page", sa.Integer(), nullable=True, comment="First page."),
        sa.Column("end_page", sa.Integer(), nullable=True, comment="Last page."),
        sa.Column("page_length", sa.Integer(), nullable=True, comment="Number of pages."),
        sa.Column(
            "effective_on", sa.Text(), nullable=True, comment="ISO date a rule takes effect."
        ),
        sa.Column(
            "comments_close_on",
            sa.Text(),
            nullable=True,
            comment="ISO date the comment period ends.",
        ),
        sa.Column(
            "signing_date",
            sa.Text(),
            nullable=True,
            comment="ISO date a presidential document was signed.",
        ),
        sa.Column(
            "president", sa.Text(), nullable=True, comment="Slug of the president who signed."
        ),
        sa.Column(
            "executive_order_number",
            sa.Text(),
            nullable=True,
            comment="Number of an executive order.",
        ),
        sa.Column(
            "executive_order_notes", sa.Text(), nullable=True, comment="What it amends or revokes."
        ),
        sa.Column(
            "proclamation_number", sa.Text(), nullable=True, comment="Number of a proclamation."
        ),
        sa.Column(
            "significant",
            sa.Boolean(),
            nullable=True,
            comment="Under Executive Order 12866; NULL is unknown.",
        ),
        sa.Column(
            "toc_subject", sa.Text(), nullable=True, comment="Heading in the table of contents."
        ),
        sa.Column("toc_doc", sa.Text(), nullable=True, comment="Entry in the table of contents."),
        sa.Column(
            "correction_of",
            sa.Text(),
            nullable=True,
            comment="Address of the document this one corrects.",
        ),
        sa.Column("html_url", sa.Text(), nullable=True, comment="Page for people."),
        sa.Column("pdf_url", sa.Text(), nullable=True, comment="Official PDF."),
        sa.Column("json_url", sa.Text(), nullable=True, comment="Record in the API."),
        sa.Column(
            "full_text_xml_url",
            sa.Text(),
            nullable=True,
            comment="Full text; NULL where there is none.",
        ),
        sa.Column("body_html_url", sa.Text(), nullable=True, comment="Full text as HTML."),
        sa.Column("raw_text_url", sa.Text(), nullable=True, comment="Full text as plain text."),
        sa.Column("mods_url", sa.Text(), nullable=True, comment="Library metadata at govinfo."),
        sa.Column("comment_url", sa.Text(), nullable=True, comment="Where to comment."),
        sa.Column(
            "regulations_dot_gov_url",
            sa.Text(),
            nullable=True,
            comment="The document at regulations.gov.",
        ),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_fr_documents_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fr_documents")),
        comment="Documents of the Federal Register.",
    )
    op.create_index(
        "ix_fr_documents_document_number", "fr_documents", ["document_number"], unique=False
    )
    op.create_index(
        "ix_fr_documents_publication_date", "fr_documents", ["publication_date"], unique=False
    )
    op.create_index(
        "ix_fr_documents_volume_start_page", "fr_documents", ["volume", "start_page"], unique=False
    )


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


def _create_committee_congresses() -> None:
    op.create_table(
        "committee_congresses",
        sa.Column("committee_id", sa.Text(), nullable=False, comment="committees.id"),
        sa.Column(
            "congress", sa.Integer(), nullable=False, comment="In which bills were referred to it."
        ),
        sa.ForeignKeyConstraint(
            ["committee_id"],
            ["committees.id"],
            name=op.f("fk_committee_congresses_committee_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("committee_id", "congress", name=op.f("pk_committee_congresses")),
    )


def _create_committee_members() -> None:
    op.create_table(
        "committee_members",
        sa.Column("committee_ref", sa.Text(), nullable=False, comment="committee:<code>"),
        sa.Column(
            "committee_id", sa.Text(), nullable=True, comment="committees.id once it is loaded."
        ),
        sa.Column("bioguide", sa.Text(), nullable=False, comment="Of the Biographical Directory."),
        sa.Column("legislator_ref", sa.Text(), nullable=True, comment="legislator:<bioguide>"),
        sa.Column(
            "legislator_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place in the publisher's list."),
        sa.Column("name", sa.Text(), nullable=True, comment="As listed, for reading only."),
        sa.Column("party", sa.Text(), nullable=True, comment="majority or minority."),
        sa.Column("rank", sa.Integer(), nullable=True, comment="Within the party's side."),
        sa.Column(
            "title", sa.Text(), nullable=True, comment="Chairman, Ranking Member, Ex Officio …"
        ),
        sa.Column(
            "chamber", sa.Text(), nullable=True, comment="senate or house, on joint committees."
        ),
        sa.Column(
            "start_date", sa.Text(), nullable=True, comment="First day, ISO 8601, where known."
        ),
        sa.Column(
            "source",
            sa.Text(),
            nullable=True,
            comment="Where the assignment was announced, where known.",
        ),
        sa.Column(
            "task_key", sa.Text(), nullable=True, comment="The input this row was last loaded from."
        ),
        sa.ForeignKeyConstraint(
            ["committee_id"], ["committees.id"], name=op.f("fk_committee_members_committee_id")
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_committee_members_legislator_id")
        ),
        sa.PrimaryKeyConstraint("committee_ref", "bioguide", name=op.f("pk_committee_members")),
    )
    op.create_index(
        op.f("ix_committee_members_committee_id"),
        "committee_members",
        ["committee_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_committee_members_legislator_id"),
        "committee_members",
        ["legislator_id"],
        unique=False,
    )


def _create_committee_names() -> None:
    op.create_table(
        "committee_names",
        sa.Column("committee_id", sa.Text(), nullable=False, comment="committees.id"),
        sa.Column("congress", sa.Integer(), nullable=False, comment="In which it was called so."),
        sa.Column(
            "name",
            sa.Text(),
            nullable=False,
            comment="As THOMAS had it; not always the official one.",
        ),
        sa.ForeignKeyConstraint(
            ["committee_id"],
            ["committees.id"],
            name=op.f("fk_committee_names_committee_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("committee_id", "congress", name=op.f("pk_committee_names")),
    )


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
            comment="legislators.id once that person is loaded.",
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


def _create_fr_document_agencies() -> None:
    op.create_table(
        "fr_document_agencies",
        sa.Column("document_id", sa.Text(), nullable=False, comment="fr_documents.id."),
        sa.Column(
            "ord", sa.Integer(), nullable=False, comment="Place in the upstream's list, from 0."
        ),
        sa.Column("raw_name", sa.Text(), nullable=True, comment="As printed in the document."),
        sa.Column(
            "name",
            sa.Text(),
            nullable=True,
            comment="As the Federal Register calls it; NULL for a name it does not know.",
        ),
        sa.Column("slug", sa.Text(), nullable=True, comment="The name in addresses."),
        sa.Column("agency_ref", sa.Integer(), nullable=True, comment="Id as upstream states it."),
        sa.Column(
            "agency_id", sa.Integer(), nullable=True, comment="The agency, once it is loaded."
        ),
        sa.ForeignKeyConstraint(
            ["agency_id"], ["agencies.id"], name=op.f("fk_fr_document_agencies_agency_id")
        ),
        sa.ForeignKeyConstraint(
            ["document_id"], ["fr_documents.id"], name=op.f("fk_fr_document_agencies_document_id")
        ),
        sa.PrimaryKeyConstraint("document_id", "ord", name=op.f("pk_fr_document_agencies")),
        comment="Issuing agencies, in the order of the document.",
    )
    op.create_index(
        "ix_fr_document_agencies_agency_id", "fr_document_agencies", ["agency_id"], unique=False
    )


def _create_fr_document_cfr_references() -> None:
    op.create_table(
        "fr_document_cfr_references",
        sa.Column("document_id", sa.Text(), nullable=False, comment="fr_documents.id."),
        sa.Column(
            "ord", sa.Integer(), nullable=False, comment="Place in the upstream's list, from 0."
        ),
        sa.Column("title", sa.Integer(), nullable=True, comment="Title of the Code."),
        sa.Column("part", sa.Text(), nullable=True, comment="Part; NULL when a chapter is meant."),
        sa.Column(
            "chapter",
            sa.Text(),
            nullable=True,
            comment="Chapter, where it is named instead of a part.",
        ),
        sa.Column("citation_url", sa.Text(), nullable=True, comment="The part on the web."),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["fr_documents.id"],
            name=op.f("fk_fr_document_cfr_references_document_id"),
        ),
        sa.PrimaryKeyConstraint("document_id", "ord", name=op.f("pk_fr_document_cfr_references")),
        comment="Parts of the Code of Federal Regulations a document concerns.",
    )
    op.create_index(
        "ix_fr_document_cfr_references_part", "fr_document_cfr_references", ["part"], unique=False
    )


def _create_fr_document_dockets() -> None:
    op.create_table(
        "fr_document_dockets",
        sa.Column("document_id", sa.Text(), nullable=False, comment="fr_documents.id."),
        sa.Column(
            "ord", sa.Integer(), nullable=False, comment="Place in the upstream's list, from 0."
        ),
        sa.Column("docket_id", sa.Text(), nullable=False, comment="As the agency writes it."),
        sa.ForeignKeyConstraint(
            ["document_id"], ["fr_documents.id"], name=op.f("fk_fr_document_dockets_document_id")
        ),
        sa.PrimaryKeyConstraint("document_id", "ord", name=op.f("pk_fr_document_dockets")),
        comment="Dockets a document belongs to.",
    )
    op.create_index(
        "ix_fr_document_dockets_docket_id", "fr_document_dockets", ["docket_id"], unique=False
    )


def _create_fr_document_rins() -> None:
    op.create_table(
        "fr_document_rins",
        sa.Column("document_id", sa.Text(), nullable=False, comment="fr_documents.id."),
        sa.Column(
            "ord", sa.Integer(), nullable=False, comment="Place in the upstream's list, from 0."
        ),
        sa.Column("regulation_id_number", sa.Text(), nullable=False, comment="3170-AA50."),
        sa.ForeignKeyConstraint(
            ["document_id"], ["fr_documents.id"], name=op.f("fk_fr_document_rins_document_id")
        ),
        sa.PrimaryKeyConstraint("document_id", "ord", name=op.f("pk_fr_document_rins")),
        comment="Regulation identifier numbers of a document.",
    )
    op.create_index(
        "ix_fr_document_rins_regulation_id_number",
        "fr_document_rins",
        ["regulation_id_number"],
        unique=False,
    )


def _create_fr_document_topics() -> None:
    op.create_table(
        "fr_document_topics",
        sa.Column("document_id", sa.Text(), nullable=False, comment="fr_documents.id."),
        sa.Column(
            "ord", sa.Integer(), nullable=False, comment="Place in the upstream's list, from 0."
        ),
        sa.Column("topic", sa.Text(), nullable=False, comment="As upstream."),
        sa.ForeignKeyConstraint(
            ["document_id"], ["fr_documents.id"], name=op.f("fk_fr_document_topics_document_id")
        ),
        sa.PrimaryKeyConstraint("document_id", "ord", name=op.f("pk_fr_document_topics")),
        comment="Subjects from the Federal Register's thesaurus.",
    )
    op.create_index("ix_fr_document_topics_topic", "fr_document_topics", ["topic"], unique=False)


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
            comment="legislators.id once that person is loaded.",
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
            comment="legislators.id once that person is loaded.",
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

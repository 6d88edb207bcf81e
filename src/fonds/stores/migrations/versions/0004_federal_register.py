"""Tables of the Federal Register source."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_agencies()
    _create_fr_documents()
    _create_fr_document_agencies()
    _create_fr_document_cfr_references()
    _create_fr_document_dockets()
    _create_fr_document_rins()
    _create_fr_document_topics()


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
        sa.Column(
            "task_key",
            sa.Text(),
            nullable=True,
            comment="The input this row was last loaded from.",
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"],
            ["agencies.id"],
            name=op.f("fk_agencies_parent_id"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agencies")),
        comment="Federal agencies as the Federal Register knows them.",
    )
    op.create_index("ix_agencies_parent_id", "agencies", ["parent_id"], unique=False)
    op.create_index("ix_agencies_slug", "agencies", ["slug"], unique=False)


def _create_fr_documents() -> None:
    op.create_table(
        "fr_documents",
        *_create_fr_documents_first_columns(),
        *_create_fr_documents_further_columns(),
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


def _create_fr_documents_first_columns() -> list[sa.Column[Any]]:
    return [
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
    ]


def _create_fr_documents_further_columns() -> list[sa.Column[Any]]:
    return [
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
    ]


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
            ["agency_id"],
            ["agencies.id"],
            name=op.f("fk_fr_document_agencies_agency_id"),
            ondelete="SET NULL",
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

"""The Federal Register's own tables; columns bear the names the API gives them."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text

from fonds.stores.tables import metadata


def _text(name: str, comment: str) -> Column[Any]:
    return Column(name, Text, comment=comment)


fr_documents: Final = Table(
    "fr_documents",
    metadata,
    Column(
        "id", ForeignKey("documents.id"), primary_key=True, comment="fr:2026-08558, documents.id."
    ),
    Column("document_number", Text, nullable=False, comment="Not unique before 2010."),
    _text("publication_date", "Day of the issue, ISO 8601."),
    _text("type", "Rule, Proposed Rule, Notice, Presidential Document."),
    _text("subtype", "Executive Order, Proclamation, …"),
    Column("title", Text, nullable=False, comment="As printed."),
    _text("abstract", "The summary."),
    _text("action", "What the document does: Final rule."),
    _text("dates", "The dates section, as printed."),
    _text("citation", "Volume and page: 91 FR 12345."),
    Column("volume", Integer, comment="Of the Federal Register."),
    Column("start_page", Integer, comment="First page."),
    Column("end_page", Integer, comment="Last page."),
    Column("page_length", Integer, comment="Number of pages."),
    _text("effective_on", "ISO date a rule takes effect."),
    _text("comments_close_on", "ISO date the comment period ends."),
    _text("signing_date", "ISO date a presidential document was signed."),
    _text("president", "Slug of the president who signed."),
    _text("executive_order_number", "Number of an executive order."),
    _text("executive_order_notes", "What it amends or revokes."),
    _text("proclamation_number", "Number of a proclamation."),
    Column("significant", Boolean, comment="Under Executive Order 12866; NULL is unknown."),
    _text("toc_subject", "Heading in the table of contents."),
    _text("toc_doc", "Entry in the table of contents."),
    _text("correction_of", "Address of the document this one corrects."),
    _text("html_url", "Page for people."),
    _text("pdf_url", "Official PDF."),
    _text("json_url", "Record in the API."),
    _text("full_text_xml_url", "Full text; NULL where there is none."),
    _text("body_html_url", "Full text as HTML."),
    _text("raw_text_url", "Full text as plain text."),
    _text("mods_url", "Library metadata at govinfo."),
    _text("comment_url", "Where to comment."),
    _text("regulations_dot_gov_url", "The document at regulations.gov."),
    Index("ix_fr_documents_document_number", "document_number"),
    Index("ix_fr_documents_publication_date", "publication_date"),
    Index("ix_fr_documents_volume_start_page", "volume", "start_page"),
    comment="Documents of the Federal Register.",
)


def _below(name: str, comment: str, *columns: Column[Any], index: str) -> Table:
    return Table(
        name,
        metadata,
        Column(
            "document_id",
            ForeignKey("fr_documents.id"),
            primary_key=True,
            comment="fr_documents.id.",
        ),
        Column("ord", Integer, primary_key=True, comment="Place in the upstream's list, from 0."),
        *columns,
        Index(f"ix_{name}_{index}", index),
        comment=comment,
    )


document_agencies: Final = _below(
    "fr_document_agencies",
    "Issuing agencies, in the order of the document.",
    _text("raw_name", "As printed in the document."),
    _text("name", "As the Federal Register calls it; NULL for a name it does not know."),
    _text("slug", "The name in addresses."),
    Column("agency_ref", Integer, comment="Id as upstream states it."),
    Column(
        "agency_id",
        ForeignKey("agencies.id", ondelete="SET NULL"),
        info={"resolves": "agency_ref"},
        comment="The agency, once it is loaded.",
    ),
    index="agency_id",
)
document_cfr_references: Final = _below(
    "fr_document_cfr_references",
    "Parts of the Code of Federal Regulations a document concerns.",
    Column("title", Integer, comment="Title of the Code."),
    _text("part", "Part; NULL when a chapter is meant."),
    _text("chapter", "Chapter, where it is named instead of a part."),
    _text("citation_url", "The part on the web."),
    index="part",
)
document_dockets: Final = _below(
    "fr_document_dockets",
    "Dockets a document belongs to.",
    Column("docket_id", Text, nullable=False, comment="As the agency writes it."),
    index="docket_id",
)
document_rins: Final = _below(
    "fr_document_rins",
    "Regulation identifier numbers of a document.",
    Column("regulation_id_number", Text, nullable=False, comment="3170-AA50."),
    index="regulation_id_number",
)
document_topics: Final = _below(
    "fr_document_topics",
    "Subjects from the Federal Register's thesaurus.",
    Column("topic", Text, nullable=False, comment="As upstream."),
    index="topic",
)

TABLES: Final = (
    fr_documents,
    document_agencies,
    document_cfr_references,
    document_dockets,
    document_rins,
    document_topics,
)
"""Parents before children."""

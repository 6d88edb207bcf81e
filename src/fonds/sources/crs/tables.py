"""Tables of the Congressional Research Service's reports."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds.stores.columns import Json, Timestamp, document_key, owned_by, position, texts
from fonds.stores.tables import metadata

crs_reports: Final = Table(
    "crs_reports",
    metadata,
    document_key("crs:R48481, documents.id."),
    Column("number", Text, nullable=False, comment="R48481, 98-807: what CRS calls it."),
    Column("title", Text, nullable=False, comment="Of the newest version."),
    *texts(
        type="`CRS Report`, `CRS Insight`, …, as EveryCRSReport.com words it.",
        type_id="`REPORTS`, `INSIGHTS`, …: the same as a code.",
        source="Where EveryCRSReport.com has it from; several are joined by commas.",
        content_type="`Reports`, `In Focus`, …, as congress.gov words it.",
        status="`Active` or `Archived`, as congress.gov has it.",
    ),
    Column("active", Boolean, comment="Whether CRS still maintained it when it was last seen."),
    Column("version", Integer, comment="Number of the newest version, as CRS counts them."),
    *texts(
        latest_pub_date="ISO day of the newest version: its cover date.",
        publication_date="ISO day of the first version, from SearchResults.csv.",
    ),
    Column("publish_date", Timestamp, comment="publishDate of congress.gov."),
    Column("update_date", Timestamp, comment="updateDate of congress.gov: of its record."),
    *texts(
        summary="Of the newest version, as plain text.",
        latest_html="Path or address of the newest version's HTML.",
        latest_pdf="Path or address of the newest version's PDF.",
        sha1="Of the metadata file, as the list of EveryCRSReport.com has it.",
    ),
    Column("authors", Json, comment="Names, from congress.gov; EveryCRSReport.com strikes them."),
    Column(
        "related_materials",
        Json,
        comment="Bills and laws it is about, from congress.gov: title, congress, type, number.",
    ),
    Index("ix_crs_reports_number", "number"),
    comment="Reports and other products of the Congressional Research Service.",
)

crs_versions: Final = Table(
    "crs_versions",
    metadata,
    owned_by("crs_reports", "report_id"),
    position(comment="Place in the publisher's list, the newest first."),
    Column("title", Text, nullable=False, comment="As this version has it."),
    *texts(
        version_id="The version's own id, or its number.",
        date="ISO day on its cover.",
        retrieved="ISO moment at which EveryCRSReport.com found it; no zone is stated.",
        source="Where EveryCRSReport.com has it from.",
        source_link="Its page there.",
        summary="As plain text.",
        html="Path or address of its HTML.",
        pdf="Path or address of its PDF.",
        html_sha1="SHA-1 of the HTML as CRS served it.",
        pdf_sha1="SHA-1 of the PDF as CRS served it.",
    ),
    comment="Every version of a report that is known.",
)

crs_topics: Final = Table(
    "crs_topics",
    metadata,
    owned_by("crs_reports", "report_id"),
    position(),
    Column("name", Text, nullable=False, comment="The topic."),
    *texts(
        source="Whose topic it is: IBCList, CongOpsList, EveryCRSReport.com, congress.gov, …",
        topic_id="Its id in that list.",
    ),
    comment="What the newest version of a report is about.",
)

TABLES: Final = (crs_reports, crs_versions, crs_topics)
"""Parents before children."""

"""The tables of committee reports; columns bear the names the MODS gives its fields."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds.stores.columns import Json, document_key, owned_by, position, reference, texts
from fonds.stores.tables import metadata

committee_reports: Final = Table(
    "committee_reports",
    metadata,
    document_key("crpt:<package or granule>"),
    Column("package_id", Text, nullable=False, comment="CRPT-119hrpt100."),
    Column("access_id", Text, nullable=False, comment="The granule: CRPT-119hrpt100-pt2."),
    Column("title", Text, nullable=False, comment="In capitals, as printed."),
    Column("congress", Integer, comment="119."),
    Column("session", Integer, comment="Of that Congress: 1 or 2."),
    Column("number", Integer, comment="100 of H. Rept. 119-100."),
    Column("part_number", Integer, comment="2 of Part 2; NULL for a report without parts."),
    *texts(
        chamber="HOUSE or SENATE.",
        doc_class="HRPT, SRPT, or ERPT of the Senate in executive session.",
        subtitle="Report together with minority views to accompany H.R. 3495.",
        short_title="Of the bill reported.",
        recommendation="What the committee asks its chamber to do.",
        submitted_statement="Who submitted it for which committee.",
        legislative_history="What became of the report: ordered to be printed, committed to ….",
        preferred_citation="H. Rept. 119-494, Part 2.",
        date_issued="Day of the report, or of this part's own action; ISO 8601.",
    ),
    Column("is_conference_report", Boolean, comment="Of the managers of both chambers."),
    *reference("bill", "bills", "The bill reported: bill:<congress>-<type>-<number>"),
    *reference("submitted_by", "legislators", "legislator:<bioguide> of who submitted it."),
    Index("ix_committee_reports_package_id", "package_id"),
    Index("ix_committee_reports_date_issued", "date_issued"),
    comment="Reports of committees and conferences to their chambers.",
)

committee_report_bills: Final = Table(
    "committee_report_bills",
    metadata,
    owned_by("committee_reports", "report_id"),
    position(),
    *reference("bill", "bills", "bill:<congress>-<type>-<number>"),
    Column("congress", Integer, comment="Of the bill."),
    Column("type", Text, comment="HR, S, HJRES, …"),
    Column("number", Integer, comment="Of the bill."),
    Column("context", Text, comment="PRIMARY: it is reported; OTHER: it is mentioned."),
    comment="Bills a report names; the one reported often stands here twice.",
)

committee_report_committees: Final = Table(
    "committee_report_committees",
    metadata,
    owned_by("committee_reports", "report_id"),
    position(),
    *reference("committee", "committees", "committee:<code>"),
    Column("name", Text, nullable=False, comment="Committee on Rules."),
    *texts(
        authority_id="hsru00; NULL for a committee the authority file does not know.",
        short_name="Rules.",
        chamber="H, S or J.",
        type="S standing, L select, P special, J joint, T task force, O other.",
    ),
    Column("subcommittees", Json, nullable=False, comment="Names, where the report has any."),
    comment="Committees that report.",
)

TABLES: Final = (committee_reports, committee_report_bills, committee_report_committees)
"""Parents before children."""

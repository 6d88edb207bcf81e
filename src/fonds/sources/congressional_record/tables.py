"""The tables of the Congressional Record; columns bear the names the MODS gives its fields."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Index, Integer, Table, Text

from fonds.stores.columns import (
    document_key,
    owned_by,
    position,
    reference,
    task_key,
    texts,
)
from fonds.stores.tables import metadata

crec_issues: Final = Table(
    "crec_issues",
    metadata,
    Column("id", Text, primary_key=True, comment="The package: CREC-2026-02-03."),
    Column("date_issued", Text, comment="The day of the issue, ISO 8601."),
    Column("volume", Integer, comment="One for each year: 172."),
    Column("issue", Integer, comment="Within the volume."),
    Column("congress", Integer, comment="119."),
    Column("session", Integer, comment="Of that Congress."),
    Column("granules", Integer, nullable=False, comment="How many the MODS lists."),
    task_key(),
    Index("ix_crec_issues_date_issued", "date_issued"),
    comment="Issues of the daily edition.",
)

crec_granules: Final = Table(
    "crec_granules",
    metadata,
    document_key("crec:<granule>"),
    *reference("issue", "crec_issues", "The package it stands in: CREC-2026-02-03."),
    Column("access_id", Text, nullable=False, comment="CREC-2026-02-03-pt1-PgH501-2."),
    Column("title", Text, nullable=False, comment="As printed, or the first words without one."),
    Column("volume", Integer, comment="172."),
    Column("issue", Integer, comment="Within the volume."),
    Column("congress", Integer, comment="119."),
    Column("session", Integer, comment="Of that Congress."),
    Column("book_number", Integer, comment="The part of a large issue: 1 of pt1."),
    *texts(
        granule_class="HOUSE, SENATE, EXTENSIONS or DAILYDIGEST.",
        sub_granule_class="PRAYER, FRONTMATTER, SNOMINATIONS, ALLOTHER, …",
        chamber="HOUSE or SENATE.",
        date_issued="The day of the issue, ISO 8601.",
        granule_date="The day it was said; earlier for extensions handed in late.",
        page_start="H501; NULL where the publisher knows none.",
        page_end="H502.",
        time_from="When it began, Eastern time, where printed.",
        time_to="When it ended.",
    ),
    Index("ix_crec_granules_date_issued", "date_issued"),
    Index("ix_crec_granules_page", "volume", "page_start"),
    comment="Articles of the Congressional Record.",
)

crec_speakers: Final = Table(
    "crec_speakers",
    metadata,
    owned_by("crec_granules", "granule_id"),
    position(),
    *reference("legislator", "legislators", "legislator:<bioguide>"),
    Column("name", Text, nullable=False, comment="First name first."),
    *texts(
        bioguide="Of the Biographical Directory.",
        parsed="As printed: Mr. SMITH of Texas.",
        role="SPEAKING, or RECAPPED in the digest.",
        chamber="H or S.",
        party="D, R, I.",
        state="Postal code.",
    ),
    comment="Members who speak in a granule.",
)

crec_bills: Final = Table(
    "crec_bills",
    metadata,
    owned_by("crec_granules", "granule_id"),
    position(),
    *reference("bill", "bills", "bill:<congress>-<type>-<number>"),
    Column("congress", Integer, comment="Of the bill."),
    Column("type", Text, comment="HR, S, HJRES, …"),
    Column("number", Integer, comment="Of the bill."),
    Column("context", Text, comment="TITLE, HEADERLINE, FIRSTPARAGRAPH or OTHER."),
    comment="Bills a granule names; some stand twice.",
)

TABLES: Final = (crec_issues, crec_granules, crec_speakers, crec_bills)
"""Parents before children."""

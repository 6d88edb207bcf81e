"""Websites, the addresses seen on them, and the PDFs that became documents."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.sql.elements import conv

from fonds.stores.columns import Identity, Json, Timestamp, texts
from fonds.stores.tables import metadata

# Constraints whose names are written out had them before names were computed.

websites: Final = Table(
    "websites",
    metadata,
    Column("id", Text, primary_key=True, comment="As its configuration names it."),
    Column("name", Text, nullable=False, comment="Of the office, for people."),
    Column("base_url", Text, nullable=False),
    *texts(
        description="As its configuration has it.",
        crawl_frequency="daily, weekly, monthly, quarterly, yearly; else only when asked.",
    ),
    Column("enabled", Boolean, nullable=False),
    Column("rendered", Boolean, nullable=False, comment="Its pages are rendered by a browser."),
    Column("output", Text, comment="Address where the last crawl left its files."),
    Column("standing", Json, comment="The strategy in use, its state and scores."),
    Column("updated_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("id", name="websites_pkey"),
    comment="Websites that were crawled, and how their PDFs are found.",
)

site_addresses: Final = Table(
    "site_addresses",
    metadata,
    Column("website_id", Text, primary_key=True),
    Column("key", Text, primary_key=True, comment="Half of the SHA-256 of the address."),
    Column("url", Text, nullable=False),
    Column("kind", Text, nullable=False, comment="page or pdf."),
    Column("state", Text, nullable=False, comment="How far it has come in this crawl."),
    Column("crawl_id", Identity, nullable=False, comment="The crawl that saw it last."),
    Column("depth", Integer, nullable=False, comment="Links between it and the base address."),
    Column("turn", Integer, nullable=False, comment="Which page of a list on several pages."),
    Column("place", BigInteger, nullable=False, comment="Order in which it was seen."),
    Column("trail", Json, nullable=False, comment="Texts of the links that lead to it."),
    *texts(
        found_on="Address of the page that it was seen on.",
        text="Of the link.",
        organization="Whose report it is, as the page tells.",
        period="Of the report: 2024-Q1, 2024-annual.",
        guesses="Which of organization and period are guesses, with a space between them.",
        origin="The archived page, as JSON.",
        error="Why it failed.",
    ),
    Column("updated_at", Timestamp, nullable=False),
    PrimaryKeyConstraint("website_id", "key", name="site_addresses_pkey"),
    CheckConstraint("kind IN ('page', 'pdf')", name=conv("kind")),
    CheckConstraint(
        "CASE kind WHEN 'page' THEN state IN ('waiting', 'visited', 'failed', 'forbidden') "
        "ELSE state IN ('discovered', 'downloading', 'downloaded', 'validated', 'stored', "
        "'indexed', 'failed', 'forbidden') END",
        name=conv("state"),
    ),
    Index("ix_site_addresses_next", "website_id", "kind", "state", "depth", "place"),
    comment="Pages to visit and PDFs to fetch: where a crawl goes on after it was stopped.",
)

site_files: Final = Table(
    "site_files",
    metadata,
    Column(
        "id",
        ForeignKey("documents.id", name="site_files_id_fkey"),
        primary_key=True,
        comment="site:tokyo/1f0a…, documents.id.",
    ),
    Column("website_id", Text, nullable=False, index=True, comment="websites.id"),
    Column("url", Text, nullable=False, comment="Where the PDF is."),
    *texts(
        found_on="The page that lists it.",
        link_text="Of the link on that page.",
        organization="Whose report it is, as the page tells.",
        period="Of the report: 2024-Q1, 2024-annual.",
        guesses="Which of organization, period and title are guesses, with spaces between them.",
    ),
    Column("sha256", Text, nullable=False, index=True, comment="Of the PDF."),
    Column("size", BigInteger, nullable=False, comment="Of the PDF, in bytes."),
    PrimaryKeyConstraint("id", name="site_files_pkey"),
    comment="PDFs of websites.",
)

TABLES: Final = (site_files,)

website_tables: Final = (websites, site_addresses, site_files)

"""Websites, the addresses seen on them, and their PDFs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Identity, Json, Timestamp

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_websites()
    _create_site_addresses()
    _create_site_files()


def _create_websites() -> None:
    op.create_table(
        "websites",
        sa.Column("id", sa.Text, primary_key=True, comment="As its configuration names it."),
        sa.Column("name", sa.Text, nullable=False, comment="Of the office, for people."),
        sa.Column("base_url", sa.Text, nullable=False),
        sa.Column("description", sa.Text, comment="As its configuration has it."),
        sa.Column(
            "crawl_frequency",
            sa.Text,
            comment="daily, weekly, monthly, quarterly, yearly; else only when asked.",
        ),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column(
            "rendered", sa.Boolean, nullable=False, comment="Its pages are rendered by a browser."
        ),
        sa.Column("output", sa.Text, comment="Address where the last crawl left its files."),
        sa.Column("standing", Json, comment="The strategy in use, its state and scores."),
        sa.Column("updated_at", Timestamp, nullable=False),
        comment="Websites that were crawled, and how their PDFs are found.",
    )


def _create_site_addresses() -> None:
    op.create_table(
        "site_addresses",
        sa.Column("website_id", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True, comment="Half of the SHA-256 of the address."),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False, comment="page or pdf."),
        sa.Column("state", sa.Text, nullable=False, comment="How far it has come in this crawl."),
        sa.Column("crawl_id", Identity, nullable=False, comment="The crawl that saw it last."),
        sa.Column(
            "depth", sa.Integer, nullable=False, comment="Links between it and the base address."
        ),
        sa.Column(
            "turn", sa.Integer, nullable=False, comment="Which page of a list on several pages."
        ),
        sa.Column("place", sa.BigInteger, nullable=False, comment="Order in which it was seen."),
        sa.Column("trail", Json, nullable=False, comment="Texts of the links that lead to it."),
        sa.Column("found_on", sa.Text, comment="Address of the page that it was seen on."),
        sa.Column("text", sa.Text, comment="Of the link."),
        sa.Column("organization", sa.Text, comment="Whose report it is, as the page tells."),
        sa.Column("period", sa.Text, comment="Of the report: 2024-Q1, 2024-annual."),
        sa.Column("origin", sa.Text, comment="The archived page, as JSON."),
        sa.Column("error", sa.Text, comment="Why it failed."),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.CheckConstraint("kind IN ('page', 'pdf')", name="kind"),
        comment="Pages to visit and PDFs to fetch: where a crawl goes on after it was stopped.",
    )
    op.create_index(
        "ix_site_addresses_next",
        "site_addresses",
        ["website_id", "kind", "state", "depth", "place"],
    )


def _create_site_files() -> None:
    op.create_table(
        "site_files",
        sa.Column(
            "id",
            sa.Text,
            sa.ForeignKey("documents.id"),
            primary_key=True,
            comment="site:tokyo/1f0a…, documents.id.",
        ),
        sa.Column("website_id", sa.Text, nullable=False, comment="websites.id"),
        sa.Column("url", sa.Text, nullable=False, comment="Where the PDF is."),
        sa.Column("found_on", sa.Text, comment="The page that lists it."),
        sa.Column("link_text", sa.Text, comment="Of the link on that page."),
        sa.Column("organization", sa.Text, comment="Whose report it is, as the page tells."),
        sa.Column("period", sa.Text, comment="Of the report: 2024-Q1, 2024-annual."),
        sa.Column("sha256", sa.Text, nullable=False, comment="Of the PDF."),
        sa.Column("size", sa.BigInteger, nullable=False, comment="Of the PDF, in bytes."),
        comment="PDFs of websites.",
    )
    op.create_index("ix_site_files_website_id", "site_files", ["website_id"])
    op.create_index("ix_site_files_sha256", "site_files", ["sha256"])

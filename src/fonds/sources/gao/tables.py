"""GAO's own tables."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Index, Table, Text

from fonds.stores.columns import Timestamp, document_key, owned_by, position, texts
from fonds.stores.tables import metadata

gao_reports: Final = Table(
    "gao_reports",
    metadata,
    document_key("gao:GAO-26-107521, documents.id."),
    Column("product", Text, nullable=False, comment="GAO-26-107521, in capitals."),
    Column("title", Text, nullable=False, comment="As the feed has it, escapes undone."),
    *texts(
        link="The product's page, as the feed names it.",
        guid="As the feed has it: a path.",
        description="What GAO found and why it did the study, as plain text.",
    ),
    Column("pub_date", Timestamp, comment="pubDate of the feed."),
    *texts(
        published="ISO day the product is dated, from its page.",
        publicly_released="ISO day it was released to the public, from its page.",
        fast_facts="The short version for the public, from its page.",
        html_url="Where the full text is, if there is one.",
        pdf_url="Where the PDF is.",
    ),
    Index("ix_gao_reports_product", "product"),
    comment="Products of the Government Accountability Office.",
)

gao_topics: Final = Table(
    "gao_topics",
    metadata,
    owned_by("gao_reports", "report_id"),
    position(),
    Column("topic", Text, nullable=False, comment="Topic or subject term, as GAO words it."),
    comment="What a product is about, from its page and the feed's categories.",
)

gao_recommendations: Final = Table(
    "gao_recommendations",
    metadata,
    owned_by("gao_reports", "report_id"),
    position(),
    *texts(
        agency="The agency it is addressed to.",
        recommendation="What GAO recommends.",
        status="Open, Closed – Implemented, …",
        comments="What GAO says on its status.",
    ),
    comment="Recommendations of a product and what became of them, from its page.",
)

TABLES: Final = (gao_reports, gao_topics, gao_recommendations)
"""Parents before children."""

"""CBO's own table."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Index, Integer, Table, Text

from fonds.stores.columns import Timestamp, document_key, reference, texts
from fonds.stores.tables import metadata

cbo_publications: Final = Table(
    "cbo_publications",
    metadata,
    document_key("cbo:61234, documents.id."),
    Column("publication_id", Text, nullable=False, comment="61234, the number in its address."),
    Column("title", Text, nullable=False, comment="As CBO words it."),
    Column("date", Timestamp, comment="Date of the list, pubDate of the feed."),
    *texts(
        link="Its page at cbo.gov.",
        description="Which version of a bill it estimates, or what it is about.",
        bill_number="Bill_Number of the list: often empty, sometimes wrong.",
        title_bill="The first bill the title names; it wins over bill_number.",
    ),
    Column("congress", Integer, comment="Of the list it stands in, else that of its date."),
    *reference("bill", "bills", "The bill it is about: bill:119-hr-2101."),
    Index("ix_cbo_publications_publication_id", "publication_id"),
    comment="Cost estimates and other publications of the Congressional Budget Office.",
)

TABLES: Final = (cbo_publications,)

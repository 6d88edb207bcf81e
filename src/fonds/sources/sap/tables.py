"""The table of Statements of Administration Policy; columns bear the archive's names."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Index, Integer, Table, Text

from fonds.stores.columns import Json, document_key, reference, texts
from fonds.stores.tables import metadata

saps: Final = Table(
    "saps",
    metadata,
    document_key("sap:2025-01-22/<hash>, documents.id: one for each statement and bill."),
    Column("document_title", Text, nullable=False, comment="As published, spaces folded."),
    *texts(
        bill="The bill this row is about, as the archive codes it: hr2101; NULL for none.",
    ),
    *reference("bill", "bills", "The same as an id: bill:119-hr-2101."),
    Column("bills", Json, nullable=False, comment="All bills of the statement, as coded."),
    Column("congress", Integer, comment="As stated, else that of date_issued."),
    *texts(
        date_issued="ISO day.",
        file="The PDF's place in the archive.",
        url="Its page at the American Presidency Project, before 2009.",
        fetched_from_url="Where the White House had the PDF.",
        date_fetched="When the archive fetched it.",
        source="The list it was found in.",
        rescinded="What the archive says of its withdrawal; NULL while it stands.",
    ),
    Index("ix_saps_date_issued", "date_issued"),
    comment="Statements of Administration Policy.",
)

TABLES: Final = (saps,)

"""Tables of the taxonomy source: the terms and agencies that other sources name."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text

from fonds.stores.columns import task_key, texts
from fonds.stores.tables import metadata

AGENCY_TEXTS: Final = {
    "short_name": "USDA.",
    "slug": "The name in addresses: agriculture-department.",
    "url": "Its page at federalregister.gov.",
    "agency_url": "Its own site.",
    "json_url": "Its record in the API.",
    "description": "What it does, as the Federal Register describes it.",
}

policy_areas: Final = Table(
    "policy_areas",
    metadata,
    Column("name", Text, primary_key=True, comment="As bills state it: Agriculture and Food."),
    Column("ord", Integer, nullable=False, comment="Place in the publisher's list, from 1."),
    task_key(),
    comment="Policy areas, one of which the Congressional Research Service assigns to a bill.",
)

subjects: Final = Table(
    "subjects",
    metadata,
    Column(
        "vocabulary",
        Text,
        primary_key=True,
        comment="subjects or names, in use since 2009; liv, the vocabulary until 2008.",
    ),
    Column("top_term", Text, primary_key=True, comment="The heading the term is listed under."),
    Column("name", Text, primary_key=True, comment="The term, as bills state it."),
    Column("ord", Integer, nullable=False, comment="Place below its heading, from 1."),
    Column("policy_area_ref", Text, comment="The heading, where it is a policy area."),
    Column(
        "policy_area",
        ForeignKey("policy_areas.name", ondelete="SET NULL"),
        info={"resolves": "policy_area_ref"},
        comment="policy_areas.name once it is loaded.",
    ),
    task_key(),
    Index("ix_subjects_name", "name"),
    Index("ix_subjects_policy_area", "policy_area"),
    comment="Subject terms the Congressional Research Service describes bills by.",
)

agencies: Final = Table(
    "agencies",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False, comment="As upstream."),
    Column("name", Text, nullable=False, comment="Agriculture Department."),
    Column("parent_ref", Integer, comment="Id of the department above, as upstream states it."),
    Column(
        "parent_id",
        ForeignKey("agencies.id", ondelete="SET NULL"),
        info={"resolves": "parent_ref"},
        comment="The department above, once it is loaded.",
    ),
    *texts(**AGENCY_TEXTS),
    task_key(),
    Index("ix_agencies_slug", "slug"),
    Index("ix_agencies_parent_id", "parent_id"),
    comment="Federal agencies as the Federal Register knows them.",
)

TABLES: Final = (policy_areas, subjects, agencies)
"""Parents before children."""

"""Tables of the committees source; columns are named as the publisher names its fields."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Boolean, Column, Integer, Table, Text

from fonds.stores.columns import document_key, owned_by, reference, task_key, texts
from fonds.stores.tables import metadata

COMMITTEE_TEXTS: Final = {
    "house_committee_id": "Two letters of the Clerk of the House.",
    "senate_committee_id": "Four letters of the Senate.",
    "url": "Website.",
    "minority_url": "Website of the minority.",
    "address": "Office.",
    "phone": "Office.",
    "rss_url": "Feed.",
    "minority_rss_url": "Feed of the minority.",
    "jurisdiction": "What it has to decide on, in its own words.",
    "jurisdiction_source": "Where those words stand.",
    "wikipedia": "Name of the article.",
    "youtube_id": "Official channel.",
}

committees: Final = Table(
    "committees",
    metadata,
    document_key("committee:<code>"),
    Column("thomas_id", Text, nullable=False, comment="Four letters; two digits below another."),
    Column("type", Text, nullable=False, comment="house, senate or joint."),
    Column("name", Text, nullable=False, comment="Without `Subcommittee on` in most cases."),
    *reference("parent", "committees", "committee:<code> of the committee above."),
    Column("is_current", Boolean, comment="Stands in the current list; NULL where nothing says."),
    *texts(**COMMITTEE_TEXTS),
)

committee_names: Final = Table(
    "committee_names",
    metadata,
    owned_by("committees", "committee_id"),
    Column("congress", Integer, primary_key=True, comment="In which it was called so."),
    Column("name", Text, nullable=False, comment="As THOMAS had it; not always the official one."),
)

committee_congresses: Final = Table(
    "committee_congresses",
    metadata,
    owned_by("committees", "committee_id"),
    Column("congress", Integer, primary_key=True, comment="In which bills were referred to it."),
)

committee_members: Final = Table(
    "committee_members",
    metadata,
    *reference("committee", "committees", "committee:<code>", primary_key=True),
    Column("bioguide", Text, primary_key=True, comment="Of the Biographical Directory."),
    *reference("legislator", "legislators", "legislator:<bioguide>"),
    Column("ord", Integer, nullable=False, comment="Place in the publisher's list."),
    *texts(name="As listed, for reading only.", party="majority or minority."),
    Column("rank", Integer, comment="Within the party's side."),
    *texts(
        title="Chairman, Ranking Member, Ex Officio …",
        chamber="senate or house, on joint committees.",
        start_date="First day, ISO 8601, where known.",
        source="Where the assignment was announced, where known.",
    ),
    task_key(),
)

"""The tables of members' statements and of the feeds they come from."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds.stores.columns import Json, Timestamp, document_key, reference, task_key, texts
from fonds.stores.tables import metadata

member_feeds: Final = Table(
    "member_feeds",
    metadata,
    Column("bioguide", Text, primary_key=True, comment="The member."),
    *reference("legislator", "legislators", "The member as an id: legislator:C000127."),
    *texts(
        member="Rep. Cornelius F. Pettibone.",
        url="The member's site.",
        rss_url="Where the feed is asked for.",
        title="As the feed calls itself; NULL where there is none.",
    ),
    Column("is_guessed", Boolean, nullable=False, comment="No list names it; it was tried."),
    Column("items", Integer, comment="Entries at the last look; NULL where there is no feed."),
    task_key(),
    comment="Feeds of members of Congress.",
)

member_statements: Final = Table(
    "member_statements",
    metadata,
    document_key("statement:C000127/<hash>, documents.id."),
    *texts(bioguide="The member; NULL for a feed nobody knows the member of."),
    *reference("legislator", "legislators", "The member as an id: legislator:C000127."),
    Column("title", Text, nullable=False, comment="As the feed has it, escapes undone."),
    *texts(
        link="The statement's page.",
        guid="As the feed has it: an address, or `14637 at http://…`.",
        description="The feed's summary as plain text; Senate feeds have none.",
        feed="Where the feed was asked for.",
    ),
    Column("pub_date", Timestamp, comment="pubDate or published of the feed."),
    Column("categories", Json, nullable=False, comment="As the feed has them."),
    Index("ix_member_statements_bioguide", "bioguide"),
    comment="Press releases and other statements of members of Congress.",
)

TABLES: Final = (member_feeds, member_statements)

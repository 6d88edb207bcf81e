"""Tables of the member_statements source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fonds.stores.columns import Json, Timestamp

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_member_feeds()
    _create_member_statements()


def _create_member_feeds() -> None:
    op.create_table(
        "member_feeds",
        sa.Column("bioguide", sa.Text(), nullable=False, comment="The member."),
        sa.Column(
            "legislator_ref",
            sa.Text(),
            nullable=True,
            comment="The member as an id: legislator:C000127.",
        ),
        sa.Column(
            "legislator_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
        sa.Column("member", sa.Text(), nullable=True, comment="Rep. Cornelius F. Pettibone."),
        sa.Column("url", sa.Text(), nullable=True, comment="The member's site."),
        sa.Column("rss_url", sa.Text(), nullable=True, comment="Where the feed is asked for."),
        sa.Column(
            "title",
            sa.Text(),
            nullable=True,
            comment="As the feed calls itself; NULL where there is none.",
        ),
        sa.Column(
            "is_guessed", sa.Boolean(), nullable=False, comment="No list names it; it was tried."
        ),
        sa.Column(
            "items",
            sa.Integer(),
            nullable=True,
            comment="Entries at the last look; NULL where there is no feed.",
        ),
        sa.Column(
            "task_key", sa.Text(), nullable=True, comment="The input this row was last loaded from."
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_member_feeds_legislator_id")
        ),
        sa.PrimaryKeyConstraint("bioguide", name=op.f("pk_member_feeds")),
        comment="Feeds of members of Congress.",
    )
    op.create_index(
        op.f("ix_member_feeds_legislator_id"), "member_feeds", ["legislator_id"], unique=False
    )


def _create_member_statements() -> None:
    op.create_table(
        "member_statements",
        sa.Column(
            "id", sa.Text(), nullable=False, comment="statement:C000127/<hash>, documents.id."
        ),
        sa.Column(
            "bioguide",
            sa.Text(),
            nullable=True,
            comment="The member; NULL for a feed nobody knows the member of.",
        ),
        sa.Column(
            "legislator_ref",
            sa.Text(),
            nullable=True,
            comment="The member as an id: legislator:C000127.",
        ),
        sa.Column(
            "legislator_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
        sa.Column(
            "title", sa.Text(), nullable=False, comment="As the feed has it, escapes undone."
        ),
        sa.Column("link", sa.Text(), nullable=True, comment="The statement's page."),
        sa.Column(
            "guid",
            sa.Text(),
            nullable=True,
            comment="As the feed has it: an address, or `14637 at http://…`.",
        ),
        sa.Column(
            "description",
            sa.Text(),
            nullable=True,
            comment="The feed's summary as plain text; Senate feeds have none.",
        ),
        sa.Column("feed", sa.Text(), nullable=True, comment="Where the feed was asked for."),
        sa.Column(
            "pub_date", Timestamp(), nullable=True, comment="pubDate or published of the feed."
        ),
        sa.Column("categories", Json, nullable=False, comment="As the feed has them."),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_member_statements_id")),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_member_statements_legislator_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_member_statements")),
        comment="Press releases and other statements of members of Congress.",
    )
    op.create_index(
        "ix_member_statements_bioguide", "member_statements", ["bioguide"], unique=False
    )
    op.create_index(
        op.f("ix_member_statements_legislator_id"),
        "member_statements",
        ["legislator_id"],
        unique=False,
    )

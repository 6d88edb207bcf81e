"""Tables of the committees source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_committees()
    _create_committee_congresses()
    _create_committee_members()
    _create_committee_names()


def _create_committees() -> None:
    op.create_table(
        "committees",
        sa.Column("id", sa.Text(), nullable=False, comment="committee:<code>"),
        sa.Column(
            "thomas_id",
            sa.Text(),
            nullable=False,
            comment="Four letters; two digits below another.",
        ),
        sa.Column("type", sa.Text(), nullable=False, comment="house, senate or joint."),
        sa.Column(
            "name", sa.Text(), nullable=False, comment="Without `Subcommittee on` in most cases."
        ),
        sa.Column(
            "parent_ref",
            sa.Text(),
            nullable=True,
            comment="committee:<code> of the committee above.",
        ),
        sa.Column(
            "parent_id", sa.Text(), nullable=True, comment="committees.id once it is loaded."
        ),
        sa.Column(
            "is_current",
            sa.Boolean(),
            nullable=True,
            comment="Stands in the current list; NULL where nothing says.",
        ),
        sa.Column(
            "house_committee_id",
            sa.Text(),
            nullable=True,
            comment="Two letters of the Clerk of the House.",
        ),
        sa.Column(
            "senate_committee_id", sa.Text(), nullable=True, comment="Four letters of the Senate."
        ),
        sa.Column("url", sa.Text(), nullable=True, comment="Website."),
        sa.Column("minority_url", sa.Text(), nullable=True, comment="Website of the minority."),
        sa.Column("address", sa.Text(), nullable=True, comment="Office."),
        sa.Column("phone", sa.Text(), nullable=True, comment="Office."),
        sa.Column("rss_url", sa.Text(), nullable=True, comment="Feed."),
        sa.Column("minority_rss_url", sa.Text(), nullable=True, comment="Feed of the minority."),
        sa.Column(
            "jurisdiction",
            sa.Text(),
            nullable=True,
            comment="What it has to decide on, in its own words.",
        ),
        sa.Column(
            "jurisdiction_source", sa.Text(), nullable=True, comment="Where those words stand."
        ),
        sa.Column("wikipedia", sa.Text(), nullable=True, comment="Name of the article."),
        sa.Column("youtube_id", sa.Text(), nullable=True, comment="Official channel."),
        sa.ForeignKeyConstraint(["id"], ["documents.id"], name=op.f("fk_committees_id")),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["committees.id"], name=op.f("fk_committees_parent_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_committees")),
    )
    op.create_index(op.f("ix_committees_parent_id"), "committees", ["parent_id"], unique=False)


def _create_committee_congresses() -> None:
    op.create_table(
        "committee_congresses",
        sa.Column("committee_id", sa.Text(), nullable=False, comment="committees.id"),
        sa.Column(
            "congress", sa.Integer(), nullable=False, comment="In which bills were referred to it."
        ),
        sa.ForeignKeyConstraint(
            ["committee_id"],
            ["committees.id"],
            name=op.f("fk_committee_congresses_committee_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("committee_id", "congress", name=op.f("pk_committee_congresses")),
    )


def _create_committee_members() -> None:
    op.create_table(
        "committee_members",
        sa.Column("committee_ref", sa.Text(), nullable=False, comment="committee:<code>"),
        sa.Column(
            "committee_id", sa.Text(), nullable=True, comment="committees.id once it is loaded."
        ),
        sa.Column("bioguide", sa.Text(), nullable=False, comment="Of the Biographical Directory."),
        sa.Column("legislator_ref", sa.Text(), nullable=True, comment="legislator:<bioguide>"),
        sa.Column(
            "legislator_id", sa.Text(), nullable=True, comment="legislators.id once it is loaded."
        ),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place in the publisher's list."),
        sa.Column("name", sa.Text(), nullable=True, comment="As listed, for reading only."),
        sa.Column("party", sa.Text(), nullable=True, comment="majority or minority."),
        sa.Column("rank", sa.Integer(), nullable=True, comment="Within the party's side."),
        sa.Column(
            "title", sa.Text(), nullable=True, comment="Chairman, Ranking Member, Ex Officio …"
        ),
        sa.Column(
            "chamber", sa.Text(), nullable=True, comment="senate or house, on joint committees."
        ),
        sa.Column(
            "start_date", sa.Text(), nullable=True, comment="First day, ISO 8601, where known."
        ),
        sa.Column(
            "source",
            sa.Text(),
            nullable=True,
            comment="Where the assignment was announced, where known.",
        ),
        sa.Column(
            "task_key", sa.Text(), nullable=True, comment="The input this row was last loaded from."
        ),
        sa.ForeignKeyConstraint(
            ["committee_id"], ["committees.id"], name=op.f("fk_committee_members_committee_id")
        ),
        sa.ForeignKeyConstraint(
            ["legislator_id"], ["legislators.id"], name=op.f("fk_committee_members_legislator_id")
        ),
        sa.PrimaryKeyConstraint("committee_ref", "bioguide", name=op.f("pk_committee_members")),
    )
    op.create_index(
        op.f("ix_committee_members_committee_id"),
        "committee_members",
        ["committee_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_committee_members_legislator_id"),
        "committee_members",
        ["legislator_id"],
        unique=False,
    )


def _create_committee_names() -> None:
    op.create_table(
        "committee_names",
        sa.Column("committee_id", sa.Text(), nullable=False, comment="committees.id"),
        sa.Column("congress", sa.Integer(), nullable=False, comment="In which it was called so."),
        sa.Column(
            "name",
            sa.Text(),
            nullable=False,
            comment="As THOMAS had it; not always the official one.",
        ),
        sa.ForeignKeyConstraint(
            ["committee_id"],
            ["committees.id"],
            name=op.f("fk_committee_names_committee_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("committee_id", "congress", name=op.f("pk_committee_names")),
    )

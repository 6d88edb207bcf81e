"""Tables of the taxonomy source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_policy_areas()
    _create_subjects()


def _create_policy_areas() -> None:
    op.create_table(
        "policy_areas",
        sa.Column(
            "name", sa.Text(), nullable=False, comment="As bills state it: Agriculture and Food."
        ),
        sa.Column(
            "ord", sa.Integer(), nullable=False, comment="Place in the publisher's list, from 1."
        ),
        sa.Column(
            "task_key", sa.Text(), nullable=True, comment="The input this row was last loaded from."
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_policy_areas")),
        comment="Policy areas, one of which the Congressional Research Service assigns to a bill.",
    )


def _create_subjects() -> None:
    op.create_table(
        "subjects",
        sa.Column(
            "vocabulary",
            sa.Text(),
            nullable=False,
            comment="subjects or names, in use since 2009; liv, the vocabulary until 2008.",
        ),
        sa.Column(
            "top_term", sa.Text(), nullable=False, comment="The heading the term is listed under."
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="The term, as bills state it."),
        sa.Column("ord", sa.Integer(), nullable=False, comment="Place below its heading, from 1."),
        sa.Column(
            "policy_area_ref",
            sa.Text(),
            nullable=True,
            comment="The heading, where it is a policy area.",
        ),
        sa.Column(
            "policy_area", sa.Text(), nullable=True, comment="policy_areas.name once it is loaded."
        ),
        sa.Column(
            "task_key", sa.Text(), nullable=True, comment="The input this row was last loaded from."
        ),
        sa.ForeignKeyConstraint(
            ["policy_area"],
            ["policy_areas.name"],
            name=op.f("fk_subjects_policy_area"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("vocabulary", "top_term", "name", name=op.f("pk_subjects")),
        comment="Subject terms the Congressional Research Service describes bills by.",
    )
    op.create_index("ix_subjects_name", "subjects", ["name"], unique=False)
    op.create_index("ix_subjects_policy_area", "subjects", ["policy_area"], unique=False)

"""Describe nodes that have no text, or whose text is missing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return  # SQLite has no comments
    op.alter_column(
        "nodes",
        "body_ref",
        existing_type=sa.Text(),
        existing_nullable=True,
        comment="<pack>#<offset>+<length>; NULL: no text of its own, or missing.",
    )
    op.alter_column(
        "nodes",
        "status",
        existing_type=sa.Text(),
        existing_nullable=True,
        comment="repealed, reserved, …; `missing: ` and why; NULL is in force.",
    )

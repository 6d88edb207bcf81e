"""Check the states of addresses of websites."""

from __future__ import annotations

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

STATES = (
    "CASE kind WHEN 'page' THEN state IN ('waiting', 'visited', 'failed', 'forbidden') "
    "ELSE state IN ('discovered', 'downloading', 'downloaded', 'validated', 'stored', "
    "'indexed', 'failed', 'forbidden') END"
)


def upgrade() -> None:
    op.execute(
        "UPDATE site_addresses SET state = 'forbidden' "
        "WHERE state = 'failed' AND error LIKE '%robots.txt forbids it'"
    )
    with op.batch_alter_table("site_addresses") as table:
        table.create_check_constraint(op.f("state"), STATES)

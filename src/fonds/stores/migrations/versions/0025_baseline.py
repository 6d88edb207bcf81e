"""The first revision. It is empty: a new database is made from the declarations, and stamped.

A database of this revision has what `tests/schemas/0025.*.sql` makes. Whatever changes a declaration
later comes with a revision that changes databases alike.
"""

revision = "0025"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing comes before."""

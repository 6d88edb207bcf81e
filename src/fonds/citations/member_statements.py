"""How a statement of a member of Congress is cited.

The Bluebook's rule 17.2.3 on unpublished materials covers press releases: who issued it, what it is
called, and the day: `Press Release, Rep. Cornelius F. Pettibone, Harbors First (Mar. 4, 2025).`
"""

from __future__ import annotations

from datetime import date

from fonds.citations.dates import bluebook_date


def cite_statement(*, member: str, title: str, published: date | None) -> str:
    """`Press Release, Rep. X, Title (Mar. 4, 2025).`; without a day the parenthesis is left out."""
    named = f"Press Release, {member}, {title.rstrip('.')}"
    return f"{named} ({bluebook_date(published)})." if published else f"{named}."

"""How a product of the Congressional Research Service is cited."""

from __future__ import annotations

from datetime import date

from fonds.citations.dates import bluebook_date


def cite_crs(*, number: str, title: str, published: date | None) -> str:
    """`Cong. Rsch. Serv., R48481, Wildfire Emergency Spending (Mar. 15, 2025).`; undated without.

    The day is that of the newest version.
    """
    words = title.strip().rstrip(".").rstrip()
    named = f"{number}, {words}" if words and words != number else number
    dated = f" ({bluebook_date(published)})" if published else ""
    return f"Cong. Rsch. Serv., {named}{dated}."

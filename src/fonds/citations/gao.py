"""How a product of the Government Accountability Office is cited."""

from __future__ import annotations

from datetime import date

from fonds.citations.months import bluebook_month


def cite_gao(*, product: str, title: str, published: date | None) -> str:
    """`U.S. Gov't Accountability Off., GAO-25-107521, Title (Apr. 2025).`; undated without."""
    named = f"U.S. Gov't Accountability Off., {product}, {title.rstrip('.')}"
    return f"{named} ({bluebook_month(published)})." if published else f"{named}."

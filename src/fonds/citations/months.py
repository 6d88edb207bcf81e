"""Months as citations of reports write them."""

from __future__ import annotations

from datetime import date

from fonds.citations.dates import bluebook_date


def bluebook_month(day: date) -> str:
    """`Mar. 2026`."""
    month, _, year = bluebook_date(day).split()
    return f"{month} {year}"

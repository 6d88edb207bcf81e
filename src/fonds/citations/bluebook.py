"""Dates and months as citations print them."""

from __future__ import annotations

from datetime import date
from typing import Final

# The Bluebook's table T12: the short months are never cut, and September has four letters.
_MONTHS: Final = (
    "Jan.",
    "Feb.",
    "Mar.",
    "Apr.",
    "May",
    "June",
    "July",
    "Aug.",
    "Sept.",
    "Oct.",
    "Nov.",
    "Dec.",
)


def bluebook_date(day: date) -> str:
    """`Mar. 4, 2026`."""
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


def bluebook_month(day: date) -> str:
    """`Mar. 2026`."""
    month, _, year = bluebook_date(day).split()
    return f"{month} {year}"

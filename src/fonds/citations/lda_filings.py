"""How a filing under the Lobbying Disclosure Act is cited."""

from __future__ import annotations

import re
from typing import Final

# Q3, 3A, 3T, 3@Y; MM, MA, M@; YY, YA, Y@; RR and RA for registrations.
_QUARTER: Final = re.compile(r"Q?([1-4])")
_HALVES: Final = {"M": "Mid-Year", "Y": "Year-End"}
_PERIODS: Final = {
    "first_quarter": "Q1",
    "second_quarter": "Q2",
    "third_quarter": "Q3",
    "fourth_quarter": "Q4",
    "mid_year": "Mid-Year",
    "year_end": "Year-End",
}


def cite_lda_filings(
    *,
    filing_uuid: str,
    client: str | None,
    registrant: str | None,
    filing_type: str | None,
    filing_period: str | None,
    year: int | None,
) -> str:
    """The citation, ready to paste; what is unknown is left out.

    `Lobbying Disclosure Act Filing {filing_uuid}, {client} via {registrant} (Q3 2025).`
    """
    parties = " via ".join(filter(None, (client, registrant)))
    cited = ", ".join(filter(None, (f"Lobbying Disclosure Act Filing {filing_uuid}", parties)))
    when = period_name(filing_type, filing_period, year)
    return f"{cited} ({when})." if when else f"{cited.removesuffix('.')}."


def period_name(filing_type: str | None, filing_period: str | None, year: int | None) -> str:
    """`Q3 2025`, `Mid-Year 2005`, or the year alone for a registration, which reports on none."""
    named = _period(filing_type or "", filing_period or "")
    return " ".join(filter(None, (named, str(year or ""))))


def _period(filing_type: str, filing_period: str) -> str:
    if filing_type.startswith("R"):
        return ""
    if quarter := _QUARTER.match(filing_type):
        return f"Q{quarter[1]}"
    return _HALVES.get(filing_type[:1]) or _PERIODS.get(filing_period, "")

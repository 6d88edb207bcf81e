"""How a bill and a version of its text are cited.

Bills follow the Bluebook's rule 13.2: `H.R. 1234, 119th Cong. (2025).`, resolutions with its own
abbreviations (`H.R.J. Res. 41`, `H.R. Res. 5`), not with those of congress.gov. A version of the
text is told apart by the parenthesis of rule 13.2(b): what had happened to the bill, and when:
`H.R. 1234, 119th Cong. (as introduced in House, Mar. 4, 2025).`
"""

from __future__ import annotations

from datetime import date
from typing import Final

from fonds.citations.dates import bluebook_date

ABBREVIATIONS: Final = {
    "hr": "H.R.",
    "s": "S.",
    "hjres": "H.R.J. Res.",
    "sjres": "S.J. Res.",
    "hconres": "H.R. Con. Res.",
    "sconres": "S. Con. Res.",
    "hres": "H.R. Res.",
    "sres": "S. Res.",
}

_CONGRESS_TEENS: Final = range(11, 14)
_CONGRESS_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}


def cite_bill(*, congress: int, kind: str, number: int, introduced: date | None) -> str:
    """`H.R. 1234, 119th Cong. (2025).`; without a date the year its Congress began."""
    year = introduced.year if introduced else first_year(congress)
    return f"{_numbered(congress, kind, number)} ({year})."


def cite_bill_text(
    *, congress: int, kind: str, number: int, stage: str, published: date | None
) -> str:
    """`H.R. 1234, 119th Cong. (as introduced in House, Mar. 4, 2025).`; `stage` is that phrase."""
    when = f", {bluebook_date(published)}" if published else ""
    return f"{_numbered(congress, kind, number)} ({stage}{when})."


def ordinal(number: int) -> str:
    """`119th`, `122nd`: as congress.gov counts, in addresses and in names."""
    ending = "th" if number % 100 in _CONGRESS_TEENS else _CONGRESS_ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


def first_year(congress: int) -> int:
    """The odd year a Congress first met: 2025 for the 119th."""
    return 2 * congress + 1787


def _numbered(congress: int, kind: str, number: int) -> str:
    # The Bluebook writes 2d and 3d where congress.gov writes 2nd and 3rd.
    counted = ordinal(congress).replace("nd", "d").replace("rd", "d")
    return f"{ABBREVIATIONS[kind]} {number}, {counted} Cong."

"""Citations found in texts, the form in which they are compared with names, and printed dates.

The form has no periods, section signs and editors' habits, so that `42 U.S.C. § 1396a` and
`42 USC 1396a` are the same text. Forms of different kinds never coincide.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final, Literal, NamedTuple

_DASHES: Final = re.compile("[\u2010-\u2015\u2212]")
_NOT_PART_OF_A_NUMBER: Final = re.compile(r"[\s*_]+")

_MAX_NAME_LENGTH: Final = 80
FIRST_CONGRESS: Final = 1789
_SESSION_BEGINS: Final = (1, 3)
"""Month and day since the Twentieth Amendment."""
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


def may_be_citation(name: str) -> bool:
    """Whether a name could be a citation, and not a title, an address or a path."""
    return len(name) <= _MAX_NAME_LENGTH and "://" not in name and not name.startswith("/")


def normalized_number(printed: str) -> str:
    """A number as it is compared: one kind of dash, no spaces, no emphasis."""
    if printed.isalnum():
        return printed
    return _NOT_PART_OF_A_NUMBER.sub("", _DASHES.sub("-", printed))


def usc_form(title: int | str, section: str) -> str:
    """`42 USC 1396a`."""
    return f"{title} USC {normalized_number(section)}"


def usc_appendix_form(title: int | str, section: str = "") -> str:
    """`50 USC app 1701`, and `26 USC app` for all of it."""
    return f"{title} USC app {normalized_number(section)}".rstrip()


def usc_chapter_form(title: int | str, chapter: str) -> str:
    """`44 USC chapter 35`."""
    return f"{title} USC chapter {normalized_number(chapter)}"


def cfr_form(title: int | str, section: str) -> str:
    """`40 CFR 60.112b`."""
    return f"{title} CFR {normalized_number(section)}"


def cfr_part_form(title: int | str, part: str) -> str:
    """`40 CFR part 60`."""
    return f"{title} CFR part {normalized_number(part)}"


def public_law_form(congress: int | str, number: int | str) -> str:
    """`PL 117-58`."""
    return f"PL {int(congress)}-{int(number)}"


def stat_form(volume: int | str, page: str) -> str:
    """`135 Stat 429`."""
    return f"{volume} Stat {normalized_number(page).replace(',', '')}"


def bill_form(kind: str, number: int | str, congress: int | str | None) -> str:
    """`119 HR 1234`, or `HR 1234` if the Congress is unknown."""
    bill = f"{kind.upper()} {int(number)}"
    return bill if congress is None else f"{int(congress)} {bill}"


def record_form(volume: int | str, page: str) -> str:
    """`171 Cong Rec H1234`."""
    return f"{volume} Cong Rec {re.sub('[^0-9A-Z]', '', page)}"


def fr_form(volume: int | str, page: str) -> str:
    """`89 FR 12345`."""
    return f"{volume} FR {page.replace(',', '')}"


def report_form(series: str, congress: int | str, number: int | str) -> str:
    """`H Rept 119-100`; `series` is `H`, `S` or `S Exec`."""
    return f"{series} Rept {int(congress)}-{int(number)}"


def order_form(number: str) -> str:
    """`EO 14192`."""
    return f"EO {number.replace(',', '')}"


def case_form(volume: int | str, reporter: str, page: str) -> str:
    """`410 US 113`; `reporter` is one of the forms of `patterns.REPORTERS`."""
    return f"{volume} {reporter} {page}"


def connecticut_form(section: str) -> str:
    """`Conn Gen Stat 12-704e`."""
    return f"Conn Gen Stat {normalized_number(section)}"


def dc_form(section: str) -> str:
    """`DC Code 47-1801.04`."""
    return f"DC Code {normalized_number(section)}"


def congress_of(published_at: str | None) -> int | None:
    """The Congress that sat on a day: 119 for `2025-01-03`, and None where no day is known."""
    try:
        day = date.fromisoformat((published_at or "")[:10])
    except ValueError:
        return None
    year = day.year if (day.month, day.day) >= _SESSION_BEGINS else day.year - 1
    return (year - FIRST_CONGRESS) // 2 + 1 if year >= FIRST_CONGRESS else None


Kind = Literal[
    "usc",
    "cfr",
    "public_law",
    "stat",
    "bill",
    "fr",
    "cong_rec",
    "crs",
    "gao",
    "report",
    "eo",
    "case",
    "conn_gen_stat",
    "dc_code",
]


class CitationMatch(NamedTuple):
    """One citation: its position, its text, and its target."""

    start: int
    end: int
    raw: str
    """Equal to `text[start:end]`."""
    kind: Kind
    target: str
    """The form of `citations.forms`; for a bill of an unknown Congress without the Congress."""
    pinpoint: str | None = None
    """The place within the target: subsections, a page, a part of a report."""


def match_at(
    text: str, start: int, end: int, *, kind: Kind, target: str, pinpoint: str | None = None
) -> CitationMatch:
    """The citation in `text[start:end]`."""
    spot = pinpoint.strip(" ,") if pinpoint else None
    return CitationMatch(start, end, text[start:end], kind, target, spot or None)


def bluebook_date(day: date) -> str:
    """`Mar. 4, 2026`."""
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


def bluebook_month(day: date) -> str:
    """`Mar. 2026`."""
    month, _, year = bluebook_date(day).split()
    return f"{month} {year}"

"""How members of Congress, presidents and vice presidents are named, described and cited.

The files name people but are not themselves something a brief would cite; what a reader can
check is the person's entry in the Biographical Directory, so that is what is cited. Someone
without an entry (a president who never sat in Congress) is cited by the number of the GovTrack
page that `page_for` gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

_CitedRow = Mapping[str, Any]

DIRECTORY: Final = "Biographical Directory of the United States Congress"
GOVTRACK: Final = "GovTrack.us"

_PREFIXES: Final = {
    "sen": "Sen.",
    "rep": "Rep.",
    "prez": "President",
    "viceprez": "Vice President",
}
_PARTY_LETTERS: Final = {"Democrat": "D", "Republican": "R", "Independent": "I"}
# These send a delegate, not a representative; the last two are territories that are no more.
_DELEGATES: Final = frozenset({"AS", "DC", "GU", "MP", "VI", "DK", "OL"})
_RESIDENT_COMMISSIONERS: Final = frozenset({"PR", "PI"})

_PLACES: Final = """
AK Alaska, AL Alabama, AR Arkansas, AZ Arizona, CA California, CO Colorado, CT Connecticut,
DE Delaware, FL Florida, GA Georgia, HI Hawaii, IA Iowa, ID Idaho, IL Illinois, IN Indiana,
KS Kansas, KY Kentucky, LA Louisiana, MA Massachusetts, MD Maryland, ME Maine, MI Michigan,
MN Minnesota, MO Missouri, MS Mississippi, MT Montana, NC North Carolina, ND North Dakota,
NE Nebraska, NH New Hampshire, NJ New Jersey, NM New Mexico, NV Nevada, NY New York, OH Ohio,
OK Oklahoma, OR Oregon, PA Pennsylvania, RI Rhode Island, SC South Carolina, SD South Dakota,
TN Tennessee, TX Texas, UT Utah, VA Virginia, VT Vermont, WA Washington, WI Wisconsin,
WV West Virginia, WY Wyoming, AS American Samoa, DC the District of Columbia, GU Guam,
MP the Northern Mariana Islands, PR Puerto Rico, VI the Virgin Islands, DK Dakota Territory,
OL the Territory of Orleans, PI the Philippines
"""
_PLACE_NAMES: Final = {
    code: name for code, _, name in (entry.strip().partition(" ") for entry in _PLACES.split(","))
}


def citation_for(row: _CitedRow) -> str:
    """The person of a row of `legislators` or `executives`, ready to cite.

    `Sen. Ada Palmer (D-WA), Biographical Directory U.S. Cong., P000901.` and, without an entry
    in the directory, `President Cyrus Holt, GovTrack.us, No. 498001.`
    """
    if row.get("bioguide"):
        return f"{title_for(row)}, Biographical Directory U.S. Cong., {row['bioguide']}."
    return f"{title_for(row)}, {GOVTRACK}, No. {row['govtrack']}."


def title_for(row: _CitedRow) -> str:
    """`Sen. Ada Palmer (D-WA)`: the last office held, the name, the party and the state.

    A party without a customary letter is written out: `Rep. Enos Ward (Whig-OH)`.
    """
    named = f"{_prefix(row)} {full_name(row)}".strip()
    if row.get("type") in {"prez", "viceprez"}:
        return named
    party = _PARTY_LETTERS.get(row.get("party") or "", row.get("party"))
    seat = "-".join(part for part in (party, row.get("state")) if part)
    return f"{named} ({seat})" if seat else named


def full_name(row: _CitedRow) -> str:
    """The name as the chamber writes it, or else put together from its parts."""
    if row.get("official_full"):
        return str(row["official_full"])
    parts = (row.get(part) for part in ("first", "middle", "last", "suffix"))
    return " ".join(part for part in parts if part)


def page_for(row: _CitedRow) -> str:
    """The page a person would open."""
    if row.get("bioguide"):
        return f"https://bioguide.congress.gov/search/bio/{row['bioguide']}"
    return f"https://www.govtrack.us/congress/members/{row['govtrack']}"


def publisher_for(row: _CitedRow) -> str:
    """Who answers for that page."""
    return DIRECTORY if row.get("bioguide") else GOVTRACK


def summary_for(
    row: _CitedRow,
    *,
    terms: Iterable[_CitedRow],
    roles: Iterable[_CitedRow] = (),
    affiliations: Iterable[_CitedRow] = (),
    other_names: Iterable[_CitedRow] = (),
) -> str:
    """Whole sentences that a search for a state, a party, an office or a year finds."""
    born = f", born {row['birthday']}" if row.get("birthday") else ""
    called = f", called {row['nickname']}" if row.get("nickname") else ""
    sentences = [
        f"{full_name(row)}{called}{born}",
        *_service(terms),
        *_standing(row),
        *_leadership(roles),
        *_party_changes(affiliations),
        *(
            f"Also known as {full_name({**row, 'official_full': None, **_given(name)})}"
            for name in other_names
        ),
    ]
    return " ".join(f"{sentence.rstrip('.')}." for sentence in sentences)


def place_name(state: str) -> str:
    """`Washington` for `WA`; a code nobody knows is its own name."""
    return _PLACE_NAMES.get(state, state)


def office_name(term_type: str, state: str | None) -> str:
    """`U.S. Senator`, `Delegate`, `Resident Commissioner`, `President of the United States`."""
    if term_type == "rep" and state in _DELEGATES:
        return "Delegate"
    if term_type == "rep" and state in _RESIDENT_COMMISSIONERS:
        return "Resident Commissioner"
    return {
        "sen": "U.S. Senator",
        "rep": "U.S. Representative",
        "prez": "President of the United States",
        "viceprez": "Vice President of the United States",
    }.get(term_type, term_type)


def _prefix(row: _CitedRow) -> str:
    if row.get("type") == "rep" and row.get("state") in _DELEGATES:
        return "Del."
    if row.get("type") == "rep" and row.get("state") in _RESIDENT_COMMISSIONERS:
        return "Res. Comm'r"
    return _PREFIXES.get(row.get("type") or "", "")


def _service(terms: Iterable[_CitedRow]) -> Iterator[str]:
    for seat, held in groupby(terms, key=_seat):
        yield _dated(seat, held)


def _seat(term: _CitedRow) -> str:
    state, district = term.get("state"), term.get("district")
    seat = office_name(term["type"], state)
    if state:
        seat += f" from {place_name(state)}"
    if district is not None and district >= 0:
        seat += f", district {district}" if district else " at large"
    caucus = f", caucus {term['caucus']}" if term.get("caucus") else ""
    return f"{seat} ({term['party']}{caucus})" if term.get("party") else seat


def _dated(what: str, spans: Iterable[_CitedRow]) -> str:
    # Terms that follow each other are one stretch; a seat won back later begins another.
    stretches: list[list[str]] = []
    for span in spans:
        first, last = (span.get("start") or "")[:4], (span.get("end_date") or "")[:4]
        if stretches and stretches[-1][1] >= first:
            stretches[-1][1] = last
        elif first:
            stretches.append([first, last])
    years = [a if a == b else f"{a}–{b}" for a, b in stretches]
    return ", ".join([what, *years])


def _standing(row: _CitedRow) -> Iterator[str]:
    if row.get("in_office") is True:
        yield f"In office; the term ends {row['end_date']}" if row.get("end_date") else "In office"
    elif row.get("in_office") is False:
        yield "Former member of Congress"


def _leadership(roles: Iterable[_CitedRow]) -> Iterator[str]:
    for title, held in groupby(roles, key=lambda role: role["title"]):
        yield _dated(title, held)


def _party_changes(affiliations: Iterable[_CitedRow]) -> Iterator[str]:
    held = [f"{item['party']} from {item['start']}" for item in affiliations if item.get("party")]
    if held:
        yield f"Changed party or caucus during a term: {', '.join(held)}"


def _given(name: _CitedRow) -> dict[str, Any]:
    return {part: value for part, value in name.items() if value is not None}

"""From what either chamber says of a vote to rows and a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from sqlalchemy import Table

from fonds import ids
from fonds.citations.roll_call_votes import cite_roll_call_votes
from fonds.errors import MalformedError
from fonds.model import Archived, Document, ParsedRecord
from fonds.sources.families.bill_numbers import read_bill_code
from fonds.sources.roll_call_votes import tables

NAME: Final = "roll_call_votes"
PUBLISHERS: Final = {
    "house": "Office of the Clerk, U.S. House of Representatives",
    "senate": "U.S. Senate",
}
CLERK: Final = "https://clerk.house.gov"
SENATE: Final = "https://www.senate.gov/legislative/LIS"

Row = dict[str, Any]

_COUNTED: Final = {
    **dict.fromkeys(("yea", "aye", "guilty"), "yea"),
    **dict.fromkeys(("nay", "no", "not guilty"), "nay"),
    **dict.fromkeys(("present", "present, giving live pair"), "present"),
    "not voting": "not_voting",
}
_COUNT_NAMES: Final = {
    "yea": "yea",
    "nay": "nay",
    "present": "present",
    "not_voting": "not voting",
}
_SPACING: Final = re.compile(r"[\s.]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """One year of a Congress: its votes are numbered from 1."""

    year: int

    @property
    def congress(self) -> int:
        """`119` for 2025 and 2026."""
        return (self.year - 1787) // 2

    @property
    def number(self) -> int:
        """The first session of a Congress is held in the odd year."""
        return 1 if self.year % 2 else 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Vote:
    """A vote as its chamber describes it, in the columns of our tables."""

    chamber: str
    congress: int
    session: int
    number: int
    day: date | None
    title: str | None
    """What was voted on, in one line."""
    row: Row
    positions: Sequence[Row]
    totals: Sequence[Row] = ()
    documents: Sequence[Row] = ()
    amendments: Sequence[Row] = ()

    @property
    def id(self) -> str:
        """`vote:house/119-1/362`."""
        return ids.vote_id(self.chamber, self.congress, self.session, self.number)

    @property
    def year(self) -> int:
        """Of the session, by which both chambers file their votes."""
        return 1786 + 2 * self.congress + self.session


def record(vote: Vote, raw: Archived) -> ParsedRecord:
    """The vote with its totals, documents, amendments and positions."""
    status = _status(vote)
    row = {
        "id": vote.id,
        "chamber": vote.chamber,
        "congress": vote.congress,
        "session": vote.session,
        "congress_year": vote.year,
        "number": vote.number,
        "status": status,
        "vote_date": vote.day.isoformat() if vote.day else None,
        **vote.row,
    }
    below = (
        (tables.vote_totals, vote.totals),
        (tables.vote_documents, vote.documents),
        (tables.vote_amendments, vote.amendments),
        (tables.vote_positions, vote.positions),
    )
    return ParsedRecord(
        source=NAME,
        table=tables.roll_call_votes.name,
        key=vote.id,
        payload=row,
        children=tuple(child for table, rows in below for child in _children(vote.id, table, rows)),
        document=_document(vote, row, raw),
    )


def counted_as(position: str) -> str | None:
    """Which of the four counts a printed position belongs to; None for a candidate's name."""
    return _COUNTED.get(position.lower())


def bill_reference(congress: int, name: str | None) -> str | None:
    """The id of the bill that `H R 22` or `S.J.Res. 54` names; None for what is no bill."""
    bill = read_bill_code(_SPACING.sub("", name or ""))
    return bill.document_id(congress) if bill else None


def vote_address(chamber: str, session: Session, number: int) -> str:
    """Where a chamber publishes the XML of a vote."""
    if chamber == "house":
        return f"{CLERK}/evs/{session.year}/roll{number:03}.xml"
    name = f"{session.congress}_{session.number}_{number:05}"
    return f"{SENATE}/roll_call_votes/vote{session.congress}{session.number}/vote_{name}.xml"


def _status(vote: Vote) -> str:
    if vote.positions:
        return "recorded"
    counted = sum(vote.row.get(name) or 0 for name in _COUNT_NAMES)
    if counted or any(total.get("votes") for total in vote.totals):
        raise MalformedError(f"{vote.id} counts votes and names nobody who cast one")
    return "vacated"


def _children(vote: str, table: Table, rows: Iterable[Row]) -> Iterator[ParsedRecord]:
    kind = table.name.removeprefix("vote_")
    for number, row in enumerate(rows, 1):
        yield ParsedRecord(
            source=NAME,
            table=table.name,
            key=f"{vote}#{kind}/{number}",
            payload={"vote_id": vote, "ord": number, **row},
        )


def _document(vote: Vote, row: Row, raw: Archived) -> Document:
    return Document(
        id=vote.id,
        source=NAME,
        kind="roll_call_vote",
        title=_title(vote, row),
        summary=_summary(vote, row),
        source_url=_page(vote),
        source_org=PUBLISHERS[vote.chamber],
        citation_string=cite_roll_call_votes(
            chamber=vote.chamber,
            congress=vote.congress,
            session=vote.session,
            number=vote.number,
            day=vote.day,
        ),
        published_at=row["vote_date"],
        aliases=tuple(_aliases(vote)),
        raw=raw,
    )


def _title(vote: Vote, row: Row) -> str:
    number = f"{vote.chamber.capitalize()} Roll Call Vote {vote.number} ({vote.year})"
    if row["status"] == "vacated":
        return f"{number}: vacated"
    return f"{number}: {vote.title}" if vote.title else number


def _page(vote: Vote) -> str:
    if vote.chamber == "house":
        return f"{CLERK}/Votes/{vote.year}{vote.number}"
    return vote_address("senate", Session(year=vote.year), vote.number).replace(".xml", ".htm")


def _aliases(vote: Vote) -> Iterator[str]:
    yield _page(vote)
    yield vote_address(vote.chamber, Session(year=vote.year), vote.number)
    if vote.chamber == "house":
        yield f"{CLERK}/cgi-bin/vote.asp?year={vote.year}&rollnumber={vote.number}"
    # As GovTrack and the data sets that grew from it call it.
    yield f"{vote.chamber[0]}{vote.number}-{vote.congress}.{vote.year}"


def _summary(vote: Vote, row: Row) -> str | None:
    broken = f"{row['tie_breaker']} voted {row['tie_breaker_vote']}"
    sentences = [
        row["vote_desc"],
        row["vote_title"],
        f"Amendment: {row['amendment_author']}" if row["amendment_author"] else None,
        *(amendment["amendment_purpose"] for amendment in vote.amendments),
        *(document["document_title"] for document in vote.documents),
        row["vote_correction"],
        f"Result: {row['vote_result']}" if row["vote_result"] else None,
        _counts(vote, row) if row["status"] == "recorded" else None,
        broken if row["tie_breaker"] else None,
    ]
    stated = dict.fromkeys(sentence.rstrip(".") for sentence in sentences if sentence)
    return " ".join(f"{sentence}." for sentence in stated) or None


def _counts(vote: Vote, row: Row) -> str:
    candidates = [total for total in vote.totals if total["kind"] == "candidate"]
    if candidates:
        return ", ".join(f"{total['name']} {total['votes']}" for total in candidates)
    counts = (f"{row[name]} {called}" for name, called in _COUNT_NAMES.items() if row[name])
    return ", ".join(counts)

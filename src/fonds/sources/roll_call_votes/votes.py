"""Votes of the House, from the Clerk's XML, and of the Senate, from its own, as rows and documents.

Both state days and times in Washington's time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from sqlalchemy import Table

from fonds.citations.forms import bluebook_date
from fonds.errors import MalformedError
from fonds.model import Archived, Document, ParsedRecord
from fonds.sources.formats import xml
from fonds.sources.formats.congress import bluebook_ordinal, legislator_id, read_bill_code, vote_id
from fonds.sources.formats.days import WASHINGTON, printed_day
from fonds.sources.formats.xml import required, required_whole, text, whole
from fonds.sources.roll_call_votes import tables


def cite_roll_call_votes(
    *, chamber: str, congress: int, session: int, number: int, day: date | None
) -> str:
    """The vote ready to cite.

    `Roll Call Vote No. 362 (House), 119th Cong., 1st Sess. (Mar. 4, 2025).`; without a day the
    parentheses at the end are left out.
    """
    session_name = f"{bluebook_ordinal(congress)} Cong., {bluebook_ordinal(session)} Sess."
    cited = f"Roll Call Vote No. {number} ({chamber.capitalize()}), {session_name}"
    # The period of `Sess.` is the citation's own where no day follows.
    return f"{cited} ({bluebook_date(day)})." if day else cited


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
_COUNTS: Final = ("yea", "nay", "present", "not_voting")
_SPACING: Final = re.compile(r"[\s.]")


@dataclass(frozen=True, kw_only=True, slots=True)
class VoteSession:
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
    """The subject of the vote, in one line."""
    row: Row
    positions: Sequence[Row]
    totals: Sequence[Row] = ()
    documents: Sequence[Row] = ()
    amendments: Sequence[Row] = ()

    @property
    def id(self) -> str:
        """`vote:house/119-1/362`."""
        return vote_id(self.chamber, self.congress, self.session, self.number)

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
    """The id of the bill that `H R 22` or `S.J.Res. 54` names; None if it is not a bill."""
    bill = read_bill_code(_SPACING.sub("", name or ""))
    return bill.document_id(congress) if bill else None


def vote_address(chamber: str, session: VoteSession, number: int) -> str:
    """The address at which a chamber publishes the XML of a vote."""
    if chamber == "house":
        return f"{CLERK}/evs/{session.year}/roll{number:03}.xml"
    name = f"{session.congress}_{session.number}_{number:05}"
    return f"{SENATE}/roll_call_votes/vote{session.congress}{session.number}/vote_{name}.xml"


def _status(vote: Vote) -> str:
    if vote.positions:
        return "recorded"
    counted = sum(vote.row.get(name) or 0 for name in _COUNTS)
    if counted or any(total.get("votes") for total in vote.totals):
        raise MalformedError(f"{vote.id} counts votes, but names no member who cast one")
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
    return vote_address("senate", VoteSession(year=vote.year), vote.number).replace(".xml", ".htm")


def _aliases(vote: Vote) -> Iterator[str]:
    yield _page(vote)
    yield vote_address(vote.chamber, VoteSession(year=vote.year), vote.number)
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
    return ", ".join(f"{row[name]} {name.replace('_', ' ')}" for name in _COUNTS if row[name])


_HOUSE_DAY: Final = re.compile(r"(\d{1,2})-([A-Za-z]{3})[a-z]*(?:-(\d{4}))?")
_SENATE_TIME: Final = re.compile(
    r"([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4})(?:, *(\d{1,2}):(\d\d) ([AP])M)?"
)
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d\d)")
_NOON: Final = 12
_JUNE: Final = 6


def read_day(text: str, year: int | None = None) -> date:
    """`3-Jan-2019`, or `21-Dec` of the given year."""
    match = _HOUSE_DAY.fullmatch(text)
    stated = int(match[3]) if match and match[3] else year
    if match is None or stated is None:
        raise MalformedError(f"{text[:40]!r} is not a day of a vote")
    return _day(stated, match[2], int(match[1]), text)


def read_clock(day: date, text: str | None) -> datetime | None:
    """The moment that `16:28` is on a day in Washington; None where no time is given."""
    match = _CLOCK.fullmatch(text or "")
    return _washington_time(day, int(match[1]), int(match[2])) if match else None


def read_time(text: str) -> tuple[date, datetime | None]:
    """The day and the moment of `January 9, 2025, 02:54 PM`."""
    match = _SENATE_TIME.fullmatch(" ".join(text.split()))
    if match is None:
        raise MalformedError(f"{text[:40]!r} is not a time of a vote")
    day = _day(int(match[3]), match[1], int(match[2]), text)
    if match[4] is None:
        return day, None
    hour = int(match[4]) % _NOON + (_NOON if match[6] == "P" else 0)
    return day, _washington_time(day, hour, int(match[5]))


def days_of_session(days: list[str], year: int) -> list[date]:
    """The days of a list without years, earliest vote first.

    A session may end in the first days of the next January, and its votes stay in its list.
    """
    session_days: list[date] = []
    for listed_day in days:
        day = read_day(listed_day, year)
        if session_days and session_days[-1].month > _JUNE and day.month == 1:
            year, day = year + 1, read_day(listed_day, year + 1)
        session_days.append(day)
    return session_days


def _day(year: int, month: str, day: int, text: str) -> date:
    stated = printed_day(f"{day} {month} {year:04}", "%d %b %Y")
    if stated is None:
        raise MalformedError(f"{text[:40]!r} is not a day of the calendar")
    return stated


def _washington_time(day: date, hour: int, minute: int) -> datetime:
    try:
        local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=WASHINGTON)
    except ValueError as error:
        raise MalformedError(f"{hour}:{minute:02} is not a time of day") from error
    return local.astimezone(UTC)


_SESSION: Final = re.compile(r"([12])(?:st|nd)?")
_FRACTION: Final = re.compile(r"\d/\d")
_BIOGUIDE: Final = re.compile(r"[A-Z]\d{6}")
# The Clerk's totals, and their columns.
_HOUSE_COUNTS: Final = {name: f"{name.replace('_', '-')}-total" for name in _COUNTS}
_NO_VOTE: Final = {"Present": "present", "Not Voting": "not_voting"}


def read_house_vote(root: Any) -> Vote:
    """The vote of a `rollcall-vote` element."""
    about = root.find("vote-metadata")
    if about is None:
        raise MalformedError("a House vote without vote-metadata")
    congress = required_whole(about, "congress")
    day = read_day(required(about, "action-date"))
    clock = about.find("action-time")
    totals = list(_totals(about))
    row = {
        **_house_description(about),
        **_house_counts(about, totals),
        "voted_at": read_clock(day, None if clock is None else clock.get("time-etz")),
        "bill_ref": bill_reference(congress, text(about, "legis-num")),
    }
    return Vote(
        chamber="house",
        congress=congress,
        session=_session(required(about, "session")),
        number=required_whole(about, "rollcall-num"),
        day=day,
        title=_house_title(row),
        row=row,
        totals=totals,
        positions=[_house_position(item) for item in root.iterfind("vote-data/recorded-vote")],
    )


def _house_description(about: Any) -> Row:
    vote_type = text(about, "vote-type")
    fraction = _FRACTION.search(vote_type or "")
    return {
        "vote_question": text(about, "vote-question"),
        "vote_type": vote_type,
        "majority_requirement": fraction[0] if fraction else None,
        "vote_result": text(about, "vote-result"),
        "vote_title": None,
        "vote_desc": text(about, "vote-desc"),
        "vote_correction": text(about, "vote-correction"),
        "majority": text(about, "majority"),
        "legis_num": text(about, "legis-num"),
        "amendment_num": text(about, "amendment-num"),
        "amendment_author": text(about, "amendment-author"),
        "tie_breaker": None,
        "tie_breaker_vote": None,
        "in_committee": about.find("committee") is not None,
    }


def _session(stated: str) -> int:
    match = _SESSION.fullmatch(stated)
    if match is None:
        raise MalformedError(f"session should be 1st or 2nd and is {stated[:20]!r}")
    return int(match[1])


def _house_title(row: Row) -> str | None:
    amended = row["amendment_num"] and f"Amendment {row['amendment_num']}"
    about = " to ".join(part for part in (amended, row["legis_num"]) if part)
    return ": ".join(part for part in (row["vote_question"], about) if part) or None


def _totals(about: Any) -> Iterator[Row]:
    for total in about.iterfind("vote-totals/totals-by-party"):
        counts = {column: whole(total, path) for column, path in _HOUSE_COUNTS.items()}
        yield {"kind": "party", "name": required(total, "party"), **counts}
    for total in about.iterfind("vote-totals/totals-by-candidate"):
        name = required(total, "candidate")
        yield {"kind": "candidate", "name": name, "votes": required_whole(total, "candidate-total")}


def _house_counts(about: Any, totals: list[Row]) -> Row:
    published = about.find("vote-totals/totals-by-vote")
    if published is not None:
        return {column: whole(published, path) for column, path in _HOUSE_COUNTS.items()}
    # In an election those who named no candidate are counted as if they had.
    counts: Row = dict.fromkeys(_HOUSE_COUNTS)
    return counts | {
        _NO_VOTE[total["name"]]: total["votes"] for total in totals if total["name"] in _NO_VOTE
    }


def _house_position(item: Any) -> Row:
    member = item.find("legislator")
    if member is None:
        raise MalformedError("a recorded-vote without a legislator")
    position = required(item, "vote")
    name_id = member.get("name-id") or None
    is_bioguide = name_id is not None and _BIOGUIDE.fullmatch(name_id)
    return {
        "member": xml.whole_text(member) or "",
        "party": member.get("party") or None,
        "state": member.get("state") or None,
        "position": position,
        "counted_as": counted_as(position),
        "name_id": name_id,
        "legislator_ref": legislator_id(name_id) if name_id and is_bioguide else None,
    }


Matter = Mapping[str, str | None]
"""One of several things voted on en bloc: issue, question, result."""

_DOCUMENT: Final = (
    "document_type",
    "document_number",
    "document_name",
    "document_title",
    "document_short_title",
)
_AMENDMENT: Final = (
    "amendment_number",
    "amendment_to_amendment_number",
    "amendment_to_amendment_to_amendment_number",
    "amendment_to_document_number",
    "amendment_to_document_short_title",
    "amendment_purpose",
)
_SENATE_TEXTS: Final = (
    "vote_question_text",
    "majority_requirement",
    "vote_result",
    "vote_result_text",
    "vote_title",
)
# The Senate's counts; a count of none is left blank.
_SENATE_COUNTS: Final = {"yea": "yeas", "nay": "nays", "present": "present", "not_voting": "absent"}


def read_senate_vote(root: Any, listed: Sequence[Matter] = ()) -> Vote:
    """The vote of a `roll_call_vote` element; `listed` is what the menu says of its matters."""
    congress = required_whole(root, "congress")
    day, time = read_time(required(root, "vote_date"))
    matters = read_matters(root) or listed
    documents = [*_documents(root, congress), *_matters(matters, congress)]
    amendments = list(_amendments(root, congress))
    row = {
        **_senate_description(root, matters),
        "voted_at": time,
        "modify_date": _modified(root),
        "nomination": _nomination(documents),
        "bill_ref": _first_bill([*documents, *amendments]),
        **{column: whole(root, f"count/{path}") or 0 for column, path in _SENATE_COUNTS.items()},
    }
    return Vote(
        chamber="senate",
        congress=congress,
        session=required_whole(root, "session"),
        number=required_whole(root, "vote_number"),
        day=day,
        title=row["vote_question_text"] or row["vote_title"] or row["vote_question"],
        row=row,
        documents=documents,
        amendments=amendments,
        positions=[_senate_position(member) for member in root.iterfind("members/member")],
    )


def read_matters(element: Any) -> list[Matter]:
    """The matters voted on en bloc, in a menu's entry or in a vote."""
    return [
        {name: text(matter, name) for name in ("issue", "question", "result")}
        for matter in element.iterfind("en_bloc/matter")
    ]


def _senate_description(root: Any, matters: Sequence[Matter]) -> Row:
    texts = {name: text(root, name) for name in _SENATE_TEXTS}
    return {
        "vote_question": text(root, "question") or _shared(matters, "question"),
        **texts,
        "vote_result": texts["vote_result"] or _shared(matters, "result"),
        "vote_desc": text(root, "vote_document_text"),
        "vote_correction": None,
        "amendment_author": None,
        "tie_breaker": text(root, "tie_breaker/by_whom"),
        "tie_breaker_vote": text(root, "tie_breaker/tie_breaker_vote"),
        "in_committee": False,
    }


def _shared(matters: Sequence[Matter], field: str) -> str | None:
    """The values of all matters, each once, in their order."""
    return "; ".join(dict.fromkeys(value for matter in matters if (value := matter[field]))) or None


def _modified(root: Any) -> Any:
    stated = text(root, "modify_date")
    return read_time(stated)[1] if stated else None


def _documents(root: Any, congress: int) -> Iterator[Row]:
    for document in root.iterfind("document"):
        row: Row = {field: text(document, field) for field in _DOCUMENT}
        # A vote on an amendment names the type of the amendment here, and nothing else.
        if row["document_name"] or row["document_number"]:
            of = whole(document, "document_congress") or congress
            yield {**row, "document_congress": of, "bill_ref": bill_reference(of, _name(row))}


def _name(row: Row) -> str | None:
    if row["document_type"] and row["document_number"]:
        return f"{row['document_type']} {row['document_number']}"
    name: str | None = row["document_name"]
    return name


def _matters(matters: Sequence[Matter], congress: int) -> Iterator[Row]:
    for matter in matters:
        yield {
            **dict.fromkeys(_DOCUMENT),
            "document_congress": congress,
            "document_name": matter["issue"],
            "question": matter["question"],
            "result": matter["result"],
            "bill_ref": bill_reference(congress, matter["issue"]),
        }


def _amendments(root: Any, congress: int) -> Iterator[Row]:
    for amendment in root.iterfind("amendment"):
        row: Row = {field: text(amendment, field) for field in _AMENDMENT}
        if row["amendment_number"]:
            amended = bill_reference(congress, row["amendment_to_document_number"])
            yield {**row, "bill_ref": amended}


def _nomination(documents: Sequence[Row]) -> str | None:
    names = (document["document_name"] or "" for document in documents)
    return next((name for name in names if name.startswith("PN")), None)


def _first_bill(rows: Sequence[Row]) -> str | None:
    return next((row["bill_ref"] for row in rows if row["bill_ref"]), None)


def _senate_position(member: Any) -> Row:
    position = required(member, "vote_cast")
    lis = text(member, "lis_member_id")
    return {
        "member": required(member, "member_full"),
        "first_name": text(member, "first_name"),
        "party": text(member, "party"),
        "state": text(member, "state"),
        "position": position,
        "counted_as": counted_as(position),
        "lis_member_id": lis,
        # Senators are known by their bioguide id everywhere else; this is an alias of theirs.
        "legislator_ref": f"lis {lis}" if lis else None,
    }

"""Votes of the House, from the Clerk's XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from fonds import ids
from fonds.errors import MalformedError
from fonds.sources.families import xml_files
from fonds.sources.families.xml_files import required, required_whole, text, whole
from fonds.sources.roll_call_votes.moments import read_clock, read_day
from fonds.sources.roll_call_votes.records import (
    Row,
    Vote,
    bill_reference,
    counted_as,
)

_SESSION: Final = re.compile(r"([12])(?:st|nd)?")
_FRACTION: Final = re.compile(r"\d/\d")
_BIOGUIDE: Final = re.compile(r"[A-Z]\d{6}")
# The Clerk's totals, and the columns they stand in.
_HOUSE_COUNTS: Final = {
    "yea": "yea-total",
    "nay": "nay-total",
    "present": "present-total",
    "not_voting": "not-voting-total",
}
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
    known = name_id is not None and _BIOGUIDE.fullmatch(name_id)
    return {
        "member": xml_files.whole_text(member) or "",
        "party": member.get("party") or None,
        "state": member.get("state") or None,
        "position": position,
        "counted_as": counted_as(position),
        "name_id": name_id,
        "legislator_ref": ids.legislator_id(name_id) if name_id and known else None,
    }

"""Votes of the Senate, from its XML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fonds.sources.families.xml_files import required, required_whole, text, whole
from fonds.sources.roll_call_votes.moments import read_moment
from fonds.sources.roll_call_votes.records import Row, Vote, bill_reference, counted_as

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
# The Senate's counts; a count of none is left blank.
_SENATE_COUNTS: Final = {"yea": "yeas", "nay": "nays", "present": "present", "not_voting": "absent"}


def read_senate_vote(root: Any, listed: Sequence[Matter] = ()) -> Vote:
    """The vote of a `roll_call_vote` element; `listed` is what the menu says of its matters."""
    congress = required_whole(root, "congress")
    day, moment = read_moment(required(root, "vote_date"))
    matters = read_matters(root) or listed
    documents = [*_documents(root, congress), *_matters(matters, congress)]
    amendments = list(_amendments(root, congress))
    row = {
        **_senate_description(root, matters),
        "voted_at": moment,
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
    """What is voted on en bloc, in a menu's entry or in a vote."""
    return [
        {name: text(matter, name) for name in ("issue", "question", "result")}
        for matter in element.iterfind("en_bloc/matter")
    ]


def _senate_description(root: Any, matters: Sequence[Matter]) -> Row:
    return {
        "vote_question": text(root, "question") or _shared(matters, "question"),
        "vote_question_text": text(root, "vote_question_text"),
        "majority_requirement": text(root, "majority_requirement"),
        "vote_result": text(root, "vote_result") or _shared(matters, "result"),
        "vote_result_text": text(root, "vote_result_text"),
        "vote_title": text(root, "vote_title"),
        "vote_desc": text(root, "vote_document_text"),
        "vote_correction": None,
        "amendment_author": None,
        "tie_breaker": text(root, "tie_breaker/by_whom"),
        "tie_breaker_vote": text(root, "tie_breaker/tie_breaker_vote"),
        "in_committee": False,
    }


def _shared(matters: Sequence[Matter], field: str) -> str | None:
    """What the matters say together: each answer once, in their order."""
    return "; ".join(dict.fromkeys(said for matter in matters if (said := matter[field]))) or None


def _modified(root: Any) -> Any:
    stated = text(root, "modify_date")
    return read_moment(stated)[1] if stated else None


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

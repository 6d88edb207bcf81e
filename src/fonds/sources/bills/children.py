"""The rows below a bill, from either format of BILLSTATUS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, Final

from sqlalchemy import Table

from fonds import ids
from fonds.model import ParsedRecord
from fonds.sources.bills import tables
from fonds.sources.bills.elements import (
    as_json,
    clock,
    day,
    every,
    first,
    latest_action,
    listed,
    number_at,
    texts,
    truth,
)
from fonds.sources.bills.names import BillName, committee_ref
from fonds.sources.families import xml_files

NAME: Final = "bills"

Row = dict[str, Any]

_LAW: Final = re.compile(r"([0-9]+)-([0-9]+)")
_CBO: Final = re.compile(r"cbo\.gov/publication/([0-9]+)")
_REPORT: Final = re.compile(r"([HSE])\.?\s*(?:Exec\.\s*)?Rept\.\s*([0-9]+)-([0-9]+)", re.IGNORECASE)
_SUMMARIES: Final = (
    "summaries/summary",
    "summaries/item",
    "summaries/billSummaries/item",
)
_PUBLIC_LAW: Final = ("public law", "private law")


def children(bill_id: str, bill: Any) -> Iterator[ParsedRecord]:
    """All rows below a bill, table by table."""
    yield from _numbered(bill_id, tables.bill_sponsors, map(_sponsor, every(bill, "sponsors/item")))
    cosponsors = map(_cosponsor, every(bill, "cosponsors/item"))
    yield from _numbered(bill_id, tables.bill_cosponsors, cosponsors)
    yield from _numbered(bill_id, tables.bill_actions, map(_action, actions(bill)))
    yield from _numbered(bill_id, tables.bill_recorded_votes, _votes(bill))
    yield from _numbered(bill_id, tables.bill_committees, _committees(bill))
    yield from _numbered(bill_id, tables.bill_committee_reports, _reports(bill))
    yield from _numbered(bill_id, tables.bill_subjects, _subjects(bill))
    yield from _numbered(bill_id, tables.bill_summaries, map(summary_row, summaries(bill)))
    yield from _numbered(bill_id, tables.bill_titles, map(_title, every(bill, "titles/item")))
    yield from _numbered(bill_id, tables.bill_laws, _laws(bill))
    yield from _numbered(bill_id, tables.bill_cost_estimates, _estimates(bill))
    related = map(_related, every(bill, "relatedBills/item"))
    yield from _numbered(bill_id, tables.bill_related, related)
    amendments = map(_amendment, every(bill, "amendments/amendment"))
    yield from _numbered(bill_id, tables.bill_amendments, amendments)


def actions(bill: Any) -> list[Any]:
    """The actions, newest first."""
    return every(bill, "actions/item")


def summaries(bill: Any) -> list[Any]:
    """The summaries; the text of some stands in an element called `cdata`."""
    return every(bill, *_SUMMARIES)


def summary_row(item: Any) -> Row:
    """One summary; its text is HTML."""
    return texts(
        item,
        version_code="versionCode",
        name="name",
        action_date="actionDate",
        action_desc="actionDesc",
        update_date="updateDate",
        last_summary_update_date="lastSummaryUpdateDate",
    ) | {"text": first(item, "text", "cdata/text", "cdata")}


def is_law_text(item: Any) -> bool:
    """Whether a text version is the law itself, which has a document of its own."""
    return (first(item, "type") or "").lower() in _PUBLIC_LAW


def _numbered(bill_id: str, table: Table, rows: Iterable[Row]) -> Iterator[ParsedRecord]:
    for place, row in enumerate(rows, 1):
        yield ParsedRecord(
            source=NAME,
            table=table.name,
            key=f"{bill_id}#{table.name}/{place}",
            payload={"bill_id": bill_id, "ord": place, **row},
        )


# People -----------------------------------------------------------------------------------


def _person(item: Any) -> Row:
    bioguide = first(item, "bioguideId", "identifiers/bioguideId")
    return {
        "bioguide_id": bioguide,
        "legislator_ref": ids.legislator_id(bioguide) if bioguide else None,
        "full_name": first(item, "fullName", "name"),
        **texts(
            item,
            first_name="firstName",
            middle_name="middleName",
            last_name="lastName",
            party="party",
            state="state",
        ),
        "district": number_at(item, "district"),
    }


def _sponsor(item: Any) -> Row:
    return _person(item) | {
        "is_by_request": truth(first(item, "isByRequest")),
        "by_request_type": first(item, "byRequestType"),
    }


def _cosponsor(item: Any) -> Row:
    return _person(item) | {
        "sponsorship_date": day(first(item, "sponsorshipDate")),
        "sponsorship_withdrawn_date": day(first(item, "sponsorshipWithdrawnDate")),
        "is_original_cosponsor": truth(first(item, "isOriginalCosponsor")),
    }


# What happened ----------------------------------------------------------------------------


def _action(item: Any) -> Row:
    return {
        **texts(
            item,
            action_date="actionDate",
            text="text",
            type="type",
            action_code="actionCode",
            source_system_name="sourceSystem/name",
        ),
        "action_time": clock(first(item, "actionTime")),
        "source_system_code": number_at(item, "sourceSystem/code"),
        "committees": _codes(item),
        "links": listed(item, "links"),
        "calendar_number": listed(item, "calendarNumber"),
    }


def _codes(item: Any) -> list[str] | None:
    found = xml_files.texts(item, "committees/item/systemCode")
    return found or xml_files.texts(item, "committee/systemCode") or None


def _votes(bill: Any) -> Iterator[Row]:
    for vote in every(bill, "recordedVotes/recordedVote", "recordedVotes/item"):
        yield {"action_ord": None, **_vote(vote)}
    for place, action in enumerate(actions(bill), 1):
        for vote in every(action, "recordedVotes/recordedVote", "recordedVotes/item"):
            yield {"action_ord": place, **_vote(vote)}


def _vote(item: Any) -> Row:
    row: Row = texts(
        item, chamber="chamber", date="date", url="url", full_action_name="fullActionName"
    )
    numbers = {
        "congress": number_at(item, "congress"),
        "session_number": number_at(item, "sessionNumber"),
        "roll_number": number_at(item, "rollNumber"),
    }
    return {**row, **numbers, "vote_ref": _vote_ref(row["chamber"], *numbers.values())}


def _vote_ref(
    chamber: str | None, congress: int | None, session: int | None, number: int | None
) -> str | None:
    if chamber is None or congress is None or session is None or number is None:
        return None
    return ids.vote_id(chamber.lower(), congress, session, number)


# Committees -------------------------------------------------------------------------------


def _committees(bill: Any) -> Iterator[Row]:
    for item in every(bill, "committees/item", "committees/billCommittees/item"):
        yield _committee(item, None)
        for below in every(item, "subcommittees/item"):
            yield _committee(below, first(item, "systemCode"))


def _committee(item: Any, parent: str | None) -> Row:
    code = first(item, "systemCode")
    return {
        "committee_ref": committee_ref(code) if code else None,
        **texts(item, system_code="systemCode", name="name", chamber="chamber", type="type"),
        "parent_system_code": parent,
        "activities": listed(item, "activities"),
    }


def _reports(bill: Any) -> Iterator[Row]:
    for item in every(bill, "committeeReports/committeeReport", "committeeReports/item"):
        citation = first(item, "citation")
        yield {"citation": citation, "report_ref": _report_ref(citation or "")}


def _report_ref(citation: str) -> str | None:
    found = _REPORT.match(citation)
    if found is None:
        return None
    return ids.govinfo_id(f"CRPT-{found[2]}{found[1].lower()}rpt{found[3]}")


# Subjects and titles ----------------------------------------------------------------------


def _subjects(bill: Any) -> Iterator[Row]:
    subjects = every(
        bill,
        "subjects/legislativeSubjects/item",
        "subjects/billSubjects/legislativeSubjects/item",
        "subjects/billSubjects/otherSubjects/item",
    )
    for item in subjects:
        if name := first(item, "name"):
            parent = first(item, "parentSubject/name")
            yield {"name": name, "parent_name": parent, "update_date": first(item, "updateDate")}


def _title(item: Any) -> Row:
    return {
        **texts(
            item,
            title_type="titleType",
            title="title",
            chamber_code="chamberCode",
            chamber_name="chamberName",
            parent_title_type="parentTitleType",
            bill_text_version_name="billTextVersionName",
            bill_text_version_code="billTextVersionCode",
            update_date="updateDate",
        ),
        "title_type_code": number_at(item, "titleTypeCode"),
    }


# What came of it --------------------------------------------------------------------------


def _laws(bill: Any) -> Iterator[Row]:
    printed = [item for item in every(bill, "textVersions/item") if is_law_text(item)]
    for law, text in zip_longest(every(bill, "laws/item"), printed):
        stated = text if law is None else law
        kind, number = first(stated, "type"), first(stated, "number")
        yield {
            "type": kind,
            "number": number,
            "law_ref": _law_ref(kind, number),
            "text_date": None if text is None else day(first(text, "date")),
            "text_url": None if text is None else first(text, "formats/item/url"),
        }


def _law_ref(kind: str | None, number: str | None) -> str | None:
    found = _LAW.search(number or "")
    if found is None:
        return None
    private = "private" in (kind or "").lower()
    return ids.law_id(int(found[1]), int(found[2]), private=private)


def _estimates(bill: Any) -> Iterator[Row]:
    for item in every(bill, "cboCostEstimates/item"):
        url = first(item, "url", "rptUrl")
        publication = _CBO.search(url or "")
        yield {
            "pub_date": first(item, "pubDate", "rptPubDate"),
            "title": first(item, "title", "rptTitle"),
            "url": url,
            "description": first(item, "description"),
            "publication_ref": ids.cbo_id(publication[1]) if publication else None,
        }


def _related(item: Any) -> Row:
    kind = first(item, "type")
    congress, number = number_at(item, "congress"), number_at(item, "number")
    name = BillName.of_parts(congress, kind, number)
    return {
        "related_ref": name.id if name else None,
        "congress": congress,
        "type": kind,
        "number": number,
        "title": first(item, "title", "latestTitle"),
        **latest_action(item),
        "relationship_details": listed(item, "relationshipDetails"),
    }


def _amendment(item: Any) -> Row:
    # Of a field that stands twice, as most do in format 1.0.0, both say the same.
    bioguide = first(item, "sponsors/item/bioguideId")
    return {
        "congress": number_at(item, "congress"),
        "number": number_at(item, "number"),
        **texts(
            item,
            type="type",
            description="description",
            purpose="purpose",
            submitted_date="submittedDate",
            proposed_date="proposedDate",
            create_date="createDate",
            update_date="updateDate",
        ),
        "sponsor_name": first(item, "sponsors/item/fullName", "sponsors/item/name"),
        "sponsor_ref": ids.legislator_id(bioguide) if bioguide else None,
        **latest_action(item),
        "amended_amendment": listed(item, "amendedAmendment"),
        "actions": _amendment_actions(item),
        "cosponsors": [as_json(one) for one in every(item, "cosponsors/item")] or None,
        "links": listed(item, "links"),
        "notes": listed(item, "notes"),
    }


def _amendment_actions(item: Any) -> list[Any] | None:
    found = every(item, "actions/actions/item", "actions/item")
    return [as_json(action) for action in found] or None

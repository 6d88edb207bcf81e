"""A BILLSTATUS file as the record of a bill and the rows below it, whatever its version."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import date
from itertools import zip_longest
from typing import Any, Final

from lxml import etree

from fonds.errors import MalformedError, WrongContentError
from fonds.model import Archived, Body, Document, NormalizedBody, ParsedRecord
from fonds.normalize.html import Html
from fonds.normalize.markdown import visible_text
from fonds.sources.bills import tables
from fonds.sources.bills.names import BillName, committee_ref
from fonds.sources.bills.tables import bills
from fonds.sources.formats import xml
from fonds.sources.formats.congress import cbo_id, cite_bill, law_id, legislator_id, vote_id
from fonds.sources.formats.fields import camel_case
from fonds.sources.formats.gpo_files import govinfo_id
from fonds.sources.formats.records import child_records

# Before June 2016 times were written "03:36PM".
_TWELVE_HOURS: Final = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?\s*([AP])M", re.IGNORECASE)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TRUE: Final = frozenset({"true", "y", "yes"})
_FALSE: Final = frozenset({"false", "n", "no"})
_NOON: Final = 12


def first(element: Any, *paths: str) -> str | None:
    """The first text at these paths; of a field that appears twice, one may be blank."""
    values = (text for path in paths for text in xml.texts(element, path))
    return next(values, None)


def number_at(element: Any, path: str) -> int | None:
    """The whole number at a path, or None."""
    return next(
        (number for item in element.findall(path) if (number := xml.whole(item, ".")) is not None),
        None,
    )


def every(element: Any, *paths: str) -> list[Any]:
    """All elements with a text at the first of these paths that has any.

    Some files have an empty `<item/>`.
    """
    return next((elements for path in paths if (elements := _with_text(element, path))), [])


def _with_text(element: Any, path: str) -> list[Any]:
    return [child for child in element.findall(path) if xml.whole_text(child)]


def texts(element: Any, *columns: str) -> dict[str, str | None]:
    """Columns with the texts of the elements of the same names in camel case."""
    return {column: first(element, camel_case(column)) for column in columns}


def day(value: str | None) -> str | None:
    """The date of a date or moment: `2019-11-19T05:00:00Z` is midnight in Washington."""
    match = _DATE.match(value or "")
    if match is None:
        return None
    try:
        return date.fromisoformat(match[0]).isoformat()
    except ValueError as error:
        raise MalformedError(f"{match[0]} is not a day of any year") from error


def clock(value: str | None) -> str | None:
    """A time of day in 24 hours, however it was written."""
    match = _TWELVE_HOURS.fullmatch(value or "")
    if match is None:
        return value
    hour = int(match[1]) % _NOON + (_NOON if match[4].upper() == "P" else 0)
    return f"{hour:02}:{match[2]}:{match[3] or '00'}"


def truth(value: str | None) -> bool | None:
    """`True`, `Y`, `False`, `N`; None where nothing is said."""
    if value is None:
        return None
    lowered = value.lower()
    if lowered not in _TRUE | _FALSE:
        raise MalformedError(f"{value[:40]!r} should be true or false")
    return lowered in _TRUE


def latest_action(element: Any) -> dict[str, str | None]:
    """The three columns about the last thing that happened."""
    return {
        "latest_action_date": first(element, "latestAction/actionDate"),
        "latest_action_time": clock(first(element, "latestAction/actionTime")),
        "latest_action_text": first(element, "latestAction/text"),
    }


def as_json(element: Any) -> Any:
    """An element as JSON: lists of `item` as lists, blank fields left out.

    A field that appears twice, as many do in format 1.0.0, is kept once, or as a list where the
    two differ.
    """
    children = [child for child in element if isinstance(child.tag, str)]
    if not children:
        return xml.whole_text(element)
    names = {child.tag for child in children}
    if len(names) == 1 and (names & {"item", "link", "recordedVote"}):
        return [value for child in children if (value := as_json(child)) is not None]
    fields: dict[str, list[Any]] = {}
    for child in children:
        value = as_json(child)
        if value is not None and not child.tag.endswith("Counts"):
            fields.setdefault(child.tag, []).append(value)
    return {name: _once(values) for name, values in fields.items()} or None


def _once(values: list[Any]) -> Any:
    return values[0] if all(value == values[0] for value in values) else values


def listed(element: Any, path: str) -> Any:
    """The element at a path as JSON, or None."""
    child = element.find(path)
    return None if child is None else as_json(child)


def from_json(name: str, value: Any) -> Any:
    """The same fields as api.congress.gov writes them, as the element the bulk files hold."""
    element = etree.Element(name)
    if isinstance(value, dict):
        element.extend(from_json(key, inner) for key, inner in value.items() if _is_name(key))
    elif isinstance(value, list):
        element.extend(from_json("item", inner) for inner in value)
    elif value is not None:
        element.text = _without_controls(str(value))
    return element


def _is_name(key: str) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", key) is not None


def _without_controls(text: str) -> str:
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)


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
    yield from child_records(
        NAME, tables.bill_sponsors, bill_id, map(_sponsor, every(bill, "sponsors/item"))
    )
    cosponsors = map(_cosponsor, every(bill, "cosponsors/item"))
    yield from child_records(NAME, tables.bill_cosponsors, bill_id, cosponsors)
    yield from child_records(NAME, tables.bill_actions, bill_id, map(_action, actions(bill)))
    yield from child_records(NAME, tables.bill_recorded_votes, bill_id, _votes(bill))
    yield from child_records(NAME, tables.bill_committees, bill_id, _committees(bill))
    yield from child_records(NAME, tables.bill_committee_reports, bill_id, _reports(bill))
    yield from child_records(NAME, tables.bill_subjects, bill_id, _subjects(bill))
    yield from child_records(
        NAME, tables.bill_summaries, bill_id, map(summary_row, summaries(bill))
    )
    yield from child_records(
        NAME, tables.bill_titles, bill_id, map(_title, every(bill, "titles/item"))
    )
    yield from child_records(NAME, tables.bill_laws, bill_id, _laws(bill))
    yield from child_records(NAME, tables.bill_cost_estimates, bill_id, _estimates(bill))
    related = map(_related, every(bill, "relatedBills/item"))
    yield from child_records(NAME, tables.bill_related, bill_id, related)
    amendments = map(_amendment, every(bill, "amendments/amendment"))
    yield from child_records(NAME, tables.bill_amendments, bill_id, amendments)


def actions(bill: Any) -> list[Any]:
    """The actions, newest first."""
    return every(bill, "actions/item")


def summaries(bill: Any) -> list[Any]:
    """The summaries; the text of some is in an element called `cdata`."""
    return every(bill, *_SUMMARIES)


def summary_row(item: Any) -> Row:
    """One summary; its text is HTML."""
    return texts(
        item,
        "version_code",
        "name",
        "action_date",
        "action_desc",
        "update_date",
        "last_summary_update_date",
    ) | {"text": first(item, "text", "cdata/text", "cdata")}


def is_law_text(item: Any) -> bool:
    """Whether a text version is the law itself, which has a document of its own."""
    return (first(item, "type") or "").lower() in _PUBLIC_LAW


# People -----------------------------------------------------------------------------------


def _person(item: Any) -> Row:
    bioguide = first(item, "bioguideId", "identifiers/bioguideId")
    return {
        "bioguide_id": bioguide,
        "legislator_ref": legislator_id(bioguide) if bioguide else None,
        "full_name": first(item, "fullName", "name"),
        **texts(item, "first_name", "middle_name", "last_name", "party", "state"),
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
        **texts(item, "action_date", "text", "type", "action_code"),
        "source_system_name": first(item, "sourceSystem/name"),
        "action_time": clock(first(item, "actionTime")),
        "source_system_code": number_at(item, "sourceSystem/code"),
        "committees": _codes(item),
        "links": listed(item, "links"),
        "calendar_number": listed(item, "calendarNumber"),
    }


def _codes(item: Any) -> list[str] | None:
    codes = xml.texts(item, "committees/item/systemCode")
    return codes or xml.texts(item, "committee/systemCode") or None


def _votes(bill: Any) -> Iterator[Row]:
    for vote in every(bill, "recordedVotes/recordedVote", "recordedVotes/item"):
        yield {"action_ord": None, **_vote(vote)}
    for ordinal, action in enumerate(actions(bill), 1):
        for vote in every(action, "recordedVotes/recordedVote", "recordedVotes/item"):
            yield {"action_ord": ordinal, **_vote(vote)}


def _vote(item: Any) -> Row:
    row: Row = texts(item, "chamber", "date", "url", "full_action_name")
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
    return vote_id(chamber.lower(), congress, session, number)


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
        **texts(item, "system_code", "name", "chamber", "type"),
        "parent_system_code": parent,
        "activities": listed(item, "activities"),
    }


def _reports(bill: Any) -> Iterator[Row]:
    for item in every(bill, "committeeReports/committeeReport", "committeeReports/item"):
        citation = first(item, "citation")
        yield {"citation": citation, "report_ref": _report_ref(citation or "")}


def _report_ref(citation: str) -> str | None:
    match = _REPORT.match(citation)
    if match is None:
        return None
    return govinfo_id(f"CRPT-{match[2]}{match[1].lower()}rpt{match[3]}")


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
            "title_type",
            "title",
            "chamber_code",
            "chamber_name",
            "parent_title_type",
            "bill_text_version_name",
            "bill_text_version_code",
            "update_date",
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
    match = _LAW.search(number or "")
    if match is None:
        return None
    private = "private" in (kind or "").lower()
    return law_id(int(match[1]), int(match[2]), private=private)


def _estimates(bill: Any) -> Iterator[Row]:
    for item in every(bill, "cboCostEstimates/item"):
        url = first(item, "url", "rptUrl")
        publication = _CBO.search(url or "")
        yield {
            "pub_date": first(item, "pubDate", "rptPubDate"),
            "title": first(item, "title", "rptTitle"),
            "url": url,
            "description": first(item, "description"),
            "publication_ref": cbo_id(publication[1]) if publication else None,
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
    # Of a field that appears twice, as most do in format 1.0.0, both say the same.
    bioguide = first(item, "sponsors/item/bioguideId")
    return {
        "congress": number_at(item, "congress"),
        "number": number_at(item, "number"),
        **texts(
            item,
            "type",
            "description",
            "purpose",
            "submitted_date",
            "proposed_date",
            "create_date",
            "update_date",
        ),
        "sponsor_name": first(item, "sponsors/item/fullName", "sponsors/item/name"),
        "sponsor_ref": legislator_id(bioguide) if bioguide else None,
        **latest_action(item),
        "amended_amendment": listed(item, "amendedAmendment"),
        "actions": _amendment_actions(item),
        "cosponsors": [as_json(cosponsor) for cosponsor in every(item, "cosponsors/item")] or None,
        "links": listed(item, "links"),
        "notes": listed(item, "notes"),
    }


def _amendment_actions(item: Any) -> list[Any] | None:
    actions = every(item, "actions/actions/item", "actions/item")
    return [as_json(action) for action in actions] or None


# The body is one element of the archived file, so no normalizer can make it from that file
# alone: it is made when the file is parsed.
NORMALIZER: Final = "billstatus_summary@1.0.0"
_HTML: Final = Html()
_TAG: Final = re.compile(r"<[^<>]+>")
_SENTENCE: Final = re.compile(r"[.!?:;](?=\s)")
_MARKER: Final = re.compile(r"^\s*[-*]\s+", re.MULTILINE)
_MAX_SUMMARY_LENGTH: Final = 600
_MIN_SUMMARY_LENGTH: Final = 200


def read_status(data: bytes) -> Any:
    """The `bill` element of a status file, with the version of the format as its attribute."""
    root = xml.without_namespaces(xml.read(data, "billStatus"))
    bill = root.find("bill")
    if bill is None:
        raise WrongContentError("a status file without a bill")
    if version := first(root, "version", "bill/version"):
        bill.set("version", version)
    return bill


def bill_of_api(value: Any) -> Any:
    """The `bill` element that an answer of api.congress.gov about one bill amounts to."""
    return from_json("bill", value)


def name_of_bill(bill: Any) -> BillName:
    """Which bill it is; fields were called billType and billNumber before format 3.0.0."""
    kind = first(bill, "type", "billType")
    number = number_at(bill, "number")
    if number is None:
        number = number_at(bill, "billNumber")
    name = BillName.of_parts(number_at(bill, "congress"), kind, number)
    if name is None:
        raise MalformedError("the file does not say which bill it is about")
    return name


def title_of(bill: Any, name: BillName) -> str:
    """The display title, or the first of all titles, or the number."""
    return first(bill, "title", "titles/item/title") or name.printed


def status_record(bill: Any, archived: Archived) -> ParsedRecord:
    """The bill with all rows below it, and its document: the latest summary is its body."""
    name = name_of_bill(bill)
    return ParsedRecord(
        source=NAME,
        table=bills.name,
        key=name.id,
        payload=_row(bill, name),
        children=tuple(children(name.id, bill)),
        document=_document(bill, name, archived),
    )


def _row(bill: Any, name: BillName) -> dict[str, Any]:
    sponsor = first(bill, "sponsors/item/bioguideId")
    authority = first(bill, "constitutionalAuthorityStatementText")
    return {
        "id": name.id,
        "congress": name.congress,
        "type": name.kind.upper(),
        "number": name.number,
        "title": title_of(bill, name),
        "introduced_date": day(first(bill, "introducedDate")),
        "policy_area": _policy_area(bill),
        "sponsor_ref": f"legislator:{sponsor}" if sponsor else None,
        **latest_action(bill),
        "constitutional_authority_statement_text": _without_tags(authority) if authority else None,
        **texts(bill, "origin_chamber", "create_date", "update_date", "update_date_including_text"),
        "version": bill.get("version"),
        "notes": [text for item in every(bill, "notes/item") if (text := first(item, "text"))]
        or None,
        "calendar_numbers": listed(bill, "calendarNumbers"),
    }


def _policy_area(bill: Any) -> str | None:
    return first(
        bill,
        "policyArea/name",
        "subjects/policyArea/name",
        "subjects/billSubjects/policyArea/name",
        "primarySubject/name",
        "subjects/billSubjects/primarySubject/name",
    )


# The document -----------------------------------------------------------------------------


def _document(bill: Any, name: BillName, archived: Archived) -> Document:
    introduced = day(first(bill, "introducedDate"))
    title = title_of(bill, name)
    latest = _latest_summary(bill)
    body = Body(archived=archived, format="xml", normalizer=NORMALIZER, normalized=latest)
    return Document(
        id=name.id,
        source=NAME,
        kind="bill",
        title=title,
        summary=_shortened(latest, title) if latest else _official_title(bill, title),
        source_url=name.page,
        source_org=name.chamber,
        citation_string=cite_bill(
            congress=name.congress,
            kind=name.kind,
            number=name.number,
            introduced=date.fromisoformat(introduced) if introduced else None,
        ),
        raw=archived,
        published_at=introduced,
        body=body if latest else None,
        aliases=tuple(name.aliases()),
    )


def _latest_summary(bill: Any) -> NormalizedBody | None:
    rows = [row for item in summaries(bill) if (row := summary_row(item))["text"]]
    if not rows:
        return None
    latest = max(rows, key=lambda row: (row["action_date"] or "", row["update_date"] or ""))
    text = latest["text"]
    if not any(character.isalnum() for character in _without_tags(text)):
        return None
    return _HTML.to_markdown(f"<div>{text}</div>".encode())


def _shortened(body: NormalizedBody, title: str) -> str:
    text = " ".join(_MARKER.sub("", visible_text(body.markdown)).split())
    # Most summaries repeat the title as their first line.
    if text.startswith(title) and len(text) > len(title):
        text = text[len(title) :].lstrip(" .:-") or text
    if len(text) <= _MAX_SUMMARY_LENGTH:
        return text
    ends = [match.end() for match in _SENTENCE.finditer(text, 0, _MAX_SUMMARY_LENGTH)]
    if ends and ends[-1] >= _MIN_SUMMARY_LENGTH:
        return text[: ends[-1]].rstrip(":;") + ("" if text[ends[-1] - 1] in ".!?" else " …")
    return text[:_MAX_SUMMARY_LENGTH].rpartition(" ")[0] + " …"


def _official_title(bill: Any, title: str) -> str | None:
    for item in every(bill, "titles/item"):
        text = first(item, "title")
        if (first(item, "titleType") or "").startswith("Official Title") and text != title:
            return text
    return None


def _without_tags(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())

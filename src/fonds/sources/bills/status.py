"""A BILLSTATUS file, of any version, as the record of a bill."""

from __future__ import annotations

import html
import re
from datetime import date
from typing import Any, Final

from fonds.citations.bills import cite_bill
from fonds.errors import MalformedError, WrongContentError
from fonds.model import Archived, Body, Document, NormalizedBody, ParsedRecord
from fonds.normalize.html import Html
from fonds.normalize.markdown import plain
from fonds.sources.bills.children import NAME, children, summaries, summary_row
from fonds.sources.bills.elements import (
    day,
    every,
    first,
    from_json,
    latest_action,
    listed,
    number_at,
    texts,
)
from fonds.sources.bills.names import BillName
from fonds.sources.bills.tables import bills
from fonds.sources.families import xml_files

# The body is one element of the archived file, so no normalizer can make it from that file
# alone: it is made anew when the file is parsed anew.
NORMALIZER: Final = "billstatus_summary@1.0.0"
_HTML: Final = Html()
_TAG: Final = re.compile(r"<[^<>]+>")
_SENTENCE: Final = re.compile(r"[.!?:;](?=\s)")
_MARKER: Final = re.compile(r"^\s*[-*]\s+", re.MULTILINE)
_LONGEST_SUMMARY: Final = 600
_SHORTEST_SUMMARY: Final = 200


def read_status(data: bytes) -> Any:
    """The `bill` element of a status file, with the version of the format as its attribute."""
    root = xml_files.without_namespaces(xml_files.read(data, "billStatus"))
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
        **texts(
            bill,
            origin_chamber="originChamber",
            create_date="createDate",
            update_date="updateDate",
            update_date_including_text="updateDateIncludingText",
        ),
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
    text = " ".join(_MARKER.sub("", plain(body.markdown)).split())
    # Most summaries repeat the title as their first line.
    if text.startswith(title) and len(text) > len(title):
        text = text[len(title) :].lstrip(" .:-") or text
    if len(text) <= _LONGEST_SUMMARY:
        return text
    ends = [found.end() for found in _SENTENCE.finditer(text, 0, _LONGEST_SUMMARY)]
    if ends and ends[-1] >= _SHORTEST_SUMMARY:
        return text[: ends[-1]].rstrip(":;") + ("" if text[ends[-1] - 1] in ".!?" else " …")
    return text[:_LONGEST_SUMMARY].rpartition(" ")[0] + " …"


def _official_title(bill: Any, title: str) -> str | None:
    for item in every(bill, "titles/item"):
        found = first(item, "title")
        if (first(item, "titleType") or "").startswith("Official Title") and found != title:
            return found
    return None


def _without_tags(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())

"""What a committee report becomes, and how reports without MODS are understood."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fonds import ids
from fonds.citations.bills import ordinal
from fonds.citations.committee_reports import cite_committee_reports, report_number
from fonds.citations.committees import publisher_for
from fonds.errors import WrongContentError
from fonds.model import Archived, Body, Document, ParsedRecord
from fonds.sources.committee_reports.tables import (
    committee_report_bills,
    committee_report_committees,
    committee_reports,
)
from fonds.sources.families import fields, mods
from fonds.sources.families.bill_numbers import find_bill_numbers
from fonds.sources.families.gpo_files import bill_rows, children, committee_rows, written_day
from fonds.sources.families.mods import Bill, Committee, Item

NAME: Final = "committee_reports"

_PACKAGE: Final = re.compile(r"CRPT-(?P<congress>\d+)(?P<series>[hse])rpt(?P<number>\d+)")
_PART: Final = re.compile(r"(?:\bPart |-pt)(\d+)", re.IGNORECASE)
_SPACELESS: Final = re.compile(r",(?=\S)")
_TITLE: Final = re.compile(
    r"<title>\s*(?:[A-Z][\w ]* Report [\d-]+\s*-\s*)?([^<]*)</title>", re.IGNORECASE
)
_ISSUED: Final = re.compile(r"^\s*([A-Z][a-z]+ \d{1,2}, \d{4})\.--", re.MULTILINE)
_ACCOMPANIES: Final = re.compile(r"\[To accompany ([^\]]+)\]", re.IGNORECASE)
_COMMITTEE: Final = re.compile(
    r"\bfrom the ((?:Permanent |Select |Special |Joint )*Committee\s[^,;.]+?),?\s+submitted\b"
)
_CHAMBERS: Final = {"h": "HOUSE", "s": "SENATE", "e": "SENATE"}
_KINDS: Final = {"HRPT": "house-report", "SRPT": "senate-report", "ERPT": "executive-report"}
_TEXT_FIELDS: Final = {
    "chamber": "chamber",
    "doc_class": "docClass",
    "subtitle": "subtitle",
    "short_title": "shortTitle",
    "recommendation": "recommendation",
    "submitted_statement": "submittedStatement",
    "legislative_history": "legislativeHistory",
}


def record(item: Item, archived: Archived, body: Body | None) -> ParsedRecord:
    """The report with the bills and committees it names."""
    key = ids.govinfo_id(item.package if item.leads else item.id)
    owner = ("report_id", key)
    return ParsedRecord(
        source=NAME,
        table=committee_reports.name,
        key=key,
        payload=_row(key, item),
        children=(
            *children(NAME, committee_report_bills.name, owner, bill_rows(item)),
            *children(NAME, committee_report_committees.name, owner, committee_rows(item)),
        ),
        document=_document(key, item, archived, body),
    )


def _row(key: str, item: Item) -> dict[str, Any]:
    part = _part(item)
    reported = (bill.reference for bill in item.bills if bill.context == "PRIMARY")
    submitters = (one.reference for one in item.members if one.role == "SUBMITTEDBY")
    return {
        "id": key,
        "package_id": item.package,
        "access_id": item.id,
        "title": item.title,
        "congress": item.number("congress"),
        "session": item.number("session"),
        "number": item.number("number"),
        "part_number": int(part) if part else None,
        **{column: item.field(field) for column, field in _TEXT_FIELDS.items()},
        "preferred_citation": _preferred(item),
        "date_issued": _issued(item),
        "is_conference_report": item.flag("isConferenceReport"),
        "bill_ref": next((found for found in reported if found), None),
        "submitted_by_ref": next((found for found in submitters if found), None),
    }


def _part(item: Item) -> str | None:
    for named in (item.part_name, item.field("heading"), item.id.removeprefix(item.package)):
        if match := _PART.search(named or ""):
            return match[1]
    return None


def _issued(item: Item) -> str | None:
    # The package has the date of its first part; a later one has its own action.
    return item.date_issued if item.leads else item.action_date or item.date_issued


def _preferred(item: Item) -> str | None:
    return _SPACELESS.sub(", ", item.citation) if item.citation else None


def _document(key: str, item: Item, archived: Archived, body: Body | None) -> Document:
    issued = _issued(item)
    return Document(
        id=key,
        source=NAME,
        kind=_kind(item),
        title=_title(item),
        summary=item.abstract or item.field("recommendation") or item.field("subtitle"),
        source_url=item.page,
        source_org=publisher_for((item.field("chamber") or "").lower()),
        citation_string=cite_committee_reports(
            series=item.field("docClass"),
            number=_number(item),
            part=_part(item),
            year=issued[:4] if issued else None,
            is_conference=bool(item.flag("isConferenceReport")),
        ),
        published_at=issued,
        raw=archived,
        body=body,
        aliases=tuple(dict.fromkeys(filter(None, _aliases(item)))),
    )


def _kind(item: Item) -> str:
    if item.flag("isConferenceReport"):
        return "conference_report"
    return "executive_report" if item.field("docClass") == "ERPT" else "committee_report"


def _title(item: Item) -> str:
    part = _part(item)
    if part is None or f"part {part}" in item.title.lower():
        return item.title
    return f"{item.title}, Part {part}"


def _number(item: Item) -> str:
    return f"{item.field('congress')}-{item.field('number')}"


def _aliases(item: Item) -> Iterator[str]:
    yield item.id
    yield item.page
    series, number, preferred = item.field("docClass"), _number(item), _preferred(item) or ""
    yield report_number(series=series, number=number, part=_part(item))
    yield preferred
    if item.leads:
        # A citation without a part means the report, which begins with its first.
        yield report_number(series=series, number=number)
        yield preferred.partition(", Part")[0]
        yield item.package
        yield mods.details_page(item.package, item.package)
        yield from _congress_page(item)


def _congress_page(item: Item) -> Iterator[str]:
    congress, kind = item.number("congress"), _KINDS.get(item.field("docClass") or "")
    if congress and kind:
        place = f"{ordinal(congress)}-congress/{kind}/{item.field('number')}"
        yield f"https://www.congress.gov/committee-report/{place}"


# Without MODS -----------------------------------------------------------------------------


def from_text(name: str, text: str) -> Item:
    """A report as far as its name and first page tell."""
    match = _PACKAGE.match(name)
    if match is None:
        raise WrongContentError(f"{name} is not the name of a report")
    titled, dated = _TITLE.search(text), _ISSUED.search(text)
    return Item(
        package=match[0],
        id=name,
        leads=name in {match[0], f"{match[0]}-pt1"},
        title=" ".join((titled[1] if titled else "").split()) or name,
        date_issued=written_day(dated[1]) if dated else None,
        fields=_named(match),
        bills=_accompanied(text, int(match["congress"])),
        committees=tuple(_reporting(text, match["series"])),
    )


def _named(match: re.Match[str]) -> dict[str, tuple[str, ...]]:
    return {
        "congress": (match["congress"],),
        "number": (match["number"],),
        "chamber": (_CHAMBERS[match["series"]],),
        "docClass": (f"{match['series'].upper()}RPT",),
    }


def _accompanied(text: str, congress: int) -> tuple[Bill, ...]:
    match = _ACCOMPANIES.search(text)
    return tuple(
        Bill(congress=congress, type=bill.kind.upper(), number=bill.number, context="PRIMARY")
        for bill in find_bill_numbers(match[1] if match else "")
    )


def _reporting(text: str, series: str) -> Iterator[Committee]:
    if match := _COMMITTEE.search(text):
        chamber = "H" if series == "h" else "S"
        yield Committee(name=" ".join(match[1].split()), chamber=chamber)


def from_json(loaded: Any) -> Sequence[Item]:
    """Reports as the congress.gov API describes them; its lists are refused."""
    content = fields.mapping(loaded)
    if "committeeReports" not in content:
        listed = "reports" in content
        what = "a listing of the congress.gov API" if listed else fields.describe(content)
        raise WrongContentError(f"expected a report, found {what}")
    return [_from_api(one) for one in fields.sections(content, "committeeReports")]


def _from_api(report: Mapping[str, Any]) -> Item:
    series = fields.required(report, "type").upper()
    congress, number = fields.required(report, "congress"), fields.required(report, "number")
    package = f"CRPT-{congress}{series.lower()}{number}"
    part = fields.whole(report, "part") or 1
    known = {
        "congress": congress,
        "number": number,
        "chamber": (fields.text(report, "chamber") or "").upper(),
        "docClass": series,
        "session": fields.text(report, "sessionNumber"),
        "isConferenceReport": fields.text(report, "isConferenceReport"),
    }
    return Item(
        package=package,
        id=package if part == 1 else f"{package}-pt{part}",
        leads=part == 1,
        title=fields.text(report, "title") or package,
        date_issued=mods.iso_day(fields.text(report, "issueDate")),
        citation=fields.text(report, "citation"),
        fields={field: (value,) for field, value in known.items() if value},
        bills=tuple(_api_bill(one) for one in fields.sections(report, "associatedBill")),
        committees=tuple(Committee.of_api(one) for one in fields.sections(report, "committees")),
    )


def _api_bill(entry: Mapping[str, Any]) -> Bill:
    return Bill(
        congress=fields.whole(entry, "congress"),
        type=fields.text(entry, "type"),
        number=fields.whole(entry, "number"),
        context="PRIMARY",
    )

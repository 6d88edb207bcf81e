"""Reports of committees and conferences to their chambers (CRPT).

Quirks of the publisher:
- Three series: House (`hrpt`), Senate (`srpt`) and Senate executive reports (`erpt`), whose
  numbers begin again with each Congress. Conference reports are House or Senate reports.
- Parts of a report are granules of one package, `-pt2` being added to it months later with a
  date of its own, which only its `action` states. The first part goes by the name of the
  package, also where it is called `-pt1`; its text is then served under that name alone.
- The bill reported is in the MODS twice, as `PRIMARY` and as `OTHER`; what is only `OTHER`
  is mentioned. A rule names the bills it is about in its title only.
- A text may be a cover that refers to the PDF, which then is the body.
- Walks of the API also name `ERP-…` and `GPO-…` packages, which are none of ours.
- congress.gov counts a report without parts as part 1; its files are understood when loose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds.errors import WrongContentError
from fonds.model import Archived, Body, Document, ParsedRecord
from fonds.sources.base import Rate, SourceInfo
from fonds.sources.formats import fields, mods
from fonds.sources.formats.congress import find_bill_numbers, ordinal, publisher_for
from fonds.sources.formats.govinfo import GovinfoCollection, PackageSource
from fonds.sources.formats.gpo_files import (
    LooseReader,
    bill_rows,
    committee_rows,
    govinfo_id,
    printed_iso_day,
)
from fonds.sources.formats.mods import ModsBill, ModsCommittee, ModsItem
from fonds.sources.formats.records import child_records, child_table
from fonds.stores.columns import Json, document_key, owned_by, reference, texts
from fonds.stores.tables import metadata

# The tables of committee reports; columns bear the names the MODS gives its fields.

committee_reports: Final = Table(
    "committee_reports",
    metadata,
    document_key("crpt:<package or granule>"),
    Column("package_id", Text, nullable=False, comment="CRPT-119hrpt100."),
    Column("access_id", Text, nullable=False, comment="The granule: CRPT-119hrpt100-pt2."),
    Column("title", Text, nullable=False, comment="In capitals, as printed."),
    Column("congress", Integer, comment="119."),
    Column("session", Integer, comment="Of that Congress: 1 or 2."),
    Column("number", Integer, comment="100 of H. Rept. 119-100."),
    Column("part_number", Integer, comment="2 of Part 2; NULL for a report without parts."),
    *texts(
        chamber="HOUSE or SENATE.",
        doc_class="HRPT, SRPT, or ERPT of the Senate in executive session.",
        subtitle="Report together with minority views to accompany H.R. 3495.",
        short_title="Of the bill reported.",
        recommendation="What the committee asks its chamber to do.",
        submitted_statement="Who submitted it for which committee.",
        legislative_history="What became of the report: ordered to be printed, committed to ….",
        preferred_citation="H. Rept. 119-494, Part 2.",
        date_issued="Day of the report, or of this part's own action; ISO 8601.",
    ),
    Column("is_conference_report", Boolean, comment="Of the managers of both chambers."),
    *reference("bill", "bills", "The bill reported: bill:<congress>-<type>-<number>"),
    *reference("submitted_by", "legislators", "legislator:<bioguide> of who submitted it."),
    Index("ix_committee_reports_package_id", "package_id"),
    Index("ix_committee_reports_date_issued", "date_issued"),
    comment="Reports of committees and conferences to their chambers.",
)

committee_report_bills: Final = child_table(
    "committee_report_bills",
    owned_by("committee_reports", "report_id"),
    *reference("bill", "bills", "bill:<congress>-<type>-<number>"),
    Column("congress", Integer, comment="Of the bill."),
    Column("type", Text, comment="HR, S, HJRES, …"),
    Column("number", Integer, comment="Of the bill."),
    Column("context", Text, comment="PRIMARY: it is reported; OTHER: it is mentioned."),
    comment="Bills a report names; the one reported is often listed twice.",
)

committee_report_committees: Final = child_table(
    "committee_report_committees",
    owned_by("committee_reports", "report_id"),
    *reference("committee", "committees", "committee:<code>"),
    Column("name", Text, nullable=False, comment="Committee on Rules."),
    *texts(
        authority_id="hsru00; NULL for a committee the authority file does not know.",
        short_name="Rules.",
        chamber="H, S or J.",
        type="S standing, L select, P special, J joint, T task force, O other.",
    ),
    Column("subcommittees", Json, nullable=False, comment="Names, where the report has any."),
    comment="Committees that report.",
)

TABLES: Final = (committee_reports, committee_report_bills, committee_report_committees)
"""Parents before children."""


# How a report of a committee is cited.

_SERIES: Final = {
    "HRPT": "H.R. Rep. No.",
    "SRPT": "S. Rep. No.",
    "ERPT": "S. Exec. Rep. No.",
}


def cite_committee_reports(
    *,
    series: str | None,
    number: str,
    part: str | None = None,
    year: str | None = None,
    is_conference: bool = False,
) -> str:
    """The citation of a report, `H.R. Rep. No. 119-100, pt. 2 (2025).`, ready to paste.

    `number` carries the Congress. A report of a conference says so behind the year.
    """
    cited = report_number(series=series, number=number, part=part)
    if year:
        cited += f" ({year})"
    return f"{cited} (Conf. Rep.)." if is_conference else f"{cited}."


def report_number(*, series: str | None, number: str, part: str | None = None) -> str:
    """The short form of a report's number: `S. Rep. No. 119-12`."""
    name = f"{_SERIES.get(series or '', 'Cong. Rep. No.')} {number}"
    return f"{name}, pt. {part}" if part else name


# Reports as records, with and without MODS.

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
_TEXT_FIELDS: Final = (
    "chamber",
    "doc_class",
    "subtitle",
    "short_title",
    "recommendation",
    "submitted_statement",
    "legislative_history",
)


def record(item: ModsItem, archived: Archived, body: Body | None) -> ParsedRecord:
    """The report with the bills and committees it names."""
    key = govinfo_id(item.package if item.has_package_name else item.id)
    return ParsedRecord(
        source=NAME,
        table=committee_reports.name,
        key=key,
        payload=_row(key, item),
        children=(
            *child_records(NAME, committee_report_bills, key, bill_rows(item)),
            *child_records(NAME, committee_report_committees, key, committee_rows(item)),
        ),
        document=_document(key, item, archived, body),
    )


def _row(key: str, item: ModsItem) -> dict[str, Any]:
    part = _part(item)
    reported = (bill.reference for bill in item.bills if bill.context == "PRIMARY")
    submitters = (member.reference for member in item.members if member.role == "SUBMITTEDBY")
    return {
        "id": key,
        "package_id": item.package,
        "access_id": item.id,
        "title": item.title,
        "congress": item.number("congress"),
        "session": item.number("session"),
        "number": item.number("number"),
        "part_number": int(part) if part else None,
        **item.texts(*_TEXT_FIELDS),
        "preferred_citation": _preferred(item),
        "date_issued": _issued(item),
        "is_conference_report": item.flag("isConferenceReport"),
        "bill_ref": next((reference for reference in reported if reference), None),
        "submitted_by_ref": next((reference for reference in submitters if reference), None),
    }


def _part(item: ModsItem) -> str | None:
    for text in (item.part_name, item.field("heading"), item.id.removeprefix(item.package)):
        if match := _PART.search(text or ""):
            return match[1]
    return None


def _issued(item: ModsItem) -> str | None:
    # The package has the date of its first part; a later one has its own action.
    return item.date_issued if item.has_package_name else item.action_date or item.date_issued


def _preferred(item: ModsItem) -> str | None:
    return _SPACELESS.sub(", ", item.citation) if item.citation else None


def _document(key: str, item: ModsItem, archived: Archived, body: Body | None) -> Document:
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


def _kind(item: ModsItem) -> str:
    if item.flag("isConferenceReport"):
        return "conference_report"
    return "executive_report" if item.field("docClass") == "ERPT" else "committee_report"


def _title(item: ModsItem) -> str:
    part = _part(item)
    if part is None or f"part {part}" in item.title.lower():
        return item.title
    return f"{item.title}, Part {part}"


def _number(item: ModsItem) -> str:
    return f"{item.field('congress')}-{item.field('number')}"


def _aliases(item: ModsItem) -> Iterator[str]:
    yield item.id
    yield item.page
    series, number, preferred = item.field("docClass"), _number(item), _preferred(item) or ""
    yield report_number(series=series, number=number, part=_part(item))
    yield preferred
    if item.has_package_name:
        # A citation without a part means the report, which begins with its first.
        yield report_number(series=series, number=number)
        yield preferred.partition(", Part")[0]
        yield item.package
        yield mods.details_page(item.package, item.package)
        yield from _congress_page(item)


def _congress_page(item: ModsItem) -> Iterator[str]:
    congress, kind = item.number("congress"), _KINDS.get(item.field("docClass") or "")
    if congress and kind:
        path = f"{ordinal(congress)}-congress/{kind}/{item.field('number')}"
        yield f"https://www.congress.gov/committee-report/{path}"


# Without MODS -----------------------------------------------------------------------------


def from_text(name: str, text: str) -> ModsItem:
    """A report as far as its name and first page tell."""
    match = _PACKAGE.match(name)
    if match is None:
        raise WrongContentError(f"{name} is not the name of a report")
    titled, dated = _TITLE.search(text), _ISSUED.search(text)
    return ModsItem(
        package=match[0],
        id=name,
        has_package_name=name in {match[0], f"{match[0]}-pt1"},
        title=" ".join((titled[1] if titled else "").split()) or name,
        date_issued=printed_iso_day(dated[1]) if dated else None,
        fields=_fields_of(match),
        bills=_accompanied(text, int(match["congress"])),
        committees=tuple(_reporting(text, match["series"])),
    )


def _fields_of(match: re.Match[str]) -> dict[str, tuple[str, ...]]:
    return {
        "congress": (match["congress"],),
        "number": (match["number"],),
        "chamber": (_CHAMBERS[match["series"]],),
        "docClass": (f"{match['series'].upper()}RPT",),
    }


def _accompanied(text: str, congress: int) -> tuple[ModsBill, ...]:
    match = _ACCOMPANIES.search(text)
    return tuple(
        ModsBill(congress=congress, type=bill.kind.upper(), number=bill.number, context="PRIMARY")
        for bill in find_bill_numbers(match[1] if match else "")
    )


def _reporting(text: str, series: str) -> Iterator[ModsCommittee]:
    if match := _COMMITTEE.search(text):
        chamber = "H" if series == "h" else "S"
        yield ModsCommittee(name=" ".join(match[1].split()), chamber=chamber)


def from_json(loaded: Any) -> Sequence[ModsItem]:
    """Reports as the congress.gov API describes them; its lists are refused."""
    content = fields.mapping(loaded)
    if "committeeReports" not in content:
        listed = "reports" in content
        what = "a listing of the congress.gov API" if listed else fields.describe(content)
        raise WrongContentError(f"expected a report, found {what}")
    return [_from_api(report) for report in fields.sections(content, "committeeReports")]


def _from_api(report: Mapping[str, Any]) -> ModsItem:
    series = fields.required(report, "type").upper()
    congress, number = fields.required(report, "congress"), fields.required(report, "number")
    package = f"CRPT-{congress}{series.lower()}{number}"
    part = fields.whole(report, "part") or 1
    values = {
        "congress": congress,
        "number": number,
        "chamber": (fields.text(report, "chamber") or "").upper(),
        "docClass": series,
        "session": fields.text(report, "sessionNumber"),
        "isConferenceReport": fields.text(report, "isConferenceReport"),
    }
    return ModsItem(
        package=package,
        id=package if part == 1 else f"{package}-pt{part}",
        has_package_name=part == 1,
        title=fields.text(report, "title") or package,
        date_issued=mods.iso_day(fields.text(report, "issueDate")),
        citation=fields.text(report, "citation"),
        fields={field: (value,) for field, value in values.items() if value},
        bills=tuple(_api_bill(bill) for bill in fields.sections(report, "associatedBill")),
        committees=tuple(
            ModsCommittee.of_api(committee) for committee in fields.sections(report, "committees")
        ),
    )


def _api_bill(entry: Mapping[str, Any]) -> ModsBill:
    return ModsBill(
        congress=fields.whole(entry, "congress"),
        type=fields.text(entry, "type"),
        number=fields.whole(entry, "number"),
        context="PRIMARY",
    )


COLLECTION: Final = GovinfoCollection(source=NAME, code="CRPT", first_year=1995)
INFO: Final = SourceInfo(
    name=NAME,
    title="Congressional Committee Reports",
    summary="reports of committees on bills, in full",
    organisation="U.S. Government Publishing Office",
    addresses=("https://www.govinfo.gov/sitemap/CRPT_{year}_sitemap.xml",),
    jurisdiction="United States",
    version="1.0.0",
    schedule="50 6 * * *",
    rate=Rate(per_second=4, burst=8),
    tables=TABLES,
    depends_on=("legislators", "committees", "bills"),
    published_at="originInfo/dateIssued of the MODS; of a later part, action/@date",
    options=("congresses",),
    csl_type="report",
)


class CommitteeReports(PackageSource):
    """The source `committee_reports`."""


source: Final = CommitteeReports(
    INFO,
    COLLECTION,
    LooseReader(code=COLLECTION.code, record=record, from_text=from_text, from_json=from_json),
)

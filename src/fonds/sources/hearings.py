"""Hearings of committees of Congress, as the Government Publishing Office prints them (CHRG).

Quirks of the publisher:
- A transcript appears months to years after its hearing, in the sitemap of the year it was held
  or printed, so a Congress is looked for in the two years after it as well.
- A package is a printed jacket. Most are one hearing; a few have volumes, parts or errata, each
  a document of its own, and the first goes by the name of the package.
- `heldDate` is repeated for a hearing of several days, and missing for some. Scans of old prints
  whose day is unknown state the last day of the year: `date_is_placeholder`, no `held_date`.
- Witnesses are whole lines, sometimes with the panel before the name; subcommittees have a name
  and no code; committees before the authority file have no code either.
- Scans offer a PDF only, and some texts are a cover that refers to the PDF; both get the PDF.
- Serial numbers repeat from committee to committee: only `S. Hrg.` numbers are aliases.
- congress.gov describes a hearing without its witnesses; such files are understood when loose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds.errors import WrongContentError
from fonds.model import Archived, Body, Document, ParsedRecord
from fonds.sources.base import Rate, SourceInfo
from fonds.sources.formats import fields, mods
from fonds.sources.formats.congress import congress_ranges, publisher_for
from fonds.sources.formats.govinfo import GovinfoCollection, PackageSource
from fonds.sources.formats.gpo_files import (
    LooseReader,
    bill_rows,
    committee_rows,
    govinfo_id,
    member_rows,
    printed_iso_day,
)
from fonds.sources.formats.mods import ModsCommittee, ModsItem
from fonds.sources.formats.records import child_records, child_table
from fonds.stores.columns import Json, document_key, owned_by, reference, texts
from fonds.stores.tables import metadata

# The tables of hearings; columns bear the names the MODS gives its fields.

hearings: Final = Table(
    "hearings",
    metadata,
    document_key("chrg:<package or granule>"),
    Column("package_id", Text, nullable=False, comment="The printed jacket: CHRG-119hhrg58888."),
    Column("access_id", Text, nullable=False, comment="The granule; differs for volumes, parts."),
    Column("title", Text, nullable=False, comment="In capitals, as the cover prints it."),
    Column("congress", Integer, comment="119."),
    Column("session", Integer, comment="Of that Congress: 1 or 2."),
    *texts(
        chamber="HOUSE, SENATE or JOINT.",
        doc_class="HHRG, SHRG or JHRG.",
        type="F field, M markup, O oversight, AU, AP, N nomination, T treaty, G general.",
        number="Of a Senate hearing: 889 of S. Hrg. 117-889.",
        preferred_citation="Serial No. 118-30, S. Hrg. 117-889; serials repeat.",
        jacket_id="52-385.",
        event_id="Of the meeting at congress.gov.",
        heading="Part 2, Volume III, Errata.",
        part_number="2, 1a.",
        volume_number="2.",
        fiscalyear="Of an appropriation.",
        other_hosting_org="Who held it where no committee did.",
        date_issued="Day held, by the publisher; ISO 8601.",
        held_date="First day held, ISO 8601; NULL where it is only a placeholder.",
    ),
    Column("held_dates", Json, nullable=False, comment="All days the publisher states."),
    Column(
        "date_is_placeholder",
        Boolean,
        nullable=False,
        comment="A scan whose day is unknown: the last of its year replaces it.",
    ),
    Column("is_appropriation", Boolean, comment="On money for a fiscal year."),
    Column("is_nomination", Boolean, comment="On a nomination."),
    Column("is_errata", Boolean, comment="Corrections to another print."),
    Index("ix_hearings_package_id", "package_id"),
    Index("ix_hearings_held_date", "held_date"),
    comment="Printed hearings of committees of Congress.",
)

hearing_witnesses: Final = child_table(
    "hearing_witnesses",
    owned_by("hearings", "hearing_id"),
    Column("witness", Text, nullable=False, comment="The whole line: name, office, organisation."),
    comment="Who testified, as the cover lists them.",
)

hearing_committees: Final = child_table(
    "hearing_committees",
    owned_by("hearings", "hearing_id"),
    *reference("committee", "committees", "committee:<code>"),
    Column("name", Text, nullable=False, comment="Committee on Natural Resources."),
    *texts(
        authority_id="hsii00; NULL for a committee the authority file does not know.",
        short_name="Natural Resources.",
        chamber="H, S or J.",
        type="S standing, L select, P special, J joint, T task force, O other.",
    ),
    Column("subcommittees", Json, nullable=False, comment="Names of those that sat."),
    comment="Committees that held a hearing.",
)

hearing_members: Final = child_table(
    "hearing_members",
    owned_by("hearings", "hearing_id"),
    *reference("legislator", "legislators", "legislator:<bioguide>"),
    Column("name", Text, nullable=False, comment="First name first."),
    *texts(
        bioguide="Of the Biographical Directory.",
        parsed="As printed.",
        role="COMMMEMBER.",
        chamber="H or S.",
        party="D, R, I.",
        state="Postal code.",
    ),
    comment="Members of the committees, as the hearing lists them.",
)

hearing_bills: Final = child_table(
    "hearing_bills",
    owned_by("hearings", "hearing_id"),
    *reference("bill", "bills", "bill:<congress>-<type>-<number>"),
    Column("congress", Integer, comment="Of the bill."),
    Column("type", Text, comment="HR, S, HJRES, …"),
    Column("number", Integer, comment="Of the bill."),
    Column("context", Text, comment="COVER: the hearing is about it; BODY: it is mentioned."),
    comment="Bills a hearing names.",
)

TABLES: Final = (hearings, hearing_witnesses, hearing_committees, hearing_members, hearing_bills)
"""Parents before children."""


# How a hearing is cited.
#
# `Hearing Title: Hearing Before the Subcomm. on Y of the H. Comm. on X, 119th Cong. (2025).`

_CHAMBER_LETTERS: Final = {"H": "H.", "S": "S."}
# congress.gov writes `House Agriculture Committee` for the Committee on Agriculture of the House.
_INVERTED: Final = re.compile(
    r"^(?:House|Senate) (?!.*\b(?:Select|Special)\b)(.+?) Committee$"
    r"|^(?:House|Senate) (.+?) (Subcommittee on .+)$"
)
# Catalogued titles of old prints go on with who held the hearings.
_SELF_DESCRIBED: Final = re.compile(r":\s*hearings? before\b.*", re.IGNORECASE | re.DOTALL)
_OWN_CHAMBER: Final = re.compile(r"^(?:United States )?(?:House|Senate)\s+")
_SHORT: Final = (
    (re.compile(r"\bSubcommittee\b", re.IGNORECASE), "Subcomm."),
    (re.compile(r"\bCommittee\b", re.IGNORECASE), "Comm."),
    (re.compile(r"^Joint\b", re.IGNORECASE), "J."),
)

CitedCommittee = tuple[str | None, str, Sequence[str]]
"""The letter of its chamber, its name, and the names of those of its subcommittees that sat."""


def cite_hearings(
    *,
    title: str,
    committees: Iterable[CitedCommittee],
    congress: int | None,
    year: str | None,
    host: str | None = None,
) -> str:
    """The citation of a hearing, ready to paste.

    `host` is who held it where no committee did. What is unknown is left out.
    """
    before = " and the ".join(_each_once(map(_committee, committees))) or host
    name = f"Hearing Before the {before}" if before else "Hearing"
    cited = f"{_SELF_DESCRIBED.sub('', title).rstrip(' .:')}: {name}"
    if congress:
        cited += f", {congress_ranges([congress])}"
    return f"{cited} ({year})." if year else f"{cited.removesuffix('.')}."


def _each_once(cited: Iterable[str]) -> list[str]:
    """Without committees that are there for a subcommittee of theirs."""
    listed = list(dict.fromkeys(cited))
    return [
        name for name in listed if not any(other.endswith(f" of the {name}") for other in listed)
    ]


def _committee(committee: CitedCommittee) -> str:
    chamber, name, below = committee
    if inverted := _INVERTED.match(name):
        name = f"Committee on {inverted[1] or inverted[2]}"
        below = below or ([inverted[3]] if inverted[3] else [])
    shortened = _shortened(_OWN_CHAMBER.sub("", name))
    prefix = _CHAMBER_LETTERS.get(chamber or "", "")
    whole = shortened if shortened.startswith("J.") else f"{prefix} {shortened}".strip()
    if not below:
        return whole
    return f"{' and the '.join(map(_shortened, below))} of the {whole}"


def _shortened(name: str) -> str:
    for pattern, short in _SHORT:
        name = pattern.sub(short, name)
    return name


# Hearings as records, with and without MODS.

NAME: Final = "hearings"

_PACKAGE: Final = re.compile(r"CHRG-(?P<congress>\d+)(?P<chamber>[hsj])hrg(?P<jacket>\d+)(?:p\d+)?")
_CHAMBERS: Final = {"h": "HOUSE", "s": "SENATE", "j": "JOINT"}
_TITLE: Final = re.compile(r"<title>[\s-]*([^<]*?)\s*</title>", re.IGNORECASE)
_COVER_DAY: Final = re.compile(
    r"^\s*(?:\w+day, )?([A-Z][A-Za-z]+ \d{1,2}, \d{4})[ \t]*$", re.MULTILINE
)
_SENATE_NUMBER: Final = re.compile(r"\b([SJ])\.\s*Hrg\.\s+(\d+-\d+)", re.IGNORECASE)
_UNIQUE_CITATION: Final = re.compile(r"[HSJ]\. Hrg\. \d+-\d+")
_TEXT_FIELDS: Final = (
    "chamber",
    "doc_class",
    "type",
    "number",
    "preferred_citation",
    "jacket_id",
    "event_id",
    "heading",
    "part_number",
    "volume_number",
    "fiscalyear",
    "other_hosting_org",
)


def record(item: ModsItem, archived: Archived, body: Body | None) -> ParsedRecord:
    """The hearing with its witnesses, committees, members and bills."""
    key = govinfo_id(item.package if item.has_package_name else item.id)
    witnesses = ({"witness": line} for line in item.fields.get("witness", ()))
    return ParsedRecord(
        source=NAME,
        table=hearings.name,
        key=key,
        payload=_row(key, item),
        children=(
            *child_records(NAME, hearing_witnesses, key, witnesses),
            *child_records(NAME, hearing_committees, key, committee_rows(item)),
            *child_records(NAME, hearing_members, key, member_rows(item)),
            *child_records(NAME, hearing_bills, key, bill_rows(item)),
        ),
        document=_document(key, item, archived, body),
    )


def _row(key: str, item: ModsItem) -> dict[str, Any]:
    days = _days_of(item)
    return {
        "id": key,
        "package_id": item.package,
        "access_id": item.id,
        "title": item.title,
        "congress": item.number("congress"),
        "session": item.number("session"),
        **item.texts(*_TEXT_FIELDS),
        "date_issued": item.date_issued,
        "held_date": None if _is_placeholder(item) or not days else days[0],
        "held_dates": days,
        "date_is_placeholder": _is_placeholder(item),
        "is_appropriation": item.flag("isAppropriation"),
        "is_nomination": item.flag("isNomination"),
        "is_errata": item.flag("isErrata"),
    }


def _days_of(item: ModsItem) -> list[str]:
    return [day for text in item.fields.get("heldDate", ()) if (day := mods.iso_day(text))]


def _is_placeholder(item: ModsItem) -> bool:
    days = {*_days_of(item), item.date_issued} - {None}
    is_scan = item.field("submittedMetadata") == "historical"
    return is_scan and len(days) == 1 and str(days.pop()).endswith("-12-31")


def _document(key: str, item: ModsItem, archived: Archived, body: Body | None) -> Document:
    days = _days_of(item)
    issued = item.date_issued or (days[0] if days else None)
    witnesses = "; ".join(item.fields.get("witness", ()))
    return Document(
        id=key,
        source=NAME,
        kind="hearing",
        title=_title(item),
        summary=f"Witnesses: {witnesses}" if witnesses else None,
        source_url=item.page,
        source_org=publisher_for((item.field("chamber") or "").lower()),
        citation_string=cite_hearings(
            title=_title(item),
            committees=[
                (committee.chamber, committee.name, committee.subcommittees)
                for committee in item.committees
            ],
            congress=item.number("congress"),
            year=((days[0] if days else None) or issued or "")[:4] or None,
            host=item.field("otherHostingOrg"),
        ),
        published_at=issued,
        raw=archived,
        body=body,
        aliases=tuple(dict.fromkeys(_aliases(item))),
    )


def _title(item: ModsItem) -> str:
    part = item.part_name or item.field("heading")
    if part is None or part.lower() in item.title.lower():
        return item.title
    return f"{item.title}, {part}"


def _aliases(item: ModsItem) -> Iterator[str]:
    yield item.id
    yield item.page
    if item.has_package_name:
        yield item.package
        yield mods.details_page(item.package, item.package)
        # Of a multi-volume print only the first answers to its number.
        cited = item.field("preferredCitation") or ""
        if _UNIQUE_CITATION.fullmatch(cited):
            yield cited


# Without MODS -----------------------------------------------------------------------------


def from_text(name: str, text: str) -> ModsItem:
    """A hearing as far as its name and cover tell."""
    match = _PACKAGE.match(name)
    if match is None:
        raise WrongContentError(f"{name} is not the name of a hearing")
    titled = _TITLE.search(text)
    day = _cover_day(text)
    numbered = _SENATE_NUMBER.search(text)
    values = {
        "congress": match["congress"],
        "chamber": _CHAMBERS[match["chamber"]],
        "docClass": f"{match['chamber'].upper()}HRG",
        "heldDate": day,
        "preferredCitation": f"{numbered[1].upper()}. Hrg. {numbered[2]}" if numbered else None,
    }
    return ModsItem(
        package=match[0],
        id=name,
        has_package_name=name == match[0],
        title=" ".join((titled[1] if titled else "").split()) or name,
        date_issued=day,
        fields={field: (value,) for field, value in values.items() if value},
    )


def _cover_day(text: str) -> str | None:
    days = (printed_iso_day(match[1]) for match in _COVER_DAY.finditer(text))
    return next((day for day in days if day), None)


def from_json(loaded: Any) -> Sequence[ModsItem]:
    """A hearing as the congress.gov API describes it; its lists and meetings are refused."""
    content = fields.mapping(loaded)
    if "hearing" not in content:
        raise WrongContentError(f"expected a hearing, found {_described(content)}")
    return [_from_api(fields.section(content, "hearing"))]


def _described(content: Mapping[str, Any]) -> str:
    if "hearings" in content or "committeeMeetings" in content:
        return "a listing of the congress.gov API"
    if "committeeMeeting" in content:
        return "a meeting of the congress.gov API; its transcript is described elsewhere"
    return fields.describe(content)


def _from_api(hearing: Mapping[str, Any]) -> ModsItem:
    chamber = fields.required(hearing, "chamber").upper()
    congress = fields.required(hearing, "congress")
    letter = next((code for code, name in _CHAMBERS.items() if name == chamber), "j")
    jacket = fields.required(hearing, "jacketNumber")
    days = [fields.required(day, "date")[:10] for day in fields.sections(hearing, "dates")]
    offered = " ".join(fields.required(file, "url") for file in fields.sections(hearing, "formats"))
    match = _PACKAGE.search(offered)
    package = match[0] if match else f"CHRG-{congress}{letter}hrg{jacket}"
    stated = {
        "congress": [congress],
        "chamber": [chamber],
        "docClass": [f"{letter.upper()}HRG"],
        "heldDate": days,
        "jacketId": [jacket],
        "number": fields.texts(hearing, "number"),
        "eventId": fields.texts(fields.section(hearing, "associatedMeeting"), "eventId"),
    }
    return ModsItem(
        package=package,
        id=package,
        has_package_name=True,
        title=fields.text(hearing, "title") or package,
        date_issued=mods.iso_day(days[0]) if days else None,
        fields={field: tuple(values) for field, values in stated.items() if values},
        committees=tuple(
            ModsCommittee.of_api(committee) for committee in fields.sections(hearing, "committees")
        ),
    )


COLLECTION: Final = GovinfoCollection(source=NAME, code="CHRG", first_year=1941, late_years=2)
INFO: Final = SourceInfo(
    name=NAME,
    title="Congressional Hearings",
    summary="hearings of Congress with their witnesses, in full",
    organisation="U.S. Government Publishing Office",
    addresses=("https://www.govinfo.gov/sitemap/CHRG_{year}_sitemap.xml",),
    jurisdiction="United States",
    version="1.0.0",
    schedule="20 7 * * *",
    rate=Rate(per_second=4, burst=8),
    tables=TABLES,
    depends_on=("legislators", "committees", "bills"),
    published_at="originInfo/dateIssued of the MODS: the first day held",
    options=("congresses",),
    csl_type="hearing",
)


class Hearings(PackageSource):
    """The source `hearings`."""


source: Final = Hearings(
    INFO,
    COLLECTION,
    LooseReader(code=COLLECTION.code, record=record, from_text=from_text, from_json=from_json),
)

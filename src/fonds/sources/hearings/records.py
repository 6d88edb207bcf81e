"""What a hearing becomes, and how hearings without MODS are understood."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fonds import ids
from fonds.citations.committees import publisher_for
from fonds.citations.hearings import cite_hearings
from fonds.errors import WrongContentError
from fonds.model import Archived, Body, Document, ParsedRecord
from fonds.sources.families import fields, mods
from fonds.sources.families.gpo_files import (
    bill_rows,
    children,
    committee_rows,
    member_rows,
    written_day,
)
from fonds.sources.families.mods import Committee, Item
from fonds.sources.hearings.tables import (
    hearing_bills,
    hearing_committees,
    hearing_members,
    hearing_witnesses,
    hearings,
)

NAME: Final = "hearings"

_PACKAGE: Final = re.compile(r"CHRG-(?P<congress>\d+)(?P<chamber>[hsj])hrg(?P<jacket>\d+)(?:p\d+)?")
_CHAMBERS: Final = {"h": "HOUSE", "s": "SENATE", "j": "JOINT"}
_TITLE: Final = re.compile(r"<title>[\s-]*([^<]*?)\s*</title>", re.IGNORECASE)
_COVER_DAY: Final = re.compile(
    r"^\s*(?:\w+day, )?([A-Z][A-Za-z]+ \d{1,2}, \d{4})[ \t]*$", re.MULTILINE
)
_SENATE_NUMBER: Final = re.compile(r"\b([SJ])\.\s*Hrg\.\s+(\d+-\d+)", re.IGNORECASE)
_UNIQUE_CITATION: Final = re.compile(r"[HSJ]\. Hrg\. \d+-\d+")
_TEXT_FIELDS: Final = {
    "chamber": "chamber",
    "doc_class": "docClass",
    "type": "type",
    "number": "number",
    "preferred_citation": "preferredCitation",
    "jacket_id": "jacketId",
    "event_id": "eventId",
    "heading": "heading",
    "part_number": "partNumber",
    "volume_number": "volumeNumber",
    "fiscalyear": "fiscalyear",
    "other_hosting_org": "otherHostingOrg",
}


def record(item: Item, archived: Archived, body: Body | None) -> ParsedRecord:
    """The hearing with its witnesses, committees, members and bills."""
    key = ids.govinfo_id(item.package if item.leads else item.id)
    owner = ("hearing_id", key)
    witnesses = ({"witness": line} for line in item.fields.get("witness", ()))
    return ParsedRecord(
        source=NAME,
        table=hearings.name,
        key=key,
        payload=_row(key, item),
        children=(
            *children(NAME, hearing_witnesses.name, owner, witnesses),
            *children(NAME, hearing_committees.name, owner, committee_rows(item)),
            *children(NAME, hearing_members.name, owner, member_rows(item)),
            *children(NAME, hearing_bills.name, owner, bill_rows(item)),
        ),
        document=_document(key, item, archived, body),
    )


def _row(key: str, item: Item) -> dict[str, Any]:
    held = _held(item)
    return {
        "id": key,
        "package_id": item.package,
        "access_id": item.id,
        "title": item.title,
        "congress": item.number("congress"),
        "session": item.number("session"),
        **{column: item.field(field) for column, field in _TEXT_FIELDS.items()},
        "date_issued": item.date_issued,
        "held_date": None if _is_placeholder(item) or not held else held[0],
        "held_dates": held,
        "date_is_placeholder": _is_placeholder(item),
        "is_appropriation": item.flag("isAppropriation"),
        "is_nomination": item.flag("isNomination"),
        "is_errata": item.flag("isErrata"),
    }


def _held(item: Item) -> list[str]:
    return [day for held in item.fields.get("heldDate", ()) if (day := mods.iso_day(held))]


def _is_placeholder(item: Item) -> bool:
    days = {*_held(item), item.date_issued} - {None}
    is_scan = item.field("submittedMetadata") == "historical"
    return is_scan and len(days) == 1 and str(days.pop()).endswith("-12-31")


def _document(key: str, item: Item, archived: Archived, body: Body | None) -> Document:
    held = _held(item)
    issued = item.date_issued or (held[0] if held else None)
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
            committees=[(one.chamber, one.name, one.subcommittees) for one in item.committees],
            congress=item.number("congress"),
            year=((held[0] if held else None) or issued or "")[:4] or None,
            host=item.field("otherHostingOrg"),
        ),
        published_at=issued,
        raw=archived,
        body=body,
        aliases=tuple(dict.fromkeys(_aliases(item))),
    )


def _title(item: Item) -> str:
    part = item.part_name or item.field("heading")
    if part is None or part.lower() in item.title.lower():
        return item.title
    return f"{item.title}, {part}"


def _aliases(item: Item) -> Iterator[str]:
    yield item.id
    yield item.page
    if item.leads:
        yield item.package
        yield mods.details_page(item.package, item.package)
        # Of a multi-volume print only the first answers to its number.
        cited = item.field("preferredCitation") or ""
        if _UNIQUE_CITATION.fullmatch(cited):
            yield cited


# Without MODS -----------------------------------------------------------------------------


def from_text(name: str, text: str) -> Item:
    """A hearing as far as its name and cover tell."""
    match = _PACKAGE.match(name)
    if match is None:
        raise WrongContentError(f"{name} is not the name of a hearing")
    titled = _TITLE.search(text)
    day = _cover_day(text)
    numbered = _SENATE_NUMBER.search(text)
    known = {
        "congress": match["congress"],
        "chamber": _CHAMBERS[match["chamber"]],
        "docClass": f"{match['chamber'].upper()}HRG",
        "heldDate": day,
        "preferredCitation": f"{numbered[1].upper()}. Hrg. {numbered[2]}" if numbered else None,
    }
    return Item(
        package=match[0],
        id=name,
        leads=name == match[0],
        title=" ".join((titled[1] if titled else "").split()) or name,
        date_issued=day,
        fields={field: (value,) for field, value in known.items() if value},
    )


def _cover_day(text: str) -> str | None:
    days = (written_day(match[1]) for match in _COVER_DAY.finditer(text))
    return next((day for day in days if day), None)


def from_json(loaded: Any) -> Sequence[Item]:
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


def _from_api(hearing: Mapping[str, Any]) -> Item:
    chamber = fields.required(hearing, "chamber").upper()
    congress = fields.required(hearing, "congress")
    letter = next((one for one, name in _CHAMBERS.items() if name == chamber), "j")
    jacket = fields.required(hearing, "jacketNumber")
    days = [fields.required(one, "date")[:10] for one in fields.sections(hearing, "dates")]
    offered = " ".join(fields.required(one, "url") for one in fields.sections(hearing, "formats"))
    named = _PACKAGE.search(offered)
    package = named[0] if named else f"CHRG-{congress}{letter}hrg{jacket}"
    known = {
        "congress": [congress],
        "chamber": [chamber],
        "docClass": [f"{letter.upper()}HRG"],
        "heldDate": days,
        "jacketId": [jacket],
        "number": fields.texts(hearing, "number"),
        "eventId": fields.texts(fields.section(hearing, "associatedMeeting"), "eventId"),
    }
    return Item(
        package=package,
        id=package,
        leads=True,
        title=fields.text(hearing, "title") or package,
        date_issued=mods.iso_day(days[0]) if days else None,
        fields={field: tuple(values) for field, values in known.items() if values},
        committees=tuple(Committee.of_api(one) for one in fields.sections(hearing, "committees")),
    )

"""What an issue and its granules become, and what a text tells without its MODS."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, Final

from fonds import ids
from fonds.citations.congressional_record import cite_congressional_record, record_page
from fonds.errors import WrongContentError
from fonds.model import Archived, Body, Document, ParsedRecord
from fonds.sources.congressional_record.tables import (
    crec_bills,
    crec_granules,
    crec_issues,
    crec_speakers,
)
from fonds.sources.families import fields
from fonds.sources.families.bill_numbers import congress_of
from fonds.sources.families.gpo_files import bill_rows, children, member_rows, written_day
from fonds.sources.families.mods import Item, Member, Package

NAME: Final = "congressional_record"

_GRANULE: Final = re.compile(
    r"(?P<package>CREC-\d{4}-\d\d-\d\d(?:-[vi]\d+)*)-pt(?P<book>\d+)-Pg(?P<place>[\w.-]+)"
)
_ISSUE: Final = re.compile(r"CREC-\d{4}-\d\d-\d\d-([vi]\d+)")
_PAGE: Final = re.compile(r"[A-Z]{1,2}\d+")
_HEADER: Final = re.compile(
    r"\[Congressional Record Volume (?P<volume>\d+), Number (?P<issue>\d+) "
    r"\(\w+, (?P<day>\w+ \d{1,2}, \d{4})\)\]\s+\[(?P<section>[^\]]+)\]"
    r"(?:\s+\[Pages? (?P<first>[A-Z]+\d+)(?:-(?P<last>[A-Z]*\d+))?\])?"
)
# Above the heading of a text: rules, and in the Daily Digest the day.
_NO_HEADING: Final = re.compile(r"[_=*-]{3,}|\w+day, \w+ \d{1,2}, \d{4}")
_LINES: Final = re.compile(r"www\.gpo\.gov(?:</a>)?\]\s*(?P<rest>.*)", re.DOTALL)
_SECTIONS: Final = {
    "House": "HOUSE",
    "Senate": "SENATE",
    "Extensions of Remarks": "EXTENSIONS",
    "Daily Digest": "DAILYDIGEST",
}
_ADDRESSES: Final = {
    "HOUSE": "house-section",
    "SENATE": "senate-section",
    "EXTENSIONS": "extensions-of-remarks-section",
    "DAILYDIGEST": "daily-digest",
}
_LONGEST_TITLE: Final = 300
_TEXT_FIELDS: Final = {
    "granule_class": "granuleClass",
    "sub_granule_class": "subGranuleClass",
    "chamber": "chamber",
    "granule_date": "granuleDate",
    "time_from": "time_from",
    "time_to": "time_to",
}
_NUMBERS: Final = {
    "volume": "volume",
    "issue": "issue",
    "congress": "congress",
    "session": "session",
}


def issue_record(package: Package) -> ParsedRecord:
    """The issue itself, which is no document: nobody reads it but by its granules."""
    numbers = {column: _whole(package.fields.get(field)) for column, field in _NUMBERS.items()}
    return ParsedRecord(
        source=NAME,
        table=crec_issues.name,
        key=package.id,
        payload={
            "id": package.id,
            "date_issued": package.date_issued,
            **numbers,
            "granules": len(package.items),
        },
    )


def _whole(values: tuple[str, ...] | None) -> int | None:
    return int(values[0]) if values and values[0].isdecimal() else None


def record(item: Item, archived: Archived, body: Body | None) -> ParsedRecord:
    """The granule with its speakers and the bills it names."""
    key = document_id(item.package, item.id)
    owner = ("granule_id", key)
    return ParsedRecord(
        source=NAME,
        table=crec_granules.name,
        key=key,
        payload=_row(key, item),
        children=(
            *children(NAME, crec_speakers.name, owner, member_rows(item)),
            *children(NAME, crec_bills.name, owner, bill_rows(item)),
        ),
        document=_document(key, item, archived, body),
    )


def document_id(package: str, granule: str) -> str:
    """The granule's id, with its issue where two issues of one day would share it."""
    issue = _ISSUE.fullmatch(package)
    if issue is None or granule.startswith(package):
        return ids.govinfo_id(granule)
    return ids.govinfo_id(f"{granule}@{issue[1]}")


def _row(key: str, item: Item) -> dict[str, Any]:
    pages = [page if _PAGE.fullmatch(page) else None for page in item.pages] or [None]
    return {
        "id": key,
        "issue_ref": item.package,
        "access_id": item.id,
        "title": item.title,
        **{column: item.number(field) for column, field in _NUMBERS.items()},
        "book_number": item.number("bookNumber"),
        **{column: item.field(field) for column, field in _TEXT_FIELDS.items()},
        "date_issued": item.date_issued,
        "page_start": pages[0],
        "page_end": pages[-1],
    }


def _first_page(item: Item) -> str | None:
    return next((page for page in item.pages[:1] if _PAGE.fullmatch(page)), None)


def _document(key: str, item: Item, archived: Archived, body: Body | None) -> Document:
    speaker = _only_speaker(item)
    return Document(
        id=key,
        source=NAME,
        kind="congressional_record",
        title=_shortened(item.title),
        source_url=item.page,
        source_org="U.S. Congress",
        citation_string=cite_congressional_record(
            volume=item.number("volume"),
            page=_first_page(item),
            issued=date.fromisoformat(item.date_issued) if item.date_issued else None,
            speaker=speaker.surname if speaker else None,
            chamber=speaker.chamber if speaker else None,
        ),
        published_at=item.date_issued,
        raw=archived,
        body=body,
        aliases=tuple(dict.fromkeys(_aliases(item))),
    )


def _only_speaker(item: Item) -> Member | None:
    speaking = {one.bioguide or one.name: one for one in item.members if one.role == "SPEAKING"}
    return next(iter(speaking.values())) if len(speaking) == 1 else None


def _shortened(title: str) -> str:
    # Without a heading the publisher takes the first sentence, and takes it for a title.
    if len(title) <= _LONGEST_TITLE:
        return title
    return f"{title[:_LONGEST_TITLE].rsplit(' ', 1)[0]} …"


def _aliases(item: Item) -> Iterator[str]:
    yield item.id
    yield item.page
    match = _GRANULE.fullmatch(item.id)
    volume, page = item.number("volume"), _first_page(item)
    # Of several granules on a page, the first is called like the page.
    if match and volume and page == match["place"]:
        yield record_page(volume=volume, page=page)
    section = _ADDRESSES.get(item.field("granuleClass") or "")
    if match and volume and section and item.field("issue"):
        place = f"volume-{volume}/issue-{item.field('issue')}/{section}/article/{match['place']}"
        yield f"https://www.congress.gov/congressional-record/{place}"


# Without MODS -----------------------------------------------------------------------------


def from_text(name: str, text: str) -> Item:
    """A granule as far as its name and the lines above its text tell."""
    match, header = _GRANULE.fullmatch(name), _HEADER.search(text)
    if match is None or header is None:
        raise WrongContentError(f"{name} is not a granule of the Congressional Record")
    first, last = header["first"], header["last"]
    day = written_day(header["day"])
    known = {
        "volume": header["volume"],
        "issue": header["issue"],
        "congress": str(congress_of(date.fromisoformat(day))) if day else None,
        "granuleClass": _SECTIONS.get(header["section"]),
        "bookNumber": match["book"],
    }
    return Item(
        package=match["package"],
        id=name,
        title=_heading(text) or name,
        date_issued=day,
        pages=(first, last or first) if first else (),
        fields={field: (value,) for field, value in known.items() if value},
    )


def _heading(text: str) -> str:
    """The first block of lines below the publisher's own."""
    match = _LINES.search(text)
    blocks = re.split(r"\n\s*\n", match["rest"]) if match else []
    for block in blocks:
        words = " ".join(re.sub(r"\[\[Page [^\]]*\]\]|<[^>]*>", " ", block).split())
        if words and not _NO_HEADING.fullmatch(words):
            return words
    return ""


def from_json(loaded: Any) -> Sequence[Item]:
    """Nothing: JSON of the Record is a list, or made from the texts by somebody else."""
    content = fields.mapping(loaded)
    if "header" in content and "content" in content:
        raise WrongContentError("a derived sample: speeches parsed out of a text by others")
    if "request" in content or {"Results", "articles", "issue"} & content.keys():
        raise WrongContentError("a listing of the congress.gov API: it names granules and issues")
    raise WrongContentError(f"expected a granule, found {fields.describe(content)}")

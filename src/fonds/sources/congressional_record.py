"""The daily edition of the Congressional Record since 1994 (CREC).

Quirks of the publisher:
- A package is an issue and offers a PDF of the whole; its MODS lists some hundred granules, each
  with a page of text. What is fetched: the MODS, then one small text for each granule. That is
  20,000 requests for a year, and a package whose `lastmod` changes costs its granules again, as
  conditional requests. The zip of a package would be one request and hold the PDFs too: five
  gigabytes a year for two hundred megabytes of text.
- Two issues of one day: `CREC-2018-01-03` and `CREC-2018-01-03-v164`; granules that do not carry
  the distinction get it (`…@v164`).
- Extensions of Remarks are printed days after the `granuleDate`; the issue's day is cited.
- A granule without a heading has its first sentence for a title. Front matter is a granule
  (`PgS-FrontMatter`), and some are called `Pgnull-2` and have no page.
- Speakers are in the granule's extension; the members inside its votes did not speak.
- `[[Page H6117]]` within a text becomes a page of the body's map.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import date
from typing import Any, Final

from sqlalchemy import Column, Index, Integer, Table, Text

from fonds.citations.forms import bluebook_date
from fonds.errors import SuspiciousYieldError, WrongContentError
from fonds.model import Archived, Body, Document, FetchTask, ParsedRecord, Raw
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.formats import fields
from fonds.sources.formats.congress import congress_of
from fonds.sources.formats.govinfo import API, GovinfoCollection, PackageSource, walk
from fonds.sources.formats.gpo_files import (
    LooseReader,
    bill_rows,
    govinfo_id,
    member_rows,
    printed_iso_day,
)
from fonds.sources.formats.mods import ModsItem, ModsMember, ModsPackage
from fonds.sources.formats.records import child_records, child_table
from fonds.stores.columns import document_key, owned_by, reference, task_key, texts
from fonds.stores.tables import metadata

# The tables of the Congressional Record; columns bear the names the MODS gives its fields.

crec_issues: Final = Table(
    "crec_issues",
    metadata,
    Column("id", Text, primary_key=True, comment="The package: CREC-2026-02-03."),
    Column("date_issued", Text, comment="The day of the issue, ISO 8601."),
    Column("volume", Integer, comment="One for each year: 172."),
    Column("issue", Integer, comment="Within the volume."),
    Column("congress", Integer, comment="119."),
    Column("session", Integer, comment="Of that Congress."),
    Column("granules", Integer, nullable=False, comment="How many the MODS lists."),
    task_key(),
    Index("ix_crec_issues_date_issued", "date_issued"),
    comment="Issues of the daily edition.",
)

crec_granules: Final = Table(
    "crec_granules",
    metadata,
    document_key("crec:<granule>"),
    *reference("issue", "crec_issues", "The package it is in: CREC-2026-02-03."),
    Column("access_id", Text, nullable=False, comment="CREC-2026-02-03-pt1-PgH501-2."),
    Column("title", Text, nullable=False, comment="As printed, or the first words without one."),
    Column("volume", Integer, comment="172."),
    Column("issue", Integer, comment="Within the volume."),
    Column("congress", Integer, comment="119."),
    Column("session", Integer, comment="Of that Congress."),
    Column("book_number", Integer, comment="The part of a large issue: 1 of pt1."),
    *texts(
        granule_class="HOUSE, SENATE, EXTENSIONS or DAILYDIGEST.",
        sub_granule_class="PRAYER, FRONTMATTER, SNOMINATIONS, ALLOTHER, …",
        chamber="HOUSE or SENATE.",
        date_issued="The day of the issue, ISO 8601.",
        granule_date="The day it was said; earlier for extensions handed in late.",
        page_start="H501; NULL where the publisher knows none.",
        page_end="H502.",
        time_from="When it began, Eastern time, where printed.",
        time_to="When it ended.",
    ),
    Index("ix_crec_granules_date_issued", "date_issued"),
    Index("ix_crec_granules_page", "volume", "page_start"),
    comment="Articles of the Congressional Record.",
)

crec_speakers: Final = child_table(
    "crec_speakers",
    owned_by("crec_granules", "granule_id"),
    *reference("legislator", "legislators", "legislator:<bioguide>"),
    Column("name", Text, nullable=False, comment="First name first."),
    *texts(
        bioguide="Of the Biographical Directory.",
        parsed="As printed: Mr. SMITH of Texas.",
        role="SPEAKING, or RECAPPED in the digest.",
        chamber="H or S.",
        party="D, R, I.",
        state="Postal code.",
    ),
    comment="Members who speak in a granule.",
)

crec_bills: Final = child_table(
    "crec_bills",
    owned_by("crec_granules", "granule_id"),
    *reference("bill", "bills", "bill:<congress>-<type>-<number>"),
    Column("congress", Integer, comment="Of the bill."),
    Column("type", Text, comment="HR, S, HJRES, …"),
    Column("number", Integer, comment="Of the bill."),
    Column("context", Text, comment="TITLE, HEADERLINE, FIRSTPARAGRAPH or OTHER."),
    comment="Bills a granule names; some appear twice.",
)

TABLES: Final = (crec_issues, crec_granules, crec_speakers, crec_bills)
"""Parents before children."""


# How the daily edition of the Congressional Record is cited.

_TITLES: Final = {"H": "Rep.", "S": "Sen."}


def cite_congressional_record(
    *,
    volume: int | None,
    page: str | None,
    issued: date | None,
    speaker: str | None = None,
    chamber: str | None = None,
) -> str:
    """`171 Cong. Rec. H1234 (daily ed. Mar. 4, 2025) (statement of Rep. X).`, ready to paste.

    The speaker is given by surname, and the chamber by its letter, where one member alone spoke.
    What is unknown is left out.
    """
    cited = record_page(volume=volume, page=page)
    if issued:
        cited += f" (daily ed. {bluebook_date(issued)})"
    if speaker:
        title = _TITLES.get(chamber or "")
        cited += f" (statement of {f'{title} {speaker}' if title else speaker})"
    return f"{cited.removesuffix('.')}."


def record_page(*, volume: int | None, page: str | None) -> str:
    """The page as a citation names it: `171 Cong. Rec. H1234`."""
    return " ".join(part for part in (str(volume or ""), "Cong. Rec.", page) if part)


# Issues and granules as records, with and without MODS.

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
_MAX_TITLE_LENGTH: Final = 300
_TEXT_FIELDS: Final = ("granule_class", "sub_granule_class", "chamber", "granule_date")
_NUMBERS: Final = ("volume", "issue", "congress", "session")


def issue_record(package: ModsPackage) -> ParsedRecord:
    """The issue itself, which is not a document: only its granules are."""
    numbers = {name: _whole(package.fields.get(name)) for name in _NUMBERS}
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


def record(item: ModsItem, archived: Archived, body: Body | None) -> ParsedRecord:
    """The granule with its speakers and the bills it names."""
    key = document_id(item.package, item.id)
    return ParsedRecord(
        source=NAME,
        table=crec_granules.name,
        key=key,
        payload=_row(key, item),
        children=(
            *child_records(NAME, crec_speakers, key, member_rows(item)),
            *child_records(NAME, crec_bills, key, bill_rows(item)),
        ),
        document=_document(key, item, archived, body),
    )


def document_id(package: str, granule: str) -> str:
    """The granule's id, with its issue where two issues of one day would share it."""
    issue = _ISSUE.fullmatch(package)
    if issue is None or granule.startswith(package):
        return govinfo_id(granule)
    return govinfo_id(f"{granule}@{issue[1]}")


def _row(key: str, item: ModsItem) -> dict[str, Any]:
    pages = [page if _PAGE.fullmatch(page) else None for page in item.pages] or [None]
    return {
        "id": key,
        "issue_ref": item.package,
        "access_id": item.id,
        "title": item.title,
        **{name: item.number(name) for name in _NUMBERS},
        "book_number": item.number("bookNumber"),
        **item.texts(*_TEXT_FIELDS),
        "time_from": item.field("time_from"),
        "time_to": item.field("time_to"),
        "date_issued": item.date_issued,
        "page_start": pages[0],
        "page_end": pages[-1],
    }


def _first_page(item: ModsItem) -> str | None:
    return next((page for page in item.pages[:1] if _PAGE.fullmatch(page)), None)


def _document(key: str, item: ModsItem, archived: Archived, body: Body | None) -> Document:
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


def _only_speaker(item: ModsItem) -> ModsMember | None:
    speaking = {
        member.bioguide or member.name: member
        for member in item.members
        if member.role == "SPEAKING"
    }
    return next(iter(speaking.values())) if len(speaking) == 1 else None


def _shortened(title: str) -> str:
    # Without a heading the publisher takes the first sentence, and takes it for a title.
    if len(title) <= _MAX_TITLE_LENGTH:
        return title
    return f"{title[:_MAX_TITLE_LENGTH].rsplit(' ', 1)[0]} …"


def _aliases(item: ModsItem) -> Iterator[str]:
    yield item.id
    yield item.page
    match = _GRANULE.fullmatch(item.id)
    volume, page = item.number("volume"), _first_page(item)
    # Of several granules on a page, the first is called like the page.
    if match and volume and page == match["place"]:
        yield record_page(volume=volume, page=page)
    section = _ADDRESSES.get(item.field("granuleClass") or "")
    if match and volume and section and item.field("issue"):
        path = f"volume-{volume}/issue-{item.field('issue')}/{section}/article/{match['place']}"
        yield f"https://www.congress.gov/congressional-record/{path}"


# Without MODS -----------------------------------------------------------------------------


def from_text(name: str, text: str) -> ModsItem:
    """A granule as far as its name and the lines above its text tell."""
    match, header = _GRANULE.fullmatch(name), _HEADER.search(text)
    if match is None or header is None:
        raise WrongContentError(f"{name} is not a granule of the Congressional Record")
    first, last = header["first"], header["last"]
    day = printed_iso_day(header["day"])
    values = {
        "volume": header["volume"],
        "issue": header["issue"],
        "congress": str(congress_of(date.fromisoformat(day))) if day else None,
        "granuleClass": _SECTIONS.get(header["section"]),
        "bookNumber": match["book"],
    }
    return ModsItem(
        package=match["package"],
        id=name,
        title=_heading(text) or name,
        date_issued=day,
        pages=(first, last or first) if first else (),
        fields={field: (value,) for field, value in values.items() if value},
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


def from_json(loaded: Any) -> Sequence[ModsItem]:
    """Nothing: JSON of the Record is a list, or made from the texts by a third party."""
    content = fields.mapping(loaded)
    if "header" in content and "content" in content:
        raise WrongContentError("a derived sample: speeches parsed out of a text by others")
    if "request" in content or {"Results", "articles", "issue"} & content.keys():
        raise WrongContentError("a listing of the congress.gov API: it names granules and issues")
    raise WrongContentError(f"expected a granule, found {fields.describe(content)}")


COLLECTION: Final = GovinfoCollection(source=NAME, code="CREC", first_year=1994, own_text=False)
INFO: Final = SourceInfo(
    name=NAME,
    title="Congressional Record, daily edition",
    summary="the daily record, speech by speech, with its speakers",
    organisation="U.S. Government Publishing Office",
    addresses=("https://www.govinfo.gov/sitemap/CREC_{year}_sitemap.xml",),
    jurisdiction="United States",
    version="1.0.0",
    # The issue of a day is online the next morning.
    schedule="40 9 * * *",
    rate=Rate(per_second=6, burst=12),
    tables=TABLES,
    depends_on=("legislators", "bills"),
    published_at="originInfo/dateIssued of the issue's MODS",
    options=("congresses",),
    csl_type="periodical",
)


class CongressionalRecord(PackageSource):
    """The source `congressional_record`: an issue is a row, and its granules are the documents."""

    def parse_fetched(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The issue and a task for each of its granules, or a granule with its text."""
        if raw.part("mods") is None:
            yield from self.collection.parse(raw, record)
            return
        package = self.collection.read_package(raw)
        yield issue_record(package)
        yield from self.collection.parse_package(raw, package, record)

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """The granules that the API of govinfo lists for each issue; it wants `data_gov_key`."""
        async for _, packages in self.collection.published(ask, since, until):
            for package in sorted(packages):
                address = f"{API}/packages/{package}/granules"
                listed = walk(ask, address, "granules", f"audit/{package}")
                granules = {
                    document_id(package, str(entry.get("granuleId"))) async for entry in listed
                }
                if not granules:
                    raise SuspiciousYieldError(f"the API lists no granule of {package}")
                yield Expected(scope=package, document_ids=frozenset(granules))


source: Final = CongressionalRecord(
    INFO,
    COLLECTION,
    LooseReader(code=COLLECTION.code, record=record, from_text=from_text, from_json=from_json),
)

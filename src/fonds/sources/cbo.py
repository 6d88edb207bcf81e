"""Cost estimates and other publications of the Congressional Budget Office.

Quirks of the publisher:
- The list of a Congress's cost estimates lies among the feeds and is none: `<response>` with items
  that carry a `key`. It is complete for its Congress, and unordered within a date: the number of
  the publication is its identity.
- Bill_Number is empty, or names the bill of the other chamber: title "S. 1707", Bill_Number
  "H.R. 1707". The title wins, and both are kept.
- The feed of all publications has the newest 30, estimates among them. It does not say which
  Congress an estimate is for; the list does, so the list's word is taken where it has one.
- Estimates for bills of a Congress appear for weeks after it ended, so in those weeks the list of
  the Congress before is read too.
- Pages and PDFs are behind a wall that only a browser passes (403), and neither list says where
  the PDF is: there is no body, only what the lists say. They are not asked for.

A backfill reads the lists of the Congresses asked for, or those its days touch, or of the current
Congress and the one before. There is no second way to count, so there is no audit.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Column, Index, Integer, Table, Text

from fonds import ids
from fonds.citations.forms import bluebook_month
from fonds.errors import MalformedError, NotFoundError, SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Discovery,
    Document,
    FetchTask,
    ParsedRecord,
    Raw,
    RawPart,
    SourceState,
    Watermark,
)
from fonds.sources.base import Ask, Rate, SourceInfo
from fonds.sources.formats import xml
from fonds.sources.formats.congress import (
    BillNumber,
    cbo_id,
    congress_of,
    find_bill_numbers,
    first_day_of,
    leading_bill_number,
)
from fonds.sources.formats.days import day_in_washington, is_requested, requested_congresses, today
from fonds.sources.formats.feeds import (
    FeedItem,
    check_reach,
    newest,
    read_date,
    read_feed,
    text_only,
)
from fonds.sources.formats.records import listing_of
from fonds.stores.columns import Timestamp, document_key, reference, texts
from fonds.stores.tables import metadata

# Entries of CBO's two lists, in one form.

_ADDRESS: Final = re.compile(r"/publication/(\d{1,9})\b")
_GUID: Final = re.compile(r"(\d{1,9}) at https?://")


@dataclass(frozen=True, kw_only=True, slots=True)
class CboEntry:
    """One publication as a list describes it."""

    publication: str
    title: str
    issued: str | None
    """ISO 8601 with its offset."""
    description: str | None
    bill_number: str | None = None
    """As the list of estimates has it."""
    congress: int | None = None
    """Of the list of estimates it is in; None for other publications."""
    is_estimate: bool = False

    @property
    def published_at(self) -> datetime | None:
        """When it was published."""
        return datetime.fromisoformat(self.issued) if self.issued else None

    @property
    def day(self) -> date | None:
        """The day in Washington."""
        return day_in_washington(self.published_at) if self.published_at else None

    @property
    def title_bill(self) -> BillNumber | None:
        """The first bill the title names."""
        return next(iter(find_bill_numbers(self.title)), None)

    @property
    def bill(self) -> BillNumber | None:
        """The bill it is about: the title's, for Bill_Number may name that of the other chamber."""
        return self.title_bill or next(iter(find_bill_numbers(self.bill_number or "")), None)

    @property
    def bill_congress(self) -> int | None:
        """The Congress its bill belongs to."""
        return self.congress or (congress_of(self.day) if self.day else None)

    def to_params(self) -> dict[str, Any]:
        """The JSON a task carries."""
        return asdict(self)


def read_estimates(data: bytes, congress: int | None) -> list[CboEntry]:
    """The cost estimates of a Congress; the file calls itself RSS and is none."""
    root = xml.read(data, "response")
    return [_estimate(item, congress) for item in root.iterchildren("item")]


def read_publications(data: bytes) -> list[CboEntry]:
    """The publications of the feed of everything."""
    return [_publication(item) for item in read_feed(data).items]


def once_each(entries: list[CboEntry]) -> Iterator[CboEntry]:
    """Each publication once; of two descriptions always the same one, for their order changes."""
    chosen: dict[str, CboEntry] = {}
    for entry in entries:
        other = chosen.setdefault(entry.publication, entry)
        chosen[entry.publication] = min(entry, other, key=repr)
    return iter(chosen.values())


def _estimate(item: Any, congress: int | None) -> CboEntry:
    published_at = read_date(xml.text(item, "Date"))
    number = _ADDRESS.search(xml.text(item, "Link") or "")
    if number is None:
        raise MalformedError(f"item {item.get('key')} of the list has no link to a publication")
    return CboEntry(
        publication=number[1],
        title=text_only(xml.text(item, "Title")) or f"Cost estimate {number[1]}",
        issued=published_at.isoformat() if published_at else None,
        description=text_only(xml.text(item, "Description")),
        bill_number=xml.text(item, "Bill_Number"),
        congress=congress,
        is_estimate=True,
    )


def _publication(item: FeedItem) -> CboEntry:
    number = _ADDRESS.search(item.link or "") or _GUID.search(item.guid or "")
    if number is None:
        raise WrongContentError(
            f"an entry of the feed leads to no publication: {item.link or item.title}"
        )
    title = item.title or f"Publication {number[1]}"
    return CboEntry(
        publication=number[1],
        title=title,
        issued=item.published.isoformat() if item.published else None,
        description=item.description,
        # Estimates are headed by their bill; other titles name one in passing, if at all.
        is_estimate=leading_bill_number(title) is not None,
    )


# The table of publications.

cbo_publications: Final = Table(
    "cbo_publications",
    metadata,
    document_key("cbo:61234, documents.id."),
    Column("publication_id", Text, nullable=False, comment="61234, the number in its address."),
    Column("title", Text, nullable=False, comment="As CBO words it."),
    Column("date", Timestamp, comment="Date of the list, pubDate of the feed."),
    *texts(
        link="Its page at cbo.gov.",
        description="Which version of a bill it estimates, or what it is about.",
        bill_number="Bill_Number of the list: often empty, sometimes wrong.",
        title_bill="The first bill the title names; it wins over bill_number.",
    ),
    Column("congress", Integer, comment="Of the list it is in, else that of its date."),
    *reference("bill", "bills", "The bill it is about: bill:119-hr-2101."),
    Index("ix_cbo_publications_publication_id", "publication_id"),
    comment="Cost estimates and other publications of the Congressional Budget Office.",
)

TABLES: Final = (cbo_publications,)


# How a publication of the Congressional Budget Office is cited.
#
# The Bluebook gives reports of an agency its abbreviated name (tables T6 and T10), the title and
# the
# date. A cost estimate says that it is one and which bill it estimates, for its title alone may
# not:
# `Cong. Budget Off., Cost Estimate: H.R. 2101, Harbor Dredging Transparency Act (Mar. 2025).`


def cite_cbo(*, title: str, published: date | None, estimate: bool, bill: str | None) -> str:
    """`Cong. Budget Off., Title (Mar. 2025).`; `bill` is the estimated one if the title is silent.

    Without a date the parenthesis is left out.
    """
    name = f"{bill}, {title}" if bill else title
    label = f"Cost Estimate: {name}" if estimate else title
    cited = f"Cong. Budget Off., {label.rstrip('.')}"
    return f"{cited} ({bluebook_month(published)})." if published else f"{cited}."


NAME: Final = "cbo"
PUBLISHER: Final = "Congressional Budget Office"
SITE: Final = "https://www.cbo.gov"
FEED: Final = f"{SITE}/publications/all/rss.xml"
FIRST_CONGRESS: Final = 105
"""The first whose estimates CBO has on its site."""
EVERY_LIST_SINCE: Final = 2007
STRAGGLERS: Final = timedelta(days=90)

_LIST_NAME: Final = re.compile(r"(\d{2,3})congress")


class Cbo:
    """The source `cbo`."""

    info = SourceInfo(
        name=NAME,
        title="CBO publications",
        summary="cost estimates and other publications",
        organisation=PUBLISHER,
        addresses=(FEED, f"{SITE}/rss/{{congress}}congress-cost-estimates.xml"),
        jurisdiction="United States",
        version="1.0.0",
        schedule="40 8-20/3 * * *",
        rate=Rate(per_second=0.5, burst=2),
        tables=TABLES,
        depends_on=("bills",),
        at_least=20,
        published_at="Date of the list of estimates, pubDate of the feed, as a day in Washington",
        options=("congresses",),
        csl_type="report",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The estimates of each Congress, then what only the feed of everything has."""
        listed: set[str] = set()
        for congress in _congresses(state):
            entries, archived = await _estimates(ask, congress, state)
            listed |= {entry.publication for entry in entries}
            for entry in _requested(entries, state):
                yield _task(entry, archived)
        listing = await ask(FEED, path="rss/publications.xml")
        others = list(once_each(read_publications(listing.data)))
        if not others:
            raise SuspiciousYieldError("CBO's feed lists nothing; it always has the newest 30")
        for entry in _requested(others, state):
            if entry.publication not in listed:
                yield _task(entry, listing.archived)
        items = read_feed(listing.data).items
        if (newest_key := newest(items)) and not state.backfill:
            yield Watermark(last_seen_key=newest_key)
            check_reach(items, state.last_seen_key, "CBO's feed")

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """The publication a task describes, or all of a loose list or feed."""
        if "entry" in raw.task.params:
            yield _record(CboEntry(**raw.task.params["entry"]), listing_of(raw.task))
        yield from _together(raw.parts)


source: Final = Cbo()


def list_address(congress: int) -> str:
    """The list of a Congress's cost estimates."""
    return f"{SITE}/rss/{congress}congress-cost-estimates.xml"


# What is asked for ------------------------------------------------------------------------


def _congresses(state: SourceState) -> list[int]:
    if state.backfill:
        return requested_congresses(state, first=FIRST_CONGRESS, delay=STRAGGLERS)
    day = today(state)
    return sorted({congress_of(day - STRAGGLERS), congress_of(day)})


async def _estimates(
    ask: Ask, congress: int, state: SourceState
) -> tuple[list[CboEntry], Archived | None]:
    try:
        listing = await ask(list_address(congress), path=f"rss/{congress}-cost-estimates.xml")
    except NotFoundError:
        if state.options.get("congresses") or not _may_lack_a_list(congress, state):
            raise
        return [], None
    entries = list(once_each(read_estimates(listing.data, congress)))
    if not entries and not _is_young(congress, state):
        raise SuspiciousYieldError(f"CBO's list of estimates for Congress {congress} is empty")
    return entries, listing.archived


def _is_young(congress: int, state: SourceState) -> bool:
    """Whether a Congress has sat for so short a time that nothing may be estimated yet."""
    return today(state) - first_day_of(congress) < STRAGGLERS


def _may_lack_a_list(congress: int, state: SourceState) -> bool:
    # Which early Congress has the first list is nowhere said.
    return _is_young(congress, state) or first_day_of(congress).year < EVERY_LIST_SINCE


def _requested(entries: Iterable[CboEntry], state: SourceState) -> Iterator[CboEntry]:
    for entry in entries:
        if entry.day is None or is_requested(entry.day, state):
            yield entry


def _task(entry: CboEntry, origin: Archived | None) -> FetchTask:
    params = {"entry": entry.to_params()}
    return FetchTask(
        source=NAME,
        key=cbo_id(entry.publication),
        parts=(),
        params=params,
        fingerprint=ids.json_sha256(params),
        origin=origin,
    )


# Records ----------------------------------------------------------------------------------


def _together(parts: Iterable[RawPart]) -> Iterator[ParsedRecord]:
    """The publications of loose files, each once: a list of estimates knows more than the feed."""
    entries = [(entry, part.archived) for part in parts for entry in _loose(part)]
    entries.sort(key=lambda pair: pair[0].congress is None)
    chosen: dict[str, ParsedRecord] = {}
    for entry, archived in entries:
        chosen.setdefault(entry.publication, _record(entry, archived))
    return iter(chosen.values())


def _loose(part: RawPart) -> Iterator[CboEntry]:
    if part.data.startswith(b"%PDF-"):
        raise WrongContentError("a PDF of CBO; its list says what it is, and has no PDFs")
    if b"<response" in part.data[:512]:
        # The list itself does not say which Congress it is of; its name does.
        match = _LIST_NAME.search(part.archived.url)
        return once_each(read_estimates(part.data, int(match[1]) if match else None))
    return once_each(read_publications(part.data))


def _record(entry: CboEntry, raw: Archived) -> ParsedRecord:
    key, bill, congress = cbo_id(entry.publication), entry.bill, entry.bill_congress
    row: dict[str, Any] = {
        "id": key,
        "publication_id": entry.publication,
        "title": entry.title,
        "date": entry.published_at,
        "link": _page(entry),
        "description": entry.description,
        "bill_number": entry.bill_number,
        "title_bill": entry.title_bill.printed if entry.title_bill else None,
        "congress": congress,
        "bill_ref": bill.document_id(congress) if bill and congress else None,
    }
    return ParsedRecord(
        source=NAME,
        table=cbo_publications.name,
        key=key,
        payload=row,
        document=_document(key, entry, raw),
    )


def _document(key: str, entry: CboEntry, raw: Archived) -> Document:
    bill = entry.bill if entry.bill and not entry.title_bill else None
    return Document(
        id=key,
        source=NAME,
        kind="cost_estimate" if entry.is_estimate else "publication",
        title=entry.title,
        summary=entry.description,
        source_url=_page(entry),
        source_org=PUBLISHER,
        published_at=entry.day.isoformat() if entry.day else None,
        citation_string=cite_cbo(
            title=entry.title,
            published=entry.day,
            estimate=entry.is_estimate,
            bill=bill.printed if bill else None,
        ),
        raw=raw,
        aliases=(f"CBO {entry.publication}", _page(entry)),
    )


def _page(entry: CboEntry) -> str:
    return f"{SITE}/publication/{entry.publication}"

"""Lobbying Disclosure Act filings since 1999: who lobbies for whom, on what, for how much.

Quirks of the publisher:
- A list entry is the whole filing, so nothing else is fetched. Pages hold 25; the second one is
  refused to those who do not filter. Next links may lead to the host that was given up in 2026.
- `filing_dt_posted_before` is a moment: a bare day in it is the midnight that day begins with, so
  the day after the last one wanted is asked for.
- `dt_posted` is as early as 1905 for filings of 1999. What it says before 1999 is one window.
- An amendment is a filing of its own and names nothing it amends; filings do not change, but the
  registrant and the client inside them are those of today, and change with their records.
- Registrants, clients and lobbyists are therefore rows without owner: each filing brings the
  newest state, the one loaded last wins, and lists are in the order of posting. None is dropped.
- `client.id` is the key; `client.client_id` counts the clients of one registrant.
- Up to 2021-02-13 one list of government entities is repeated under every activity of a filing;
  it is kept once, as said of the whole filing.
- Amounts are decimals in quotes, or null; income and expenses exclude each other.
- Texts are full of escapes and mojibake; see `repair`.
- There is no second way to count what was filed in a range, so there is no audit.

Without `since` a backfill takes the current year: the whole list is 1.98 million filings, 80,000
pages, 15 of them a minute (120 with a key).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from fonds import ids
from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Discovery,
    FetchTask,
    Listing,
    ParsedRecord,
    Raw,
    RawPart,
    SourceState,
    Watermark,
)
from fonds.sources.base import Ask, Key, Rate, SourceInfo
from fonds.sources.formats.days import today
from fonds.sources.formats.fields import describe, mapping, section, sections
from fonds.sources.formats.records import listing_of
from fonds.sources.lda_filings import formats
from fonds.sources.lda_filings.formats import (
    Entry,
    Filing,
    Row,
    filing_uuid,
    read_client,
    read_filing,
    read_lobbyist,
    read_registrant,
)
from fonds.sources.lda_filings.records import (
    API,
    NAME,
    PUBLISHER,
    SITE,
    lda_id,
    party_record,
    posted_on,
    records_of,
)
from fonds.sources.lda_filings.tables import TABLES

# Files of the publisher, distinguished by their bytes; errors name files of other kinds.

_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_UTF_8: Final = b"\xef\xbb\xbf"
_ZIP: Final = b"PK\x03\x04"

_FILING: Final = frozenset({"filing_uuid", "lobbying_activities"})
# A field that only this kind of answer has, and what it is.
_NO_FILINGS: Final = {
    "filer_type": "a report on contributions (LD-203), not on lobbying",
    "document_id": "a form (LD-1 or LD-2) as another program read it; it names no filing",
    "detail": "a refusal of the API",
    "constants/filing/filingtypes": "the index of the API",
}


def read_together(parts: Sequence[RawPart]) -> Iterator[ParsedRecord]:
    """The records of loose files."""
    filings: list[tuple[Filing, Archived]] = []
    parties: list[ParsedRecord] = []
    for part in parts:
        if is_xml(part.data):
            filings += ((filing, part.archived) for filing in formats.read_filings(part.data))
            continue
        for entry in _entries(read_json(part.data)):
            if entry.keys() >= _FILING:
                filings.append((read_filing(entry), part.archived))
            else:
                parties += _parties(entry)
    yield from records_of(filings, parties)


def read_json(data: bytes) -> Any:
    """A JSON answer; anything else in its place is named."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        pass
    start = data[:512].lstrip().lower()
    if start.startswith(b"<"):
        raise WrongContentError("an HTML page where JSON was expected")
    if b"http_interactions:" in start:
        raise WrongContentError("a recording of requests by another program, not an answer itself")
    if start.startswith(_ZIP.lower()):
        raise WrongContentError("a zip archive; unpack it and give the XML files inside")
    if start.startswith((b"{", b"[")) or not start:
        raise MalformedError("not well-formed JSON" if start else "the file is empty")
    raise WrongContentError("neither JSON of the API nor XML of the quarterly files")


def is_xml(data: bytes) -> bool:
    """Whether this is a quarterly file rather than an answer of the API."""
    return data.startswith(_UTF_16) or data.removeprefix(_UTF_8).lstrip()[:1] == b"<"


def _entries(content: Any) -> list[Entry]:
    if isinstance(content, list):
        raise WrongContentError(f"a list of names for codes with {len(content)} entries")
    entry = mapping(content, "the answer")
    results = entry.get("results", [entry])
    if not isinstance(results, list) or not results:
        raise WrongContentError("a list of the API without any entry")
    return [mapping(item) for item in results]


def _parties(entry: Entry) -> Iterator[ParsedRecord]:
    registrant = read_registrant(section(entry, "registrant"))
    parties: Mapping[str, Row | None]
    if "house_registrant_id" in entry:
        parties = {"lda_registrants": read_registrant(entry)}
    elif "client_id" in entry:
        parties = {"lda_registrants": registrant, "lda_clients": read_client(entry)}
    elif "last_name" in entry:
        parties = {"lda_registrants": registrant, "lda_lobbyists": read_lobbyist(entry)}
    else:
        raise WrongContentError(_what_it_is(entry))
    for table, row in parties.items():
        if row is not None:
            yield party_record(table, row)


def _what_it_is(entry: Entry) -> str:
    for key, kind in _NO_FILINGS.items():
        if key in entry:
            return kind
    return f"neither a filing nor a party to one: {describe(entry)}"


PAGE_SIZE: Final = 25
FIRST_DAY: Final = date(1999, 1, 1)
WINDOW: Final = timedelta(days=7)
# The last day listed was not over when it was. Three more reach back over any weekend, so that a
# list without a filing is never right.
OVERLAP: Final = timedelta(days=3)
FIRST_RUN: Final = timedelta(days=7)
ONE_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _FilingsPage:
    entries: list[Entry]
    count: int
    archived: Archived


@dataclass(frozen=True, kw_only=True, slots=True)
class _Window:
    first: date
    last: date
    listed: set[str] = field(default_factory=set)
    """Keys of the tasks it was found to hold."""

    def contains(self, entry: Entry) -> bool:
        day = posted_on(str(entry.get("dt_posted"))) or ""
        return self.first.isoformat() <= day <= self.last.isoformat()

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


class LdaFilings:
    """The source `lda_filings`."""

    info = SourceInfo(
        name=NAME,
        title="Lobbying Disclosure Act filings",
        summary="lobbying registrations and reports: who, for whom, on what, for how much",
        organisation=PUBLISHER,
        addresses=(f"{API}/filings/",),
        jurisdiction="United States",
        version="1.0.0",
        schedule="20 22 * * *",
        rate=Rate(per_second=0.25),
        tables=TABLES,
        key=Key(
            setting="lda_key",
            signup=f"{SITE}/api/register/",
            required=False,
            rate=Rate(per_second=2, burst=2),
        ),
        published_at="dt_posted",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The filings of each week in the order they were posted; a week is whole or an error."""
        since, until = _requested_days(state)
        previous_key = state.last_seen_key or ""
        has_filings, previous_ids = False, frozenset[str]()
        for window in _windows(since, until):
            async for task in _tasks(ask, window):
                # What was posted at midnight between two windows is in both.
                if task.key not in previous_ids:
                    has_filings = True
                    yield task
            previous_ids = frozenset(window.listed)
            yield Listing(since=window.first, until=window.last, task_keys=previous_ids)
            # A backfill of older years must not turn the watermark back.
            previous_key = max(previous_key, window.last.isoformat())
            if has_filings:
                yield Watermark(last_seen_key=previous_key)
        if not has_filings:
            raise SuspiciousYieldError(f"nothing was filed from {since} to {until}, says the list")

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The parties to a filing and the filing; of a loose file all that it holds."""
        if loose := [part for part in raw.parts if part.name == ""]:
            yield from read_together(loose)
        if "entry" in raw.task.params:
            filing = read_filing(raw.task.params["entry"])
            yield from records_of([(filing, listing_of(raw.task))])


source = LdaFilings()


def list_address(first: date, last: date, page: int) -> str:
    """One page of the list of what was posted in a range of days."""
    query = {
        "filing_dt_posted_after": first.isoformat(),
        "filing_dt_posted_before": (last + ONE_DAY).isoformat(),
        "ordering": "dt_posted",
        "page": page,
        "page_size": PAGE_SIZE,
    }
    return f"{API}/filings/?{urlencode(query)}"


def _requested_days(state: SourceState) -> tuple[date, date]:
    day = today(state)
    until = min(state.until or day, day)
    if state.backfill:
        return state.since or date(until.year, 1, 1), until
    if state.last_seen_key is not None:
        return date.fromisoformat(state.last_seen_key) - OVERLAP, until
    return day - FIRST_RUN, until


def _windows(since: date, until: date) -> Iterator[_Window]:
    first = since
    while first <= until:
        week = first + WINDOW - ONE_DAY
        last = min(until, FIRST_DAY - ONE_DAY if first < FIRST_DAY else week)
        yield _Window(first=first, last=last)
        first = last + ONE_DAY


async def _tasks(ask: Ask, window: _Window) -> AsyncIterator[FetchTask]:
    """All filings of a window, page by page; its count is checked when they are through."""
    number = 1
    while True:
        page = await _page(ask, window, number)
        _check_filter(page, window)
        for entry in page.entries:
            task = _task(entry, page.archived)
            if task.key in window.listed:
                raise SuspiciousYieldError(
                    f"page {number} of {window} repeats {task.key}, which was on an earlier page"
                )
            window.listed.add(task.key)
            yield task
        # While today's are read, further ones are posted behind them: the last count is right.
        if len(window.listed) >= page.count or not page.entries:
            break
        number += 1
    if len(window.listed) != page.count:
        raise SuspiciousYieldError(
            f"the list of {window} counts {page.count} filings and holds {len(window.listed)}"
        )


def _check_filter(page: _FilingsPage, window: _Window) -> None:
    if page.entries and page.count > PAGE_SIZE and not any(map(window.contains, page.entries)):
        raise SuspiciousYieldError(
            f"the list of {window} holds {page.count} filings of other days; is its filter gone?"
        )


async def _page(ask: Ask, window: _Window, number: int) -> _FilingsPage:
    path = f"lists/{window.first:%Y}/{window.first}_{window.last}/{number}.json"
    # Addresses are built here: `next` may lead to another host.
    listing = await ask(list_address(window.first, window.last, number), path=path)
    content = read_json(listing.data)
    if not isinstance(content, dict) or not isinstance(content.get("count"), int):
        raise WrongContentError(f"page {number} of {window} is not a list of filings")
    return _FilingsPage(
        entries=sections(content, "results"), count=content["count"], archived=listing.archived
    )


def _task(entry: Entry, origin: Archived) -> FetchTask:
    uuid = filing_uuid(str(entry.get("filing_uuid")))
    return FetchTask(
        source=NAME,
        key=lda_id(uuid),
        parts=(),
        params={"entry": dict(entry)},
        fingerprint=ids.json_sha256(entry),
        origin=origin,
    )

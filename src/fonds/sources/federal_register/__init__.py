"""The Federal Register: rules, proposed rules, notices and presidential documents since 1994.

Quirks of the publisher:
- A document number is not unique: 00-111 is a rule of 2000-01-14 and a notice of 2000-01-18. The
  list is asked for every field, so that its entry is the document's metadata: right for repeated
  numbers, and one request less for each document.
- `count` stops at 10,000 without a word, and not every page announced can be had.
- `full_text_xml_url` is null for most documents before 2000: those have no body.
- Agencies the publisher could not match have a `raw_name` and nothing else.
- The table of contents of an issue, used for the audit, leaves out some documents of the list,
  but none of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from fonds import ids
from fonds.errors import (
    DuplicateKeyError,
    MalformedError,
    NotFoundError,
    SuspiciousYieldError,
    WrongContentError,
)
from fonds.model import (
    Archived,
    Discovery,
    FetchTask,
    Listing,
    ParsedRecord,
    Part,
    Raw,
    SourceState,
    Watermark,
)
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.federal_register.entries import (
    NAME,
    PUBLISHER,
    SITE,
    Entry,
    entries_of,
    entry_date,
    entry_id,
    entry_number,
    federal_register_id,
    read_body,
    read_json,
    read_together,
    record,
)
from fonds.sources.federal_register.tables import TABLES, fr_documents
from fonds.sources.formats.days import day_in_washington, today

API: Final = f"{SITE}/api/v1"
PER_PAGE: Final = 1000
CAP: Final = 10_000
FIRST_DAY: Final = date(1994, 1, 1)

# A week holds some 600 documents: one page, so there is nothing to shift between pages.
WINDOW: Final = timedelta(days=7)
# Entries are corrected in the days after they appear; fingerprints skip those that were not.
OVERLAP: Final = timedelta(days=7)
FIRST_RUN: Final = timedelta(days=30)
SATURDAY: Final = 5

_LISTS: Final = ("agencies", "cfr_references", "docket_ids", "regulation_id_numbers", "topics")
# All that describes a document and does not change with every reader: neither page_views nor
# public_inspection_pdf_url, whose address carries the time it was made.
FIELDS: Final = tuple(sorted({*fr_documents.columns.keys(), *_LISTS} - {"id"}))
_DETAILS: Final = frozenset({"citation", "full_text_xml_url"})


@dataclass(frozen=True, kw_only=True, slots=True)
class _ResultPage:
    entries: list[Entry]
    count: int
    pages: int
    archived: Archived


class FederalRegister:
    """The source `federal_register`."""

    info = SourceInfo(
        name=NAME,
        title="Federal Register",
        summary="rules, proposed rules, notices and presidential documents since 1994, in full",
        organisation=PUBLISHER,
        addresses=(f"{API}/documents.json", f"{SITE}/documents/full_text/xml/"),
        jurisdiction="United States",
        version="1.0.0",
        # The day's issue is complete by 8:45 in the morning.
        schedule="10 10 * * 1-5",
        rate=Rate(per_second=2, burst=4),
        tables=TABLES,
        depends_on=("taxonomy",),
        published_at="publication_date",
        csl_types={"rule": "regulation", "proposed_rule": "regulation"},
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The documents of each week; a week is whole or an error."""
        since, until = _requested_days(state)
        previous_key = state.last_seen_key or ""
        listed = 0
        async for first, last, tasks in _windows(ask, since, until):
            for task in tasks:
                yield task
            keys = frozenset(task.key for task in tasks)
            listed += len(keys)
            yield Listing(since=first, until=last, task_keys=keys)
            # A backfill of older years must not turn the watermark back.
            previous_key = max(previous_key, last.isoformat())
            if listed or until - since < WINDOW:
                yield Watermark(last_seen_key=previous_key)
        if not listed and until - since >= WINDOW:
            raise SuspiciousYieldError(
                f"no document was published from {since} to {until}, says the list; no such "
                "stretch without an issue is known"
            )

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The record of a document with its text, or all of a loose file.

        A text without an entry of the API (a loose XML file) is a full record as far as it
        tells: a single document states neither its date nor its volume, so it is cited by its
        number, `FR Doc. 2016-12100 (2016).`
        """
        if loose := [part for part in raw.parts if part.name == ""]:
            yield from read_together(loose)
        if "entry" in raw.task.params:
            yield _document(raw)

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """The documents in the printed table of contents of each issue.

        Without days: the thirty before the day the publisher's current issue was asked for.
        """
        if until is None:
            listing = await ask(f"{API}/issues/current.json", path="issues/current.json")
            until = day_in_washington(listing.archived.retrieved_at)
        for day in _days(since or until - FIRST_RUN, until):
            if day.weekday() >= SATURDAY:
                continue
            address = f"{API}/issues/{day}.json"
            try:
                listing = await ask(address, path=f"issues/{day:%Y/%m}/{day}.json")
            except NotFoundError:
                continue  # a holiday
            numbers = frozenset(_numbers(read_json(listing.data)))
            if not numbers:
                raise WrongContentError(f"the table of contents of {day} names no document")
            document_ids = frozenset(federal_register_id(number, day) for number in numbers)
            yield Expected(scope=day.isoformat(), document_ids=document_ids)


source = FederalRegister()


def list_address(since: date, until: date, page: int) -> str:
    """One page of the list of what was published in a range of days."""
    query = [
        ("conditions[publication_date][gte]", since.isoformat()),
        ("conditions[publication_date][lte]", until.isoformat()),
        ("order", "oldest"),
        ("per_page", str(PER_PAGE)),
        ("page", str(page)),
        *(("fields[]", field) for field in FIELDS),
    ]
    return f"{API}/documents.json?{urlencode(query)}"


# Windows ----------------------------------------------------------------------------------


def _requested_days(state: SourceState) -> tuple[date, date]:
    day = today(state)
    until = min(state.until or day, day)
    if state.backfill:
        return max(state.since or FIRST_DAY, FIRST_DAY), until
    if state.last_seen_key is not None:
        return date.fromisoformat(state.last_seen_key) - OVERLAP, until
    return day - FIRST_RUN, until


async def _windows(
    ask: Ask, since: date, until: date
) -> AsyncIterator[tuple[date, date, list[FetchTask]]]:
    first = since
    while first <= until:
        last = min(first + WINDOW - timedelta(days=1), until)
        halves = [(first, last)]
        while halves:
            window = halves.pop()
            page = await _page(ask, *window, 1)
            if _is_capped(page):
                halves += _halved(*window, page.count)
            else:
                yield *window, await _tasks(ask, *window, page)
        first = last + timedelta(days=1)


def _is_capped(page: _ResultPage) -> bool:
    return page.count >= CAP or page.pages * PER_PAGE < page.count


def _halved(since: date, until: date, count: int) -> list[tuple[date, date]]:
    if since == until:
        raise SuspiciousYieldError(
            f"the list of {since} is cut off: {count} documents are counted, and a single day "
            "cannot be split"
        )
    middle = since + (until - since) // 2
    # The earlier half is taken from the end of the list first.
    return [(middle + timedelta(days=1), until), (since, middle)]


async def _tasks(ask: Ask, since: date, until: date, first: _ResultPage) -> list[FetchTask]:
    tasks: dict[str, FetchTask] = {}
    page = first
    for number in range(1, first.pages + 1):
        if number > 1:
            page = await _page(ask, since, until, number)
        if not page.entries:
            break
        on_page = _tasks_of(page)
        if repeated := tasks.keys() & on_page.keys():
            raise SuspiciousYieldError(
                f"page {number} of {since} to {until} repeats {len(repeated)} entries of earlier "
                f"pages, among them {min(repeated)}"
            )
        tasks |= on_page
    if len(tasks) != first.count:
        raise SuspiciousYieldError(
            f"the list of {since} to {until} counts {first.count} documents and holds {len(tasks)}"
        )
    return list(tasks.values())


async def _page(ask: Ask, since: date, until: date, number: int) -> _ResultPage:
    # Addresses are built here: next_page_url may lead to another host.
    path = f"lists/{since}_{until}/{number}.json"
    listing = await ask(list_address(since, until, number), path=path)
    content = read_json(listing.data)
    if not isinstance(content, dict) or not isinstance(content.get("count"), int):
        raise WrongContentError(f"page {number} of {since} to {until} is not a list of documents")
    pages = content.get("total_pages")
    return _ResultPage(
        entries=entries_of(content),
        count=content["count"],
        pages=max(pages, 1) if isinstance(pages, int) else 1,
        archived=listing.archived,
    )


# Tasks ------------------------------------------------------------------------------------


def _tasks_of(page: _ResultPage) -> dict[str, FetchTask]:
    tasks: dict[str, FetchTask] = {}
    for entry in page.entries:
        task = _task(entry, page.archived)
        previous = tasks.setdefault(task.key, task)
        if previous.fingerprint != task.fingerprint:
            raise DuplicateKeyError(f"{task.key} means two different documents of one page")
    return tasks


def _task(entry: Entry, origin: Archived) -> FetchTask:
    if entry_date(entry) is None:
        raise WrongContentError(f"{entry_number(entry)}: the list does not state its date")
    return FetchTask(
        source=NAME,
        key=entry_id(entry),
        parts=tuple(_parts(entry)),
        params={"entry": dict(entry)},
        fingerprint=ids.json_sha256(entry),
        origin=origin,
    )


def _parts(entry: Entry) -> Iterator[Part]:
    number, day = entry_number(entry), entry_date(entry)
    assert day is not None
    dated = entry_id(entry) != f"fr:{number}"
    name = f"{number}.{day}" if dated else number
    text = Part(
        name="body",
        url=entry.get("full_text_xml_url") or "",
        path=f"bodies/raw/{day:%Y/%m}/{name}.xml",
    )
    if entry.keys() >= _DETAILS:
        # An announced text that is missing fails the task, and the next run tries again.
        if text.url:
            yield text
        return
    # Some mirrors ignore fields[]: the details come one by one, and the text, which is
    # not announced, may be missing.
    yield Part(
        name="metadata",
        url=f"{API}/documents/{number}.json",
        path=f"metadata/{day:%Y/%m}/{name}.json",
    )
    yield Part(
        name=text.name,
        url=text.url or f"{SITE}/documents/full_text/xml/{day:%Y/%m/%d}/{number}.xml",
        path=text.path,
        optional=True,
    )


def _document(raw: Raw) -> ParsedRecord:
    entry: Entry = raw.task.params["entry"]
    origin = raw.task.origin
    if details := raw.part("metadata"):
        described = [
            entries
            for entries in entries_of(read_json(details.data))
            if entry_id(entries) == raw.task.key
        ]
        # Of a repeated number the API may describe the other document.
        if described:
            entry, origin = {**entry, **described[0]}, details.archived
    text = raw.part("body")
    origin = origin or (text.archived if text else None)
    if origin is None:
        raise MalformedError(f"{raw.task.key}: no archived file says what it is")
    return record(entry, raw=origin, body=read_body(text) if text else None)


# The audit --------------------------------------------------------------------------------


def _days(since: date, until: date) -> Iterator[date]:
    for offset in range((until - since).days + 1):
        yield since + timedelta(days=offset)


def _numbers(contents: Any) -> Iterator[str]:
    """All document numbers, however deep agencies, categories and special sections nest."""
    waiting = [contents]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            yield from (str(number) for number in value.get("document_numbers") or ())
            waiting += value.values()

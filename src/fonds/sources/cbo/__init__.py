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
- Pages and PDFs stand behind a wall that only a browser passes (403), and neither list says where
  the PDF is: there is no body, only what the lists say. They are not asked for.

A backfill reads the lists of the Congresses asked for, or those its days touch, or of the current
Congress and the one before. There is no second way to count, so there is no audit.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import date, timedelta
from typing import Any, Final

from fonds import ids
from fonds.citations.cbo import cite_cbo
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
from fonds.sources.cbo.entries import Entry, once_each, read_estimates, read_publications
from fonds.sources.cbo.tables import TABLES, cbo_publications
from fonds.sources.families.bill_numbers import congress_of, first_day_of
from fonds.sources.families.feeds import WASHINGTON, check_reach, newest, read_feed

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
        organisation=PUBLISHER,
        jurisdiction="United States",
        version="1.0.0",
        schedule="40 8-20/3 * * *",
        rate=Rate(per_second=0.5, burst=2),
        tables=TABLES,
        depends_on=("bills",),
        at_least=20,
        published_at="Date of the list of estimates, pubDate of the feed, as a day in Washington",
        options=("congresses",),
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The estimates of each Congress, then what only the feed of everything has."""
        listed: set[str] = set()
        for congress in _congresses(state):
            entries, archived = await _estimates(ask, congress, state)
            listed |= {entry.publication for entry in entries}
            for entry in _asked_for(entries, state):
                yield _task(entry, archived)
        answer = await ask(FEED, path="rss/publications.xml")
        others = list(once_each(read_publications(answer.data)))
        if not others:
            raise SuspiciousYieldError("CBO's feed lists nothing; it always has the newest 30")
        for entry in _asked_for(others, state):
            if entry.publication not in listed:
                yield _task(entry, answer.archived)
        items = read_feed(answer.data).items
        if (last_seen := newest(items)) and not state.backfill:
            yield Watermark(last_seen_key=last_seen)
            check_reach(items, state.last_seen_key, "CBO's feed")

    def parse(self, raw: Raw) -> Iterator[ParsedRecord]:
        """The publication a task describes, or all of a loose list or feed."""
        if "entry" in raw.task.params:
            if raw.task.origin is None:
                raise MalformedError(f"{raw.task.key}: no archived list says what it is")
            yield _record(Entry(**raw.task.params["entry"]), raw.task.origin)
        yield from _together(raw.parts)


source: Final = Cbo()


def list_address(congress: int) -> str:
    """The list of a Congress's cost estimates."""
    return f"{SITE}/rss/{congress}congress-cost-estimates.xml"


# What is asked for ------------------------------------------------------------------------


def _congresses(state: SourceState) -> list[int]:
    today = state.now.astimezone(WASHINGTON).date()
    current = congress_of(today)
    if not state.backfill:
        return sorted({congress_of(today - STRAGGLERS), current})
    if chosen := state.options.get("congresses"):
        return sorted({int(congress) for congress in chosen})
    if state.since is None and state.until is None:
        return [current - 1, current]
    first = congress_of(state.since - STRAGGLERS) if state.since else FIRST_CONGRESS
    last = congress_of(min(state.until, today)) if state.until else current
    return list(range(max(first, FIRST_CONGRESS), last + 1))


async def _estimates(
    ask: Ask, congress: int, state: SourceState
) -> tuple[list[Entry], Archived | None]:
    try:
        answer = await ask(list_address(congress), path=f"rss/{congress}-cost-estimates.xml")
    except NotFoundError:
        if state.options.get("congresses") or not _may_lack_a_list(congress, state):
            raise
        return [], None
    entries = list(once_each(read_estimates(answer.data, congress)))
    if not entries and not _is_young(congress, state):
        raise SuspiciousYieldError(f"CBO's list of estimates for Congress {congress} is empty")
    return entries, answer.archived


def _is_young(congress: int, state: SourceState) -> bool:
    """Whether a Congress has sat for so short a time that nothing may be estimated yet."""
    return state.now.astimezone(WASHINGTON).date() - first_day_of(congress) < STRAGGLERS


def _may_lack_a_list(congress: int, state: SourceState) -> bool:
    # Which early Congress has the first list is nowhere said.
    return _is_young(congress, state) or first_day_of(congress).year < EVERY_LIST_SINCE


def _asked_for(entries: Iterable[Entry], state: SourceState) -> Iterator[Entry]:
    for entry in entries:
        if not state.backfill or entry.day is None or _is_within(entry.day, state):
            yield entry


def _is_within(day: date, state: SourceState) -> bool:
    return (state.since is None or state.since <= day) and (
        state.until is None or day <= state.until
    )


def _task(entry: Entry, origin: Archived | None) -> FetchTask:
    params = {"entry": entry.to_params()}
    return FetchTask(
        source=NAME,
        key=ids.cbo_id(entry.publication),
        parts=(),
        params=params,
        fingerprint=ids.json_sha256(params),
        origin=origin,
    )


# Records ----------------------------------------------------------------------------------


def _together(parts: Iterable[RawPart]) -> Iterator[ParsedRecord]:
    """The publications of loose files, each once: a list of estimates knows more than the feed."""
    found = [(entry, part.archived) for part in parts for entry in _loose(part)]
    found.sort(key=lambda one: one[0].congress is None)
    chosen: dict[str, ParsedRecord] = {}
    for entry, archived in found:
        chosen.setdefault(entry.publication, _record(entry, archived))
    return iter(chosen.values())


def _loose(part: RawPart) -> Iterator[Entry]:
    if part.data.startswith(b"%PDF-"):
        raise WrongContentError("a PDF of CBO; its list says what it is, and has no PDFs")
    if b"<response" in part.data[:512]:
        # The list itself does not say which Congress it is of; its name does.
        named = _LIST_NAME.search(part.archived.url)
        return once_each(read_estimates(part.data, int(named[1]) if named else None))
    return once_each(read_publications(part.data))


def _record(entry: Entry, raw: Archived) -> ParsedRecord:
    key, bill, congress = ids.cbo_id(entry.publication), entry.bill, entry.bill_congress
    row: dict[str, Any] = {
        "id": key,
        "publication_id": entry.publication,
        "title": entry.title,
        "date": entry.moment,
        "link": _page(entry),
        "description": entry.description,
        "bill_number": entry.bill_number,
        "title_bill": entry.title_bill.written if entry.title_bill else None,
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


def _document(key: str, entry: Entry, raw: Archived) -> Document:
    named = entry.bill if entry.bill and not entry.title_bill else None
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
            bill=named.written if named else None,
        ),
        raw=raw,
        aliases=(f"CBO {entry.publication}", _page(entry)),
    )


def _page(entry: Entry) -> str:
    return f"{SITE}/publication/{entry.publication}"

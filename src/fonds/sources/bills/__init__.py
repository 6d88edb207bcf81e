"""Bills and resolutions of Congress since 2003: their status from BILLSTATUS, and their texts.

Every bill is one task, its status file. What the file says of the bill is its record; each version
of the text it lists is a task of its own (`bill:119-hr-1/ih`), so that a text outlives any change
of the status file and is not read again when only an action was added.

Quirks of the publishers:
- Three formats are about: none (2016), 1.0.0 and 3.0.0. Names differ (billNumber, billType,
  billCommittees, billSubjects, billSummaries), and so does where recorded votes stand.
- The text of some summaries stands in an *element* called `cdata`; some actions have no text;
  fields of an amendment stand twice, sometimes once blank.
- Times of day were written `03:36PM` before June 2016.
- `Public Law` among the text versions is the law, a document of another source: its address is
  kept in `bill_laws`. The enrolled text often has no date, or stands twice, with and without.
- The feed names the last hundred changed files and no more; a batch can be larger. When it does
  not reach back to the last run, all folders of the current and the previous Congress are listed.
  So the feed only says which folders to list, and what is new in a folder its times say.
- A folder lists its own ZIP archive among the files.
- Listings, feed and sitemaps need no key. The audit reads the sitemaps, which another job makes.

A first run takes the files changed in the thirty days before the newest. `backfill` without a
range takes the current and the previous Congress, with days the Congresses that sat on them (and
of their files those written since the first day), with `congresses` exactly those. Files that
vanish from a folder are not withdrawn: GPO rebuilds folders in place.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from fonds.errors import SuspiciousYieldError, UsageError
from fonds.model import Discovery, FetchTask, ParsedRecord, Raw, SourceState, Watermark
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.bills.children import NAME
from fonds.sources.bills.files import read_loose, read_status_part
from fonds.sources.bills.listings import (
    COLLECTION,
    STATUS,
    Folder,
    ListedFile,
    listed_files,
    offered_folders,
    read_news,
    sitemap_bills,
    sitemap_folders,
)
from fonds.sources.bills.tables import TABLES
from fonds.sources.bills.texts import BODY, task_record
from fonds.sources.families.bill_numbers import congress_of
from fonds.sources.families.bulk_folders import offered_congresses

FIRST_CONGRESS: Final = 108
NEW_YORK: Final = ZoneInfo("America/New_York")
FIRST_RUN: Final = timedelta(days=30)
# A batch is hours in the making, and its files are dated by when they were written.
OVERLAP: Final = timedelta(days=1)


class Bills:
    """The source `bills`."""

    info = SourceInfo(
        name=NAME,
        title="Bills of Congress",
        organisation="U.S. Government Publishing Office and Library of Congress",
        jurisdiction="United States",
        version="1.0.0",
        # Statuses of the current Congress are rebuilt every four hours, at four, eight and twelve.
        schedule="50 1,5,9,13,17,21 * * *",
        rate=Rate(per_second=4, burst=4),
        tables=TABLES,
        depends_on=("legislators", "committees"),
        at_least=1,
        fetch_concurrency=4,
        published_at="introducedDate; textVersions/item/date for a text",
        options=("congresses",),
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The status files of each folder that may hold news, and of it those that are new."""
        newest = ""
        if state.backfill:
            for folder in await _asked_for(state, ask):
                files = await listed_files(ask, folder)
                for file in files:
                    if _may_be_wanted(file, state):
                        yield file.task()
                if folder[0] == _current(state):
                    newest = max(newest, _newest(files))
        else:
            files = [
                file
                for folder in await _with_news(state, ask)
                for file in await listed_files(ask, folder)
            ]
            newest = _newest(files)
            for file in _news(files, state.last_seen_key, newest):
                yield file.task()
        if newest:
            # A feed that names former Congresses only must not turn the watermark back.
            yield Watermark(last_seen_key=max(newest, state.last_seen_key or ""))

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The bill of a status file and a task for each of its texts; the record of a text."""
        for part in raw.parts:
            if part.name == "":
                yield from read_loose(part)
            elif part.name == STATUS:
                yield from read_status_part(part, raw.task.key)
        if "version" in raw.task.params:
            yield task_record(raw.task, raw.part(BODY))

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """The bills govinfo's sitemaps name, of the Congresses that sat on these days.

        Without days: those of the current Congress. Sitemaps name no versions of texts.
        """
        sitemaps = await sitemap_folders(ask)
        newest = max(congress for congress, _ in sitemaps)
        first = congress_of(since) if since else newest if until is None else FIRST_CONGRESS
        last = congress_of(until) if until else newest
        for folder, address in sorted(sitemaps.items()):
            if first <= folder[0] <= last:
                bills = await sitemap_bills(ask, folder, address)
                yield Expected(scope=f"Congress {folder[0]}, {folder[1]}", document_ids=bills)


source = Bills()


def _current(state: SourceState) -> int:
    return congress_of(state.now.astimezone(NEW_YORK).date())


def _newest(files: Iterable[ListedFile]) -> str:
    return max((file.modified.isoformat() for file in files if file.modified), default="")


def _news(files: list[ListedFile], last_seen: str | None, newest: str) -> Iterator[ListedFile]:
    if last_seen is not None:
        since = datetime.fromisoformat(last_seen) - OVERLAP
    elif newest:
        since = datetime.fromisoformat(newest) - FIRST_RUN
    else:
        yield from files
        return
    yield from (file for file in files if file.modified is None or file.modified >= since)


async def _with_news(state: SourceState, ask: Ask) -> list[Folder]:
    news = await read_news(ask)
    if state.last_seen_key is not None:
        seen = datetime.fromisoformat(state.last_seen_key)
        if news.oldest is not None and news.oldest <= seen:
            return sorted(news.folders)
    current = _current(state)
    offered = [
        number for number in await offered_congresses(ask, COLLECTION) if number >= current - 1
    ]
    folders = [folder for number in offered for folder in await offered_folders(ask, number)]
    return sorted({*folders, *news.folders})


async def _asked_for(state: SourceState, ask: Ask) -> list[Folder]:
    offered = await offered_congresses(ask, COLLECTION)
    wanted = _congresses(state)
    missing = [number for number in wanted if number not in offered]
    if missing and state.options.get("congresses"):
        raise SuspiciousYieldError(
            f"govinfo offers no bill statuses of Congress {missing[0]}; "
            f"it has those from {offered[0]} to {offered[-1]}"
        )
    chosen = [number for number in wanted if number in offered]
    return [folder for number in chosen for folder in await offered_folders(ask, number)]


def _may_be_wanted(file: ListedFile, state: SourceState) -> bool:
    """A bill introduced since a day has a file that was written since; the day is Washington's."""
    if state.since is None or file.modified is None:
        return True
    return file.modified.date() >= state.since - OVERLAP


def _congresses(state: SourceState) -> list[int]:
    current = _current(state)
    if named := state.options.get("congresses"):
        return sorted({_number(value) for value in named})
    if state.since is None and state.until is None:
        return [current - 1, current]
    first = congress_of(state.since) if state.since else FIRST_CONGRESS
    last = min(congress_of(state.until), current) if state.until else current
    return list(range(max(first, FIRST_CONGRESS), last + 1))


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{value!r} is no number of a Congress; write 119") from error

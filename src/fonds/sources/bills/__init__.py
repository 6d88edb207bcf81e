"""Bills and resolutions of Congress since 2003: their status from BILLSTATUS, and their texts.

Every bill is one task, its status file. What the file says of the bill is its record; each version
of the text it lists is a task of its own (`bill:119-hr-1/ih`), so that a text outlives any change
of the status file and is not read again when only an action was added.

Quirks of the publishers:
- Three formats are about: none (2016), 1.0.0 and 3.0.0. Names differ (billNumber, billType,
  billCommittees, billSubjects, billSummaries), and so does the element of recorded votes.
- The text of some summaries is in an *element* called `cdata`; some actions have no text;
  fields of an amendment appear twice, sometimes once blank.
- Times of day were written `03:36PM` before June 2016.
- `Public Law` among the text versions is the law, a document of another source: its address is
  kept in `bill_laws`. The enrolled text often has no date, or appears twice, with and without.
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

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from fonds import ids
from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.model import (
    Discovery,
    FetchTask,
    KeyListing,
    ParsedRecord,
    Part,
    Raw,
    RawPart,
    SourceState,
    Watermark,
)
from fonds.sources.base import Ask, Expected, Rate, SourceInfo
from fonds.sources.bills.names import TYPES, BillName, package_parts
from fonds.sources.bills.status import (
    NAME,
    bill_of_api,
    name_of_bill,
    read_status,
    status_record,
    title_of,
)
from fonds.sources.bills.tables import TABLES
from fonds.sources.bills.texts import TEXT, loose_record, task_record, text_tasks
from fonds.sources.formats import fields, xml, yaml
from fonds.sources.formats.congress import congress_of
from fonds.sources.formats.days import requested_congresses, today
from fonds.sources.formats.feeds import FeedItem, read_feed
from fonds.sources.formats.govinfo import (
    BULK,
    SITE,
    modified_at,
    name_of,
    offered_congresses,
    read_folder,
)
from fonds.sources.formats.html import parts_of

# govinfo's feed of changed files, its folders, its sitemaps.

COLLECTION: Final = "BILLSTATUS"
STATUS: Final = "status"
"""The name of a bill task's only part."""

_HOST: Final = "www.govinfo.gov"
_FEED: Final = f"{SITE}/rss/billstatus-bulkdata.xml"
_SITEMAPS: Final = f"{SITE}/sitemap/bulkdata/BILLSTATUS/sitemapindex.xml"
_FILE: Final = re.compile(r"BILLSTATUS-[0-9]+[a-z]+[0-9]+\.xml", re.IGNORECASE)
_SITEMAP: Final = re.compile(r"BILLSTATUS/([0-9]{2,3})[-/_]?([a-z]+)[^a-z]")

Folder = tuple[int, str]
"""A Congress and a type of bill."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedFile:
    """One status file of a folder."""

    bill: BillName
    name: str
    size: str | None
    modified: datetime | None
    """None where the listing does not say; then it may always have changed."""

    def task(self) -> FetchTask:
        """The task that fetches it while the folder says of it what it says."""
        folder = f"{self.bill.congress}/{self.bill.kind}"
        part = Part(
            name=STATUS,
            url=f"{BULK}/{COLLECTION}/{folder}/{self.name}",
            path=f"status/{folder}/{self.name}",
        )
        stated = [self.name, self.size, self.modified]
        return FetchTask(
            source=NAME, key=self.bill.id, parts=(part,), fingerprint=ids.json_sha256(stated)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedNews:
    """The folders that the feed names, and the age of its oldest entry."""

    folders: frozenset[Folder]
    oldest: datetime | None


# Folders ----------------------------------------------------------------------------------


async def offered_folders(ask: Ask, congress: int) -> list[Folder]:
    """The types of bills one Congress has a folder for, in our order."""
    names = set((await read_folder(ask, COLLECTION, congress)).names())
    if not names & set(TYPES):
        raise SuspiciousYieldError(f"govinfo's list of Congress {congress} names no type of bill")
    return [(congress, kind) for kind in TYPES if kind in names]


async def listed_files(ask: Ask, folder: Folder) -> list[ListedFile]:
    """All status files of a folder, by number; an empty folder or a repeated file is an error."""
    congress, kind = folder
    where = f"{congress}/{kind}"
    entries = (await read_folder(ask, COLLECTION, *folder)).entries
    files: dict[str, ListedFile] = {}
    for entry in entries:
        file = _listed(entry)
        if file is None:
            continue  # the archive of the whole folder
        if (file.bill.congress, file.bill.kind) != folder:
            raise WrongContentError(f"the folder {where} lists {file.name}")
        if file.bill.id in files:
            raise SuspiciousYieldError(f"the folder {where} lists {file.name} twice")
        files[file.bill.id] = file
    if not files:
        raise SuspiciousYieldError(f"the folder {where} lists no bill, of {len(entries)} entries")
    return sorted(files.values(), key=lambda file: file.bill.number)


def _listed(entry: Any) -> ListedFile | None:
    name = name_of(entry)
    bill = BillName.of_status_file(name) if _FILE.fullmatch(name) else None
    if bill is None:
        return None
    size = fields.text(entry, "size")
    return ListedFile(bill=bill, name=name, size=size, modified=modified_at(entry))


# The feed ---------------------------------------------------------------------------------


async def read_news(ask: Ask) -> FeedNews:
    """The folders that the hundred files changed last are in."""
    listing = await ask(_FEED, path="feeds/billstatus-bulkdata.xml")
    items = read_feed(listing.data).items
    folders = {folder for item in items for folder in _folders_in(item)}
    if not folders:
        raise SuspiciousYieldError("govinfo's feed of changed bill statuses names no file")
    times = [item.published for item in items if item.published]
    return FeedNews(folders=frozenset(folders), oldest=min(times, default=None))


def _folders_in(item: FeedItem) -> Iterator[Folder]:
    for text in (item.link, item.guid, item.title, item.html):
        for name in _FILE.findall(text or ""):
            if bill := BillName.of_status_file(name):
                yield bill.congress, bill.kind


# Sitemaps ---------------------------------------------------------------------------------


async def sitemap_folders(ask: Ask) -> dict[Folder, str]:
    """The sitemap of each folder, for the audit: made by another job than the listings."""
    listing = await ask(_SITEMAPS, path="sitemaps/index.xml")
    root = xml.without_namespaces(xml.read(listing.data, "sitemapindex"))
    folders: dict[Folder, str] = {}
    for address in xml.texts(root, "sitemap/loc"):
        match = _SITEMAP.search(address)
        if match and match[2] in TYPES and parts_of(address).hostname == _HOST:
            folders[int(match[1]), match[2]] = address
    if not folders:
        raise SuspiciousYieldError("govinfo's index of sitemaps names no folder of bill statuses")
    return folders


async def sitemap_bills(ask: Ask, folder: Folder, address: str) -> frozenset[str]:
    """The ids of the bills one sitemap names."""
    listing = await ask(address, path=f"sitemaps/{folder[0]}/{folder[1]}.xml")
    root = xml.without_namespaces(xml.read(listing.data, "urlset"))
    bills = (BillName.of_status_file(loc) for loc in xml.texts(root, "url/loc"))
    bill_ids = frozenset(bill.id for bill in bills if bill)
    if not bill_ids:
        raise WrongContentError(f"the sitemap of {folder[0]}/{folder[1]} names no bill")
    return bill_ids


# Loose files, distinguished by their bytes: a status file, a text, or something else.

_ZIP: Final = b"PK\x03\x04"
_BOM: Final = b"\xef\xbb\xbf"
_TEXTS: Final = frozenset({"bill", "resolution", "amendment-doc", "engrossedAmendment"})
_OTHER_XML: Final = {
    "mods": "a MODS file, the companion that describes a govinfo package; its text is in the "
    "package's XML",
    "opml": "a list of feeds",
    "rss": "a feed, which names files but holds no bill",
    "sitemapindex": "an index of sitemaps",
    "urlset": "a sitemap, which names files but holds no bill",
    "BillSummaries": "a file of summaries alone; the status file holds them with the bill",
}
# By a key that only such files have.
_OTHER_JSON: Final = {
    "files": "a listing of govinfo's folders",
    "bills": "a list of bills from api.congress.gov, without their details",
    "packages": "govinfo's list of a collection",
    "granules": "govinfo's list of a package's parts",
    "collections": "govinfo's list of its collections",
    "packageId": "govinfo's description of a package, a companion of its text",
    "bill_version_id": "a file derived by the unitedstates/congress tools",
    "bill_id": "a file derived by the unitedstates/congress tools",
    "bill_type": "a file derived by the unitedstates/congress tools",
    "acted_at": "a file derived by the unitedstates/congress tools",
    "billnumber_version": "a file derived by the unitedstates/congress tools",
    "actions": "one part of a bill from api.congress.gov; the bill's status file has all parts",
    "committees": "one part of a bill from api.congress.gov; the bill's status file has all parts",
    "textVersions": "one part of a bill from api.congress.gov; the bill's status file has all "
    "parts",
    "summaries": "a list of summaries from api.congress.gov",
}


def read_loose(part: RawPart) -> Iterator[ParsedRecord | FetchTask]:
    """All records of one file, whose name counts only for texts that do not say what they are."""
    start = part.data[:512].removeprefix(_BOM).lstrip()
    if not start:
        raise MalformedError("the file is empty")
    if start.startswith(_ZIP):
        raise WrongContentError("a ZIP archive; unpack it and read its XML files")
    if start.startswith((b"{", b"[")):
        yield from _json(part)
    elif start.startswith(b"<") and not _is_page(start):
        yield from _xml(part)
    elif package_parts(part.archived.url.rpartition("/")[2]):
        yield loose_record(part)
    else:
        what = "an HTML page" if _is_page(start) else "no XML"
        raise WrongContentError(
            f"{what}, and its name is not that of a bill's text (BILLS-119hr1ih.htm)"
        )


def read_status_part(part: RawPart, key: str | None) -> Iterator[ParsedRecord | FetchTask]:
    """The bill, then a task for each version of its text; `key` is the bill that was asked for."""
    yield from _bill(read_status(part.data), part, key)


def _bill(bill: Any, part: RawPart, key: str | None = None) -> Iterator[ParsedRecord | FetchTask]:
    name = name_of_bill(bill)
    if key is not None and name.id != key:
        raise WrongContentError(f"the status file of {key} is about {name.id}")
    yield status_record(bill, part.archived)
    yield from text_tasks(bill, name, title_of(bill, name), part.archived)


def _is_page(start: bytes) -> bool:
    return start[:15].lower().startswith((b"<!doctype html", b"<html"))


def _xml(part: RawPart) -> Iterator[ParsedRecord | FetchTask]:
    root = xml.read(part.data)
    name = xml.local_name(root)
    if name == "billStatus":
        yield from read_status_part(part, None)
    elif name in _TEXTS and root.get("session") and root.get("updated"):
        raise WrongContentError("GovTrack's record of a bill, derived from THOMAS or BILLSTATUS")
    elif name in _TEXTS:
        yield loose_record(part)
    else:
        what = _OTHER_XML.get(name, f"XML whose root is <{name}>")
        raise WrongContentError(f"neither a status file nor a bill's text: {what}")


def _json(part: RawPart) -> Iterator[ParsedRecord | FetchTask]:
    content = yaml.load(part.data)
    bill = content.get("bill") if isinstance(content, dict) else None
    if isinstance(bill, dict):
        yield from _bill(bill_of_api(bill), part)
        return
    keys = content if isinstance(content, dict) else {}
    what = next((why for key, why in _OTHER_JSON.items() if key in keys), fields.describe(content))
    raise WrongContentError(f"neither a status file nor a bill's text: {what}")


FIRST_CONGRESS: Final = 108
FIRST_RUN: Final = timedelta(days=30)
# A batch is hours in the making, and its files are dated by when they were written.
OVERLAP: Final = timedelta(days=1)


class Bills:
    """The source `bills`."""

    info = SourceInfo(
        name=NAME,
        title="Bills of Congress",
        summary="bills and resolutions of Congress since 2003, with actions, sponsors and texts",
        organisation="U.S. Government Publishing Office and Library of Congress",
        addresses=(_FEED, f"{BULK}/BILLSTATUS/", f"{BULK}/BILLS/"),
        jurisdiction="United States",
        version="1.0.0",
        # Statuses of the current Congress are rebuilt every four hours, at four, eight and twelve.
        schedule="50 1,5,9,13,17,21 * * *",
        rate=Rate(per_second=4, burst=4),
        tables=TABLES,
        depends_on=("legislators", "committees"),
        published_at="introducedDate; textVersions/item/date for a text",
        options=("congresses",),
        csl_type="bill",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The status files of each folder that may hold news, and of it those that are new."""
        newest = ""
        listings: list[KeyListing] = []
        if state.backfill:
            for folder in await _requested_folders(state, ask):
                files = await listed_files(ask, folder)
                listings.append(_listing(folder, files))
                for file in files:
                    if _may_have_changed(file, state):
                        yield file.task()
                if folder[0] == _current(state):
                    newest = max(newest, _newest(files))
        else:
            folders = {
                folder: await listed_files(ask, folder) for folder in await _with_news(state, ask)
            }
            files = [file for listed in folders.values() for file in listed]
            listings = [_listing(folder, listed) for folder, listed in folders.items()]
            newest = _newest(files)
            for file in _news(files, state.last_seen_key, newest):
                yield file.task()
        for listing in listings:
            yield listing
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
            yield task_record(raw.task, raw.part(TEXT))

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


def _listing(folder: Folder, files: list[ListedFile]) -> KeyListing:
    congress, kind = folder
    return KeyListing(
        prefix=f"bill:{congress}-{kind}-", task_keys=frozenset(file.bill.id for file in files)
    )


def _current(state: SourceState) -> int:
    return congress_of(today(state))


def _newest(files: Iterable[ListedFile]) -> str:
    return max((file.modified.isoformat() for file in files if file.modified), default="")


def _news(files: list[ListedFile], previous_key: str | None, newest: str) -> Iterator[ListedFile]:
    if previous_key is not None:
        since = datetime.fromisoformat(previous_key) - OVERLAP
    elif newest:
        since = datetime.fromisoformat(newest) - FIRST_RUN
    else:
        yield from files
        return
    yield from (file for file in files if file.modified is None or file.modified >= since)


async def _with_news(state: SourceState, ask: Ask) -> list[Folder]:
    news = await read_news(ask)
    if state.last_seen_key is not None:
        last_seen_at = datetime.fromisoformat(state.last_seen_key)
        if news.oldest is not None and news.oldest <= last_seen_at:
            return sorted(news.folders)
    current = _current(state)
    offered = [
        number for number in await offered_congresses(ask, COLLECTION) if number >= current - 1
    ]
    folders = [folder for number in offered for folder in await offered_folders(ask, number)]
    return sorted({*folders, *news.folders})


async def _requested_folders(state: SourceState, ask: Ask) -> list[Folder]:
    offered = await offered_congresses(ask, COLLECTION)
    congresses = requested_congresses(state, first=FIRST_CONGRESS)
    missing = [number for number in congresses if number not in offered]
    if missing and state.options.get("congresses"):
        raise SuspiciousYieldError(
            f"govinfo offers no bill statuses of Congress {missing[0]}; "
            f"it has those from {offered[0]} to {offered[-1]}"
        )
    chosen = [number for number in congresses if number in offered]
    return [folder for number in chosen for folder in await offered_folders(ask, number)]


def _may_have_changed(file: ListedFile, state: SourceState) -> bool:
    """A bill introduced since a day has a file that was written since; the day is Washington's."""
    if state.since is None or file.modified is None:
        return True
    return file.modified.date() >= state.since - OVERLAP

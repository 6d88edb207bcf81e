"""What govinfo says there is: its feed of changed files, its folders, its sitemaps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fonds import ids
from fonds.errors import SuspiciousYieldError, WrongContentError
from fonds.model import FetchTask, Part
from fonds.sources.base import Ask
from fonds.sources.bills.children import NAME
from fonds.sources.bills.names import TYPES, BillName
from fonds.sources.families import fields, xml_files
from fonds.sources.families.addresses import parts_of
from fonds.sources.families.bulk_folders import BULK, SITE, modified_at, name_of, read_folder
from fonds.sources.families.feeds import FeedItem, read_feed

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
class News:
    """What the feed names, and how far back it reaches."""

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
    found: dict[str, ListedFile] = {}
    for entry in entries:
        file = _listed(entry)
        if file is None:
            continue  # the archive of the whole folder
        if (file.bill.congress, file.bill.kind) != folder:
            raise WrongContentError(f"the folder {where} lists {file.name}")
        if file.bill.id in found:
            raise SuspiciousYieldError(f"the folder {where} lists {file.name} twice")
        found[file.bill.id] = file
    if not found:
        raise SuspiciousYieldError(f"the folder {where} lists no bill, of {len(entries)} entries")
    return sorted(found.values(), key=lambda file: file.bill.number)


def _listed(entry: Any) -> ListedFile | None:
    name = name_of(entry)
    bill = BillName.of_status_file(name) if _FILE.fullmatch(name) else None
    if bill is None:
        return None
    size = fields.text(entry, "size")
    return ListedFile(bill=bill, name=name, size=size, modified=modified_at(entry))


# The feed ---------------------------------------------------------------------------------


async def read_news(ask: Ask) -> News:
    """The folders that the hundred files changed last are in."""
    answer = await ask(_FEED, path="feeds/billstatus-bulkdata.xml")
    items = read_feed(answer.data).items
    folders = {folder for item in items for folder in _named(item)}
    if not folders:
        raise SuspiciousYieldError("govinfo's feed of changed bill statuses names no file")
    moments = [item.published for item in items if item.published]
    return News(folders=frozenset(folders), oldest=min(moments, default=None))


def _named(item: FeedItem) -> Iterator[Folder]:
    for text in (item.link, item.guid, item.title, item.html):
        for name in _FILE.findall(text or ""):
            if bill := BillName.of_status_file(name):
                yield bill.congress, bill.kind


# Sitemaps ---------------------------------------------------------------------------------


async def sitemap_folders(ask: Ask) -> dict[Folder, str]:
    """The sitemap of each folder, for the audit: made by another job than the listings."""
    answer = await ask(_SITEMAPS, path="sitemaps/index.xml")
    root = xml_files.without_namespaces(xml_files.read(answer.data, "sitemapindex"))
    found: dict[Folder, str] = {}
    for address in xml_files.texts(root, "sitemap/loc"):
        named = _SITEMAP.search(address)
        if named and named[2] in TYPES and parts_of(address).hostname == _HOST:
            found[int(named[1]), named[2]] = address
    if not found:
        raise SuspiciousYieldError("govinfo's index of sitemaps names no folder of bill statuses")
    return found


async def sitemap_bills(ask: Ask, folder: Folder, address: str) -> frozenset[str]:
    """The ids of the bills one sitemap names."""
    answer = await ask(address, path=f"sitemaps/{folder[0]}/{folder[1]}.xml")
    root = xml_files.without_namespaces(xml_files.read(answer.data, "urlset"))
    bills = (BillName.of_status_file(loc) for loc in xml_files.texts(root, "url/loc"))
    found = frozenset(bill.id for bill in bills if bill)
    if not found:
        raise WrongContentError(f"the sitemap of {folder[0]}/{folder[1]} names no bill")
    return found

"""Packages of govinfo: found by their yearly sitemaps, described by MODS, read as text or PDF.

Quirks of the publisher:
- The sitemaps of all years are rewritten all day long; what counts is the `lastmod` of each
  package, which is the task's fingerprint. A year without packages has no sitemap.
- The RSS feeds name the newest packages only, and none of the corrected ones, so that they save
  nothing beside a sitemap that is asked for conditionally.
- A missing file is not a 404: the server redirects to `/error`, which answers 200 with a page.
- Walks of a collection by the API also name packages of its neighbours (`ERP-…`, `GPO-…`).

Sources that are a collection of govinfo are listed, read and audited by the classes of this module;
its functions also read the JSON listings of bulk folders.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlencode

from fonds import ids
from fonds.errors import NotFoundError, SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Discovery,
    FetchTask,
    KeyListing,
    ParsedRecord,
    Part,
    Raw,
    SourceState,
    Watermark,
)
from fonds.sources.base import Ask, Expected, ListingResponse, SourceInfo
from fonds.sources.formats import fields, mods, xml, yaml
from fonds.sources.formats.congress import congress_of, first_day_of
from fonds.sources.formats.days import congress_number
from fonds.sources.formats.gpo_files import (
    LooseReader,
    MakeRecord,
    govinfo_id,
    is_error_page,
    pdf_body,
    text_body,
)
from fonds.sources.formats.html import parts_of
from fonds.sources.formats.mods import ModsItem, ModsPackage, Rendition

API: Final = "https://api.govinfo.gov"
PER_PAGE: Final = 1000
WITHOUT_DAYS: Final = timedelta(days=30)

_CONGRESS: Final = re.compile(r"[A-Z]+-([0-9]{1,3})[a-z]")
_DAY: Final = re.compile(r"[A-Z]+-([0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9])")


@dataclass(frozen=True, kw_only=True, slots=True)
class GovinfoCollection:
    """A collection as one source reads it."""

    source: str
    code: str
    """`CHRG`."""
    first_year: int
    late_years: int = 1
    """For how long after its end a Congress still appears in later sitemaps."""
    own_text: bool = True
    """A package has a text under its own name, which is fetched together with its MODS."""

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The packages of the years asked for, newest first.

        An incremental run asks this year and the last. A backfill takes `since` and `until` by
        year (by day where packages are issues of a day), or `congresses`; without any of them
        the current Congress and the one before it.
        """
        requested = _requested_years(self, state)
        newest = state.last_seen_key or ""
        listed: set[str] = set()
        years: set[int] = set()
        for year in requested.years:
            listing = await self._sitemap(ask, year)
            if listing is None:
                continue
            years.add(year)
            for package, entry in self._listed(listing.data, year):
                listed.add(package)
                newest = max(newest, entry.get("lastmod", ""))
                if requested.includes(package):
                    yield self._package_task(package, entry, listing.archived)
        if not listed:
            raise SuspiciousYieldError(
                f"no sitemap of {self.code} names a package for {requested.years[-1]} to "
                f"{requested.years[0]}; is the upstream's answer walled?"
            )
        for complete in self._complete(listed, years, state.now.year):
            yield complete
        yield Watermark(last_seen_key=newest)

    def _complete(
        self, packages: AbstractSet[str], years: AbstractSet[int], this_year: int
    ) -> Iterator[KeyListing]:
        """The packages of each Congress or year all of whose sitemaps were read."""
        scopes: dict[str, range] = {}
        for package in packages:
            day, congress = day_of(package), _CONGRESS.match(package)
            if congress:
                scopes[congress[0][:-1]] = _years_of(int(congress[1]), self.late_years)
            elif day:
                scopes[f"{self.code}-{day.year}-"] = range(day.year, day.year + 1 + self.late_years)
        for prefix, naming in sorted(scopes.items()):
            if {year for year in naming if year <= this_year} <= years:
                keys = frozenset(package for package in packages if package.startswith(prefix))
                yield KeyListing(prefix=prefix, task_keys=keys)

    async def _sitemap(self, ask: Ask, year: int) -> ListingResponse | None:
        address = f"{mods.SITE}/sitemap/{self.code}_{year}_sitemap.xml"
        try:
            listing = await ask(address, path=f"sitemaps/{year}.xml")
        except NotFoundError:
            return None
        return None if is_error_page(listing.data) else listing

    def _listed(self, data: bytes, year: int) -> list[tuple[str, dict[str, str]]]:
        """Packages with all that the sitemap says of them, the last changed first."""
        root = xml.without_namespaces(xml.read(data, "urlset"))
        by_package: dict[str, dict[str, str]] = {}
        for url in root.findall("url"):
            entry = {field.tag: xml.whole_text(field) or "" for field in url.iterchildren("*")}
            package = parts_of(entry.get("loc", "")).path.rpartition("/")[2]
            if self.owns(package):
                by_package[package] = entry
        if not by_package:
            raise SuspiciousYieldError(f"the {self.code} sitemap of {year} names no package")
        newest_first = sorted(by_package.items(), key=lambda item: item[0])
        newest_first.sort(key=lambda item: item[1].get("lastmod", ""), reverse=True)
        return newest_first

    def owns(self, package: str) -> bool:
        """Whether a name is that of a package or granule of this collection."""
        return re.fullmatch(rf"{self.code}-[0-9][A-Za-z0-9-]*", package) is not None

    def _package_task(self, package: str, entry: dict[str, str], origin: Archived) -> FetchTask:
        described = mods.mods_address(package)
        parts = [Part(name="mods", url=described, path=f"{package}/mods.xml")]
        if self.own_text:
            parts.append(_part(package, "html", _own_text(package)))
        return FetchTask(
            source=self.source,
            key=package,
            parts=tuple(parts),
            # A text can change while its MODS does not; then this makes the package be read again.
            params={"lastmod": entry.get("lastmod")},
            fingerprint=ids.json_sha256(entry),
            origin=origin,
        )

    # Reading ------------------------------------------------------------------------------

    def read_package(self, raw: Raw) -> ModsPackage:
        """The package in a fetched MODS file; the MODS of another package is an error."""
        part = raw.part("mods")
        if part is None:
            raise WrongContentError(f"{raw.task.key} has no MODS")
        package = mods.read(part.data)
        if package.id != raw.task.key:
            raise WrongContentError(f"the MODS of {raw.task.key} describes {package.id}")
        return package

    def parse(self, raw: Raw, record: MakeRecord) -> Iterator[ParsedRecord | FetchTask]:
        """Records of a fetched package or granule, and tasks for what is still to be fetched."""
        if "item" in raw.task.params:
            yield self._parse_granule(raw, record)
            return
        yield from self.parse_package(raw, self.read_package(raw), record)

    def parse_package(
        self, raw: Raw, package: ModsPackage, record: MakeRecord
    ) -> Iterator[ParsedRecord | FetchTask]:
        """The same for a package whose MODS is read already."""
        described = next(part for part in raw.parts if part.name == "mods")
        own = raw.part("html")
        for item in package.items:
            offered = dict(item.renditions)
            if own is not None and offered.get("html") == _own_text(package.id):
                if (body := text_body(own)) is not None:
                    yield record(item, described.archived, body)
                    continue
                del offered["html"]
            if offered:
                yield self._granule_task(raw.task, item, offered, described.archived)
            else:
                yield record(item, described.archived, None)

    def _parse_granule(self, raw: Raw, record: MakeRecord) -> ParsedRecord | FetchTask:
        item, origin = ModsItem.model_validate(raw.task.params["item"]), raw.task.origin
        if origin is None:
            raise WrongContentError(f"{raw.task.key}: no archived file says what it is")
        text, pdf = raw.part("html"), raw.part("pdf")
        if text is None:
            return record(item, origin, None if pdf is None else pdf_body(pdf))
        if (body := text_body(text)) is None and "pdf" in item.renditions:
            return self._granule_task(raw.task, item, {"pdf": item.renditions["pdf"]}, origin)
        return record(item, origin, body)

    def _granule_task(
        self, task: FetchTask, item: ModsItem, offered: dict[Rendition, str], origin: Archived
    ) -> FetchTask:
        rendition: Rendition = "html" if "html" in offered else "pdf"
        # Two issues of one day may call their granules alike.
        name = item.id if item.id.startswith(item.package) else f"{item.package}/{item.id}"
        params = {"item": item.model_dump(mode="json")}
        return FetchTask(
            source=self.source,
            key=f"{name}#{rendition}",
            parts=(_part(item.package, rendition, offered[rendition]),),
            params=params,
            fingerprint=ids.json_sha256([task.fingerprint, params]),
            origin=origin,
        )

    # The audit ----------------------------------------------------------------------------

    async def published(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[tuple[str, frozenset[str]]]:
        """Each day with the packages that the API says were published on it; it wants a key.

        Without days: the thirty before the day the API was asked.
        """
        if until is None:
            listing = await ask(f"{API}/collections", path="audit/collections.json")
            until = listing.archived.retrieved_at.date()
        since = since or until - WITHOUT_DAYS
        address = f"{API}/published/{since}/{until}"
        days: dict[str, set[str]] = {}
        async for entry in walk(ask, address, "packages", f"audit/{since}_{until}", self.code):
            package, day = str(entry.get("packageId")), str(entry.get("dateIssued") or "undated")
            if self.owns(package):
                days.setdefault(day[:10], set()).add(package)
        for day in sorted(days):
            yield day, frozenset(days[day])


async def walk(
    ask: Ask, address: str, name: str, path: str, collection: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """All entries of a list of the API, page by page; each page is whole and new, or an error."""
    query = {"offsetMark": "*", "pageSize": str(PER_PAGE)}
    query |= {"collection": collection} if collection else {}
    addresses: set[str] = set()
    listed, count = 0, 0
    while query["offsetMark"] not in addresses:
        addresses.add(query["offsetMark"])
        listing = await ask(f"{address}?{urlencode(query)}", path=f"{path}/{len(addresses)}.json")
        page = _json_object(listing.data, address)
        count = max(count, int(page.get("count") or 0))
        entries = page.get(name) or []
        listed += len(entries)
        for entry in entries:
            yield entry
        # Only the mark is taken from the link: the address is ours.
        marks = parse_qs(parts_of(page.get("nextPage") or "").query).get("offsetMark")
        if not marks:
            break
        query["offsetMark"] = marks[0]
    if listed < count:
        raise SuspiciousYieldError(f"{address} counts {count} entries and lists {listed}")


def _json_object(data: bytes, address: str) -> dict[str, Any]:
    try:
        loaded = json.loads(data)
    except ValueError:
        loaded = None
    if not isinstance(loaded, dict):
        raise WrongContentError(f"{address} did not answer with a list of the API")
    return loaded


# Which years ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _RequestedYears:
    years: Sequence[int]
    congresses: frozenset[int] | None = None
    since: date | None = None
    until: date | None = None

    def includes(self, package: str) -> bool:
        """Whether a package listed in one of the years was asked for."""
        day = day_of(package)
        if self.congresses is not None:
            return congress_of_package(package) in self.congresses
        if day is None:
            return True
        return (self.since or day) <= day <= (self.until or day)


def _requested_years(collection: GovinfoCollection, state: SourceState) -> _RequestedYears:
    this_year = state.now.year
    if not state.backfill:
        return _RequestedYears(years=(this_year, this_year - 1))
    congresses = frozenset(map(congress_number, state.options.get("congresses") or ()))
    if not congresses and state.since is None and state.until is None:
        current = congress_of(state.now.date())
        congresses = frozenset({current, current - 1})
    if congresses:
        years = {
            year for congress in congresses for year in _years_of(congress, collection.late_years)
        }
        requested = sorted((year for year in years if year <= this_year), reverse=True)
        return _RequestedYears(years=requested or (this_year,), congresses=congresses)
    last = min(state.until.year, this_year) if state.until else this_year
    first = max(state.since.year, collection.first_year) if state.since else collection.first_year
    years_between = range(max(last, first), first - 1, -1)
    return _RequestedYears(years=years_between, since=state.since, until=state.until)


def _years_of(congress: int, late_years: int) -> range:
    first = first_day_of(congress).year
    return range(first, first + 2 + late_years)


def congress_of_package(package: str) -> int | None:
    """The Congress that the name of a package states or implies."""
    if match := _CONGRESS.match(package):
        return int(match[1])
    day = day_of(package)
    return None if day is None else congress_of(day)


def day_of(package: str) -> date | None:
    """The day that the name of a package states."""
    match = _DAY.match(package)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _own_text(package: str) -> str:
    return mods.content_address(package, "html", f"{package}.htm")


def _part(package: str, rendition: Rendition, url: str) -> Part:
    file = url.rpartition("/")[2]
    return Part(name=rendition, url=url, path=f"{package}/{rendition}/{file}", optional=True)


class PackageSource:
    """A source whose packages are documents, or hold them as granules."""

    def __init__(
        self, info: SourceInfo, collection: GovinfoCollection, reader: LooseReader
    ) -> None:
        self.info = info
        self.collection = collection
        self.reader = reader

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The packages of the years asked for, by the defaults of `GovinfoCollection.discover`."""
        async for item in self.collection.discover(state, ask):
            yield item

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """Records of a package or granule, and tasks for what is not fetched with it."""
        if loose := [part for part in raw.parts if part.name == ""]:
            yield from self.reader.read(loose)
        else:
            yield from self.parse_fetched(raw)

    def parse_fetched(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The same for what a task fetched."""
        yield from self.collection.parse(raw, self.reader.record)

    async def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """The packages that the API of govinfo lists by the day; it wants `data_gov_key`."""
        async for day, packages in self.collection.published(ask, since, until):
            yield Expected(scope=day, document_ids=frozenset(map(govinfo_id, packages)))


SITE: Final = "https://www.govinfo.gov"
BULK: Final = f"{SITE}/bulkdata"

_TIME: Final = re.compile(r"([0-9]{1,2})-([A-Z][a-z]{2})-([0-9]{4})(?: ([0-9]{2}):([0-9]{2}))?")
# Not by the locale of this machine.
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


class FolderListing(NamedTuple):
    """The entries of one folder, and the archived file they are in."""

    entries: list[Any]
    archived: Archived

    def names(self) -> list[str]:
        """The names of the entries."""
        return [name_of(entry) for entry in self.entries]


async def read_folder(ask: Ask, collection: str, *path: str | int) -> FolderListing:
    """A folder of a collection; links in it lead to either form, so addresses are built here."""
    url = "/".join(map(str, (BULK, "json", collection, *path)))
    name = "/".join(map(str, path)) if len(path) > 1 else "/".join([*map(str, path), "index"])
    listing = await ask(url, path=f"listings/{name}.json")
    content = yaml.load(listing.data)
    if not isinstance(content, dict) or "files" not in content:
        raise WrongContentError(f"{url} is not a listing: {fields.describe(content)}")
    return FolderListing(fields.sections(content, "files"), listing.archived)


async def offered_congresses(ask: Ask, collection: str) -> list[int]:
    """The Congresses that a collection has a folder for."""
    names = (await read_folder(ask, collection)).names()
    congresses = sorted({int(name) for name in names if name.isdecimal()})
    if not congresses:
        raise SuspiciousYieldError(f"govinfo's list of {collection} names no Congress")
    return congresses


def name_of(entry: Any) -> str:
    """The name of an entry of a listing."""
    return fields.text(entry, "name") or fields.text(entry, "justFileName") or ""


def modified_at(entry: Any) -> datetime | None:
    """When an entry was written, `18-Sep-2026 20:26` in GMT; None where it does not say."""
    match = _TIME.fullmatch(fields.text(entry, "formattedLastModifiedTime") or "")
    if match is None or match[2] not in _MONTHS:
        return None
    month = _MONTHS.index(match[2]) + 1
    hour, minute = int(match[4] or 0), int(match[5] or 0)
    try:
        return datetime(int(match[3]), month, int(match[1]), hour, minute, tzinfo=UTC)
    except ValueError:
        return None

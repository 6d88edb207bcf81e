"""Statements of members of Congress, from the feeds of their offices.

Quirks of the publishers:
- There is no common list. Of 537 members, 162 had an `rss_url` in congress-legislators in 2026,
  some of them escaped (`&amp;`). For other members of the House the address its own platform uses
  is tried; senators without one are left out. Offices that only have pages are not read: each
  page has a form of its own, and they change without notice.
- A feed is a task of its own: a dead one (404, 410, an HTML page answered with 200) is one failure.
  A guessed one that is not there is none.
- Feeds hold the newest entries only. Each entry is a task of its own too, so that a statement which
  has left its feed stays.
- Dialects: RSS 2.0, RSS 1.0 and Atom, guids that are not addresses, `EST` in summer, no
  descriptions in the Senate, links relative to the channel, entries that lead to other sites. Only
  pages of the office's own site, or of a chamber's, are fetched.
- A Senate feed asked for an unknown `type` answers with its default channel; nothing tells.

A statement's body is the part of its page that the page marks as its article or main part. There is
no second way to count, so there is no audit; a backfill reaches no further back than the feeds.
"""

from __future__ import annotations

import html
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any, Final
from urllib.parse import urldefrag

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from fonds import ids
from fonds.citations.forms import bluebook_date
from fonds.errors import MalformedError, SuspiciousYieldError, WrongContentError
from fonds.model import (
    Archived,
    Body,
    Discovery,
    Document,
    FetchTask,
    ParsedRecord,
    Part,
    Raw,
    RawPart,
    SourceState,
)
from fonds.normalize.registry import get_normalizer
from fonds.sources.base import Ask, Rate, SourceInfo
from fonds.sources.formats import fields, yaml
from fonds.sources.formats.congress import legislator_id
from fonds.sources.formats.days import day_in_washington
from fonds.sources.formats.feeds import (
    Feed,
    FeedItem,
    from_params,
    read_feed,
    to_params,
)
from fonds.sources.formats.html import parts_of
from fonds.sources.formats.records import listing_of, normalized_body
from fonds.sources.legislators import title_for
from fonds.stores.columns import Json, Timestamp, document_key, reference, task_key, texts
from fonds.stores.tables import metadata

# Feeds: the members of the current list, and the addresses where their feeds should be.


@dataclass(frozen=True, kw_only=True, slots=True)
class MemberFeed:
    """A member and the feed of the member's office."""

    bioguide: str
    name: str
    """`Rep. Cornelius F. Pettibone`."""
    site: str | None
    feed: str
    is_guessed: bool = False

    def to_params(self) -> dict[str, Any]:
        """The JSON a task carries."""
        return asdict(self)

    def is_of_the_office(self, address: str) -> bool:
        """Whether an address is the office's own, or at least one of a chamber's."""
        host = bare_host(address)
        hosts = {bare_host(self.feed), bare_host(self.site or "")}
        return host in hosts or host.endswith((".house.gov", ".senate.gov"))


def read_members(data: bytes) -> Iterator[MemberFeed]:
    """The members of `legislators-current.yaml` who have a feed, or may have one."""
    for entry in yaml.items(data):
        terms = fields.sections(fields.mapping(entry), "terms")
        if not terms:
            continue
        member = _member(entry, terms[-1])
        if member is not None:
            yield member


def bare_host(address: str) -> str:
    """The host of an address, without the `www.` that half of the links leave out."""
    return (parts_of(address).hostname or "").removeprefix("www.")


def _member(entry: Mapping[str, Any], term: Mapping[str, Any]) -> MemberFeed | None:
    site = fields.text(term, "url")
    # Some addresses in the list are escaped as in HTML.
    listed = html.unescape(fields.text(term, "rss_url") or "")
    feed = listed or _guess(site)
    if not feed.startswith(("http://", "https://")):
        return None
    person = {**fields.section(entry, "name"), "type": fields.text(term, "type")}
    row = {**person, "state": fields.text(term, "state")}
    return MemberFeed(
        bioguide=fields.required(fields.section(entry, "id"), "bioguide"),
        name=title_for(row).partition(" (")[0],
        site=site,
        feed=feed,
        is_guessed=not listed,
    )


def _guess(site: str | None) -> str:
    # The House's own platform puts every member's feed here; senators' sites have no such custom.
    if site and bare_host(site).endswith(".house.gov"):
        return f"{site.rstrip('/')}/rss.xml"
    return ""


# The tables of members' statements and of the feeds they come from.

member_feeds: Final = Table(
    "member_feeds",
    metadata,
    Column("bioguide", Text, primary_key=True, comment="The member."),
    *reference("legislator", "legislators", "The member as an id: legislator:C000127."),
    *texts(
        member="Rep. Cornelius F. Pettibone.",
        url="The member's site.",
        rss_url="Where the feed is asked for.",
        title="As the feed calls itself; NULL where there is none.",
    ),
    Column("is_guessed", Boolean, nullable=False, comment="No list names it; it was tried."),
    Column("items", Integer, comment="Entries at the last look; NULL where there is no feed."),
    task_key(),
    comment="Feeds of members of Congress.",
)

member_statements: Final = Table(
    "member_statements",
    metadata,
    document_key("statement:C000127/<hash>, documents.id."),
    *texts(bioguide="The member; NULL for a feed of an unknown member."),
    *reference("legislator", "legislators", "The member as an id: legislator:C000127."),
    Column("title", Text, nullable=False, comment="As the feed has it, escapes undone."),
    *texts(
        link="The statement's page.",
        guid="As the feed has it: an address, or `14637 at http://…`.",
        description="The feed's summary as plain text; Senate feeds have none.",
        feed="Where the feed was asked for.",
    ),
    Column("pub_date", Timestamp, comment="pubDate or published of the feed."),
    Column("categories", Json, nullable=False, comment="As the feed has them."),
    Index("ix_member_statements_bioguide", "bioguide"),
    comment="Press releases and other statements of members of Congress.",
)

TABLES: Final = (member_feeds, member_statements)


# How a statement of a member of Congress is cited.
#
# The Bluebook's rule 17.2.3 on unpublished materials covers press releases: who issued it, what it
# is
# called, and the day: `Press Release, Rep. Cornelius F. Pettibone, Harbors First (Mar. 4, 2025).`


def cite_statement(*, member: str, title: str, published: date | None) -> str:
    """`Press Release, Rep. X, Title (Mar. 4, 2025).`; without a day the parenthesis is left out."""
    name = f"Press Release, {member}, {title.rstrip('.')}"
    return f"{name} ({bluebook_date(published)})." if published else f"{name}."


NAME: Final = "member_statements"
MEMBERS: Final = "https://unitedstates.github.io/congress-legislators/legislators-current.yaml"
UNKNOWN: Final = "unknown"
"""In place of a bioguide, for a loose feed: no feed says whose it is."""


class MemberStatements:
    """The source `member_statements`."""

    info = SourceInfo(
        name=NAME,
        title="Statements of members of Congress",
        summary="press releases of members of Congress",
        organisation="Offices of the members of Congress",
        addresses=(MEMBERS,),
        jurisdiction="United States",
        version="1.0.0",
        schedule="15 6,10,14,18,22 * * *",
        # Each feed is on a host of its own.
        rate=Rate(per_second=4, burst=8),
        tables=TABLES,
        depends_on=("legislators",),
        at_least=100,
        fetch_concurrency=8,
        published_at="pubDate (RSS), dc:date (RSS 1.0), published (Atom), as a day in Washington",
        csl_type="webpage",
    )

    async def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """The feed of each member; a backfill asks for no more, for there is no more."""
        del state
        listing = await ask(MEMBERS, path="legislators-current.yaml")
        members = list(read_members(listing.data))
        if not members:
            raise SuspiciousYieldError("the list of members names no feed at all")
        for member in members:
            yield _feed_task(member, listing.archived)

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """The tasks of a feed, the statement of an entry, or all statements of a loose feed."""
        if "item" in raw.task.params:
            yield _fetched(raw)
        elif "member" in raw.task.params:
            yield from _from_feed(raw)
        for part in raw.parts:
            if part.name == "":
                yield from _loose(part)


source: Final = MemberStatements()


# Feeds ------------------------------------------------------------------------------------


def _feed_task(member: MemberFeed, origin: Archived) -> FetchTask:
    part = Part(
        name="feed",
        url=member.feed,
        path=f"feeds/{member.bioguide}.xml",
        optional=member.is_guessed,
        refusable=member.is_guessed,
    )
    return FetchTask(
        source=NAME,
        key=f"feed/{member.bioguide}",
        parts=(part,),
        params={"member": member.to_params()},
        origin=origin,
    )


def _from_feed(raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
    member = MemberFeed(**raw.task.params["member"])
    part = raw.part("feed")
    feed = _read(part, member)
    yield ParsedRecord(
        source=NAME,
        table=member_feeds.name,
        key=raw.task.key,
        payload={
            "bioguide": member.bioguide,
            "legislator_ref": legislator_id(member.bioguide),
            "member": member.name,
            "url": member.site,
            "rss_url": member.feed,
            "title": feed.title if feed else None,
            "is_guessed": member.is_guessed,
            "items": len(feed.items) if feed else None,
        },
    )
    if feed and part:
        for item in _with_links(feed):
            yield _statement_task(member, item, part.archived)


def _read(part: RawPart | None, member: MemberFeed) -> Feed | None:
    if part is None:
        return None
    try:
        return read_feed(part.data)
    except WrongContentError:
        if member.is_guessed:
            return None
        raise


def _with_links(feed: Feed) -> list[FeedItem]:
    """The entries with an address, one for each address; a feed without any is an error."""
    items = {
        _address(item): item
        for item in reversed(feed.items)
        if item.link and item.link.startswith(("http://", "https://"))
    }
    if feed.items and not items:
        raise MalformedError(f"none of the {len(feed.items)} entries of the feed has an address")
    return list(items.values())


def _address(item: FeedItem) -> str:
    """The address by which a statement is known, whichever scheme the feed writes today."""
    link = urldefrag(item.link or "").url
    return f"https://{link.partition('://')[2]}"


def statement_id(bioguide: str, url: str) -> str:
    """`statement:C000127/<hash>`."""
    return f"statement:{bioguide}/{ids.text_sha256(url)[:16]}"


def _statement_task(member: MemberFeed, item: FeedItem, origin: Archived) -> FetchTask:
    key = statement_id(member.bioguide, _address(item))
    # The page has the text; what the feed repeats of it would only swell the task.
    params = {"member": member.to_params(), "item": to_params(replace(item, html=None))}
    return FetchTask(
        source=NAME,
        key=key,
        parts=tuple(_parts(member, item, key)),
        params=params,
        fingerprint=ids.json_sha256(params),
        origin=origin,
    )


def _parts(member: MemberFeed, item: FeedItem, key: str) -> Iterator[Part]:
    link = urldefrag(item.link or "").url
    if member.is_of_the_office(link):
        ending = "pdf" if parts_of(link).path.lower().endswith(".pdf") else "html"
        path = f"bodies/raw/{member.bioguide}/{key.rpartition('/')[2]}.{ending}"
        yield Part(name="page", url=link, path=path, optional=True, refusable=True)


# Statements -------------------------------------------------------------------------------


def _fetched(raw: Raw) -> ParsedRecord:
    member = MemberFeed(**raw.task.params["member"])
    item = from_params(raw.task.params["item"])
    page = raw.part("page")
    return _record(item, member, member.name, listing_of(raw.task), _body(page) if page else None)


def _body(page: RawPart) -> Body | None:
    if page.data.startswith(b"%PDF-"):
        return Body(archived=page.archived, format="pdf")
    try:
        return normalized_body(page, "html", get_normalizer("html_article_v1"), page.archived.url)
    except WrongContentError:
        # A page that a script fills in the browser; the entry of the feed is still a statement.
        return None


def _loose(part: RawPart) -> Iterator[ParsedRecord]:
    start = part.data[:1024].lower()
    if b"<html" in start or b"<!doctype html" in start:
        raise WrongContentError(
            "an HTML page; whose statement it is, is said by the feed of the member, and pages "
            "that list statements differ from office to office"
        )
    feed = read_feed(part.data)
    for item in _with_links(feed):
        yield _record(item, None, feed.title or "Member of Congress", part.archived, None)


def _record(
    item: FeedItem, member: MemberFeed | None, author: str, raw: Archived, body: Body | None
) -> ParsedRecord:
    bioguide = member.bioguide if member else None
    key = statement_id(bioguide or UNKNOWN, _address(item))
    row: dict[str, Any] = {
        "id": key,
        "bioguide": bioguide,
        "legislator_ref": legislator_id(bioguide) if bioguide else None,
        "title": item.title or item.description or item.link,
        "link": item.link,
        "guid": item.guid,
        "description": item.description,
        "feed": member.feed if member else None,
        "pub_date": item.published,
        "categories": list(item.categories),
    }
    return ParsedRecord(
        source=NAME,
        table=member_statements.name,
        key=key,
        payload=row,
        document=_document(row, author, raw, body),
    )


def _document(row: dict[str, Any], author: str, raw: Archived, body: Body | None) -> Document:
    day: date | None = row["pub_date"] and day_in_washington(row["pub_date"])
    return Document(
        id=row["id"],
        source=NAME,
        kind="press_release",
        title=row["title"],
        summary=row["description"],
        source_url=row["link"],
        source_org=author,
        published_at=day.isoformat() if day else None,
        citation_string=cite_statement(member=author, title=row["title"], published=day),
        raw=raw,
        body=body,
        aliases=(row["link"],),
    )

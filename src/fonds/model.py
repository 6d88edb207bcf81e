"""Records that cross boundaries; nothing here opens a file or a socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Any, Literal

BodyFormat = Literal["html", "xml", "pdf", "text"]

# What a source asks for -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One file of a task: where it is fetched from and where it is archived."""

    name: str
    """What `parse` calls it: `metadata`, `body`."""
    url: str
    """The upstream's address, before any mapping of hosts."""
    path: str
    """Path below `corpus/<source>/` in the blob store."""
    optional: bool = False
    """A missing optional part (404) is absent from `Raw`; any other one fails the task."""
    refusable: bool = False
    """A refusal (403) of this optional part means that it is missing: some stores answer so for
    what they do not have."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with the request; never recorded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchTask:
    """One unit of work: fetched, parsed and loaded together, or recorded as errored."""

    source: str
    key: str
    """Natural key, unique within the source."""
    parts: tuple[Part, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    """Whatever `parse` needs beside the bytes; JSON values only."""
    fingerprint: str | None = None
    """Hash of all the listing says of this item. While it stays the same and the item is loaded,
    the item is not asked for again (`--recheck` asks all the same). None: always ask."""
    origin: Archived | None = None
    """The archived listing that `params` were taken from, if they were."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Watermark:
    """Yielded by `discover`: all tasks before it are listed up to here.

    The runner stores it once every one of them is loaded, unchanged or recorded as errored.
    """

    last_seen_key: str
    custom: Mapping[str, Any] = field(default_factory=dict)
    """Merged into the source's own state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """Yielded by `discover`: the upstream's full list of what it published in a range of days.

    What we hold of that range and the list does not is withdrawn.
    """

    since: date
    until: date
    """Inclusive."""
    task_keys: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceState:
    """What a source left behind in its earlier runs, and what this run is asked for."""

    last_run_at: datetime | None = None
    last_seen_key: str | None = None
    custom: Mapping[str, Any] = field(default_factory=dict)
    backfill: bool = False
    """Everything in the range asked for, not only what is new."""
    since: date | None = None
    """First day asked for by a backfill; None is the upstream's first."""
    until: date | None = None
    """Last day asked for by a backfill, inclusive."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Source-specific ranges, e.g. `{"congresses": [119, 120]}`."""
    now: datetime
    """The clock of this run; a replay has the recorded one."""


# What comes back --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Archived:
    """A raw file in the blob store, as the publisher served it."""

    url: str
    key: str
    """Blob key."""
    sha256: str
    size: int
    retrieved_at: datetime
    media_type: str | None = None
    """As the server called it; servers are often wrong."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RawPart:
    """One fetched part with its bytes."""

    name: str
    """The part's name, or empty for a loose file whose kind `parse` must sniff."""
    archived: Archived
    data: bytes
    """None of them, where the source has collected the file itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """All that `parse` gets: the task and its bytes."""

    task: FetchTask
    parts: tuple[RawPart, ...]

    def part(self, name: str) -> RawPart | None:
        """The part of that name, or None where an optional one was missing."""
        return next((part for part in self.parts if part.name == name), None)


# What parsing makes of it -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """A heading of a Markdown body."""

    level: int
    """1 to 6."""
    text: str
    offset: int
    """Of the line's first `#`, or of the text above an underline, in characters."""
    section: str | None = None
    """The publisher's own label, e.g. `II.B` or `§ 60.112b`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageMark:
    """From this offset on, the text stands on this page of the print edition."""

    offset: int
    page: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """A table or figure that Markdown cannot hold, kept beside the text."""

    kind: str
    offset: int
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalizedBody:
    """GitHub-flavoured Markdown, and what it says about itself."""

    markdown: str
    above: tuple[str, ...] = ()
    """Labels of what it is a part of, outermost first: title, chapter. They open every passage's
    heading path, and stand nowhere in the text."""
    headings: tuple[Heading, ...] = ()
    pages: tuple[PageMark, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """The body of a document: which part held it and what it became."""

    archived: Archived
    format: BodyFormat
    normalizer: str | None = None
    """Name and version, e.g. `fr_xml_v1@1.0.0`."""
    normalized: NormalizedBody | None = None
    """None: too expensive to be done while loading; it is queued."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One citable thing, whatever its origin."""

    id: str
    """Canonical: `fr:2026-08558`."""
    source: str
    kind: str
    """`rule`, `notice`, `legislator`, …"""
    title: str
    source_url: str
    """The page a person would open."""
    source_org: str
    """The issuing body."""
    citation_string: str
    """Ready to paste."""
    raw: Archived
    """The file this record was parsed from."""
    summary: str | None = None
    published_at: str | None = None
    """ISO 8601; each source documents the field it comes from."""
    body: Body | None = None
    aliases: tuple[str, ...] = ()
    """Every other name of it: citation forms, page, package."""
    unit: str | None = None
    """Of a section of a code: the id of its title or act, in its edition."""
    edition: str | None = None
    """Of a section of a code: the publisher's stamp."""
    owner: str | None = None
    """The user an upload belongs to; None is public."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedRecord:
    """A row for a source's own table, the document it describes, and the rows below it."""

    source: str
    table: str
    key: str
    """Unique among the records of a source; for a document its id."""
    payload: Mapping[str, Any]
    """The row: column → value."""
    children: tuple[ParsedRecord, ...] = ()
    """Rows of other tables that live and die with this one."""
    document: Document | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """A passage: an exact slice of a body, with its place."""

    ordinal: int
    text: str
    """Equal to `body_text[start:end]`."""
    start: int
    end: int
    tokens: int
    heading_path: tuple[str, ...] = ()
    section: str | None = None
    page: str | None = None
    enumeration: tuple[str, ...] = ()
    """Labels it starts under, if its section was too long for one passage: `(a)`, `(1)`."""
    lead_ins: tuple[str, ...] = ()
    """What introduces the lists it starts in, outermost first, shortened."""


Discovery = FetchTask | Watermark | Listing
"""What `discover` may yield."""


# What a run does -------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class Counts:
    """What a run, or a part of it, did."""

    discovered: int = 0
    fetched: int = 0
    parsed: int = 0
    inserted: int = 0
    updated: int = 0
    skipped: int = 0
    error: int = 0
    gone: int = 0

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        names = [entry.name for entry in fields(self)]
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def columns(self) -> dict[str, int]:
        """As `ingestion_runs` names them."""
        return {f"{entry.name}_count": getattr(self, entry.name) for entry in fields(self)}

    def summary(self) -> str:
        """The counts in words, without those that are zero."""
        shown = {
            "found": self.discovered,
            "fetched": self.fetched,
            "new": self.inserted,
            "updated": self.updated,
            "unchanged": self.skipped,
            "gone": self.gone,
            "errors": self.error,
        }
        words = [f"{number:,} {word}" for word, number in shown.items() if number]
        return ", ".join(words) or "nothing yet"

    def by_stage(self) -> dict[str, int]:
        """Items that each stage got done: tasks, tasks, records, records that changed a row."""
        return {
            "discover": self.discovered,
            "fetch": self.fetched,
            "parse": self.parsed,
            "load": self.inserted + self.updated,
        }

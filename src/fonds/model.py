"""Records passed between sources, pipeline and stores; nothing here does I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Any, Final, Literal

BodyFormat = Literal["html", "xml", "pdf", "text"]
_KEY_SEPARATOR: Final = re.compile(r"[-/#]")

# Requests of a source -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One file of a task, with its address and its path in the archive."""

    name: str
    """The name for `parse`: `metadata`, `body`."""
    url: str
    """The address at the publisher, before mapping of hosts."""
    path: str
    """Path below `corpus/<source>/` in the blob store."""
    optional: bool = False
    """A missing optional part (404) is absent from `Raw`; any other one fails the task."""
    refusable: bool = False
    """A 403 for this optional part means that it is missing: some stores respond so for missing
    objects."""
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
    """Values that `parse` needs in addition to the bytes; JSON values only."""
    fingerprint: str | None = None
    """Hash of the listing entry. While it is unchanged and the item is loaded, the item is not
    fetched again (except with `--recheck`). None: always fetch."""
    origin: Archived | None = None
    """The archived listing from which `params` were taken, if they were."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Watermark:
    """Yielded by `discover`: the listing is complete up to this point.

    It is stored once all tasks before it are loaded, unchanged or recorded as failed.
    """

    last_seen_key: str
    custom: Mapping[str, Any] = field(default_factory=dict)
    """Merged into the custom state of the source."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """Yielded by `discover`: everything that the publisher lists for a range of days.

    Documents of that range which are not in the list are marked as withdrawn.
    """

    since: date
    until: date
    """Inclusive."""
    task_keys: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyListing:
    """Yielded by `discover`: everything that the publisher lists under one prefix of task keys.

    Documents of other tasks with that prefix are marked as withdrawn, unless their key continues a
    listed one behind a separator: `bill:119-hr-1-ih` is a text of `bill:119-hr-1`.
    """

    prefix: str
    task_keys: frozenset[str]

    def has(self, task_key: str) -> bool:
        """True if a task is listed, or belongs to one that is."""
        ends = [match.start() for match in _KEY_SEPARATOR.finditer(task_key)]
        return any(task_key[:end] in self.task_keys for end in (len(task_key), *ends))


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceState:
    """The state stored by earlier runs of a source, and the options of this run."""

    last_run_at: datetime | None = None
    last_seen_key: str | None = None
    custom: Mapping[str, Any] = field(default_factory=dict)
    backfill: bool = False
    """List everything in the range, not only what is new."""
    since: date | None = None
    """First day of a backfill; None for the first of the publisher."""
    until: date | None = None
    """Last day of a backfill, inclusive."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Source-specific ranges, e.g. `{"congresses": [119, 120]}`."""
    now: datetime
    """The clock of this run; a replay has the recorded one."""


# Fetched files ---------------------------------------------------------------------------


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
    """As stated by the server, which is often wrong."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RawPart:
    """One fetched part with its bytes."""

    name: str
    """The name of the part; empty for a single file whose format `parse` must detect."""
    archived: Archived
    data: bytes
    """Empty if the source downloaded the file itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """The input of `parse`: a task and its bytes."""

    task: FetchTask
    parts: tuple[RawPart, ...]

    def part(self, name: str) -> RawPart | None:
        """The part with this name; None for a missing optional one."""
        return next((part for part in self.parts if part.name == name), None)


# Parsed records ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """A heading of a Markdown body."""

    level: int
    """1 to 6."""
    text: str
    offset: int
    """Offset of the first `#`, or of the text above an underline, in characters."""
    section: str | None = None
    """The label of the publisher, such as `II.B` or `§ 60.112b`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageMark:
    """The offset at which a page starts."""

    offset: int
    page: str | None
    """As printed, or as the file labels it; None where a PDF does neither."""
    pdf_page: int | None = None
    """Its number in the PDF, from 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """A table or figure that Markdown cannot express, stored next to the text."""

    kind: str
    offset: int
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class UncertainText:
    """A text that was recognized in a picture with little confidence."""

    start: int
    end: int
    """Offsets in the Markdown, in characters."""
    confidence: float
    """From 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OcrPage:
    """A page with text that was recognized in a picture."""

    page: int
    """Counted from one, whatever is printed on it."""
    confidence: float
    """The recognizer's mean over the letters it read, from 0 to 1."""
    letters: int
    """How many there are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadingReport:
    """How much of a file was read, and how well, for the person who gave it."""

    title: str | None = None
    """As its metadata has it."""
    pages: int = 0
    tables: int = 0
    fields: int = 0
    """Form fields that are filled in."""
    ocr_pages: tuple[OcrPage, ...] = ()
    pictures_not_read: tuple[int, ...] = ()
    """The pages, counted from one, of pictures with text that was not read; each picture is one."""

    @property
    def mean_confidence(self) -> float | None:
        """The mean over all letters that were recognized in pictures; None without any."""
        letters = sum(page.letters for page in self.ocr_pages)
        total = sum(page.confidence * page.letters for page in self.ocr_pages)
        return total / letters if letters else None


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A passage of a file that is not part of its text."""

    text: str
    reason: str
    """`running head`, `running foot`, `page number`, `watermark`, `navigation`, …"""
    offset: int
    """Of the text that follows its page or part in the Markdown, in characters."""
    pdf_page: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalizedBody:
    """GitHub-flavoured Markdown with its structure and warnings."""

    markdown: str
    above: tuple[str, ...] = ()
    """Labels of its parents, outermost first: title, chapter. They start the heading path of every
    passage, and are not in the text."""
    headings: tuple[Heading, ...] = ()
    pages: tuple[PageMark, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    warnings: tuple[str, ...] = ()
    uncertain: tuple[UncertainText, ...] = ()
    """In the order of the text, without overlaps."""
    left_out: tuple[LeftOut, ...] = ()
    """In the order of the file. A comment in the Markdown may have the same words."""
    report: ReadingReport | None = None
    """Of a file whose parts may be unreadable, such as a PDF."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """The body of a document: its file and its normalized text."""

    archived: Archived
    format: BodyFormat
    normalizer: str | None = None
    """Name and version, such as `fr_xml_v1@1.0.0`."""
    normalized: NormalizedBody | None = None
    """None if normalization is too expensive while loading, and is queued."""


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
    """The web page of the document."""
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
    """All other names: citation forms, page, package."""
    unit: str | None = None
    """The id of the title or act in its edition, for sections of codes."""
    edition: str | None = None
    """The publisher's label of the edition, for sections of codes."""
    owner: str | None = None
    """The user who owns an upload; None for public documents."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedRecord:
    """A row of a table of a source, with its document and child rows."""

    source: str
    table: str
    key: str
    """Unique among the records of a source; for a document its id."""
    payload: Mapping[str, Any]
    """The row: column → value."""
    children: tuple[ParsedRecord, ...] = ()
    """Rows of other tables, which are replaced and deleted with this one."""
    document: Document | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """A passage: an exact slice of a body, with its location."""

    ordinal: int
    text: str
    """Equal to `body_text[start:end]`."""
    start: int
    end: int
    tokens: int
    heading_path: tuple[str, ...] = ()
    section: str | None = None
    page: str | None = None
    """As printed, or as the file labels it."""
    pdf_page: int | None = None
    """The number of that page in the PDF, from 1."""
    enumeration: tuple[str, ...] = ()
    """Labels at its start, if its section was too long for one passage: `(a)`, `(1)`."""
    lead_ins: tuple[str, ...] = ()
    """Introductions of the lists in which it starts, outermost first, shortened; if it starts in a
    table, the caption and the header rows of that."""
    uncertain: tuple[str, ...] = ()
    """Texts that OCR read with little confidence, those with digits first, then short ones."""


Discovery = FetchTask | Watermark | Listing | KeyListing
"""The types that `discover` may yield."""


# Counts of a run -------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class Counts:
    """Counts of a run or a part of it."""

    discovered: int = 0
    fetched: int = 0
    parsed: int = 0
    inserted: int = 0
    updated: int = 0
    skipped: int = 0
    error: int = 0
    gone: int = 0

    def plus(self, other: Counts) -> Counts:
        """The sum of both."""
        names = [entry.name for entry in fields(self)]
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def columns(self) -> dict[str, int]:
        """The counts by their columns in `ingestion_runs`."""
        return {f"{entry.name}_count": getattr(self, entry.name) for entry in fields(self)}

    def summary(self) -> str:
        """The counts as text, without zeros."""
        counts = {
            "found": self.discovered,
            "fetched": self.fetched,
            "new": self.inserted,
            "updated": self.updated,
            "unchanged": self.skipped,
            "gone": self.gone,
            "errors": self.error,
        }
        words = [f"{number:,} {word}" for word, number in counts.items() if number]
        return ", ".join(words) or "nothing yet"

    def by_stage(self) -> dict[str, int]:
        """Items finished by each stage: tasks, tasks, records, changed records."""
        return {
            "discover": self.discovered,
            "fetch": self.fetched,
            "parse": self.parsed,
            "load": self.inserted + self.updated,
        }


class BaseNormalizer:
    """Name and version of a normalizer of this package."""

    name: str
    version: str
    accepts_format: BodyFormat = "text"

    @property
    def label(self) -> str:
        """Name and version as a document records them."""
        return f"{self.name}@{self.version}"

"""The protocol of sources: what to fetch, and what the bytes mean. All else is done by `runs/`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from sqlalchemy import Table

from fonds.model import (
    Archived,
    Discovery,
    FetchTask,
    ParsedRecord,
    Part,
    Raw,
    RawPart,
    SourceState,
)

if TYPE_CHECKING:
    from fonds.fetch.archive import DownloadResult, FileRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """The rate limit of requests to an upstream."""

    per_second: float
    burst: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A key that a source's upstream requires, or that raises its rate limit."""

    setting: str
    """The name of its setting: `data_gov_key`."""
    signup: str
    """The page to get one."""
    required: bool = True
    rate: Rate | None = None
    """The rate limit with a key, if it differs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceInfo:
    """The facts of a source that are known without a request."""

    name: str
    """Lower-case slug; also its folder in the archive."""
    title: str
    """For people: `Federal Register`."""
    summary: str = ""
    """One line on its content, for the table of sources in the README."""
    organisation: str
    """Its publisher."""
    addresses: tuple[str, ...] = ()
    """Addresses of its lists and files, for the reference."""
    version: str
    """Of the parser: if it is new, unchanged archived bytes are parsed again."""
    schedule: str | None
    """Cron expression in America/New_York, or None for manual runs only."""
    rate: Rate
    tables: tuple[Table, ...]
    """Its typed tables, parents before children."""
    key: Key | None = None
    jurisdiction: str = ""
    """The jurisdiction of its documents: `United States`; empty if they have none."""
    depends_on: tuple[str, ...] = ()
    """Sources that `bootstrap` loads first."""
    at_least: int = 1
    """A full listing with fewer records is suspicious."""
    fetch_concurrency: int = 4
    published_at: str = ""
    """The upstream's field that becomes `published_at`, for the reference."""
    csl_type: str = "document"
    """The type of its documents in CSL 1.0.2, for citations in other programs: `report`."""
    csl_types: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The types of kinds of documents that have another one: `{"rule": "regulation"}`."""
    options: tuple[str, ...] = ()
    """Source-specific ranges that `backfill` takes, such as `congresses`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListingResponse:
    """A listing as it was fetched and archived."""

    data: bytes
    archived: Archived
    changed: bool
    """False if the upstream responded 304, or with the bytes of the last time."""


class Ask(Protocol):
    """Fetches listings for `discover` and `enumerate`: rate-limited, conditional, archived."""

    async def __call__(self, url: str, *, path: str) -> ListingResponse:
        """Fetch a listing; it is archived under `corpus/<source>/<path>`."""
        ...


class Registered(Protocol):
    """A source of any kind: a feed, a code or a website."""

    @property
    def info(self) -> SourceInfo:
        """The facts of the source."""
        ...


class Parser(Registered, Protocol):
    """A source as far as it turns bytes into records."""

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """Turn bytes into records; pure."""
        ...


@runtime_checkable
class Source(Parser, Protocol):
    """A feed: a module or small package that shares no state with other sources."""

    def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """List what there is to fetch, in load order, and how far the list reaches."""
        ...


@runtime_checkable
class PdfNames(Protocol):
    """A source whose lists name the files of their documents, wherever people keep these."""

    def pdf_names(self, part: RawPart) -> frozenset[str]:
        """The names of PDFs, without folders and in small letters, that a file on disk names."""
        ...


@runtime_checkable
class Collector(Protocol):
    """A source that downloads its files itself, as it does more with them than load them.

    Its `parse` receives none of their bytes, as they may be long.
    """

    async def collect(
        self, task: FetchTask, part: Part, previous: FileRecord | None
    ) -> DownloadResult:
        """The file of a part, archived; `previous` is the file of an earlier run."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """The documents that an independent enumeration expects."""

    scope: str
    """A day, a file or a Congress, as people would check it."""
    document_ids: frozenset[str]


@runtime_checkable
class Auditable(Protocol):
    """A source whose upstream can be counted in another way than it is loaded."""

    def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """List the expected documents."""
        ...

"""What a source is: where to look, and what the bytes mean. Everything else is the runner's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from sqlalchemy import Table

from fonds.model import Archived, Discovery, FetchTask, ParsedRecord, Part, Raw, SourceState

if TYPE_CHECKING:
    from fonds.fetch.archive import DownloadResult, FileRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """How often an upstream may be asked."""

    per_second: float
    burst: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A key that a source's upstream asks for, or that makes it more generous."""

    setting: str
    """Where it is set: `data_gov_key`."""
    signup: str
    """Where to get one."""
    required: bool = True
    rate: Rate | None = None
    """How often the upstream may be asked by somebody with a key, where that differs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceInfo:
    """What everybody may know about a source without asking its upstream."""

    name: str
    """Lower-case slug; also its folder in the archive."""
    title: str
    """For people: `Federal Register`."""
    summary: str = ""
    """One line on its content, for the table of sources in the README."""
    organisation: str
    """Who publishes it."""
    version: str
    """Of the parser: a new one re-parses archived bytes that have not changed."""
    schedule: str | None
    """Cron expression in America/New_York, or None for manual runs only."""
    rate: Rate
    tables: tuple[Table, ...]
    """Its typed tables, parents before children."""
    key: Key | None = None
    jurisdiction: str = ""
    """Whose law or record it is: `United States`; empty for what is nobody's in particular."""
    depends_on: tuple[str, ...] = ()
    """Sources that `bootstrap` loads first."""
    at_least: int = 1
    """A full listing with fewer records is suspicious."""
    fetch_concurrency: int = 4
    published_at: str = ""
    """The upstream's field behind `published_at`, for the reference."""
    csl_type: str = "document"
    """The type of its documents in CSL 1.0.2, for citations in other programs: `report`."""
    csl_types: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The types of kinds of documents that have another one: `{"rule": "regulation"}`."""
    options: tuple[str, ...] = ()
    """Source-specific ranges `backfill` understands, e.g. `congresses`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListingResponse:
    """A listing as it was answered and archived."""

    data: bytes
    archived: Archived
    changed: bool
    """False when the upstream said 304, or served the bytes we had."""


class Ask(Protocol):
    """How `discover` and `enumerate` reach the upstream: politely, conditionally, archived."""

    async def __call__(self, url: str, *, path: str) -> ListingResponse:
        """Fetch a listing; it is archived under `corpus/<source>/<path>`."""
        ...


class Registered(Protocol):
    """Anything that is run by its name: a feed, or a code."""

    @property
    def info(self) -> SourceInfo:
        """What everybody may know about it."""
        ...


@runtime_checkable
class Source(Protocol):
    """A feed. One file, no state shared with other sources."""

    @property
    def info(self) -> SourceInfo:
        """What is known about it without asking its upstream."""
        ...

    def discover(self, state: SourceState, ask: Ask) -> AsyncIterator[Discovery]:
        """Say what there is to fetch, in load order, and how far that list reaches."""
        ...

    def parse(self, raw: Raw) -> Iterator[ParsedRecord | FetchTask]:
        """Turn bytes into records; pure."""
        ...


@runtime_checkable
class Collector(Protocol):
    """A source that obtains its files itself, as it does more with them than to load them.

    It has looked at them by then, and they may be long: its `parse` is given none of their bytes.
    """

    async def collect(
        self, task: FetchTask, part: Part, known: FileRecord | None
    ) -> DownloadResult:
        """The file of a part, archived; `known` is what earlier runs remember of it."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """What an independent enumeration says should be held."""

    scope: str
    """A day, a file, a Congress: what a person would look at."""
    document_ids: frozenset[str]


@runtime_checkable
class Auditable(Protocol):
    """A source whose upstream can be counted by another way than the one it is loaded by."""

    def enumerate(
        self, ask: Ask, since: date | None, until: date | None
    ) -> AsyncIterator[Expected]:
        """Name what should be there."""
        ...

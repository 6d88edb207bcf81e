"""What a legal code is: a tree of unknown depth, planned in one walk for each of its units.

An adapter says how to walk. It names the units (titles, acts), turns the bytes of a page into the
nodes listed there, and says of every leaf what it is called. It opens no socket and no database,
and never inserts, batches or retries: all of that is done once for all codes, in `codes/`.

A page is addressed by its path below the publisher's own address, `info.base`; the same path leads
to the same file in a folder laid out as the publisher lays it out. A member of a zip archive
is the path `archive.zip!member.xml`, or `archive.zip!*.xml` where only one of its names fits.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Protocol, runtime_checkable

from fonds.model import Archived, BodyFormat
from fonds.sources.base import SourceInfo

FRONT = "front"
"""The kind of a leaf for text that stands directly under a container, beside its children."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A range of bytes of a page."""

    start: int
    length: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TocNode:
    """A node as its publisher lists it. Its id follows from this and from the nodes above it."""

    kind: str
    """The level's own name, lower case: `title`, `subchapter`, `section`, `unit`."""
    label: str
    """As a reader would know it: `CHAPTER 7—SOCIAL SECURITY`, `§ 1396a. State plans`."""
    number: str = ""
    """The publisher's number, as printed but without sign or brackets: `1396a`, `202 to 204`."""
    depth: int = 1
    """How far below the node that is expanded: 1 is a child, 2 a grandchild listed after it."""
    is_leaf: bool = False
    """Whether it has a text of its own and becomes a document."""
    pages: tuple[str, ...] = ()
    """Of a container: the pages that list what is below it. Of a leaf: the one page that holds its
    text, or none if that is the page being expanded."""
    optional_pages: tuple[str, ...] = ()
    """Further pages of a container that may be missing without harm, e.g. a supplement."""
    leaf_pages: tuple[str, ...] = ()
    """Of a unit in a folder, where no page lists them: the files of its leaves."""
    span: Span | None = None
    """Of a leaf: where on the page its text stands; None is all of the page."""
    identifier: str = ""
    """The publisher's own name of it, if it has one: `/us/usc/t42/s1396a`."""
    status: str = ""
    """Of a leaf that is not in force: `repealed`, `reserved`, `renumbered`, …"""
    published_at: str | None = None
    """Of a unit: the day of the text, if the file says it (ISO 8601)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One level above a leaf."""

    kind: str
    number: str
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    """A leaf of the planned tree, with all that was said of it."""

    id: str
    version: str
    kind: str
    number: str
    label: str
    identifier: str
    status: str
    lineage: tuple[Step, ...]
    """The levels above it, outermost (the unit) first."""
    page: str
    published_at: str | None
    """Of its unit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """What the document of a leaf says beside its text."""

    title: str
    citation_string: str
    """Ready to paste: `42 U.S.C. § 1396a (2024).`"""
    source_url: str
    """The page a person would open."""
    normalizer: str
    """Makes Markdown of the leaf's bytes: `uslm_v1`."""
    format: BodyFormat
    aliases: tuple[str, ...] = ()
    """Every other name of it: forms of its citation, the publisher's identifier."""
    published_at: str | None = None


class Page(Protocol):
    """A file of the publisher, kept as it was served."""

    @property
    def name(self) -> str:
        """Its path below the base."""
        ...

    @property
    def archived(self) -> Archived:
        """Hash, size, address and time; the key is empty where nothing is kept (planning)."""
        ...

    def read(self) -> bytes:
        """All of it; for pages known to be small."""
        ...

    def open(self) -> IO[bytes]:
        """A stream over it, for files of any size."""
        ...


class Origin(Protocol):
    """Where one edition is read from: the publisher, a mirror, a folder or a single file."""

    @property
    def version(self) -> str:
        """The edition asked for; empty while it is being found out."""
        ...

    @property
    def files(self) -> Sequence[str] | None:
        """The names in the folder, or of the single file; None for an address, which has none."""
        ...

    async def read(self, page: str) -> Page:
        """Fetch a page; it is archived where the edition is being ingested."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeInfo(SourceInfo):
    """What everybody may know about a code without asking its publisher."""

    base: str
    """The publisher's address that all page paths are relative to; ends with a slash."""
    jurisdiction: str
    """Whose law it is: `United States`, `Connecticut`."""
    unit: str
    """What a unit is called: `title`, `act`."""
    language: str = "en"


@runtime_checkable
class JurisdictionAdapter(Protocol):
    """A code, walked as a tree."""

    info: CodeInfo

    async def newest_version(self, origin: Origin) -> str:
        """The stamp of the edition that the publisher serves now, or that the files hold.

        Raises `UsageError` where files do not tell, so that `--version` must be given.
        """
        ...

    def discover_unit_roots(self, origin: Origin) -> AsyncIterator[TocNode]:
        """The units, in the publisher's order. Each names its pages, and is expanded in a walk."""
        ...

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """The nodes that a container's pages list below it, in reading order; pure.

        The first may have depth 0: it is the container itself, better known now.
        """
        ...

    def shardify(self, leaf: Leaf) -> Shard:
        """What the document of a leaf is called, and what reads its bytes; pure."""
        ...

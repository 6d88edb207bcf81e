"""The protocol of codes: a code is a tree of unknown depth, and each of its units is walked once.

An adapter lists the units (titles, acts), turns the bytes of a page into the nodes listed there,
and describes the document of every leaf. It uses neither network nor database, and does not batch
or retry: all of that is done once for all codes, in `codes/`.

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
"""The kind of a leaf for text directly under a container, next to its children."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A range of bytes of a page."""

    start: int
    length: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TocNode:
    """A node as its publisher lists it; its id is computed from this and the nodes above it."""

    kind: str
    """The level's own name, lower case: `title`, `subchapter`, `section`, `unit`."""
    label: str
    """As readers see it: `CHAPTER 7—SOCIAL SECURITY`, `§ 1396a. State plans`."""
    number: str = ""
    """The publisher's number, as printed but without sign or brackets: `1396a`, `202 to 204`."""
    depth: int = 1
    """Levels below the node that is expanded: 1 is a child, 2 a grandchild listed after it."""
    is_leaf: bool = False
    """True if it has a text of its own and becomes a document."""
    pages: tuple[str, ...] = ()
    """Of a container: the pages that list the nodes below it. Of a leaf: the page with its text, or
    none if that is the page being expanded."""
    optional_pages: tuple[str, ...] = ()
    """Further pages of a container that may be missing, such as a supplement."""
    leaf_pages: tuple[str, ...] = ()
    """Of a unit in a folder, if no page lists them: the files of its leaves."""
    span: Span | None = None
    """Of a leaf: the range of its text on the page; None is the whole page."""
    identifier: str = ""
    """The publisher's identifier, if it has one: `/us/usc/t42/s1396a`."""
    status: str = ""
    """Of a leaf that is not in force: `repealed`, `reserved`, `renumbered`, …"""
    published_at: str | None = None
    """Of a unit: the day of the text, if the file has it (ISO 8601)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One level above a leaf."""

    kind: str
    number: str
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    """A leaf of the planned tree, with everything its page lists of it."""

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
    """The metadata of the document of a leaf."""

    title: str
    citation_string: str
    """Ready to paste: `42 U.S.C. § 1396a (2024).`"""
    source_url: str
    """The page for readers."""
    normalizer: str
    """The normalizer of the leaf's bytes: `uslm_v1`."""
    format: BodyFormat
    aliases: tuple[str, ...] = ()
    """Other names: forms of its citation, the publisher's identifier."""
    published_at: str | None = None


class Page(Protocol):
    """A file of the publisher, as it was served."""

    @property
    def name(self) -> str:
        """Its path below the base."""
        ...

    @property
    def archived(self) -> Archived:
        """Hash, size, address and time; the key is empty if nothing is archived (planning)."""
        ...

    def read(self) -> bytes:
        """The whole content, for pages known to be small."""
        ...

    def open(self) -> IO[bytes]:
        """A stream of the content, for files of any size."""
        ...


class Origin(Protocol):
    """The files of one edition: of the publisher, a mirror, a folder or a single file."""

    @property
    def version(self) -> str:
        """The requested edition; empty while it is being determined."""
        ...

    @property
    def files(self) -> Sequence[str] | None:
        """The names of the files in a folder, or of the single file; None for an address."""
        ...

    async def read(self, page: str) -> Page:
        """Fetch a page, which is archived if the edition is being ingested."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeInfo(SourceInfo):
    """The facts of a code that are known without a request."""

    base: str
    """The publisher's address that all page paths are relative to; ends with a slash."""
    jurisdiction: str
    """The jurisdiction: `United States`, `Connecticut`."""
    unit: str
    """The kind of its units: `title`, `act`."""
    language: str = "en"
    index_pages: tuple[str, ...] = ()
    """The ends of the names of pages that list units, and are part of none."""


@runtime_checkable
class JurisdictionAdapter(Protocol):
    """A code, walked as a tree."""

    info: CodeInfo

    async def newest_version(self, origin: Origin) -> str:
        """The label of the edition that the publisher serves now, or of the files.

        Raises `UsageError` if the files do not contain it, so that `--version` is required.
        """
        ...

    def discover_unit_roots(self, origin: Origin) -> AsyncIterator[TocNode]:
        """The units, in the publisher's order, with their pages; each is then walked."""
        ...

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """The nodes that a container's pages list below it, in reading order; pure.

        The first may have depth 0: it replaces the container itself.
        """
        ...

    def shardify(self, leaf: Leaf) -> Shard:
        """The metadata of the document of a leaf; pure."""
        ...

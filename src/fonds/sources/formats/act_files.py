"""Codes that are published as one XML file for each act.

In a folder the acts are found by looking into its files: by the root element, and by the element
that contains the act's metadata, which is near the beginning. At an address they are taken from
the publisher's index. Either way an act is read once, from beginning to end, by a handler that
lists its nodes as elements end, and keeps no text but that of headings.

A file that is not XML of this kind is ignored. One that is called `.xml` but is empty, cut off
before its metadata ends, or a page of HTML becomes an act that fails by itself, and so does
an archive that cannot be opened: their loss must not go unnoticed among thousands of others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import IO, Any, ClassVar, Final

from lxml import etree

from fonds.errors import (
    DuplicateKeyError,
    MalformedError,
    NotFoundError,
    ParseError,
    TooLargeError,
    UsageError,
    WrongContentError,
)
from fonds.sources.formats.xml import local_name, portions
from fonds.sources.jurisdiction import CodeInfo, Leaf, Origin, Page, Shard, Span, TocNode

_CHUNK_SIZE: Final = 1 << 14
_MAX_HEAD_SIZE: Final = 1 << 20


class ActFiles(ABC):
    """An adapter for such a code; a subclass says what its files look like."""

    info: CodeInfo
    roots: ClassVar[tuple[str, ...]]
    """The root elements of an act's file."""
    metadata: ClassVar[str]
    """The element at whose end the act's number and title are known."""
    index: ClassVar[str] = ""
    """The publisher's page that lists the acts, if it has one."""

    @abstractmethod
    def act(self, name: str, head: Any) -> TocNode:
        """The unit in a file of that name, by its root element as far as the metadata's end."""

    @abstractmethod
    def handler(self, unit: TocNode) -> ActHandler:
        """The handler that lists the nodes of one act."""

    @abstractmethod
    def shardify(self, leaf: Leaf) -> Shard:
        """The title, citation and normalizer of the document of a leaf."""

    def listed(self, index: Page) -> Iterator[TocNode]:
        """The units that the publisher's index names, each with its page."""
        del index
        raise UsageError(f"{self.info.name} is read from files only: say --from")

    def edition_label(self, index: Page) -> str:
        """The edition that the publisher's index belongs to."""
        del index
        raise UsageError(f"the publisher of {self.info.name} names no edition: say --version")

    def number_of(self, path: str) -> str:
        """The number of an act that is only in the name of its file."""
        return PurePosixPath(path.partition("!")[0]).stem

    def chosen(self, units: Sequence[TocNode], version: str) -> Iterable[TocNode]:
        """Those of the acts in a folder that belong to the edition: all, each of them once."""
        del version
        pages: dict[str, str] = {}
        for unit in units:
            other = pages.setdefault(unit.number, unit.pages[0])
            if other != unit.pages[0]:
                raise DuplicateKeyError(
                    f"{other} and {unit.pages[0]} are both {unit.kind} {unit.number}: keep one"
                )
        return units

    # What the walk asks for -------------------------------------------------------------------

    async def newest_version(self, origin: Origin) -> str:
        """The day of the newest file, or what the publisher's index says."""
        if origin.files is None:
            return self.edition_label(await self._index(origin))
        days = [unit.published_at for unit in await self._units_in(origin, origin.files)]
        if not any(days):
            raise UsageError("the files do not tell of what day they are: say --version")
        return max(day for day in days if day)

    async def discover_unit_roots(self, origin: Origin) -> AsyncIterator[TocNode]:
        """The acts in the files, or in the publisher's index."""
        if origin.files is None:
            units: Iterable[TocNode] = self.listed(await self._index(origin))
        else:
            units = self.chosen(await self._units_in(origin, origin.files), origin.version)
        for unit in units:
            yield unit

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """The act itself, as its own file knows it, and everything in it."""
        page = pages[node.pages[0]]
        with page.open() as stream:
            yield replace(self.act(page.name, self._head(stream)), depth=0)
        handler = self.handler(node)
        with page.open() as stream:
            for _ in portions(stream, handler):
                yield from handler.take()
        handler.finish()
        yield from handler.take()

    # Files ------------------------------------------------------------------------------------

    async def _index(self, origin: Origin) -> Page:
        if not self.index:
            raise UsageError(f"{self.info.name} is read from files only: say --from")
        return await origin.read(self.index)

    async def _units_in(self, origin: Origin, files: Sequence[str]) -> list[TocNode]:
        units, usable = [], False
        for name in files:
            unit, identity = await self._look(origin, name)
            units += [unit] if unit else []
            usable = usable or identity
        if not usable:
            roots = " or ".join(f"<{root}>" for root in self.roots)
            raise WrongContentError(
                f"no {self.info.unit} is in {_some(files)}: expected XML that begins with {roots}"
            )
        return units

    async def _look(self, origin: Origin, name: str) -> tuple[TocNode | None, bool]:
        """The act in a file, if there is one, and whether the file could be made out at all."""
        ending = PurePosixPath(name).suffix.lower()
        path = f"{name}!*.xml" if ending == ".zip" else name
        try:
            page = await origin.read(path)
            with page.open() as stream:
                return self.act(path, self._head(stream)), True
        except (_OtherRootError, NotFoundError):
            return None, False
        except (ParseError, TooLargeError):
            # The error is raised when the unit is walked, so that it does not affect others.
            return (self._unreadable(path) if ending in {".xml", ".zip"} else None), False

    def _unreadable(self, path: str) -> TocNode:
        number = self.number_of(path)
        return TocNode(kind=self.info.unit, label=number, number=number, pages=(path,))

    def _head(self, stream: IO[bytes]) -> Any:
        """The root element as far as the metadata's end."""
        parser = etree.XMLPullParser(
            ("start", "end"), resolve_entities=False, no_network=True, load_dtd=False
        )
        root, read, error = None, 0, None
        while read < _MAX_HEAD_SIZE and error is None and (chunk := stream.read(_CHUNK_SIZE)):
            read += len(chunk)
            error = _fed(parser, chunk)
            for event, element in parser.read_events():
                root = self._checked(element) if root is None else root
                if event == "end" and local_name(element) == self.metadata:
                    return root
        reason = f"the file ends before its <{self.metadata}> does" if read else "the file is empty"
        raise MalformedError(error or reason)

    def _checked(self, root: Any) -> Any:
        name = local_name(root)
        if name.lower() == "html":
            raise WrongContentError("an HTML page instead of XML: the publisher may have moved it")
        if name not in self.roots:
            raise _OtherRootError(f"expected <{'> or <'.join(self.roots)}>, found <{name}>")
        return root


class _OtherRootError(WrongContentError):
    """XML, but of another kind: not even a broken act."""


def _fed(parser: Any, chunk: bytes) -> str | None:
    """Why the file cannot be read any further, if so; what was read before stays known."""
    try:
        parser.feed(chunk)
    except etree.XMLSyntaxError as error:
        return f"not well-formed XML: {error.msg}"
    return None


def _some(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"the {len(files)} files"


@dataclass(slots=True)
class Element:
    """An element that is open, or has just ended."""

    name: str
    attributes: Mapping[str, str]
    """By their names as written, prefixes included."""
    start: int
    end: int = 0
    has_text: bool = False
    """Whether any word was heard in it so far."""
    texts: dict[str, str] = field(default_factory=dict)
    """The text of its children that are listened to, by name; of several, the first."""

    @property
    def span(self) -> Span:
        """Its bytes, from `<` to `>`."""
        return Span(start=self.start, length=self.end - self.start)


class ActHandler:
    """Hears an act and appends to `nodes`; a subclass overrides `opened`, `closed` or both."""

    text_elements: ClassVar[frozenset[str]] = frozenset()
    """The elements whose text is kept, white space folded, in the `said` of the one above."""
    breaks: ClassVar[frozenset[str]] = frozenset()
    """The elements that part two words, as a line break in a heading does."""

    def __init__(self) -> None:
        self.nodes: list[TocNode] = []
        self.above: list[Element] = []
        """The elements that are open, outermost first; for `opened` and `closed` without the
        they are read."""
        self.levels = Levels()
        """For acts whose headings are in a flat list."""
        self._hearing: list[list[str]] = []

    def opened(self, element: Element) -> None:
        """An element begins; nothing is known of it but its attributes."""

    def closed(self, element: Element) -> None:
        """An element ends."""

    def finish(self) -> None:
        """The file has ended: list what was waiting for more."""

    def take(self) -> list[TocNode]:
        """The nodes heard of since the last time."""
        taken, self.nodes = self.nodes, []
        return taken

    def within(self, *names: str) -> bool:
        """Whether an element of one of these names is open."""
        return any(element.name in names for element in self.above)

    # What the reading tells -------------------------------------------------------------------

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """An element begins."""
        element = Element(name, attributes, offset)
        self.opened(element)
        self.above.append(element)
        if name in self.breaks:
            self._collect(" ")
        if name in self.text_elements:
            self._hearing.append([])

    def end(self, name: str, offset: int) -> None:
        """An element ends."""
        element = self.above.pop()
        element.end = offset
        if self.above:
            self.above[-1].has_text |= element.has_text
        if name in self.text_elements:
            text = " ".join("".join(self._hearing.pop()).split())
            if self.above:
                self.above[-1].texts.setdefault(name, text)
        self.closed(element)

    def text(self, data: str) -> None:
        """Some text of the element that is open."""
        self._collect(data)
        element = self.above[-1]
        element.has_text = element.has_text or not data.isspace()

    def _collect(self, data: str) -> None:
        for hearing in self._hearing:
            hearing.append(data)


class Levels:
    """Depths of headings in a flat list, each with a rank; ranks may be left out."""

    def __init__(self) -> None:
        self._open: list[int] = []

    def enter(self, rank: int) -> int:
        """A heading of that rank ends all that are not above it; gives its depth."""
        while self._open and self._open[-1] >= rank:
            self._open.pop()
        self._open.append(rank)
        return len(self._open)

    @property
    def below(self) -> int:
        """The depth of elements under the last heading."""
        return len(self._open) + 1

"""The District of Columbia Official Code, as the Council keeps it in XML: one file a section.

A list of titles leads to an index for each title, and that to the files of its sections.

Quirks of the publisher:
- By its own description the repository is the Code as of 10 March 2016, to which a program
  of the Council applies later acts; but some indexes have chapters of later years. Its files do
  not say their day: the list's effective date is `0001-01-01`, and the recency names the last law
  without its date. So `--version` must be given.
- The index names sections by file only. Its name is the number; a colon is written `~`
  (`28~9-101.xml` is § 28:9-101). Headings, and whether a section is repealed, are in the
  section's file: a label is `§ 47-1801.04`, a status is not known, and the title of a document
  is the first heading of its text.
- Levels are all called `container`, and their names are in `prefix`.
- `subheading` is a level that is not a container: "Subtitle II. Repealed Provisions." is between
  chapters, on the same level as they. It becomes a container of what follows, up to the next
  subheading of the same level or the end of its parent. One that follows another
  directly and is of another level ("Subtitle VI." and then "Subdivision A.") is below it.
- Divisions are subheadings between titles; they are not part of a number, and above the units.
- Title 99 holds sections that other titles have reserved or have lost, among them variants of one
  section (`47-4683(Perm).xml`). Title 29A is the former Title 29.
- Some chapters have no sections, but a sentence that says why.
"""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote

from fonds.errors import (
    MalformedError,
    ParseError,
    SuspiciousYieldError,
    UsageError,
    WrongContentError,
)
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe
from fonds.sources.base import Rate
from fonds.sources.formats.xml import portions
from fonds.sources.jurisdiction import FRONT, CodeInfo, Leaf, Origin, Page, Shard, Span, TocNode

# The index of a title, read as a stream.

TITLE: Final = "title"
SECTION: Final = "section"

_SUBHEADING: Final = re.compile(
    r"([A-Z][a-z]+) ([IVXLC]+(?:-?[A-Za-z]{1,3})?|[A-Z](?:-[A-Za-z]{1,4})?|\d+[A-Z]?)"
    r"(?:\s*[.:—–]|$)"
)
# An exclamation mark would name a member of an archive.
_NO_PATH: Final = re.compile(r"[?#!\\\0]|^/|^[A-Za-z][\w+.-]*:")
_NAMES: Final = frozenset({"prefix", "num", "heading"})
_UNREAD: Final = frozenset({"include", "toc"})
_STATUSES: Final = frozenset({"expired", "omitted", "repealed", "reserved", "transferred"})


def single_line(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def bare_number(text: str) -> str:
    """A number without sign, white space and full stop."""
    return single_line(text).strip("§. ")


def path_of(href: str | None, page: str) -> str:
    """The path of a page that another one includes; never one outside of the publisher's files."""
    address = unquote(href or "")
    if not address or _NO_PATH.search(address):
        raise MalformedError(f"includes {href!r}, which is not the path of a file")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), address))
    if path.startswith("../"):
        raise MalformedError(f"includes {href!r}, which leads out of the publisher's files")
    return path


@dataclass(slots=True)
class _OpenContainer:
    """A container that is open."""

    depth: int
    names: dict[str, str] = field(default_factory=dict)
    is_listed: bool = False
    """Nothing more is going to be said of itself."""
    subheadings: list[str] = field(default_factory=list)
    """The kinds of those that are open in it, the outermost first."""
    is_bare: bool = False
    """Nothing has followed its last subheading yet."""

    @property
    def depth_below(self) -> int:
        return self.depth + len(self.subheadings) + 1

    @property
    def label(self) -> str:
        numbered = " ".join(filter(None, (self.names.get("prefix"), self.number)))
        return ". ".join(filter(None, (numbered, self.names.get("heading")))) or "container"

    @property
    def number(self) -> str:
        return bare_number(self.names.get("num", ""))

    @property
    def kind(self) -> str:
        return self.names.get("prefix", "").lower() or "container"


class TitleIndex:
    """Hears an index and keeps the nodes it lists until they are taken."""

    def __init__(self, page: str, number: str) -> None:
        self._page = page
        self._number = number
        self._nodes: list[TocNode] = []
        self._levels: list[_OpenContainer] = []
        self._element = ""
        """The open elements: a name, a section, a text."""
        self._inside = 0
        self._start = 0
        self._chunks: list[str] = []
        self._names: dict[str, str] = {}
        """The names of a section whose text is in the index itself."""
        self._front: tuple[int, int] | None = None

    def take(self) -> list[TocNode]:
        """The nodes heard of since the last time."""
        nodes, self._nodes = self._nodes, []
        return nodes

    # What is heard ------------------------------------------------------------------------

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        """Enter a level, list what is included, or begin to read an element to its end."""
        if self._inside:
            if self._inside == 1 and self._element == SECTION:
                self._chunks.clear()
            self._inside += 1
        elif name == "container":
            self._levels.append(_OpenContainer(self._depth_below() if self._levels else 0))
        elif not self._levels:
            raise WrongContentError(f"the root element is <{name[:80]}>: not the index of a title")
        else:
            if name == "include":
                self._include(attributes.get("href"))
            self._element, self._inside, self._start = name, 1, offset
            self._chunks.clear()
            self._names.clear()

    def end(self, name: str, offset: int) -> None:
        """Leave a level, or place what an element said."""
        if not self._inside:
            self._list_levels()
            self._levels.pop()
            return
        self._inside -= 1
        if not self._inside:
            self._add_anchor(name, single_line("".join(self._chunks)), offset)
        elif self._inside == 1 and self._element == SECTION:
            self._names.setdefault(name, single_line("".join(self._chunks)))

    def text(self, data: str) -> None:
        """Keep what an element says; between elements nothing is said."""
        if self._inside:
            self._chunks.append(data)
        elif not data.isspace():
            raise MalformedError(f"{data.strip()[:40]!r} is between the elements of an index")

    # Levels -------------------------------------------------------------------------------

    def _depth_below(self) -> int:
        """The depth of the next node, once all nodes above or before it are listed."""
        self._list_levels()
        level = self._levels[-1]
        level.is_bare = False
        return level.depth_below

    def _list_levels(self) -> None:
        level = self._levels[-1]
        if not level.is_listed:
            level.is_listed = True
            self._list_container(level)
        if self._front:
            start, end = self._front
            self._front = None
            self._nodes.append(
                TocNode(
                    kind=FRONT,
                    label=level.label,
                    depth=level.depth_below,
                    is_leaf=True,
                    span=Span(start=start, length=end - start),
                )
            )

    def _list_container(self, level: _OpenContainer) -> None:
        if level.depth == 0 and (level.kind, level.number) != (TITLE, self._number):
            raise WrongContentError(
                f"this is the index of {level.label[:80]!r}, not of Title {self._number}"
            )
        self._nodes.append(
            TocNode(kind=level.kind, number=level.number, label=level.label, depth=level.depth)
        )

    def _subheading(self, text: str) -> None:
        match = _SUBHEADING.match(text)
        kind, number = (match[1].lower(), match[2]) if match else ("subheading", "")
        level = self._levels[-1]
        was_bare = level.is_bare
        self._list_levels()
        if kind in level.subheadings:
            del level.subheadings[level.subheadings.index(kind) :]
        elif level.subheadings and not was_bare:
            level.subheadings.pop()
        node = TocNode(kind=kind, number=number, label=text, depth=level.depth_below)
        self._nodes.append(node)
        level.subheadings.append(kind)
        level.is_bare = True

    # What is in them ------------------------------------------------------------------

    def _include(self, href: str | None) -> None:
        page = path_of(href, self._page)
        number, dot, ending = page.rpartition("/")[2].rpartition(".")
        if not dot or ending != "xml" or number == "index":
            raise MalformedError(f"{self._levels[-1].label} includes {page}: not a section")
        self._nodes.append(_section(number.replace("~", ":"), self._depth_below(), pages=(page,)))

    def _whole_section(self, end: int) -> None:
        # The schema allows it; the Council has never done it.
        number = bare_number(self._names.get("num", ""))
        if not number:
            raise MalformedError(f"{self._levels[-1].label} holds a section without a number")
        reason = self._names.get("reason", "").lower()
        self._nodes.append(
            _section(
                number,
                self._depth_below(),
                heading=self._names.get("heading", ""),
                status=reason if reason in _STATUSES else "",
                span=Span(start=self._start, length=end - self._start),
            )
        )

    def _add_anchor(self, name: str, text: str, end: int) -> None:
        level = self._levels[-1]
        if name in _NAMES and not level.is_listed and name not in level.names:
            level.names[name] = text
        elif name == "subheading":
            self._subheading(text)
        elif name == SECTION:
            self._whole_section(end)
        elif name not in _UNREAD and text:
            start = self._front[0] if self._front else self._start
            self._front = start, end
            level.is_bare = False


def _section(number: str, depth: int, *, heading: str = "", **values: Any) -> TocNode:
    return TocNode(
        kind=SECTION,
        number=number,
        label=". ".join(filter(None, (f"§ {number}", heading))),
        depth=depth,
        is_leaf=True,
        identifier=f"/us/dc/council/code/sections/{number}",
        **values,
    )


# How the District of Columbia Official Code is cited.
#
# A section follows the Bluebook's table T1: `D.C. Code § 47-1801.04 (2016).` A text that is
# under a chapter and belongs to no section is cited by the levels above it: `D.C. Code tit. 9,
# ch. 10 (2016).`

_YEAR: Final = re.compile(r"\d{4}(?!\d)")
_ABBREVIATIONS: Final = {
    "title": "tit.",
    "subtitle": "subtit.",
    "chapter": "ch.",
    "subchapter": "subch.",
    "part": "pt.",
    "subpart": "subpt.",
    "article": "art.",
    "division": "div.",
}


def cite_dc(*, number: str, version: str) -> str:
    """`D.C. Code § 28:9-101 (2016).`, by the year that the edition's stamp begins with."""
    return f"D.C. Code § {number}{_dated(version)}."


def cite_dc_part(*, levels: Iterable[tuple[str, str]], version: str) -> str:
    """`D.C. Code tit. 9, ch. 10 (2016).`: the levels (kind, number) from the title on."""
    parts = ", ".join(
        f"{_ABBREVIATIONS.get(kind, kind)} {number}" for kind, number in levels if number
    )
    return f"D.C. Code {parts}{_dated(version)}."


def dc_forms(number: str) -> tuple[str, ...]:
    """The other ways to write a section's citation, without the year."""
    return (f"D.C. Code § {number}", f"DC Code {number}", f"D.C. Official Code § {number}")


def _dated(version: str) -> str:
    year = _YEAR.match(version)
    return f" ({year[0] if year else version})" if version else ""


SITE: Final = "https://code.dccouncil.gov"
LIST: Final = "us/dc/council/code/index.xml"

_NAMESPACES: Final = {"dc": "https://code.dccouncil.us/schemas/dc-library"}
_XINCLUDE: Final = "{http://www.w3.org/2001/XInclude}include"
_CODE: Final = "D.C. Code"
_TITLE_PAGE: Final = re.compile(r"(?:.*/)?titles/([^/]+)/index\.xml")
_DAY: Final = re.compile(r"(?:19|20)\d\d-\d\d-\d\d")
_NUMBERED: Final = re.compile(r"(\d{0,9})(.*)")


class Dc:
    """The code `dc`."""

    info = CodeInfo(
        name="dc",
        title=_CODE,
        summary="D.C. Code, cited as `D.C. Code § 47-1801.04 (2016).`",
        organisation="Council of the District of Columbia",
        version="1.0.0",
        # Its edition has to be named, so there is nothing to look for by the clock.
        schedule=None,
        rate=Rate(per_second=5, burst=10),
        tables=(),
        base="https://raw.githubusercontent.com/DCCouncil/dc-law-xml/master/",
        jurisdiction="District of Columbia",
        index_pages=(LIST,),
        unit="title",
    )

    async def newest_version(self, origin: Origin) -> str:
        """The day that the list of titles says it is effective on, if that is a real one."""
        titles = await _list_of_titles(origin)
        meta = None if titles is None else titles[1].find("dc:meta", _NAMESPACES)
        effective = "" if meta is None else meta.findtext("dc:effective", "", _NAMESPACES).strip()
        if _DAY.fullmatch(effective):
            return effective
        law = None if meta is None else meta.find("dc:recency/dc:law", _NAMESPACES)
        through = "" if law is None else f" (only that {law.get('doc')} is in them)"
        raise UsageError(
            f"the files of the D.C. Code do not say of which year they are{through}: say --version"
        )

    async def discover_unit_roots(self, origin: Origin) -> AsyncIterator[TocNode]:
        """The titles that the list of titles names; of files without that list, those there are."""
        titles = await _list_of_titles(origin)
        if titles is None:
            for number, page in await _titles_of(origin):
                yield _unit(number, page)
            return
        name, code = titles
        for number, page in _listed(name, code):
            yield _unit(number, page)

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """The nodes in the index of a title: levels, subheadings, sections, and other texts."""
        for name, page in pages.items():
            index = TitleIndex(name, node.number)
            data = page.read()
            try:
                refuse_unsafe(data)
                for _ in portions(io.BytesIO(data), index):
                    yield from index.take()
            except ParseError as error:
                raise _at(name, error) from error

    def shardify(self, leaf: Leaf) -> Shard:
        """A section is called what its own file says, so it has no title yet."""
        if leaf.kind == FRONT:
            return _front(leaf)
        return Shard(
            title="",
            citation_string=cite_dc(number=leaf.number, version=leaf.version),
            source_url=SITE + quote(leaf.identifier, safe="/:()"),
            normalizer="dc_xml_v1",
            format="xml",
            aliases=(*dc_forms(leaf.number), leaf.identifier),
            published_at=leaf.published_at,
        )


source: Final = Dc()


def _front(leaf: Leaf) -> Shard:
    levels = [(step.kind, step.number) for step in leaf.lineage]
    # Levels below a chapter have pages of their own only where no subheading is between.
    paged = [(kind, number) for kind, number in levels if kind in {"title", "chapter"}]
    path = "".join(f"/{kind}s/{quote(number)}" for kind, number in paged)
    return Shard(
        title=leaf.lineage[-1].label,
        citation_string=cite_dc_part(levels=levels, version=leaf.version),
        source_url=f"{SITE}/us/dc/council/code{path}",
        normalizer="dc_xml_v1",
        format="xml",
        published_at=leaf.published_at,
    )


def _unit(number: str, page: str) -> TocNode:
    return TocNode(
        kind=TITLE,
        number=number,
        label=f"Title {number}",
        pages=(page,),
        identifier=f"/us/dc/council/code/titles/{number}",
    )


# Which files there are --------------------------------------------------------------------


async def _list_of_titles(origin: Origin) -> tuple[str, Any] | None:
    """The list of titles and its name; None where files hold the indexes of titles only."""
    if origin.files is None:
        root = await _root(origin, LIST)
        if not _is_list(root):
            raise WrongContentError(f"{LIST} is not the list of titles of the D.C. Code")
        return LIST, root
    for name in _indexes(origin.files):
        root = await _root(origin, name)
        if _is_list(root):
            return name, root
    return None


def _listed(name: str, code: Any) -> list[tuple[str, str]]:
    try:
        pages = [path_of(include.get("href"), name) for include in code.iter(_XINCLUDE)]
    except ParseError as error:
        raise _at(name, error) from error
    if not pages:
        raise SuspiciousYieldError(f"{name} lists no title; it always has all of them")
    titles = [(_TITLE_PAGE.fullmatch(page), page) for page in pages]
    for match, page in titles:
        if match is None:
            raise MalformedError(f"{name} lists {page}, which is not the index of a title")
    return [(match[1], page) for match, page in titles if match]


async def _titles_of(origin: Origin) -> list[tuple[str, str]]:
    titles = []
    for name in _indexes(origin.files or ()):
        root = await _root(origin, name)
        prefix = root.findtext("dc:prefix", "", _NAMESPACES).strip().lower()
        number = bare_number(root.findtext("dc:num", "", _NAMESPACES))
        if prefix == TITLE and number:
            titles.append((number, name))
    if not titles:
        raise WrongContentError(
            "no file of the D.C. Code: expected a folder with us/dc/council/code/index.xml, that "
            "folder `code`, or the folder of one title with its index.xml and sections"
        )
    return sorted(titles, key=_in_order)


def _indexes(files: Iterable[str]) -> list[str]:
    """The files that may be an index, the outermost first."""
    pages = [name for name in files if name.lower().endswith(".xml")]
    # A whole copy of the repository has tens of thousands of files; all indexes are called so.
    indexes = [name for name in pages if name.rpartition("/")[2] == "index.xml"]
    return sorted(indexes or pages, key=lambda name: (name.count("/"), name))


async def _root(origin: Origin, name: str) -> Any:
    data = (await origin.read(name)).read()
    try:
        refuse_unsafe(data)
        return parse_xml(data)
    except ParseError as error:
        raise _at(name, error) from error


def _at(name: str, error: ParseError) -> ParseError:
    return type(error)(f"{name}: {error}")


def _is_list(root: Any) -> bool:
    return bool(root.tag == f"{{{_NAMESPACES['dc']}}}document" and root.get("id") == _CODE)


def _in_order(title: tuple[str, str]) -> tuple[int, str, str]:
    numbered = _NUMBERED.match(title[0])
    assert numbered
    return int(numbered[1] or 0), numbered[2], title[1]

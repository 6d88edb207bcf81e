"""The District of Columbia Official Code, as the Council keeps it in XML: one file a section.

A list of titles leads to an index for each title, and that to the files of its sections.

Quirks of the publisher:
- By its own description the repository is the Code as it stood on 10 March 2016, to which a program
  of the Council applies later acts; but some indexes have chapters of later years. Its files do
  not say their day: the list's effective date is `0001-01-01`, and the recency names the last law
  without its date. So `--version` must be given.
- The index names sections by file only. Its name is the number; a colon is written `~`
  (`28~9-101.xml` is § 28:9-101). Headings, and whether a section is repealed, stand in the
  section's file: a label is `§ 47-1801.04`, a status is not known, and the title of a document
  is the first heading of its text.
- Levels are all called `container`, and their names are in `prefix`.
- `subheading` is a level that is no container: "Subtitle II. Repealed Provisions." stands between
  chapters, on the same level as they. It becomes a container of what follows, up to the next
  subheading of the same level or the end of what it stands in. One that follows another
  directly and is of another level ("Subtitle VI." and then "Subdivision A.") is below it.
- Divisions are subheadings between titles; they are no part of a number, and above the units.
- Title 99 holds sections that other titles have reserved or have lost, among them variants of one
  section (`47-4683(Perm).xml`). Title 29A is the former Title 29.
- Some chapters have no sections, but a sentence that says why.
"""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from fonds.citations.dc import cite_dc, cite_dc_part, dc_forms
from fonds.errors import (
    MalformedError,
    ParseError,
    SuspiciousYieldError,
    UsageError,
    WrongContentError,
)
from fonds.normalize.safe_xml import parse_xml, refuse_unsafe
from fonds.sources.base import Rate
from fonds.sources.dc.index import TITLE, TitleIndex, path_of, plain_number
from fonds.sources.families.xml_spans import portions
from fonds.sources.jurisdiction import FRONT, CodeInfo, Leaf, Origin, Page, Shard, TocNode

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
        organisation="Council of the District of Columbia",
        version="1.0.0",
        # Its edition has to be named, so there is nothing to look for by the clock.
        schedule=None,
        rate=Rate(per_second=5, burst=10),
        tables=(),
        base="https://raw.githubusercontent.com/DCCouncil/dc-law-xml/master/",
        jurisdiction="District of Columbia",
        unit="title",
    )

    async def newest_version(self, origin: Origin) -> str:
        """The day that the list of titles says it is effective on, if that is a real one."""
        found = await _list_of_titles(origin)
        meta = None if found is None else found[1].find("dc:meta", _NAMESPACES)
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
        found = await _list_of_titles(origin)
        if found is None:
            for number, page in await _titles_of(origin):
                yield _unit(number, page)
            return
        name, code = found
        for number, page in _listed(name, code):
            yield _unit(number, page)

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """What the index of a title lists: levels, subheadings, sections, and texts beside them."""
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
            raise MalformedError(f"{name} lists {page}, which is no title's index")
    return [(match[1], page) for match, page in titles if match]


async def _titles_of(origin: Origin) -> list[tuple[str, str]]:
    found = []
    for name in _indexes(origin.files or ()):
        root = await _root(origin, name)
        prefix = root.findtext("dc:prefix", "", _NAMESPACES).strip().lower()
        number = plain_number(root.findtext("dc:num", "", _NAMESPACES))
        if prefix == TITLE and number:
            found.append((number, name))
    if not found:
        raise WrongContentError(
            "no file of the D.C. Code: expected a folder with us/dc/council/code/index.xml, that "
            "folder `code`, or the folder of one title with its index.xml and sections"
        )
    return sorted(found, key=_in_order)


def _indexes(files: Iterable[str]) -> list[str]:
    """The files that may be an index, the outermost first."""
    found = [name for name in files if name.lower().endswith(".xml")]
    # A whole copy of the repository has tens of thousands of files; all indexes are called so.
    named = [name for name in found if name.rpartition("/")[2] == "index.xml"]
    return sorted(named or found, key=lambda name: (name.count("/"), name))


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

"""The General Statutes of Connecticut, with the supplement that brings them up to date.

The statutes are revised in odd years (`current/pub`); in the year between, a supplement
(`2026/sup`) has only the sections that were amended, repealed or added. Edition 2025 is the
revision alone, edition 2026 the same with the sections of the supplement in their places.

Quirks of the publisher:
- titles.htm lists title_12.htm, which lists chap_229.htm, which holds all sections of its chapter.
  Title 42a has articles instead (art_002a.htm); they are numbered anew, as chapters are not.
- A section has no element of its own: it begins with the paragraph of its catchline and ends with
  a table of links. Source, history, cross references and annotations are told by their classes.
- One catchline can stand for many sections that are gone: `secs_12-747_to_12-789`.
- The letter l in a number is in italics: `53a-117<i>l</i>`; ids have it plain.
- Parts of a chapter are headings between sections, with notes of their own below them.
- A page says to which title it belongs only in its links, and of which year it is only in a note.
- A page is served whatever fragment is asked for: only its catchlines tell what it holds.
- Of some titles nothing is left; they are listed with a remark, and two are listed without a page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Final

from fonds.citations import forms
from fonds.citations.cgs import cgs_sections, cite_cgs, cite_cgs_notes
from fonds.errors import UsageError
from fonds.sources.base import Rate
from fonds.sources.cgs.chapter import SECTION, STATUTES
from fonds.sources.cgs.folder import scan
from fonds.sources.cgs.index import Entry, Titles, read_titles, with_new_entries
from fonds.sources.cgs.nodes import chapter_nodes, title_nodes
from fonds.sources.cgs.numbers import members
from fonds.sources.jurisdiction import CodeInfo, Leaf, Origin, Page, Shard, TocNode

NAME: Final = "cgs"
BASE: Final = "https://www.cga.ct.gov/"
_LIST: Final = "titles.htm"


class Cgs:
    """The code `cgs`."""

    info = CodeInfo(
        name=NAME,
        title="General Statutes of Connecticut",
        organisation="Connecticut General Assembly",
        version="1.0.0",
        # A revision or a supplement appears once a year, in spring.
        schedule="40 4 3 * *",
        rate=Rate(per_second=1, burst=2),
        tables=(),
        published_at="January 1 of the year the page is revised to",
        base=BASE,
        jurisdiction="Connecticut",
        unit="title",
    )

    async def newest_version(self, origin: Origin) -> str:
        """The year of the supplement that readers are sent to, or of the revision."""
        if origin.files is None:
            titles = await _read_titles(origin, STATUTES)
            year = titles.supplement or titles.revision
        else:
            year = (await scan(origin)).revision
        if not year:
            raise UsageError("the pages do not tell the year they are revised to: say --version")
        return year

    async def discover_unit_roots(self, origin: Origin) -> AsyncIterator[TocNode]:
        """The titles that have a page; in a folder, those it holds any page of."""
        if origin.files is None:
            async for root in _published_roots(origin):
                yield root
            return
        folder = await scan(origin)
        for held in folder.in_order():
            yield TocNode(
                kind="title",
                number=held.number,
                label=held.label,
                pages=(*held.title_pages, *held.chapters),
                published_at=f"{folder.revision}-01-01" if folder.revision else None,
            )

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """The chapters of a title, or the parts and sections of a chapter."""
        nodes = title_nodes if node.kind == "title" else chapter_nodes
        return nodes(node, list(pages.values()))

    def shardify(self, leaf: Leaf) -> Shard:
        """A section by its number; notes by the chapter or part they stand under."""
        is_section = leaf.kind == SECTION
        levels = {step.kind: step.number for step in leaf.lineage}
        return Shard(
            title=leaf.label,
            citation_string=cite_cgs(section=leaf.number, edition=leaf.version)
            if is_section
            else cite_cgs_notes(levels=levels, edition=leaf.version),
            source_url=BASE + leaf.identifier,
            normalizer="cga_v1",
            format="html",
            aliases=_aliases(leaf.number) if is_section else (),
            published_at=leaf.published_at,
        )


source: Final = Cgs()


def _aliases(number: str) -> tuple[str, ...]:
    """Forms of the citation; a block of sections also answers to the numbers it names."""
    each = (forms.connecticut_form(one) for one in members(number))
    return tuple(dict.fromkeys((cgs_sections(number), f"CGS {number}", *each)))


# Titles -----------------------------------------------------------------------------------


async def _read_titles(origin: Origin, folder: str) -> Titles:
    page = await origin.read(f"{folder}/{_LIST}")
    return read_titles(page.name, page.read())


async def _published_roots(origin: Origin) -> AsyncIterator[TocNode]:
    titles = await _read_titles(origin, STATUTES)
    served = [year for year in (titles.revision, titles.supplement) if year]
    if served and origin.version not in served:
        raise UsageError(
            f"the publisher serves {' and '.join(served)}, not {origin.version!r}; "
            "say --version with one of them, or --from with a folder of the one you want"
        )
    supplement: tuple[Entry, ...] = ()
    if origin.version == titles.supplement:
        supplement = (await _read_titles(origin, f"{titles.supplement}/sup")).entries
    for entry in with_new_entries(titles.entries, supplement):
        lists = ((STATUTES, titles.entries), (f"{titles.supplement}/sup", supplement))
        yield TocNode(
            kind="title",
            number=entry.number,
            label=entry.full_label,
            pages=tuple(f"{folder}/{entry.file}" for folder, listed in lists if entry.in_(listed)),
            published_at=f"{origin.version}-01-01" if served else None,
        )

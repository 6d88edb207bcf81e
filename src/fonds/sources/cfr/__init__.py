"""The Code of Federal Regulations: eCFR's daily text, and the annual edition.

Quirks of the publisher:

- eCFR's API serves a title as it stood on a day, but none later than the title's own
  `up_to_date_as_of`; titles lag behind each other by some days. Title 35 is reserved, and has no
  file.
- A part or a section asked for by itself has no title around it. Its `hierarchy_metadata` names
  the title, escaped once or twice, with `_SUBSTITUTE_DATE_` in the place of a date.
- In govinfo's bulk files `DIV1` is a volume, and its `N` the volume's number; chapters, and even
  parts, go on from one volume to the next, where their headings stand again, `(CONTINUED)`.
- The annual edition is in volumes, or in a file for each part. An unchanged volume is published in
  a new cover: a volume of 2025 may say that it is revised as of 2023. What a volume prints before
  and after its title (how to use the Code, finding aids) is no part of the Code, and left out.
- Numbers do not tell the part: 14 CFR part 241 has a section 19-8.1, title 43 numbers by subpart.
  They stand in `N`, with or without the sign, in `SECTNO`, or only in the heading.
- The end tags of some sections were forgotten: all parts that follow stand within the section.
- Ranges of reserved sections and parts are one element. A level that is reserved and holds
  nothing is a leaf, so that its citation leads somewhere.
- The sections a note quotes as they will read once they are in force (`REVTXT`) are text of the
  section that the note is on.
- What stands directly under a part (authority, source, notes) is its front; the part is cited by
  it. A volume that goes on with a part prints these again: they follow as `front~2`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Final

from fonds.errors import ParseError, WrongContentError
from fonds.sources.base import Rate
from fonds.sources.cfr.dialects import Gpo, Uslm
from fonds.sources.cfr.editions import Found, newest_edition, units
from fonds.sources.cfr.heads import LONGEST, look, title_of_name
from fonds.sources.cfr.index import INDEX, newest_day, titles
from fonds.sources.cfr.listing import Listing
from fonds.sources.cfr.outline import Outline
from fonds.sources.cfr.shards import shard
from fonds.sources.cfr.wording import level_number
from fonds.sources.families.xml_spans import portions
from fonds.sources.jurisdiction import CodeInfo, Leaf, Origin, Page, Shard, TocNode


class Adapter:
    """The CFR, title by title."""

    info = CodeInfo(
        name="cfr",
        title="Code of Federal Regulations",
        organisation="Office of the Federal Register",
        version="1.0.0",
        schedule="30 6 * * 1",
        rate=Rate(per_second=1, burst=2),
        tables=(),
        fetch_concurrency=2,
        published_at="the day asked for; the revision date of the annual edition",
        base="https://www.ecfr.gov/",
        jurisdiction="United States",
        unit="title",
    )

    async def newest_version(self, origin: Origin) -> str:
        """The day of the newest text, or the edition that the files are of."""
        if origin.files is None:
            index = await origin.read(INDEX)
            return newest_day(index.read())
        return newest_edition(await _found(origin))

    async def discover_unit_roots(self, origin: Origin) -> AsyncIterator[TocNode]:
        """The titles that are not reserved, or those that the files hold."""
        if origin.files is None:
            index = await origin.read(INDEX)
            found = titles(index.read(), origin.version)
        else:
            found = units(await _found(origin), origin.version)
        for root in found:
            yield root

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """Every level and every leaf of a title, while its files are read."""
        outline = Outline()
        for page in pages.values():
            yield from _listed(node, page, outline)
        yield from outline.close()

    def shardify(self, leaf: Leaf) -> Shard:
        """Its citation, its page at eCFR, and its other names."""
        return shard(leaf)


def _listed(node: TocNode, page: Page, outline: Outline) -> Iterator[TocNode]:
    with page.open() as stream:
        head = look(stream.read(LONGEST), page.name)
    if head.title != node.number:
        raise WrongContentError(f"{page.name} is of title {head.title}, not {node.number}")
    outline.turn()
    for depth, (heading, label) in enumerate(head.ancestors, start=1):
        kind = heading.partition(" ")[0].lower()
        number = level_number(heading)
        outline.container(TocNode(kind=kind, number=number, label=label, depth=depth))
    listing = Listing(
        Uslm() if head.is_uslm else Gpo(),
        outline,
        page=page.name,
        title=node.number,
        above=len(head.ancestors),
    )
    with page.open() as stream:
        for _ in portions(stream, listing):
            yield from outline.drain()


async def _found(origin: Origin) -> list[Found]:
    """The files of the CFR among all; a broken one counts if its name says that it is one."""
    names = origin.files or ()
    found = []
    for name in names:
        with (await origin.read(name)).open() as stream:
            start = stream.read(LONGEST)
        try:
            found.append(Found(name, look(start, name)))
        except ParseError:
            if len(names) == 1:
                raise
            if name.lower().endswith(".xml") and title_of_name(name):
                found.append(Found(name, None))
    return found


source: Final = Adapter()

"""The General Statutes of Connecticut, with the supplement that brings them up to date.

The statutes are revised in odd years (`current/pub`); in the year between, a supplement
(`2026/sup`) has only the sections that were amended, repealed or added. Edition 2025 is the
revision alone, edition 2026 the same with the sections of the supplement in their places.

Quirks of the publisher:
- titles.htm lists title_12.htm, which lists chap_229.htm, which holds all sections of its chapter.
  Title 42a has articles instead (art_002a.htm); they begin again at 1, as chapters do not.
- A section has no element of its own: it begins with the paragraph of its catchline and ends with
  a table of links. Source, history, cross references and annotations are known by their classes.
- One catchline can be that of many repealed sections: `secs_12-747_to_12-789`.
- The letter l in a number is in italics: `53a-117<i>l</i>`; ids have it plain.
- Parts of a chapter are headings between sections, with notes of their own below them.
- A page says to which title it belongs only in its links, and of which year it is only in a note.
- A page is served whatever fragment is asked for: only its catchlines tell what it holds.
- Of some titles nothing is left; they are listed with a remark, and two are listed without a page.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from fonds.citations import forms
from fonds.errors import MalformedError, NotFoundError, UsageError, WrongContentError
from fonds.sources.base import Rate
from fonds.sources.cgs.chapter import (
    PARTS,
    SECTION,
    STATUTES,
    Chapter,
    ChapterItem,
    covers,
    is_chapter,
    key_of,
    members,
    read_chapter,
)
from fonds.sources.cgs.index import (
    ListedNode,
    Pair,
    Title,
    Titles,
    all_repealed,
    paired,
    read_title,
    read_titles,
    scan,
    with_new_entries,
)
from fonds.sources.jurisdiction import FRONT, CodeInfo, Leaf, Origin, Page, Shard, TocNode

# A chapter brought up to date: the sections of its supplement in the place of the older ones.

Path = tuple[tuple[str, str], ...]
"""The parts above a section, outermost first: kinds and numbers."""


def merged(base: Sequence[ChapterItem], supplement: Sequence[ChapterItem]) -> list[ChapterItem]:
    """All items in reading order.

    A section of the supplement takes the place of those it names. One that is new, or that the
    statutes have only within a range, is put behind the last section of no greater number. Notes
    that differ are kept beside the older ones.
    """
    items = list(base)
    front_texts = {item.text for item in base if item.kind == FRONT}
    added: set[int] = set()
    for batch in _batches(supplement):
        added.add(id(batch.section))
        at = _behind_heading(items, _put(items, batch, added), batch.path)
        items[at:at] = [note for note in batch.notes if note.text not in front_texts]
    return items


@dataclass(slots=True)
class _SupplementSection:
    """A section of the supplement, and the notes between it and the section before."""

    section: ChapterItem | None = None
    path: Path = ()
    headings: dict[Path, ChapterItem] = field(default_factory=dict)
    notes: list[ChapterItem] = field(default_factory=list)


def _batches(supplement: Sequence[ChapterItem]) -> Iterator[_SupplementSection]:
    batch = _SupplementSection()
    headings: dict[Path, ChapterItem] = {}
    for item, path in _with_paths(supplement):
        batch.path = path
        if item.kind in PARTS:
            headings[path] = item
        elif item.kind == FRONT:
            batch.notes.append(item)
        else:
            batch.section, batch.headings = item, headings
            yield batch
            batch = _SupplementSection()
    if batch.notes:
        yield batch


def _with_paths(items: Sequence[ChapterItem]) -> Iterator[tuple[ChapterItem, Path]]:
    path: Path = ()
    for item in items:
        if item.kind in PARTS:
            rank = PARTS.index(item.kind)
            above = tuple(step for step in path if PARTS.index(step[0]) < rank)
            path = (*above, (item.kind, item.number))
        yield item, path


def _put(items: list[ChapterItem], batch: _SupplementSection, added: set[int]) -> int:
    """Put a section where it belongs; gives its place."""
    section = batch.section
    if section is None:
        return len(items)
    replaced = [
        at
        for at, old in enumerate(items)
        # Of two sections that the supplement has under one number, both are kept.
        if old.kind == SECTION and id(old) not in added and covers(section.number, old.number)
    ]
    for at in reversed(replaced[1:]):
        del items[at]
    if replaced:
        items[replaced[0]] = section
        return replaced[0]
    at = _position_for(items, section, batch.path)
    paths = {path for _, path in _with_paths(items)}
    opened = [batch.path[:depth] for depth in range(1, len(batch.path) + 1)]
    missing = [batch.headings[path] for path in opened if path not in paths]
    items[at:at] = [*missing, section]
    return at + len(missing)


def _position_for(items: list[ChapterItem], section: ChapterItem, path: Path) -> int:
    sections = [at for at, old in enumerate(items) if old.kind == SECTION]
    key = key_of(section.number)
    before = [at for at in sections if key_of(items[at].number) <= key]
    if not before:
        return sections[0] if sections else len(items)
    at = before[-1] + 1
    paths = [item_path for _, item_path in _with_paths(items)]
    if paths[at - 1] == path:
        return at
    # The first section of a part follows the last one of the part before.
    gap = takewhile(lambda index: items[index].kind != SECTION, range(at, len(items)))
    headed = [index for index in gap if paths[index] == path]
    return headed[-1] + 1 if headed else at


def _behind_heading(items: list[ChapterItem], at: int, path: Path) -> int:
    """The index for notes: after the heading of their part and its notes, or at the section."""
    paths = [item_path for _, item_path in _with_paths(items)]
    starts = [0] if not path else []
    starts += [
        index + 1
        for index, item in enumerate(items[:at])
        if item.kind in PARTS and paths[index] == path
    ]
    if not starts:
        return at
    start = starts[-1]
    while start < len(items) and items[start].kind == FRONT:
        start += 1
    return start


# From pages to the nodes of the tree.


def title_nodes(node: TocNode, pages: Sequence[Page]) -> Iterator[TocNode]:
    """The nodes of a title.

    Its own pages list chapters, each on pages of its own. Out of a folder a title comes with all
    its chapters at once, whatever the files are called.
    """
    titles: list[tuple[Page, Title]] = []
    chapters: list[tuple[Page, Chapter]] = []
    for page in pages:
        data = page.read()
        if is_chapter(data):
            chapters.append((page, read_chapter(page.name, data)))
        else:
            titles.append((page, read_title(page.name, data)))
    yield from _notes(node, titles)
    if chapters:
        yield from _chapters_in(titles, paired(chapters))
    else:
        yield from _listed(node, titles)


def _listed(node: TocNode, titles: Sequence[tuple[Page, Title]]) -> Iterator[TocNode]:
    entries: list[ListedNode] = []
    for _, title in titles:
        entries = with_new_entries(entries, title.chapters)
    if not entries and not all_repealed(node.label):
        raise MalformedError(f"{titles[0][0].name} lists no chapter of {node.label}")
    for entry in entries:
        yield TocNode(
            kind=entry.kind,
            number=entry.number,
            label=entry.label,
            pages=tuple(
                posixpath.join(posixpath.dirname(page.name), entry.file)
                for page, title in titles
                if entry.in_(title.chapters)
            ),
        )


def chapter_nodes(node: TocNode, pages: Sequence[Page]) -> Iterator[TocNode]:
    """The chapter itself, with what its page says, and its nodes."""
    pair = Pair()
    for page in pages:
        chapter = read_chapter(page.name, page.read())
        if chapter.number.lower() != node.number.lower():
            raise WrongContentError(f"{page.name} holds {chapter.label}, not {node.label}")
        pair.add(chapter, page.name)
    yield TocNode(kind=node.kind, number=node.number, label=pair.chapter.label, depth=0)
    yield from _content(pair, depth=1)


def _chapters_in(titles: Sequence[tuple[Page, Title]], pairs: Sequence[Pair]) -> Iterator[TocNode]:
    for page, title in titles:
        _check_complete(page.name, title, pairs)
    for pair in pairs:
        chapter = pair.chapter
        yield TocNode(kind=chapter.kind, number=chapter.number, label=chapter.label)
        yield from _content(pair, depth=2)


def _check_complete(name: str, title: Title, pairs: Sequence[Pair]) -> None:
    chapters = [pair.base if title.supplement is None else pair.supplement for pair in pairs]
    existing = {(chapter.kind, chapter.number.lower()) for chapter in chapters if chapter}
    for entry in title.chapters:
        if (entry.kind, entry.number.lower()) not in existing:
            raise NotFoundError(
                f"{name} lists {entry.label}, but the folder has no {entry.file}; "
                "add it, or take the list away to go without it"
            )


def _notes(node: TocNode, titles: Sequence[tuple[Page, Title]]) -> Iterator[TocNode]:
    texts: set[str] = set()
    for page, title in titles:
        if title.notes is None or title.text in texts:
            continue
        texts.add(title.text)
        yield TocNode(
            kind=FRONT,
            label=f"Notes to {node.label}",
            is_leaf=True,
            pages=(page.name,),
            span=title.notes,
            identifier=title.address,
        )


def _content(pair: Pair, depth: int) -> Iterator[TocNode]:
    base = pair.base.items if pair.base else ()
    items = merged(base, pair.supplement.items) if pair.supplement else base
    above: list[str] = []
    for item in items:
        if item.kind in PARTS:
            above = [kind for kind in above if PARTS.index(kind) < PARTS.index(item.kind)]
            yield TocNode(
                kind=item.kind, number=item.number, label=item.label, depth=depth + len(above)
            )
            above.append(item.kind)
        else:
            yield _leaf(item, depth + len(above))


def _leaf(item: ChapterItem, depth: int) -> TocNode:
    return TocNode(
        kind=item.kind,
        number=item.number,
        label=item.label,
        depth=depth,
        is_leaf=True,
        pages=(item.page,),
        span=item.span,
        identifier=item.address,
        status=item.status,
    )


# How the Connecticut General Statutes are cited.

_SEVERAL: Final = re.compile(r"\s(?:to|and|or)\s|,")
_SHORT: Final = {"chapter": "ch.", "article": "art.", "part": "pt.", "subpart": "subpt."}


def cgs_sections(number: str) -> str:
    """`Conn. Gen. Stat. § 12-704e`, and `Conn. Gen. Stat. §§ 12-747 to 12-789` for several."""
    sign = "§§" if _SEVERAL.search(number) else "§"
    return f"Conn. Gen. Stat. {sign} {number}"


def cite_cgs(*, section: str, edition: str) -> str:
    """A section of an edition: `Conn. Gen. Stat. § 12-704e (2025)`, with a period behind it."""
    return f"{cgs_sections(section)} ({edition})."


def cite_cgs_notes(*, levels: Mapping[str, str], edition: str) -> str:
    """`Conn. Gen. Stat. ch. 952, pt. I (2025).`: the notes beside the sections of a level.

    Levels are names with their numbers, outermost first. Chapters are counted through all titles
    and cited without theirs; articles begin again at 1 in the only title that has them.
    """
    parts = [f"{_SHORT[kind]} {number}" for kind, number in levels.items() if kind in _SHORT]
    if "chapter" not in levels:
        parts.insert(0, f"tit. {levels['title']}")
    return f"Conn. Gen. Stat. {', '.join(parts)} ({edition})."


NAME: Final = "cgs"
BASE: Final = "https://www.cga.ct.gov/"
_LIST: Final = "titles.htm"


class Cgs:
    """The code `cgs`."""

    info = CodeInfo(
        name=NAME,
        title="General Statutes of Connecticut",
        summary="Connecticut General Statutes, cited as `Conn. Gen. Stat. § 12-704e (2025).`",
        organisation="Connecticut General Assembly",
        version="1.0.0",
        # A revision or a supplement appears once a year, in spring.
        schedule="40 4 3 * *",
        rate=Rate(per_second=1, burst=2),
        tables=(),
        published_at="January 1 of the year the page is revised to",
        base=BASE,
        jurisdiction="Connecticut",
        index_pages=(_LIST,),
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
        for files in folder.in_order():
            yield TocNode(
                kind="title",
                number=files.number,
                label=files.label,
                pages=(*files.title_pages, *files.chapters),
                published_at=f"{folder.revision}-01-01" if folder.revision else None,
            )

    def expand(self, node: TocNode, pages: Mapping[str, Page]) -> Iterator[TocNode]:
        """The chapters of a title, or the parts and sections of a chapter."""
        nodes = title_nodes if node.kind == "title" else chapter_nodes
        return nodes(node, list(pages.values()))

    def shardify(self, leaf: Leaf) -> Shard:
        """A section by its number; notes by their chapter or part."""
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
    names = (forms.connecticut_form(member) for member in members(number))
    return tuple(dict.fromkeys((cgs_sections(number), f"CGS {number}", *names)))


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
    supplement: tuple[ListedNode, ...] = ()
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

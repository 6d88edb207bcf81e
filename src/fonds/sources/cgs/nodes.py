"""From pages to the nodes of the tree."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from fonds.errors import MalformedError, NotFoundError, WrongContentError
from fonds.sources.cgs.chapter import PARTS, Chapter, Item, is_chapter, read_chapter
from fonds.sources.cgs.folder import Pair, paired
from fonds.sources.cgs.index import Entry, Title, all_gone, read_title, with_new_entries
from fonds.sources.cgs.supplement import merged
from fonds.sources.jurisdiction import FRONT, Page, TocNode


def title_nodes(node: TocNode, pages: Sequence[Page]) -> Iterator[TocNode]:
    """What stands in a title.

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
        yield from _held(titles, paired(chapters))
    else:
        yield from _listed(node, titles)


def _listed(node: TocNode, titles: Sequence[tuple[Page, Title]]) -> Iterator[TocNode]:
    entries: list[Entry] = []
    for _, title in titles:
        entries = with_new_entries(entries, title.chapters)
    if not entries and not all_gone(node.label):
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
    """The chapter itself, better known now, and what stands in it."""
    pair = Pair()
    for page in pages:
        chapter = read_chapter(page.name, page.read())
        if chapter.number.lower() != node.number.lower():
            raise WrongContentError(f"{page.name} holds {chapter.label}, not {node.label}")
        pair.add(chapter, page.name)
    yield TocNode(kind=node.kind, number=node.number, label=pair.chapter.label, depth=0)
    yield from _content(pair, depth=1)


def _held(titles: Sequence[tuple[Page, Title]], pairs: Sequence[Pair]) -> Iterator[TocNode]:
    for page, title in titles:
        _check_complete(page.name, title, pairs)
    for pair in pairs:
        chapter = pair.chapter
        yield TocNode(kind=chapter.kind, number=chapter.number, label=chapter.label)
        yield from _content(pair, depth=2)


def _check_complete(name: str, title: Title, pairs: Sequence[Pair]) -> None:
    held = [pair.base if title.supplement is None else pair.supplement for pair in pairs]
    known = {(chapter.kind, chapter.number.lower()) for chapter in held if chapter}
    for entry in title.chapters:
        if (entry.kind, entry.number.lower()) not in known:
            raise NotFoundError(
                f"{name} lists {entry.label}, but the folder has no {entry.file}; "
                "add it, or take the list away to go without it"
            )


def _notes(node: TocNode, titles: Sequence[tuple[Page, Title]]) -> Iterator[TocNode]:
    said: set[str] = set()
    for page, title in titles:
        if title.notes is None or title.text in said:
            continue
        said.add(title.text)
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


def _leaf(item: Item, depth: int) -> TocNode:
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

"""A chapter brought up to date: the sections of its supplement in the place of the older ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from fonds.sources.cgs.chapter import PARTS, SECTION, Item
from fonds.sources.cgs.numbers import covers, key_of
from fonds.sources.jurisdiction import FRONT

Path = tuple[tuple[str, str], ...]
"""The parts a section stands under, outermost first: kinds and numbers."""


def merged(base: Sequence[Item], supplement: Sequence[Item]) -> list[Item]:
    """All items in reading order.

    A section of the supplement takes the place of those it names. One that is new, or that the
    statutes have only within a range, is put behind the last section of no greater number. Notes
    that differ are kept beside the older ones.
    """
    items = list(base)
    known = {item.text for item in base if item.kind == FRONT}
    placed: set[int] = set()
    for batch in _batches(supplement):
        placed.add(id(batch.section))
        at = _behind_heading(items, _put(items, batch, placed), batch.path)
        items[at:at] = [note for note in batch.notes if note.text not in known]
    return items


@dataclass(slots=True)
class _Batch:
    """A section of the supplement, and what stands between it and the section before."""

    section: Item | None = None
    path: Path = ()
    headings: dict[Path, Item] = field(default_factory=dict)
    notes: list[Item] = field(default_factory=list)


def _batches(supplement: Sequence[Item]) -> Iterator[_Batch]:
    batch = _Batch()
    headings: dict[Path, Item] = {}
    for item, path in _with_paths(supplement):
        batch.path = path
        if item.kind in PARTS:
            headings[path] = item
        elif item.kind == FRONT:
            batch.notes.append(item)
        else:
            batch.section, batch.headings = item, headings
            yield batch
            batch = _Batch()
    if batch.notes:
        yield batch


def _with_paths(items: Sequence[Item]) -> Iterator[tuple[Item, Path]]:
    path: Path = ()
    for item in items:
        if item.kind in PARTS:
            rank = PARTS.index(item.kind)
            above = tuple(step for step in path if PARTS.index(step[0]) < rank)
            path = (*above, (item.kind, item.number))
        yield item, path


def _put(items: list[Item], batch: _Batch, placed: set[int]) -> int:
    """Put a section where it belongs; gives its place."""
    section = batch.section
    if section is None:
        return len(items)
    replaced = [
        at
        for at, old in enumerate(items)
        # Of two sections that the supplement has under one number, both are kept.
        if old.kind == SECTION and id(old) not in placed and covers(section.number, old.number)
    ]
    for at in reversed(replaced[1:]):
        del items[at]
    if replaced:
        items[replaced[0]] = section
        return replaced[0]
    at = _place(items, section, batch.path)
    paths = {path for _, path in _with_paths(items)}
    opened = [batch.path[:depth] for depth in range(1, len(batch.path) + 1)]
    missing = [batch.headings[path] for path in opened if path not in paths]
    items[at:at] = [*missing, section]
    return at + len(missing)


def _place(items: list[Item], section: Item, path: Path) -> int:
    sections = [at for at, old in enumerate(items) if old.kind == SECTION]
    key = key_of(section.number)
    before = [at for at in sections if key_of(items[at].number) <= key]
    if not before:
        return sections[0] if sections else len(items)
    at = before[-1] + 1
    paths = [known for _, known in _with_paths(items)]
    if paths[at - 1] == path:
        return at
    # The first section of a part follows the last one of the part before.
    gap = takewhile(lambda place: items[place].kind != SECTION, range(at, len(items)))
    headed = [place for place in gap if paths[place] == path]
    return headed[-1] + 1 if headed else at


def _behind_heading(items: list[Item], at: int, path: Path) -> int:
    """Where notes go: behind the heading of their part and its notes, or where the section is."""
    paths = [known for _, known in _with_paths(items)]
    starts = [0] if not path else []
    starts += [
        place + 1
        for place, item in enumerate(items[:at])
        if item.kind in PARTS and paths[place] == path
    ]
    if not starts:
        return at
    start = starts[-1]
    while start < len(items) and items[start].kind == FRONT:
        start += 1
    return start

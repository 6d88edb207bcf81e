"""The tree of one unit in flat arrays: a hundred thousand nodes in some twenty megabytes.

A node is a number, in the order of arrival. Its id is never stored: it is its parent's id and the
segment of its own level, computed when asked for.

The walk: one read-only pass over a unit, which gives its whole tree and no bodies.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fonds import ids
from fonds.errors import (
    BudgetSpentError,
    MalformedError,
    NotFoundError,
    SuspiciousYieldError,
    UnitTooLargeError,
)
from fonds.sources.jurisdiction import JurisdictionAdapter, Origin, Page, Span, TocNode

ROOT: Final = 0
DEEPEST: Final = 100
"""No code is nested so deep; a file that is means harm."""
_NONE: Final = -1
_FIELDS: Final = 3


class Tree:
    """One unit: its root, and everything listed below it."""

    def __init__(self, above: str, root: TocNode, *, only: Sequence[str] = ()) -> None:
        self._above = above
        """The id of the node over the unit's root."""
        self._only = only
        """Segments below the root: of each level they name, only that node is taken in."""
        self._parents = array("i")
        self._first = array("i")
        self._last = array("i")
        self._next = array("i")
        self._repeats = array("i")
        self._kinds = array("i")
        self._statuses = array("i")
        self._leaves = array("b")
        self._pages = array("i")
        self._starts = array("q")
        self._lengths = array("q")
        self._texts = bytearray()
        self._ends = array("Q")
        self._names = _Names()
        self._page_names = _Names()
        self._restated: dict[int, tuple[str, str]] = {}
        self._append(_NONE, root, repeat=1, page=None)

    def __len__(self) -> int:
        return len(self._parents)

    def restate(self, node: int, better: TocNode) -> None:
        """Know a node's label and identifier better, now that its own page is read."""
        self._restated[node] = (better.label, better.identifier or self.identifier(node))

    def grow(self, under: int, listed: Iterator[TocNode], page: str) -> list[tuple[int, TocNode]]:
        """Add what a page lists below a node; gives back those that have pages of their own."""
        opened: list[tuple[int, TocNode]] = []
        above = [under]
        seen = [self._segments_below(under)]
        depth = self._depth(under)
        left_out: int | None = None
        for node in listed:
            if left_out is not None and node.depth > left_out:
                continue
            left_out = None
            if not 1 <= node.depth <= min(len(above), DEEPEST - depth):
                raise MalformedError(f"{node.label!r} is listed {node.depth} levels deep")
            del above[node.depth :], seen[node.depth :]
            segment = ids.segment(node.kind, node.number)
            seen[-1][segment] += 1
            repeat = seen[-1][segment]
            if not self._is_wanted(depth + node.depth, ids.repeated(segment, repeat)):
                left_out = node.depth
                continue
            added = self._append(above[-1], node, repeat=repeat, page=page)
            if not node.is_leaf:
                above.append(added)
                seen.append(Counter())
                opened += [(added, node)] if node.pages else []
        return opened

    def _is_wanted(self, depth: int, segment: str) -> bool:
        return depth > len(self._only) or self._only[depth - 1] == segment

    def _depth(self, node: int) -> int:
        depth = 0
        while (parent := self.parent(node)) is not None:
            node, depth = parent, depth + 1
        return depth

    # What is known of a node ------------------------------------------------------------------

    def id(self, node: int) -> str:
        """Computed, never stored: `usc/2024/root/title-42/chapter-7`."""
        segments = []
        while node != _NONE:
            segments.append(self.segment(node))
            node = self._parents[node]
        return "/".join([self._above, *reversed(segments)])

    def segment(self, node: int) -> str:
        """The last part of its id; a second sibling of the same number ends with `~2`."""
        plain = ids.segment(self.kind(node), self.number(node))
        return ids.repeated(plain, self._repeats[node])

    def parent(self, node: int) -> int | None:
        """The node above, or None for the unit's root."""
        return None if node == ROOT else self._parents[node]

    def kind(self, node: int) -> str:
        """The name of its level."""
        return self._names[self._kinds[node]]

    def status(self, node: int) -> str:
        """`repealed` and the like; empty for a leaf in force, and for containers."""
        return self._names[self._statuses[node]]

    def number(self, node: int) -> str:
        """The publisher's number."""
        return self._text(node, 0)

    def label(self, node: int) -> str:
        """As a reader would know it."""
        return self._restated[node][0] if node in self._restated else self._text(node, 1)

    def identifier(self, node: int) -> str:
        """The publisher's own name of it."""
        return self._restated[node][1] if node in self._restated else self._text(node, 2)

    def is_leaf(self, node: int) -> bool:
        """Whether it has a text of its own."""
        return bool(self._leaves[node])

    def page(self, node: int) -> str:
        """The page that holds a leaf's text."""
        return self._page_names[self._pages[node]]

    def span(self, node: int) -> Span | None:
        """Where on that page; None is all of it."""
        if self._starts[node] == _NONE:
            return None
        return Span(start=self._starts[node], length=self._lengths[node])

    def children(self, node: int) -> Iterator[int]:
        """In the publisher's order."""
        child = self._first[node]
        while child != _NONE:
            yield child
            child = self._next[child]

    def in_reading_order(self) -> Iterator[int]:
        """All nodes, each before those below it."""
        node = ROOT
        while node != _NONE:
            yield node
            following = self._first[node]
            while following == _NONE and node != _NONE:
                following = self._next[node]
                node = self._parents[node]
            node = following

    # How it is kept ---------------------------------------------------------------------------

    def _append(self, parent: int, node: TocNode, *, repeat: int, page: str | None) -> int:
        added = len(self)
        self._parents.append(parent)
        for links in (self._first, self._last, self._next):
            links.append(_NONE)
        self._repeats.append(repeat)
        self._kinds.append(self._names.number(node.kind))
        self._statuses.append(self._names.number(node.status))
        self._leaves.append(node.is_leaf)
        own = node.pages[0] if node.is_leaf and node.pages else page
        self._pages.append(self._page_names.number(own or ""))
        self._starts.append(node.span.start if node.span else _NONE)
        self._lengths.append(node.span.length if node.span else _NONE)
        self._write(node.number, node.label, node.identifier)
        if parent != _NONE:
            self._link(parent, added)
        return added

    def _link(self, parent: int, added: int) -> None:
        before = self._last[parent]
        if before == _NONE:
            self._first[parent] = added
        else:
            self._next[before] = added
        self._last[parent] = added

    def _segments_below(self, node: int) -> Counter[str]:
        below = self.children(node)
        return Counter(ids.segment(self.kind(child), self.number(child)) for child in below)

    def _write(self, *texts: str) -> None:
        for text in texts:
            self._texts += text.encode("utf-8", "surrogatepass")
            self._ends.append(len(self._texts))

    def _text(self, node: int, field: int) -> str:
        position = node * _FIELDS + field
        start = self._ends[position - 1] if position else 0
        return self._texts[start : self._ends[position]].decode("utf-8", "surrogatepass")


class _Names(list[str]):
    """Names that many nodes share, by number."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        known = self._numbers.setdefault(name, len(self))
        if known == len(self):
            self.append(name)
        return known


SHOWN_PARTS: Final = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Walked:
    """What a walk found."""

    tree: Tree
    pages: Mapping[str, Page]
    """The pages it read, by name."""
    published_at: str | None


@dataclass(slots=True)
class _Walk:
    adapter: JurisdictionAdapter
    origin: Origin
    check: Callable[[], None]
    pages: dict[str, Page] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    published_at: str | None = None


async def walk(
    adapter: JurisdictionAdapter,
    above: str,
    root: TocNode,
    origin: Origin,
    *,
    only: Sequence[str] = (),
    check: Callable[[], None] = lambda: None,
) -> Walked:
    """Expand a unit, or that part of it that `only` leads to, until nothing is left to expand.

    `check` is called for every page and every thousand nodes, and may raise: the walk has no side
    effects, so it can be given up at any moment.
    """
    state = _Walk(adapter, origin, check, published_at=root.published_at)
    root = _storable(root)
    tree = Tree(above, root, only=only)
    try:
        await _expand_all(state, tree, root)
    except BudgetSpentError as error:
        raise _too_large(tree, only, error) from error
    if not any(tree.is_leaf(node) for node in range(len(tree))):
        raise SuspiciousYieldError(f"{tree.id(ROOT)} holds no section: the page may be empty")
    return Walked(tree=tree, pages=state.pages, published_at=state.published_at)


async def _expand_all(state: _Walk, tree: Tree, root: TocNode) -> None:
    waiting = deque([(ROOT, root)])
    while waiting:
        wave = [waiting.popleft() for _ in range(min(len(waiting), _width(state.adapter)))]
        readings = (_read(state, node) for _, node in wave)
        for (number, node), pages in zip(wave, await asyncio.gather(*readings), strict=True):
            state.check()
            waiting += tree.grow(number, _listed(state, tree, number, node, pages), node.pages[0])


def _too_large(tree: Tree, only: Sequence[str], error: BudgetSpentError) -> UnitTooLargeError:
    """How to go on with a unit whose walk alone passes the budget."""
    node = ROOT
    for _ in only:
        node = next(tree.children(node), node)
    unit = "/".join([tree.segment(ROOT), *only])
    parts = [tree.segment(child) for child in tree.children(node) if not tree.is_leaf(child)]
    advice = "Allow more (--max-subrequests, --max-memory-mib)"
    if parts:
        shown = ", ".join(parts[:SHOWN_PARTS]) + (", …" if len(parts) > SHOWN_PARTS else "")
        advice += f", or take its {len(parts)} parts one at a time: --unit {unit}/{parts[0]}"
        advice += f" (there are {shown})" if len(parts) > 1 else ""
    return UnitTooLargeError(f"{unit} cannot be walked in one invocation: {error}. {advice}")


def _width(adapter: JurisdictionAdapter) -> int:
    return adapter.info.fetch_concurrency


async def _read(state: _Walk, node: TocNode) -> dict[str, Page]:
    """The pages of one container; each is read once in a walk, or it lists itself."""
    pages: dict[str, Page] = {}
    for name in (*node.pages, *node.optional_pages):
        if name in state.asked:
            raise MalformedError(f"{name} is listed twice: {node.label!r} would contain itself")
        state.asked.add(name)
        try:
            pages[name] = state.pages[name] = await state.origin.read(name)
        except NotFoundError:
            if name in node.pages:
                raise
    return pages


def _listed(
    state: _Walk, tree: Tree, number: int, node: TocNode, pages: Mapping[str, Page]
) -> Iterator[TocNode]:
    for position, found in enumerate(map(_storable, state.adapter.expand(node, pages))):
        if position % 1000 == 0:
            state.check()
        if found.depth == 0:
            tree.restate(number, found)
            state.published_at = found.published_at or state.published_at
        else:
            yield found


def _storable(node: TocNode) -> TocNode:
    """The node without what no database takes: NUL, and halves of characters."""
    texts = node.number, node.label, node.identifier
    number, label, identifier = map(_clean, texts)
    if (number, label, identifier) == texts:
        return node
    return replace(node, number=number, label=label, identifier=identifier)


def _clean(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")

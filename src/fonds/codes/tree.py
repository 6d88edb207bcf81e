"""The tree of one unit in flat arrays: a hundred thousand nodes in some twenty megabytes.

A node is a number, assigned in the order of insertion. Its id is not stored but computed from its
parent's id and its own segment.

`walk` reads a unit in one pass without side effects, and returns its whole tree and no bodies.
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
MAX_DEPTH: Final = 100
"""Levels below the root; no code has so many, so a file that has is hostile."""
_NONE: Final = -1
_FIELDS: Final = 3


class Tree:
    """One unit: its root, and all nodes below it."""

    def __init__(self, parent_id: str, root: TocNode, *, only: Sequence[str] = ()) -> None:
        self._parent_id = parent_id
        """The id of the node above the unit's root."""
        self._only = only
        """Segments below the root: at each of these levels, only the named node is added."""
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
        self._relabelled: dict[int, tuple[str, str]] = {}
        self._append(_NONE, root, repeat=1, page=None)

    def __len__(self) -> int:
        return len(self._parents)

    def relabel(self, node: int, replacement: TocNode) -> None:
        """Replace a node's label and identifier by those on its own page."""
        identifier = replacement.identifier or self.identifier(node)
        self._relabelled[node] = (replacement.label, identifier)

    def grow(self, under: int, listed: Iterator[TocNode], page: str) -> list[tuple[int, TocNode]]:
        """Add the nodes that a page lists below a node; returns those with separate pages."""
        with_pages: list[tuple[int, TocNode]] = []
        ancestors = [under]
        segment_counts = [self._segments_below(under)]
        depth = self.depth(under)
        excluded_depth: int | None = None
        for node in listed:
            if excluded_depth is not None and node.depth > excluded_depth:
                continue
            excluded_depth = None
            if not 1 <= node.depth <= min(len(ancestors), MAX_DEPTH - depth):
                raise MalformedError(f"{node.label!r} is listed {node.depth} levels deep")
            del ancestors[node.depth :], segment_counts[node.depth :]
            segment = ids.segment(node.kind, node.number)
            segment_counts[-1][segment] += 1
            repeat = segment_counts[-1][segment]
            if not self._is_selected(depth + node.depth, ids.repeated(segment, repeat)):
                excluded_depth = node.depth
                continue
            added = self._append(ancestors[-1], node, repeat=repeat, page=page)
            if not node.is_leaf:
                ancestors.append(added)
                segment_counts.append(Counter())
                with_pages += [(added, node)] if node.pages else []
        return with_pages

    def _is_selected(self, depth: int, segment: str) -> bool:
        return depth > len(self._only) or self._only[depth - 1] == segment

    def depth(self, node: int) -> int:
        """The number of nodes above it in the unit."""
        depth = 0
        while (parent := self.parent(node)) is not None:
            node, depth = parent, depth + 1
        return depth

    # Properties of a node --------------------------------------------------------------------

    def id(self, node: int) -> str:
        """The id of a node: `usc/2024/root/title-42/chapter-7`."""
        segments = []
        while node != _NONE:
            segments.append(self.segment(node))
            node = self._parents[node]
        return "/".join([self._parent_id, *reversed(segments)])

    def segment(self, node: int) -> str:
        """The last part of its id; a second sibling of the same number ends with `~2`."""
        segment = ids.segment(self.kind(node), self.number(node))
        return ids.repeated(segment, self._repeats[node])

    def parent(self, node: int) -> int | None:
        """The node above, or None for the unit's root."""
        return None if node == ROOT else self._parents[node]

    def kind(self, node: int) -> str:
        """The name of its level."""
        return self._names[self._kinds[node]]

    def status(self, node: int) -> str:
        """`repealed`, `reserved`, …; empty for a leaf in force, and for containers."""
        return self._names[self._statuses[node]]

    def number(self, node: int) -> str:
        """The publisher's number."""
        return self._text(node, 0)

    def label(self, node: int) -> str:
        """The name for readers."""
        return self._relabelled[node][0] if node in self._relabelled else self._text(node, 1)

    def identifier(self, node: int) -> str:
        """The publisher's identifier."""
        return self._relabelled[node][1] if node in self._relabelled else self._text(node, 2)

    def is_leaf(self, node: int) -> bool:
        """Whether it has a text of its own."""
        return bool(self._leaves[node])

    def page(self, node: int) -> str:
        """The page with a leaf's text."""
        return self._page_names[self._pages[node]]

    def span(self, node: int) -> Span | None:
        """The range of the text on its page; None for the whole page."""
        if self._starts[node] == _NONE:
            return None
        return Span(start=self._starts[node], length=self._lengths[node])

    def children(self, node: int) -> Iterator[int]:
        """The children in the publisher's order."""
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

    # Storage ----------------------------------------------------------------------------------

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
        previous = self._last[parent]
        if previous == _NONE:
            self._first[parent] = added
        else:
            self._next[previous] = added
        self._last[parent] = added

    def _segments_below(self, node: int) -> Counter[str]:
        children = self.children(node)
        return Counter(ids.segment(self.kind(child), self.number(child)) for child in children)

    def _write(self, *texts: str) -> None:
        for text in texts:
            self._texts += text.encode("utf-8", "surrogatepass")
            self._ends.append(len(self._texts))

    def _text(self, node: int, field: int) -> str:
        position = node * _FIELDS + field
        start = self._ends[position - 1] if position else 0
        return self._texts[start : self._ends[position]].decode("utf-8", "surrogatepass")


class _Names(list[str]):
    """Names that many nodes have in common, by number."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self))
        if number == len(self):
            self.append(name)
        return number


LISTED_PARTS: Final = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Walked:
    """The result of a walk."""

    tree: Tree
    pages: Mapping[str, Page]
    """The pages that were read, by name."""
    published_at: str | None


@dataclass(slots=True)
class _Walk:
    adapter: JurisdictionAdapter
    origin: Origin
    check: Callable[[], None]
    pages: dict[str, Page] = field(default_factory=dict)
    requested: set[str] = field(default_factory=set)
    published_at: str | None = None


async def walk(
    adapter: JurisdictionAdapter,
    parent_id: str,
    root: TocNode,
    origin: Origin,
    *,
    only: Sequence[str] = (),
    check: Callable[[], None] = lambda: None,
) -> Walked:
    """Expand all nodes of a unit, or of the part of it that `only` names.

    `check` is called for every page and every thousand nodes, and may raise: the walk has no side
    effects, so it can be stopped at any time.
    """
    state = _Walk(adapter, origin, check, published_at=root.published_at)
    root = _storable(root)
    tree = Tree(parent_id, root, only=only)
    try:
        await _expand_all(state, tree, root)
    except BudgetSpentError as error:
        raise _too_large(tree, only, error) from error
    if not any(tree.is_leaf(node) for node in range(len(tree))):
        raise SuspiciousYieldError(f"{tree.id(ROOT)} has no section: the page may be empty")
    return Walked(tree=tree, pages=state.pages, published_at=state.published_at)


async def list_parts(
    adapter: JurisdictionAdapter,
    parent_id: str,
    root: TocNode,
    origin: Origin,
    *,
    only: Sequence[str] = (),
) -> list[str]:
    """The segments directly below a unit, or below the part of it that `only` names.

    Only the pages on the way there are read, so that a unit too large to be walked can be divided.
    """
    state = _Walk(adapter, origin, lambda: None)
    root = _storable(root)
    tree = Tree(parent_id, root, only=only)
    unread = {ROOT: root}
    node = ROOT
    for _ in range(len(only) + 1):
        if container := unread.pop(node, None):
            pages = await _read(state, container)
            listed = _listed(state, tree, node, container, pages)
            unread |= dict(tree.grow(node, listed, container.pages[0]))
        children = list(tree.children(node))
        if tree.depth(node) == len(only):
            return [tree.segment(child) for child in children]
        node = children[0]
    return []


async def _expand_all(state: _Walk, tree: Tree, root: TocNode) -> None:
    waiting = deque([(ROOT, root)])
    while waiting:
        wave = [waiting.popleft() for _ in range(min(len(waiting), _width(state.adapter)))]
        reads = (_read(state, node) for _, node in wave)
        for (number, node), pages in zip(wave, await asyncio.gather(*reads), strict=True):
            state.check()
            waiting += tree.grow(number, _listed(state, tree, number, node, pages), node.pages[0])


def _too_large(tree: Tree, only: Sequence[str], error: BudgetSpentError) -> UnitTooLargeError:
    """The error for a unit whose walk alone exceeds the budget, with advice."""
    node = ROOT
    for _ in only:
        node = next(tree.children(node), node)
    unit = "/".join([tree.segment(ROOT), *only])
    parts = [tree.segment(child) for child in tree.children(node) if not tree.is_leaf(child)]
    advice = "Allow more (--budget)"
    if parts:
        listed = ", ".join(parts[:LISTED_PARTS]) + (", …" if len(parts) > LISTED_PARTS else "")
        advice += f", or ingest its {len(parts)} parts one at a time: --unit {unit}/{parts[0]}"
        advice += f" (there are {listed})" if len(parts) > 1 else ""
    return UnitTooLargeError(f"{unit} cannot be walked in one invocation: {error}. {advice}")


def _width(adapter: JurisdictionAdapter) -> int:
    return adapter.info.fetch_concurrency


async def _read(state: _Walk, node: TocNode) -> dict[str, Page]:
    """Read the pages of one container; a page that is read twice in a walk lists itself."""
    pages: dict[str, Page] = {}
    for name in (*node.pages, *node.optional_pages):
        if name in state.requested:
            raise MalformedError(f"{name} is listed twice: {node.label!r} would contain itself")
        state.requested.add(name)
        try:
            pages[name] = state.pages[name] = await state.origin.read(name)
        except NotFoundError:
            if name in node.pages:
                raise
    return pages


def _listed(
    state: _Walk, tree: Tree, number: int, node: TocNode, pages: Mapping[str, Page]
) -> Iterator[TocNode]:
    for position, child in enumerate(map(_storable, state.adapter.expand(node, pages))):
        if position % 1000 == 0:
            state.check()
        if child.depth == 0:
            tree.relabel(number, child)
            state.published_at = child.published_at or state.published_at
        else:
            yield child


def _storable(node: TocNode) -> TocNode:
    """The node without characters that databases reject: NUL and surrogates."""
    texts = node.number, node.label, node.identifier
    number, label, identifier = map(_clean, texts)
    if (number, label, identifier) == texts:
        return node
    return replace(node, number=number, label=label, identifier=identifier)


def _clean(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")

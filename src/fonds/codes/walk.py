"""The walk: one read-only pass over a unit, which gives its whole tree and no bodies."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fonds.codes.tree import ROOT, Tree
from fonds.errors import (
    BudgetSpentError,
    MalformedError,
    NotFoundError,
    SuspiciousYieldError,
    UnitTooLargeError,
)
from fonds.sources.jurisdiction import JurisdictionAdapter, Origin, Page, TocNode

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

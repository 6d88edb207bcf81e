"""Reading a code from files of this machine: every unit walked, every leaf normalized."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fonds import ids
from fonds.codes.origin import LocalOrigin
from fonds.codes.plan import head_of, plan_lines, read_batches
from fonds.codes.tree import Walked, walk
from fonds.model import NormalizedBody
from fonds.normalize.registry import get_normalizer
from fonds.sources.jurisdiction import JurisdictionAdapter, Leaf, Shard, TocNode


@dataclass(frozen=True, kw_only=True)
class Section:
    """A leaf, what its adapter says of it, and its bytes."""

    leaf: Leaf
    shard: Shard
    data: bytes

    def normalized(self) -> NormalizedBody:
        """Its bytes as Markdown."""
        return get_normalizer(self.shard.normalizer).to_markdown(self.data)


def unit_roots(adapter: JurisdictionAdapter, path: Path, version: str) -> list[TocNode]:
    """The units that a folder or a file holds."""

    async def collect() -> list[TocNode]:
        origin = LocalOrigin(path, base=adapter.info.base, version=version)
        return [root async for root in adapter.discover_unit_roots(origin)]

    return asyncio.run(collect())


def walk_unit(adapter: JurisdictionAdapter, root: TocNode, path: Path, version: str) -> Walked:
    """The whole tree of one unit."""
    origin = LocalOrigin(path, base=adapter.info.base, version=version)
    above = ids.tree_root(adapter.info.name, version)
    return asyncio.run(walk(adapter, above, root, origin))


def outline(walked: Walked) -> list[str]:
    """Every node in reading order: its id below the unit's root, and its label."""
    tree = walked.tree
    return [f"{tree.id(node)}  {tree.label(node)}" for node in tree.in_reading_order()]


def sections(
    adapter: JurisdictionAdapter, walked: Walked, path: Path, version: str
) -> Iterator[Section]:
    """Every leaf in reading order, with its bytes."""
    origin = LocalOrigin(path, base=adapter.info.base, version=version)
    above = ids.tree_root(adapter.info.name, version)
    head = head_of(walked, source=adapter.info.name, version=version, adapter="", above=above)
    _, *lines = plan_lines(walked, head)
    for batch in read_batches(head, lines):
        for node in batch.leaves:
            data = asyncio.run(origin.read(node.page or "")).read()
            if node.span:
                data = data[node.span.start : node.span.start + node.span.length]
            leaf = node.leaf(head)
            yield Section(leaf=leaf, shard=adapter.shardify(leaf), data=data)


def as_golden(section: Section) -> dict[str, Any]:
    """A section in the form golden files keep."""
    shard = section.shard
    return {
        "id": section.leaf.id,
        "lineage": [step.label for step in section.leaf.lineage],
        "status": section.leaf.status,
        "title": shard.title,
        "citation": shard.citation_string,
        "url": shard.source_url,
        "aliases": list(shard.aliases),
        "published_at": shard.published_at,
        "markdown": section.normalized().markdown,
    }

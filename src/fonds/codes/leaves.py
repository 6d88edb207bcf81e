"""A leaf of a walked tree, as its adapter is asked about it."""

from __future__ import annotations

from fonds.codes.tree import Tree
from fonds.sources.jurisdiction import Leaf, Step


def leaf_of(tree: Tree, node: int, version: str, published_at: str | None) -> Leaf:
    """All that was said of a leaf and of the nodes above it."""
    return Leaf(
        id=tree.id(node),
        version=version,
        kind=tree.kind(node),
        number=tree.number(node),
        label=tree.label(node),
        identifier=tree.identifier(node),
        status=tree.status(node),
        lineage=tuple(_steps_above(tree, node)),
        page=tree.page(node),
        published_at=published_at,
    )


def _steps_above(tree: Tree, node: int) -> list[Step]:
    steps = []
    above = tree.parent(node)
    while above is not None:
        step = Step(kind=tree.kind(above), number=tree.number(above), label=tree.label(above))
        steps.append(step)
        above = tree.parent(above)
    return steps[::-1]

"""Plans of random trees, written and read again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.codes.trees import (
    DEEP,
    SHAPES,
    FakeCode,
    Item,
    MemoryOrigin,
    Shape,
    chain,
    flat,
    pages_of,
    toc_page,
    units,
    walk_first_unit,
)

from fonds.codes import plan
from fonds.codes.invocation import UnitOrder, plan_head
from fonds.codes.plan import (
    BATCH_BYTES,
    NodeBatch,
    PlanHead,
    head_of,
    plan_lines,
    read_batches,
    read_head,
)
from fonds.codes.tree import ROOT, Tree, Walked
from fonds.sources.jurisdiction import Step, TocNode

ABOVE = "fakecode/2024/root"
shapes = st.sampled_from(SHAPES)


def walked_of(unit: Item, shape: Shape) -> Walked:
    return walk_first_unit(MemoryOrigin(pages_of([unit], shape)))


def head(walked: Walked) -> PlanHead:
    return head_of(walked, source="fakecode", version="2024", adapter="fakecode@1", above=ABOVE)


def written(walked: Walked) -> list[bytes]:
    return list(plan_lines(walked, head(walked)))


def read(lines: Sequence[bytes]) -> tuple[PlanHead, list[NodeBatch]]:
    told = read_head(lines[0])
    return told, list(read_batches(told, lines[1:]))


def lineage(tree: Tree, node: int) -> tuple[Step, ...]:
    steps: list[Step] = []
    above = tree.parent(node)
    while above is not None:
        kind, number, label = tree.kind(above), tree.number(above), tree.label(above)
        steps.insert(0, Step(kind=kind, number=number, label=label))
        above = tree.parent(above)
    return tuple(steps)


def small_batches(monkeypatch: pytest.MonkeyPatch, *, nodes: int, pages: int, size: int) -> None:
    for name, bound in (("BATCH_NODES", nodes), ("BATCH_PAGES", pages), ("BATCH_BYTES", size)):
        monkeypatch.setattr(plan, name, bound)


@settings(max_examples=60)
@given(units(), shapes, st.integers(1, 12), st.integers(1, 5), st.integers(1, 300))
@example(chain(DEEP), "page per node", 1, 1, 1)
def test_plan_that_is_read_again_is_the_tree(
    unit: Item, shape: Shape, nodes: int, pages: int, size: int
) -> None:
    walked = walked_of(unit, shape)
    tree = walked.tree
    with pytest.MonkeyPatch.context() as patch:
        small_batches(patch, nodes=nodes, pages=pages, size=size)
        told, batches = read(written(walked))
    planned = [node for batch in batches for node in batch.nodes]
    assert [batch.number for batch in batches] == list(range(told.batches))
    assert [node.position for node in planned] == list(range(len(tree)))
    for node, number in zip(planned, tree.in_reading_order(), strict=True):
        assert node.id == tree.id(number) == f"{ABOVE}/{node.path}"
        assert node.lineage == lineage(tree, number)
        assert (node.kind, node.number) == (tree.kind(number), tree.number(number))
        assert (node.label, node.status) == (tree.label(number), tree.status(number))
        assert (node.identifier, node.span) == (tree.identifier(number), tree.span(number))
        assert node.page == (tree.page(number) if tree.is_leaf(number) else None)


@settings(max_examples=60)
@given(units(), shapes, st.integers(1, 12), st.integers(1, 5), st.integers(1, 300))
def test_batches_keep_to_their_bounds_and_are_no_smaller_than_need_be(
    unit: Item, shape: Shape, nodes: int, pages: int, size: int
) -> None:
    walked = walked_of(unit, shape)
    with pytest.MonkeyPatch.context() as patch:
        small_batches(patch, nodes=nodes, pages=pages, size=size)
        _, batches = read(written(walked))
    costs = [_cost(batch, walked) for batch in batches]
    firsts = [_cost(NodeBatch(number=0, nodes=batch.nodes[:1]), walked) for batch in batches[1:]]
    for batch, (count, own, length) in zip(batches, costs, strict=True):
        single = sum(node.span is not None for node in batch.nodes) == 1
        assert count <= nodes
        assert own <= pages
        assert length <= size or single
    for cost, first in zip(costs, firsts, strict=False):
        together = [one + other for one, other in zip(cost, first, strict=True)]
        assert together[0] > nodes or together[1] > pages or together[2] > size


def _cost(batch: NodeBatch, walked: Walked) -> tuple[int, int, int]:
    own = sum(node.page not in walked.pages for node in batch.leaves)
    return len(batch.nodes), own, sum(node.span.length for node in batch.nodes if node.span)


def test_bounds_are_those_of_the_design() -> None:
    _, by_nodes = read(written(walked_of(flat(999), "one page")))
    assert [len(batch.nodes) for batch in by_nodes] == [250] * 4
    _, by_pages = read(written(walked_of(flat(120), "page per node")))
    assert [len(batch.leaves) for batch in by_pages] == [50, 50, 20]
    _, by_bytes = read(written(walked_of(flat(9, text="x" * 300_000), "one page")))
    assert [len(batch.leaves) for batch in by_bytes] == [3, 3, 3]


def test_section_longer_than_a_batch_is_a_batch_of_its_own() -> None:
    sections = flat(5).children
    long = Item(kind="section", number="0", label="§ 0", text="x" * (3 * BATCH_BYTES))
    unit = Item(kind="title", number="1", label="T", children=(*sections[:2], long, *sections[2:]))
    _, batches = read(written(walked_of(unit, "one page")))
    assert [[leaf.number for leaf in batch.leaves] for batch in batches] == [
        ["1", "2"],
        ["0"],
        ["3", "4", "5"],
    ]


@settings(max_examples=30)
@given(units(), shapes)
def test_same_tree_gives_the_same_bytes(unit: Item, shape: Shape) -> None:
    assert written(walked_of(unit, shape)) == written(walked_of(unit, shape))


@settings(max_examples=30)
@given(units(), shapes)
def test_head_describes_the_unit_and_is_read_as_it_was_written(unit: Item, shape: Shape) -> None:
    walked = walked_of(unit, shape)
    expected = head(walked)
    told, batches = read(written(walked))
    assert told == expected
    leaves = [leaf for batch in batches for leaf in batch.leaves]
    assert told.id == walked.tree.id(ROOT)
    assert (told.nodes, told.shards) == (len(walked.tree), len(leaves))
    assert told.shards == len(list(unit.leaves()))
    assert told.fetches == (told.shards if shape == "page per node" else 0)
    assert told.bytes == (
        0 if shape == "page per node" else sum(len(leaf.data) for leaf in unit.leaves())
    )
    assert dict(told.pages).keys() == walked.pages.keys()


def test_input_hash_changes_with_any_page() -> None:
    pages = pages_of([flat(3)], "one page")
    other = {**pages, "0.toc": pages["0.toc"].replace(b"pay", b"owe")}
    heads = [head(walk_first_unit(MemoryOrigin(served))) for served in (pages, dict(pages), other)]
    assert heads[0].input_sha256 == heads[1].input_sha256 != heads[2].input_sha256


@settings(max_examples=30)
@given(units(), shapes, st.data())
def test_plan_of_a_part_has_the_name_of_the_part_and_the_same_ids(
    unit: Item, shape: Shape, data: st.DataObject
) -> None:
    whole = walked_of(unit, shape).tree
    leaves = [node for node in range(len(whole)) if whole.is_leaf(node)]
    leaf = whole.id(data.draw(st.sampled_from(leaves)))
    segments = leaf.removeprefix(f"{ABOVE}/").split("/")
    only = segments[1 : data.draw(st.integers(1, len(segments))) + 1]
    walked = walk_first_unit(MemoryOrigin(pages_of([unit], shape)), only=only)
    root = TocNode(kind=unit.kind, number=unit.number, label="")
    order = UnitOrder(source="fakecode", version="2024", location=None, root=root, only=tuple(only))
    told = plan_head(order, FakeCode(), walked)
    _, *lines = plan_lines(walked, told)
    planned = [node for batch in read_batches(told, lines) for node in batch.nodes]
    assert told.id == "/".join([ABOVE, segments[0], *only])
    assert [node.id for node in planned] == [
        walked.tree.id(node) for node in walked.tree.in_reading_order()
    ]
    assert leaf in {node.id for node in planned}


def test_surrogate_in_a_number_or_label_can_be_stored() -> None:
    leaf = TocNode(kind="section", number="1\ud800", label="§ 1\ud800", is_leaf=True)
    root = TocNode(kind="title", number="1", label="T", pages=("root",))
    pages = {"index.toc": toc_page([(root, None)]), "root": toc_page([(leaf, b"text")])}
    walked = walk_first_unit(MemoryOrigin(pages))
    _, (batch,) = read(written(walked))
    assert [node.id for node in batch.leaves] == [walked.tree.id(1)]

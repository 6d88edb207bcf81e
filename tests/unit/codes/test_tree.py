"""Ids of random trees, walked in every shape and order."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.codes.trees import (
    DEEP,
    SHAPES,
    Item,
    MemoryOrigin,
    Shape,
    chain,
    flat,
    long_listing,
    named,
    pages_of,
    toc_page,
    units,
    walk_first_unit,
)

from fonds import ids
from fonds.codes.tree import ROOT, Tree
from fonds.errors import (
    BudgetSpentError,
    MalformedError,
    NotFoundError,
    SuspiciousYieldError,
    UnitTooLargeError,
)
from fonds.sources.jurisdiction import TocNode

ABOVE = "fakecode/2024/root"
shapes = st.sampled_from(SHAPES)
LEAF = TocNode(kind="section", number="1", label="§ 1", is_leaf=True)
PART = TocNode(kind="part", number="1", label="Part 1")


def tree_of(unit: Item, shape: Shape, *, seed: int = 0, at_once: int = 4) -> Tree:
    origin = MemoryOrigin(pages_of([unit], shape), random.Random(seed))
    return walk_first_unit(origin, at_once=at_once).tree


def ids_of(tree: Tree) -> list[str]:
    return [tree.id(node) for node in tree.in_reading_order()]


def walk_pages(**pages: bytes) -> Tree:
    """The tree of a unit whose first page is `root`."""
    index = toc_page([(TocNode(kind="title", number="1", label="", pages=("root",)), None)])
    return walk_first_unit(MemoryOrigin({"index.toc": index, **pages})).tree


@settings(max_examples=60)
@given(units(), shapes)
@example(chain(DEEP), "one page")
@example(chain(DEEP), "page per node")
def test_ids_are_in_reading_order_and_made_of_kinds_and_numbers(unit: Item, shape: Shape) -> None:
    expected = list(named(ABOVE, unit))
    tree = tree_of(unit, shape)
    assert len(tree) == len(expected)
    assert ids_of(tree) == [known for known, _ in expected]
    for node, (_, item) in zip(tree.in_reading_order(), expected, strict=True):
        assert (tree.kind(node), tree.number(node)) == (item.kind, item.number)
        assert (tree.label(node), tree.status(node)) == (item.label, item.status)
        assert tree.is_leaf(node) == (item.text is not None)


@settings(max_examples=60)
@given(units(), shapes)
def test_every_parent_id_is_a_strict_prefix_at_a_slash_and_no_id_occurs_twice(
    unit: Item, shape: Shape
) -> None:
    tree = tree_of(unit, shape)
    for node in range(len(tree)):
        parent = tree.parent(node)
        above = ABOVE if parent is None else tree.id(parent)
        before, slash, segment = tree.id(node).rpartition("/")
        assert (before, slash) == (above, "/")
        assert segment not in {"", ".", ".."}
        assert ids.tree_parent(tree.id(node)) == above
    assert len(set(ids_of(tree))) == len(tree)
    assert [node for node in range(len(tree)) if tree.parent(node) is None] == [ROOT]


@settings(max_examples=40)
@given(units(), shapes, st.integers(0, 2**32), st.integers(1, 8))
def test_tree_does_not_depend_on_the_order_of_responses(
    unit: Item, shape: Shape, seed: int, at_once: int
) -> None:
    first, again = tree_of(unit, shape), tree_of(unit, shape, seed=seed, at_once=at_once)
    assert ids_of(first) == ids_of(again)
    told = [
        [(tree.label(node), tree.page(node), tree.span(node)) for node in tree.in_reading_order()]
        for tree in (first, again)
    ]
    assert told[0] == told[1]


def test_responses_really_are_out_of_order() -> None:
    parts = tuple(
        Item(kind="part", number=str(n), label=f"Part {n}", children=flat(2).children)
        for n in range(8)
    )
    pages = pages_of([Item(kind="title", number="1", label="T", children=parts)], "page per node")
    answers = set()
    for seed in range(3):
        origin = MemoryOrigin(pages, random.Random(seed))
        walk_first_unit(origin, at_once=8)
        answers.add(tuple(origin.answered))
    assert len(answers) == 3


@settings(max_examples=40)
@given(units())
def test_ids_do_not_depend_on_the_shape_of_the_publication(unit: Item) -> None:
    assert len({tuple(ids_of(tree_of(unit, shape))) for shape in SHAPES}) == 1


@settings(max_examples=40)
@given(units(), shapes, st.data())
def test_leaf_is_found_on_its_page_byte_for_byte(
    unit: Item, shape: Shape, data: st.DataObject
) -> None:
    pages = pages_of([unit], shape)
    tree = walk_first_unit(MemoryOrigin(pages)).tree
    leaves = [node for node in tree.in_reading_order() if tree.is_leaf(node)]
    node, item = data.draw(st.sampled_from(list(zip(leaves, unit.leaves(), strict=True))))
    text, span = pages[tree.page(node)], tree.span(node)
    assert (text[span.start : span.start + span.length] if span else text) == item.data


@settings(max_examples=60)
@given(units(), shapes, st.data())
def test_part_of_a_unit_is_the_nodes_on_its_path_and_below_it(
    unit: Item, shape: Shape, data: st.DataObject
) -> None:
    everything = list(named(ABOVE, unit))
    worthy = [known for known, item in everything if any(item.leaves())]
    chosen = data.draw(st.sampled_from(worthy))
    only = chosen.removeprefix(f"{ABOVE}/").split("/")[1:]
    tree = walk_first_unit(MemoryOrigin(pages_of([unit], shape)), only=only).tree
    assert ids_of(tree) == [
        known
        for known, _ in everything
        if f"{chosen}/".startswith(f"{known}/") or f"{known}/".startswith(f"{chosen}/")
    ]


def test_missing_part_is_suspicious() -> None:
    origin = MemoryOrigin(pages_of([flat(3)], "one page"))
    with pytest.raises(SuspiciousYieldError, match="no section"):
        walk_first_unit(origin, only=["section-4"])


def test_other_parts_are_not_read() -> None:
    parts = tuple(
        Item(kind="part", number=str(n), label=f"Part {n}", children=flat(2).children)
        for n in range(5)
    )
    unit = Item(kind="title", number="1", label="T", children=parts)
    origin = MemoryOrigin(pages_of([unit], "page per container"))
    walk_first_unit(origin, only=["part-3"])
    assert origin.answered == ["index.toc", "0.toc", "0/3.toc"]


def test_second_sibling_of_a_number_keeps_its_position_under_a_later_page() -> None:
    twice = tuple(
        Item(kind="part", number="1", label=f"Part 1, {n}", children=flat(n).children)
        for n in (1, 2)
    )
    unit = Item(kind="title", number="1", label="T", children=twice)
    for seed in range(5):
        assert ids_of(tree_of(unit, "page per container", seed=seed))[1:] == [
            f"{ABOVE}/title-1/part-1",
            f"{ABOVE}/title-1/part-1/section-1",
            f"{ABOVE}/title-1/part-1~2",
            f"{ABOVE}/title-1/part-1~2/section-1",
            f"{ABOVE}/title-1/part-1~2/section-2",
        ]


def test_levels_below_a_leaf_are_malformed() -> None:
    with pytest.raises(MalformedError, match="2 levels deep"):
        walk_pages(root=toc_page([(LEAF, b"text"), (TocNode(kind="p", label="p", depth=2), None)]))


def test_page_that_lists_itself_is_malformed() -> None:
    with pytest.raises(MalformedError, match="contain itself"):
        walk_pages(root=toc_page([(TocNode(kind="p", label="p", pages=("root",)), None)]))


@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_page_that_two_containers_list_is_malformed_however_many_are_fetched_at_once(
    at_once: int,
) -> None:
    parts = [
        (TocNode(kind="part", number=str(n), label=f"Part {n}", pages=("shared",)), None)
        for n in range(2)
    ]
    title = TocNode(kind="title", number="1", label="", pages=("root",))
    pages = {
        "index.toc": toc_page([(title, None)]),
        "root": toc_page(parts),
        "shared": toc_page([(LEAF, b"text")]),
    }
    for seed in range(5):
        with pytest.raises(MalformedError, match="listed twice"):
            walk_first_unit(MemoryOrigin(pages, random.Random(seed)), at_once=at_once)


def test_excessive_nesting_is_an_error() -> None:
    listing = [
        (TocNode(kind="part", number="1", label="Part", depth=depth), None)
        for depth in range(1, 150)
    ]
    leaf = TocNode(kind="section", number="1", label="§ 1", is_leaf=True, depth=150)
    beside = TocNode(kind="section", number="2", label="§ 2", is_leaf=True)
    with pytest.raises(MalformedError):
        walk_pages(root=toc_page([*listing, (leaf, b"deep"), (beside, b"beside")]))


def test_unit_without_a_leaf_is_suspicious() -> None:
    with pytest.raises(SuspiciousYieldError, match="no section"):
        walk_pages(root=toc_page([(PART, None)]))


def test_missing_page_fails_the_walk_and_a_missing_supplement_does_not() -> None:
    with pytest.raises(NotFoundError):
        walk_pages(root=toc_page([(TocNode(kind="p", label="p", pages=("gone",)), None)]))
    part = TocNode(kind="part", label="Part", pages=("part",), optional_pages=("extra",))
    pages = {"root": toc_page([(part, None)]), "part": toc_page([(LEAF, b"text")])}
    assert len(walk_pages(**pages)) == 3
    assert len(walk_pages(**pages, extra=toc_page([(LEAF, b"more")]))) == 4


def test_walk_can_be_stopped_at_every_page_and_thousand_nodes() -> None:
    origin = MemoryOrigin(pages_of([flat(3500)], "one page"))
    calls = 0

    def refuse() -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise BudgetSpentError("enough")

    with pytest.raises(UnitTooLargeError, match="enough"):
        walk_first_unit(origin, check=refuse)


@pytest.mark.long
def test_hundred_thousand_nodes_take_less_than_forty_mebibytes() -> None:
    root = TocNode(kind="title", number="42", label="TITLE 42", pages=("title",))
    tracemalloc.start()
    try:
        tree = Tree(ABOVE, root)
        tree.grow(ROOT, long_listing(99_999), "title")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(tree) == 100_000
    assert held < 40 << 20
    assert len(set(_all_ids(tree))) == 100_000


def _all_ids(tree: Tree) -> Iterator[str]:
    return (tree.id(node) for node in tree.in_reading_order())


def test_characters_that_databases_reject_are_replaced_before_ids_are_made() -> None:
    page = toc_page(
        [(TocNode(kind="section", number="1\0", label="\ud800 a", is_leaf=True), b"Every keeper.")]
    )
    tree = walk_pages(root=page)
    [leaf] = tree.children(0)
    assert tree.number(leaf) == "1\ufffd"
    assert tree.label(leaf) == "? a"

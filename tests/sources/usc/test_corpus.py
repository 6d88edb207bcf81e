"""Every real title: each of its sections is a node, and every word of it is in a node's text."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from tests.sources.statutes import unit_roots, walk_unit

from fonds.codes.origin import LocalOrigin
from fonds.codes.tree import Walked
from fonds.normalize.registry import get_normalizer
from fonds.sources.usc import source
from fonds.sources.usc.outline import past_page

WORD = re.compile(r"[^\W_]+")
NUMBER = re.compile(r"\d[\w.-]*\w|\d|\bto\b|,")
WITHIN = (
    "ancestor::*[contains('|note|notes|quotedContent|section|courtRule|', "
    "concat('|', local-name(), '|'))]"
)


def titles(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.xml") if b"<uscDoc" in path.read_bytes()[:2000])


def parsed(path: Path) -> Any:
    parser = etree.XMLParser(huge_tree=True, remove_comments=True, remove_pis=True)
    return etree.parse(path, parser).getroot()


def section_numbers(root: Any) -> list[list[str]]:
    """The numbers of all sections and rules, read from the XML alone."""
    found = root.xpath(f"//*[local-name()='section' or local-name()='courtRule'][not({WITHIN})]")
    return [
        _number("".join(section.xpath("*[local-name()='num'][1]//text()"))) for section in found
    ]


def _number(printed: str) -> list[str]:
    return NUMBER.findall(printed.replace("–", "-"))


def words_of(root: Any) -> Counter[str]:
    """All words, but for metadata and the tables of contents of levels."""
    return Counter(WORD.findall("\n".join(_texts(root)).lower()))


def _texts(element: Any) -> Iterator[str]:
    name = etree.QName(element).localname
    if name == "meta" or (name == "toc" and not element.xpath(WITHIN)):
        return
    yield element.text or ""
    for child in element:
        yield from _texts(child)
        yield child.tail or ""


def walked_title(path: Path) -> Walked:
    [root] = unit_roots(source, path, "2024")
    return walk_unit(source, root, path, "2024")


def leaf_numbers(walked: Walked) -> list[list[str]]:
    tree = walked.tree
    leaves = [node for node in tree.in_reading_order() if tree.is_leaf(node)]
    return [_number(tree.number(node)) for node in leaves if tree.kind(node) != "front"]


def words_in_nodes(walked: Walked, path: Path) -> Counter[str]:
    tree, data = walked.tree, path.read_bytes()
    texts: list[str] = []
    for node in range(len(tree)):
        if span := tree.span(node):
            part = data[span.start : span.start + span.length]
            texts.append(get_normalizer("uslm_v1").to_markdown(part).markdown)
        else:
            texts.append(tree.label(node))
    return Counter(WORD.findall("\n".join(texts).lower()))


@pytest.mark.parametrize("name", ["codes/usc-mono", "federal/usc"])
def test_every_section_of_a_title_is_a_leaf_in_its_place(
    corpus: Callable[[str], Path], name: str
) -> None:
    found = titles(corpus(name))
    assert len(found) >= 16
    for path in found:
        expected = section_numbers(parsed(path))
        assert expected
        assert leaf_numbers(walked_title(path)) == expected, path.name


def test_every_word_of_a_title_is_in_a_node(corpus: Callable[[str], Path]) -> None:
    for path in titles(corpus("codes/usc-mono"))[::2]:
        words = words_of(parsed(path))
        lost = words - words_in_nodes(walked_title(path), path)
        # What is left are words that markup divides: `60<sup>a</sup>`, `sub<i>section</i>`.
        assert lost.total() / words.total() < 0.0005, (path.name, lost.most_common(10))


def test_single_sections_are_read_in_the_order_of_the_code(corpus: Callable[[str], Path]) -> None:
    folder = corpus("codes/usc-frag")
    for root in unit_roots(source, folder, "2024"):
        tree = walk_unit(source, root, folder, "2024").tree
        pages = [folder / tree.page(node) for node in range(1, len(tree))]
        assert sorted(pages) == sorted((folder / root.pages[0]).parent.glob("*.xml"))
        for node in range(1, len(tree), 25):
            [number] = section_numbers(parsed(folder / tree.page(node)))
            assert _number(tree.number(node)) == number
        numbers = [int(re.match(r"\d+", tree.number(node))[0]) for node in range(1, len(tree))]  # type: ignore[index]
        assert numbers == sorted(numbers)


def test_the_edition_is_told_by_the_titles(corpus: Callable[[str], Path]) -> None:
    origin = LocalOrigin(corpus("codes/usc-mono"), base=source.info.base)
    assert asyncio.run(source.newest_version(origin)) == "119-36"


def test_every_release_point_has_a_page(corpus: Callable[[str], Path]) -> None:
    listed = json.loads(
        (corpus("federal/usc") / "releasepoints" / "releasepoints.json").read_bytes()
    )
    for point in listed["releasePoints"]:
        assert source.info.base + str(past_page(point["name"])) == point["url"]

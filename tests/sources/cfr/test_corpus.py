"""Every real file gives its sections in order, and no word of it is lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lxml import etree
from tests.sources.statutes import unit_roots, walk_unit

from fonds.codes.tree import Walked
from fonds.normalize.registry import get_normalizer
from fonds.sources.cfr import source

VERSION = "2024-01-01"
WORD = re.compile(r"[^\W_]+")
USLM = "{http://schemas.gpo.gov/xml/uslm}"
# What repeats other text, or belongs to the book: contents, running heads, finding aids.
BESIDE = {"FDSYS", "CONTENTS", "AMDDATE"}
BESIDE_USLM = {"meta", "preface", "backMatter", "toc", "leftRunningHead", "rightRunningHead"}
LEVELS = {"PART", "SUBPART", "SUBJGRP"}


def real_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.xml"))


def walked(path: Path) -> Walked:
    [root] = unit_roots(source, path, VERSION)
    return walk_unit(source, root, path, VERSION)


def numbers(unit: Walked, kind: str) -> list[str]:
    tree = unit.tree
    nodes = (node for node in tree.in_reading_order() if tree.kind(node) == kind)
    return [tree.number(node) for node in nodes]


def plain(printed: str) -> str:
    return " ".join(printed.replace("§", "").split()).rstrip(".")


def sections_in(root: Any) -> Iterator[str]:
    """The numbers of all sections but quoted ones, as another reader finds them."""
    for section in root.iter("DIV8", "SECTION", f"{USLM}section"):
        if section.tag == "DIV8":
            yield plain(section.get("N"))
        elif section.tag == "SECTION":
            if next(section.iterancestors("REVTXT"), None) is None:
                yield plain("".join(section.find("SECTNO").itertext()))
        else:
            yield plain("".join(section.find(f"{USLM}num").itertext()))


def words(texts: Iterator[str]) -> Counter[str]:
    return Counter(WORD.findall(" ".join(texts).lower()))


def texts_in(element: Any) -> Iterator[str]:
    name = etree.QName(element).localname if isinstance(element.tag, str) else ""
    is_running_head = name.lower() == "ear" and _is_level(element.getparent())
    if name and name not in BESIDE and name not in BESIDE_USLM and not is_running_head:
        yield element.text or ""
        for child in element:
            yield from texts_in(child)
    yield element.tail or ""


def _is_level(element: Any) -> bool:
    return element.tag in LEVELS or element.tag.startswith(USLM)


def texts_of(unit: Walked, path: Path) -> Iterator[str]:
    """The headings of levels, and the texts of leaves."""
    normalizer = get_normalizer("uslm_v1" if "uslm" in path.name else "ecfr_xml_v1")
    data, tree = path.read_bytes(), unit.tree
    for node in tree.in_reading_order():
        if not tree.is_leaf(node):
            yield tree.label(node)
        elif span := tree.span(node):
            yield normalizer.to_markdown(data[span.start : span.start + span.length]).markdown


def test_every_file_gives_its_sections_in_order(corpus: Callable[[str], Path]) -> None:
    files = real_files(corpus("federal/cfr"))
    assert len(files) == 39
    total = 0
    for path in files:
        expected = list(sections_in(etree.parse(path).getroot()))
        assert numbers(walked(path), "section") == expected, path.name
        total += len(expected)
    assert total > 5_000


def test_every_appendix_is_a_leaf(corpus: Callable[[str], Path]) -> None:
    for path in real_files(corpus("federal/cfr")):
        found = numbers(walked(path), "appendix")
        assert len(found) == path.read_bytes().count(b"</APPENDIX>"), path.name


def test_no_word_is_lost(corpus: Callable[[str], Path]) -> None:
    files = real_files(corpus("federal/cfr"))
    lost_of_all = total = 0
    for path in [*files[:-2:4], *files[-1:]]:
        expected = words(texts_in(etree.parse(path).getroot()))
        lost = expected - words(texts_of(walked(path), path))
        assert lost.total() <= 0.001 * expected.total(), (path.name, lost.most_common(20))
        lost_of_all += lost.total()
        total += expected.total()
    assert total > 100_000
    assert lost_of_all <= 0.0005 * total


def test_a_folder_of_editions_gives_one_of_them(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/cfr")
    roots = unit_roots(source, folder, "2012")
    assert [(root.number, len(root.pages)) for root in roots] == [("12", 13), ("37", 1)]

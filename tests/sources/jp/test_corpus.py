"""Every real law: counted and read a second time by means that share nothing with the adapter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lxml import etree
from tests.sources.statutes import Section, sections, unit_roots, walk_unit

from fonds.codes.tree import Walked
from fonds.normalize.egov import Egov
from fonds.sources.jp import source

VERSION = "2024-04-01"
QUOTED = "ancestor::NewProvision or ancestor::TableColumn or ancestor::QuoteStruct"


def characters(text: str) -> Counter[str]:
    """Japanese has no spaces between words; every character that is no space is counted."""
    return Counter(re.sub(r"\s", "", text))


def read_text(law: Any) -> str:
    """All that is printed of a law but its table of contents."""
    for contents in law.findall(".//TOC"):
        contents.getparent().remove(contents)
    return "".join(law.itertext())


def labels(tree: Walked) -> str:
    nodes = range(len(tree.tree))
    return "".join(tree.tree.label(node) for node in nodes if not tree.tree.is_leaf(node))


def walk_all(folder: Path) -> list[tuple[Any, Walked, list[Section]]]:
    read = []
    for root in unit_roots(source, folder, VERSION):
        tree = walk_unit(source, root, folder, VERSION)
        law = etree.parse(folder / root.pages[0]).getroot()
        read.append((law, tree, list(sections(source, tree, folder, VERSION))))
    return read


def test_every_article_is_a_leaf_in_its_order(corpus: Callable[[str], Path]) -> None:
    for law, _, found in walk_all(corpus("codes/jp")):
        expected = law.xpath(f"//Article[not({QUOTED})]/@Num")
        numbers = [section.leaf.number for section in found if section.leaf.kind == "article"]
        assert numbers == [number.replace("_", "-") for number in expected]
        loose = law.xpath("//SupplProvision[Paragraph] | //MainProvision[Paragraph]")
        assert sum(section.leaf.kind == "provision" for section in found) == len(loose)


def test_no_character_is_lost(corpus: Callable[[str], Path]) -> None:
    for law, tree, found in walk_all(corpus("codes/jp")):
        kept = "".join(section.normalized().markdown for section in found) + labels(tree)
        expected = characters(read_text(law))
        missing = expected - characters(kept)
        assert missing.total() == 0, missing
        assert expected.total() > 10_000


def test_every_element_of_the_schema_keeps_its_text(corpus: Callable[[str], Path]) -> None:
    schema = etree.parse(corpus("codes/jp") / "core" / "bin" / "stdLaw.xsd")
    names = [str(one.get("name")) for one in schema.getroot().iterchildren("{*}element")]
    assert len(names) > 130
    for name in names:
        body = Egov().to_markdown(f"<{name}>語</{name}>".encode())
        assert "語" in body.markdown, name
        assert body.warnings == (), name

"""Every real index gives its levels and sections, and no word of a real section is lost."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lxml import etree
from tests.sources.statutes import sections, unit_roots

from fonds import ids
from fonds.codes.origin import LocalOrigin
from fonds.codes.tree import Walked, walk
from fonds.sources.dc import source

VERSION = "2016"
DC = "{https://code.dccouncil.us/schemas/dc-library}"
INCLUDE = "{http://www.w3.org/2001/XInclude}include"
WORD = re.compile(r"[^\W_]+")
IN_WORDS = {"cite", "Cite", "code-cite", "em", "strong", "span"}
"""What may stand in the middle of a word: `16-1805<cite>a</cite>`."""


@cache
def units(folder: Path) -> list[tuple[Walked, Path]]:
    """The titles whose index is there; the list names others, too."""
    # One origin for all of them: each lists thousands of files.
    origin = LocalOrigin(folder, base=source.info.base, version=VERSION)
    above = ids.tree_root(source.info.name, VERSION)
    return [
        (asyncio.run(walk(source, above, root, origin)), folder / root.pages[0])
        for root in unit_roots(source, folder, VERSION)
        if (folder / root.pages[0]).exists()
    ]


def expected(index: Path) -> Iterator[tuple[str, str]]:
    """What an index lists, in its order, by another reader."""
    root: Any = etree.parse(index).getroot()
    for element in root.iter(f"{DC}container", f"{DC}subheading", INCLUDE, f"{DC}text"):
        if element.tag == INCLUDE:
            file = element.get("href").rpartition("/")[2]
            yield "section", file.removesuffix(".xml").replace("~", ":")
        elif element.tag == f"{DC}container":
            yield element.findtext(f"{DC}prefix").lower(), element.findtext(f"{DC}num")
        elif element.tag == f"{DC}subheading":
            words = element.text.split()
            yield words[0].lower(), words[1].rstrip(".")
        else:
            yield "front", ""


def test_every_index_gives_what_it_lists_in_its_order(corpus: Callable[[str], Path]) -> None:
    folder = corpus("codes/dc")
    indexes = sorted(folder.glob("us/dc/council/code/titles/*/index.xml"))
    assert sorted(index for _, index in units(folder)) == indexes
    for unit, index in units(folder):
        tree = unit.tree
        found = [(tree.kind(node), tree.number(node)) for node in tree.in_reading_order()]
        assert found == list(expected(index)), index


def test_titles_that_are_not_there_are_named_all_the_same(corpus: Callable[[str], Path]) -> None:
    folder = corpus("codes/dc")
    text = (folder / "us/dc/council/code/index.xml").read_text("utf-8")
    listed = re.findall(r'href="\./titles/([^/"]+)/', text)
    assert [root.number for root in unit_roots(source, folder, VERSION)] == listed
    assert {"29", "29A", "99"} < set(listed)


def words_of(section: bytes) -> Counter[str]:
    root: Any = etree.fromstring(section, etree.XMLParser(remove_comments=True))
    for element in root.iter():
        if element.get("undesignated"):
            # Not in the law, and not printed.
            element.text = None
        if element.tag.removeprefix(DC) not in IN_WORDS:
            element.text = f" {element.text or ''}"
            element.tail = f" {element.tail or ''}"
    return Counter(WORD.findall("".join(root.itertext())))


def test_no_word_of_a_section_is_lost(corpus: Callable[[str], Path]) -> None:
    folder = corpus("codes/dc")
    complete = [
        (unit, index) for unit, index in units(folder) if (index.parent / "sections").exists()
    ]
    assert len(complete) >= 4
    total = 0
    for unit, _ in complete:
        for section in sections(source, unit, folder, VERSION):
            body = section.normalized()
            assert not body.warnings, section.leaf.id
            said = words_of(section.data)
            missing = said - Counter(WORD.findall(body.markdown.replace("*", "")))
            assert not missing, (section.leaf.id, missing)
            number = etree.fromstring(section.data).findtext(f"{DC}num")
            assert section.leaf.number == number
            assert body.headings[0].text.startswith(f"§ {number}"), section.leaf.id
            total += said.total()
    assert total > 1_000_000

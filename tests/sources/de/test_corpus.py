"""Real acts: every provision is found, in order, and no word of them is lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from lxml import etree
from tests.sources.statutes import unit_roots, walk_unit

from fonds.codes.tree import Walked
from fonds.normalize.registry import get_normalizer
from fonds.sources.de import source

VERSION: Final = "corpus"
# Abbreviations repeat that of the act in each norm; keys and types are codes nobody reads.
NO_TEXT: Final = frozenset({"jurabk", "gliederungskennzahl", "standtyp"})

_WORD: Final = re.compile(r"\w+")
_MARKUP: Final = re.compile(r"</?su[bp]>|\[\^\d+\]|\\|\*")
_PROVISION: Final = re.compile(rb"<enbez>([^<]*)</enbez>")


def acts(corpus: Callable[[str], Path]) -> Iterator[tuple[Path, Walked]]:
    folder = corpus("codes/de-gii")
    roots = unit_roots(source, folder, VERSION)
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.xml"))
    assert sorted(root.pages[0] for root in roots) == files
    for root in roots:
        yield folder / root.pages[0], walk_unit(source, root, folder, VERSION)


def test_every_provision_is_listed_in_order(corpus: Callable[[str], Path]) -> None:
    for path, walked in acts(corpus):
        tree = walked.tree
        leaves = [node for node in tree.in_reading_order() if tree.is_leaf(node)]
        listed = [tree.number(node) for node in leaves if tree.kind(node) in {"section", "article"}]
        names = [name.decode() for name in _PROVISION.findall(path.read_bytes())]
        provisions = [name for name in names if re.search(r"§|\bArt\b", name)]
        assert listed == [re.sub(r"^\(XXXX\) *|§+ *|Art ", "", name) for name in provisions]
        assert sum(tree.kind(node) != "front" for node in leaves) == len(names)


def test_every_division_stands_below_the_one_its_key_begins_with(
    corpus: Callable[[str], Path],
) -> None:
    for path, walked in acts(corpus):
        keys = {
            str(norm.get("doknr")): str(norm.findtext(".//gliederungskennzahl"))
            for norm in etree.parse(path).getroot()
            if norm.find(".//gliederungskennzahl") is not None
        }
        tree = walked.tree
        containers = [node for node in range(1, len(tree)) if not tree.is_leaf(node)]
        divisions = {tree.identifier(node): node for node in containers}
        assert divisions.keys() == keys.keys()
        for identifier, key in keys.items():
            parent = tree.parent(divisions[identifier])
            above = max(
                (other for other in keys.values() if other != key and key.startswith(other)),
                key=len,
                default="",
            )
            assert parent is not None
            assert keys.get(tree.identifier(parent), "") == above


def test_no_word_is_lost(corpus: Callable[[str], Path]) -> None:
    normalizer = get_normalizer("gii_v1")
    for path, walked in acts(corpus):
        tree, data = walked.tree, path.read_bytes()
        divisions = [tree.label(node) for node in range(len(tree)) if not tree.is_leaf(node)]
        kept = Counter(word for label in divisions for word in _WORD.findall(label))
        for node in range(len(tree)):
            if tree.is_leaf(node) and (span := tree.span(node)):
                body = normalizer.to_markdown(data[span.start : span.start + span.length])
                assert not body.warnings
                kept.update(_WORD.findall(_MARKUP.sub(" ", body.markdown)))
        assert not words_of(etree.parse(path).getroot()) - kept


def words_of(root: Any) -> Counter[str]:
    words: Counter[str] = Counter()
    for element in root.iter("*"):
        own = "" if element.tag in NO_TEXT else element.text or ""
        words.update(_WORD.findall(own))
        words.update(_WORD.findall(element.tail or ""))
    return words

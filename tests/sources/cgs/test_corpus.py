"""Real chapters, counted by another parser: every section is there, and every word of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from lxml import html
from tests.sources.statutes import Section, sections, unit_roots, walk_unit

from fonds.sources.cgs import source

WORD: Final = re.compile(r"\w+")
NAVIGATION: Final = (
    "//table[contains(@class, 'nav_tbl')]",
    "//p[contains(@class, 'toc_catchln')]",
    "//h4",  # the heading of the table of contents, and the note that a supplement exists
    "//h2",  # the chapter's number and name, which are labels
)
ADDED: Final = re.compile(
    r"^## (?:Notes|Source|History|Cross references|Annotations)$", re.MULTILINE
)
MARKUP: Final = re.compile(r"\\|\*|^\|[ |-]+\|$", re.MULTILINE)


def held(path: Path) -> Iterator[Section]:
    for root in unit_roots(source, path, "2025"):
        yield from sections(source, walk_unit(source, root, path, "2025"), path, "2025")


def printed(page: Any) -> list[str]:
    lines = [span.text_content() for span in page.xpath("//span[@class='catchln']")]
    found = [re.match(r"Secs?\.\s+(.+?)\.(?:\s|$)", line) for line in lines]
    return [" ".join(match[1].split()) for match in found if match]


def test_every_catchline_of_a_page_is_a_section_in_its_order(corpus: Callable[[str], Path]) -> None:
    pages = sorted(corpus("codes/ct").glob("*.htm"))
    assert pages
    for path in pages:
        page: Any = html.fromstring(path.read_bytes())
        found = [one.leaf.number for one in held(path) if one.leaf.kind == "section"]
        assert found == printed(page), path.name
        assert len(found) == len(page.xpath("//span[@class='catchln']"))


def test_every_word_of_a_page_is_in_its_sections_in_the_same_order(
    corpus: Callable[[str], Path],
) -> None:
    for path in sorted(corpus("codes/ct").glob("*.htm")):
        page: Any = html.fromstring(path.read_bytes())
        for kind in NAVIGATION:
            for element in page.xpath(kind):
                element.drop_tree()
        written = html.tostring(page.find("body"), encoding="unicode")
        expected = words(re.sub(r"</?(?:a|i|b|span)\b[^>]*>", "", written))
        texts = (one.normalized().markdown.replace("<br>", " ") for one in held(path))
        found = [word for text in texts for word in WORD.findall(plain(text))]
        assert found == expected, path.name


def plain(markdown: str) -> str:
    return MARKUP.sub("", ADDED.sub("", markdown))


def words(written: str) -> list[str]:
    page: Any = html.fromstring(re.sub(r"<(?=[a-z/])", " <", written))
    return WORD.findall(page.text_content())


def test_sections_of_the_corpus_have_one_heading_and_their_notes_apart(
    corpus: Callable[[str], Path],
) -> None:
    for one in held(corpus("codes/ct")):
        body = one.normalized()
        assert not body.warnings
        assert "Return to" not in body.markdown
        if one.leaf.kind == "section":
            assert [heading.level for heading in body.headings].count(1) == 1
            assert body.headings[0].text == one.leaf.label or one.leaf.status

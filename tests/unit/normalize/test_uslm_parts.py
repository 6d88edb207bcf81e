"""Parts that were cut out of a title by their bytes read as they do inside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from fonds.errors import MalformedError, WrongContentError
from fonds.normalize.uslm import Uslm, element_to_markdown, read_uslm
from fonds.sources.usc.outline import UscOutline, read_outline

HOUSE = "http://xml.house.gov/schemas/uslm/1.0"
XHTML = "http://www.w3.org/1999/xhtml"
TABLE = (
    '<html:table><html:tr><html:td colspan="2">Both</html:td></html:tr>'
    "<html:tr><html:td>One</html:td><html:td>Two</html:td></html:tr></html:table>"
)


def markdown(data: str) -> str:
    return Uslm().to_markdown(data.encode()).markdown


def inside_a_title(part: str, spaces: str = "") -> bytes:
    return f'<uscDoc xmlns="{HOUSE}" {spaces}><main><title>{part}</title></main></uscDoc>'.encode()


@pytest.mark.parametrize(
    ("part", "spaces"),
    [
        (
            "<section><num>§ 1.</num><heading> Lamps</heading><content>Words.</content></section>",
            "",
        ),
        (
            f'<section><num>§ 1.</num><table xmlns="{XHTML}"><tr><td>A</td></tr></table></section>',
            "",
        ),
        (f"<section><num>§ 1.</num><content>{TABLE}</content></section>", f'xmlns:html="{XHTML}"'),
        ('<courtRule xml:lang="en"><num>Rule 1.</num><content>Words.</content></courtRule>', ""),
        (
            '<section><num>§ 1.</num><content><odd:b odd:x="1">Bold</odd:b></content></section>',
            'xmlns:odd="urn:odd"',
        ),
    ],
)
def test_a_section_without_its_declarations_reads_as_in_its_title(part: str, spaces: str) -> None:
    root, _ = read_uslm(inside_a_title(part, spaces))
    [element] = root[0][0]
    assert Uslm().to_markdown(part.encode()) == element_to_markdown(element)


def test_a_table_is_kept_with_the_namespaces_it_uses_only() -> None:
    root, _ = read_uslm(
        inside_a_title(f"<section>{TABLE}</section>", f'xmlns:html="{XHTML}" xmlns:dc="urn:dc"')
    )
    [artifact] = element_to_markdown(root[0][0][0]).artifacts
    assert artifact.content.startswith(f'<html:table xmlns:html="{XHTML}"><html:tr>')


def test_several_elements_side_by_side_are_one_text() -> None:
    part = (
        "<note><p>Current.</p></note>\n<notes><note><heading>Amendments</heading>"
        "<p>Words.</p></note></notes>\n<p>More.</p>"
    )
    assert markdown(part) == "Current.\n\n## Amendments\n\nWords.\n\nMore.\n"


def test_a_note_alone_is_a_text() -> None:
    assert (
        markdown("  <note><heading>Note</heading><p>Words.</p></note>\n") == "## Note\n\nWords.\n"
    )


def test_a_footnote_alone_keeps_its_words() -> None:
    assert "So in original." in markdown(
        '<note type="footnote"><num>1</num> So in original.</note>'
    )


def test_a_part_that_is_cut_off_is_malformed() -> None:
    with pytest.raises(MalformedError, match="not well-formed"):
        markdown("<section><num>§ 1.</num>")


@pytest.mark.parametrize(
    "other", ["<rss/>", "<bill><p>Words.</p></bill>", '<uscDoc xmlns="urn:x"/>']
)
def test_documents_of_other_kinds_are_no_parts(other: str) -> None:
    with pytest.raises(WrongContentError, match="not one of USLM"):
        markdown(other)


def test_every_section_of_a_real_title_reads_as_in_its_title(
    corpus: Callable[[str], Path],
) -> None:
    path = corpus("codes/usc-mono") / "usc37.xml"
    data = path.read_bytes()
    elements = [
        section
        for section in etree.fromstring(data).iter("{*}section")
        if next(section.iterancestors("{*}note"), None) is None
    ]
    with path.open("rb") as stream:
        listed = list(read_outline(stream, UscOutline()))
    spans = [node.span for node in listed if node.kind == "section" and node.span]
    assert len(spans) == len(elements) > 200
    for span, element in zip(spans, elements, strict=True):
        part = data[span.start : span.start + span.length]
        assert Uslm().to_markdown(part) == element_to_markdown(element)

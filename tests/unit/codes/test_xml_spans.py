"""Byte ranges of elements, against those a file was written with."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fonds.errors import MalformedError
from fonds.sources.formats.xml import portions

BOM = b"\xef\xbb\xbf"
DECLARED = "xmlns:b='urn:b' xmlns='urn:a'"


@dataclass
class Heard:
    """What a listener was told: elements as (name, start, end, text) in the order of their ends."""

    elements: list[tuple[str, int, int, str]] = field(default_factory=list)
    attributes: list[dict[str, str]] = field(default_factory=list)
    _open: list[tuple[str, int]] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        self.attributes.append(dict(attributes))
        self._open.append((name, offset))
        self._texts.append("")

    def end(self, name: str, offset: int) -> None:
        began, start = self._open.pop()
        assert began == name
        self.elements.append((name, start, offset, self._texts.pop()))

    def text(self, data: str) -> None:
        self._texts[-1] += data


class Dribble(io.BytesIO):
    """A stream that gives so many bytes at a time."""

    def __init__(self, data: bytes, at_once: int) -> None:
        super().__init__(data)
        self._at_once = at_once

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = self._at_once if size is None or size < 0 else min(size, self._at_once)
        return super().read(wanted)


def heard(data: bytes, *, at_once: int = 1 << 16) -> Heard:
    listener = Heard()
    for _ in portions(Dribble(data, at_once), listener):
        pass
    return listener


def spans(data: bytes, *, at_once: int = 1 << 16) -> dict[str, bytes]:
    """Every element by its name: the bytes of its range."""
    found = heard(data, at_once=at_once).elements
    return {name: data[start:end] for name, start, end, _ in found}


# Random files -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    name: str
    attribute: str
    form: str
    """How it is closed."""
    content: tuple[Element | str, ...] = ()
    """Texts and other markup as they stand in the file."""


_plain = st.text(st.sampled_from("ab />é§民𝄞\n\t'\""), max_size=6)
_markup = st.sampled_from(
    [
        *("<!-- > / -->", "<!--<a>-->", "<?go a='>'/?>", "<?go?>", "<![CDATA[<a/>]] >]]>"),
        *("<![CDATA[/>]]>", "&gt;", "&amp;", "&#x6c11;", "/>", ">", "\r\n"),
    ]
)
_names = st.sampled_from(["a", "b:c", "SECTION", "ünit", "b:編"])
_leaves = st.builds(
    Element,
    name=_names,
    attribute=_plain,
    form=st.sampled_from(["<{}/>", "<{} />", "<{}></{}>", "<{}\n></{} >"]),
)
_elements = st.recursive(
    _leaves,
    lambda inner: st.builds(
        Element,
        name=_names,
        attribute=_plain,
        form=st.just("<{}></{}>"),
        content=st.lists(inner | _plain | _markup, max_size=5).map(tuple),
    ),
    max_leaves=12,
)


class Scribe:
    """Writes a file, and down where every element of it stands."""

    def __init__(self, start: bytes) -> None:
        self.data = bytearray(start)
        self.elements: list[tuple[str, int, int]] = []

    def write(self, element: Element, declared: str = "") -> None:
        start = len(self.data)
        head = f"{element.name} n={quoteattr(element.attribute)} {declared}".rstrip()
        opening, _, closing = element.form.partition("></")
        if closing:
            self._put(opening.format(head) + ">")
            for piece in element.content:
                self.write(piece) if isinstance(piece, Element) else self._put(piece)
            self._put("</" + closing.format(element.name))
        else:
            self._put(opening.format(head))
        name = element.name.rpartition(":")[2]
        self.elements.append((name, start, len(self.data)))

    def _put(self, text: str) -> None:
        # What is lawful anywhere but in a text, where two pieces may happen to make it.
        joined = bytes(self.data[-2:]) + text.encode()
        self.data += text.encode().replace(b">", b"&gt;", 1) if b"]]>" in joined else text.encode()


@settings(max_examples=150)
@given(_elements, st.sampled_from([b"", BOM, b"<?xml version='1.0'?>\r\n"]), st.integers(1, 60))
def test_ranges_are_those_the_file_was_written_with(
    element: Element, start: bytes, at_once: int
) -> None:
    scribe = Scribe(start)
    scribe.write(element, DECLARED)
    data = bytes(scribe.data) + b"\n<!-- the end -->\n"
    found = heard(data, at_once=at_once).elements
    assert [(name, begin, end) for name, begin, end, _ in found] == scribe.elements


@settings(max_examples=100)
@given(_elements, st.integers(1, 60))
def test_range_parsed_alone_is_the_element_with_its_text(element: Element, at_once: int) -> None:
    scribe = Scribe(BOM)
    scribe.write(element, DECLARED)
    data = bytes(scribe.data)
    for name, start, end, text in heard(data, at_once=at_once).elements:
        (alone,) = ET.fromstring(b"<w %s>%s</w>" % (DECLARED.encode(), data[start:end]))
        assert alone.tag.rpartition("}")[2] == name
        assert (alone.text or "") + "".join(inner.tail or "" for inner in alone) == text


@settings(max_examples=60)
@given(_elements, st.data())
def test_cut_file_is_malformed_wherever_it_is_cut(element: Element, data: st.DataObject) -> None:
    scribe = Scribe(b"")
    scribe.write(element, DECLARED)
    cut = data.draw(st.integers(0, len(scribe.data) - 1))
    with pytest.raises(MalformedError):
        heard(bytes(scribe.data[:cut]))


# Single cases -----------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 2, 3, 7, 1 << 16])
@pytest.mark.parametrize(
    "written",
    [
        b"<e/>",
        b"<e />",
        b"<e></e>",
        b"<e></e\r\n >",
        b"<e x='a>b' y=\"/>\"/>",
        b"<e x='a>b' y=\"/>\"></e>",
        b"<e><![CDATA[</e>]]></e>",
        b"<e><!--</e>--></e>",
        b"<e><!-- / --></e>",
        b"<e><?e </e> /?></e>",
        b"<e>a &gt; b</e>",
        b"<e>/&gt;</e>",
        b"<e>a/></e>",
        b"<e>/></e>",
        b"<e><f/>/></e>",
        "<p:e>民法第七百九条 𝄞</p:e>".encode(),
        "<e n='§ 12–704e'>\r\nMaß\r\n</e>".encode(),
    ],
)
def test_range_ends_after_the_last_byte_of_the_element(written: bytes, at_once: int) -> None:
    for start in (b"", BOM, b"<?xml version='1.0' encoding='utf-8'?>\r\n<!-- > -->"):
        data = start + b"<r xmlns:p='urn:p'>before" + written + b"after</r>"
        assert spans(data, at_once=at_once)["e"] == written


def test_ranges_of_an_old_encoding_count_bytes_and_not_characters() -> None:
    data = "<?xml version='1.0' encoding='iso-8859-1'?><r>é<e>ß</e>é</r>".encode("iso-8859-1")
    assert spans(data)["e"] == "<e>ß</e>".encode("iso-8859-1")


def test_names_come_without_prefixes_and_attributes_with_them() -> None:
    listener = heard(b"<b:r xmlns:b='urn:b'><b:e xml:id='7'/></b:r>")
    assert [name for name, *_ in listener.elements] == ["e", "r"]
    assert listener.attributes[1] == {"xml:id": "7"}


def test_long_text_without_any_tag_is_whole() -> None:
    text = "Maß " * 60_000
    data = f"<r><e>{text}</e><f/></r>".encode()
    listener = heard(data)
    assert {name: told for name, _, _, told in listener.elements}["e"] == text
    assert spans(data)["e"] == f"<e>{text}</e>".encode()
    assert spans(data)["f"] == b"<f/>"


def test_elements_are_told_while_the_file_is_still_being_read() -> None:
    data = b"<r>" + b"<e>text</e>" * 20_000 + b"</r>"
    listener = Heard()
    counts = [len(listener.elements) for _ in portions(io.BytesIO(data), listener)]
    assert 0 < counts[0] < 10_000
    assert counts == sorted(counts)
    assert counts[-1] == 20_001


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "b">',
        '<!ENTITY % a "b">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY a SYSTEM "a.gif" NDATA gif>',
        '<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">',
    ],
)
def test_entities_of_its_own_make_a_file_be_refused(declaration: str) -> None:
    data = f"<!DOCTYPE r [{declaration}]><r>&a;</r>".encode()
    with pytest.raises(MalformedError, match="entity"):
        heard(data)


def test_document_type_without_entities_does_no_harm() -> None:
    data = b"<!DOCTYPE r SYSTEM 'r.dtd' [<!ATTLIST r n CDATA '>'>]><r><e/></r>"
    assert spans(data)["e"] == b"<e/>"


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"   ",
        b"no markup",
        b"<r>",
        b"<r></q>",
        b"<r/><r/>",
        b"<r>&unknown;</r>",
        b"<r>\xff</r>",
        b"<r a=1/>",
        b"<html><br></html>",
        b"<r>\x00</r>",
        b"<?xml version='1.0' encoding='martian'?><r/>",
        b"<?xml version='1.0' encoding='shift_jis'?><r/>",
    ],
)
def test_broken_file_is_malformed(broken: bytes) -> None:
    with pytest.raises(MalformedError):
        heard(broken)

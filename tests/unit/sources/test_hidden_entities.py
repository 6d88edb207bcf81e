"""Entities declared in an encoding that hides them, given to everything that reads XML."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from tests.unit.normalize.written_docx import SPACES, word_file

from fonds.errors import FondsError
from fonds.normalize.registry import get_normalizer, normalizer_names
from fonds.sites.sitemaps import read_sitemap
from fonds.sources.formats import xml
from fonds.sources.formats.feeds import read_feed

WORDS: Final = "words-of-an-entity"
"""A reader that resolves the entity has them in its result."""

NORMALIZED: Final = {
    "billres_v1": "<bill><form/><legis-body><section><text>{}</text></section></legis-body></bill>",
    "dc_xml_v1": '<section xmlns="https://code.dccouncil.us/schemas/dc-library"><num>1</num>'
    "<heading>H</heading><text>{}</text></section>",
    "docx_v1": f"<w:document {SPACES}><w:body><w:p><w:r><w:t>{{}}</w:t></w:r></w:p></w:body>"
    "</w:document>",
    "ecfr_xml_v1": "<DIV8><HEAD>1</HEAD><P>{}</P></DIV8>",
    "egov_v1": "<Law><LawBody><MainProvision><Article><Paragraph><ParagraphSentence><Sentence>{}"
    "</Sentence></ParagraphSentence></Paragraph></Article></MainProvision></LawBody></Law>",
    "fr_xml_v1": "<RULE><P>{}</P></RULE>",
    "gii_v1": "<norm><metadaten><enbez>§ 1</enbez></metadaten><textdaten><text><Content><P>{}</P>"
    "</Content></text></textdaten></norm>",
    "uslm_v1": '<section xmlns="http://xml.house.gov/schemas/uslm/1.0"><num>1</num>'
    "<content>{}</content></section>",
    "xml_v1": "<root><title>{}</title></root>",
}
DOCUMENTS: Final = {
    **NORMALIZED,
    "file": '<root title="{}"/>',
    "portions": '<root title="{}"/>',
    "feed": "<rss><channel><item><title>{}</title><link>https://example.org/</link></item>"
    "</channel></rss>",
    "sitemap": "<urlset><url><loc>https://example.org/{}</loc></url></urlset>",
}


class _Collected:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str], offset: int) -> None:
        self.texts += [name, *attributes.values(), str(offset)]

    def end(self, name: str, offset: int) -> None:
        self.texts += [name, str(offset)]

    def text(self, data: str) -> None:
        self.texts.append(data)


def _read(reader: str, data: bytes) -> object:
    if reader == "file":
        return xml.read(data).attrib.values()
    if reader == "portions":
        collected = _Collected()
        for _ in xml.portions(io.BytesIO(data), collected):
            pass
        return collected.texts
    if reader == "feed":
        return read_feed(data)
    if reader == "sitemap":
        return read_sitemap(data)
    if reader == "docx_v1":
        data = word_file("", {"word/document.xml": data})
    return get_normalizer(reader).to_markdown(data).markdown


_BLANKS: Final = " " * 600
_HIDDEN: Final[dict[str, Callable[[str], bytes]]] = {
    "plain": str.encode,
    "utf-7": lambda text: (
        f"<?xml version='1.0'{_BLANKS}encoding='UTF-7'?>".encode()
        + text.replace("<", "+ADw-").replace("!", "+ACE-").encode()
    ),
    "utf-16": lambda text: f"<?xml version='1.0'?>{text}".encode("utf-16"),
    "utf-16-le": lambda text: f"<?xml version='1.0'?>{text}".encode("utf-16-le"),
    "utf-32": lambda text: f"<?xml version='1.0' encoding='UTF-32'?>{text}".encode("utf-32"),
    "ebcdic": lambda text: f"<?xml version='1.0' encoding='IBM1047'?>{text}".replace(
        "§", ""
    ).encode("cp1140"),
}


def test_every_normalizer_of_xml_is_tried() -> None:
    normalizers = {name: get_normalizer(name).accepts_format for name in normalizer_names()}
    assert {name for name, accepts in normalizers.items() if accepts == "xml"} <= set(NORMALIZED)


@pytest.mark.parametrize("reader", DOCUMENTS)
def test_reader_reads_such_a_file_without_an_entity(reader: str) -> None:
    assert WORDS in str(_read(reader, DOCUMENTS[reader].format(WORDS).encode()))


@pytest.mark.parametrize("hidden", _HIDDEN)
@pytest.mark.parametrize("reader", DOCUMENTS)
def test_utf_7_behind_600_blanks_hides_no_entity_from_any_reader_of_xml(
    reader: str, hidden: str
) -> None:
    declaration = f'<!DOCTYPE any [<!ENTITY e "{WORDS}">]>'
    data = _HIDDEN[hidden](declaration + DOCUMENTS[reader].format("&e;"))
    try:
        result = _read(reader, data)
    except FondsError:
        return
    assert WORDS not in str(result)

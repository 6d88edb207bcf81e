"""XML records are read strictly, and hostile ones not at all."""

from __future__ import annotations

import pytest

from fonds.errors import MalformedError, ParseError, WrongContentError
from fonds.sources.formats import xml

VOTE = b"""<?xml version="1.0"?>
<!DOCTYPE vote PUBLIC "-//X//DTD vote//EN" "http://example.org/vote.dtd">
<vote><number> 12 </number><question>On <b>the</b>
  Motion</question><empty/><name>A</name><name> </name><name>B</name><bad>1x</bad></vote>"""


def test_fields_are_read_with_their_white_space_folded() -> None:
    vote = xml.read(VOTE, "vote")
    assert xml.text(vote, "question") == "On the Motion"
    assert xml.text(vote, "empty") is None
    assert xml.text(vote, "missing") is None
    assert xml.texts(vote, "name") == ["A", "B"]
    assert xml.required_whole(vote, "number") == 12


@pytest.mark.parametrize("path", ["missing", "bad"])
def test_a_number_that_is_none_is_named(path: str) -> None:
    with pytest.raises(MalformedError, match=path):
        xml.required_whole(xml.read(VOTE), path)


def test_a_required_field_that_is_missing_is_named() -> None:
    with pytest.raises(MalformedError, match="<vote> has no empty"):
        xml.required(xml.read(VOTE), "empty")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"<other/>", "expected vote, found <other>"),
    ],
)
def test_another_thing_is_wrong_content(data: bytes, message: str) -> None:
    with pytest.raises(WrongContentError, match=message):
        xml.read(data, "vote")


@pytest.mark.parametrize(
    "data",
    [b"", b"<vote>", b'<!DOCTYPE v [<!ENTITY a "aaaa">]><vote>&a;</vote>', b"\xff\xfe<"],
)
def test_broken_and_hostile_files_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        xml.read(data, "vote")


_ENTITY = '<!DOCTYPE vote [<!ENTITY a "aaaa">]><vote b="&a;"/>'
_BLANKS = " " * 600
_IN_UTF_7 = _ENTITY.replace("<", "+ADw-").replace("!", "+ACE-").encode()


@pytest.mark.parametrize(
    "data",
    [
        f"<?xml version='1.0'{_BLANKS}encoding='UTF-7'?>".encode() + _IN_UTF_7,
        f"<?xml version='1.0'{_BLANKS * 100}encoding='UTF-7'?>".encode() + _IN_UTF_7,
        f"<?xml version='1.0'?>{_ENTITY}".encode("utf-16-le"),
        f"<?xml version='1.0'?>{_ENTITY}".encode("utf-16-be"),
        f"<?xml version='1.0'?>{_ENTITY}".encode("utf-32-le"),
        f"\ufeff<?xml version='1.0'?>{_ENTITY}".encode("utf-16"),
    ],
    ids=["utf-7", "utf-7 far away", "utf-16-le", "utf-16-be", "utf-32-le", "utf-16"],
)
def test_no_encoding_hides_the_declaration_of_an_entity(data: bytes) -> None:
    with pytest.raises(ParseError):
        xml.read(data, "vote")


def test_a_long_declaration_in_a_readable_encoding_is_read() -> None:
    data = f"<?xml version='1.0'{_BLANKS}encoding='UTF-8'?><vote>ü</vote>".encode()
    assert xml.whole_text(xml.read(data, "vote")) == "ü"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_read_whatever_its_declaration_says(encoding: str) -> None:
    declared = '\ufeff<?xml version="1.0" encoding="utf-8"?><vote>ü</vote>'
    assert xml.whole_text(xml.read(declared.encode(encoding), "vote")) == "ü"


def test_namespaces_can_be_dropped() -> None:
    root = xml.read(b'<mods xmlns="urn:x"><titleInfo><title>T</title></titleInfo></mods>')
    assert xml.text(xml.without_namespaces(root), "titleInfo/title") == "T"

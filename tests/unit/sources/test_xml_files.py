"""XML records are read strictly, and hostile ones not at all."""

from __future__ import annotations

import pytest

from fonds.errors import MalformedError, WrongContentError
from fonds.sources.families import xml_files

VOTE = b"""<?xml version="1.0"?>
<!DOCTYPE vote PUBLIC "-//X//DTD vote//EN" "http://example.org/vote.dtd">
<vote><number> 12 </number><question>On <b>the</b>
  Motion</question><empty/><name>A</name><name> </name><name>B</name><bad>1x</bad></vote>"""


def test_fields_are_read_with_their_white_space_folded() -> None:
    vote = xml_files.read(VOTE, "vote")
    assert xml_files.text(vote, "question") == "On the Motion"
    assert xml_files.text(vote, "empty") is None
    assert xml_files.text(vote, "missing") is None
    assert xml_files.texts(vote, "name") == ["A", "B"]
    assert xml_files.required_whole(vote, "number") == 12


@pytest.mark.parametrize("path", ["missing", "bad"])
def test_a_number_that_is_none_is_named(path: str) -> None:
    with pytest.raises(MalformedError, match=path):
        xml_files.required_whole(xml_files.read(VOTE), path)


def test_a_required_field_that_is_missing_is_named() -> None:
    with pytest.raises(MalformedError, match="<vote> has no empty"):
        xml_files.required(xml_files.read(VOTE), "empty")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"<other/>", "expected vote, found <other>"),
    ],
)
def test_another_thing_is_wrong_content(data: bytes, message: str) -> None:
    with pytest.raises(WrongContentError, match=message):
        xml_files.read(data, "vote")


@pytest.mark.parametrize(
    "data",
    [b"", b"<vote>", b'<!DOCTYPE v [<!ENTITY a "aaaa">]><vote>&a;</vote>', b"\xff\xfe<"],
)
def test_broken_and_hostile_files_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        xml_files.read(data, "vote")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_read_whatever_its_declaration_says(encoding: str) -> None:
    declared = '\ufeff<?xml version="1.0" encoding="utf-8"?><vote>ü</vote>'
    assert xml_files.whole_text(xml_files.read(declared.encode(encoding), "vote")) == "ü"


def test_namespaces_can_be_dropped() -> None:
    root = xml_files.read(b'<mods xmlns="urn:x"><titleInfo><title>T</title></titleInfo></mods>')
    assert xml_files.text(xml_files.without_namespaces(root), "titleInfo/title") == "T"

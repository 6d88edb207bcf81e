from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Fonds

from fonds.demo.bundle import DATA

XML = next(iter(sorted(DATA.glob("www.federalregister.gov/**/2026-00101.xml"))))


def test_file_is_normalized_by_what_its_bytes_are(fonds: Fonds) -> None:
    outcome = fonds("normalize", str(XML))
    assert outcome.code == 0
    assert "§ 541.600" in outcome.out


def test_normalizing_as_json_names_normalizer_headings_and_pages(fonds: Fonds) -> None:
    printed = fonds("normalize", str(XML), "--json").json
    assert printed["normalizer"].startswith("fr_xml_v1@")
    body = printed["body"]
    assert all(body["markdown"][heading["offset"]] == "#" for heading in body["headings"])
    assert body["pages"]


def test_wrong_format_is_a_named_error(fonds: Fonds) -> None:
    outcome = fonds("normalize", str(XML), "--format", "billres_v1")
    assert outcome.code == 1
    assert outcome.err.startswith("error: ")


def test_unknown_format_is_a_usage_error(fonds: Fonds) -> None:
    outcome = fonds("normalize", str(XML), "--format", "word_v9")
    assert outcome.code == 2
    assert "fr_xml_v1" in outcome.err


def test_neither_file_nor_drain_is_a_usage_error(fonds: Fonds) -> None:
    assert fonds("normalize").code == 2


def test_passages_of_a_markdown_file(fonds: Fonds, tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    file.write_text("# One\n\nFirst words.\n\n## Two\n\nMore words.\n")
    passages = fonds("chunk", str(file), "--json").json
    assert [passage["text"] for passage in passages] == ["First words.", "More words."]
    assert passages[1]["locator"]["heading_path"] == ["One", "Two"]
    assert "First words." in fonds("chunk", str(file)).out


def test_empty_queue_is_drained_and_nothing_is_stale(fonds: Fonds, empty: Path) -> None:
    home = str(empty)
    assert fonds("normalize", "--drain", "--json", "--home", home).json["done"] == 0
    assert fonds("renormalize", "--json", "--home", home).json["checked"] == 0

"""Every real file gives a record, or says what it is and why it gives none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from tests.sources.publishing import assert_rows_fit, loose, records_of

from fonds.errors import WrongContentError
from fonds.model import ParsedRecord
from fonds.sources.public_laws import source

# Folder, and what the error must say.
WITHOUT_RECORDS = {"congress_gov_api": "a record of congress.gov: the bill that became a law"}
RECORDS = {"uslm": "public_laws", "comps": "statute_compilations"}
USLM = {"u": "http://schemas.gpo.gov/xml/uslm"}


@pytest.fixture(scope="module")
def folder(corpus: Callable[[str], Path]) -> Path:
    return corpus("federal/public_laws")


def only(path: Path) -> ParsedRecord:
    [record] = records_of(source, loose(path.read_bytes(), path.name))
    assert record.document is not None
    return record


def files(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.xml"))
    assert found
    return found


def count(root: Any, query: str) -> int:
    return len(root.xpath(query, namespaces=USLM))


def test_every_file_gives_a_record_or_its_reason(folder: Path) -> None:
    every = sorted(path for path in folder.rglob("*") if path.is_file())
    assert {path.parent.name for path in every} == WITHOUT_RECORDS.keys() | RECORDS.keys()
    for path in every:
        if reason := WITHOUT_RECORDS.get(path.parent.name):
            with pytest.raises(WrongContentError, match=reason):
                records_of(source, loose(path.read_bytes(), path.name))
        else:
            record = only(path)
            assert record.table == RECORDS[path.parent.name], path.name
            assert_rows_fit(source, [record])


def test_rows_below_a_law_are_as_many_as_the_file_has_elements_for(folder: Path) -> None:
    for path in files(folder / "uslm"):
        root = etree.fromstring(path.read_bytes())
        found = Counter(child.table for child in only(path).children)
        sections = count(root, "//u:section[not(ancestor::u:quotedContent)]")
        assert found["public_law_sections"] == sections > 0, path.name
        margin = "//u:sidenote//u:ref[starts-with(@href, '/us/usc/')]"
        assert found["public_law_usc_references"] == count(root, margin), path.name
        entries = re.findall(r"<p style=\"-uslm-lc:I65803[45]\"[^>]*>\s*[A-Z]", path.read_text())
        reports = count(root, "//u:legislativeHistory/u:note/u:headingText")
        assert found["public_law_history"] == len(entries) + reports > 0, path.name


def test_laws_are_named_as_their_files_are(folder: Path) -> None:
    for path in files(folder / "uslm"):
        congress, number = re.findall(r"[0-9]+", path.name)
        record = only(path)
        assert record.key == f"plaw:{congress}-{number}"
        # As the running head has it, which no part of ours reads.
        head = re.search(rf"<\?I50 PUBLIC LAW {congress}–{number}—(.*?)\?>", path.read_text())
        assert head is not None
        year = head[1][-4:]
        assert record.document is not None
        assert record.document.citation_string == f"Pub. L. No. {congress}-{number} ({year})."
        assert str(record.payload["approved_date"]).startswith(year)
        printed = re.search(r"<page>([0-9]+) STAT\. ([0-9]+)</page>", path.read_text())
        assert printed is not None
        assert record.payload["stat_citation"] == f"{printed[1]} Stat. {printed[2]}"


def test_bills_are_those_the_history_begins_with(folder: Path) -> None:
    for path in files(folder / "uslm"):
        named = re.search(
            r'LEGISLATIVE HISTORY</inline>—<ref href="/us/bill/(\d+)/([a-z]+)/(\d+)"',
            path.read_text(),
        )
        assert named is not None
        assert only(path).payload["bill_ref"] == f"bill:{'-'.join(named.groups())}", path.name


def test_short_titles_are_of_the_whole_law(folder: Path) -> None:
    for path in files(folder / "uslm"):
        named = re.search(r'<shortTitle role="(?:act|jointResolution)">“([^”]*)”', path.read_text())
        assert only(path).payload["short_title"] == (named[1] if named else None), path.name


def test_compilations_are_named_and_dated_as_their_files_say(folder: Path) -> None:
    for path in files(folder / "comps"):
        text = path.read_text(encoding="utf-8")
        record = only(path)
        assert record.document is not None
        assert record.key == f"comps:{path.stem}"
        title = re.search(r"<dc:title>(.*?)</dc:title>", text)
        assert title is not None
        assert record.document.title.upper() == title[1].replace("&amp;", "&").upper()
        assert not record.document.title.isupper()
        through = re.search(r"mended [Tt]hrough <currentThroughPublicLaw>.*?(\d+)–(\d+)<", text)
        approved = re.search(r"<approvedDate>(.*?)</approvedDate>", text)
        enacted = re.search(r'Enacted <date date="(.*?)"', text)
        assert approved is not None
        if through:
            assert record.payload["through_law_ref"] == f"plaw:{through[1]}-{through[2]}"
        assert record.document.published_at == (enacted or approved)[1]


def test_every_document_has_a_text_with_the_words_of_its_file(folder: Path) -> None:
    for path in (*files(folder / "uslm"), *files(folder / "comps")):
        document = only(path).document
        assert document is not None
        assert document.body is not None
        assert document.body.normalized is not None
        main = etree.fromstring(path.read_bytes()).find("u:main", USLM)
        assert main is not None
        words = " ".join("".join(map(str, main.itertext(etree.Element))).split())
        assert len(document.body.normalized.markdown) > 0.9 * len(words), path.name

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from tests.sources.federal_register.upstream import (
    FILES,
    GOLDEN,
    archived,
    entry,
    fetched,
    loose,
    records_of,
    together,
)
from tests.sources.golden import assert_golden, json_lines

from fonds.citations.forms import bluebook_date
from fonds.errors import DuplicateKeyError, MalformedError, ParseError, WrongContentError
from fonds.model import FetchTask, Part
from fonds.normalize.fr import FrXml
from fonds.sources.federal_register import source
from fonds.sources.federal_register.entries import cite_federal_register, federal_register_id
from fonds.sources.federal_register.tables import TABLES


def document_task(item: dict[str, Any], *parts: Part) -> FetchTask:
    return FetchTask(
        source="federal_register",
        key="fr:2026-08558",
        parts=parts,
        params={"entry": item},
        origin=archived("https://www.federalregister.gov/list", b"list"),
    )


BODY = Part(name="body", url="https://www.federalregister.gov/x.xml", path="x.xml")


@pytest.mark.parametrize("name", ["list.json", "issue.xml", "stripped.xml"])
def test_records_are_as_reviewed(name: str) -> None:
    records = source.parse(loose((FILES / name).read_bytes(), name))
    assert_golden(json_lines(records), GOLDEN / f"{name}.jsonl")


@pytest.mark.parametrize("name", ["rule", "stripped", "issue"])
def test_markdown_is_as_reviewed(name: str) -> None:
    body = FrXml().to_markdown((FILES / f"{name}.xml").read_bytes())
    assert_golden(body.markdown, GOLDEN / f"{name}.md")


def test_an_entry_and_its_text_make_one_record() -> None:
    item = json.loads((FILES / "list.json").read_bytes())["results"][2]
    raw = fetched(document_task(item, BODY), {"body": (FILES / "rule.xml").read_bytes()})
    assert_golden(json_lines(source.parse(raw)), GOLDEN / "document.jsonl")


def test_a_loose_text_joins_the_loose_entry_of_its_number() -> None:
    entries, text = ((FILES / name).read_bytes() for name in ("list.json", "rule.xml"))
    records = records_of(together(entries=entries, text=text))
    bodies = [record.key for record in records if record.document and record.document.body]
    assert len(records) == 4
    assert bodies == ["fr:2026-08558"]


def test_a_loose_text_that_could_belong_to_two_entries_stays_alone() -> None:
    text = b"<RULE><PREAMB><SUBJECT>T</SUBJECT></PREAMB><FRDOC>[FR Doc. 00-111]</FRDOC></RULE>"
    entries = (FILES / "list.json").read_bytes()
    keys = [record.key for record in records_of(together(entries=entries, text=text))]
    assert keys.count("fr:00-111") == 1
    assert len(keys) == 5


def test_a_number_used_twice_makes_two_documents() -> None:
    records = records_of(loose((FILES / "list.json").read_bytes()))
    assert [record.key for record in records[:2]] == [
        "fr:00-111@2000-01-14",
        "fr:00-111@2000-01-18",
    ]
    for record in records[:2]:
        assert record.document is not None
        assert "fr:00-111" in record.document.aliases


def test_an_agency_known_by_its_printed_name_only_is_kept() -> None:
    record = records_of(loose((FILES / "list.json").read_bytes()))[1]
    [agency] = [child for child in record.children if child.table == "fr_document_agencies"]
    assert agency.payload["raw_name"] == "Office of Clouds"
    assert agency.payload["agency_ref"] is None
    assert record.document is not None
    assert record.document.source_org == "Office of Clouds"


def test_en_dash_and_hyphen_name_the_same_document() -> None:
    text = (
        "<NOTICE><PREAMB><SUBJECT>T</SUBJECT></PREAMB><FRDOC>[FR Doc. 2024{}02930]</FRDOC></NOTICE>"
    )
    keys = {records_of(loose(text.format(dash).encode()))[0].key for dash in "-–"}
    assert keys == {"fr:2024-02930"}


def test_an_entry_without_a_text_is_a_document_without_a_body() -> None:
    [record] = records_of(fetched(document_task(entry("2026-08558", "2026-03-04")), {}))
    assert record.document is not None
    assert record.document.body is None
    assert record.document.raw.url == "https://www.federalregister.gov/list"


def test_details_fetched_apart_complete_the_entry_of_their_date_only() -> None:
    details = Part(name="metadata", url="https://www.federalregister.gov/d.json", path="d.json")
    bare = {"document_number": "2026-08558", "publication_date": "2026-03-04", "title": "Short"}
    task = document_task(bare, details)
    full = json.dumps(bare | {"title": "Long", "citation": "91 FR 7"}).encode()
    [record] = records_of(fetched(task, {"metadata": full}))
    assert record.payload["title"] == "Long"
    assert record.payload["start_page"] == 7
    other = json.dumps(bare | {"document_number": "2026-00001", "title": "Other"}).encode()
    [record] = records_of(fetched(task, {"metadata": other}))
    assert record.payload["title"] == "Short"


def test_an_entry_repeated_word_for_word_is_one_record() -> None:
    item = entry("2026-00001", "2026-03-04")
    twice = json.dumps({"count": 2, "results": [item, item]}).encode()
    assert len(records_of(loose(twice))) == 1


def test_one_number_with_two_contents_is_an_error() -> None:
    items = [entry("2026-00001", "2026-03-04", title=title) for title in ("One", "Two")]
    with pytest.raises(DuplicateKeyError, match="fr:2026-00001"):
        records_of(loose(json.dumps({"count": 2, "results": items}).encode()))


def test_every_row_fits_its_table() -> None:
    columns = {table.name: set(table.columns.keys()) for table in TABLES}
    for name in ("list.json", "issue.xml"):
        for record in records_of(loose((FILES / name).read_bytes())):
            for row in (record, *record.children):
                assert set(row.payload) <= columns[row.table]


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", MalformedError, "empty"),
        (b"{", MalformedError, "JSON"),
        (b"[" * 100_000, MalformedError, "JSON"),
        (b"plain words", WrongContentError, "neither"),
        (b'{"count": 0}', WrongContentError, "without any document"),
        (b'{"results": "x"}', WrongContentError, "results"),
        (b'{"results": [1]}', WrongContentError, "objects"),
        (b'{"status": 404, "message": "Record Not Found"}', WrongContentError, "error message"),
        (b'{"a": 1}', WrongContentError, "other kind"),
        (b'{"results": [{"document_number": "1", "agencies": []}]}', WrongContentError, "title"),
        (b'{"document_number": null, "title": "x"}', MalformedError, "document_number"),
        (b'{"document_number": "1-1", "title": "x", "volume": "v"}', MalformedError, "volume"),
        (
            b'{"document_number": "1-1", "title": "x", "publication_date": "today"}',
            MalformedError,
            "publication_date",
        ),
        (b'{"document_number": "1-1", "title": "x", "agencies": 3}', MalformedError, "agencies"),
        (b'[{"id": 901, "name": "Weather Department"}]', WrongContentError, "taxonomy"),
        (b"---\nhttp_interactions:\n- request:\n", WrongContentError, "cassette"),
        (b"<html><body>Sorry</body></html>", WrongContentError, "HTML"),
        (b"<FEDREG><DATE>Someday</DATE></FEDREG>", MalformedError, "Someday"),
        (b"<FEDREG/>", WrongContentError, "without any document"),
        (b"<RULE><P>No number.</P></RULE>", MalformedError, "no number"),
    ],
)
def test_a_file_that_holds_no_document_says_what_it_is(
    data: bytes, error: type[ParseError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        records_of(loose(data))


def test_a_table_of_contents_is_left_to_the_audit() -> None:
    with pytest.raises(WrongContentError, match="audit"):
        records_of(loose((FILES / "contents.json").read_bytes()))


def test_citations_fall_back_to_the_number_and_its_year() -> None:
    day = date(2026, 3, 4)
    assert bluebook_date(day) == "Mar. 4, 2026"
    assert (
        cite_federal_register(number="2026-08558", volume=91, page=12345, published=day)
        == "91 Fed. Reg. 12345 (Mar. 4, 2026)."
    )
    cited = cite_federal_register(number="2016-12100", volume=None, page=5, published=None)
    assert cited == "FR Doc. 2016-12100 (2016)."
    cited = cite_federal_register(number="00-111", volume=None, page=None, published=None)
    assert cited == "FR Doc. 00-111."


@pytest.mark.parametrize(
    ("number", "published", "expected"),
    [
        ("2026-08558", date(2026, 5, 1), "fr:2026-08558"),
        ("2026-08558", None, "fr:2026-08558"),
        ("2026–08558", date(2026, 5, 1), "fr:2026-08558"),
        (" 2026 -08558\n", date(2026, 5, 1), "fr:2026-08558"),
        ("C1-2026-08558", date(2026, 5, 9), "fr:C1-2026-08558"),
        ("00-111", date(2000, 1, 14), "fr:00-111@2000-01-14"),
        ("00–111", date(2000, 1, 14), "fr:00-111@2000-01-14"),
        ("E9-12345", date(2009, 6, 1), "fr:E9-12345@2009-06-01"),
        ("00-111", None, "fr:00-111"),
        ("X2026-1", date(2026, 5, 1), "fr:X2026-1@2026-05-01"),
    ],
)
def test_federal_register_id(number: str, published: date | None, expected: str) -> None:
    assert federal_register_id(number, published) == expected

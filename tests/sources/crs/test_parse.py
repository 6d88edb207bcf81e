from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from tests.sources.golden import assert_golden, json_lines
from tests.sources.publishing import (
    NOW,
    Publisher,
    archived,
    assert_rows_fit,
    discover,
    fetched,
    loose,
    records_of,
    tasks,
)

from fonds.errors import DuplicateKeyError, MalformedError, ParseError, WrongContentError
from fonds.model import Body, FetchTask, ParsedRecord, Raw, RawPart, SourceState
from fonds.normalize.registry import get_normalizer
from fonds.sources.crs import LIST, cite_crs, source

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
METADATA = (FILES / "R48481.json").read_bytes()
TEXT = (FILES / "R48481.html").read_bytes()
TYPED = (FILES / "typed.html").read_bytes()
OFFICIAL = (FILES / "crsreport.json").read_bytes()
SEARCH = (FILES / "SearchResults.csv").read_bytes()
CSV = (FILES / "reports.csv").read_bytes()
PDF = b"%PDF-1.7\n"


def task(key: str = "crs:R48481") -> FetchTask:
    found = discover(source, Publisher({LIST: CSV}), SourceState(now=NOW, backfill=True))
    return next(one for one in tasks(found) if one.key == key)


def together(*files: bytes) -> Raw:
    parts = tuple(RawPart(name="", archived=archived("R1", data), data=data) for data in files)
    return Raw(task=FetchTask(source="crs", key="R1", parts=()), parts=parts)


def only(raw: Raw) -> ParsedRecord:
    [record] = records_of(source, raw)
    return record


def body_of(record: ParsedRecord) -> Body:
    assert record.document is not None
    assert record.document.body is not None
    return record.document.body


def test_the_record_of_metadata_and_text_is_as_reviewed() -> None:
    raw = fetched(task(), metadata=METADATA, html=TEXT)
    # Which version of the normalizer there is, is not this test's business.
    found = json_lines(source.parse(raw)).replace(get_normalizer("html_v1").label, "html_v1")
    assert_golden(found, GOLDEN / "R48481.jsonl")


@pytest.mark.parametrize("name", ["crsreport.json", "crsreports.json", "SearchResults.csv"])
def test_the_records_of_other_files_are_as_reviewed(name: str) -> None:
    found = source.parse(loose((FILES / name).read_bytes(), name))
    assert_golden(json_lines(found), GOLDEN / f"{name}.jsonl")


def test_every_row_fits_its_table() -> None:
    assert_rows_fit(source, records_of(source, fetched(task(), metadata=METADATA, html=TEXT)))
    assert_rows_fit(source, records_of(source, loose(OFFICIAL)))
    assert_rows_fit(source, records_of(source, loose(SEARCH)))


# Bodies -----------------------------------------------------------------------------------


def test_the_lines_of_a_printed_version_stay_paragraphs() -> None:
    body = body_of(only(fetched(task(), metadata=METADATA, html=TYPED)))
    text = body.normalized
    assert text is not None
    paragraphs = text.markdown.strip().split("\n\n")
    assert paragraphs[1] == "Harbor Maintenance & Dredging: A Primer"
    assert paragraphs[2].endswith("a trust fund that pays for dredging.")
    assert paragraphs[3].endswith("wherever it may come from.")
    assert len(paragraphs) == 4
    typed = get_normalizer("text_v1")
    # Whoever reads the archived bytes again gets the same.
    assert (body.normalizer, text) == (typed.label, typed.to_markdown(TYPED))


def test_an_answer_without_markup_is_no_text_of_a_report() -> None:
    with pytest.raises(WrongContentError, match="no tag"):
        list(source.parse(fetched(task(), metadata=METADATA, html=b"Not found")))


def test_a_missing_html_is_replaced_by_the_pdf() -> None:
    [again] = source.parse(fetched(task(), metadata=METADATA))
    assert isinstance(again, FetchTask)
    assert (again.key, again.fingerprint) == ("crs:R48481#pdf", task().fingerprint)
    assert [part.name for part in again.parts] == ["metadata", "pdf"]
    body = body_of(only(fetched(again, metadata=METADATA, pdf=PDF)))
    assert (body.format, body.normalized) == ("pdf", None)


def test_a_report_of_which_neither_text_is_there_is_a_record_all_the_same() -> None:
    [again] = source.parse(fetched(task(), metadata=METADATA))
    assert isinstance(again, FetchTask)
    record = only(fetched(again, metadata=METADATA))
    assert record.document is not None
    assert record.document.body is None


def test_a_summary_that_is_the_whole_report_is_none_of_the_document() -> None:
    content = json.loads(METADATA)
    content["versions"][0]["summary"] = "Two departments put out fires. " * 20
    metadata = json.dumps(content).encode()
    record = only(fetched(task(), metadata=metadata, html=TEXT))
    assert record.document is not None
    assert record.document.summary is None
    assert record.payload["summary"]
    without_text = only(loose(metadata)).document
    assert without_text is not None
    assert without_text.summary == record.payload["summary"]


@pytest.mark.parametrize(
    ("parts", "cause"),
    [
        ({"metadata": METADATA, "html": b"<!DOCTYPE html><html><p>Sorry</p></html>"}, "is a page"),
        ({"metadata": b"<html>Sorry</html>", "html": TEXT}, "HTML or XML instead of JSON"),
        ({"metadata": METADATA.replace(b"R48481", b"R1"), "html": TEXT}, "describes R1"),
        ({"metadata": b'{"id": "R48481", "versions": []}', "html": TEXT}, "names no version"),
        ({"html": TEXT}, "has no metadata"),
    ],
)
def test_other_content_in_place_of_a_file_is_named(parts: dict[str, bytes], cause: str) -> None:
    with pytest.raises(WrongContentError, match=cause):
        records_of(source, fetched(task(), **parts))


def test_a_pdf_that_is_none_is_named() -> None:
    metadata = METADATA.replace(b"R48481", b"98-807")
    with pytest.raises(WrongContentError, match="is not a PDF"):
        records_of(source, fetched(task("crs:98-807"), metadata=metadata, pdf=TEXT))


# Versions ---------------------------------------------------------------------------------


def test_the_newest_version_counts_wherever_it_stands() -> None:
    content = json.loads(METADATA)
    content["versions"].reverse()
    record = only(loose(json.dumps(content).encode()))
    assert record.payload["title"] == "Wildfire Emergency Spending"
    assert record.payload["latest_pub_date"] == "2025-03-15"
    versions = [child.payload for child in record.children if child.table == "crs_versions"]
    assert [(row["ord"], row["date"]) for row in versions] == [
        (1, "2023-05-02"),
        (2, "2024-01-01"),
        (3, "2025-03-15"),
    ]
    topics = [child.payload["name"] for child in record.children if child.table == "crs_topics"]
    assert topics[0] == "Wildfire"


def test_the_oldest_files_have_the_number_apart_from_the_id() -> None:
    old = METADATA.replace(b'"id": "R48481"', b'"id": 4711', 1)
    assert only(loose(old)).key == "crs:R48481"


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        (b'"2025-03-15T00:00:00"', b'"March 15"', "`date` should be a day"),
        (b'"R48481"', b'"../R48481"', "not the number of a CRS report"),
        (b'"formats": []', b'"formats": {}', "`formats` should be a list"),
    ],
)
def test_a_wrong_value_is_named(before: bytes, after: bytes, cause: str) -> None:
    with pytest.raises(MalformedError, match=cause):
        records_of(source, loose(METADATA.replace(before, after)))


# Loose files ------------------------------------------------------------------------------


def test_metadata_of_both_publishers_make_one_record_with_authors() -> None:
    for files in ((METADATA, OFFICIAL), (OFFICIAL, METADATA)):
        record = only(together(*files))
        row = record.payload
        assert row["authors"] == ["Ada B. Quillfeather", "Tobias Marsh"]
        assert (row["type"], row["content_type"], row["version"]) == ("CRS Report", "Reports", 102)
        tables = [child.table for child in record.children]
        assert (tables.count("crs_versions"), tables.count("crs_topics")) == (3, 5)


def test_metadata_and_a_text_of_the_same_name_are_one_record() -> None:
    assert body_of(only(together(METADATA, PDF, TEXT))).format == "html"
    assert body_of(only(together(PDF, METADATA))).format == "pdf"


def test_a_report_that_stands_twice_in_a_file_is_an_error() -> None:
    with pytest.raises(DuplicateKeyError, match="crs:R48481"):
        records_of(source, loose(SEARCH.replace(b"IG10044", b"R48481")))


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (CSV, "the list of EveryCRSReport.com"),
        (TEXT, "does not say which report it is"),
        (PDF, "does not say which report it is"),
        (b'{% extends "master.html" %}\n<h1>Bulk Download</h1>', "a text or a page"),
        (b'<?xml version="1.0" ?><rss version="2.0"/>', "a feed"),
        (b'{"SearchResults": []}', "search results of crs.gov"),
        (b'{"bills": []}', "the keys bills"),
        (b"[1]", "a list of 1 items"),
        (b'98-446\t"Congressional Liaison Offices" is withheld', "neither metadata, nor a list"),
        (b"", "neither metadata, nor a list"),
        (SEARCH.replace(b"3/15/2025", b"15.3.2025"), "`CoverDate` should be a day"),
        (SEARCH.replace(b',"02/10/2025"', b""), "line 2 of SearchResults.csv is cut off"),
        (SEARCH.replace(b"CoverDate", b"Date"), "no column CoverDate"),
    ],
)
def test_a_loose_file_that_is_no_record_says_what_it_is(data: bytes, cause: str) -> None:
    with pytest.raises(ParseError, match=cause):
        records_of(source, loose(data))


def test_a_text_with_the_metadata_of_several_reports_is_refused() -> None:
    with pytest.raises(WrongContentError, match="metadata of 2"):
        records_of(source, together(SEARCH, TEXT))


# Citations --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "published", "cited"),
    [
        (
            "Wildfire Emergency Spending",
            date(2025, 3, 15),
            "Cong. Rsch. Serv., R48481, Wildfire Emergency Spending (Mar. 15, 2025).",
        ),
        ("Who Pays?", None, "Cong. Rsch. Serv., R48481, Who Pays?."),
        ("Ends Here. ", date(1998, 9, 1), "Cong. Rsch. Serv., R48481, Ends Here (Sept. 1, 1998)."),
        ("R48481", None, "Cong. Rsch. Serv., R48481."),
    ],
)
def test_citations_name_number_title_and_day(
    title: str, published: date | None, cited: str
) -> None:
    assert cite_crs(number="R48481", title=title, published=published) == cited


def test_a_report_without_title_and_date_is_still_cited() -> None:
    bare = b'{"id": "RL30001", "versions": [{"id": 1, "title": " "}]}'
    document = only(loose(bare)).document
    assert document is not None
    assert (document.title, document.published_at) == ("RL30001", None)
    assert document.citation_string == "Cong. Rsch. Serv., RL30001."

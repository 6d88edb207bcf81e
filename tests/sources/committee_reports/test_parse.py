from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.golden import assert_golden, json_lines
from tests.sources.packages import children, fetched, loose, package_task, parsed, without_bodies

from fonds.model import FetchTask
from fonds.sources.committee_reports import TABLES, cite_committee_reports, source

FILES = Path(__file__).parent / "files"
PARTS, FIRST = "CRPT-119hrpt900", "CRPT-112hrpt901"
CONFERENCE, EXECUTIVE = "CRPT-118hrpt902", "CRPT-118erpt3"


def file(name: str) -> bytes:
    return (FILES / name).read_bytes()


def task_of(package: str) -> FetchTask:
    return package_task(source, "CRPT", package)


@pytest.mark.parametrize(
    "name",
    [
        f"{PARTS}.mods.xml",
        f"{FIRST}.mods.xml",
        f"{CONFERENCE}.mods.xml",
        f"{EXECUTIVE}.mods.xml",
        f"{PARTS}.htm",
        f"{PARTS}-pt2.htm",
        "report.json",
    ],
)
def test_records_are_as_reviewed(name: str) -> None:
    records = without_bodies(source.parse(loose(FILES / name)))
    assert_golden(json_lines(records), FILES / f"{name}.golden.jsonl")


def test_columns_of_rows_are_those_of_the_tables() -> None:
    columns = {table.name: {column.name for column in table.c} for table in TABLES}
    for path in FILES.glob("*.mods.xml"):
        for record in parsed(source, loose(path))[0]:
            for row in (record, *record.children):
                assert row.payload.keys() <= columns[row.table]


def test_a_second_part_is_a_document_with_a_date_of_its_own() -> None:
    files = {"mods": file(f"{PARTS}.mods.xml"), "html": file(f"{PARTS}.htm")}
    [first], [further] = parsed(source, fetched(task_of(PARTS), files))
    [second], _ = parsed(source, fetched(further, {"html": file(f"{PARTS}-pt2.htm")}))
    assert (first.key, second.key) == (f"crpt:{PARTS}", f"crpt:{PARTS}-pt2")
    assert first.document is not None
    assert second.document is not None
    assert (first.document.published_at, second.document.published_at) == (
        "2026-02-11",
        "2026-09-08",
    )
    assert first.document.citation_string == "H.R. Rep. No. 119-900 (2026)."
    assert second.document.citation_string == "H.R. Rep. No. 119-900, pt. 2 (2026)."
    assert "H. Rept. 119-900, Part 2" in second.document.aliases


def test_a_first_part_goes_by_the_name_of_its_package_and_is_fetched_by_its_own() -> None:
    # The package's own name leads to the page for a missing file, which is not a 404.
    files = {"mods": file(f"{FIRST}.mods.xml"), "html": b"<html><title>Error</title></html>"}
    records, [further] = parsed(source, fetched(task_of(FIRST), files))
    assert records == []
    [part] = further.parts
    assert part.url == f"https://www.govinfo.gov/content/pkg/{FIRST}/html/{FIRST}-pt1.htm"
    [record], _ = parsed(source, fetched(further, {"html": file(f"{PARTS}.htm")}))
    assert record.key == f"crpt:{FIRST}"
    assert record.document is not None
    assert record.document.body is not None
    assert record.document.citation_string == "H.R. Rep. No. 112-901, pt. 1 (2011)."
    assert {FIRST, f"{FIRST}-pt1"} <= set(record.document.aliases)


def test_only_the_bill_reported_is_the_reports_bill() -> None:
    first, second = parsed(source, loose(FILES / f"{PARTS}.mods.xml"))[0]
    assert first.payload["bill_ref"] == second.payload["bill_ref"] == "bill:119-hr-3900"
    assert [row["bill_ref"] for row in children(first, "committee_report_bills")] == [
        "bill:119-hr-3900",
        "bill:119-hr-3900",
        "bill:118-s-12",
        None,
    ]


def test_a_text_alone_names_its_bills_and_committee() -> None:
    [record], _ = parsed(source, loose(FILES / f"{PARTS}.htm"))
    assert record.payload["bill_ref"] == "bill:119-hr-3900"
    assert [row["bill_ref"] for row in children(record, "committee_report_bills")] == [
        "bill:119-hr-3900",
        "bill:119-sjres-7",
    ]
    [committee] = children(record, "committee_report_committees")
    assert committee["name"] == "Committee on Lights and Signals"


def test_the_text_is_freed_of_the_typesetters_marks() -> None:
    [record], _ = parsed(source, loose(FILES / f"{PARTS}.htm"))
    assert record.document is not None
    body = record.document.body
    assert body is not None
    assert body.normalized is not None
    assert "a tower “manned” if" in body.normalized.markdown
    assert "\x1a" not in body.normalized.markdown
    assert any("GRAPHIC" in warning for warning in body.normalized.warnings)


@pytest.mark.parametrize(
    ("series", "number", "more", "expected"),
    [
        ("HRPT", "119-100", {"year": "2025"}, "H.R. Rep. No. 119-100 (2025)."),
        ("SRPT", "119-12", {"year": "2025"}, "S. Rep. No. 119-12 (2025)."),
        ("ERPT", "118-3", {"year": "2024"}, "S. Exec. Rep. No. 118-3 (2024)."),
        ("HRPT", "99-7", {"part": "2", "year": "1985"}, "H.R. Rep. No. 99-7, pt. 2 (1985)."),
        ("HRPT", "119-1", {}, "H.R. Rep. No. 119-1."),
        (None, "119-1", {"year": "2025"}, "Cong. Rep. No. 119-1 (2025)."),
    ],
)
def test_a_report_is_cited_by_its_series_and_number(
    series: str | None, number: str, more: dict[str, str], expected: str
) -> None:
    cited = cite_committee_reports(
        series=series, number=number, part=more.get("part"), year=more.get("year")
    )
    assert cited == expected


def test_a_conference_report_says_so() -> None:
    [record], _ = parsed(source, loose(FILES / f"{CONFERENCE}.mods.xml"))
    assert record.document is not None
    assert record.document.kind == "conference_report"
    assert record.document.citation_string == "H.R. Rep. No. 118-902 (2023) (Conf. Rep.)."

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.sources.publishing import NOW, Publisher, discover, discover_until_error, tasks

from fonds.errors import FondsError, MalformedError, SuspiciousYieldError, WrongContentError
from fonds.model import Discovery, Listing, SourceState, Watermark
from fonds.sources.base import Auditable, Expected, Source
from fonds.sources.crs import LIST, source
from fonds.sources.formats.congress import list_address

CSV = (Path(__file__).parent / "files" / "reports.csv").read_bytes()
RUN = SourceState(now=NOW)
EVERYTHING = SourceState(now=NOW, backfill=True)
ALL = ["crs:98-807", "crs:RS20001", "crs:R48481", "crs:IN12777"]


def found(state: SourceState, data: bytes = CSV) -> list[Discovery]:
    return discover(source, Publisher({LIST: data}), state)


def keys(state: SourceState) -> list[str]:
    return [task.key for task in tasks(found(state))]


def mark(state: SourceState) -> Watermark | None:
    marks = [item for item in found(state) if isinstance(item, Watermark)]
    return marks[0] if marks else None


def test_it_is_a_source_that_can_be_audited() -> None:
    assert isinstance(source, Source)
    assert isinstance(source, Auditable)


# Tasks ------------------------------------------------------------------------------------


def test_a_task_is_the_metadata_and_the_newest_html_or_else_the_pdf() -> None:
    parts = {
        task.key: [(part.name, part.url, part.path, part.optional) for part in task.parts]
        for task in tasks(found(EVERYTHING))
    }
    site = "https://www.everycrsreport.com"
    html = "files/20250315_R48481_67193b9ccc8e2a41640eb140040bc6a08a8275ab.html"
    pdf = "files/19981231_98-807_e6105002c6f764311961f4da7570b1af440e48fd.pdf"
    assert parts["crs:R48481"] == [
        ("metadata", f"{site}/reports/R48481.json", "reports/R48481.json", False),
        ("html", f"{site}/{html}", html, True),
    ]
    assert parts["crs:98-807"][1] == ("pdf", f"{site}/{pdf}", pdf, True)
    assert [name for name, *_ in parts["crs:RS20001"]] == ["metadata"]


def test_a_report_whose_row_changes_has_another_fingerprint() -> None:
    changed = found(EVERYTHING, CSV.replace(b"0f3d6c5b", b"1f3d6c5b"))
    differing = [
        new.key
        for old, new in zip(tasks(found(EVERYTHING)), tasks(changed), strict=True)
        if old.fingerprint != new.fingerprint
    ]
    assert differing == ["crs:R48481"]


def test_the_list_is_asked_for_once_and_is_the_origin_of_every_task() -> None:
    publisher = Publisher({LIST: CSV})
    listed = tasks(discover(source, publisher, EVERYTHING))
    assert (publisher.asked, publisher.paths) == ([LIST], ["reports.csv"])
    assert {task.origin.url for task in listed if task.origin} == {LIST}


# Ranges -----------------------------------------------------------------------------------


def test_a_backfill_takes_everything_the_oldest_first() -> None:
    assert keys(EVERYTHING) == ALL
    assert mark(EVERYTHING) == Watermark(last_seen_key="2026-02-20", custom={"since": "0001-01-01"})


def test_a_backfill_of_days_goes_by_the_newest_version() -> None:
    days = replace(EVERYTHING, since=date(1999, 1, 1), until=date(2025, 3, 15))
    assert keys(days) == ["crs:RS20001", "crs:R48481"]


def test_the_first_run_takes_the_last_thirty_days() -> None:
    assert keys(RUN) == ["crs:IN12777"]
    assert mark(RUN) == Watermark(last_seen_key="2026-02-20", custom={"since": "2026-02-02"})


def test_a_run_compares_all_that_was_ever_reached() -> None:
    assert keys(replace(RUN, custom={"since": "0001-01-01"})) == ALL
    assert keys(replace(RUN, custom={"since": "2025-01-01"})) == ["crs:R48481", "crs:IN12777"]


def test_only_a_backfill_that_leaves_no_gap_is_kept_up_to_date() -> None:
    reached = {"since": "2026-02-02"}
    before = replace(EVERYTHING, since=date(1998, 1, 1), until=date(2001, 1, 1), custom=reached)
    assert mark(before) is None
    assert mark(replace(before, custom={})) is None
    joined = mark(replace(before, until=date(2026, 2, 2)))
    assert joined is not None
    assert joined.custom == {"since": "1998-01-01"}
    narrower = mark(replace(before, since=date(2026, 2, 10), until=None))
    assert narrower is not None
    assert narrower.custom == reached


def test_what_the_list_no_longer_names_is_withdrawn() -> None:
    [listing] = [item for item in found(RUN) if isinstance(item, Listing)]
    assert (listing.since, listing.until) == (date(1998, 12, 31), date(2026, 2, 20))
    assert listing.task_keys == {*ALL, *(f"{key}#pdf" for key in ALL)}


# Lists that are none ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"<!DOCTYPE html><html>Sorry</html>", WrongContentError, "no column number"),
        (b"", WrongContentError, "no column number"),
        (CSV.split(b"\r\n")[0] + b"\r\n", SuspiciousYieldError, "lists no report"),
        (CSV.replace(b"IN12777", b"R48481"), SuspiciousYieldError, "names R48481 twice"),
        (CSV[:-3], MalformedError, "cut off"),
        (CSV.replace(b',"Wildfire', b',"Wild"fire'), MalformedError, "reports.csv, after line 1"),
    ],
)
def test_a_list_that_is_none_stops_the_run(
    data: bytes, error: type[FondsError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        found(EVERYTHING, data)


@pytest.mark.parametrize(
    ("before", "after", "column"),
    [
        (b"RS20001,", b"RS 2000/1,", "number"),
        (b"reports/RS20001.json", b"https://elsewhere.example/x.json", "url"),
        (b"reports/RS20001.json", b"reports/../RS20001.json", "url"),
        (b"A Report Without Files,,", b"A Report Without Files,,/etc/x.html", "latestHTML"),
        (b"1999-01-01", b"", "latestPubDate"),
    ],
)
def test_a_row_that_leads_elsewhere_is_left_out_and_reported(
    before: bytes, after: bytes, column: str
) -> None:
    publisher = Publisher({LIST: CSV.replace(before, after)})
    listed, error = discover_until_error(source, publisher, EVERYTHING)
    assert [task.key for task in tasks(listed)] == [key for key in ALL if key != "crs:RS20001"]
    assert isinstance(listed[-1], Watermark)
    assert isinstance(error, WrongContentError)
    assert f": {column}" in str(error)


def test_a_list_without_titles_is_read_as_well() -> None:
    rows = [line.split(b",") for line in CSV.replace(b"Wildfire, ", b"").splitlines()]
    old = b"\r\n".join(b",".join(row[:4] + row[5:]) for row in rows)
    assert [task.key for task in tasks(found(EVERYTHING, old))] == ALL


# The audit --------------------------------------------------------------------------------


def entry(number: str, published: str | None) -> dict[str, object]:
    return {"id": number, "publishDate": published, "title": "T", "version": 1}


OFFICIAL = [
    entry("R48481", "2025-03-15T04:00:00Z"),
    entry("IF12990", "2026-02-10T05:00:00Z"),
    entry("IN12777", "2026-01-01T03:30:00Z"),
    entry("95-001", None),
]


def audit(*days: date | None) -> list[Expected]:
    page = json.dumps({"CRSReports": OFFICIAL, "pagination": {"count": 4}}).encode()
    publisher = Publisher({list_address("crsreport", 0): page})

    async def collect() -> list[Expected]:
        since, until = days or (None, None)
        return [item async for item in source.enumerate(publisher, since, until)]

    return asyncio.run(collect())


def test_the_audit_counts_the_last_thirty_days_by_the_official_list() -> None:
    [only] = audit()
    assert only == Expected(scope="published in 2026", document_ids=frozenset({"crs:IF12990"}))


def test_the_audit_of_days_goes_by_the_year_in_washington() -> None:
    last_year, this_year = audit(date(2025, 1, 1), None)
    assert last_year.scope == "published in 2025"
    assert last_year.document_ids == {"crs:R48481", "crs:IN12777"}
    assert this_year.document_ids == {"crs:IF12990"}


def test_the_audit_of_everything_has_the_undated_too() -> None:
    undated, *_ = audit(None, date(2026, 12, 31))
    assert undated == Expected(scope="undated", document_ids=frozenset({"crs:95-001"}))

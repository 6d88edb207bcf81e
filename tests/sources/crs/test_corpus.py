"""Every real file gives records, or says what it is and why it gives none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sources.publishing import loose, records_of, with_children

from fonds.errors import WrongContentError
from fonds.sources.crs import source

# File, and what the error must say.
WITHOUT_RECORDS = {
    "SearchResults_1.json": "search results of crs.gov",  # a scraper's sample, without titles
    "SearchResults_2.json": "search results of crs.gov",  # the same, empty
    "rss_feed.xml": "a feed",  # derived from SearchResults.csv, which is beside it
    "download.html": "a text or a page",  # documentation
    "withheld-reports.txt": "neither metadata, nor a list",  # what EveryCRSReport.com leaves out
}


def test_every_file_gives_records_or_its_reason(corpus: Callable[[str], Path]) -> None:
    files = sorted(path for path in corpus("federal/crs").rglob("*") if path.is_file())
    assert {path.name for path in files} > set(WITHOUT_RECORDS)
    for path in files:
        raw = loose(path.read_bytes(), path.name)
        if reason := WITHOUT_RECORDS.get(path.name):
            with pytest.raises(WrongContentError, match=reason):
                records_of(source, raw)
        else:
            assert records_of(source, raw), path.name


def test_the_list_of_the_api_gives_each_report_with_its_day(corpus: Callable[[str], Path]) -> None:
    for path in (corpus("federal/crs") / "congress_gov_api").glob("*.json"):
        listed = json.loads(path.read_bytes())["CRSReports"]
        records = records_of(source, loose(path.read_bytes(), path.name))
        found = [record.document for record in records]
        # All of them are midnight in Washington, so the day in UTC is the same.
        assert [(one and one.aliases[0], one and one.published_at) for one in found] == [
            (entry["id"], entry["publishDate"][:10]) for entry in listed
        ]
        assert [record.payload["version"] for record in records] == [
            entry["version"] for entry in listed
        ]


def test_the_search_results_give_each_line_with_both_dates(corpus: Callable[[str], Path]) -> None:
    path = corpus("federal/crs") / "crsreports_congress_gov" / "SearchResults.csv"
    # One title has a line break in it.
    lines = re.findall(
        r'^\d+,"([^"]+)","(\d+)/(\d+)/(\d{4})",".*?","https:[^"]*","(\d+)","(\d\d)/(\d\d)/(\d{4})"$',
        path.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    records = records_of(source, loose(path.read_bytes(), path.name))
    assert (
        len(records) == len(lines) == len(re.findall(rb'^\d+,"', path.read_bytes(), re.MULTILINE))
    )
    assert [
        (row["number"], row["latest_pub_date"], row["version"], row["publication_date"])
        for row in (record.payload for record in records)
    ] == [
        (number, f"{y}-{int(m):02}-{int(d):02}", int(version), f"{year}-{month}-{day}")
        for number, m, d, y, version, month, day, year in lines
    ]
    assert sum(1 for _ in with_children(records)) == 2 * len(lines)
    assert all(record.document and record.document.title.strip() for record in records)

"""Every real file gives rows, or says what it is and why it gives none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from tests.sources.publishing import loose, records_of

from fonds.errors import WrongContentError
from fonds.sources.taxonomy import source

# File, and what the error must say.
WITHOUT_ROWS = {
    "bill-nicknames.csv": "nicknames of bills",
    "agencies_sections.csv": "agencies by name only",
    "pai_agency_mapping.csv": "agencies by name only",
    "executive_orders.csv": "executive orders, which federal_register loads",
    "historical_page_counts.csv": "pages of the Federal Register by year",
    "sections_cfr.csv": "sections of federalregister.gov by part of the CFR",
    "api.yml": "a description of the Federal Register's API",
    "open_api_v3.yml": "a description of the Federal Register's API",
}
LISTS = {"liv.xml": 81, "liv111.xml": 33}


@pytest.fixture(scope="module")
def folder(corpus: Callable[[str], Path]) -> Path:
    return corpus("federal/taxonomy")


def test_every_file_gives_rows_or_its_reason(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert {path.name for path in files} == WITHOUT_ROWS.keys() | LISTS.keys()
    for path in files:
        raw = loose(path.read_bytes(), path.name)
        if path.name in LISTS:
            assert records_of(source, raw)
        else:
            with pytest.raises(WrongContentError, match=WITHOUT_ROWS[path.name]):
                records_of(source, raw)


@pytest.mark.parametrize("name", LISTS)
def test_terms_are_those_the_file_lists_below_each_heading(folder: Path, name: str) -> None:
    written = (folder / "crs_liv" / name).read_text(encoding="utf-8")
    pairs: Counter[tuple[str, str]] = Counter()
    heading = ""
    for kind, value in re.findall(r'<(top-term|term) value="([^"]*)"', written):
        if kind == "top-term":
            heading = unescape(value)
        else:
            pairs[heading, unescape(value)] += 1
    records = records_of(source, loose(written.encode(), name))
    found = [
        (record.payload["top_term"], record.payload["name"])
        for record in records
        if record.table == "subjects"
    ]
    assert Counter(found) == Counter(dict.fromkeys(pairs, 1))
    twice = [pair for pair, times in pairs.items() if times > 1]
    assert len(found) == written.count("<term ") - len(twice) > 500
    assert len(twice) == (1 if name == "liv.xml" else 0)


@pytest.mark.parametrize(("name", "headings"), LISTS.items())
def test_policy_areas_are_the_headings_of_the_list_in_use(
    folder: Path, name: str, headings: int
) -> None:
    path = folder / "crs_liv" / name
    areas = [
        record
        for record in records_of(source, loose(path.read_bytes(), name))
        if record.table == "policy_areas"
    ]
    assert path.read_text(encoding="utf-8").count("<top-term ") == headings
    assert len(areas) == (headings if name == "liv111.xml" else 0)

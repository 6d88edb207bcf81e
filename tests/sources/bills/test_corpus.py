from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from tests.sources.publishing import assert_rows_fit, loose

from fonds.errors import ParseError
from fonds.model import FetchTask, ParsedRecord
from fonds.sources.bills import source

# Files that hold no bill and no text of one, by folder or name, and what the error must say.
WITHOUT_RECORDS = (
    (r"congress_gov_api/(118|bill)-", "list of bills"),
    (r"congress_gov_api/hr-", "list of summaries"),
    (r"congress_gov_api/(?!3076-)", "one part of a bill"),
    (r"govinfo_api_json/.*-summary", "description of a package"),
    (r"govinfo_api_json/.*granule", "list of a package's parts"),
    (r"govinfo_api_json/collections", "list of its collections"),
    (r"govinfo_api_json/", "list of a collection"),
    (r"rss_opml/", "list of feeds"),
    (r"thomas_legacy/.*/govtrack\.xml", "GovTrack's record"),
    (r"thomas_legacy/.*/information\.html", "HTML page"),
    (r"us_congress_tool/.*\.json", "derived by the unitedstates/congress tools"),
    (r"us_congress_tool/.*/data\.xml", "GovTrack's record"),
    (r"us_congress_tool/.*\.zip", "ZIP archive"),
    (r"us_congress_tool/.*/mods\.xml", "MODS"),
)

# How often an element stands in a status file, whatever its version: table, then XPath.
COUNTED = {
    "bill_sponsors": "bill/sponsors/item",
    "bill_cosponsors": "bill/cosponsors/item",
    "bill_actions": "bill/actions/item",
    "bill_recorded_votes": "bill/recordedVotes/recordedVote|bill/actions/item//recordedVote",
    "bill_committees": "bill/committees//item[systemCode]",
    "bill_committee_reports": "bill/committeeReports/committeeReport",
    "bill_subjects": "bill/subjects//item[name]",
    "bill_summaries": "bill/summaries//*[versionCode]",
    "bill_titles": "bill/titles/item",
    "bill_laws": "bill/laws/item",
    "bill_cost_estimates": "bill/cboCostEstimates/item",
    "bill_related": "bill/relatedBills/item",
    "bill_amendments": "bill/amendments/amendment",
}


@pytest.fixture
def files(corpus: Callable[[str], Path]) -> dict[str, bytes]:
    folder = corpus("federal/bills")
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@cache
def read(name: str, data: bytes) -> tuple[list[ParsedRecord], list[FetchTask]]:
    found = list(source.parse(loose(data, name.rpartition("/")[2])))
    records = [item for item in found if isinstance(item, ParsedRecord)]
    return records, [item for item in found if isinstance(item, FetchTask)]


def reason_for(name: str) -> str | None:
    return next((why for where, why in WITHOUT_RECORDS if re.match(where, name)), None)


def statuses(files: dict[str, bytes]) -> Iterator[tuple[str, bytes, Any]]:
    for name, data in files.items():
        if "BILLSTATUS-" in name or name.endswith("fdsys_billstatus.xml"):
            yield name, data, etree.fromstring(data)


def test_every_file_gives_records_or_its_reason(files: dict[str, bytes]) -> None:
    assert len(files) == 183
    outcomes: Counter[str] = Counter()
    for name, data in files.items():
        reason = reason_for(name)
        if reason is not None:
            with pytest.raises(ParseError, match=reason):
                read(name, data)
            outcomes["refused"] += 1
            continue
        records, _ = read(name, data)
        assert len(records) == 1, name
        assert_rows_fit(source, records)
        document = records[0].document
        assert document is not None
        assert document.title, name
        assert document.citation_string.endswith(")."), name
        assert document.source_url.startswith("https://www.congress.gov/bill/1"), name
        assert document.source_org.startswith("U.S. "), name
        outcomes[document.kind] += 1
    assert outcomes == {"refused": 69, "bill": 34, "bill_text": 80}


def test_rows_are_as_many_as_the_file_has(files: dict[str, bytes]) -> None:
    seen: Counter[str] = Counter()
    for name, data, root in statuses(files):
        [record], _ = read(name, data)
        counted = Counter(child.table for child in record.children)
        for table, path in COUNTED.items():
            assert counted[table] == len(root.xpath(path)), f"{name}: {table}"
        seen += counted
    assert seen.keys() == COUNTED.keys()
    assert seen["bill_actions"] == 1475
    assert seen["bill_cosponsors"] == 889
    assert seen["bill_amendments"] == 6702


def test_no_text_of_an_action_summary_or_title_is_lost(files: dict[str, bytes]) -> None:
    for name, data, root in statuses(files):
        [record], _ = read(name, data)
        for table, path in {
            "bill_actions": "bill/actions/item/text",
            "bill_summaries": "bill/summaries//item/text",
            "bill_titles": "bill/titles/item/title",
        }.items():
            column = "title" if table == "bill_titles" else "text"
            held = [child.payload[column] for child in record.children if child.table == table]
            stated = [" ".join(text.split()) for text in root.xpath(f"{path}/text()")]
            assert [text for text in held if text] == [text for text in stated if text], name


def test_every_listed_text_becomes_a_task(files: dict[str, bytes]) -> None:
    total = 0
    for name, data, root in statuses(files):
        _, tasks = read(name, data)
        # One file may be listed twice, once with a date and once without.
        listed = {
            (item.findtext("type"), item.findtext("formats/item/url"))
            for item in root.xpath("bill/textVersions/item[type != 'Public Law']")
        }
        assert len(tasks) == len(listed), name
        stated = {url.rpartition("/")[2] for url in root.xpath("bill/textVersions//url/text()")}
        fetched = {part.url.rpartition("/")[2] for task in tasks for part in task.parts}
        assert fetched == {file for file in stated if file.startswith("BILLS-")}, name
        total += len(tasks)
    assert total > 40


def test_a_status_file_is_about_the_bill_its_name_says(files: dict[str, bytes]) -> None:
    for name, data, _ in statuses(files):
        [record], _ = read(name, data)
        number = re.search(r"BILLSTATUS-(\d+)([a-z]+)(\d+)", name)
        if number:
            assert record.key == f"bill:{number[1]}-{number[2]}-{number[3]}"


def test_a_text_is_the_version_its_name_says(files: dict[str, bytes]) -> None:
    checked = 0
    for name, data in files.items():
        file = name.rpartition("/")[2].lower()
        if name.startswith("uslm/"):
            [record], _ = read(name, data)
            code = str(record.payload["version_code"])
            stem = file.removesuffix(".xml").removesuffix("_good")
            assert stem.endswith(code), name
            number = re.search(r"(\d+)[_a-z]+\d?$", stem)
            assert number is not None
            assert record.payload["bill_ref"].endswith(f"-{number[1]}"), name
            checked += 1
    assert checked == 75


def test_texts_have_bodies_with_sections(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        if name.startswith("uslm/"):
            [record], _ = read(name, data)
            assert record.document is not None
            body = record.document.body
            assert body is not None
            assert body.normalized is not None
            assert len(body.normalized.markdown) > 300, name

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from tests.sources.golden import assert_golden, json_lines
from tests.sources.packages import (
    Upstream,
    audited,
    children,
    fetched,
    loose,
    loose_bytes,
    package_task,
    parsed,
    without_bodies,
)

from fonds.errors import SuspiciousYieldError, WrongContentError
from fonds.model import FetchTask, ParsedRecord
from fonds.sources.congressional_record import TABLES, cite_congressional_record, source

FILES = Path(__file__).parent / "files"
ISSUE, SECOND = "CREC-2005-01-04", "CREC-2018-01-03-v164"
MODS = FILES / f"{ISSUE}.mods.xml"


def fetched_issue(package: str = ISSUE) -> tuple[list[ParsedRecord], list[FetchTask]]:
    task = package_task(source, "CREC", package)
    data = (FILES / f"{package}.mods.xml").read_bytes()
    return parsed(source, fetched(task, {"mods": data}))


def granules() -> dict[str, ParsedRecord]:
    records, _ = parsed(source, loose(MODS))
    return {record.key.rpartition("-Pg")[2]: record for record in records}


def cited(place: str) -> str:
    document = granules()[place].document
    assert document is not None
    return document.citation_string


@pytest.mark.parametrize(
    "name",
    [
        f"{ISSUE}.mods.xml",
        f"{SECOND}.mods.xml",
        f"{ISSUE}-pt1-PgH11-2.htm",
        f"{ISSUE}-pt1-PgH11.htm",
        f"{ISSUE}-pt1-PgD1.htm",
    ],
)
def test_records_are_as_reviewed(name: str) -> None:
    records = without_bodies(source.parse(loose(FILES / name)))
    assert_golden(json_lines(records), FILES / f"{name}.golden.jsonl")


def test_columns_of_rows_are_those_of_the_tables() -> None:
    columns = {table.name: {column.name for column in table.c} for table in TABLES}
    issues, _ = fetched_issue()
    for record in (*issues, *granules().values()):
        for row in (record, *record.children):
            assert row.payload.keys() <= columns[row.table]


def test_an_issue_is_a_row_and_a_task_for_each_granule() -> None:
    [issue], further = fetched_issue()
    assert issue.payload == {
        "id": ISSUE,
        "date_issued": "2005-01-04",
        "volume": 151,
        "issue": 1,
        "congress": 109,
        "session": 1,
        "granules": 7,
    }
    assert issue.document is None
    assert len(further) == 7
    for task in further:
        [part] = task.parts
        assert part.url.startswith(f"https://www.govinfo.gov/content/pkg/{ISSUE}/html/{ISSUE}-pt1")
        assert part.path == f"{ISSUE}/html/{part.url.rpartition('/')[2]}"
        assert task.origin is not None
        assert task.fingerprint is not None


def test_a_granule_is_read_from_its_task_alone() -> None:
    _, further = fetched_issue()
    task = next(task for task in further if task.key.endswith("PgH11-2#html"))
    text = (FILES / f"{ISSUE}-pt1-PgH11-2.htm").read_bytes()
    [record], _ = parsed(source, fetched(task, {"html": text}))
    expected = granules()["H11-2"]
    assert (record.payload, record.children) == (expected.payload, expected.children)
    assert record.document is not None
    assert record.document.body is not None
    assert record.document.raw == task.origin


def test_pages_within_a_text_are_in_its_map() -> None:
    [record], _ = parsed(source, loose(FILES / f"{ISSUE}-pt1-PgH11-2.htm"))
    assert record.document is not None
    body = record.document.body
    assert body is not None
    assert body.normalized is not None
    assert [mark.page for mark in body.normalized.pages] == ["H11", "H12", "H13"]
    markdown = body.normalized.markdown
    at = {mark.page: markdown[mark.offset :].lstrip() for mark in body.normalized.pages}
    assert at["H12"].startswith("<!-- Page H12 --> support for ")
    assert "every one of" in at["H13"][:50]
    assert "I urge<!-- Page H12 --> support for" in " ".join(markdown.split())


def test_only_a_single_speaker_is_cited() -> None:
    assert cited("H11-2") == "151 Cong. Rec. H11 (daily ed. Jan. 4, 2005)."
    assert cited("H11") == "151 Cong. Rec. H11 (daily ed. Jan. 4, 2005) (statement of Rep. Stone)."
    assert cited("S5") == "151 Cong. Rec. S5 (daily ed. Jan. 4, 2005) (statement of Sen. Van Keel)."
    assert cited("D1") == "151 Cong. Rec. D1 (daily ed. Jan. 4, 2005)."


def test_the_day_of_the_issue_is_cited_and_not_that_of_the_speech() -> None:
    tribute = granules()["E3"]
    assert tribute.payload["granule_date"] == "2004-12-08"
    assert tribute.document is not None
    assert tribute.document.published_at == "2005-01-04"


def test_a_granule_without_a_page_is_cited_without_one() -> None:
    assert granules()["null-2"].payload["page_start"] is None
    assert cited("null-2") == "151 Cong. Rec. (daily ed. Jan. 4, 2005)."


def test_left_overs_of_references_do_not_change_the_congress() -> None:
    assert granules()["H11-2"].payload["congress"] == 109


def test_voters_are_no_speakers() -> None:
    speakers = children(granules()["H11-2"], "crec_speakers")
    assert [(one["legislator_ref"], one["role"]) for one in speakers] == [
        ("legislator:S000901", "SPEAKING"),
        ("legislator:L000901", "SPEAKING"),
    ]


def test_one_page_answers_to_one_granule() -> None:
    answering = [
        place
        for place, record in granules().items()
        if record.document and "151 Cong. Rec. H11" in record.document.aliases
    ]
    assert answering == ["H11"]


def test_granules_of_a_second_issue_of_a_day_are_told_apart() -> None:
    records, _ = parsed(source, loose(FILES / f"{SECOND}.mods.xml"))
    assert [record.key for record in records] == [
        "crec:CREC-2018-01-03-pt1-PgS1@v164",
        "crec:CREC-2018-01-03-v164-pt1-PgS1-2",
    ]
    _, further = fetched_issue(SECOND)
    assert [task.key for task in further] == [
        f"{SECOND}/CREC-2018-01-03-pt1-PgS1#html",
        f"{SECOND}-pt1-PgS1-2#html",
    ]


def test_a_granule_must_say_its_name_and_its_day() -> None:
    with pytest.raises(WrongContentError, match="not a granule"):
        list(
            source.parse(
                loose_bytes(b"<html><body><pre>\nText\n</pre></body></html>", f"{ISSUE}.htm")
            )
        )


def test_the_audit_counts_granules_by_the_api() -> None:
    api = "https://api.govinfo.gov"
    query = "?offsetMark=%2A&pageSize=1000"
    package = b'{"packageId": "CREC-2018-01-03-v164", "dateIssued": "2018-01-03"}'
    listed = b'{"count": 1, "packages": [' + package + b"]}"
    below = b'{"count": 1, "granules": [{"granuleId": "CREC-2018-01-03-pt1-PgS1"}]}'
    files = {
        f"{api}/published/2018-01-03/2018-01-03{query}&collection=CREC": listed,
        f"{api}/packages/{SECOND}/granules{query}": below,
    }
    day = date(2018, 1, 3)
    [found] = audited(source, Upstream(files), since=day, until=day)
    assert found.scope == SECOND
    assert found.document_ids == {"crec:CREC-2018-01-03-pt1-PgS1@v164"}
    files[f"{api}/packages/{SECOND}/granules{query}"] = b'{"count": 0, "granules": []}'
    with pytest.raises(SuspiciousYieldError, match="no granule"):
        audited(source, Upstream(files), since=day, until=day)


def test_what_is_unknown_is_left_out_of_a_citation() -> None:
    assert cite_congressional_record(volume=None, page=None, issued=None) == "Cong. Rec."
    assert (
        cite_congressional_record(volume=171, page="H1234", issued=None, speaker="X")
        == "171 Cong. Rec. H1234 (statement of X)."
    )


def test_the_form_of_the_citation() -> None:
    day = date(2025, 3, 4)
    assert (
        cite_congressional_record(volume=171, page="H1234", issued=day, speaker="X", chamber="H")
        == "171 Cong. Rec. H1234 (daily ed. Mar. 4, 2025) (statement of Rep. X)."
    )

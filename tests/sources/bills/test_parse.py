from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.sources.golden import assert_golden, json_lines
from tests.sources.publishing import assert_rows_fit, fetched, loose

from fonds.errors import MalformedError, WrongContentError
from fonds.model import FetchTask, ParsedRecord, Part, Raw
from fonds.sources.bills import source

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"


def status(name: str) -> tuple[ParsedRecord, list[FetchTask]]:
    found = list(source.parse(loose((FILES / name).read_bytes(), name)))
    [record] = [item for item in found if isinstance(item, ParsedRecord)]
    return record, [item for item in found if isinstance(item, FetchTask)]


def rows(record: ParsedRecord, table: str) -> list[dict[str, Any]]:
    return [dict(child.payload) for child in record.children if child.table == table]


def asked_for(key: str, data: bytes) -> Raw:
    part = Part(name="status", url="https://www.govinfo.gov/x.xml", path="x.xml")
    return fetched(FetchTask(source="bills", key=key, parts=(part,)), status=data)


@pytest.mark.parametrize("name", ["118hr77", "116sconres88", "114hres5"])
def test_each_format_gives_the_reviewed_records(name: str) -> None:
    raw = loose((FILES / f"BILLSTATUS-{name}.xml").read_bytes(), f"BILLSTATUS-{name}.xml")
    assert_golden(json_lines(source.parse(raw)), GOLDEN / f"{name}.jsonl")


@pytest.mark.parametrize("name", ["118hr77", "116sconres88", "114hres5"])
def test_every_row_fits_its_table_and_has_a_key_of_its_own(name: str) -> None:
    record, _ = status(f"BILLSTATUS-{name}.xml")
    assert_rows_fit(source, [record])
    keys = Counter(child.key for child in record.children)
    assert max(keys.values()) == 1
    assert all(child.key.startswith(f"{record.key}#{child.table}/") for child in record.children)


def test_formats_differ_in_names_and_not_in_rows() -> None:
    new, _ = status("BILLSTATUS-118hr77.xml")
    old, _ = status("BILLSTATUS-116sconres88.xml")
    oldest, _ = status("BILLSTATUS-114hres5.xml")
    assert [one.payload["version"] for one in (new, old, oldest)] == ["3.0.0", "1.0.0", None]
    assert [one.key for one in (new, old, oldest)] == [
        "bill:118-hr-77",
        "bill:116-sconres-88",
        "bill:114-hres-5",
    ]
    assert rows(new, "bill_committees")[0].keys() == rows(old, "bill_committees")[0].keys()
    assert rows(old, "bill_subjects")[0]["name"] == "Capitol bells"
    assert rows(oldest, "bill_subjects")[0]["parent_name"] == "Sports and Recreation"
    assert oldest.payload["policy_area"] == "Congress"


def test_the_latest_summary_is_the_body_and_its_words_the_summary() -> None:
    record, _ = status("BILLSTATUS-118hr77.xml")
    assert record.document is not None
    body = record.document.body
    assert body is not None
    assert body.normalized is not None
    assert "- apples;" in body.normalized.markdown
    assert record.document.summary == "This bill plants trees. apples; pears & plums."


def test_a_bill_without_summary_is_summed_up_by_its_official_title() -> None:
    record, _ = status("BILLSTATUS-114hres5.xml")
    assert record.document is not None
    assert record.document.body is None
    assert record.document.summary == "Resolution adopting rules for the House."


def test_a_long_summary_ends_with_a_sentence() -> None:
    sentence = "The Secretary shall plant another tree in every county of the land. "
    data = (FILES / "BILLSTATUS-118hr77.xml").read_bytes()
    long = data.replace(b"This bill plants <em>trees</em>.", (sentence * 20).encode())
    [record, *_] = source.parse(loose(long))
    assert isinstance(record, ParsedRecord)
    assert record.document is not None
    summary = record.document.summary
    assert summary is not None
    assert summary == (sentence * (len(summary) // len(sentence) + 1)).strip()
    assert 400 < len(summary) <= 600


def test_people_and_committees_are_named_as_their_own_sources_name_them() -> None:
    record, _ = status("BILLSTATUS-118hr77.xml")
    assert record.payload["sponsor_ref"] == "legislator:E000001"
    [sponsor] = rows(record, "bill_sponsors")
    assert sponsor["is_by_request"] is True
    assert [row["committee_ref"] for row in rows(record, "bill_committees")] == [
        "committee:HSAG",
        "committee:HSAG14",
    ]
    kept, withdrawn = rows(record, "bill_cosponsors")
    assert (kept["district"], kept["sponsorship_withdrawn_date"]) == (0, None)
    assert withdrawn["sponsorship_withdrawn_date"] == "2023-02-02"


def test_references_to_other_sources_bear_their_ids() -> None:
    record, _ = status("BILLSTATUS-118hr77.xml")
    assert rows(record, "bill_laws")[0]["law_ref"] == "plaw:118-3"
    assert rows(record, "bill_laws")[0]["text_url"].endswith("/PLAW-118publ3.xml")
    assert rows(record, "bill_recorded_votes")[0]["vote_ref"] == "vote:house/118-1/8"
    assert rows(record, "bill_recorded_votes")[0]["action_ord"] == 1
    assert rows(record, "bill_cost_estimates")[0]["publication_ref"] == "cbo:59001"
    assert rows(record, "bill_committee_reports")[0]["report_ref"] == "crpt:CRPT-118hrpt9"
    assert rows(record, "bill_related")[0]["related_ref"] == "bill:118-s-12"
    old, _ = status("BILLSTATUS-114hres5.xml")
    assert rows(old, "bill_laws")[0]["law_ref"] == "plaw:114-pvt-2"
    assert rows(old, "bill_cost_estimates")[0]["publication_ref"] == "cbo:50168"


def test_an_action_may_have_no_text_and_a_time_of_twelve_hours() -> None:
    record, _ = status("BILLSTATUS-118hr77.xml")
    assert [row["text"] is None for row in rows(record, "bill_actions")] == [False, True, False]
    old, _ = status("BILLSTATUS-114hres5.xml")
    times = [row["action_time"] for row in rows(old, "bill_actions")]
    assert times == ["17:10:00", "00:05:00"]


def test_of_a_field_that_stands_twice_the_one_with_text_counts() -> None:
    record, _ = status("BILLSTATUS-116sconres88.xml")
    [amendment] = rows(record, "bill_amendments")
    assert amendment["number"] == 99
    assert amendment["purpose"] == "To ring twice."
    assert amendment["amended_amendment"] == {"number": "98", "congress": "116", "type": "SAMDT"}
    assert len(amendment["actions"]) == 2


def test_a_document_can_be_found_by_every_name() -> None:
    record, _ = status("BILLSTATUS-118hr77.xml")
    assert record.document is not None
    assert (
        record.document.source_url == "https://www.congress.gov/bill/118th-congress/house-bill/77"
    )
    assert record.document.source_org == "U.S. House of Representatives"
    assert {"H.R. 77 (118th)", "hr77-118", "118 H.R. 77", "BILLSTATUS-118hr77"} <= set(
        record.document.aliases
    )
    resolution, _ = status("BILLSTATUS-114hres5.xml")
    assert resolution.document is not None
    assert {"H. Res. 5 (114th)", "114 H.R. Res. 5"} <= set(resolution.document.aliases)


def test_the_answer_of_congress_gov_about_one_bill_is_understood() -> None:
    answer = {
        "bill": {
            "congress": 118,
            "type": "HR",
            "number": "77",
            "title": "Orchard Act",
            "introducedDate": "2023-01-09",
            "actions": {"count": 3, "url": "https://api.congress.gov/v3/bill/118/hr/77/actions"},
            "sponsors": [{"bioguideId": "E000001", "district": 3, "isByRequest": "N"}],
            "laws": [{"number": "118-3", "type": "Public Law"}],
            "committeeReports": [{"citation": "H. Rept. 118-9", "url": "https://x.example"}],
        }
    }
    [record] = source.parse(loose(json.dumps(answer).encode()))
    assert isinstance(record, ParsedRecord)
    assert record.key == "bill:118-hr-77"
    assert Counter(child.table for child in record.children) == {
        "bill_sponsors": 1,
        "bill_laws": 1,
        "bill_committee_reports": 1,
    }


def test_a_status_file_of_another_bill_is_refused() -> None:
    data = (FILES / "BILLSTATUS-118hr77.xml").read_bytes()
    assert list(source.parse(asked_for("bill:118-hr-77", data)))
    with pytest.raises(WrongContentError, match="bill:118-hr-77"):
        list(source.parse(asked_for("bill:118-hr-78", data)))


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"<!DOCTYPE html><html><p>Busy</p></html>", WrongContentError, "HTML"),
        (b"<html><body>Busy</body></html>", WrongContentError, "HTML"),
        (b" \n", MalformedError, "empty"),
        (b"PK\x03\x04rest", WrongContentError, "ZIP"),
        (b"<billStatus><bill><number>1</number></bill></billStatus>", MalformedError, "which bill"),
        (b"<billStatus/>", WrongContentError, "without a bill"),
        (b"<billStatus><bill>", MalformedError, "well-formed"),
        (b"<mods xmlns='http://www.loc.gov/mods/v3'/>", WrongContentError, "MODS"),
        (b"<opml/>", WrongContentError, "feeds"),
        (b"<odd/>", WrongContentError, "<odd>"),
        (b'<bill session="112" updated="2012-01-01"/>', WrongContentError, "GovTrack"),
        (b'{"bills": []}', WrongContentError, "list of bills"),
        (b'{"files": []}', WrongContentError, "listing"),
        (b'{"bill_id": "hr1-117"}', WrongContentError, "derived"),
        (b'[{"a": 1}]', WrongContentError, "list of 1 items"),
    ],
)
def test_other_files_are_called_by_their_name(
    data: bytes, error: type[Exception], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        list(source.parse(loose(data)))


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        (b"<isByRequest>Y<", b"<isByRequest>maybe<", "true or false"),
        (b"<introducedDate>2023-01-09<", b"<introducedDate>2023-02-30<", "not a day"),
        (b"<district>3<", b"<district>third<", "whole number"),
        (b"<congress>118</congress>\n    <const", b"<congress/>\n    <const", "which bill"),
        (b"<type>HR</type>\n    <intro", b"<type>XX</type>\n    <intro", "which bill"),
    ],
)
def test_a_field_of_the_wrong_kind_is_an_error_by_its_name(
    old: bytes, new: bytes, cause: str
) -> None:
    data = (FILES / "BILLSTATUS-118hr77.xml").read_bytes()
    assert old in data
    with pytest.raises(MalformedError, match=cause):
        list(source.parse(loose(data.replace(old, new))))

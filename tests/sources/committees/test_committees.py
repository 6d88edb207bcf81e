from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.sources.legislators.reviewed import (
    compare,
    everything,
    loose,
    published,
    raw_of,
    raw_part,
)

from fonds.errors import DuplicateKeyError, MalformedError, ParseError, WrongContentError
from fonds.model import FetchTask, ParsedRecord, SourceState
from fonds.sources.base import Auditable, Expected, ListingResponse, Source
from fonds.sources.committees import source
from fonds.sources.formats.congress import citation_for, congress_ranges
from fonds.stores.tables import metadata

FILES = Path(__file__).parent / "files"
HISTORICAL = FILES / "committees-historical.yaml"
CURRENT = FILES / "committees-current.yaml"
MEMBERS = FILES / "committee-membership-current.yaml"
API = FILES / "congress-gov-committees.json"


def parsed(*files: Path) -> list[ParsedRecord]:
    return list(source.parse(published(*files)))


def both_lists() -> dict[str, ParsedRecord]:
    return {record.key: record for record in everything(parsed(HISTORICAL, CURRENT))}


def as_json(path: Path) -> bytes:
    text = path.read_text(encoding="utf-8")
    return json.dumps(yaml.load(text, Loader=yaml.BaseLoader)).encode()


@pytest.mark.parametrize("path", [HISTORICAL, CURRENT, MEMBERS], ids=lambda path: path.stem)
def test_a_published_file_gives_the_reviewed_records(path: Path) -> None:
    compare(parsed(path), path.with_suffix(".golden.jsonl"))


def test_both_lists_together_give_the_reviewed_records() -> None:
    compare(parsed(HISTORICAL, CURRENT), FILES / "both.golden.jsonl")


def test_a_list_from_the_congress_gov_api_gives_the_reviewed_records() -> None:
    records = source.parse(raw_of(raw_part(API.read_bytes(), file=API.name)))
    compare(records, API.with_suffix(".golden.jsonl"))


@pytest.mark.parametrize("path", [HISTORICAL, CURRENT, MEMBERS], ids=lambda path: path.stem)
def test_the_same_data_as_json_gives_the_same_rows(path: Path) -> None:
    rows = [(one.key, one.payload) for one in everything(source.parse(loose(as_json(path))))]
    assert rows == [(one.key, one.payload) for one in everything(parsed(path))]


@pytest.mark.parametrize("path", [HISTORICAL, CURRENT, MEMBERS], ids=lambda path: path.stem)
def test_every_row_fits_its_table(path: Path) -> None:
    for record in everything(parsed(path)):
        table = metadata.tables[record.table]
        assert table in source.info.tables
        assert set(record.payload) <= set(table.columns.keys())
        needed = {column.name for column in table.columns if not column.nullable}
        assert not [name for name in needed if record.payload.get(name) is None]


def test_a_committee_of_both_lists_keeps_what_each_of_them_knows() -> None:
    records = both_lists()
    farms = records["committee:HSFX"]
    assert farms.payload["name"] == "House Committee on Agriculture and Farms"
    assert farms.payload["is_current"] is True
    assert farms.payload["url"] == "https://farms.house.example/"
    assert records["committee:HSFX#names/111"].payload["name"] == "Farms"
    assert records["committee:HSFX#congresses/113"].payload["congress"] == 113


def test_what_only_the_historical_list_names_is_no_longer_current() -> None:
    records = both_lists()
    assert records["committee:HLCX"].payload["is_current"] is False
    assert records["committee:HSFX01"].payload["is_current"] is False
    alone = {record.key: record for record in parsed(HISTORICAL)}
    assert alone["committee:HSFX"].payload["is_current"] is None


def test_names_by_congress_have_whole_numbers_whatever_the_file_quoted() -> None:
    records = both_lists()
    assert records["committee:HLCX#names/96"].payload["congress"] == 96
    assert records["committee:HSFX15#names/101"].payload["congress"] == 101


def test_a_subcommittee_is_known_by_both_codes_and_follows_its_committee() -> None:
    keys = [record.key for record in parsed(CURRENT)]
    assert keys.index("committee:HSFX") < keys.index("committee:HSFX09")
    records = both_lists()
    assert records["committee:HSFX09"].payload["thomas_id"] == "09"
    assert records["committee:HSFX15"].payload["parent_ref"] == "committee:HSFX"


def test_members_of_a_joint_committee_have_their_chamber() -> None:
    members = {record.key: record.payload for record in parsed(MEMBERS)}
    assert members["committee:JSAX#member/P000901"]["chamber"] == "senate"
    assert members["committee:JSAX#member/Z000999"]["chamber"] == "house"
    assert members["committee:HSFX#member/V000902"]["chamber"] is None
    assert members["committee:HSFX15#member/V000902"]["start_date"] == "2026-02-03"


LISTED = CURRENT.read_bytes()
SEATED = MEMBERS.read_bytes()


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (b"", WrongContentError, "empty"),
        (b"[]", WrongContentError, "a list of 0 items"),
        (b"<html><body>Sorry</body></html>", WrongContentError, "HTML"),
        (b'{"members": [{}], "request": {}}', WrongContentError, "keys members, request"),
        (b'{"committees": [], "request": {}}', WrongContentError, "keys committees, request"),
        (b"- id: {bioguide: P000901}\n", WrongContentError, "keys id"),
        (LISTED.replace(b"HSFX\n", b"SSWX\n"), DuplicateKeyError, "SSWX"),
        (LISTED.replace(b"thomas_id: 09", b"thomas_id: '15'"), DuplicateKeyError, "HSFX15"),
        (LISTED.replace(b"  name: Joint", b"  nam: Joint"), MalformedError, "entry 2.*`name`"),
        (LISTED.replace(b"  phone", b"  name", 1), DuplicateKeyError, "'name'"),
        (LISTED[: LISTED.index(b"rss_url") + 3], MalformedError, "line"),
        (SEATED.replace(b"N000903", b"V000902"), DuplicateKeyError, "#member/V000902"),
        (SEATED.replace(b"  bioguide: P000901\n", b""), MalformedError, "members of JSAX"),
        (SEATED.replace(b"rank: 2", b"rank: second"), MalformedError, "`rank`"),
        (SEATED.replace(b"SSWX", b"Senate Weather"), MalformedError, "'Senate Weather'"),
        (SEATED.replace(b"SSWX", b"JSAX"), DuplicateKeyError, "'JSAX'"),
        (SEATED.replace(b"SSWX: []", b"SSWX: &a []\nSSVX: *a"), MalformedError, "anchors"),
    ],
)
def test_a_file_that_is_not_as_promised_is_refused_with_its_reason(
    data: bytes, error: type[ParseError], says: str
) -> None:
    with pytest.raises(error, match=says):
        list(source.parse(loose(data)))


def test_a_list_from_the_api_with_two_different_committees_under_one_code_is_refused() -> None:
    data = API.read_bytes().replace(b'"systemCode": "hsfx15"', b'"systemCode": "hsfx00"')
    with pytest.raises(DuplicateKeyError, match="HSFX"):
        list(source.parse(loose(data)))


def test_another_file_under_a_known_name_is_refused() -> None:
    part = raw_part(SEATED, name="committees-current")
    with pytest.raises(WrongContentError, match="committees-current holds something else"):
        list(source.parse(raw_of(part)))


def test_both_lists_are_one_task_and_members_come_after_it() -> None:
    async def listed() -> list[Any]:
        state = SourceState(now=datetime(2026, 6, 1, tzinfo=UTC))
        return [task async for task in source.discover(state, not_asked)]

    tasks = asyncio.run(listed())
    assert all(isinstance(task, FetchTask) for task in tasks)
    assert [[part.path for part in task.parts] for task in tasks] == [
        ["committees-historical.yaml", "committees-current.yaml"],
        ["committee-membership-current.yaml"],
    ]


async def not_asked(url: str, *, path: str) -> ListingResponse:
    raise AssertionError(f"{url} ({path}) was asked for")


def test_the_count_comes_from_the_json_publication() -> None:
    assert isinstance(source, Source)
    assert isinstance(source, Auditable)
    expected = {one.scope: one.document_ids for one in asyncio.run(enumerated())}
    assert expected["committees-historical"] == {
        "committee:HLCX",
        "committee:HSFX",
        "committee:HSFX01",
        "committee:HSFX15",
    }
    assert len(expected["committees-current"]) == 5


async def enumerated() -> list[Expected]:
    async def ask(url: str, *, path: str) -> ListingResponse:
        assert url.endswith(path)
        data = as_json((FILES / path).with_suffix(".yaml"))
        return ListingResponse(data=data, archived=raw_part(data).archived, changed=True)

    return [one async for one in source.enumerate(ask, None, None)]


@pytest.mark.parametrize(
    ("congresses", "text"),
    [
        ((), ""),
        ((93,), "93d Cong."),
        ((103, 102, 101), "101st–103d Cong."),
        ((93, 96, 97), "93d, 96th–97th Cong."),
        ((111, 112, 113), "111th–113th Cong."),
    ],
)
def test_congresses_are_told_as_ranges(congresses: tuple[int, ...], text: str) -> None:
    assert congress_ranges(congresses) == text


def test_a_subcommittee_is_cited_below_its_committee() -> None:
    cited = citation_for(
        code="SSWX01", name="the Tides", parent="Senate Committee on Weather", congresses=[97]
    )
    assert cited == "Subcomm. on the Tides of the S. Comm. on Weather, 97th Cong. (SSWX01)."

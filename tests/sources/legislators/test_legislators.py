from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
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
from fonds.sources.legislators import source
from fonds.stores.tables import metadata

FILES = Path(__file__).parent / "files"
NAMES = (
    "legislators-historical",
    "legislators-current",
    "executive",
    "legislators-social-media",
    "legislators-district-offices",
)


def parsed(name: str) -> list[ParsedRecord]:
    return list(source.parse(published(FILES / f"{name}.yaml")))


def by_key(name: str) -> dict[str, ParsedRecord]:
    return {record.key: record for record in everything(parsed(name))}


def as_json(name: str) -> bytes:
    text = (FILES / f"{name}.yaml").read_text(encoding="utf-8")
    return json.dumps(yaml.load(text, Loader=yaml.BaseLoader)).encode()


@pytest.mark.parametrize("name", NAMES)
def test_a_published_file_gives_the_reviewed_records(name: str) -> None:
    compare(parsed(name), FILES / f"{name}.golden.jsonl")


def test_a_loose_csv_gives_the_reviewed_records() -> None:
    part = raw_part((FILES / "legislators-current.csv").read_bytes(), file="saved.csv")
    compare(source.parse(raw_of(part)), FILES / "csv.golden.jsonl")


@pytest.mark.parametrize("name", NAMES)
def test_the_same_data_as_json_gives_the_same_rows(name: str) -> None:
    part = raw_part(as_json(name), name=name)
    rows = [(one.key, one.payload) for one in everything(source.parse(raw_of(part)))]
    assert rows == [(one.key, one.payload) for one in everything(parsed(name))]


@pytest.mark.parametrize("name", NAMES)
def test_a_loose_file_is_known_by_its_content(name: str) -> None:
    records = list(source.parse(loose((FILES / f"{name}.yaml").read_bytes())))
    assert [record.key for record in records] == [record.key for record in parsed(name)]


@pytest.mark.parametrize("name", NAMES)
def test_every_row_fits_its_table(name: str) -> None:
    for record in everything(parsed(name)):
        table = metadata.tables[record.table]
        assert table in source.info.tables
        assert set(record.payload) <= set(table.columns.keys())
        needed = {column.name for column in table.columns if not column.nullable}
        assert not [name for name in needed if record.payload.get(name) is None]


def test_ids_keep_their_zeros_quoted_or_not_and_numbers_become_text() -> None:
    rows = by_key("legislators-current")
    assert rows["legislator:P000901#ids/thomas/1"].payload["value"] == "00904"
    assert rows["legislator:N000903#ids/thomas/1"].payload["value"] == "00903"
    assert rows["legislator:P000901#ids/govtrack/1"].payload["value"] == "498101"
    assert rows["legislator:P000901#ids/fec/2"].payload["value"] == "H2WA01901"


def test_a_date_without_quotes_stays_text() -> None:
    assert by_key("legislators-current")["legislator:V000902"].payload["birthday"] == "1961-07-30"


def test_a_change_of_party_within_a_term_is_kept_by_its_days() -> None:
    rows = by_key("legislators-current")
    before = rows["legislator:V000902#party_affiliations/1/1"].payload
    after = rows["legislator:V000902#party_affiliations/1/2"].payload
    assert (before["party"], before["end_date"]) == ("Democrat", "2019-12-18")
    assert (after["party"], after["start"]) == ("Republican", "2019-12-19")


def test_the_file_says_who_is_in_office() -> None:
    assert {record.payload["in_office"] for record in parsed("legislators-current")} == {True}
    assert {record.payload["in_office"] for record in parsed("legislators-historical")} == {False}
    data = (FILES / "legislators-current.yaml").read_bytes()
    assert {record.payload["in_office"] for record in source.parse(loose(data))} == {None}


def test_a_member_who_moves_between_files_is_the_same_document() -> None:
    data = (FILES / "legislators-current.yaml").read_bytes()
    moved = source.parse(raw_of(raw_part(data, name="legislators-historical")))
    assert [one.key for one in moved] == [one.key for one in parsed("legislators-current")]


def test_an_executive_without_bioguide_has_its_own_page_and_name() -> None:
    holt = by_key("executive")["executive:498107"]
    assert holt.document is not None
    assert holt.document.source_url == "https://www.govtrack.us/congress/members/498107"
    assert holt.document.citation_string == "President Cyrus Holt, GovTrack.us, No. 498107."
    assert holt.payload["legislator_ref"] is None
    assert "govtrack 498107" in holt.document.aliases


def test_an_executive_who_sat_in_congress_leaves_the_legislators_names_alone() -> None:
    harmon = by_key("executive")["executive:498106"]
    assert harmon.document is not None
    assert harmon.payload["legislator_ref"] == "legislator:H000906"
    assert harmon.document.aliases == ("icpsr_prez 99906",)


def test_offices_and_accounts_name_people_nobody_else_knows() -> None:
    offices = by_key("legislators-district-offices")
    assert offices["office:Z000999-juneau"].payload["legislator_ref"] == "legislator:Z000999"
    assert offices["office:V000902-camden"].payload["suite"] == "2002"
    assert offices["office:V000902-mays_landing"].payload["zip"] == "08330"
    accounts = by_key("legislators-social-media")["legislator:P000901#social_media"].payload
    assert accounts["twitter_id"] == "3000000901"


CURRENT = (FILES / "legislators-current.yaml").read_bytes()


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (b"", WrongContentError, "empty"),
        (b"# nobody serves\n", WrongContentError, "empty"),
        (b"[]", WrongContentError, "empty"),
        (b"<!DOCTYPE html><html><body>Sorry</body></html>", WrongContentError, "HTML"),
        (b"404: Not Found", WrongContentError, "a mapping with the keys 404"),
        (b'{"members": [], "request": {}}', WrongContentError, "keys members, request"),
        (b"- thomas_id: HSFX\n  name: Farms\n", WrongContentError, "keys thomas_id, name"),
        (b"- 7\n- 8\n", MalformedError, "should be a mapping"),
        (CURRENT[: CURRENT.index(b"'1958") + 4], MalformedError, "line"),
        (CURRENT.replace(b"    gender", b"\tgender", 1), MalformedError, "line"),
        (CURRENT.replace(b"    thomas:", b"    bioguide:", 1), DuplicateKeyError, "'bioguide'"),
        (CURRENT.replace(b"bioguide: V000902", b"bioguide:"), MalformedError, "entry 2"),
        (CURRENT.replace(b"title: Senate Min", b"titel: Senate Min"), MalformedError, "`title`"),
        (CURRENT.replace(b"district: 2", b"district: two"), MalformedError, "`district`"),
        (CURRENT.replace(b"V000902", b"P000901"), DuplicateKeyError, "legislator:P000901"),
        (CURRENT.replace(b"first: Ada", b"first: &a Ada"), MalformedError, "anchors"),
        (b"last_name,type\nPalmer,sen\n", WrongContentError, "bioguide_id"),
        (b"last_name,bioguide_id,type\n", WrongContentError, "empty"),
        (b'last_name,bioguide_id,type\n"Palmer', MalformedError, "CSV"),
        (b"last_name,bioguide_id,type\nPalm\xe9r,P1,sen\n", MalformedError, "CSV"),
    ],
)
def test_a_file_that_is_not_as_promised_is_refused_with_its_reason(
    data: bytes, error: type[ParseError], says: str
) -> None:
    with pytest.raises(error, match=says):
        list(source.parse(loose(data)))


def test_another_file_under_a_known_name_is_refused() -> None:
    part = raw_part((FILES / "executive.yaml").read_bytes(), name="legislators-current")
    with pytest.raises(WrongContentError, match="legislators-current holds something else"):
        list(source.parse(raw_of(part)))


def test_the_five_files_are_listed_in_load_order() -> None:
    async def listed() -> list[Any]:
        state = SourceState(now=datetime(2026, 6, 1, tzinfo=UTC))
        return [task async for task in source.discover(state, not_asked)]

    tasks = asyncio.run(listed())
    assert [task.key for task in tasks] == list(NAMES)
    assert all(isinstance(task, FetchTask) and task.fingerprint is None for task in tasks)
    assert tasks[0].parts[0].url == (
        "https://unitedstates.github.io/congress-legislators/legislators-historical.yaml"
    )


async def not_asked(url: str, *, path: str) -> ListingResponse:
    raise AssertionError(f"{url} ({path}) was asked for")


def test_the_count_comes_from_other_files_than_the_records() -> None:
    assert isinstance(source, Source)
    assert isinstance(source, Auditable)
    expected = {one.scope: one.document_ids for one in asyncio.run(enumerated())}
    assert expected["legislators-current"] == {"legislator:P000901", "legislator:N000903"}
    assert expected["executive"] == {"executive:498106", "executive:498107"}


def test_a_count_of_a_page_that_is_no_table_is_refused() -> None:
    with pytest.raises(WrongContentError, match="bioguide_id"):
        asyncio.run(enumerated(b"<html>Sorry</html>"))


async def enumerated(table: bytes = b"") -> list[Expected]:
    async def ask(url: str, *, path: str) -> ListingResponse:
        assert url.endswith(path)
        data = as_json("executive") if path == "executive.json" else table or csv_data()
        return ListingResponse(data=data, archived=raw_part(data).archived, changed=True)

    return [one async for one in source.enumerate(ask, None, None)]


def csv_data() -> bytes:
    return (FILES / "legislators-current.csv").read_bytes()


def titles() -> Iterator[tuple[str, str]]:
    for name in NAMES[:3]:
        for record in parsed(name):
            assert record.document is not None
            yield record.key, record.document.title


def test_titles_name_office_party_and_place() -> None:
    assert dict(titles()) == {
        "legislator:W000904": "Rep. Enos T. Ward (Whig-OH)",
        "legislator:B000905": "Sen. Marian Bell Moore (R-CO)",
        "legislator:P000901": "Sen. Ada R. Palmer (D-WA)",
        "legislator:V000902": "Rep. Jerome Van Dorn, Jr. (R-NJ)",
        "legislator:N000903": "Res. Comm'r Inés Núñez (I-PR)",
        "executive:498106": "President Lucius Q. Harmon",
        "executive:498107": "President Cyrus Holt",
    }

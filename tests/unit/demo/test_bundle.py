"""What is bundled is whole: well-formed, in agreement with itself, and small."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml
from lxml import etree

from fonds.demo.bundle import DATA, BundledRegister, StaticFiles
from fonds.demo.federal_register_api import LABELS
from fonds.demo.http import Request
from fonds.demo.server import DemoUpstream
from fonds.normalize.fr import document_number

REGISTER = DATA / "www.federalregister.gov"
PEOPLE = DATA / "unitedstates.github.io" / "congress-legislators"
ROOTS = {label: code for code, label in LABELS.items()}

XML = sorted(REGISTER.glob("*/*.xml"))
RECORDS = sorted(REGISTER.glob("*/*.json"))
YAML = sorted(PEOPLE.glob("*.yaml"))


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _record(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return record


def _tree(path: Path) -> Any:
    return etree.fromstring(path.read_bytes())


def _yaml(name: str) -> Any:
    return yaml.safe_load((PEOPLE / f"{name}.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with (
        DemoUpstream() as upstream,
        httpx.Client(base_url=upstream.hosts["www.federalregister.gov"], trust_env=False) as client,
    ):
        yield client


def test_there_is_enough_to_show_and_not_too_much_to_ship() -> None:
    size = sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file())

    assert (len(RECORDS), len(XML)) == (25, 24)
    assert size < 700_000


@pytest.mark.parametrize("path", XML, ids=_name)
def test_full_text_is_well_formed_and_is_of_its_record(path: Path) -> None:
    root = _tree(path)
    record = _record(path.with_suffix(".json"))
    words = " ".join(root.itertext()).split()
    first, last = record["start_page"], record["end_page"]

    assert root.tag == ROOTS[record["type"]]
    assert document_number(root) == record["document_number"] == path.stem
    assert 500 <= len(words) <= 2500
    assert {int(mark.get("P")) for mark in root.iter("PRTPAGE")} <= set(range(first, last + 1))
    assert len(list(root.iter("FTREF"))) == len(list(root.iter("FTNT")))


@pytest.mark.parametrize("path", XML, ids=_name)
def test_tables_have_as_many_cells_in_each_row_as_heads(path: Path) -> None:
    for table in _tree(path).iter("GPOTABLE"):
        columns = int(table.get("COLS"))

        assert len(table.findall("BOXHD/CHED")) == columns
        assert {len(row.findall("ENT")) for row in table.findall("ROW")} == {columns}


def test_every_word_of_the_vocabulary_occurs() -> None:
    used = {element.tag for path in XML for element in _tree(path).iter()}

    assert used >= set(
        """
        RULE PRORULE NOTICE PRESDOCU PREAMB AGENCY SUBAGY CFR RIN SUBJECT AGY ACT SUM DATES
        EFFDATE ADD FURINF SUPLINF HD REGTEXT AMDPAR SECTION SECTNO GPOTABLE FTNT FTREF PRTPAGE
        SIG FRDOC BILCOD LSTSUB STARS AUTH EXECORD PROCLA PRMEMO
        """.split()  # noqa: SIM905 — forty quoted names would hide the list
    )


@pytest.mark.parametrize("path", RECORDS, ids=_name)
def test_a_record_lies_in_the_folder_of_its_day_and_names_its_own_addresses(path: Path) -> None:
    record = _record(path)
    day = date.fromisoformat(path.parent.name)
    place = f"/{day:%Y/%m/%d}/{path.stem}"

    assert record["publication_date"] == path.parent.name
    assert record["document_number"] == path.stem
    assert record["type"] in LABELS.values()
    assert record["volume"] == day.year - 1935
    assert record["page_length"] == record["end_page"] - record["start_page"] + 1
    assert record["html_url"].startswith(f"https://www.federalregister.gov/documents{place}/")
    assert (record["full_text_xml_url"] is not None) == path.with_suffix(".xml").exists()


def test_all_records_have_the_same_fields() -> None:
    assert len({frozenset(_record(path)) for path in RECORDS}) == 1


def test_the_traps_of_the_real_register_are_all_there() -> None:
    records = [_record(path) for path in RECORDS]
    numbers = Counter(record["document_number"] for record in records)
    agencies = [agency for record in records for agency in record["agencies"]]

    assert [number for number, times in numbers.items() if times > 1] == ["00-111"]
    assert [record["full_text_xml_url"] for record in records].count(None) == 1
    assert [set(agency) for agency in agencies].count({"raw_name"}) == 1
    assert [record for record in records if record["correction_of"]]
    assert {record["type"] for record in records} == set(LABELS.values())


def test_agencies_in_records_are_those_of_the_list() -> None:
    known = {agency["id"]: agency for agency in BundledRegister(REGISTER).agencies()}
    named = [agency for path in RECORDS for agency in _record(path)["agencies"]]

    for agency in named:
        if "id" in agency:
            assert known[agency["id"]]["slug"] == agency["slug"]
            assert known[agency["id"]]["parent_id"] == agency["parent_id"]
    for agency in known.values():
        assert (
            agency["parent_id"] is None or agency["id"] in known[agency["parent_id"]]["child_ids"]
        )


def test_list_detail_contents_and_text_agree(client: httpx.Client) -> None:
    listed = client.get("/api/v1/documents.json?per_page=1000").json()["results"]
    days = {entry["publication_date"] for entry in listed}

    for entry in listed:
        number, day = entry["document_number"], entry["publication_date"]
        detail = client.get(f"/api/v1/documents/{number}.json?publication_date={day}").json()
        assert {**detail, **entry, "excerpts": None} == {**detail, "excerpts": None}
        if detail["full_text_xml_url"]:
            assert client.get(urlsplit(detail["full_text_xml_url"]).path).status_code == 200
    for day in days:
        contents = client.get(f"/api/v1/issues/{day}.json").json()
        assert sorted(_contents(contents)) == sorted(
            entry["document_number"] for entry in listed if entry["publication_date"] == day
        )


def _contents(issue: Any) -> Iterator[str]:
    for agency in issue["agencies"]:
        for category in agency["document_categories"]:
            for line in category["documents"]:
                yield from line["document_numbers"]


@pytest.mark.parametrize("path", YAML, ids=_name)
def test_yaml_parses_and_its_dates_are_quoted(path: Path) -> None:
    def dates(value: Any) -> Iterator[date]:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from dates(item)
        elif isinstance(value, date):
            yield value

    content = yaml.safe_load(path.read_text("utf-8"))

    assert content
    assert list(dates(content)) == []


def test_every_member_of_a_committee_is_a_current_legislator_by_that_name() -> None:
    people = {
        person["id"]["bioguide"]: person["name"]["official_full"]
        for person in _yaml("legislators-current")
    }
    members = _yaml("committee-membership-current")

    assert {one["bioguide"]: one["name"] for group in members.values() for one in group} == people
    assert {one.get("chamber") for one in members["JSAL"]} == {"house", "senate"}


def test_every_group_of_members_is_a_committee_or_a_subcommittee() -> None:
    codes = set()
    for committee in _yaml("committees-current"):
        codes.add(committee["thomas_id"])
        for part in committee.get("subcommittees", []):
            codes.add(committee["thomas_id"] + part["thomas_id"])

    assert set(_yaml("committee-membership-current")) <= codes


def test_the_traps_of_the_legislator_files_are_all_there() -> None:
    current, historical = _yaml("legislators-current"), _yaml("legislators-historical")
    executive = _yaml("executive")
    ids = [person["id"] for person in current]
    terms = [term for person in current for term in person["terms"]]

    assert {one["thomas"] for one in ids if "thomas" in one} >= {"00907", "02901"}
    assert any(isinstance(one.get("votesmart"), int) for one in ids)
    assert any(term.get("party_affiliations") for term in terms)
    assert any(term.get("end-type") == "special-election" for term in terms)
    assert {0, 4} <= {term["district"] for term in terms if term["type"] == "rep"}
    assert any(term.get("district") == -1 for one in historical for term in one["terms"])
    assert ["bioguide" in person["id"] for person in executive].count(False) == 2
    assert all(
        isinstance(key, int) for one in _yaml("committees-historical") for key in one["names"]
    )


def test_accounts_and_offices_cover_some_members_and_one_who_left() -> None:
    current = {person["id"]["bioguide"] for person in _yaml("legislators-current")}
    accounts = {entry["id"]["bioguide"] for entry in _yaml("legislators-social-media")}
    offices = {entry["id"]["bioguide"] for entry in _yaml("legislators-district-offices")}

    assert len(accounts - current) == 1
    assert offices < current


def test_the_other_forms_say_the_same_as_the_yaml() -> None:
    for name in ("legislators-current", "legislators-historical"):
        with (PEOPLE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = {(row["bioguide_id"], row["last_name"]) for row in csv.DictReader(file)}
        assert rows == {(one["id"]["bioguide"], one["name"]["last"]) for one in _yaml(name)}

    published = json.loads((PEOPLE / "committees-current.json").read_text("utf-8"))
    assert published == _yaml("committees-current")


@pytest.mark.parametrize(
    "path", ["/../README.md", "/%2e%2e/README.md", "//etc/passwd", "/", "/no\0", "/missing.yaml"]
)
def test_no_file_outside_its_folder_is_served(path: str) -> None:
    assert StaticFiles(PEOPLE)(Request("GET", path, {})).status == 404


def test_a_static_file_is_served_with_its_type_and_date() -> None:
    answer = StaticFiles(DATA / "unitedstates.github.io")(
        Request("GET", "/congress-legislators/executive.yaml", {})
    )

    assert answer.body == (PEOPLE / "executive.yaml").read_bytes()
    assert answer.media_type.startswith("text/yaml")
    assert answer.modified is not None

"""The votes that come with the package agree with the people who come with it."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

import yaml
from tests.sources.publishing import NOW, Publisher, discover, fetched, records_of, tasks

from fonds.demo.bundle import DATA
from fonds.model import ParsedRecord, SourceState
from fonds.sources.roll_call_votes import source

HOSTS = ("clerk.house.gov", "www.senate.gov")
PEOPLE = DATA / "unitedstates.github.io" / "congress-legislators" / "legislators-current.yaml"


def bundled() -> dict[str, bytes | Exception]:
    return {
        f"https://{path.relative_to(DATA).as_posix()}": path.read_bytes()
        for host in HOSTS
        for path in (DATA / host).rglob("*")
        if path.is_file()
    }


def bundled_records() -> list[ParsedRecord]:
    found = tasks(discover(source, Publisher(bundled()), SourceState(now=NOW, backfill=True)))
    records: list[ParsedRecord] = []
    for task in found:
        address = urlsplit(task.parts[0].url)
        data = (DATA / f"{address.netloc}{address.path}").read_bytes()
        records += records_of(source, fetched(task, vote=data))
    return records


def test_every_bundled_vote_is_listed_and_adds_up() -> None:
    records = bundled_records()
    published = [url for url in bundled() if url.endswith(".xml") and "menu" not in url]
    assert len(records) == len(published) == 11
    for record in records:
        positions = [row.payload for row in record.children if row.table == "vote_positions"]
        cast = Counter(row["counted_as"] for row in positions)
        for name in ("yea", "nay", "present", "not_voting"):
            assert record.payload[name] in {cast[name], None}, record.key
    assert {record.payload["status"] for record in records} == {"recorded", "vacated"}


def test_everybody_who_votes_is_a_bundled_legislator() -> None:
    known = set[str]()
    for person in yaml.safe_load(PEOPLE.read_text("utf-8")):
        known |= {f"legislator:{person['id']['bioguide']}", f"lis {person['id'].get('lis')}"}
    voted = {
        row.payload["legislator_ref"]
        for record in bundled_records()
        for row in record.children
        if row.table == "vote_positions"
    }
    assert len(voted) == 8
    assert voted <= known


def test_the_bundled_votes_concern_the_bundled_bills() -> None:
    votes = {record.key: record.payload for record in bundled_records()}
    assert votes["vote:house/119-1/362"]["bill_ref"] == "bill:119-hr-2101"
    assert votes["vote:senate/119-1/12"]["bill_ref"] == "bill:119-s-880"

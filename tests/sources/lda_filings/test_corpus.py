"""Every real file gives records, or says what it is and why it gives none."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.sources.publishing import assert_rows_fit, loose, records_of

from fonds.errors import WrongContentError
from fonds.model import ParsedRecord
from fonds.sources.lda_filings import source

# Folder, beginning of the name, and what the error says of such a file.
WITHOUT_RECORDS = [
    ("api_json_from_vcr", "constants_general_countries", "neither JSON"),  # names, in base64
    ("api_json_from_vcr", "constants_", "a list of names for codes"),
    ("api_json_from_vcr", "contributions_", "a report on contributions"),
    # Derived: what a program made of the forms LD-1 and LD-2, without the filings' UUIDs.
    ("ld1", "", "as another program read it"),
    ("ld2", "", "as another program read it"),
    # Recordings of the answers in api_json_from_vcr and others of their kind.
    ("vcr_cassettes", "", "a recording"),
]


def files_of(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(found) >= 83
    return found


def reason_for(path: Path) -> str | None:
    for folder, beginning, reason in WITHOUT_RECORDS:
        if folder in path.parts and path.name.startswith(beginning):
            return reason
    return None


def rows(records: list[ParsedRecord]) -> Counter[str]:
    found = Counter(record.table for record in records)
    return found + Counter(child.table for record in records for child in record.children)


def of_filing(record: ParsedRecord) -> Counter[str]:
    return Counter(child.table for child in record.children)


def counted_in_json(entry: dict[str, Any]) -> Counter[str]:
    """Our tables' rows of a filing, counted in the answer; repeated entities only once."""
    activities = entry["lobbying_activities"]
    contacted = [json.dumps(activity["government_entities"]) for activity in activities]
    if entry["dt_posted"] < "2021-02-14" and len(set(contacted)) == 1:
        contacted = contacted[:1]
    return +Counter(
        lda_activities=len(activities),
        lda_activity_lobbyists=sum(len(activity["lobbyists"]) for activity in activities),
        lda_activity_entities=sum(len(json.loads(entities)) for entities in contacted),
        lda_foreign_entities=len(entry["foreign_entities"]),
        lda_affiliated_organizations=len(entry["affiliated_organizations"]),
        lda_convictions=len(entry["conviction_disclosures"]),
    )


def counted_in_xml(filing: str) -> Counter[str]:
    return +Counter(
        lda_activities=len(re.findall(r"<Issue\b", filing)),
        lda_activity_lobbyists=len(re.findall(r"<Lobbyist\b", filing)),
        lda_activity_entities=len(re.findall(r"<GovernmentEntity\b", filing)),
        lda_foreign_entities=len(re.findall(r"<Entity\b", filing)),
        lda_affiliated_organizations=len(re.findall(r"<Org\b", filing)),
    )


def test_every_file_gives_records_or_its_reason(corpus: Callable[[str], Path]) -> None:
    for path in files_of(corpus("federal/lda_filings")):
        raw = loose(path.read_bytes(), path.name)
        if reason := reason_for(path):
            with pytest.raises(WrongContentError, match=reason):
                records_of(source, raw)
        else:
            assert_rows_fit(source, records_of(source, raw))


def test_quarterly_files_are_read_whole(corpus: Callable[[str], Path]) -> None:
    total = 0
    for path in (corpus("federal/lda_filings") / "legacy_senate_xml").glob("*.xml"):
        filings = [one for one in records_of(source, loose(path.read_bytes())) if one.document]
        uncommented = re.sub(r"<!--.*?-->", "", path.read_text("utf-8-sig"), flags=re.DOTALL)
        published = re.split(r"(?=<Filing\b)", uncommented)[1:]
        for filing, markup in zip(filings, published, strict=True):
            total += 1
            stated = dict(re.findall(r'(\w+)="([^"]*)"', markup.partition(">")[0]))
            assert filing.key == f"lda:{stated['ID'].lower()}"
            assert str(filing.payload["filing_year"]) == stated["Year"]
            assert filing.payload["dt_posted"] == stated["Received"]
            assert str(filing.payload["amount"]) == stated.get("Amount", "None")
            assert filing.payload["filing_type"]
            assert of_filing(filing) == counted_in_xml(markup), path.name
            named = filing.payload["client_name"] is not None
            assert named == ("<Client " in markup)
    assert total == 203


def test_filings_of_the_api_are_read_whole(corpus: Callable[[str], Path]) -> None:
    folder = corpus("federal/lda_filings")
    for path in (*folder.glob("api_json_from_vcr/filings_*"), *folder.glob("lda_gov_api/*.json")):
        entries = json.loads(path.read_bytes())["results"]
        records = records_of(source, loose(path.read_bytes()))
        filings = [record for record in records if record.document]
        for filing, entry in zip(filings, entries, strict=True):
            assert filing.key == f"lda:{entry['filing_uuid']}"
            assert of_filing(filing) == counted_in_json(entry)
        assert rows(records)["lda_registrants"] == len(_ids(entries, "registrant"))
        assert rows(records)["lda_clients"] == len(_ids(entries, "client"))
        people = set(re.findall(rb'"lobbyist":\{"id":(\d+)', path.read_bytes()))
        assert rows(records)["lda_lobbyists"] == len(people) > 0


def _ids(entries: list[dict[str, Any]], party: str) -> set[int]:
    return {entry[party]["id"] for entry in entries}


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("registrants_", "lda_registrants"),
        ("clients_", "lda_clients"),
        ("lobbyists_", "lda_lobbyists"),
    ],
)
def test_lists_of_parties_are_read_whole(
    corpus: Callable[[str], Path], name: str, table: str
) -> None:
    for path in (corpus("federal/lda_filings") / "api_json_from_vcr").glob(f"{name}*"):
        content = json.loads(path.read_bytes())
        found = rows(records_of(source, loose(path.read_bytes())))
        assert found[table] == len(content.get("results", [content]))


def test_the_answers_inside_recordings_are_read_like_others(
    corpus: Callable[[str], Path],
) -> None:
    expected = {
        "list_filings": 25 + 1 + 7 + 2,
        "retrieve_filing": 1 + 1 + 1 + 2,
        "list_clients": 10 + 10,
        "retrieve_client": 1 + 1,
        "retrieve_lobbyist": 1 + 1,
        "list_registrants": 2,
    }
    read = {}
    for path in (corpus("federal/lda_filings") / "vcr_cassettes").rglob("*.yml"):
        [exchange] = yaml.safe_load(path.read_text())["http_interactions"]
        answer = loose(exchange["response"]["body"]["string"].encode())
        try:
            read[path.stem] = len(records_of(source, answer))
        except WrongContentError:
            read[path.stem] = 0
    assert {name: number for name, number in read.items() if number} == expected

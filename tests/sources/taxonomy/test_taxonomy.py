from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.sources.golden import assert_golden, json_lines
from tests.sources.publishing import (
    NOW,
    Publisher,
    assert_rows_fit,
    discover,
    fetched,
    library_of,
    loose,
    records_of,
    tasks,
)

from fonds.demo.bundle import DATA, bundled_sites
from fonds.demo.http import Handler, Request, Response
from fonds.errors import DuplicateKeyError, MalformedError, ParseError, WrongContentError
from fonds.model import SourceState
from fonds.runs.state import RunStatus
from fonds.sources.base import Source
from fonds.sources.taxonomy import agencies, policy_areas, source, subjects

FILES = Path(__file__).parent / "files"
GOLDEN = Path(__file__).parent / "golden"
LISTS = ("agencies.json", "liv111.xml", "crsnet.xml", "liv.xml")
GOVTRACK = "https://raw.githubusercontent.com/govtrack/govtrack.us-web/main/bill"


def read(name: str) -> bytes:
    return (FILES / name).read_bytes()


def terms(headings: str) -> bytes:
    return f"<liv>{headings}</liv>".encode()


def test_it_is_a_source() -> None:
    assert isinstance(source, Source)


# Discovery --------------------------------------------------------------------------------


def test_all_lists_are_asked_for_every_time() -> None:
    publisher = Publisher({})
    found = tasks(discover(source, publisher, SourceState(now=NOW)))
    assert [(task.key, task.parts[0].url, task.fingerprint) for task in found] == [
        ("agencies", "https://www.federalregister.gov/api/v1/agencies", None),
        ("subjects", f"{GOVTRACK}/liv111.xml", None),
        ("names", f"{GOVTRACK}/crsnet.xml", None),
        ("liv", f"{GOVTRACK}/liv.xml", None),
    ]
    assert publisher.asked == []


# Parsing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LISTS)
def test_records_are_as_reviewed(name: str) -> None:
    records = source.parse(loose(read(name), name))
    assert_golden(json_lines(records), GOLDEN / f"{name}.jsonl")


@pytest.mark.parametrize("name", LISTS)
def test_every_row_fits_its_table(name: str) -> None:
    assert_rows_fit(source, records_of(source, loose(read(name), name)))


def test_only_headings_of_the_list_in_use_are_policy_areas() -> None:
    found = {
        name: [record.payload["name"] for record in records if record.table == "policy_areas"]
        for name in LISTS
        if (records := records_of(source, loose(read(name), name)))
    }
    assert found == {
        "agencies.json": [],
        "liv111.xml": ["Animals", "Government Operations and Politics", "Private Legislation"],
        "crsnet.xml": [],
        "liv.xml": [],
    }


def test_a_fetched_list_is_known_by_its_name_and_checked_against_it() -> None:
    task = tasks(discover(source, Publisher({}), SourceState(now=NOW)))[1]
    assert records_of(source, fetched(task, subjects=read("liv111.xml")))
    with pytest.raises(WrongContentError, match="something else: liv"):
        records_of(source, fetched(task, subjects=read("liv.xml")))
    with pytest.raises(WrongContentError, match="HTML page"):
        records_of(source, fetched(task, subjects=b"<html><body>404</body></html>"))


def test_agencies_must_be_a_list() -> None:
    task = tasks(discover(source, Publisher({}), SourceState(now=NOW)))[0]
    with pytest.raises(WrongContentError, match="HTML"):
        records_of(source, fetched(task, agencies=b"<!DOCTYPE html><p>Busy</p>"))
    with pytest.raises(WrongContentError, match="without any agency"):
        records_of(source, fetched(task, agencies=b"[]"))


def test_one_agency_of_the_api_is_a_row_too() -> None:
    [record] = records_of(source, loose(b'{"id": "7", "name": " A\\n B ", "slug": "a-b"}'))
    assert record.payload["name"] == "A B"
    assert (record.key, record.payload["id"]) == ("agency/7", 7)


def test_descriptions_lose_line_breaks_and_nul_bytes() -> None:
    data = b'[{"id": 7, "name": "A", "slug": "a", "description": "One\\u0000\\r\\n two "}]'
    [record] = records_of(source, loose(data))
    assert record.payload["description"] == "One two"


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"", WrongContentError, "neither"),
        (b"plain words", WrongContentError, "neither"),
        (b"<liv/>", WrongContentError, "without any term"),
        (b"<bill/>", WrongContentError, "expected liv"),
        (b"<liv><top-term", MalformedError, "XML"),
        (terms('<top-term value="A"><term/></top-term>'), MalformedError, "no value"),
        (terms('<top-term value="A"><term value="B"/></top-term>'), WrongContentError, "none of"),
        (
            terms('<top-term value="A"/><top-term value="A"><term value="B"/></top-term>'),
            DuplicateKeyError,
            "'A'",
        ),
        (read("agencies_sections.csv"), WrongContentError, "by name only"),
        (b"pai_identifier,agency_name\r\nABMC,x", WrongContentError, "by name only"),
        (b"bill_type,bill_number,congress,term", WrongContentError, "nicknames"),
        (b"section_title,cfr\n", WrongContentError, "part of the CFR"),
        (b"number,citation,signing_date\n", WrongContentError, "executive orders"),
        (b'1936,,,,,,,," 2,620 ",\n', WrongContentError, "by year"),
        (b"---\nopenapi: 3.0.0\n", WrongContentError, "description of"),
        (b"---\nendpoints:\n", WrongContentError, "description of"),
        (
            b'{"agencies": [{"name": "A", "slug": "a", "cfr_references": []}]}',
            WrongContentError,
            "eCFR",
        ),
        (b'[{"name": "Registration", "value": "RR"}]', WrongContentError, "lobbying"),
        (b'[{"document_number": "2026-1", "id": 1}]', WrongContentError, "federal_register"),
        (b'{"a": 1}', WrongContentError, "the keys a"),
        (b"[1]", MalformedError, "mapping"),
        (b'[{"id": null, "name": "A", "slug": "a"}]', MalformedError, "no id"),
        (b'[{"id": 1, "name": " ", "slug": "a"}]', MalformedError, "name"),
        (
            b'[{"id": 1, "name": "A", "slug": "a"}, {"id": 1, "name": "B", "slug": "b"}]',
            DuplicateKeyError,
            "agency/1",
        ),
    ],
)
def test_a_file_without_rows_says_what_it_is(
    data: bytes, error: type[ParseError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        records_of(source, loose(data))


# A library --------------------------------------------------------------------------------


def sites(**changed: bytes) -> dict[str, Handler]:
    """The bundled hosts, some of their files replaced."""
    bundled = bundled_sites()

    def answering(host: str) -> Handler:
        def answer(request: Request) -> Response:
            name = request.path.rpartition("/")[2].replace(".", "_")
            return Response(body=changed[name]) if name in changed else bundled[host](request)

        return answer

    hosts = ("www.federalregister.gov", "raw.githubusercontent.com")
    return {host: answering(host) for host in hosts}


def held(library: Any, *columns: Any) -> list[tuple[Any, ...]]:
    with library.library.database.read() as connection:
        return [tuple(row) for row in connection.execute(select(*columns).order_by(*columns))]


def test_the_bundled_lists_are_loaded_linked_and_found_unchanged(tmp_path: Path) -> None:
    with library_of(tmp_path, source, sites()) as library:
        report = library.run()
        assert report.status is RunStatus.SUCCESS
        areas = dict(held(library, subjects.c.name, subjects.c.policy_area))
        assert areas["Worker safety and health"] == "Labor and Employment"
        assert areas["New Jersey"] is None
        assert ("Private Legislation",) in held(library, policy_areas.c.name)
        linked = dict(held(library, agencies.c.parent_ref, agencies.c.parent_id))
        assert len(linked) > 1
        assert all(stated == found for stated, found in linked.items())
        again = library.run()
        assert (again.status, again.counts.inserted) == (RunStatus.SUCCESS, 0)


def test_what_a_list_no_longer_names_disappears(tmp_path: Path) -> None:
    terms_file = DATA / "raw.githubusercontent.com/govtrack/govtrack.us-web/main/bill/liv111.xml"
    heading = re.compile(rb'<top-term value="Water Resources.*?</top-term>', re.DOTALL)
    fewer_terms = heading.sub(b"", terms_file.read_bytes())
    listed = json.loads((DATA / "www.federalregister.gov" / "agencies.json").read_bytes())
    above = next(agency["parent_id"] for agency in listed if agency["parent_id"])
    fewer = json.dumps([agency for agency in listed if agency["id"] != above]).encode()
    with library_of(tmp_path, source, sites()) as library:
        library.run()
        assert ("Wetlands",) in held(library, subjects.c.name)
    with library_of(tmp_path, source, sites(liv111_xml=fewer_terms, agencies=fewer)) as library:
        assert library.run().status is RunStatus.SUCCESS
        assert ("Wetlands",) not in held(library, subjects.c.name)
        assert ("Water Resources Development",) not in held(library, policy_areas.c.name)
        assert (above,) not in held(library, agencies.c.id)
        left = dict(held(library, agencies.c.parent_ref, agencies.c.parent_id))
        assert left[above] is None

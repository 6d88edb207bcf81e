from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.sources.publishing import Publisher

from fonds.errors import (
    FondsError,
    MalformedError,
    MissingKeyError,
    RateLimitedError,
    RefusedError,
    SuspiciousYieldError,
    WrongContentError,
)
from fonds.sources.formats.congress import Entry, list_address, read_list, read_object

NAME = "CRSReports"
KEYLESS = {"error": {"code": "API_KEY_MISSING", "message": "No api_key was supplied."}}


def page(numbers: range, count: int) -> bytes:
    entries = [{"id": f"R{number}", "url": "https://v3/crsreport/nowhere"} for number in numbers]
    following = {"count": count, "next": "https://v3/crsreport?offset=20&limit=20&format=json"}
    return json.dumps({NAME: entries, "pagination": following}).encode()


def answers(*pages: bytes | Exception) -> dict[str, bytes | Exception]:
    return {list_address("crsreport", 250 * place): one for place, one in enumerate(pages)}


def read(*pages: bytes | Exception) -> list[Entry]:
    publisher = Publisher(answers(*pages))

    def identify(entry: Entry) -> str:
        return str(entry["id"])

    found = asyncio.run(read_list(publisher, "crsreport", NAME, path="audit/x", identify=identify))
    assert publisher.paths == [f"audit/x-{250 * place}.json" for place in range(len(pages))]
    return found


def test_a_page_is_asked_for_by_limit_and_offset() -> None:
    address = "https://api.congress.gov/v3/crsreport?format=json&limit=250&offset=500"
    assert list_address("crsreport", 500) == address


def test_all_pages_are_read_and_the_links_in_them_are_not_followed() -> None:
    found = read(page(range(250), 501), page(range(250, 500), 501), page(range(500, 501), 501))
    assert [entry["id"] for entry in found] == [f"R{number}" for number in range(501)]


def test_a_list_that_fills_its_pages_ends_without_an_empty_one() -> None:
    assert len(read(page(range(250), 500), page(range(250, 500), 500))) == 500


def test_a_list_that_grows_at_its_end_while_it_is_read_is_whole() -> None:
    assert len(read(page(range(250), 251), page(range(250, 252), 252))) == 252


@pytest.mark.parametrize(
    "pages",
    [
        [page(range(0), 0)],
        [page(range(20), 13_067)],
        [page(range(3), 2)],
        [page(range(250), 300), page(range(250, 299), 300)],
        [page(range(250), 300), page(range(0), 300)],
        [page(range(250), 300), page(range(250, 260), 240)],
    ],
)
def test_a_list_that_is_empty_cut_off_or_too_long_is_suspicious(pages: list[bytes]) -> None:
    with pytest.raises(SuspiciousYieldError, match="/crsreport"):
        read(*pages)


@pytest.mark.parametrize("second", [page(range(250), 500), page(range(249, 499), 500)])
def test_entries_that_come_again_are_suspicious(second: bytes) -> None:
    with pytest.raises(SuspiciousYieldError, match="repeats an entry"):
        read(page(range(250), 500), second)


def test_entries_are_told_apart_by_all_they_say_unless_one_says_how() -> None:
    same = json.dumps({NAME: [{"id": 1}, {"id": 1}], "pagination": {"count": 2}}).encode()
    with pytest.raises(SuspiciousYieldError, match="repeats an entry"):
        asyncio.run(read_list(Publisher(answers(same)), "crsreport", NAME, path="audit/x"))


def test_a_refusal_names_the_key_that_is_missing() -> None:
    refused = RefusedError("https://api.congress.gov/v3/crsreport answered 403 instead of the file")
    with pytest.raises(RefusedError, match=r"answered 403.*`data_gov_key` is missing.*signup"):
        read(refused)


@pytest.mark.parametrize(
    ("content", "error", "cause"),
    [
        (KEYLESS, MissingKeyError, "No api_key was supplied.*`data_gov_key` is missing"),
        ({"error": {"code": "API_KEY_INVALID"}}, MissingKeyError, "data_gov_key"),
        ({"error": {"code": "OVER_RATE_LIMIT", "message": "m"}}, RateLimitedError, "slow down"),
        ({"error": "Unknown resource: crs", "request": {}}, WrongContentError, "Unknown resource"),
        ({"bills": [], "pagination": {"count": 1}}, WrongContentError, "the keys bills"),
        ({NAME: []}, WrongContentError, "instead of a list of CRSReports"),
        ({NAME: {}, "pagination": {"count": 1}}, MalformedError, "should be a list"),
        ([], WrongContentError, "a list of 0 items"),
    ],
)
def test_an_answer_that_is_no_list_is_named(
    content: Any, error: type[FondsError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        read(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("data", "error", "cause"),
    [
        (b"\xef\xbb\xbf <!DOCTYPE html><html>Sorry</html>", WrongContentError, "HTML or XML"),
        (b"<api-root/>", WrongContentError, "HTML or XML"),
        (b'{"CRSReports": [', MalformedError, "not JSON"),
        (b"", MalformedError, "not JSON"),
    ],
)
def test_other_files_in_place_of_json_are_named(
    data: bytes, error: type[FondsError], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        read_object(data, "the server")

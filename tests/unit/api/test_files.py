"""Our own signed addresses: they allow one thing, for five minutes, and no byte more."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.support.libraries.uploads import work
from tests.unit.api.calling import Api, refusal

from fonds.testing import ManualClock

DATA = b"The tariff of the harbour is free of charge on Sundays, and on no other day.\n"


@pytest.fixture
def address(api: Api) -> str:
    """Where a file is awaited."""
    url: str = api.announce(DATA, "tariff.txt").json()["upload"]["url"]
    return url


def _put(api: Api, url: str, data: Any = DATA, **headers: str) -> Any:
    return api.call("PUT", url, by={}, headers=headers, content=data)


def test_file_is_taken_and_taken_again_until_it_is_complete(api: Api, address: str) -> None:
    wrong = DATA[::-1]
    assert _put(api, address, wrong).status_code == 204
    assert _put(api, address).status_code == 204
    at = api.get("/jobs").json()["jobs"][0]["document_id"]
    assert api.post(f"/uploads/{at}/complete").json()["status"] == "parse_queued"
    assert refusal(_put(api, address)) == (409, "not-awaited")
    assert list(api.library.blobs.list("incoming/")) == []


def test_address_ends_after_five_minutes(api: Api, address: str, clock: ManualClock) -> None:
    clock.move(minutes=5, seconds=1)
    assert refusal(_put(api, address)) == (403, "expired")


def test_address_that_was_tampered_with_is_refused(api: Api, address: str) -> None:
    query = parse_qs(urlsplit(address).query)
    later = address.replace(query["expires"][0], str(int(query["expires"][0]) + 60))
    other = address.replace("incoming/", "raw/")
    unsigned = address.replace(query["signature"][0], "x")
    for url in (later, other, unsigned, address.replace("incoming/", "incoming/../")):
        assert refusal(_put(api, url))[1] in {"bad-signature", "not-found"}
    assert refusal(api.call("GET", address, by={})) == (403, "bad-signature")
    assert _put(api, address.partition("?")[0]).status_code == 422


def test_more_bytes_than_announced_are_not_taken(api: Api, address: str) -> None:
    assert refusal(_put(api, address, DATA + b"x")) == (413, "too-large")
    pieces = iter([DATA, b"x" * 100_000])
    assert refusal(_put(api, address, pieces)) == (413, "too-large")
    assert list(api.library.blobs.list("incoming/")) == []


def test_fewer_bytes_than_announced_are_not_taken(api: Api, address: str) -> None:
    assert refusal(_put(api, address, DATA[:-1])) == (400, "size-mismatch")
    assert refusal(_put(api, address, b"")) == (400, "size-mismatch")
    assert list(api.library.blobs.list("incoming/")) == []


def test_nothing_is_left_behind_in_the_folder_for_temporary_files(api: Api, address: str) -> None:
    _put(api, address, DATA[:-1])
    _put(api, address)
    assert list((api.library.settings.home / "tmp").iterdir()) == []


@pytest.fixture
def raw(api: Api) -> str:
    """Where the file of a document is."""
    job = api.upload(DATA, "Tariff “2026” \\ of the harbour.txt")
    work(api.library)
    location: str = api.get(f"/api/documents/upload:{job['document_id']}/raw").headers["location"]
    return location


def test_raw_file_is_sent_as_an_attachment_that_no_browser_runs(api: Api, raw: str) -> None:
    answer = api.call("GET", raw, by={})
    assert answer.content == DATA
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["content-length"] == str(len(DATA))
    kept = answer.headers["content-disposition"]
    assert kept.startswith('attachment; filename="')
    assert "filename*=UTF-8''" in kept
    assert "\\" not in kept
    assert "sandbox" in answer.headers["content-security-policy"]


def test_raw_file_comes_in_ranges(api: Api, raw: str) -> None:
    for asked, wanted in [
        ("bytes=0-3", DATA[:4]),
        ("bytes=4-", DATA[4:]),
        ("bytes=-5", DATA[-5:]),
        ("bytes=70-9999", DATA[70:]),
    ]:
        answer = api.call("GET", raw, by={}, headers={"Range": asked})
        assert (answer.status_code, answer.content) == (206, wanted), asked
        assert answer.headers["content-range"].endswith(f"/{len(DATA)}")
    beyond = api.call("GET", raw, by={}, headers={"Range": "bytes=999-"})
    assert refusal(beyond) == (416, "range")
    assert beyond.headers["content-range"] == f"bytes */{len(DATA)}"
    for odd in ("bytes=a-b", "bytes=0-1,3-4", "lines=1-2", "bytes=-"):
        whole = api.call("GET", raw, by={}, headers={"Range": odd})
        assert (whole.status_code, whole.content) == (200, DATA)


def test_head_tells_the_length_alone(api: Api, raw: str) -> None:
    answer = api.call("HEAD", raw, by={})
    assert (answer.content, answer.headers["content-length"]) == (b"", str(len(DATA)))


def test_raw_address_ends_after_five_minutes(api: Api, raw: str, clock: ManualClock) -> None:
    assert refusal(_put(api, raw)) == (403, "bad-signature")
    clock.move(minutes=5, seconds=1)
    assert refusal(api.call("GET", raw, by={})) == (403, "expired")


def test_file_that_is_gone_is_missing(api: Api, raw: str) -> None:
    for found in list(api.library.blobs.list("raw/")):
        api.library.blobs.delete(found.key)
    assert refusal(api.call("GET", raw, by={})) == (404, "file-missing")

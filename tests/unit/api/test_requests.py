"""Requests that are not as they should be: each is refused by name, and none breaks anything."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any
from uuid import uuid4

import pytest
from tests.unit.api.calling import Api, api_of, claim, refusal

from fonds.library import Library
from fonds.testing import ManualClock
from fonds.uploads.users import list_tokens, revoke_token

SHA = "ab" * 32


def test_without_a_token_nobody_uploads(api: Api) -> None:
    for path in ("/jobs", f"/jobs/{uuid4()}", f"/jobs/{uuid4()}/events"):
        answer = api.get(path, by={})
        assert refusal(answer) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == 'Bearer realm="fonds"'
    assert api.post("/uploads", by={}, json=claim(b"x")).status_code == 401


@pytest.mark.parametrize(
    "header",
    [
        "Bearer fonds_wrong",
        "Bearer " + "fonds_" + "A" * 43,
        "Basic bWFyaWE6c2VjcmV0",
        "fonds_",
        "Bearer",
        "Bearer " + "x" * 60_000,
        "Bearer caf\xe9",
    ],
)
def test_token_that_is_good_for_nothing_is_refused_and_not_repeated(api: Api, header: str) -> None:
    for path in ("/jobs", "/api/search?q=water"):
        answer = api.get(path, by={}, headers={"Authorization": header.encode("latin-1")})
        assert refusal(answer) == (401, "unauthorized")
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        assert header not in answer.text


def test_revoked_token_ends_at_once(api: Api, clock: ManualClock) -> None:
    assert api.get("/jobs").status_code == 200
    with api.library.database.write() as connection:
        (token,) = list_tokens(connection)
        revoke_token(connection, str(token.id), clock.now())
    assert refusal(api.get("/jobs")) == (401, "unauthorized")


def test_two_tokens_are_none(api: Api) -> None:
    (secret,) = api.maria.values()
    twice = [("Authorization", secret), ("Authorization", secret)]
    assert api.client.get("/jobs", headers=twice).status_code == 401


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"bytes": 0}, (422, "empty")),
        ({"bytes": 2 * 1024**3}, (413, "too-large")),
        ({"bytes": -1}, (422, "invalid")),
        ({"bytes": 10**400}, (422, "invalid")),
        ({"bytes": "12"}, (422, "invalid")),
        ({"bytes": True}, (422, "invalid")),
        ({"sha256": "xyz"}, (422, "invalid")),
        ({"sha256": SHA + "\n"}, (422, "invalid")),
        ({"name": ""}, (422, "invalid")),
        ({"name": "..."}, (422, "bad-name")),
        ({"name": "../../../"}, (422, "bad-name")),
        ({"name": "policy.exe"}, (422, "type-unknown")),
        ({"name": "x" * 5000}, (422, "invalid")),
        ({"name": None}, (422, "invalid")),
        ({"name": ["a.pdf"]}, (422, "invalid")),
        ({"surplus": 1}, (422, "invalid")),
    ],
)
def test_claim_that_makes_no_sense_is_refused(
    api: Api, changes: dict[str, Any], refused: tuple[int, str]
) -> None:
    body = {"name": "policy.pdf", "bytes": 5, "sha256": SHA, **changes}
    sent = json.dumps(body)
    assert refusal(_raw(api, sent.encode())) == refused


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\windows\\policy.txt", "policy.txt"),
        ("pol\x00icy.txt", "pol icy.txt"),
        ("policy\u202etxt.txt", "policy txt.txt"),
        ("a" * 400 + ".txt", "a" * 251 + ".txt"),
    ],
)
def test_tricks_in_a_name_do_nothing(api: Api, name: str, shown: str) -> None:
    told = api.post("/uploads", json={"name": name, "bytes": 5, "sha256": SHA}).json()
    assert told["name"] == shown
    key = told["upload"]["url"].partition("/files/")[2].partition("?")[0]
    assert key.split("/")[0] == "incoming"
    assert key.endswith(told["job_id"])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"null", 422),
        (b"[]", 422),
        (b'"text"', 422),
        (b'{"name": "\xff"}', 400),
        (b"[" * 500_000, 400),
        (b'{"name": "\\ud800.pdf", "bytes": 5, "sha256": "' + SHA.encode() + b'"}', 422),
        (b'{"name": "a.pdf", "bytes": NaN, "sha256": "' + SHA.encode() + b'"}', 422),
        (b'{"name": "a.pdf", "bytes": 1e400, "sha256": "' + SHA.encode() + b'"}', 422),
        (b" " * (1024 * 1024 + 1), 413),
    ],
)
def test_body_that_is_no_claim_is_refused(api: Api, body: bytes, status: int) -> None:
    assert _raw(api, body).status_code == status


def _raw(api: Api, body: bytes) -> Any:
    return api.post("/uploads", content=body, headers={"Content-Type": "application/json"})


def test_body_is_not_read_beyond_its_limit_whatever_is_announced(api: Api) -> None:
    pieces = iter([b" " * 600_000] * 2)
    headers = {"Content-Type": "application/json"}
    answer = api.post("/uploads", content=pieces, headers=headers)
    assert refusal(answer) == (413, "too-large")


def test_refusal_of_a_body_does_not_repeat_it(api: Api) -> None:
    body = {"name": 7, "sha256": "my-secret-password", "my-secret-field": "my-secret-value"}
    answer = api.post("/uploads", json=body)
    assert answer.status_code == 422
    assert "my-secret" not in answer.text
    assert {each["where"] for each in answer.json()["errors"]} >= {"body.name", "body.sha256"}


@pytest.mark.parametrize(
    "path",
    [
        "/jobs/not-a-uuid",
        "/jobs/%00",
        "/jobs/" + "9" * 5000,
        "/jobs?limit=0",
        "/jobs?limit=201",
        "/jobs?limit=%00",
        "/jobs?cursor=abc",
        "/jobs?cursor=9999999999999-zz",
        "/jobs?status=nowhere",
        "/api/documents/%00",
        "/api/documents/" + "x" * 2000,
        "/api/search",
        "/api/search?q=",
        "/api/search?q=%00",
        "/api/search?q=water&limit=1000",
        "/api/search?q=water&offset=-1",
        "/api/search?q=water&since=yesterday",
        "/api/search?q=water&source=nonsense",
        "/api/search?q=-only",
        "/api/search?q=water&mode=semantic",
    ],
)
def test_question_that_makes_no_sense_is_invalid(api: Api, path: str) -> None:
    assert api.get(path).status_code == 422


@pytest.mark.parametrize("cursor", ["9999999999999-" + "f" * 32, "0000000000000-" + "0" * 32])
def test_every_cursor_of_the_right_shape_is_understood(api: Api, cursor: str) -> None:
    assert api.get("/jobs", params={"cursor": cursor}).status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/api/documents/fr:1", "/api/documents/%F0%9F", "/jobs/", "/docs"]
)
def test_what_is_not_there_is_a_problem_too(api: Api, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404
    assert answer.json()["instance"].startswith("/")


def test_method_that_is_not_allowed_names_those_that_are(api: Api) -> None:
    answer = api.call("DELETE", "/jobs")
    assert refusal(answer) == (405, "method-not-allowed")
    assert answer.headers["allow"] == "GET"


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "9" * 30])
def test_last_event_that_is_no_number_is_invalid(api: Api, number: str) -> None:
    at = api.announce(b"text").json()["document_id"]
    answer = api.get(f"/jobs/{at}/events", headers={"Last-Event-ID": number})
    assert answer.status_code == 422


@pytest.mark.parametrize("key", ["", "two words", "x" * 300, "caf\xe9"])
def test_key_that_is_none_is_invalid(api: Api, key: str) -> None:
    headers = {"Idempotency-Key": key.encode("latin-1")}
    assert api.announce(b"text", headers=headers).status_code == 422


@pytest.mark.parametrize("host", ["[", "a b", "evil.example/path?", "x" * 1000, "h\xf6st"])
def test_host_that_is_none_is_not_repeated(api: Api, host: str) -> None:
    answer = api.announce(b"text", headers={"Host": host.encode("latin-1")})
    assert answer.json()["upload"]["url"].startswith("/files/")


def test_public_address_is_the_one_that_was_set(tmp_path: Any) -> None:
    from tests.support.libraries.uploads import upload_library  # noqa: PLC0415 — of this test alone

    with (
        upload_library(tmp_path, public_url="https://library.example/fonds") as library,
        api_of(library) as api,
    ):
        url = api.announce(b"text").json()["upload"]["url"]
    assert url.startswith("https://library.example/fonds/files/incoming/")


def test_zip_bomb_is_refused(api: Api) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", b"\0" * 600 * 1024 * 1024)
    data = packed.getvalue()
    told = api.announce(data, "bomb.docx").json()
    assert api.deliver(told["upload"], data) == 204
    answer = api.post(f"/uploads/{told['document_id']}/complete")
    assert refusal(answer) == (422, "archive-bomb")
    assert api.job(told["document_id"])["status"] == "failed_parse"


def test_nul_in_a_text_hurts_nobody(api: Api) -> None:
    from tests.support.libraries.uploads import work  # noqa: PLC0415 — of this test alone

    data = (
        b"The tariff of the harbour \x00 is free of charge on Sundays, and on no other day.\n" * 9
    )
    job = api.upload(data, "tariff.txt")
    work(api.library)
    assert api.job(job["document_id"])["status"] == "complete"
    found = api.get(f"/api/documents/upload:{job['document_id']}?text=true")
    assert "\0" not in found.json()["text"]


def test_metrics_are_open_to_this_machine_alone(library: Library) -> None:
    with api_of(library, is_exposed=False) as api:
        assert api.get("/metrics", by={}, headers={"Host": "evil.example"}).status_code == 401
        assert api.get("/metrics", by={}, headers={"Host": "[::1]:8000"}).status_code == 200
        assert api.get("/metrics", by={}, headers={"Host": "localhost:8000"}).status_code == 200


def test_login_covers_metrics(library: Library) -> None:
    with api_of(library, is_exposed=False, needs_login=True) as api:
        here = {"Host": "localhost:8000"}
        assert refusal(api.get("/metrics", by={}, headers=here)) == (401, "unauthorized")
        service = api.token("prometheus", "service")
        assert api.get("/metrics", by=service, headers=here).status_code == 200

"""When the database or the object store is away, clients are told to come back."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from sqlalchemy import func, select, text
from starlette.testclient import TestClient
from tests.support.libraries.uploads import upload_library
from tests.support.upstreams.misbehaving import MisbehavingServer, Response
from tests.unit.api.calling import Api, api_of, refusal

from fonds.api.app import make_app
from fonds.library import Library
from fonds.maintenance import store_monitor
from fonds.stores.tables import idempotency_keys


def _away(library: Library) -> None:
    with library.database.write() as connection:
        connection.execute(text("ALTER TABLE api_tokens RENAME TO api_tokens_away"))


def _back(library: Library) -> None:
    with library.database.write() as connection:
        connection.execute(text("ALTER TABLE api_tokens_away RENAME TO api_tokens"))


def test_database_that_is_away_is_told_as_such_and_then_all_goes_on(api: Api) -> None:
    at = api.announce(b"text").json()["document_id"]
    _away(api.library)
    for method, path in [("GET", f"/jobs/{at}"), ("GET", "/jobs"), ("POST", f"/jobs/{at}/retry")]:
        answer = api.call(method, path)
        assert refusal(answer) == (503, "database-unavailable")
        assert answer.headers["retry-after"] == "5"
        assert "api_tokens" not in answer.text
    _back(api.library)
    assert api.job(at)["status"] == "uploaded"


@pytest.fixture
def failing_store() -> Iterator[str]:
    with MisbehavingServer() as server:
        server.route("/*", lambda _request: Response(b"slow down", 503))
        options = "region=us-east-1&access_key_id=a&secret_access_key=b"
        yield f"s3://bucket/x?endpoint={server.address}&{options}"


def test_object_store_that_answers_503_is_told_as_such(failing_store: str, tmp_path: Path) -> None:
    with upload_library(tmp_path, blobs=failing_store) as library, api_of(library) as api:
        announced = api.announce(b"text")
        assert announced.status_code == 201, "an address is signed without asking the store"
        at = announced.json()["document_id"]
        answer = api.post(f"/uploads/{at}/complete", headers={"Idempotency-Key": "once"})
        assert refusal(answer) == (503, "store-unavailable")
        assert "slow down" not in answer.text
        with library.database.read() as connection:
            kept = connection.scalar(select(func.count()).select_from(idempotency_keys))
        assert kept == 0, "the next try may fare better"
        assert api.job(at)["status"] == "uploaded"
        health = api.get("/health", by={})
        assert refusal(health) == (503, "unwell")
        assert not health.json()["checks"]["blobs"].startswith("ok")
        assert health.json()["checks"]["database"].startswith("ok")


def test_error_that_nobody_foresaw_tells_nothing(library: Library) -> None:
    app = make_app(library)

    @app.get("/broken")
    def broken() -> None:
        raise ValueError("the password is swordfish")

    with structlog.testing.capture_logs() as logs, TestClient(app) as client:
        answer = client.get("/broken")
    assert answer.status_code == 500
    assert answer.json()["kind"] == "unexpected"
    assert "swordfish" not in answer.text
    assert "swordfish" not in str(logs)
    assert [entry["error"] for entry in logs] == ["ValueError"]


def test_health_of_a_store_that_hangs_answers_at_once_with_the_last_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_monitor, "DEADLINE_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        address = f"s3://bucket?endpoint={endpoint}&region=x&skip_signature=true"
        with upload_library(tmp_path, blobs=address) as library, api_of(library) as api:
            for _ in range(2):
                health = api.get("/health", by={})
                assert refusal(health) == (503, "unwell")
                blobs = health.json()["checks"]["blobs"]
                assert re.fullmatch(r"no file could be written within 0 seconds, \d+ s ago", blobs)
                assert endpoint not in health.text


def test_a_server_answers_503_at_once_while_its_store_is_away(tmp_path: Path) -> None:
    address = "s3://bucket?endpoint=http://127.0.0.1:1&region=x&access_key_id=a&secret_access_key=b"
    with upload_library(tmp_path, blobs=address) as library, api_of(library) as api:
        at = api.announce(b"text").json()["document_id"]
        answer = api.post(f"/uploads/{at}/complete", headers={"Idempotency-Key": "once"})
        assert refusal(answer) == (503, "store-unavailable")
        assert int(answer.headers["retry-after"]) > 0

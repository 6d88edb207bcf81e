"""Addresses of blob stores, and what is said when a server refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from fonds.errors import BlobChangedError, SettingsError, StoreError
from fonds.seams import Seams
from fonds.stores.blobs import open_blobs


class Google(BaseHTTPRequestHandler):
    """One object that changes hands by its generation, as Google Cloud Storage does it."""

    generation = 7
    content = b"old"

    def do_HEAD(self) -> None:
        self._answer(200 if self.path.endswith("/here") else 404)

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["x-goog-if-generation-match"] != str(Google.generation):
            self._answer(412)
            return
        Google.generation, Google.content = Google.generation + 1, content
        self._answer(200)

    def log_message(self, *_: object) -> None:
        return

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("ETag", f'"etag-{Google.generation}"')
        self.send_header("x-goog-generation", str(Google.generation))
        self.send_header("Last-Modified", "Fri, 01 May 2026 00:00:00 GMT")
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture
def google_address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Google) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        account = {
            "gcs_base_url": f"http://127.0.0.1:{server.server_port}",
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        }
        key = quote(json.dumps(account))
        yield f"gs://bucket?service_account_key={key}&allow_http=true"
        server.shutdown()
        thread.join()


def test_google_swaps_by_generation(google_address: str) -> None:
    store = open_blobs(google_address, seams=Seams())
    info = store.head("here")
    assert info is not None
    assert store.replace("here", b"new", etag=info.etag) == '"etag-8"'
    assert Google.content == b"new"
    with pytest.raises(BlobChangedError):
        store.replace("here", b"newer", etag=info.etag)
    with pytest.raises(BlobChangedError):
        store.replace("gone", b"newer", etag=info.etag)
    assert Google.content == b"new"


def test_an_opened_memory_is_a_fresh_one() -> None:
    open_blobs("memory://", seams=Seams()).create("a", b"1")
    assert list(open_blobs("memory://", seams=Seams()).list()) == []


def test_two_openings_of_one_address_see_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    open_blobs(str(folder), seams=Seams()).create("a", b"1")
    again = open_blobs(f"file://{folder}".replace(" ", "%20"), seams=Seams())
    assert again.get("a") == b"1"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "memory://"),
        ("ftp://user:hunter2@host/x", "s3://bucket"),
        ("s3://", "name of a bucket"),
        ("s3://key:hunter2@bucket", "put credentials"),
        ("s3://bucket?bogus=hunter2", "unknown"),
        ("s3://bucket?skip_signature=hunter2", "invalid value"),
        ("az://box?account_name=a&account_key=%25hunter2", "invalid value"),
        ("s3://bucket?endpoint=http://example.org&secret_access_key=hunter2", "https"),
        ("s3://bucket?endpoint=http://[hunter2", "malformed"),
        ("file://host/hunter2", "three slashes"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused_without_repeating_secrets(
    address: str, words: str
) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        open_blobs(address, seams=Seams())
    assert "hunter2" not in str(caught.value)


def test_wrong_credentials_are_refused_by_the_server_and_not_shown(s3_address: str) -> None:
    wrong = s3_address.replace("fonds-test-secret", "hunter2-secret")
    store = open_blobs(wrong, seams=Seams())
    for ask in (lambda: store.put("a", b"1"), lambda: list(store.list())):
        with pytest.raises(StoreError, match="403 Forbidden") as caught:
            ask()
        assert "hunter2" not in str(caught.value)
        assert "fonds-test" not in str(caught.value)
        assert caught.value.__suppress_context__


def test_a_server_that_is_not_there_is_named_as_the_cause(s3_address: str) -> None:
    head, _, tail = s3_address.partition("127.0.0.1%3A")
    nowhere = f"{head}127.0.0.1%3A1&{tail.partition('&')[2]}"
    with pytest.raises(StoreError, match="cannot be reached"):
        open_blobs(nowhere, seams=Seams()).get("a")

"""Bodies that anybody may send: refused before they are read, and limited while they are."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.support.libraries.uploads import upload_library
from tests.support.polling import wait_until
from tests.unit.api.calling import BASE, Api

from fonds.api.app import make_app
from fonds.api.events import MAX_STREAMS
from fonds.library import Library
from fonds.mcp.http import bind_socket
from fonds.uploads.webhook import sign

SECRET = "the secret of this test"
PATH = "/webhooks/llamaparse"
SIZE = 60 * 1024 * 1024
DEADLINE = 60.0


class Server:
    """The API at a port of its own, with requests of which the body never comes."""

    def __init__(self, library: Library, app: FastAPI, port: int) -> None:
        self.library, self.app, self.port = library, app, port
        self._opened = ExitStack()

    def begin(self, method: str, path: str, headers: Mapping[str, str]) -> socket.socket:
        """Send the head of a request that announces a large body, and nothing of that."""
        connection = socket.create_connection(("127.0.0.1", self.port), DEADLINE)
        self._opened.enter_context(connection)
        lines = [f"{method} {path} HTTP/1.1", "Host: fonds.test", f"Content-Length: {SIZE}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection

    def begin_webhook(self, **changes: str) -> socket.socket:
        """Of the right form, with a signature that nobody can check before the body is there."""
        signed = sign("msg", self.library.seams.clock.now(), b"", [SECRET])
        return self.begin("POST", PATH, {**signed, **changes})

    def follow(self, path: str, headers: Mapping[str, str]) -> socket.socket:
        """Open a stream of events."""
        connection = socket.create_connection(("127.0.0.1", self.port), DEADLINE)
        self._opened.enter_context(connection)
        lines = [f"GET {path} HTTP/1.1", "Host: fonds.test"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        assert connection.recv(12) == b"HTTP/1.1 200"
        return connection

    def spools(self) -> int:
        return len(list((self.library.settings.home / "tmp").glob("*")))

    def close(self) -> None:
        self._opened.close()


@contextmanager
def served(home: Path, **settings: Any) -> Iterator[Server]:
    with (
        upload_library(home, max_file_mib=64, **settings) as library,
        bind_socket("127.0.0.1", 0) as listening,
    ):
        app = make_app(library)
        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: server.run([listening]))
        thread.start()
        opened = Server(library, app, listening.getsockname()[1])
        try:
            yield opened
        finally:
            opened.close()
            server.should_exit = True
            thread.join(DEADLINE)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with served(tmp_path, webhook_secrets=(SECRET,)) as opened:
        yield opened


def answer_to(connection: socket.socket) -> tuple[int, str]:
    """Status and kind of what a request is answered that has not sent its body."""
    response = HTTPResponse(connection)
    response.begin()
    return response.status, json.loads(response.read())["kind"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"webhook-signature": ""}, (401, "unsigned")),
        ({"webhook-signature": "v2,AAAA"}, (401, "unsigned")),
        ({"webhook-id": ""}, (401, "unsigned")),
        ({"webhook-id": "a.b"}, (400, "malformed")),
        ({"webhook-timestamp": "soon"}, (400, "malformed")),
    ],
)
def test_webhook_without_valid_headers_is_refused_before_its_body_is_read(
    server: Server, changes: dict[str, str], expected: tuple[int, str]
) -> None:
    assert answer_to(server.begin_webhook(**changes)) == expected
    assert server.spools() == 0


def test_webhook_is_refused_before_its_body_is_read_while_no_secret_is_set(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert answer_to(server.begin_webhook()) == (401, "bad-signature")
        assert server.spools() == 0


def test_webhook_larger_than_allowed_is_refused_before_its_body_is_read(tmp_path: Path) -> None:
    with served(tmp_path, webhook_secrets=(SECRET,)) as server:
        changes = sign("msg", server.library.seams.clock.now(), b"", [SECRET])
        connection = socket.create_connection(("127.0.0.1", server.port), DEADLINE)
        lines = [f"POST {PATH} HTTP/1.1", "Host: fonds.test", f"Content-Length: {2 * SIZE}"]
        lines += [f"{name}: {value}" for name, value in changes.items()]
        with connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            assert answer_to(connection) == (413, "too-large")


def test_webhooks_that_are_half_sent_are_limited_in_number(server: Server) -> None:
    total = server.app.state.spool_slots["webhook"].total
    first, *_ = [server.begin_webhook() for _ in range(total)]
    wait_until(lambda: server.spools() == total)
    assert answer_to(server.begin_webhook()) == (503, "busy")
    first.close()
    wait_until(lambda: server.spools() == total - 1)
    server.begin_webhook()
    wait_until(lambda: server.spools() == total)


def test_webhook_that_is_half_sent_ends_in_time(server: Server) -> None:
    server.app.state.spool_slots["webhook"].seconds = 0.1
    assert answer_to(server.begin_webhook()) == (408, "too-slow")
    wait_until(lambda: server.spools() == 0)


def test_files_that_are_half_sent_are_limited_for_each_user(server: Server) -> None:
    slots = server.app.state.spool_slots["file"]
    slots.per_sender = 1
    with _api(server) as api:
        ours = [_path(api, number, api.maria) for number in range(2)]
        theirs = _path(api, 0, api.token("noah"))
        server.begin("PUT", ours[0], {})
        wait_until(lambda: server.spools() == 1)
        assert answer_to(server.begin("PUT", ours[1], {})) == (503, "busy")
        server.begin("PUT", theirs, {})
        wait_until(lambda: server.spools() == 2)


def test_event_streams_are_limited_for_each_user(server: Server) -> None:
    with _api(server) as api:
        noah = api.token("noah")
        ours, theirs = (
            f"/jobs/{api.announce(b'text', by=by).json()['document_id']}/events"
            for by in (api.maria, noah)
        )
        streams = [server.follow(ours, api.maria) for _ in range(MAX_STREAMS)]
        assert answer_to(server.begin("GET", ours, api.maria)) == (429, "too-many-streams")
        server.follow(theirs, noah)
        streams[0].close()
        streams[1].close()
        wait_until(lambda: _status(server.begin("GET", ours, api.maria)) == 200)


def _status(connection: socket.socket) -> int:
    response = HTTPResponse(connection)
    response.begin()
    return response.status


def _path(api: Api, number: int, by: Mapping[str, str]) -> str:
    claim = {"name": "a.md", "bytes": SIZE, "sha256": f"{number:064x}"}
    address = api.post("/uploads", json=claim, by=by).json()["upload"]["url"]
    parts = urlsplit(address.removeprefix(BASE))
    return f"{parts.path}?{parts.query}"


@contextmanager
def _api(server: Server) -> Iterator[Api]:
    with TestClient(make_app(server.library), base_url=BASE) as client:
        yield Api(server.library, client)

"""Connections of this machine whose other end belongs to another user, such as that of a proxy."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx
import pytest
from tests.support.libraries.uploads import upload_library

from fonds.mcp import http
from fonds.peers import TABLES, belongs_to_own_user, user_of
from fonds.web.site import make_site

PEER, OWN = ("127.0.0.1", 49974), ("127.0.0.1", 8000)
LINE = "  12: {ends} 01 00000000:00000000 00:00000000 00000000   {user} 0 77 1"
FROM_PEER, FROM_OWN = "0100007F:C336 0100007F:1F40", "0100007F:1F40 0100007F:C336"


@pytest.fixture(params=["127.0.0.1", "::1"])
def accepted(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """The server's end of a connection of this process to itself."""
    with (
        http.bind_socket(request.param, 0) as listening,
        socket.create_connection(listening.getsockname()[:2]),
    ):
        connection, _ = listening.accept()
        with connection:
            yield connection


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no table of connections")
def test_peer_belongs_to_the_user_who_opened_the_connection(
    accepted: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert belongs_to_own_user(accepted) is True
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert belongs_to_own_user(accepted) is False


def test_where_the_system_has_no_table_nothing_is_known(
    accepted: socket.socket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(TABLES, accepted.family, tmp_path / "none")
    assert belongs_to_own_user(accepted) is None


@pytest.mark.skipif(sys.byteorder != "little", reason="the line is of such a machine")
def test_user_is_that_of_the_end_of_the_client() -> None:
    lines = [LINE.format(ends=FROM_OWN, user=7), LINE.format(ends=FROM_PEER, user=101)]
    assert user_of(lines, PEER, OWN) == 101
    assert user_of(lines[:1], PEER, OWN) is None


@contextmanager
def _site(home: Path) -> Iterator[str]:
    """The address of a site for this machine alone, on a real socket."""
    loop = asyncio.new_event_loop()
    with upload_library(home) as library, http.bind_socket("127.0.0.1", 0) as listening:
        app = make_site(library, is_exposed=False)
        serving = loop.create_task(http.serve(app, listening))
        thread = Thread(target=loop.run_until_complete, args=(serving,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            loop.call_soon_threadsafe(serving.cancel)
            thread.join()
            loop.close()


@pytest.mark.parametrize(("is_own_user", "status"), [(True, 200), (None, 200), (False, 303)])
def test_local_uploader_is_the_user_of_the_server_and_no_other_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_own_user: bool | None, status: int
) -> None:
    # HAProxy with its defaults passes a stranger's `Host: 127.0.0.1` on, and adds no header.
    monkeypatch.setattr("fonds.connections.belongs_to_own_user", lambda _connection: is_own_user)
    with _site(tmp_path) as address:
        page = {"accept": "text/html"}
        answer = httpx.get(f"{address}/upload", headers=page, trust_env=False)
        assert answer.status_code == status
        assert httpx.get(f"{address}/", headers=page, trust_env=False).status_code == 200

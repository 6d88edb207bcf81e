"""Databases and object stores that do not respond for some time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from fonds.errors import ConnectionLostError, DatabaseUnavailableError, StoreUnavailableError
from fonds.seams import Seams
from fonds.stores import objects
from fonds.stores.blobs import Blobs, open_blobs
from fonds.stores.database import open_database, repeatable
from fonds.stores.outages import STOP, Outage

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"

Connected = Callable[[socket.socket], None]


@contextmanager
def server(connected: Connected) -> Iterator[int]:
    """A server on loopback that does something with each connection; its port."""
    ended = threading.Event()
    connections: list[socket.socket] = []

    def handle(connection: socket.socket) -> None:
        connections.append(connection)
        with suppress(OSError):
            connected(connection)
        connection.close()

    def accept() -> None:
        while not ended.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
    for connection in connections:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()


def never_answer(connection: socket.socket) -> None:
    """Read all that comes."""
    while connection.recv(1 << 16):
        pass


def stall(connection: socket.socket) -> None:
    """Send the beginning of a body of a megabyte, and nothing more."""
    connection.recv(1 << 16)
    head = 'HTTP/1.1 200 OK\r\nETag: "x"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n'
    connection.sendall(f"{head}Content-Length: 1000000\r\n\r\n".encode() + b"x" * 1000)
    never_answer(connection)


def store_at(port: int, seconds: float = 0.0) -> Blobs:
    address = f"s3://bucket?endpoint=http://127.0.0.1:{port}&region=x"
    keys = "&access_key_id=a&secret_access_key=b"
    return open_blobs(address + keys, seams=Seams(outage_seconds=seconds))


@pytest.fixture(autouse=True)
def _may_wait() -> Iterator[None]:
    yield
    STOP.clear()


# Waiting ----------------------------------------------------------------------------------


def test_a_command_waits_as_long_as_it_may_and_says_so_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    database = open_database(NOWHERE, seams=Seams(outage_seconds=1.0))
    for _ in range(2):
        with (
            pytest.raises(DatabaseUnavailableError, match="does not respond"),
            database.read(),
        ):
            pass
    said = "".join(capsys.readouterr())
    assert said.count("waiting up to 1 seconds for the database nothing at 127.0.0.1") == 1


def test_a_server_does_not_wait_for_its_database(capsys: pytest.CaptureFixture[str]) -> None:
    database = open_database(NOWHERE, seams=Seams())
    with pytest.raises(DatabaseUnavailableError), database.write():
        pass
    assert "waiting" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("kind", ["database", "store"])
def test_a_stop_ends_the_wait_for_a_server(kind: str) -> None:
    def ask() -> None:
        if kind == "store":
            store_at(1, 3600.0).get("a")
        else:
            with open_database(NOWHERE, seams=Seams(outage_seconds=3600.0)).read():
                pass

    threading.Timer(0.3, STOP.set).start()
    with pytest.raises(StoreUnavailableError):
        ask()


def test_an_outage_that_is_over_is_reported_and_the_next_one_has_its_own_limit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outage = Outage("the store", 0.5)
    while outage.wait("refused"):
        pass
    assert not outage.wait("refused"), "what follows does not wait again"
    outage.end()
    outage.end()
    assert outage.wait("refused")
    said = "".join(capsys.readouterr())
    assert said.count("the store responds again, after") == 1
    assert said.count("waiting up to") == 2


# Lost connections -------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_transaction_that_lost_its_connection_is_done_again_as_a_whole(
    postgres_database: str,
) -> None:
    database = open_database(postgres_database, seams=Seams(outage_seconds=30.0))
    attempts: list[int] = []

    @repeatable
    def fill() -> int:
        with database.write() as connection:
            attempts.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
            connection.execute(text("INSERT INTO numbers VALUES (1)"))
            if len(attempts) == 1:
                _kill_session(database.engine.url.render_as_string(False), attempts[0])
            return int(connection.execute(text("SELECT count(*) FROM numbers")).scalar_one())

    with database.write() as connection:
        connection.execute(text("CREATE TABLE numbers (number int)"))
    assert fill() == 1
    assert len(attempts) == 2
    database.close()


@pytest.mark.smoke
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_commit_without_an_answer_is_looked_up_and_never_done_twice(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch, *, is_committed: bool
) -> None:
    database = open_database(postgres_database, seams=Seams(outage_seconds=30.0))
    with database.write() as connection:
        connection.execute(text("CREATE TABLE numbers (number int)"))
    dialect = database.engine.dialect
    commit, attempts = dialect.do_commit, list[int]()

    def lose(connection: Any) -> None:
        if len(attempts) == 1:
            if is_committed:
                commit(connection)
            _kill_session(postgres_database, attempts[0])
            connection.driver_connection.execute("SELECT 1")  # the answer that is lost
        commit(connection)

    monkeypatch.setattr(dialect, "do_commit", lose)

    @repeatable
    def add() -> None:
        with database.write() as connection:
            connection.execute(text("INSERT INTO numbers VALUES (1)"))
            attempts.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())

    add()
    assert len(attempts) == (1 if is_committed else 2)
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM numbers")).scalar_one() == 1
    database.close()


@pytest.mark.smoke
def test_what_is_no_outage_is_neither_waited_for_nor_repeated(postgres_database: str) -> None:
    missing = open_database(f"{postgres_database}&dbname=missing", seams=Seams(outage_seconds=60.0))
    with pytest.raises(OperationalError, match="does not exist"), missing.read():
        pass


def test_a_function_whose_connection_is_lost_again_and_again_ends() -> None:
    calls = 0

    @repeatable
    def lose() -> None:
        nonlocal calls
        calls += 1
        raise ConnectionLostError("lost")

    with pytest.raises(ConnectionLostError):
        lose()
    assert calls == 6


def _kill_session(url: str, pid: int) -> None:
    other = open_database(url, seams=Seams())
    with other.read() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
    other.close()


# Stores that hang -------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["get", "put", "large put", "stream", "list", "head"])
def test_an_operation_ends_when_no_byte_has_moved_for_some_seconds(
    operation: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # In real life it is twenty seconds; those tests would take minutes.
    monkeypatch.setattr(objects, "STALL_SECONDS", 1.0)
    monkeypatch.setattr(objects, "_WRITE_RATE", 8 << 20)
    monkeypatch.setattr(objects, "_RETRY", {"max_retries": 0})
    large = tmp_path / "large"
    large.write_bytes(b"1" * (2 << 20))
    operations: dict[str, Callable[[Blobs], object]] = {
        "get": lambda store: store.get("a"),
        "put": lambda store: store.put("a", b"1"),
        "large put": lambda store: store.put("a", large),
        "stream": lambda store: list(store.stream("a")),
        "list": lambda store: list(store.list()),
        "head": lambda store: store.head("a"),
    }
    with server(never_answer) as port, pytest.raises(StoreUnavailableError, match="s3://bucket"):
        operations[operation](store_at(port))


@pytest.mark.parametrize("operation", ["get", "stream"])
def test_a_body_that_stalls_ends_the_operation(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "STALL_SECONDS", 1.0)
    monkeypatch.setattr(objects, "_RETRY", {"max_retries": 0})
    with server(stall) as port, pytest.raises(StoreUnavailableError, match="does not respond"):
        b"".join(store_at(port).stream("a")) if operation == "stream" else store_at(port).get("a")


def test_a_stalled_stream_goes_on_where_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "STALL_SECONDS", 1.0)
    body = bytes(range(256)) * 16_384
    requests: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        request = connection.recv(1 << 16)
        requests.append(request)
        head = 'ETag: "x"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n'
        if len(requests) == 1:
            head = f"HTTP/1.1 200 OK\r\n{head}Content-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body[: 3 << 20])
            never_answer(connection)
            return
        start = int(request.lower().partition(b"range: bytes=")[2].partition(b"-")[0])
        span = f"Content-Range: bytes {start}-{len(body) - 1}/{len(body)}\r\n"
        length = f"Content-Length: {len(body) - start}\r\nConnection: close\r\n\r\n"
        head = f"HTTP/1.1 206 Partial Content\r\n{head}{span}{length}"
        connection.sendall(head.encode() + body[start:])

    with server(answer) as port:
        assert b"".join(store_at(port, 30.0).stream("a")) == body
    assert len(requests) == 2


def test_a_write_whose_answer_was_lost_is_found_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "STALL_SECONDS", 1.0)
    requests: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        requests.append(connection.recv(1 << 16))
        if requests[-1].startswith(b"PUT"):
            if len(requests) == 1:
                never_answer(connection)
                return
            connection.sendall(b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n")
        else:
            head = 'ETag: "x"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n'
            head = f"HTTP/1.1 200 OK\r\n{head}Content-Length: 1\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode() + b"1")

    with server(answer) as port:
        assert store_at(port, 30.0).create("a", b"1") == '"x"'


def test_a_store_that_comes_back_is_used_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    is_back = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        status = '200 OK\r\nETag: "x"' if is_back.is_set() else "503 Service Unavailable"
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        connection.close()

    monkeypatch.setattr(objects, "_RETRY", {"max_retries": 0})
    with server(answer) as port:
        threading.Timer(0.5, is_back.set).start()
        begun = time.monotonic()
        assert store_at(port, 60.0).put("a", b"1") == '"x"'
        assert time.monotonic() - begun > 0.1

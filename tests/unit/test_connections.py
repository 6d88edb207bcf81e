"""Clients that send half a request, drip by drip, or read nothing, on real sockets."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from tests.support import servers
from tests.support.libraries.uploads import upload_library
from tests.support.polling import wait_until

from fonds.connections import ConnectionLimits, bounded_protocol
from fonds.mcp.http import bind_socket

DEADLINE = 60.0
SHORT = ConnectionLimits(
    max_connections=40,
    idle_seconds=1,
    head_seconds=0.4,
    body_seconds=0.4,
    body_bytes_per_second=5000,
    read_seconds=0.4,
)
HALF_HEAD = b"GET / HTTP/1.1\r\nHost: fonds.test\r\nX-Slow: "
HALF_BODY = b"POST / HTTP/1.1\r\nHost: fonds.test\r\nContent-Length: 1000000\r\n\r\nhalf"


class Server:
    """A server with short limits, and connections to it."""

    def __init__(self, port: int, stack: ExitStack) -> None:
        self.port = port
        self._stack = stack

    def connect(self, sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), DEADLINE)
        self._stack.enter_context(connection)
        connection.sendall(sent)
        return connection

    def get(self) -> int:
        address = f"http://127.0.0.1:{self.port}/"
        return httpx.get(address, trust_env=False, timeout=DEADLINE).status_code


async def receive_body(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


async def send_without_end(_request: Request) -> Response:
    async def parts() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536
            await asyncio.sleep(0)

    return StreamingResponse(parts())


@contextmanager
def serving(limits: ConnectionLimits = SHORT) -> Iterator[Server]:
    app = Starlette(
        routes=[
            Route("/", receive_body, methods=["GET", "POST"]),
            Route("/endless", send_without_end),
        ]
    )
    with bind_socket("127.0.0.1", 0) as listening, ExitStack() as stack:
        config = uvicorn.Config(
            app,
            http=bounded_protocol(limits),
            timeout_keep_alive=limits.idle_seconds,
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        try:
            yield Server(listening.getsockname()[1], stack)
        finally:
            stack.close()
            server.should_exit = True
            thread.join(DEADLINE)


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has ended a connection; what it sent is read first."""
    connection.settimeout(0.05)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, HALF_BODY], ids=["nothing", "head", "body"])
def test_half_sent_requests_are_ended_and_others_are_served_meanwhile(sent: bytes) -> None:
    with serving() as server:
        connections = [server.connect(sent) for _ in range(20)]
        assert server.get() == 200
        wait_until(lambda: all(map(is_closed, connections)))
        assert server.get() == 200


@pytest.mark.parametrize("sent", [HALF_HEAD, HALF_BODY], ids=["head", "body"])
def test_request_that_is_sent_byte_by_byte_is_ended(sent: bytes) -> None:
    with serving() as server:
        connection = server.connect(sent)

        def is_ended_after_a_byte() -> bool:
            with suppress(OSError):
                connection.sendall(b"x")
            return is_closed(connection)

        wait_until(is_ended_after_a_byte)


def test_second_request_on_a_connection_has_the_same_limits() -> None:
    with serving() as server:
        request = b"GET / HTTP/1.1\r\nHost: fonds.test\r\n\r\n"
        connection = server.connect(request)
        assert b"200 OK" in connection.recv(65536)
        connection.sendall(HALF_HEAD)
        wait_until(lambda: is_closed(connection))


def test_body_that_makes_progress_is_received_however_long_it_takes() -> None:
    with serving(ConnectionLimits(body_seconds=3.0, body_bytes_per_second=1)) as server:
        connection, sent = server.connect(HALF_BODY.replace(b"1000000", b"12")), [b"half"]
        started = monotonic()
        for _ in range(8):
            # In all, longer than a body may pause.
            wait_until(lambda: monotonic() - started > 0.45 * len(sent))
            sent.append(b"x")
            connection.sendall(b"x")
        connection.settimeout(DEADLINE)
        assert b"200 OK" in connection.recv(65536)


def test_response_that_is_not_read_is_ended() -> None:
    with serving() as server:
        connection = server.connect(b"GET /endless HTTP/1.1\r\nHost: fonds.test\r\n\r\n")
        assert connection.recv(10)
        wait_until(lambda: _is_reset(connection))


def _is_reset(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"x")
    except OSError:
        return True
    return False


def test_connections_beyond_the_limit_displace_those_that_have_waited_longest() -> None:
    # Time alone closes none of them within this test.
    limits = ConnectionLimits(max_connections=10, head_seconds=600, body_seconds=600)
    with serving(limits) as server:
        first = [server.connect(HALF_BODY) for _ in range(5)]
        second = [server.connect(HALF_HEAD) for _ in range(5)]
        wait_until(lambda: server.get() == 200)
        for _ in range(7):
            server.connect(HALF_BODY)
        wait_until(lambda: all(map(is_closed, second)))
        assert server.get() == 200
        assert not is_closed(first[-1])


@pytest.mark.long
@pytest.mark.parametrize("sent", [HALF_HEAD, HALF_BODY], ids=["head", "body"])
def test_300_half_sent_requests_do_not_occupy_the_server(tmp_path: Path, sent: bytes) -> None:
    """With the limits and the routes of the real command."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    with upload_library(tmp_path / "library"):
        pass
    sent = sent.replace(b" / ", b" /login ")
    variables = {n: value for n, value in os.environ.items() if not n.startswith("FONDS_")}
    command = [str(servers.serving_command()), "--home", str(tmp_path / "library"), "serve"]
    command += ["--port", "0", "--no-worker"]
    with (
        ExitStack() as stack,
        subprocess.Popen(
            [*command, "--port", "0", "--no-worker"],
            env=variables,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            assert process.stderr is not None
            match = re.search(r":(\d+);", process.stderr.readline())
            assert match is not None
            server = Server(int(match[1]), stack)
            connections = [server.connect(sent) for _ in range(300)]
            assert server.get() == 200
            wait_until(lambda: all(map(is_closed, connections)))
            assert server.get() == 200
        finally:
            process.terminate()
            process.wait(DEADLINE)

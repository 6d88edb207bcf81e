from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.upstreams import loopback, misbehaving
from tests.support.upstreams.in_memory import InMemoryTransport, StoredBody, fetch_content
from tests.support.upstreams.misbehaving import MisbehavingServer

from fonds.errors import (
    ConnectionFailedError,
    FetchError,
    FetchTimeoutError,
    IncompleteBodyError,
    RetryableFetchError,
    TooLargeError,
)
from fonds.fetch.network import MAX_CONNECTIONS, MAX_LINE
from fonds.fetch.transport import (
    HttpRequest,
    HttpResponse,
    HttpTransport,
    fold_headers,
    host_of,
    is_loopback,
    map_url,
    normalize_url,
    public_url,
    read_response,
    run_sync,
)

T = TypeVar("T")
OK = b"HTTP/1.1 200 OK\r\n"

# Addresses


@pytest.mark.parametrize(
    ("url", "sent", "host"),
    [
        ("http://a.gov", "http://a.gov/", "a.gov"),
        ("https://a.gov:443/x?y=1", "https://a.gov/x?y=1", "a.gov"),
        ("https://A.gov:8443/x#y", "https://a.gov:8443/x", "a.gov"),
        (
            "http://bücher.example/ü?ü",
            "http://xn--bcher-kva.example/%C3%BC?%C3%BC",
            "bücher.example",
        ),
        ("http://me:secret@a.gov/x", "http://a.gov/x", "a.gov"),
        ("http://a.gov/b/../c d", "http://a.gov/c%20d", "a.gov"),
        ("http://a.gov//b.gov/x", "http://a.gov//b.gov/x", "a.gov"),
        ("http://a.gov/%2f%C3%BC?q=a+b&r=%2F&s=%zz", None, "a.gov"),
        ("http://a.gov/it's(1)|[2]?a={b}|'c'", "http://a.gov/it's(1)|[2]?a={b}|%27c%27", "a.gov"),
        ("http://[::1]:81/", None, "::1"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/", "127.0.0.1"),
    ],
)
def test_addresses_are_sent_percent_encoded_and_otherwise_as_they_are(
    url: str, sent: str | None, host: str
) -> None:
    assert normalize_url(url) == (sent or url)
    assert host_of(normalize_url(url)) == host


@pytest.mark.parametrize(
    "url", ["ftp://a.gov/", "http:///x", "http://a.gov:0/", "nothing", "http://a.gov:99999/", ""]
)
def test_what_cannot_be_requested_is_a_value_error(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        normalize_url(url)


@given(st.text() | st.text().map(lambda text: f"http://a.gov/{text}"))
def test_any_text_is_an_address_or_a_value_error(text: str) -> None:
    try:
        url = normalize_url(text)
    except ValueError:
        return
    assert url.isascii()
    assert not any(character.isspace() for character in url)
    assert url.startswith(("http://", "https://"))
    assert normalize_url(url) == url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.gov/x/y.xml?b=2&a=1", "http://127.0.0.1:8000/x/y.xml?b=2&a=1"),
        ("https://A.GOV/x", "http://127.0.0.1:8000/x"),
        ("https://a.gov", "http://127.0.0.1:8000/"),
        ("https://a.gov:8443/x", "https://mirror.org/eight/x"),
        ("https://b.gov/x#part", "https://mirror.org/b/gov/x"),
        ("https://user:key@b.gov/x", "https://mirror.org/b/gov/x"),
        ("https://b.gov/a%2Fb/%C3%A9", "https://mirror.org/b/gov/a%2Fb/%C3%A9"),
        ("https://www.a.gov/x?y#z", "https://www.a.gov/x?y#z"),
    ],
)
def test_a_mapped_host_is_that_host_only(url: str, expected: str) -> None:
    hosts = {
        "a.gov": "http://127.0.0.1:8000",
        "a.gov:8443": "https://mirror.org/eight",
        "b.gov": "https://mirror.org/b/gov/",
    }
    assert map_url(url, hosts) == expected


def test_without_mapped_hosts_addresses_stay_as_they_are() -> None:
    assert map_url("https://a.gov", {}) == "https://a.gov"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000/", True),
        ("http://127.9.9.9/", True),
        ("http://[::1]:8000/", True),
        ("http://localhost/", True),
        ("http://fr.localhost:1/", True),
        ("http://10.0.0.1/", False),
        ("http://localhost.example.org/", False),
    ],
)
def test_this_machine_is_recognised_by_its_address(url: str, *, expected: bool) -> None:
    assert is_loopback(url) is expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.gov/x?api_key=S&page=2", "https://a.gov/x?page=2"),
        ("https://a.gov/x?page=2&TOKEN=S", "https://a.gov/x?page=2"),
        ("https://a.gov/x?key=S", "https://a.gov/x"),
        ("https://a.gov/x?api%5Fkey=S&q=1", "https://a.gov/x?q=1"),
        ("https://user:S@a.gov:8443/x?q=a+b", "https://a.gov:8443/x?q=a+b"),
        ("https://a.gov/x?X-Amz-Signature=S", "https://a.gov/x"),
        ("https://a.gov/%e9?q=%C3%A9&&keyword=k#top", "https://a.gov/%e9?q=%C3%A9&&keyword=k#top"),
        ("http://[S", "a malformed address"),
    ],
)
def test_addresses_lose_their_secrets_and_nothing_else(url: str, expected: str) -> None:
    assert public_url(url) == expected


# Hostile servers


async def served(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
    use: Callable[[str, HttpTransport], Coroutine[Any, Any, T]],
) -> T:
    """What use makes of a server that talks like this on each of its connections."""

    async def accept(connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await talk(reader, writer)
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async with (
        loopback.open_port(accept) as port,
        aclosing(HttpTransport(allow_private=True)) as transport,
    ):
        return await use(f"http://127.0.0.1:{port}/", transport)


def fetch_raw(*pieces: bytes) -> bytes:
    """The content of a response that is sent in these pieces."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)
        writer.close()
        await writer.wait_closed()

    async def use(url: str, transport: HttpTransport) -> bytes:
        return await fetch_content(transport, url)

    return asyncio.run(served(talk, use))


def test_a_long_header_is_read_up_to_a_cap() -> None:
    size = b"Content-Length: 2\r\n\r\nok"
    assert fetch_raw(OK + b"X: %b\r\n" % (b"x" * (MAX_LINE // 2)) + size) == b"ok"
    with pytest.raises(ConnectionFailedError, match="not valid HTTP"):
        fetch_raw(OK + b"X: %b\r\n" % (b"x" * 2 * MAX_LINE) + size)


def test_headers_without_end_are_refused() -> None:
    with pytest.raises(ConnectionFailedError, match="headers"):
        fetch_raw(OK + b"X: y\r\n" * 1000 + b"\r\n")


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 2\r\nContent-Length: 3",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Content-Length: +2",
        b"Content-Length: 2, 2",
        b"Content-Length: -1",
        b"Content-Length: 2\r\nX: a\x00b",
        b"Content Length: 2",
    ],
)
def test_ambiguous_headers_are_refused(headers: bytes) -> None:
    with pytest.raises(ConnectionFailedError, match="not valid HTTP"):
        fetch_raw(OK + headers + b"\r\n\r\nok")


@pytest.mark.parametrize("head", [b"HTTP/9.9 200 OK\r\n", b"SSH-2.0\r\n", b"HTTP/1.1 2x0 OK\r\n"])
def test_what_is_not_http_is_refused(head: bytes) -> None:
    with pytest.raises(ConnectionFailedError):
        fetch_raw(head + b"Content-Length: 2\r\n\r\nok")


@pytest.mark.parametrize(
    "pieces",
    [
        (OK + b"\r\n", b"to the end"),
        (b"HTTP/1.0 200 OK\r\n\r\nto", b" the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", OK + b"Content-Length: 10\r\n\r\nto the end"),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 10\r\n\r\nto the end",),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"6\r\nto the\r\n4;x=y\r\n end\r\n0\r\n\r\n"),
        (OK + b"Content-Length: 10\r\nConnection: close\r\n\r\nto the", b" end"),
    ],
)
def test_all_ways_to_frame_a_body_are_understood(pieces: tuple[bytes, ...]) -> None:
    assert fetch_raw(*pieces) == b"to the end"


@pytest.mark.parametrize(
    "pieces",
    [
        (OK + b"Content-Length: 10\r\n\r\n", b"to the"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"6\r\nto the\r\n"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"6\r\nto the\r\nzz\r\n"),
    ],
)
def test_a_body_that_breaks_off_is_incomplete(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(IncompleteBodyError):
        fetch_raw(*pieces)


def test_an_upgrade_that_was_not_requested_has_no_content() -> None:
    head = b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
    assert fetch_raw(head, b"something else") == b""


@pytest.mark.parametrize("at_once", [True, False])
def test_a_response_that_was_not_requested_is_never_taken_for_the_next(*, at_once: bool) -> None:
    first = OK + b"Content-Length: 5\r\n\r\nfirst"
    forged = OK + b"Content-Length: 6\r\n\r\nforged"
    has_sent = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if b"/first" not in request:
            writer.write(OK + b"Content-Length: 6\r\n\r\nsecond")
            await reader.read()
            return
        if at_once:
            writer.write(first + forged)
        else:
            writer.write(first)
            await asyncio.sleep(0.05)
            writer.write(forged)
        await writer.drain()
        has_sent.set()
        await reader.read()

    async def use(url: str, transport: HttpTransport) -> bytes:
        with suppress(RetryableFetchError):
            assert await fetch_content(transport, f"{url}first") == b"first"
        await has_sent.wait()
        await asyncio.sleep(0.02)
        return await fetch_content(transport, f"{url}second")

    assert asyncio.run(served(talk, use)) == b"second"


def test_a_connection_that_its_server_closed_is_not_used_again() -> None:
    closed = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Content-Length: 2\r\n\r\nok")
        await writer.drain()
        await reader.readexactly(1)
        writer.close()
        await writer.wait_closed()
        closed.set()

    async def use(url: str, transport: HttpTransport) -> list[bytes]:
        contents = []
        for _ in range(3):
            closed.clear()
            contents.append(await fetch_content(transport, url, method="POST", body=b"x"))
            await closed.wait()
            await asyncio.sleep(0.01)
        return contents

    assert asyncio.run(served(talk, use)) == [b"ok"] * 3


def test_a_response_that_is_not_read_frees_its_place_and_closes_its_connection(
    upstream: MisbehavingServer,
) -> None:
    async def run() -> bytes:
        async with aclosing(HttpTransport(allow_private=True)) as transport:
            for _ in range(2 * MAX_CONNECTIONS):
                response = await transport.send(HttpRequest(url=upstream.url("/drip"), timeout=5))
                await response.body.aclose()
            return await fetch_content(transport, upstream.url("/etag"))

    assert asyncio.run(run()) == b"tagged"


def test_a_limited_number_of_requests_is_sent_at_the_same_time(
    upstream: MisbehavingServer,
) -> None:
    async def run() -> int:
        async with aclosing(HttpTransport(allow_private=True)) as transport:
            request = HttpRequest(url=upstream.url("/hangs"))
            tasks = [asyncio.create_task(transport.send(request)) for _ in range(40)]
            async with asyncio.timeout(10):
                while len(upstream.requests) < MAX_CONNECTIONS:  # noqa: ASYNC110 — another thread's
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return len(upstream.requests)

    assert asyncio.run(run()) == MAX_CONNECTIONS


# Requests


def test_headers_arrive_in_their_order_and_nothing_is_added_but_the_host() -> None:
    heads: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK + b"b: 1\r\nA: 2\r\nContent-Length: 0\r\nSet-Cookie: a=b\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        heads.append(b"")

    async def use(url: str, transport: HttpTransport) -> HttpResponse:
        request = HttpRequest(url=f"{url}x%2fy?q=%c3", headers=[("x-own", "ü"), ("Accept", "*/*")])
        response = await transport.send(request)
        await response.body.aclose()
        return response

    response = asyncio.run(served(talk, use))
    line, host, *rest = heads[0].decode().split("\r\n")
    assert line == "GET /x%2fy?q=%c3 HTTP/1.1"
    assert host.startswith("Host: 127.0.0.1:")
    assert rest == ["x-own: ü", "Accept: */*", "", ""]
    assert response.headers[:2] == [("b", "1"), ("A", "2")]


def test_no_cookie_is_sent_back(upstream: MisbehavingServer) -> None:
    upstream.serve("/a", b"", set_cookie="id=1; Path=/")

    async def run() -> None:
        async with aclosing(HttpTransport(allow_private=True)) as transport:
            for _ in range(2):
                await fetch_content(transport, upstream.url("/a"))

    asyncio.run(run())
    assert "cookie" not in upstream.requests[1].headers


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00b"])
def test_a_header_cannot_be_smuggled_in(upstream: MisbehavingServer, value: str) -> None:
    async def run() -> None:
        async with aclosing(HttpTransport(allow_private=True)) as transport:
            await transport.send(HttpRequest(url=upstream.url("/"), headers=[("X-Key", value)]))

    with pytest.raises(FetchError, match="malformed address or header"):
        asyncio.run(run())
    assert upstream.requests == []


@pytest.mark.parametrize("known_length", [True, False])
def test_a_body_may_be_bytes_or_come_in_pieces(
    upstream: MisbehavingServer, *, known_length: bool
) -> None:
    data = bytes(range(256)) * 3000
    upstream.route("/echo", lambda request: misbehaving.Response(request.body))

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), 100_000):
            yield data[start : start + 100_000]

    async def run() -> bytes:
        url = upstream.url("/echo")
        if known_length:
            request = HttpRequest(url=url, method="POST", body=data)
        else:
            length = [("Content-Length", str(len(data)))]
            request = HttpRequest(url=url, method="POST", body=pieces(), headers=length)
        async with aclosing(HttpTransport(allow_private=True)) as transport:
            response = await read_response(transport, request, max_bytes=len(data), seconds=5)
            return response.content

    assert asyncio.run(run()) == data


def test_the_error_of_a_body_that_cannot_be_read_is_the_error_of_the_request(
    upstream: MisbehavingServer,
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"some"
        raise OSError("the file is gone")

    async def run() -> None:
        async with aclosing(HttpTransport(allow_private=True)) as transport:
            length = [("Content-Length", "1000")]
            url = upstream.url("/")
            await transport.send(HttpRequest(url=url, method="PUT", body=pieces(), headers=length))

    with pytest.raises(OSError, match="the file is gone"):
        asyncio.run(run())


def test_a_server_that_stops_reading_is_a_timeout() -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.Event().wait()

    async def use(url: str, transport: HttpTransport) -> None:
        request = HttpRequest(url=url, method="PUT", body=bytes(2**26), timeout=0.1)
        await transport.send(request)

    with pytest.raises(FetchTimeoutError):
        asyncio.run(served(talk, use))


def test_a_server_may_answer_before_it_has_read_everything() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await writer.drain()
        await asyncio.sleep(0.2)

    async def use(url: str, transport: HttpTransport) -> tuple[int, bytes]:
        request = HttpRequest(url=url, method="PUT", body=bytes(2**24), timeout=5)
        response = await read_response(transport, request, max_bytes=10, seconds=5)
        return response.status, response.content

    assert asyncio.run(served(talk, use)) == (413, b"no")


# Whole responses


def test_a_whole_response_has_a_cap_and_a_deadline(upstream: MisbehavingServer) -> None:
    async def run(path: str, **limits: Any) -> None:
        async with aclosing(HttpTransport(allow_private=True)) as transport:
            await read_response(transport, HttpRequest(url=upstream.url(path)), **limits)

    with pytest.raises(TooLargeError, match="larger than 1 MiB"):
        asyncio.run(run("/endless", max_bytes=2**20, seconds=5))
    with pytest.raises(FetchTimeoutError, match="took too long"):
        asyncio.run(run("/drip", max_bytes=2**20, seconds=0.1))


def test_repeated_headers_are_joined() -> None:
    assert fold_headers([("A", "1"), ("b", "2"), ("a", "3")]) == {"a": "1, 3", "b": "2"}


# Synchronous callers


def test_synchronous_callers_share_connections_over_threads(upstream: MisbehavingServer) -> None:
    transport = HttpTransport(allow_private=True)
    contents: list[bytes] = []

    def work() -> None:
        contents.append(run_sync(fetch_content(transport, upstream.url("/etag"))))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run_sync(transport.aclose())
    assert contents == [b"tagged"] * 8


def test_a_synchronous_caller_gets_the_error() -> None:
    def fail(_request: HttpRequest) -> HttpResponse:
        raise ConnectionFailedError("refused")

    with pytest.raises(ConnectionFailedError, match="refused"):
        run_sync(fetch_content(InMemoryTransport(fail), "http://a.gov/"))


def test_synchronous_callers_may_be_inside_of_a_loop() -> None:
    transport = InMemoryTransport(lambda _: HttpResponse(status=200, body=StoredBody(b"here")))

    async def run() -> bytes:
        return run_sync(fetch_content(transport, "http://a.gov/"))

    assert asyncio.run(run()) == b"here"

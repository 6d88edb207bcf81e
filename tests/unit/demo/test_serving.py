"""The little server: persistent connections, conditional requests, and what it refuses."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from fonds.demo.http import LoopbackServer, Request, Response, not_found
from fonds.demo.server import DemoUpstream
from fonds.errors import UsageError

BODY = b"one fine body"
TAG = f'"{hashlib.sha256(BODY).hexdigest()}"'
MODIFIED = datetime(2026, 1, 12, 12, 45, tzinfo=UTC)
MODIFIED_TEXT = "Mon, 12 Jan 2026 12:45:00 GMT"


def _site(request: Request) -> Response:
    match request.path:
        case "/dated":
            return Response(body=BODY, modified=MODIFIED)
        case "/undated":
            return Response(body=BODY)
        case "/broken":
            raise ValueError("as asked")
        case "/echo":
            return Response(body=repr(request.query).encode())
    return not_found()


@pytest.fixture
def upstream() -> Iterator[DemoUpstream]:
    with DemoUpstream({"a.example": _site, "b.example": _site}) as running:
        yield running


@pytest.fixture
def client(upstream: DemoUpstream) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=upstream.hosts["a.example"], trust_env=False) as client:
        yield client


def _raw(upstream: DemoUpstream, *pieces: bytes) -> bytes:
    port = int(upstream.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for piece in pieces:
            connection.sendall(piece)
        answer = b""
        while more := connection.recv(65536):
            answer += more
        return answer


def test_an_answer_has_its_hash_as_strong_tag_its_date_and_its_length(client: httpx.Client) -> None:
    answer = client.get("/dated")

    assert answer.content == BODY
    assert answer.headers["etag"] == TAG
    assert answer.headers["last-modified"] == MODIFIED_TEXT
    assert answer.headers["content-length"] == str(len(BODY))


def test_the_known_tag_is_answered_with_304_and_no_body(client: httpx.Client) -> None:
    answer = client.get("/dated", headers={"If-None-Match": TAG})

    assert answer.status_code == 304
    assert answer.content == b""
    assert answer.headers["etag"] == TAG
    assert client.get("/dated").content == BODY


@pytest.mark.parametrize("tags", [f'"other", {TAG}', f"W/{TAG}", "*"])
def test_lists_weak_tags_and_the_star_match_as_well(client: httpx.Client, tags: str) -> None:
    assert client.get("/undated", headers={"If-None-Match": tags}).status_code == 304


def test_another_tag_is_answered_in_full_even_with_a_matching_date(client: httpx.Client) -> None:
    headers = {"If-None-Match": '"other"', "If-Modified-Since": MODIFIED_TEXT}

    assert client.get("/dated", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("since", "status"),
    [
        (MODIFIED_TEXT, 304),
        ("Mon, 12 Jan 2026 12:44:59 GMT", 200),
        ("Tue, 13 Jan 2026 00:00:00 GMT", 304),
        ("yesterday", 200),
    ],
)
def test_a_date_alone_is_compared_with_last_modified(
    client: httpx.Client, since: str, status: int
) -> None:
    assert client.get("/dated", headers={"If-Modified-Since": since}).status_code == status


def test_what_has_no_date_is_never_unmodified_by_date(client: httpx.Client) -> None:
    answer = client.get("/undated", headers={"If-Modified-Since": MODIFIED_TEXT})

    assert answer.status_code == 200


def test_head_has_the_headers_of_get_and_no_body(client: httpx.Client) -> None:
    answer = client.head("/dated")

    assert answer.content == b""
    assert answer.headers["content-length"] == str(len(BODY))
    assert answer.headers["etag"] == TAG


def test_other_methods_are_refused(client: httpx.Client) -> None:
    answer = client.post("/dated", content=b"something")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_a_missing_page_keeps_its_404_whatever_the_condition(client: httpx.Client) -> None:
    assert client.get("/nothing", headers={"If-None-Match": "*"}).status_code == 404


def test_a_host_nobody_stands_in_for_is_not_found(upstream: DemoUpstream) -> None:
    answer = httpx.get(f"{upstream.address}/c.example/dated", trust_env=False)

    assert answer.status_code == 404
    assert "a.example, b.example" in answer.text


def test_a_handler_that_fails_is_a_500_and_the_connection_goes_on(client: httpx.Client) -> None:
    assert client.get("/broken").status_code == 500
    assert client.get("/dated").status_code == 200


def test_queries_arrive_decoded_and_in_order(client: httpx.Client) -> None:
    answer = client.get("/echo?fields%5B%5D=b&fields[]=a&empty=")

    assert answer.text == "[('fields[]', 'b'), ('fields[]', 'a'), ('empty', '')]"


def test_requests_that_come_in_pieces_or_together_are_all_answered(upstream: DemoUpstream) -> None:
    first = b"GET /a.example/dated HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /a.example/undated HTTP/1.1\r\nConnection: close\r\n\r\n"

    answer = _raw(upstream, first[:20], first[20:] + last)

    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert answer.endswith(BODY)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET http://elsewhere/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / SPDY/3\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, b"431"),
    ],
)
def test_what_is_no_proper_request_is_refused_and_the_connection_closed(
    upstream: DemoUpstream, sent: bytes, status: bytes
) -> None:
    assert _raw(upstream, sent).startswith(b"HTTP/1.1 " + status)


def test_requests_are_counted_for_each_host(upstream: DemoUpstream, client: httpx.Client) -> None:
    client.get("/dated")
    client.get("/dated", headers={"If-None-Match": TAG})
    client.get("/dated", headers={"If-None-Match": '"old"'})

    counts = upstream.counts["a.example"]
    assert (counts.total, counts.conditional, counts.not_modified) == (3, 2, 1)
    assert upstream.counts["b.example"].total == 0


def test_a_stopped_server_leaves_no_thread_and_no_listener() -> None:
    with httpx.Client(trust_env=False) as client:
        before = threading.active_count()
        with DemoUpstream({"a.example": _site}) as upstream:
            address = upstream.hosts["a.example"]
            assert client.get(f"{address}/dated").status_code == 200

        assert threading.active_count() == before
        with pytest.raises(httpx.ConnectError):
            client.get(f"{address}/dated")


def test_it_can_be_started_from_within_a_running_loop() -> None:
    async def ask() -> int:
        with DemoUpstream({"a.example": _site}) as upstream:
            async with httpx.AsyncClient(trust_env=False) as client:
                return (await client.get(f"{upstream.hosts['a.example']}/dated")).status_code

    assert asyncio.run(ask()) == 200


def test_a_port_that_is_taken_is_a_usage_error() -> None:
    with LoopbackServer(_site) as first:
        second = LoopbackServer(_site, port=first.port)

        with pytest.raises(UsageError, match=f"port {first.port} cannot be served"):
            second.__enter__()


def test_hosts_are_given_as_mapping_and_as_the_value_of_the_variable(
    upstream: DemoUpstream,
) -> None:
    base = upstream.address

    assert upstream.hosts == {"a.example": f"{base}/a.example", "b.example": f"{base}/b.example"}
    assert upstream.hosts_variable == f"a.example={base}/a.example,b.example={base}/b.example"

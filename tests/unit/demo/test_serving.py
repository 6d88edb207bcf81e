"""The server of the demo: hosts, conditional requests, counts, start and end."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from fonds.demo.http import Request, Response, not_found
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
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}


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
    with DemoUpstream({}) as first:
        port = int(first.address.rpartition(":")[2])

        with pytest.raises(UsageError, match=f"^Port {port} of 127.0.0.1 cannot be used: "):
            DemoUpstream({}, port=port).__enter__()


def test_hosts_are_given_as_mapping_and_as_the_value_of_the_variable(
    upstream: DemoUpstream,
) -> None:
    base = upstream.address

    assert upstream.hosts == {"a.example": f"{base}/a.example", "b.example": f"{base}/b.example"}
    assert upstream.hosts_variable == f"a.example={base}/a.example,b.example={base}/b.example"

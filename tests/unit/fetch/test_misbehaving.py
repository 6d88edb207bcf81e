from __future__ import annotations

import httpx
import pytest
from tests.support.upstreams.misbehaving import MisbehavingServer, Request, Response


def test_other_bytes_have_another_etag(upstream: MisbehavingServer) -> None:
    upstream.serve("/a", "one")
    first = httpx.get(upstream.url("/a"), trust_env=False)
    upstream.serve("/a", "two")
    condition = {"If-None-Match": first.headers["etag"]}
    second = httpx.get(upstream.url("/a"), headers=condition, trust_env=False)
    third = httpx.get(
        upstream.url("/a"), headers={"If-None-Match": second.headers["etag"]}, trust_env=False
    )
    assert [each.status_code for each in (first, second, third)] == [200, 200, 304]


def test_the_most_exact_route_answers(upstream: MisbehavingServer) -> None:
    def query(request: Request) -> Response:
        return Response(request.query.get("q", "").encode())

    upstream.route("/api/*", lambda _request: Response(b"prefix"))
    upstream.route("/api/v1/*", lambda _request: Response(b"longer prefix"))
    upstream.route("/api/v1/search", query)
    upstream.serve("/api/v1/search?q=exact", b"exact target")
    paths = ["/api/x", "/api/v1/x", "/api/v1/search?q=a+b", "/api/v1/search?q=exact", "/x"]
    found = [httpx.get(upstream.url(path), trust_env=False).text for path in paths]
    assert found == ["prefix", "longer prefix", "a b", "exact target", "no such page"]
    assert [(seen.target, seen.status) for seen in upstream.requests[2:]] == [
        ("/api/v1/search?q=a+b", 200),
        ("/api/v1/search?q=exact", 200),
        ("/x", 404),
    ]


def test_a_removed_route_is_not_found(upstream: MisbehavingServer) -> None:
    upstream.serve("/a", b"")
    upstream.remove("/a")
    assert httpx.get(upstream.url("/a"), trust_env=False).status_code == 404


def ask_for_a_crash() -> None:
    def crash(_request: Request) -> Response:
        raise KeyError("mine")

    with MisbehavingServer() as server, httpx.Client(trust_env=False) as client:
        server.route("/crash", crash)
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(server.url("/crash"))


def test_a_route_that_crashes_is_reported_at_the_end() -> None:
    with pytest.raises(AssertionError, match="KeyError: 'mine'"):
        ask_for_a_crash()

"""Which address counts as the client's, and which requests are local, with proxies in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs
from tests.support.libraries.uploads import upload_library
from tests.unit.web.visiting import PAGE, Visit, visiting

from fonds.api.clients import ClientAddresses, parse_networks
from fonds.errors import SettingsError
from fonds.library import Library
from fonds.seams import Seams
from fonds.stores.server_values import HIDDEN_CLIENTS, ServerValue, read_value
from fonds.testing import ManualClock

PROXY = "127.0.0.1"
TRUSTED = ClientAddresses(parse_networks(["127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48"]))
UNCONFIGURED = ClientAddresses(())


def request(*headers: tuple[str, str], peer: str = PROXY, version: str = "1.1") -> Request:
    return Request(
        {
            "type": "http",
            "http_version": version,
            "client": (peer, 50_000),
            "headers": [(name.encode(), value.encode()) for name, value in headers],
        }
    )


def forwarded_for(*values: str, peer: str = PROXY) -> Request:
    return request(*(("x-forwarded-for", value) for value in values), peer=peer)


def test_rightmost_hop_that_is_not_a_trusted_proxy_is_the_client() -> None:
    assert TRUSTED.of(forwarded_for("198.51.100.7")) == "198.51.100.7"
    assert TRUSTED.of(forwarded_for("6.6.6.6, 198.51.100.7, 10.1.2.3")) == "198.51.100.7"
    assert TRUSTED.of(forwarded_for("6.6.6.6", "198.51.100.7", "10.1.2.3")) == "198.51.100.7"
    assert TRUSTED.of(forwarded_for("198.51.100.7:4711")) == "198.51.100.7"
    assert TRUSTED.of(forwarded_for("::ffff:198.51.100.7")) == "198.51.100.7"
    assert TRUSTED.of(forwarded_for("10.1.2.3")) == "10.1.2.3"


def test_header_of_a_stranger_is_not_trusted() -> None:
    assert TRUSTED.of(forwarded_for("198.51.100.7", peer="203.0.113.5")) == "203.0.113.5"
    assert UNCONFIGURED.of(forwarded_for("198.51.100.7")) == PROXY
    assert TRUSTED.of(request(("x-real-ip", "198.51.100.7"))) == PROXY


@pytest.mark.parametrize(
    "value",
    ["for=198.51.100.7", 'For="198.51.100.7:80";proto=https', "for=6.6.6.6, for=198.51.100.7"],
)
def test_forwarded_names_the_client_as_well(value: str) -> None:
    assert TRUSTED.of(request(("forwarded", value))) == "198.51.100.7"


@pytest.mark.parametrize("value", ["", "unknown", "_hidden", "198.51.100.7, unknown", "x" * 9999])
def test_header_without_an_address_names_the_proxy(value: str) -> None:
    assert TRUSTED.of(forwarded_for(value)) == PROXY
    assert TRUSTED.of(request(("forwarded", f"for={value}"))) in {PROXY, "198.51.100.7"}


def test_header_that_the_proxy_passes_on_from_the_client_changes_nothing() -> None:
    both = request(("x-forwarded-for", "198.51.100.7"), ("forwarded", "for=6.6.6.6"))
    assert TRUSTED.of(both) == PROXY
    assert TRUSTED.are_hidden(both)


def test_clients_of_ipv6_are_counted_by_network() -> None:
    first, second = forwarded_for("2001:db8:2::1"), forwarded_for("[2001:db8:2::ffff]:443")
    assert TRUSTED.of(first) == TRUSTED.of(second) == "2001:db8:2::/64"
    assert TRUSTED.of(forwarded_for("2001:db8:2:1::1")) == "2001:db8:2:1::/64"


def test_trace_of_an_unconfigured_proxy_hides_clients() -> None:
    for name in ("forwarded", "x-forwarded-for", "x-forwarded-proto", "x-real-ip", "via"):
        assert UNCONFIGURED.are_hidden(request((name, "for=198.51.100.7")))
    assert UNCONFIGURED.are_hidden(request(version="1.0"))
    assert not UNCONFIGURED.are_hidden(request(("x-requested-with", "a")))
    assert not TRUSTED.are_hidden(forwarded_for("198.51.100.7"))
    assert TRUSTED.are_hidden(request(version="1.0"))


def test_wrong_network_names_the_setting() -> None:
    with pytest.raises(SettingsError, match="FONDS_TRUSTED_PROXIES"):
        parse_networks(["10.0.0.0/8", "library.example"])


# Local requests -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    ["Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP", "Via"],
)
def test_request_through_a_proxy_is_never_local(here: Visit, header: str) -> None:
    assert here.get("/upload").status_code == 200
    assert here.get("/upload", {**PAGE, header: "127.0.0.1"}).status_code == 303


def test_request_of_http_1_0_is_never_local(here: Visit) -> None:
    app = here.client.app

    async def older(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "http_version": "1.0"}, receive, send)

    with TestClient(
        older, base_url="http://127.0.0.1", follow_redirects=False, client=("127.0.0.1", 50_000)
    ) as client:
        assert client.get("/upload", headers=PAGE).status_code == 303


@pytest.mark.parametrize("peer", ["203.0.113.5", "10.0.0.1", "testclient", "::ffff:203.0.113.5"])
def test_peer_that_is_not_loopback_is_never_local(here: Visit, peer: str) -> None:
    with visiting(here.library, peer=peer, base="http://127.0.0.1") as visit:
        assert visit.get("/upload").status_code == 303


def test_searches_through_a_proxy_are_limited_on_a_loopback_server(here: Visit) -> None:
    proxied = {**PAGE, "x-forwarded-for": "198.51.100.7"}
    answers = [here.get("/?q=water", proxied).status_code for _ in range(31)]
    assert answers == [200] * 30 + [429]


def test_searches_are_limited_by_visitor_behind_a_trusted_proxy(
    tmp_path: Path, clock: ManualClock
) -> None:
    with (
        upload_library(tmp_path, seams=Seams(clock=clock), trusted_proxies=(PROXY,)) as library,
        visiting(library, is_exposed=True, peer=PROXY) as visit,
    ):
        for client in ("198.51.100.7", "198.51.100.8"):
            # Each request invents another first hop.
            headers = [
                {**PAGE, "x-forwarded-for": f"203.0.113.{number}, {client}"} for number in range(32)
            ]
            answers = [visit.get("/?q=water", each).status_code for each in headers]
            assert answers[:30] == [200] * 30
            assert answers[-1] == 429


def test_unconfigured_proxy_is_logged_once_and_stored_for_the_doctor(
    library: Library, clock: ManualClock
) -> None:
    def stored() -> ServerValue | None:
        with library.database.read() as connection:
            return read_value(connection, HIDDEN_CLIENTS)

    with capture_logs() as logs, visiting(library, is_exposed=True, peer="10.0.0.1") as visit:
        visit.get("/")
        assert stored() is None
        for _ in range(3):
            visit.get("/", {**PAGE, "x-forwarded-for": "198.51.100.7"})
        assert stored() == ServerValue(
            value={"peer": "10.0.0.1", "trace": "x-forwarded-for"}, updated_at=clock.now()
        )
        clock.move(hours=1)
        visit.get("/", {**PAGE, "via": "1.1 cache"})
        assert stored() == ServerValue(
            value={"peer": "10.0.0.1", "trace": "via"}, updated_at=clock.now()
        )
    (line,) = [each for each in logs if each["event"] == "clients_hidden"]
    assert "FONDS_TRUSTED_PROXIES=10.0.0.1" in line["advice"]

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from ipaddress import ip_address

import pytest
from tests.support.upstreams.misbehaving import MisbehavingServer
from tests.support.upstreams.redirecting_loop import RedirectingLoop
from tests.unit.fetch.conftest import Fetch

from fonds.errors import ConnectionFailedError, FetchTimeoutError, ForbiddenAddressError
from fonds.fetch.network import why_forbidden
from fonds.fetch.transport import HttpRequest, HttpTransport
from fonds.settings import Settings

PUBLIC = "93.184.215.14"


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.0.9",
        "169.254.169.254",
        "172.16.0.1",
        "192.0.0.8",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "100::1",
        "2002:7f00:1::1",
        "2002:c0a8:101::1",
        "2001:0:7f00:1::1",
        "2001:0:5db8:d70e:0:0:80ff:fffe",
        "2001:db8::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_addresses_that_are_not_public_are_forbidden(address: str) -> None:
    assert why_forbidden(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        PUBLIC,
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.1",
        "172.32.0.1",
        "2606:4700::6810:1",
        "::ffff:93.184.215.14",
        "64:ff9b::5db8:d70e",
        "2002:5db8:d70e::1",
    ],
)
def test_public_addresses_are_allowed(address: str) -> None:
    assert why_forbidden(ip_address(address)) is None


class Names:
    """A resolver with one answer for each look-up of a name, the last one repeating."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self._answers = {name.replace("_", "."): each for name, each in answers.items()}

    async def __call__(self, host: str, _port: int) -> list[str]:
        if host not in self._answers:
            raise socket.gaierror(-2, "Name or service not known")
        waiting = self._answers[host]
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


def guarded(names: Names) -> HttpTransport:
    return HttpTransport(allow_private=False, look_up=names)


def test_the_checked_address_is_the_one_connected_to(
    upstream: MisbehavingServer, fetch: Fetch
) -> None:
    loop = RedirectingLoop(upstream.port)
    rebinding = Names(a_gov=[[PUBLIC], ["127.0.0.1"]])
    assert fetch("http://a.gov/etag", transport=guarded(rebinding), loop=loop)
    assert loop.connected == [PUBLIC]
    assert upstream.requests[0].headers["host"] == "a.gov"


def test_every_new_connection_looks_the_name_up_and_checks_it(
    upstream: MisbehavingServer, settings: Settings, fetch: Fetch
) -> None:
    loop = RedirectingLoop(upstream.port)
    rebinding = Names(a_gov=[[PUBLIC], ["127.0.0.1"]])
    with pytest.raises(ForbiddenAddressError):
        fetch(
            "http://a.gov/truncated",
            transport=guarded(rebinding),
            loop=loop,
            settings=replace(settings, retries=2),
        )
    assert loop.connected == [PUBLIC]


@pytest.mark.parametrize("addresses", [["10.0.0.1"], [PUBLIC, "10.0.0.1"], ["::ffff:127.0.0.1"]])
def test_one_forbidden_address_is_enough_to_refuse_a_name(
    upstream: MisbehavingServer, fetch: Fetch, addresses: list[str]
) -> None:
    loop = RedirectingLoop(upstream.port)
    with pytest.raises(ForbiddenAddressError, match=r"a\.gov \(.*\) was refused"):
        fetch("http://a.gov/etag", transport=guarded(Names(a_gov=[addresses])), loop=loop)
    assert loop.connected == []


@pytest.mark.parametrize(
    "there",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://inside.corp/",
        "https://2130706433/",
        "http://127.1/",
        "http://0x7f.1/",
        "http://\uff11\uff12\uff17.0.0.1/",
    ],
)
def test_a_redirect_to_a_private_address_is_refused(
    upstream: MisbehavingServer, fetch: Fetch, there: str
) -> None:
    loop = RedirectingLoop(upstream.port)
    names = Names(a_gov=[[PUBLIC]], inside_corp=[["192.168.0.7"]])
    names._answers["0x7f.1"] = names._answers["2130706433"] = [["127.0.0.1"]]
    with pytest.raises(ForbiddenAddressError):
        fetch(f"http://a.gov/redirect-private?to={there}", transport=guarded(names), loop=loop)
    assert loop.connected == [PUBLIC]
    assert len(upstream.requests) == 1


def test_loopback_is_refused_by_default(
    upstream: MisbehavingServer, settings: Settings, fetch: Fetch
) -> None:
    with pytest.raises(ForbiddenAddressError, match="FONDS_ALLOW_PRIVATE"):
        fetch(upstream.url("/etag"), settings=replace(settings, allow_private=False))
    assert upstream.requests == []


def test_a_mapped_host_is_guarded_as_well(
    upstream: MisbehavingServer, settings: Settings, fetch: Fetch
) -> None:
    mapped = replace(settings, allow_private=False, hosts={"a.gov": upstream.address})
    with pytest.raises(ForbiddenAddressError):
        fetch("https://a.gov/etag", settings=mapped)
    assert upstream.requests == []


def test_a_proxy_of_the_environment_is_not_used(
    upstream: MisbehavingServer, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert fetch(upstream.url("/etag"))


def test_the_next_address_is_tried_when_one_does_not_answer(
    upstream: MisbehavingServer, fetch: Fetch
) -> None:
    loop = RedirectingLoop(upstream.port, unreachable=["2606:4700::1"])
    names = Names(a_gov=[["2606:4700::1", PUBLIC]])
    assert fetch("http://a.gov/etag", transport=guarded(names), loop=loop)
    assert loop.connected == ["2606:4700::1", PUBLIC]


def test_an_unknown_name_is_a_failed_connection(fetch: Fetch) -> None:
    with pytest.raises(ConnectionFailedError, match=r"nowhere\.gov.*not known"):
        fetch("http://nowhere.gov/", transport=guarded(Names()))


def test_a_name_without_an_address_is_a_failed_connection(fetch: Fetch) -> None:
    with pytest.raises(ConnectionFailedError, match="no address"):
        fetch("http://a.gov/", transport=guarded(Names(a_gov=[[]])))


def test_a_name_that_cannot_be_looked_up_is_a_failed_connection(
    settings: Settings, fetch: Fetch
) -> None:
    with pytest.raises(ConnectionFailedError, match="not a valid name"):
        fetch("http://a..b/", settings=replace(settings, allow_private=False))


def test_a_slow_look_up_ends_in_time() -> None:
    async def never(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async def run() -> None:
        transport = HttpTransport(allow_private=False, look_up=never)
        try:
            await transport.send(HttpRequest(url="http://a.gov/", timeout=0.01))
        finally:
            await transport.aclose()

    with pytest.raises(FetchTimeoutError):
        asyncio.run(run())

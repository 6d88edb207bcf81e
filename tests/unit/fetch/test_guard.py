from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from dataclasses import replace
from ipaddress import ip_address
from typing import cast

import pytest
from tests.support.upstreams.misbehaving import MisbehavingServer
from tests.unit.fetch.conftest import Fetch

from fonds.errors import ConnectionFailedError, ForbiddenAddressError
from fonds.fetch.guard import Guard, why_forbidden
from fonds.fetch.network import Network
from fonds.fetch.sockets import Sockets, Stream
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


class LocalDialer:
    """Notes whom it is asked to connect to, and connects to this machine."""

    def __init__(self, port: int, unreachable: Iterable[str] = ()) -> None:
        self.dialled: list[str] = []
        self._port = port
        self._unreachable = set(unreachable)
        self._inner = Sockets()

    async def connect(self, host: str, port: int, patience: float | None) -> Stream:
        del port
        self.dialled.append(host)
        if host in self._unreachable:
            raise ConnectionError("unreachable")
        return await self._inner.connect("127.0.0.1", self._port, patience)


class Names:
    """A resolver with one answer for each look-up of a name, the last one repeating."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self._answers = {name.replace("_", "."): each for name, each in answers.items()}

    async def __call__(self, host: str, _port: int) -> list[str]:
        if host not in self._answers:
            raise socket.gaierror(-2, "Name or service not known")
        waiting = self._answers[host]
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


def guarded(settings: Settings, names: Names, dialer: LocalDialer) -> Network:
    guard = Guard(allow_private=False, resolve=names, dialer=dialer)
    return Network(replace(settings, allow_private=False), dialer=guard)


def test_the_judged_address_is_the_one_connected_to(
    upstream: MisbehavingServer, settings: Settings, fetch: Fetch
) -> None:
    dialer = LocalDialer(upstream.port)
    rebinding = Names(a_gov=[[PUBLIC], ["127.0.0.1"]])
    assert fetch("http://a.gov/etag", wire=guarded(settings, rebinding, dialer))
    assert dialer.dialled == [PUBLIC]
    assert upstream.requests[0].headers["host"] == "a.gov"


@pytest.mark.parametrize("addresses", [["10.0.0.1"], [PUBLIC, "10.0.0.1"], ["::ffff:127.0.0.1"]])
def test_one_forbidden_address_is_enough_to_refuse_a_name(
    upstream: MisbehavingServer, settings: Settings, fetch: Fetch, addresses: list[str]
) -> None:
    dialer = LocalDialer(upstream.port)
    wire = guarded(settings, Names(a_gov=[addresses]), dialer)
    with pytest.raises(ForbiddenAddressError, match=r"a\.gov is at"):
        fetch("http://a.gov/etag", wire=wire)
    assert dialer.dialled == []


@pytest.mark.parametrize(
    "there",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://inside.corp/",
        "https://2130706433/",
    ],
)
def test_a_redirect_to_a_private_address_is_refused(
    upstream: MisbehavingServer, settings: Settings, fetch: Fetch, there: str
) -> None:
    dialer = LocalDialer(upstream.port)
    names = Names(a_gov=[[PUBLIC]], inside_corp=[["192.168.0.7"]])
    names._answers["2130706433"] = [["127.0.0.1"]]
    with pytest.raises(ForbiddenAddressError):
        fetch(
            f"http://a.gov/redirect-private?to={there}",
            wire=guarded(settings, names, dialer),
        )
    assert dialer.dialled == [PUBLIC]
    assert len(upstream.requests) == 1


def test_loopback_is_refused_by_default(
    upstream: MisbehavingServer, settings: Settings, fetch: Fetch
) -> None:
    with pytest.raises(ForbiddenAddressError, match="FONDS_ALLOW_PRIVATE"):
        fetch(upstream.url("/etag"), settings=replace(settings, allow_private=False))
    assert upstream.requests == []


def test_a_stand_in_is_guarded_as_well(
    upstream: MisbehavingServer, settings: Settings, fetch: Fetch
) -> None:
    mapped = replace(settings, allow_private=False, hosts={"a.gov": upstream.address})
    with pytest.raises(ForbiddenAddressError):
        fetch("https://a.gov/etag", settings=mapped)
    assert upstream.requests == []


def test_the_next_address_is_tried_when_one_does_not_answer(
    upstream: MisbehavingServer, settings: Settings, fetch: Fetch
) -> None:
    dialer = LocalDialer(upstream.port, unreachable=["2606:4700::1"])
    names = Names(a_gov=[["2606:4700::1", PUBLIC]])
    assert fetch("http://a.gov/etag", wire=guarded(settings, names, dialer))
    assert dialer.dialled == ["2606:4700::1", PUBLIC]


def test_an_unknown_name_is_a_failed_connection(settings: Settings, fetch: Fetch) -> None:
    wire = guarded(settings, Names(), LocalDialer(0))
    with pytest.raises(ConnectionFailedError, match=r"nowhere\.gov"):
        fetch("http://nowhere.gov/", wire=wire)


class Handshake:
    """Notes for which name a certificate is asked, and hangs up."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    async def start_tls(self, context: ssl.SSLContext, host: str, patience: float | None) -> Stream:
        del patience
        assert context.check_hostname
        self._names.append(host)
        raise ssl.SSLError("no certificate")

    async def aclose(self) -> None:
        return


def test_certificates_are_asked_for_by_name(settings: Settings, fetch: Fetch) -> None:
    names: list[str] = []

    class Dialer(LocalDialer):
        async def connect(self, host: str, port: int, patience: float | None) -> Stream:
            del port, patience
            self.dialled.append(host)
            return cast("Stream", Handshake(names))

    dialer = Dialer(0)
    wire = guarded(replace(settings, retries=1), Names(a_gov=[[PUBLIC]]), dialer)
    with pytest.raises(ConnectionFailedError):
        fetch("https://a.gov/", wire=wire, settings=replace(settings, retries=1))
    assert (dialer.dialled, names) == ([PUBLIC], ["a.gov"])


def test_a_slow_look_up_ends_in_time() -> None:
    async def never(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    guard = Guard(allow_private=False, resolve=never)
    with pytest.raises(TimeoutError, match="looking up"):
        asyncio.run(guard.connect("a.gov", 80, 0.01))

"""No private addresses: every connection goes to an address that was checked.

aiohttp asks the guard twice. It is the resolver, so that a name is refused if any of its addresses
is private; and it makes the sockets, so that the very address a connection goes to is checked, be
it written as a number in the URL or changed since the name was looked up (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final

from aiohttp import AddrInfoType, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from fonds.errors import ForbiddenAddressError

IpAddress = IPv4Address | IPv6Address
LookUp = Callable[[str, int], Awaitable[list[str]]]
"""Takes host and port, and returns addresses in the order to try them."""

KEEP_ALIVE_SECONDS: Final = 30.0
MAX_ADDRESSES: Final = 4
"""Addresses of one name that a connection is tried to."""

# Ranges that the standard library's predicates leave out, or did in some versions.
_MORE_FORBIDDEN: Final = (
    ("shared (carrier-grade NAT)", IPv4Network("100.64.0.0/10")),
    ("special-purpose", IPv4Network("192.0.0.0/24")),
    ("6to4 relay", IPv4Network("192.88.99.0/24")),
    ("benchmarking", IPv4Network("198.18.0.0/15")),
    ("local NAT64", IPv6Network("64:ff9b:1::/48")),
    ("discard-only", IPv6Network("100::/64")),
    ("documentation", IPv6Network("3fff::/20")),
    ("site-local", IPv6Network("fec0::/10")),
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE: Final = IPv6Network("::/96")


def why_forbidden(address: IpAddress) -> str | None:
    """The kind of non-public address this is, or None if it is public."""
    inner = list(_embedded(address)) if isinstance(address, IPv6Address) else []
    if inner:
        reasons = (why_forbidden(each) for each in inner)
        return next((reason for reason in reasons if reason), None)
    checks = {
        "unspecified": address.is_unspecified,
        "loopback": address.is_loopback,
        "link-local": address.is_link_local,
        "multicast": address.is_multicast,
        "private": address.is_private,
        "reserved": address.is_reserved,
    }
    kind = next((name for name, applies in checks.items() if applies), None)
    return kind or next((name for name, net in _MORE_FORBIDDEN if address in net), None)


def _embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """IPv4 addresses to which a gateway would pass on what is sent to this IPv6 address."""
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    elif address.sixtofour:
        yield address.sixtofour
    elif address.teredo:
        yield from address.teredo
    elif address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        yield IPv4Address(int(address) & 0xFFFFFFFF)


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of a host, in the order of the system's resolver."""
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class Guard(AbstractResolver):
    """Looks up names and makes sockets for aiohttp, and refuses private addresses."""

    def __init__(self, *, allow_private: bool, look_up: LookUp = look_up) -> None:
        self._allow_private = allow_private
        self._look_up = look_up

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 — both families, always
    ) -> list[ResolveResult]:
        """The checked addresses of a name; ForbiddenAddressError if one of them is private."""
        try:
            addresses = await self._look_up(host, port)
        except UnicodeError as error:
            raise OSError(f"{host!r} is not a valid name: {error}") from error
        if not addresses:
            raise OSError(f"{host} has no address")
        for address in addresses:
            self._check(host, address)
        return [_result(host, address, port) for address in addresses[:MAX_ADDRESSES]]

    def open_socket(self, address_info: AddrInfoType) -> socket.socket:
        """A socket for a connection to this address; ForbiddenAddressError if it is private."""
        family, kind, protocol, _name, address = address_info
        self._check(address[0], address[0])
        return socket.socket(family, kind, protocol)

    async def close(self) -> None:
        """Nothing is open."""

    def _check(self, host: str, address: str) -> None:
        reason = None if self._allow_private else why_forbidden(ip_address(address))
        if reason:
            where = host if host == address else f"{host} ({address})"
            raise ForbiddenAddressError(
                f"{where} was refused, as it is not a public address but {reason}; "
                "set FONDS_ALLOW_PRIVATE=1 to allow such addresses"
            )


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


class GuardedConnector(TCPConnector):
    """Opens connections to checked addresses, and keeps them for a while."""

    def __init__(self, guard: Guard, tls: ssl.SSLContext | None) -> None:
        super().__init__(
            resolver=guard,
            socket_factory=guard.open_socket,
            use_dns_cache=False,
            ssl=tls or True,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            limit=0,
        )

    async def _get(self, key: Any, traces: Any) -> Any:
        # What a server sends while a connection is idle would be the response to the next request.
        while (connection := await super()._get(key, traces)) is not None:
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()
        return None
